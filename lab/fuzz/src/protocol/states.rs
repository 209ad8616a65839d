//! Table of the states that protocol and time-based policies can reach, and of those that inputs have reached.
//!
//! A state is reached if its counter is above zero at any participant, or if an operation observes it. A state that no
//! input reaches is not tested. The saved corpus reaches all states (`tests/replay.rs`).

use std::sync::atomic::{AtomicBool, Ordering};

use Shown::{LocalParticipant, Observed, Reader, ReaderReported, Writer, WriterReported};
use isolane_rtps::{Counters, ReaderLedger, ReaderStatus, WriterLedger, WriterStatus};

/// How a state is detected: by a counter, a reported status, or an observation.
#[derive(Clone, Copy)]
enum Shown {
    LocalParticipant(fn(&Counters) -> u64),
    Writer(fn(&WriterLedger) -> u64),
    Reader(fn(&ReaderLedger) -> u64),
    /// A status was reported to a writer's user.
    WriterReported(WriterStatus),
    /// A status was reported to a reader's user.
    ReaderReported(ReaderStatus),
    /// An operation observed the state.
    Observed(Seen),
}

/// States that operations observe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// A participant is known.
    Participant,
    /// An endpoint of a participant is known.
    Endpoint,
    /// A writer has a matched reader in another local participant.
    MatchedReader,
    /// A reader has a matched writer in another local participant.
    MatchedWriter,
    /// Some reader has acknowledged all samples of a reliable writer.
    Acknowledged,
    /// A full KEEP_ALL history refused a sample.
    Refused,
    /// A sample was delivered as a view of its datagram.
    View,
    /// A fragmented sample was delivered as a view.
    WholeView,
    /// A fragmented sample is in a cache.
    WholeSample,
    /// An instance was disposed.
    Disposed,
    /// An instance has no writers left.
    NoWriters,
    /// A matched writer is not alive.
    NotAlive,
    /// A matched writer is alive again.
    AliveAgain,
}

/// All states with their descriptions.
#[rustfmt::skip]
const STATES: &[(&str, Shown)] = &[
    // Discovery.
    ("participant known", Observed(Seen::Participant)),
    ("participant unproven: answers withheld", LocalParticipant(|it| it.answers_withheld)),
    ("participant refused: table full", LocalParticipant(|it| it.participants_refused)),
    ("participant gone: lease over", LocalParticipant(|it| it.leases_expired)),
    ("announcement replaced by a newer one", LocalParticipant(|it| it.announcements_replaced)),
    ("announcement malformed", LocalParticipant(|it| it.malformed_announcements)),
    ("endpoint known", Observed(Seen::Endpoint)),
    ("endpoint refused: table full", LocalParticipant(|it| it.endpoints_refused)),
    ("match refused: table full", LocalParticipant(|it| it.matches_refused)),
    // Messages.
    ("message malformed", LocalParticipant(|it| it.malformed_messages)),
    ("submessage malformed", LocalParticipant(|it| it.malformed_submessages)),
    ("submessage skipped", LocalParticipant(|it| it.skipped_submessages)),
    ("submessage for others", LocalParticipant(|it| it.for_others)),
    ("DATA unmatched", LocalParticipant(|it| it.unmatched_data)),
    ("ACKNACK unmatched", LocalParticipant(|it| it.unmatched_acknacks)),
    // Matching.
    ("reader matched", Observed(Seen::MatchedReader)),
    ("writer matched", Observed(Seen::MatchedWriter)),
    ("offered QoS incompatible", WriterReported(WriterStatus::OFFERED_INCOMPATIBLE_QOS)),
    ("requested QoS incompatible", ReaderReported(ReaderStatus::REQUESTED_INCOMPATIBLE_QOS)),
    ("reader silent", LocalParticipant(|it| it.readers_silent)),
    // The reliable writer.
    ("sample sent", Writer(|it| it.sent)),
    ("sample unmatched", Writer(|it| it.unmatched)),
    ("sample pending", Writer(|it| it.pending)),
    ("sample pushed out unsent", Writer(|it| it.evicted_unsent)),
    ("sample repaired", Writer(|it| it.repaired)),
    ("GAP sent", Writer(|it| it.gaps)),
    ("history sent", Writer(|it| it.history)),
    ("history full: replaced", Writer(|it| it.replaced)),
    ("history full: refused", Observed(Seen::Refused)),
    ("heartbeat sent", Writer(|it| it.heartbeats)),
    ("all acknowledged", Observed(Seen::Acknowledged)),
    // The reader.
    ("sample shown as a view", Observed(Seen::View)),
    ("sample available", Reader(|it| it.available)),
    ("sample delivered", Reader(|it| it.delivered)),
    ("sample waits for earlier ones", Reader(|it| it.waiting)),
    ("sample had before", Reader(|it| it.duplicates)),
    ("sample lost", Reader(|it| it.lost)),
    ("sample skipped", Reader(|it| it.skipped)),
    ("sample deferred: no room", Reader(|it| it.deferred)),
    ("sample pushed out", Reader(|it| it.evicted)),
    ("sample rejected", Reader(|it| it.rejected)),
    ("instance disposed", Observed(Seen::Disposed)),
    ("instance without writers", Observed(Seen::NoWriters)),
    // Fragments.
    ("fragment sent", Writer(|it| it.fragments)),
    ("fragment repaired", Writer(|it| it.fragments_repaired)),
    ("fragment unused", LocalParticipant(|it| it.fragments_unused)),
    ("fragment without a place", LocalParticipant(|it| it.assemblies_refused)),
    ("fragments dropped for others", LocalParticipant(|it| it.assemblies_dropped)),
    ("fragments whole: kept", Observed(Seen::WholeSample)),
    ("fragments whole: a view", Observed(Seen::WholeView)),
    // Time, ownership, filters.
    ("expired at the writer, sent", Writer(|it| it.expired)),
    ("expired at the writer, unsent", Writer(|it| it.expired_unsent)),
    ("expired at the reader", Reader(|it| it.expired)),
    ("filtered by time", Reader(|it| it.time_filtered)),
    ("kept back by time", Reader(|it| it.held)),
    ("filtered by content", Reader(|it| it.content_filtered)),
    ("filtered by content at the writer", Writer(|it| it.content_filtered)),
    ("not of the owner", Reader(|it| it.not_owner)),
    ("offered deadline missed", WriterReported(WriterStatus::OFFERED_DEADLINE_MISSED)),
    ("requested deadline missed", ReaderReported(ReaderStatus::REQUESTED_DEADLINE_MISSED)),
    ("liveliness lost", WriterReported(WriterStatus::LIVELINESS_LOST)),
    ("writer not alive", Observed(Seen::NotAlive)),
    ("writer alive again", Observed(Seen::AliveAgain)),
];

static REACHED: [AtomicBool; STATES.len()] = [const { AtomicBool::new(false) }; STATES.len()];

fn note(is_so: impl Fn(Shown) -> bool) {
    for ((_, shown), reached) in STATES.iter().zip(&REACHED) {
        if !reached.load(Ordering::Relaxed) && is_so(*shown) {
            reached.store(true, Ordering::Relaxed);
        }
    }
}

pub(super) fn note_protocol(counters: &Counters) {
    note(|shown| matches!(shown, LocalParticipant(count) if count(counters) > 0));
}

pub(super) fn note_writer(ledger: &WriterLedger) {
    note(|shown| matches!(shown, Writer(count) if count(ledger) > 0));
}

pub(super) fn note_reader(ledger: &ReaderLedger) {
    note(|shown| matches!(shown, Reader(count) if count(ledger) > 0));
}

pub(super) fn note_writer_status(status: WriterStatus) {
    note(|shown| matches!(shown, WriterReported(reported) if status.contains(reported)));
}

pub(super) fn note_reader_status(status: ReaderStatus) {
    note(|shown| matches!(shown, ReaderReported(reported) if status.contains(reported)));
}

pub(super) fn note_seen(seen: Seen) {
    note(|shown| matches!(shown, Observed(state) if state == seen));
}

/// States that the inputs of this process have reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// Number of reached states.
    pub count: usize,
    /// Number of all states.
    pub of: usize,
    /// Descriptions of the unreached states.
    pub unreached: Vec<&'static str>,
}

/// Returns the states reached so far.
#[must_use]
pub fn reached() -> Reached {
    let states = STATES.iter().zip(&REACHED);
    let unreached: Vec<_> = states
        .filter(|(_, reached)| !reached.load(Ordering::Relaxed))
        .map(|((words, _), _)| *words)
        .collect();
    Reached {
        count: STATES.len() - unreached.len(),
        of: STATES.len(),
        unreached,
    }
}

impl std::fmt::Display for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "reached {} of {} protocol states", self.count, self.of)?;
        for state in &self.unreached {
            write!(f, "\n  not reached: {state}")?;
        }
        Ok(())
    }
}
