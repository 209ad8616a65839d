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

/// What the cable does to frames, both ways and discovery included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    None,
    TenPercent,
}

/// One combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) peer: Peer,
    pub(super) peer_role: Role,
    pub(super) reliability: Reliability,
    pub(super) loss: Loss,
}

/// How many values each axis has, in the order in which [`Cell::choose`] takes them.
pub(super) const AXES: [usize; 4] = [
    Peer::ALL.len(),
    Role::ALL.len(),
    Reliability::ALL.len(),
    Loss::ALL.len(),
];

impl Cell {
    /// The cell of a choice: an index into each axis.
    pub(super) fn choose([peer, peer_role, reliability, loss]: Choice<{ AXES.len() }>) -> Self {
        Self {
            peer: Peer::ALL[peer],
            peer_role: Role::ALL[peer_role],
            reliability: Reliability::ALL[reliability],
            loss: Loss::ALL[loss],
        }
    }

    /// What distinguishes the cell beside peer and role; `case` of the JSON.
    pub(super) fn case(self) -> &'static str {
        match (self.reliability, self.loss) {
            (Reliability::BestEffort, Loss::None) => "best-effort",
            (Reliability::BestEffort, Loss::TenPercent) => "best-effort-loss-10",
            (Reliability::Reliable, Loss::None) => "reliable",
            (Reliability::Reliable, Loss::TenPercent) => "reliable-loss-10",
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

impl Loss {
    pub(super) const ALL: [Self; 2] = [Self::None, Self::TenPercent];

    /// The share of frames lost, 0 to 1.
    pub(super) fn probability(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::TenPercent => 0.1,
        }
    }
}
