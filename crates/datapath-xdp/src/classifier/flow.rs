//! What the classifier is told to look for.

use isolane_datapath::flow::Protection;
use isolane_wire::level::Level;

use crate::limits::{MAX_FLOWS, MAX_FLOWS_PER_PORT};

/// A flow's place in the classifier's table, below [`MAX_FLOWS`]. Whoever registers flows allots
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowSlot(pub u8);

impl FlowSlot {
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a flow's frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// To the level's lane on the queue they arrive on.
    Lane(Level),
    /// To the kernel, always: what is ours and has no lane, such as discovery. Such frames are known,
    /// so they are counted as a flow and not charged to the budget of others.
    Kernel,
}

/// A flow, and what protects its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The address it is sent to: this host's, or a group.
    pub destination: [u8; 4],
    /// The UDP port it is sent to.
    pub port: u16,
    /// Who sends it; `None` is anybody. Of several flows with one destination, those with a source
    /// are looked at first.
    pub source: Option<[u8; 4]>,
    /// Where its frames go.
    pub way: Way,
    /// Whether it may have the reserve of the interface's budget. A frame that is demoted may not.
    pub is_critical: bool,
    /// Its budget; `None` is without bound.
    pub protection: Option<Protection>,
}

/// Why a flow cannot be registered, and what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// The table ends before that slot.
    #[error(
        "the classifier has no slot {slot} for a flow, only {MAX_FLOWS}: give fewer topics a flow of \
         their own"
    )]
    NoSlot {
        /// The slot asked for.
        slot: u8,
    },
    /// The port's chain is as long as it may be.
    #[error(
        "port {port} has {MAX_FLOWS_PER_PORT} flows already, as many as are searched for a frame: use \
         another port for some of them"
    )]
    PortFull {
        /// The port.
        port: u16,
    },
    /// Port 0 is nobody's.
    #[error("a flow needs a port, and 0 is none: register it after its socket is bound")]
    NoPort,
    /// Its budget cannot be kept.
    #[error(transparent)]
    Protection(#[from] isolane_datapath::flow::ProtectError),
}
