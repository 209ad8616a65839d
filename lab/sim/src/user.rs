//! Users of a node's writers and readers, and their records.

use std::{collections::VecDeque, time::Duration};

use isolane_rtps::{
    ChangeKind, InstanceState, ReaderId, ReaderStatus, SampleInfo, WriterId, WriterStatus,
};
use isolane_wire::{guid::Guid, sequence::SequenceNumber, time::Instant};

use crate::{node::NodeId, sample::Sample};

/// Behaviour of a reader's user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// Takes all samples as soon as they are available.
    AtOnce,
    /// Takes one sample per period: after data becomes available, or after the previous sample.
    OneEvery(Duration),
    /// Takes samples only when the test calls [`World::take`](crate::World::take).
    OnRequest,
}

/// Treatment of selected samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Leave them unread.
    Leave,
    /// Read them; they stay in the cache.
    Read,
    /// Take them.
    Take,
}

/// Change taken by a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Time.
    pub at: Instant,
    /// Sample info.
    pub info: SampleInfo,
    /// Payload; empty if an instance ended because its writers are gone.
    pub payload: Vec<u8>,
}

impl Received {
    /// Sample; `None` without payload, or if it is not of this type.
    #[must_use]
    pub fn sample(&self) -> Option<Sample> {
        Sample::parse(self.info.kind, &self.payload)
    }

    /// Returns true if a writer sent the change; false if the participant made it because writers are gone.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        self.info.sequence != SequenceNumber::UNKNOWN
    }

    /// Kind of change and instance state.
    #[must_use]
    pub fn states(&self) -> (ChangeKind, InstanceState) {
        (self.info.kind, self.info.instance_state)
    }
}

/// Change accepted by a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Time.
    pub at: Instant,
    /// Sequence number.
    pub sequence: SequenceNumber,
    /// Sample.
    pub sample: Sample,
}

/// Match reported to an endpoint, or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchChange {
    /// Time.
    pub at: Instant,
    /// GUID of the remote endpoint.
    pub peer: Guid,
    /// True if the match begins, false if it ends.
    pub begins: bool,
}

/// Matches of an endpoint, as reported.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    pub(crate) now: Vec<Guid>,
    pub(crate) changes: Vec<MatchChange>,
}

impl Matches {
    /// Records the current matches.
    pub(crate) fn note(&mut self, at: Instant, now: Vec<Guid>) {
        let before = std::mem::replace(&mut self.now, now);
        let change = |begins| move |peer| MatchChange { at, peer, begins };
        let ended = before.iter().filter(|old| !self.now.contains(old));
        self.changes.extend(ended.copied().map(change(false)));
        let begun = self.now.iter().filter(|new| !before.contains(new));
        self.changes.extend(begun.copied().map(change(true)));
    }

    /// Returns true if any match has ended.
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
    /// Samples to add to the backlog one by one.
    pub(crate) planned: VecDeque<Sample>,
    pub(crate) written: Vec<Written>,
    /// Number of writes that found no room and were retried.
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
    /// True if a visit is in the queue.
    pub(crate) visit_filed: bool,
    pub(crate) received: Vec<Received>,
    /// All statuses ever reported.
    pub(crate) statuses: ReaderStatus,
    pub(crate) matches: Matches,
}
