//! Rate-limited warnings about counted problems.
//!
//! Housekeeping compares the counters with those of its last check, and logs at most one line a second for each kind
//! of problem. Nothing is logged where a problem occurs: the sample paths only count. A check without news compares
//! numbers and allocates nothing. A line that is not due yet is logged later with the total until then. Warnings go to
//! the `log` facade, target `isolane`, and to standard error if its level is `Off`.

use std::{fmt::Arguments, time::Duration};

use isolane_datapath::{CounterNames, LaneLedger, ReceiveDrop};
use isolane_rtps::{Counters, EndpointKind, ReaderId, TooLargeSample};
use isolane_wire::{guid::Guid, locator::Locator, time::Instant};
use log::LevelFilter;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{
    limits::{COMPARED_WRITERS, LOG_PERIOD, PAIRS_REMEMBERED, UNMATCHED},
    participant::state::State,
    qos::mismatch::{Difference, differences},
};

/// Kind of counted problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Malformed,
    TableFull,
    Destinations,
    Frames,
    Overflow,
    Unsent,
    Described,
    Jumps,
    Expired,
    Silent,
    Unvalidated,
    TooLarge,
}

impl Kind {
    const COUNT: usize = 12;
    const ALL: [Self; Self::COUNT] = [
        Self::Malformed,
        Self::TableFull,
        Self::Destinations,
        Self::Frames,
        Self::Overflow,
        Self::Unsent,
        Self::Described,
        Self::Jumps,
        Self::Expired,
        Self::Silent,
        Self::Unvalidated,
        Self::TooLarge,
    ];

    fn count(self, seen: &Seen<'_>) -> u64 {
        let Seen {
            counters, lanes, ..
        } = seen;
        match self {
            Self::Malformed => {
                counters.malformed_messages
                    + counters.malformed_submessages
                    + counters.malformed_announcements
            }
            Self::TableFull => {
                counters.participants_refused
                    + counters.endpoints_refused
                    + counters.matches_refused
                    + counters.shares_exceeded
            }
            Self::Destinations => counters.destinations_full,
            Self::Frames => seen.no_frame + lanes.receive.starved,
            Self::Overflow => lanes.receive.dropped(ReceiveDrop::KERNEL_OVERFLOW),
            Self::Unsent => lanes.transmit.refused_total(),
            Self::Described => counters.static_disagreements + counters.static_impostors,
            Self::Jumps => counters.jumps_doubted,
            Self::Expired => counters.expired_on_arrival,
            Self::Silent => counters.readers_silent,
            Self::Unvalidated => {
                counters.answers_elsewhere
                    + counters.readers_unvalidated
                    + counters.unvalidated_limited
            }
            Self::TooLarge => counters.samples_too_large,
        }
    }

    /// Logs the problem with its cause and remedy.
    fn log(self, more: u64, seen: &Seen<'_>) {
        let count = Grouped(more);
        match self {
            Self::Malformed => match seen.malformed_from {
                Some(from) => warn!(
                    "malformed datagrams or submessages: {count} more, the last from {}; they are \
                     skipped. Another program sends to this port, or a peer is broken",
                    Source(from)
                ),
                None => warn!("malformed datagrams or submessages: {count} more; they are skipped"),
            },
            Self::TableFull => warn!(
                "peers refused, with which no samples are exchanged: {count} more (so far {}). Raise the limit: \
                 `max_participants` of the host in isolane.toml, --max-participants, or Builder::limits",
                Refused(&seen.counters)
            ),
            Self::Destinations => warn!(
                "readers not reached by first transmissions: {count} more, because their participant announces more \
                 addresses than are sent to. Give its topics fewer ports, or use multicast"
            ),
            Self::Frames => warn!(
                "no frame was free: {count} more times; datagrams wait or are sent later. The loop is \
                 behind: it is run too seldom, or callbacks take too long"
            ),
            Self::Overflow => warn!(
                "datagrams dropped by the kernel at full sockets: {count} more. The loop is behind, or \
                 bursts are longer than the buffers: raise Builder::receive_buffer_bytes and \
                 net.core.rmem_max"
            ),
            Self::Unsent => warn!(
                "datagrams not sent: {count} more ({}). The ledger of the report shows the lane",
                Reasons(seen)
            ),
            Self::Described => warn!(
                "differences from the description: {count} more ({} participants with another description, {} \
                 datagrams with a described participant's name from another address). Give all hosts the same \
                 description; `isolane why TOPIC --config FILE` names the participants that differ",
                Grouped(seen.counters.static_disagreements),
                Grouped(seen.counters.static_impostors)
            ),
            Self::Jumps => warn!(
                "sequence numbers far ahead of a writer: {count} more; readers do not follow them until the writer \
                 itself confirms them. Either more samples were lost at once than a reader keeps track of, or another \
                 host sends in the writer's name"
            ),
            Self::Expired => warn!(
                "samples older than their LIFESPAN when they arrived: {count} more; they are not delivered. The \
                 clock of the writer's host is behind, or the network holds datagrams for longer: synchronise \
                 the clocks, or raise LIFESPAN"
            ),
            Self::Silent => warn!(
                "reliable readers that never answered: {count} more{}; they get no samples until they answer. \
                 Datagrams between the hosts are lost in one direction: check packet filters and addresses",
                Silent(seen.silent)
            ),
            Self::Unvalidated => warn!(
                "addresses that are not validated: {count} more (so far {} readers, which get no samples; {} answers \
                 from addresses that their participant does not announce; {} datagrams held back by the rate limit \
                 for all such addresses). Either a participant answers from another address than it announces: let it \
                 announce the address that it sends from, or describe it. Or many participants start at once, or a \
                 host announces addresses of other hosts",
                Grouped(seen.counters.readers_unvalidated),
                Grouped(seen.counters.answers_elsewhere),
                Grouped(seen.counters.unvalidated_limited)
            ),
            Self::TooLarge => match seen.too_large {
                Some(TooLargeSample {
                    topic,
                    bytes,
                    limit,
                }) => warn!(
                    "samples too large for their reader: {count} more, the last of topic {topic} with {} bytes, but \
                     the reader accepts {}; they are acknowledged and lost. Raise Qos::max_bytes of the reader \
                     (--max-bytes, or max_bytes of the topic in isolane.toml)",
                    Grouped(bytes.into()),
                    Grouped(limit as u64)
                ),
                None => warn!("samples too large for a reader that no longer exists: {count} more"),
            },
        }
    }
}

/// Refused peers, by kind, formatted for people.
struct Refused<'a>(&'a Counters);

impl std::fmt::Display for Refused<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counters = self.0;
        write!(
            f,
            "{} announcements of participants, {} of endpoints, {} matches, {} endpoints and matches beyond their \
             participant's share",
            Grouped(counters.participants_refused),
            Grouped(counters.endpoints_refused),
            Grouped(counters.matches_refused),
            Grouped(counters.shares_exceeded)
        )
    }
}

/// Topic and GUID of the reader that became silent last.
struct Silent<'a>(Option<(&'a str, Guid)>);

impl std::fmt::Display for Silent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some((topic, reader)) = self.0 else {
            return Ok(());
        };
        match topic {
            "" => write!(f, ", the last one for discovery, with the GUID {reader}"),
            _ => write!(
                f,
                ", the last one for topic {topic:?}, with the GUID {reader}"
            ),
        }
    }
}

/// Inputs of one check.
struct Seen<'a> {
    counters: Counters,
    /// Sum of all lanes.
    lanes: LaneLedger,
    /// Names of the lanes' counters.
    names: &'static CounterNames,
    no_frame: u64,
    malformed_from: Option<Locator>,
    silent: Option<(&'a str, Guid)>,
    too_large: Option<TooLargeSample<'a>>,
}

/// State that housekeeping keeps between checks.
#[derive(Default)]
pub(crate) struct WarningLog {
    logged: [u64; Kind::COUNT],
    logged_at: [Option<Instant>; Kind::COUNT],
    /// Malformed messages and submessages up to the last datagram, and the source of the last one.
    malformed_seen: u64,
    malformed_from: Option<Locator>,
    /// True if an endpoint has met an incompatible one.
    pub(crate) has_incompatible: bool,
    /// Pairs that were logged, as a ring that overwrites the oldest.
    named: Vec<(Guid, Guid)>,
    next_named: usize,
    named_at: Option<Instant>,
    /// Number of samples refused for their encapsulation that were logged, and the time of that log line.
    refused_logged: u64,
    refused_at: Option<Instant>,
}

impl WarningLog {
    pub(crate) fn new() -> Self {
        Self {
            named: Vec::with_capacity(PAIRS_REMEMBERED),
            ..Self::default()
        }
    }

    /// Notes the source of a datagram if it was malformed.
    #[inline]
    pub(crate) fn note_datagram(&mut self, counters: &Counters, from: &Locator) {
        let malformed = counters.malformed_messages + counters.malformed_submessages;
        if malformed != self.malformed_seen {
            self.malformed_seen = malformed;
            self.malformed_from = Some(*from);
        }
    }

    /// Returns whether this pair is not among the pairs logged last.
    fn is_new(&mut self, pair: (Guid, Guid)) -> bool {
        if self.named.contains(&pair) {
            return false;
        }
        if self.named.len() < PAIRS_REMEMBERED {
            self.named.push(pair);
        } else {
            self.named[self.next_named] = pair;
            self.next_named = (self.next_named + 1) % PAIRS_REMEMBERED;
        }
        true
    }
}

/// Log target of problems.
pub(crate) const PROBLEM: &str = "isolane";
/// Log target of settings that this machine refuses ([`Participant::warnings`](crate::Participant::warnings)).
pub(crate) const SETTING: &str = "isolane::setting";

/// Passes a warning to the program's logger, or to standard error if the program has none. The `log` facade does not
/// tell a program without a logger from one whose logger is off: both have the level `Off`.
pub(crate) fn warn(target: &str, text: Arguments<'_>) {
    match log::max_level() {
        LevelFilter::Off => write_to_stderr(&format!("isolane: {text}\n")),
        _ => log::warn!(target: target, "{text}"),
    }
}

/// Writes a line to standard error, unless that would block the loop.
fn write_to_stderr(line: &str) {
    let stderr = rustix::stdio::stderr();
    let mut polled = [PollFd::new(&stderr, PollFlags::OUT)];
    if poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0) {
        // A failed write loses the warning: standard error is closed.
        let _ = rustix::io::write(stderr, line.as_bytes());
    }
}

/// Warns that a reader of this topic can get no sample. `idle` is the time since the loop last ran, `None` if it never
/// has.
#[cold]
pub(crate) fn warn_not_driven(topic: &str, idle: Option<Duration>, is_abandoned: bool) {
    if is_abandoned {
        warn!(
            "topic {topic}: the participant of its reader here was dropped, so its loop does not run. Keep the Participant \
             for as long as its readers read"
        );
        return;
    }
    let idle = match idle {
        None => "has not run yet".to_owned(),
        Some(idle) => format!("has not run for {:.1} s", idle.as_secs_f64()),
    };
    warn!(
        "topic {topic}: its reader here can get no sample, because the participant's loop {idle}. Call \
         DataReader::take_timeout, or Participant::run_for, run or poll, or let Participant::spawn run the loop on its \
         own thread"
    );
}

/// Returns whether the rate limit allows another line.
fn is_due(last: Option<Instant>, now: Instant) -> bool {
    last.is_none_or(|last| now >= last + LOG_PERIOD)
}

impl State {
    pub(crate) fn log_warnings(&mut self, now: Instant) {
        if log::max_level() == LevelFilter::Error {
            return;
        }
        let ledger = self.io.datapath.ledger();
        let seen = Seen {
            counters: *self.protocol.counters(),
            lanes: ledger.total(),
            names: ledger.names(),
            no_frame: self.io.no_frame,
            malformed_from: self.monitoring.warning_log.malformed_from,
            silent: self.protocol.last_silent_reader(),
            too_large: self.protocol.last_too_large(),
        };
        for kind in Kind::ALL {
            let count = kind.count(&seen);
            let more = count.wrapping_sub(self.monitoring.warning_log.logged[kind as usize]);
            if more > 0 && is_due(self.monitoring.warning_log.logged_at[kind as usize], now) {
                self.monitoring.warning_log.logged[kind as usize] = count;
                self.monitoring.warning_log.logged_at[kind as usize] = Some(now);
                kind.log(more, &seen);
            }
        }
        let refused = seen.counters.samples_unreadable;
        self.log_unmatched();
        if self.monitoring.warning_log.has_incompatible
            && is_due(self.monitoring.warning_log.named_at, now)
        {
            self.monitoring.warning_log.has_incompatible = self.log_incompatible(now);
        }
        let more = refused.wrapping_sub(self.monitoring.warning_log.refused_logged);
        if more > 0 && is_due(self.monitoring.warning_log.refused_at, now) {
            self.monitoring.warning_log.refused_logged = refused;
            self.monitoring.warning_log.refused_at = Some(now);
            self.log_refused(more);
        }
    }

    /// Logs samples refused because they are not of their reader's type, with a reader and a writer. Pairs that were not
    /// logged before come first.
    fn log_refused(&mut self, more: u64) {
        let mut named = None;
        for id in self.protocol.local_readers() {
            let refused = self.protocol.unreadable_samples(id);
            let Some((data, refused)) = self.protocol.reader_data(id).zip(refused) else {
                continue;
            };
            named = Some((data, refused));
            if self
                .monitoring
                .warning_log
                .is_new((refused.writer, data.guid))
            {
                break;
            }
        }
        let Some((data, refused)) = named else {
            return;
        };
        let why = match refused.identifier {
            None => ". Compare the members. Declare each nested structure like its outer type: `#[topic(appendable)]` \
                     on all, or on none"
                .to_owned(),
            Some(identifier) => {
                let is = identifier.extensibility().map(|is| format!(": the writer's type is {is}"));
                format!(
                    " in {identifier}{}. Declare both types alike: `#[topic(appendable)]` here, @final or \
                     @appendable in IDL",
                    is.unwrap_or_default()
                )
            }
        };
        warn!(
            "samples refused because they are not of their reader's type: {} more, the last of topic {} from the writer \
             {}{why}",
            Grouped(more),
            data.topic_name.as_str(),
            refused.writer
        );
    }

    /// Warns about one reader that has had no matched writer for [`UNMATCHED`] seconds.
    fn log_unmatched(&mut self) {
        for id in self.protocol.local_readers() {
            if !self.protocol.is_reader_enabled(id) {
                continue;
            }
            let unmatched = &mut self.reader_slots[id.index()].unmatched;
            match unmatched {
                None => continue,
                Some(_) if self.protocol.matched_writers(id) > 0 => *unmatched = None,
                Some(UNMATCHED..) => {
                    *unmatched = None;
                    return self.warn_unmatched(id);
                }
                Some(seconds) => *seconds += 1,
            }
        }
    }

    fn warn_unmatched(&self, id: ReaderId) {
        let Some(data) = self.protocol.reader_data(id) else {
            return;
        };
        let (topic, type_name) = (data.topic_name.as_str(), data.type_name.as_str());
        let kind = EndpointKind::Writer;
        let remote = self.protocol.remote_endpoints_of(topic, kind);
        let own = self.protocol.local_writers();
        let own = own.filter(|id| self.protocol.is_writer_enabled(*id));
        let own = own.filter_map(|id| self.protocol.writer_data(id));
        let own = own.filter(|it| it.topic_name == topic).cloned();
        let mut found = None;
        for writer in remote.map(|it| it.data).chain(own).take(COMPARED_WRITERS) {
            let Some(difference) = differences(&writer, data).into_iter().next() else {
                // This writer can match: the others do not explain why the reader has none.
                found = None;
                break;
            };
            found.get_or_insert((difference, writer));
        }
        match found {
            Some((Difference::Type, writer)) => warn!(
                "topic {topic}: the writer {} has the type {:?}, the reader here {type_name:?}: they do not match. \
                 Give both the same type name: #[topic(name = \"...\")]",
                writer.guid,
                writer.type_name.as_str()
            ),
            Some((difference, writer)) => warn!(
                "topic {topic}: the reader here differs from the writer {} in {difference}, so they do not match. Give \
                 both the same {difference}",
                writer.guid
            ),
            None => warn!(
                "topic {topic}: no writer has matched the reader here in {UNMATCHED} s; {} other participants are known in domain {}. \
                 Start a writer in the same domain (ROS_DOMAIN_ID) and network; `isolane why {topic}` looks for the cause",
                self.protocol.remote_participants().count(),
                self.protocol.domain()
            ),
        }
    }

    /// Logs one incompatible pair that was not logged before. Returns true if there may be others.
    fn log_incompatible(&mut self, now: Instant) -> bool {
        let protocol = &self.protocol;
        let writers = protocol.local_writers().filter_map(|id| {
            let found = protocol.offered_incompatible(id)?;
            let relation = "writer here offers less than the reader";
            Some((protocol.writer_data(id)?, found, relation))
        });
        let readers = protocol.local_readers().filter_map(|id| {
            let found = protocol.requested_incompatible(id)?;
            let relation = "reader here requests more than the writer";
            Some((protocol.reader_data(id)?, found, relation))
        });
        for (data, found, relation) in writers.chain(readers) {
            let other = found.other;
            if self.monitoring.warning_log.is_new((data.guid, other)) {
                self.monitoring.warning_log.named_at = Some(now);
                let (topic, policy) = (data.topic_name.as_str(), found.policy.name());
                warn!(
                    "topic {topic}: the {relation} {other} in {policy}, so they do not match. Give both the same \
                     {policy} ({} such endpoints so far)",
                    found.total
                );
                return true;
            }
        }
        false
    }
}

/// Number with grouped digits, such as 37,120.
struct Grouped(u64);

impl std::fmt::Display for Grouped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = self.0.to_string();
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

struct Source(Locator);

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.ipv4() {
            Some([a, b, c, d]) => write!(f, "{a}.{b}.{c}.{d}:{}", self.0.port),
            None => write!(f, "{:?}", self.0),
        }
    }
}

/// Reasons why datagrams were not sent, since the start.
struct Reasons<'a>(&'a Seen<'a>);

impl std::fmt::Display for Reasons<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("so far")?;
        for (reason, count) in self.0.lanes.transmit.refusals() {
            write!(f, " {} {}", Grouped(count), self.0.names.refusal(reason))?;
        }
        Ok(())
    }
}

const _: () = assert!(LOG_PERIOD.as_nanos() >= Duration::from_secs(1).as_nanos());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three_digits() {
        let grouped = [0, 7, 999, 1_000, 37_120, 1_234_567].map(|n| Grouped(n).to_string());
        assert_eq!(grouped, ["0", "7", "999", "1,000", "37,120", "1,234,567"]);
    }

    #[test]
    fn an_announcement_that_comes_again_by_itself_is_not_called_refused() {
        let refused = |counters| {
            Kind::TableFull.count(&Seen {
                counters,
                lanes: LaneLedger::default(),
                names: CounterNames::NONE,
                no_frame: 0,
                malformed_from: None,
                silent: None,
                too_large: None,
            })
        };
        let dropped = Counters {
            announcements_dropped: 3,
            ..Counters::default()
        };
        let full = Counters {
            participants_refused: 1,
            shares_exceeded: 2,
            ..dropped
        };
        assert_eq!((refused(dropped), refused(full)), (0, 3));
        let said = Refused(&full).to_string();
        assert!(
            said.starts_with("1 announcements of participants, 0 of endpoints"),
            "{said}"
        );
    }

    #[test]
    fn a_silent_reader_is_named_with_its_topic() {
        let named = Silent(Some(("Brake", Guid::from_bytes([7; 16])))).to_string();
        assert!(
            named.contains("\"Brake\"") && named.contains("07"),
            "{named}"
        );
        assert_eq!(Silent(None).to_string(), "");
    }

    #[test]
    fn a_pair_is_new_once_and_the_oldest_is_forgotten() {
        let guid = |number: u8| Guid::from_bytes([number; 16]);
        let mut warning_log = WarningLog::new();
        assert!(warning_log.is_new((guid(1), guid(2))));
        assert!(!warning_log.is_new((guid(1), guid(2))));
        for number in 0..PAIRS_REMEMBERED {
            warning_log.is_new((guid(3), guid(number as u8)));
        }
        assert_eq!(warning_log.named.len(), PAIRS_REMEMBERED);
        assert!(warning_log.is_new((guid(1), guid(2))));
    }
}
