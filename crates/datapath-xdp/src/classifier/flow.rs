//! Flows the classifier matches.

use isolane_datapath::flow::RateLimit;
use isolane_wire::level::Level;

use crate::limits::{MAX_FLOWS, MAX_FLOWS_PER_PORT};

/// Index of a flow in the classifier's table, below [`MAX_FLOWS`]. Assigned by the caller that
/// registers flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowSlot(pub u8);

impl FlowSlot {
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Destination of a flow's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// The level's lane on the queue of arrival.
    Lane(Level),
    /// The kernel, always, for own traffic without a lane such as discovery. It is counted as a
    /// flow and not charged to the budget of others.
    Kernel,
}

/// Flow with the rate limit of its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Destination address: this host's, or a multicast group.
    pub destination: [u8; 4],
    /// Destination UDP port.
    pub port: u16,
    /// Source address; `None` matches any. Flows with a source take precedence over those without.
    pub source: Option<[u8; 4]>,
    /// Destination of the frames.
    pub way: Way,
    /// Whether the flow may use the reserve of the interface's budget. A demoted frame may not.
    pub is_critical: bool,
    /// Budget; `None` is unlimited.
    pub rate_limit: Option<RateLimit>,
}

/// Error of registering a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// The slot is beyond the table.
    #[error(
        "the classifier has no slot {slot} for a flow, only {MAX_FLOWS}: give fewer topics a flow of \
         their own"
    )]
    NoSlot {
        /// Requested slot.
        slot: u8,
    },
    /// The port's chain has its maximum length.
    #[error(
        "port {port} has {MAX_FLOWS_PER_PORT} flows already, as many as are searched for a frame: use \
         another port for some of them"
    )]
    PortFull {
        /// Port of the flow.
        port: u16,
    },
    /// The port is 0.
    #[error("a flow needs a port, and 0 is none: register it after its socket is bound")]
    NoPort,
    /// The budget is invalid.
    #[error(transparent)]
    RateLimit(#[from] isolane_datapath::flow::RateLimitError),
}
