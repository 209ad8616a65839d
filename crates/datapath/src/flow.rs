//! Flows, and what protects their receivers.
//!
//! A *flow* is what arrives at one port (or one group and port) of this host. Each lane has the
//! flows of its level; a topic that is to have a budget of its own gets a flow of its own within
//! the lane: a port, which its reader announces.
//!
//! A *budget* is a deferrable server (Strosnider, Lehoczky, Sha 1995): `capacity` datagrams are
//! served at any time within each `period`, which is when it is filled up again, whatever is left.
//! What comes beyond that is dropped or demoted before it costs a buffer or a wake-up.

use std::num::NonZeroU32;
use std::time::Duration;

use isolane_wire::locator::Locator;

use crate::lane::Lane;

/// A deferrable server: so many datagrams in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Datagrams served in each period.
    pub capacity: NonZeroU32,
    /// When it is filled up again.
    pub period: Duration,
}

/// What becomes of datagrams beyond a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Over {
    /// They are dropped where they are counted: at the driver.
    #[default]
    Drop,
    /// They take the lowest lane there is, behind everything else.
    Demote,
}

/// What a flow's receiver is protected with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection {
    /// How much it takes.
    pub budget: Budget,
    /// What becomes of the rest.
    pub over: Over,
}

/// What all receivers of one interface are protected with together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceProtection {
    /// The budget of all registered flows, and how much of it only flows of the highest level in
    /// use may have.
    pub flows: Option<(Budget, u32)>,
    /// The budget of everything that is not ours: the rest of the host's traffic. Off unless asked
    /// for, since it drops what others sent.
    pub others: Option<Budget>,
}

/// A flow of its own within a lane, as [`Datapath::open_flow`](crate::Datapath::open_flow) gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowId(pub u8);

/// What a protection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protected {
    /// All flows of a lane together have none: each has its own server. This sets those of the
    /// lane's port and group.
    Lane(Lane),
    /// One flow of its own.
    Flow(FlowId),
}

/// Why a flow is not protected, and what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtectError {
    /// The datapath has nothing between the wire and its queues that could count.
    #[error(
        "the datapath {datapath} enforces no budgets: choose xdp, or leave the budget out. \
         Datagrams beyond it would be received"
    )]
    Unsupported {
        /// Its name.
        datapath: &'static str,
    },
    /// It enforces budgets where it has lanes, and can have none.
    #[error(
        "no budgets are enforced here: there are no lanes, whose reason the participant's notes say. \
         Put that right, or leave the budget out"
    )]
    NoLanes,
    /// No such flow, or an open lane that has none on a device.
    #[error(
        "there is no such flow: it was closed, or its level has no lane (the participant's notes say \
         why)"
    )]
    NoFlow,
    /// A period that cannot be kept.
    #[error("a budget's period of {period:?} cannot be kept: choose one from 100 us to 10 s")]
    Period {
        /// What was asked for.
        period: Duration,
    },
    /// More is reserved than there is.
    #[error("{reserved} datagrams are reserved of {capacity}: reserve less than the capacity")]
    Reserve {
        /// Datagrams reserved.
        reserved: u32,
        /// Datagrams of the budget.
        capacity: u32,
    },
}

/// What a datapath does at this moment, for people: made at leisure, it allocates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Each interface with a classifier.
    pub interfaces: Vec<InterfaceObservation>,
    /// Each flow.
    pub flows: Vec<FlowObservation>,
    /// Each ring.
    pub rings: Vec<RingObservation>,
}

/// An interface with lanes.
#[derive(Clone, Debug, PartialEq)]
pub struct InterfaceObservation {
    /// Its name.
    pub name: String,
    /// "native, copy", "native, zero copy", "generic": as read back from the kernel.
    pub mode: String,
    /// The program's tag, as the kernel computes it.
    pub program_tag: String,
    /// What was decided of frames of no flow, by reason: name and count.
    pub decisions: Vec<(&'static str, u64)>,
}

/// A flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowObservation {
    /// Its lane.
    pub lane: Lane,
    /// A flow of its own, or one of the lane's.
    pub flow: Option<FlowId>,
    /// Where it arrives.
    pub destination: Locator,
    /// What protects it.
    pub protection: Option<Protection>,
    /// Datagrams left of the budget in this period.
    pub left: Option<u32>,
    /// What was decided of its frames, by reason: name and count.
    pub decisions: Vec<(&'static str, u64)>,
}

/// A ring that this program shares with the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct RingObservation {
    /// "fill", "completion", "receive", "transmit".
    pub kind: &'static str,
    /// The device's queue.
    pub queue: u32,
    /// Whose; fill and completion rings are a queue's.
    pub lane: Option<Lane>,
    /// Entries it has.
    pub entries: u32,
    /// Entries in use now.
    pub used: u32,
    /// How often the kernel found it full (receive) or empty (fill), or an entry invalid.
    pub missed: u64,
}
