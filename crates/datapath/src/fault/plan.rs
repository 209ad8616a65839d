//! What is to go wrong, and how often.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::lane::Lane;

/// What a [`Fault`](super::Fault) datapath does. Frequencies are out of a million: of received
/// datagrams, of messages sent, of calls, of frames taken.
///
/// ```
/// use isolane_datapath::FaultPlan;
///
/// // Every tenth datagram that arrives is lost, every hundredth comes after later ones.
/// let plan = FaultPlan {
///     loss_per_million: 100_000,
///     delay_per_million: 10_000,
///     ..FaultPlan::new(7)
/// };
/// assert_eq!(plan.delay_bursts, 4);
/// ```
#[derive(Clone, Debug)]
pub struct FaultPlan {
    /// Starts the generators of all lanes.
    pub seed: u64,
    /// The lanes it is about, as a set of [`Lane::bit`]s. All by default. An interface that is
    /// gone is gone for all lanes.
    pub lanes: u16,
    /// Received datagrams that are lost
    /// ([`ReceiveDrop::FaultLoss`](crate::ReceiveDrop::FaultLoss)).
    pub loss_per_million: u32,
    /// Received datagrams of which a copy comes later.
    pub duplication_per_million: u32,
    /// Received datagrams that are kept back.
    pub delay_per_million: u32,
    /// How many later calls that receive from the lane a datagram is kept back at most; copies,
    /// too. As many bursts may pass by it.
    pub delay_bursts: u32,
    /// Received datagrams of which some bits are flipped, as memory or a network that does not
    /// check would.
    pub corruption_per_million: u32,
    /// Received datagrams that lose their end, all but at least the first byte.
    pub shortening_per_million: u32,
    /// Calls that receive nothing, whatever waits.
    pub starvation_per_million: u32,
    /// Messages that are refused together with the rest of their burst
    /// ([`Refusal::FaultWouldBlock`](crate::Refusal::FaultWouldBlock)).
    pub would_block_per_million: u32,
    /// Messages that are refused alone
    /// ([`Refusal::FaultUnreachable`](crate::Refusal::FaultUnreachable)).
    pub unreachable_per_million: u32,
    /// Transmit frames that are wanted and not given out.
    pub exhaustion_per_million: u32,
    /// The interface's plug: while it is pulled, every message is refused
    /// ([`Refusal::FaultInterfaceGone`](crate::Refusal::FaultInterfaceGone)), and what arrives or
    /// is kept back is dropped
    /// ([`ReceiveDrop::FaultInterfaceGone`](crate::ReceiveDrop::FaultInterfaceGone)).
    pub plug: Plug,
}

impl FaultPlan {
    /// An empty plan: nothing goes wrong, while the plug is in.
    #[must_use]
    pub fn new(seed: u64) -> FaultPlan {
        FaultPlan {
            seed,
            lanes: Lane::ALL.into_iter().fold(0, |set, lane| set | lane.bit()),
            loss_per_million: 0,
            duplication_per_million: 0,
            delay_per_million: 0,
            delay_bursts: 4,
            corruption_per_million: 0,
            shortening_per_million: 0,
            starvation_per_million: 0,
            would_block_per_million: 0,
            unreachable_per_million: 0,
            exhaustion_per_million: 0,
            plug: Plug::new(),
        }
    }

    pub(super) fn covers(&self, lane: Lane) -> bool {
        self.lanes & lane.bit() != 0
    }

    /// Whether datagrams of the lane may have to wait here.
    pub(super) fn keeps_back(&self, lane: Lane) -> bool {
        let delays = self.delay_per_million > 0 && self.delay_bursts > 0;
        self.covers(lane) && (delays || self.duplication_per_million > 0)
    }
}

/// The plug of an interface, which a test can pull and put back while the datapath is in use, from
/// any thread. Clones are the same plug.
#[derive(Clone, Debug, Default)]
pub struct Plug {
    is_pulled: Arc<AtomicBool>,
}

impl Plug {
    /// A plug that is in.
    #[must_use]
    pub fn new() -> Plug {
        Plug::default()
    }

    /// The interface is gone from now on.
    pub fn pull(&self) {
        self.is_pulled.store(true, Ordering::Relaxed);
    }

    /// The interface is back.
    pub fn put_back(&self) {
        self.is_pulled.store(false, Ordering::Relaxed);
    }

    /// Whether the interface is gone.
    #[must_use]
    pub fn is_pulled(&self) -> bool {
        // A plain flag: nothing else is read by its order.
        self.is_pulled.load(Ordering::Relaxed)
    }
}
