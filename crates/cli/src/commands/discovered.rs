//! Discovery data that observable participants on this host send to other processes ([`DiscoveredList`]). A new
//! participant would have to wait for the announcements that they already have.
//!
//! Answers are not trusted: their length and their time are limited, and those of other users are not read, except by
//! root.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use isolane::observe::{DiscoveredList, discovered_socket_name};
use isolane::{Guid, GuidPrefix, RemoteEndpoint};
use isolane_wire::builtin_data::ParticipantData;
use serde::Serialize;

use super::observable::{Address, Process, open_stream, participants};
use super::participant::refused;
use crate::limits::WATCHED_PARTICIPANTS;

/// Maximum wait for a part of an answer. A participant that sleeps elsewhere than in epoll looks for connections once a
/// second.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Maximum wait for all answers together. A full list takes a participant about a second.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Participant that answered.
#[derive(Debug, Serialize)]
pub(super) struct Answered {
    pub(super) pid: u32,
    /// Number of the participant within its process.
    number: u32,
    pub(super) name: String,
    guid_prefix: String,
    /// Time for which the participant's loop has run since it was enabled.
    age_us: f64,
    /// Number of entities that the participant could not list.
    pub(super) omitted: u64,
    /// Counts of discovery data that its full tables refused.
    #[serde(skip)]
    pub(super) refused: Option<String>,
}

/// Participants and endpoints that running participants of a domain know.
pub(super) struct KnownHere {
    pub(super) answered: Vec<Answered>,
    pub(super) participants: Vec<ParticipantData>,
    pub(super) endpoints: Vec<RemoteEndpoint>,
}

/// Asks the participants of a domain on this host. Returns `None` unless one answers that has discovered others for
/// `at_least`. Static discovery does not count, because it finds only described entities.
pub(super) fn ask(domain: u32, at_least: Duration) -> Option<KnownHere> {
    // Without /proc there are no participants to ask.
    let present = participants().unwrap_or_default();
    let deadline = Instant::now() + ANSWER_TIME;
    let asked: Vec<_> = present
        .into_iter()
        .take(WATCHED_PARTICIPANTS)
        .map(|address| thread::spawn(move || ask_one(address, domain, deadline)))
        .collect();
    let answers = asked.into_iter().filter_map(|thread| thread.join().ok()?);
    let answers: Vec<(Answered, DiscoveredList)> = answers.collect();
    let mut all = answers.iter();
    all.any(|(_, list)| list.source.discovers_all && list.source.age_us >= microseconds(at_least))
        .then(|| merge(answers))
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Asks one participant; `None` if it does not answer in time, is of another domain, or is not to be trusted.
fn ask_one(address: Address, domain: u32, deadline: Instant) -> Option<(Answered, DiscoveredList)> {
    let name = discovered_socket_name(address.pid, address.number);
    let stream = open_stream(&name).ok()?;
    let process = Process::behind(&stream)?;
    let own = rustix::process::geteuid();
    if !own.is_root() && process.user_id != own.as_raw() {
        return None;
    }
    stream.set_nonblocking(false).ok()?;
    let stream = BufReader::new(BeforeDeadline { stream, deadline });
    let list = DiscoveredList::read(stream, |source| source.domain == domain).ok()??;
    let source = list.source.clone();
    let answered = Answered {
        pid: process.pid,
        number: source.number,
        name: source.name,
        guid_prefix: source.guid_prefix,
        age_us: source.age_us,
        omitted: list.omitted,
        refused: refused(&source.counters),
    };
    Some((answered, list))
}

/// Stream that is read until a deadline. Without it, a participant that sends a byte at a time would never end.
struct BeforeDeadline {
    stream: UnixStream,
    deadline: Instant,
}

impl Read for BeforeDeadline {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left.min(PATIENCE)))?;
        self.stream.read(buffer)
    }
}

/// Merges the answers. A participant's data of itself takes precedence over other participants' data of it.
fn merge(answers: Vec<(Answered, DiscoveredList)>) -> KnownHere {
    let own: BTreeSet<String> = answers
        .iter()
        .map(|(answered, _)| answered.guid_prefix.clone())
        .collect();
    let mut participants = BTreeMap::<GuidPrefix, ParticipantData>::new();
    let mut endpoints = BTreeMap::<Guid, RemoteEndpoint>::new();
    let mut answered = Vec::new();
    for (by, list) in answers {
        let is_first_hand = |prefix: GuidPrefix| {
            let prefix = prefix.to_string();
            prefix == by.guid_prefix || !own.contains(&prefix)
        };
        for data in list.participants {
            if is_first_hand(data.guid.prefix) {
                participants.entry(data.guid.prefix).or_insert(data);
            }
        }
        for endpoint in list.endpoints {
            let guid = endpoint.data.guid;
            if is_first_hand(guid.prefix) {
                endpoints.entry(guid).or_insert(endpoint);
            }
        }
        answered.push(by);
    }
    KnownHere {
        answered,
        participants: participants.into_values().collect(),
        endpoints: endpoints.into_values().collect(),
    }
}
