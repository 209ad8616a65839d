//! Users of a node's writers and readers, and their records.

use std::{collections::VecDeque, time::Duration};

use isolane_engine::{
    ChangeKind, InstanceState, ReaderId, ReaderStatus, SampleInfo, WriterId, WriterStatus,
};
use isolane_wire::{guid::Guid, sequence::SequenceNumber, time::Instant};

use crate::{node::NodeId, sample::Sample};

/// When the user of a reader takes available samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// Takes all samples at once.
    AtOnce,
    /// Takes one sample at a time, this long after the notification or the one before.
    OneEvery(Duration),
    /// Takes samples when the test calls [`World::take`](crate::World::take).
    OnRequest,
}

/// What a user does with selected samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Discards them: they stay unread.
    Leave,
    /// Marks them as read.
    Read,
    /// Takes them.
    Take,
}

/// Change that a user has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Time.
    pub at: Instant,
    /// Metadata from the engine.
    pub info: SampleInfo,
    /// Payload; empty if the engine ended an instance because its writers disappeared.
    pub payload: Vec<u8>,
}

impl Received {
    /// Returns the sample; `None` without a payload, or if it is not a sample.
    #[must_use]
    pub fn sample(&self) -> Option<Sample> {
        Sample::parse(self.info.kind, &self.payload)
    }

    /// Returns whether a writer sent it. Otherwise the engine made it, because writers disappeared.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        self.info.sequence != SequenceNumber::UNKNOWN
    }

    /// Returns the kind of change and the instance state.
    #[must_use]
    pub fn states(&self) -> (ChangeKind, InstanceState) {
        (self.info.kind, self.info.instance_state)
    }
}

/// Change that a writer has accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Time.
    pub at: Instant,
    /// Sequence number.
    pub sequence: SequenceNumber,
    /// Written sample.
    pub sample: Sample,
}

/// Match or unmatch reported to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchChange {
    /// Time.
    pub at: Instant,
    /// GUID of the remote endpoint.
    pub peer: Guid,
    /// True for a match, false for an unmatch.
    pub begins: bool,
}

/// Matches of an endpoint, as reported.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    pub(crate) now: Vec<Guid>,
    pub(crate) changes: Vec<MatchChange>,
}

impl Matches {
    /// Records the differences from the matches reported before.
    pub(crate) fn note(&mut self, at: Instant, now: Vec<Guid>) {
        let before = std::mem::replace(&mut self.now, now);
        let change = |begins| move |peer| MatchChange { at, peer, begins };
        let ended = before.iter().filter(|old| !self.now.contains(old));
        self.changes.extend(ended.copied().map(change(false)));
        let begun = self.now.iter().filter(|new| !before.contains(new));
        self.changes.extend(begun.copied().map(change(true)));
    }

    /// Returns whether any match has ended.
    pub(crate) fn has_lost_any(&self) -> bool {
        self.changes.iter().any(|change| !change.begins)
    }
}

#[derive(Debug)]
pub(crate) struct WriterRecord {
    pub(crate) node: NodeId,
    pub(crate) incarnation: u32,
    pub(crate) id: WriterId,
    pub(crate) guid: Guid,
    pub(crate) is_keyed: bool,
    pub(crate) is_deleted: bool,
    /// Samples to write as soon as there is room.
    pub(crate) backlog: VecDeque<Sample>,
    /// Samples to move into the backlog one by one.
    pub(crate) planned: VecDeque<Sample>,
    pub(crate) written: Vec<Written>,
    /// Writes that found no room and were retried.
    pub(crate) refused: u64,
    /// All statuses ever reported.
    pub(crate) statuses: WriterStatus,
    pub(crate) matches: Matches,
}

#[derive(Debug)]
pub(crate) struct ReaderRecord {
    pub(crate) node: NodeId,
    pub(crate) incarnation: u32,
    pub(crate) id: ReaderId,
    pub(crate) guid: Guid,
    pub(crate) is_deleted: bool,
    pub(crate) take: Take,
    /// True if a visit of the user is in the world's queue.
    pub(crate) visit_filed: bool,
    pub(crate) received: Vec<Received>,
    /// All statuses ever reported.
    pub(crate) statuses: ReaderStatus,
    pub(crate) matches: Matches,
}
