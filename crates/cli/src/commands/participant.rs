//! What `pub`, `sub` and `ls` have in common: a participant as the settings want it, and the wish
//! to stop.

use std::cell::RefCell;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use isolane::limits::PARTICIPANTS_PER_PEER;
use isolane::{BuildError, Builder, Counters, Interfaces as Chosen, Participant, Qos};
use isolane_model::{Durability, History, Reliability};

use super::described::with_described;
use super::lane;
use super::presence::Presence;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::{
    ENCAPSULATION_HEADER_BYTES, SEEN_PARTICIPANTS, USUAL_PARTICIPANTS, remedy_of_full_tables,
};
use crate::output::tell;
use crate::settings::{EndpointSettings, Interfaces, LaneSettings, NetworkSettings};
use crate::stop;
use crate::values::{Peer, Representation};
use crate::why::FullTables;

/// How long the loop runs before it is looked whether to stop: a signal interrupts its sleep, so
/// this only bounds the rare one that comes just before.
const SLICE: Duration = Duration::from_millis(100);

/// Makes the participant of a command that looks who is there, named after it, and tells what it had to do without.
pub(super) fn build<'a>(
    name: &str,
    network: &'a NetworkSettings,
    lane: &LaneSettings,
    peers: &'a [Peer],
) -> Result<(Participant, Notes<'a>), Failure> {
    let most = SEEN_PARTICIPANTS;
    build_with(name, (network, lane, None), peers, most).map_err(failure)
}

/// The same for an endpoint, whose participant may be one of the description.
pub(super) fn build_endpoint<'a>(
    name: &str,
    settings: &'a EndpointSettings,
) -> Result<(Participant, Notes<'a>), Failure> {
    let of = (&settings.network, &settings.lane, Some(settings));
    build_with(name, of, &settings.peers.value, USUAL_PARTICIPANTS).map_err(failure)
}

/// The same, for who has more to say of an error; unless somebody says otherwise `most` participants are known at most.
pub(super) fn build_with<'a>(
    name: &str,
    (network, lane, endpoint): (
        &'a NetworkSettings,
        &LaneSettings,
        Option<&EndpointSettings>,
    ),
    peers: &'a [Peer],
    most: u32,
) -> Result<(Participant, Notes<'a>), BuildError> {
    let builder = Participant::builder(network.domain.value.get());
    let builder = builder.name(name).observable(true);
    let builder = builder.limits(lane::limits(lane, most));
    let mut builder: Builder = lane::with_datapath(builder, lane);
    if let Interfaces::Named(names) = &network.interfaces.value {
        builder = builder.interfaces(Chosen::Named(names.clone()));
    }
    for peer in peers {
        builder = match peer.port {
            Some(port) => builder.peer_at(SocketAddrV4::new(peer.address, port)),
            None => builder.peer(peer.address),
        };
    }
    let mut described = None;
    if let Some(endpoint) = endpoint {
        // Others only look at the network, and do not need the host's core.
        builder = lane::with_placement(builder, lane);
        described = endpoint.described.as_ref();
    }
    let participant = with_described(builder, described).build()?;
    let mut notes = Notes {
        network,
        peers,
        told: Vec::new(),
    };
    notes.tell(&participant);
    Ok((participant, notes))
}

/// What a participant had to do without, told once.
pub(super) struct Notes<'a> {
    network: &'a NetworkSettings,
    peers: &'a [Peer],
    told: Vec<String>,
}

impl Notes<'_> {
    /// Tells what was not told yet: an endpoint may bring news.
    pub(super) fn tell(&mut self, participant: &Participant) {
        for note in participant.notes() {
            let is_news = !self.told.contains(&note);
            if is_news && (self.network.verbosity > 0 || !is_as_asked(&note, self.peers)) {
                // The library names its own function.
                let said = note.replace("Builder::peer", "--peer ADDRESS");
                tell(format!("note: {said}"));
            }
            self.told.push(note);
        }
    }
}

/// Whether it only says what goes without saying: who names peers does without multicast, and the
/// loopback interface usually has none.
fn is_as_asked(note: &str, peers: &[Peer]) -> bool {
    !peers.is_empty() && note.starts_with("no multicast on interface lo:")
}

/// What is not known because a table was full; `None`: nothing.
pub(super) fn full_tables(participant: &Participant, lane: &LaneSettings) -> Option<FullTables> {
    let refused = refused(&participant.counters())?;
    let participants = lane.max_participants.value.unwrap_or(SEEN_PARTICIPANTS);
    let remedy = remedy_of_full_tables(participants);
    Some(FullTables { refused, remedy })
}

fn refused(counters: &Counters) -> Option<String> {
    let counts = [
        (
            counters.participants_refused,
            "announcements of participants",
        ),
        (
            counters.participants_displaced,
            "participants that newer ones displaced",
        ),
        (counters.endpoints_refused, "endpoints"),
        (
            counters.shares_exceeded,
            "endpoints beyond their participant's share",
        ),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let said: Vec<String> = counts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// What `--peer` does not reach; `None`: nobody was named by an address alone.
pub(super) fn unasked(peers: &[Peer]) -> Option<String> {
    peers.iter().any(|peer| peer.port.is_none()).then(|| {
        format!(
            "--peer ADDRESS asks only the ports of participants 1 to {PARTICIPANTS_PER_PEER}. Reach others with --peer \
             ADDRESS:PORT."
        )
    })
}

/// An error of the library, as this command tells it.
pub(super) fn failure(error: BuildError) -> Failure {
    let code = match error.is_wrong_setting() {
        true => ExitCode::WrongUsage,
        false => ExitCode::MachineForbids,
    };
    Failure::new(code, "the participant could not be made", error.to_string())
}

/// The QoS of an endpoint.
pub(super) fn qos(settings: &EndpointSettings) -> Qos {
    let mut qos = match settings.reliability.value {
        Reliability::BestEffort => Qos::best_effort(),
        Reliability::Reliable => Qos::reliable(),
    };
    if settings.durability.value == Durability::TransientLocal {
        qos = qos.transient_local();
    }
    qos = match settings.history.value {
        History::KeepAll => qos.keep_all(),
        History::KeepLast(depth) => qos.keep_last(u16::try_from(depth.get()).unwrap_or(u16::MAX)),
    };
    if let Some(bytes) = settings.max_bytes.value {
        qos = qos.max_bytes(bytes as usize + ENCAPSULATION_HEADER_BYTES);
    }
    if let Some(deadline) = settings.deadline.value {
        qos = qos.response_deadline(deadline);
    }
    if let Some(period) = settings.separation_max {
        qos = qos.deadline(period);
    }
    let samples = u16::try_from(settings.max_samples.value.get()).unwrap_or(u16::MAX);
    qos.max_samples(samples)
        .level(settings.level.value)
        .representation(match settings.representation.value {
            Representation::Xcdr1 => isolane::Representation::Xcdr1,
            Representation::Xcdr2 => isolane::Representation::Xcdr2,
        })
}

/// When to stop: at a signal, or when the time is over.
pub(super) struct Until {
    interrupted: Arc<AtomicBool>,
    end: Option<Instant>,
    /// Interfaces in use, whose state is told.
    presence: Option<RefCell<Presence>>,
}

impl Until {
    pub(super) fn new(run_for: Option<Duration>) -> Result<Self, Failure> {
        let interrupted = stop::on_signals()?;
        Ok(Self {
            interrupted,
            end: run_for.map(|time| Instant::now() + time),
            presence: None,
        })
    }

    /// Tells meanwhile which interfaces of the network go down and come back.
    pub(super) fn with_network(mut self, network: &NetworkSettings) -> Self {
        self.presence = Some(RefCell::new(Presence::new(network)));
        self
    }

    /// What a signal sets, for loops of others.
    pub(super) fn flag(&self) -> &AtomicBool {
        &self.interrupted
    }

    pub(super) fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Whether to stop now.
    pub(super) fn over(&self) -> bool {
        self.interrupted() || self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// The time that is left, `at_most` this.
    pub(super) fn left(&self, at_most: Duration) -> Duration {
        self.end.map_or(at_most, |end| {
            end.saturating_duration_since(Instant::now()).min(at_most)
        })
    }

    /// Runs the loop until `done`, a signal, or the end of the time; true: it was `done`.
    pub(super) fn run(&self, participant: &Participant, mut done: impl FnMut() -> bool) -> bool {
        loop {
            if done() {
                return true;
            }
            if self.over() {
                return false;
            }
            if let Some(presence) = &self.presence {
                presence.borrow_mut().look();
            }
            participant.run_until(self.left(SLICE), || done() || self.interrupted());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_from_which_a_participant_was_displaced_is_not_complete() {
        assert_eq!(refused(&Counters::default()), None);
        let counters = Counters {
            participants_displaced: 3,
            endpoints_refused: 2,
            ..Counters::default()
        };
        assert_eq!(
            refused(&counters).as_deref(),
            Some("3 participants that newer ones displaced, 2 endpoints")
        );
    }
}
