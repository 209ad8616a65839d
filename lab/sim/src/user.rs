//! The users of a node's writers and readers: what they do, and what they remember.

use std::{collections::VecDeque, time::Duration};

use isolane_engine::{
    ChangeKind, InstanceState, ReaderId, ReaderStatus, SampleInfo, WriterId, WriterStatus,
};
use isolane_wire::{guid::Guid, sequence::SequenceNumber, time::Instant};

use crate::{node::NodeId, sample::Sample};

/// When the user of a reader takes what is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// All, as soon as there is some.
    AtOnce,
    /// One, this long after the reader said there is some, or after the one before.
    OneEvery(Duration),
    /// When the test calls [`World::take`](crate::World::take).
    OnRequest,
}

/// What a user does with samples that were selected together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Nothing: as if they had not been looked at.
    Leave,
    /// Reads them: they stay.
    Read,
    /// Takes them.
    Take,
}

/// A change that a user has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// When.
    pub at: Instant,
    /// What the engine knew of it.
    pub info: SampleInfo,
    /// Its payload; empty where an instance ended because its writers are gone.
    pub payload: Vec<u8>,
}

impl Received {
    /// The sample; `None` if there is no payload, or not one of ours.
    #[must_use]
    pub fn sample(&self) -> Option<Sample> {
        Sample::parse(self.info.kind, &self.payload)
    }

    /// Whether it was sent by a writer, and not made by the engine because writers are gone.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        self.info.sequence != SequenceNumber::UNKNOWN
    }

    /// Kind, and the state of the instance.
    #[must_use]
    pub fn states(&self) -> (ChangeKind, InstanceState) {
        (self.info.kind, self.info.instance_state)
    }
}

/// A change that a writer has accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// When.
    pub at: Instant,
    /// The number it got.
    pub sequence: SequenceNumber,
    /// What it was.
    pub sample: Sample,
}

/// A match that an endpoint was told of, or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchChange {
    /// When.
    pub at: Instant,
    /// Who is at the other end.
    pub peer: Guid,
    /// It begins; else it ends.
    pub begins: bool,
}

/// The matches of an endpoint, as far as it was told.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    pub(crate) now: Vec<Guid>,
    pub(crate) changes: Vec<MatchChange>,
}

impl Matches {
    /// Takes note of who is matched now.
    pub(crate) fn note(&mut self, at: Instant, now: Vec<Guid>) {
        let before = std::mem::replace(&mut self.now, now);
        let change = |begins| move |peer| MatchChange { at, peer, begins };
        let ended = before.iter().filter(|old| !self.now.contains(old));
        self.changes.extend(ended.copied().map(change(false)));
        let begun = self.now.iter().filter(|new| !before.contains(new));
        self.changes.extend(begun.copied().map(change(true)));
    }

    /// Whether any has ever ended.
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
    /// To be written as soon as there is room.
    pub(crate) backlog: VecDeque<Sample>,
    /// To be put into the backlog one by one.
    pub(crate) planned: VecDeque<Sample>,
    pub(crate) written: Vec<Written>,
    /// Writes that found no room, and were tried again.
    pub(crate) refused: u64,
    /// All that was ever reported.
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
    /// The user will look in later.
    pub(crate) visit_filed: bool,
    pub(crate) received: Vec<Received>,
    /// All that was ever reported.
    pub(crate) statuses: ReaderStatus,
    pub(crate) matches: Matches,
}
