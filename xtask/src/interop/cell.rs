//! What a cell is: one value chosen from every axis.
//!
//! A new axis is a new field of [`Cell`], an entry in [`AXES`] and a line in [`Cell::choose`]; its
//! effect is an argument in `side.rs` or something the run does to the network. Which combinations
//! run is decided by `cover.rs`, which knows the axes by their lengths only.

use super::cover::Choice;
use super::peer::Peer;

/// What the other implementation does; isolane does the opposite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Publisher,
    Subscriber,
}

/// RELIABILITY, the same on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reliability {
    BestEffort,
    Reliable,
}

/// One combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) peer: Peer,
    pub(super) peer_role: Role,
    pub(super) reliability: Reliability,
}

/// How many values each axis has, in the order in which [`Cell::choose`] takes them.
pub(super) const AXES: [usize; 3] = [Peer::ALL.len(), Role::ALL.len(), Reliability::ALL.len()];

impl Cell {
    /// The cell of a choice: an index into each axis.
    pub(super) fn choose([peer, peer_role, reliability]: Choice<{ AXES.len() }>) -> Self {
        Self {
            peer: Peer::ALL[peer],
            peer_role: Role::ALL[peer_role],
            reliability: Reliability::ALL[reliability],
        }
    }

    /// What distinguishes the cell beside peer and role; `case` of the JSON.
    pub(super) fn case(self) -> &'static str {
        match self.reliability {
            Reliability::BestEffort => "best-effort",
            Reliability::Reliable => "reliable",
        }
    }

    /// A name for people and for the folder with the cell's output.
    pub(super) fn name(self) -> String {
        format!(
            "{}-{}-{}",
            self.peer.name(),
            self.peer_role.name(),
            self.case()
        )
    }

    /// How many samples are written. The slowest peer's discovery takes about a second after data
    /// starts to flow: best effort writes on well beyond it, reliable has them repaired.
    pub(super) fn samples(self) -> u32 {
        match self.reliability {
            Reliability::BestEffort => 200,
            Reliability::Reliable => 100,
        }
    }
}

impl Role {
    pub(super) const ALL: [Self; 2] = [Self::Publisher, Self::Subscriber];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Publisher => "publisher",
            Self::Subscriber => "subscriber",
        }
    }
}

impl Reliability {
    pub(super) const ALL: [Self; 2] = [Self::BestEffort, Self::Reliable];
}
