//! A cell: one value from every axis.
//!
//! A new axis is an enumeration with [`Axis`], a field of [`Cell`], an entry in [`AXES`] and a line in [`Cell::choose`]
//! and [`Cell::words`]. The program's argument for it goes in `side.rs`, an action of the run in `run.rs`, a property
//! of the network in `network.rs`, and the pass criterion in `verdict.rs`. `covering_array.rs` chooses the combinations
//! from the axes' lengths alone.

use std::fmt;

use strum::{IntoStaticStr, VariantArray};

use super::covering_array::Choice;
use super::report::Labels;
use super::side::Peer;

/// An axis of the test matrix.
pub(super) trait Axis: Copy + PartialEq + Into<&'static str> + VariantArray {
    /// All values, the plainest first.
    const ALL: &'static [Self] = Self::VARIANTS;

    /// The value's word in a cell's name.
    fn word(self) -> &'static str {
        self.into()
    }
}

impl<T: Copy + PartialEq + Into<&'static str> + VariantArray> Axis for T {}

/// Role of the other implementation; isolane has the opposite one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Role {
    Publisher,
    Subscriber,
}

/// isolane's datapath.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Datapath {
    /// Kernel sockets.
    Udp,
    /// AF_XDP lanes, where the interface has one.
    Xdp,
}

/// RELIABILITY, the same on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Reliability {
    BestEffort,
    Reliable,
}

/// DURABILITY, the same on both sides. A VOLATILE publisher waits for a subscriber before it writes. A TRANSIENT_LOCAL
/// one writes at once, so a subscriber that starts later, or is restarted, is a late joiner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Durability {
    Volatile,
    TransientLocal,
}

/// The publisher's last operation on the instance, well before it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum End {
    /// Nothing: the instance stays alive until the publisher leaves.
    #[strum(serialize = "no-end")]
    None,
    Dispose,
    Unregister,
}

/// Side that starts first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum StartOrder {
    #[strum(serialize = "publisher-first")]
    Publisher,
    #[strum(serialize = "subscriber-first")]
    Subscriber,
}

/// Fate of the peer once samples flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Life {
    /// The peer runs to the end.
    #[strum(serialize = "not-killed")]
    Uninterrupted,
    /// The peer is killed (SIGKILL) and restarted at once; isolane gets no notice.
    Restarted,
}

/// Frame loss of the cable, in both directions and including discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Loss {
    #[strum(serialize = "loss-0")]
    None,
    #[strum(serialize = "loss-1")]
    OnePercent,
    #[strum(serialize = "loss-10")]
    TenPercent,
}

/// Value of the next axis, from the indices into the axes.
fn next<T: Axis>(indices: &mut impl Iterator<Item = usize>) -> T {
    T::ALL[indices.next().expect("each axis has an index")]
}

/// One combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) peer: Peer,
    pub(super) peer_role: Role,
    pub(super) datapath: Datapath,
    pub(super) reliability: Reliability,
    pub(super) durability: Durability,
    pub(super) end: End,
    pub(super) start_order: StartOrder,
    pub(super) life: Life,
    pub(super) loss: Loss,
}

/// Number of values of each axis, in the order of [`Cell::choose`].
pub(super) const AXES: [usize; 9] = [
    Peer::ALL.len(),
    Role::ALL.len(),
    Datapath::ALL.len(),
    Reliability::ALL.len(),
    Durability::ALL.len(),
    End::ALL.len(),
    StartOrder::ALL.len(),
    Life::ALL.len(),
    Loss::ALL.len(),
];

impl Cell {
    /// Returns the cell with these indices, one for each axis.
    pub(super) fn choose(choice: Choice<{ AXES.len() }>) -> Self {
        let mut indices = choice.into_iter();
        Self {
            peer: next(&mut indices),
            peer_role: next(&mut indices),
            datapath: next(&mut indices),
            reliability: next(&mut indices),
            durability: next(&mut indices),
            end: next(&mut indices),
            start_order: next(&mut indices),
            life: next(&mut indices),
            loss: next(&mut indices),
        }
    }

    /// The values' words, in the order of [`AXES`].
    pub(super) fn words(self) -> [&'static str; AXES.len()] {
        [
            self.peer.word(),
            self.peer_role.word(),
            self.datapath.word(),
            self.reliability.word(),
            self.durability.word(),
            self.end.word(),
            self.start_order.word(),
            self.life.word(),
            self.loss.word(),
        ]
    }

    /// Labels of its result; `case` has the values of the further axes.
    pub(super) fn labels(self, peer: String) -> Labels {
        Labels {
            peer,
            peer_role: Some(self.peer_role.word()),
            datapath: Some(self.datapath.word()),
            policy: None,
            case: Some(self.words()[3..].join("-")),
        }
    }

    /// Returns true when this side is killed and restarted during the cell.
    pub(super) fn restarts(self, role: Role) -> bool {
        self.life == Life::Restarted && self.peer_role == role
    }

    /// Role of the side that starts first.
    pub(super) fn first_role(self) -> Role {
        match self.start_order {
            StartOrder::Publisher => Role::Publisher,
            StartOrder::Subscriber => Role::Subscriber,
        }
    }
}

/// Name of the result, of the output folder, and for `--only`.
impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.words().join("-"))
    }
}

impl Role {
    pub(super) fn other(self) -> Self {
        match self {
            Self::Publisher => Self::Subscriber,
            Self::Subscriber => Self::Publisher,
        }
    }
}

impl Loss {
    /// Share of frames lost, 0 to 1.
    pub(super) fn probability(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::OnePercent => 0.01,
            Self::TenPercent => 0.1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_peer_role_datapath_and_case() {
        let cell = Cell::choose([0, 1, 1, 1, 1, 2, 0, 1, 2]);
        assert_eq!(
            cell.to_string(),
            "cyclonedds-subscriber-xdp-reliable-transient-local-unregister-publisher-first-restarted-loss-10"
        );
        let case = cell.labels(String::new()).case.unwrap();
        assert!(case.starts_with("reliable"));
        assert!(cell.to_string().ends_with(&case));
    }
}
