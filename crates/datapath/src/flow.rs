//! Flows and their rate limits.
//!
//! A *flow* is the traffic to one port (or one group and port) of this host. Each lane has flows for its own port and
//! group. A topic with its own budget has a separate flow in the lane: a port that the topic's reader announces.
//!
//! A *budget* is a deferrable server (Strosnider, Lehoczky, Sha 1995): it serves up to `capacity` datagrams in each
//! `period`, at any time within the period. The next period begins with the full capacity. Excess datagrams are
//! dropped or demoted before they cost a buffer or a wake-up.

use std::num::NonZeroU32;
use std::time::Duration;

use isolane_wire::locator::Locator;

use crate::lane::Lane;

/// Deferrable server of a number of datagrams per period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Datagrams served in each period.
    pub capacity: NonZeroU32,
    /// Replenishment period.
    pub period: Duration,
}

/// Treatment of datagrams beyond a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverBudget {
    /// Drop excess datagrams at the driver, and count them there.
    #[default]
    Drop,
    /// Demote excess datagrams to the lowest lane.
    Demote,
}

/// Rate limit of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Receive budget.
    pub budget: Budget,
    /// Treatment of excess datagrams.
    pub over: OverBudget,
}

/// Rate limits of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceRateLimit {
    /// Budget of all registered flows together, and the number of its datagrams reserved for flows of the highest
    /// level in use.
    pub topics: Option<(Budget, u32)>,
    /// Budget of all other traffic of the host. Optional, because this budget drops datagrams of other programs.
    pub foreign: Option<Budget>,
}

/// Flow within a lane, opened by [`Datapath::open_flow`](crate::Datapath::open_flow).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowId(pub u8);

/// Target of a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateLimitTarget {
    /// Flows of the lane's port and group. Each flow has its own budget; the lane as a whole has none.
    Lane(Lane),
    /// Single flow.
    Flow(FlowId),
}

/// Error of setting a rate limit, with a remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateLimitError {
    /// The datapath cannot count datagrams before they enter its queues.
    #[error(
        "the datapath {datapath} enforces no budgets: choose xdp, or leave the budget out. \
         Datagrams beyond it would be received"
    )]
    Unsupported {
        /// Name of the datapath.
        datapath: &'static str,
    },
    /// The datapath enforces budgets in lanes, but could open none.
    #[error(
        "no budgets are enforced here: there are no lanes, whose reason the participant's notes say. \
         Put that right, or leave the budget out"
    )]
    NoLanes,
    /// The flow does not exist, or its lane is open on kernel sockets only.
    #[error(
        "there is no such flow: it was closed, or its level has no lane (the participant's notes say \
         why)"
    )]
    NoFlow,
    /// The period is out of bounds.
    #[error("a budget's period of {period:?} cannot be kept: choose one from 100 us to 10 s")]
    Period {
        /// Requested period.
        period: Duration,
    },
    /// The reserve exceeds the capacity.
    #[error("{reserved} datagrams are reserved of {capacity}: reserve less than the capacity")]
    Reserve {
        /// Reserved datagrams.
        reserved: u32,
        /// Capacity of the budget in datagrams.
        capacity: u32,
    },
}

/// State of a datapath, for reports. Creating it allocates memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Interfaces with a classifier.
    pub interfaces: Vec<InterfaceObservation>,
    /// Flows.
    pub flows: Vec<FlowObservation>,
    /// Rings.
    pub rings: Vec<RingObservation>,
}

/// Interface with lanes.
#[derive(Clone, Debug, PartialEq)]
pub struct InterfaceObservation {
    /// Interface name.
    pub name: String,
    /// "native, copy", "native, zero copy" or "generic", as the kernel reports.
    pub mode: String,
    /// BPF program tag computed by the kernel.
    pub program_tag: String,
    /// Classifier decisions on frames outside of flows: reason and count.
    pub decisions: Vec<(&'static str, u64)>,
}

/// Flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowObservation {
    /// Lane of the flow.
    pub lane: Lane,
    /// Id of a separate flow; `None` for the lane's own flows.
    pub flow: Option<FlowId>,
    /// Destination locator.
    pub destination: Locator,
    /// Rate limit, if any.
    pub rate_limit: Option<RateLimit>,
    /// Datagrams of the budget that are left in this period.
    pub left: Option<u32>,
    /// Classifier decisions on the flow's frames: reason and count.
    pub decisions: Vec<(&'static str, u64)>,
}

/// Ring shared with the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct RingObservation {
    /// "fill", "completion", "receive", "transmit".
    pub kind: &'static str,
    /// Device queue.
    pub queue: u32,
    /// Lane of a receive or transmit ring; fill and completion rings belong to a queue.
    pub lane: Option<Lane>,
    /// Size in entries.
    pub entries: u32,
    /// Entries in use.
    pub used: u32,
    /// Number of times the kernel found the ring full (receive) or empty (fill), or an entry invalid.
    pub missed: u64,
}
