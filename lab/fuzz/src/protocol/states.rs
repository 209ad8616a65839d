//! Table of the states that protocol and time-based policies can reach, and of those that inputs have reached.
//!
//! A state is reached when its count is above zero at any participant, or when an operation observes it. No check has
//! examined a state that no input reaches; the saved corpus reaches all (`tests/replay.rs`).

use std::sync::atomic::{AtomicBool, Ordering};

use isolane_rtps::{Counters, ReaderLedger, ReaderStatus, WriterLedger, WriterStatus};

/// Evidence of a state.
#[derive(Clone, Copy)]
enum Shown {
    LocalParticipant(fn(&Counters) -> u64),
    Writer(fn(&WriterLedger) -> u64),
    Reader(fn(&ReaderLedger) -> u64),
    /// A status reported to a writer's user.
    WriterReported(WriterStatus),
    /// A status reported to a reader's user.
    ReaderReported(ReaderStatus),
    /// An observation of an operation.
    Seen(Seen),
}

/// Observations of operations.
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
const STATES: &[(&str, Shown)] = &[
    // Discovery.
    ("participant known", Shown::Seen(Seen::Participant)),
    (
        "participant unproven: answers withheld",
        Shown::LocalParticipant(|it| it.answers_withheld),
    ),
    (
        "participant refused: table full",
        Shown::LocalParticipant(|it| it.participants_refused),
    ),
    (
        "participant gone: lease over",
        Shown::LocalParticipant(|it| it.leases_expired),
    ),
    (
        "announcement replaced by a newer one",
        Shown::LocalParticipant(|it| it.announcements_replaced),
    ),
    (
        "announcement malformed",
        Shown::LocalParticipant(|it| it.malformed_announcements),
    ),
    ("endpoint known", Shown::Seen(Seen::Endpoint)),
    (
        "endpoint refused: table full",
        Shown::LocalParticipant(|it| it.endpoints_refused),
    ),
    (
        "match refused: table full",
        Shown::LocalParticipant(|it| it.matches_refused),
    ),
    // Messages.
    (
        "message malformed",
        Shown::LocalParticipant(|it| it.malformed_messages),
    ),
    (
        "submessage malformed",
        Shown::LocalParticipant(|it| it.malformed_submessages),
    ),
    (
        "submessage skipped",
        Shown::LocalParticipant(|it| it.skipped_submessages),
    ),
    (
        "submessage for others",
        Shown::LocalParticipant(|it| it.for_others),
    ),
    (
        "DATA unmatched",
        Shown::LocalParticipant(|it| it.unmatched_data),
    ),
    (
        "ACKNACK unmatched",
        Shown::LocalParticipant(|it| it.unmatched_acknacks),
    ),
    // Matching.
    ("reader matched", Shown::Seen(Seen::MatchedReader)),
    ("writer matched", Shown::Seen(Seen::MatchedWriter)),
    (
        "offered QoS incompatible",
        Shown::WriterReported(WriterStatus::OFFERED_INCOMPATIBLE_QOS),
    ),
    (
        "requested QoS incompatible",
        Shown::ReaderReported(ReaderStatus::REQUESTED_INCOMPATIBLE_QOS),
    ),
    (
        "reader silent",
        Shown::LocalParticipant(|it| it.readers_silent),
    ),
    // The reliable writer.
    ("sample sent", Shown::Writer(|it| it.sent)),
    ("sample unmatched", Shown::Writer(|it| it.unmatched)),
    ("sample pending", Shown::Writer(|it| it.pending)),
    (
        "sample pushed out unsent",
        Shown::Writer(|it| it.evicted_unsent),
    ),
    ("sample repaired", Shown::Writer(|it| it.repaired)),
    ("GAP sent", Shown::Writer(|it| it.gaps)),
    ("history sent", Shown::Writer(|it| it.history)),
    ("history full: replaced", Shown::Writer(|it| it.replaced)),
    ("history full: refused", Shown::Seen(Seen::Refused)),
    ("heartbeat sent", Shown::Writer(|it| it.heartbeats)),
    ("all acknowledged", Shown::Seen(Seen::Acknowledged)),
    // The reader.
    ("sample shown as a view", Shown::Seen(Seen::View)),
    ("sample available", Shown::Reader(|it| it.available)),
    ("sample delivered", Shown::Reader(|it| it.delivered)),
    (
        "sample waits for earlier ones",
        Shown::Reader(|it| it.waiting),
    ),
    ("sample had before", Shown::Reader(|it| it.duplicates)),
    ("sample lost", Shown::Reader(|it| it.lost)),
    ("sample skipped", Shown::Reader(|it| it.skipped)),
    ("sample deferred: no room", Shown::Reader(|it| it.deferred)),
    ("sample pushed out", Shown::Reader(|it| it.evicted)),
    ("sample rejected", Shown::Reader(|it| it.rejected)),
    ("instance disposed", Shown::Seen(Seen::Disposed)),
    ("instance without writers", Shown::Seen(Seen::NoWriters)),
    // Fragments.
    ("fragment sent", Shown::Writer(|it| it.fragments)),
    (
        "fragment repaired",
        Shown::Writer(|it| it.fragments_repaired),
    ),
    (
        "fragment unused",
        Shown::LocalParticipant(|it| it.fragments_unused),
    ),
    (
        "fragment without a place",
        Shown::LocalParticipant(|it| it.assemblies_refused),
    ),
    (
        "fragments dropped for others",
        Shown::LocalParticipant(|it| it.assemblies_dropped),
    ),
    ("fragments whole: kept", Shown::Seen(Seen::WholeSample)),
    ("fragments whole: a view", Shown::Seen(Seen::WholeView)),
    // Time, ownership, filters.
    (
        "expired at the writer, sent",
        Shown::Writer(|it| it.expired),
    ),
    (
        "expired at the writer, unsent",
        Shown::Writer(|it| it.expired_unsent),
    ),
    ("expired at the reader", Shown::Reader(|it| it.expired)),
    ("filtered by time", Shown::Reader(|it| it.time_filtered)),
    ("kept back by time", Shown::Reader(|it| it.held)),
    (
        "filtered by content",
        Shown::Reader(|it| it.content_filtered),
    ),
    (
        "filtered by content at the writer",
        Shown::Writer(|it| it.content_filtered),
    ),
    ("not of the owner", Shown::Reader(|it| it.not_owner)),
    (
        "offered deadline missed",
        Shown::WriterReported(WriterStatus::OFFERED_DEADLINE_MISSED),
    ),
    (
        "requested deadline missed",
        Shown::ReaderReported(ReaderStatus::REQUESTED_DEADLINE_MISSED),
    ),
    (
        "liveliness lost",
        Shown::WriterReported(WriterStatus::LIVELINESS_LOST),
    ),
    ("writer not alive", Shown::Seen(Seen::NotAlive)),
    ("writer alive again", Shown::Seen(Seen::AliveAgain)),
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
    note(|shown| matches!(shown, Shown::LocalParticipant(count) if count(counters) > 0));
}

pub(super) fn note_writer(ledger: &WriterLedger) {
    note(|shown| matches!(shown, Shown::Writer(count) if count(ledger) > 0));
}

pub(super) fn note_reader(ledger: &ReaderLedger) {
    note(|shown| matches!(shown, Shown::Reader(count) if count(ledger) > 0));
}

pub(super) fn note_writer_status(status: WriterStatus) {
    note(|shown| matches!(shown, Shown::WriterReported(reported) if status.contains(reported)));
}

pub(super) fn note_reader_status(status: ReaderStatus) {
    note(|shown| matches!(shown, Shown::ReaderReported(reported) if status.contains(reported)));
}

pub(super) fn note_seen(seen: Seen) {
    note(|shown| matches!(shown, Shown::Seen(state) if state == seen));
}

/// Participant states reached by the inputs of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// Number of reached states.
    pub count: usize,
    /// Number of all states.
    pub of: usize,
    /// Descriptions of the unreached states.
    pub unreached: Vec<&'static str>,
}

/// States reached so far.
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
