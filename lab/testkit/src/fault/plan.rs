//! Fault plan: kinds of faults and their frequencies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use isolane_datapath::Lane;

/// Faults that a [`Fault`](super::Fault) datapath injects. Frequencies are out of a million: of
/// received datagrams, of messages sent, or of calls.
///
/// ```
/// use isolane_testkit::FaultPlan;
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
    /// Seed of the generators of all lanes.
    pub seed: u64,
    /// Set of lanes ([`Lane::bit`]) with faults; all by default. The [`Plug`] concerns all lanes.
    pub lanes: u16,
    /// Received datagrams that are lost
    /// ([`ReceiveDrop::FAULT_LOSS`](isolane_datapath::ReceiveDrop::FAULT_LOSS)).
    pub loss_per_million: u32,
    /// Received datagrams of which a copy comes later.
    pub duplication_per_million: u32,
    /// Received datagrams that are delayed.
    pub delay_per_million: u32,
    /// Largest number of later receive calls of the lane that a delayed datagram or a copy waits for. That many bursts
    /// may overtake the datagram.
    pub delay_bursts: u32,
    /// Received datagrams with flipped bits.
    pub corruption_per_million: u32,
    /// Received datagrams that are cut at the end. At least the first byte stays.
    pub shortening_per_million: u32,
    /// Calls that receive nothing although datagrams may wait.
    pub starvation_per_million: u32,
    /// Messages that are refused together with the rest of their burst
    /// ([`Refusal::FAULT_WOULD_BLOCK`](isolane_datapath::Refusal::FAULT_WOULD_BLOCK)).
    pub would_block_per_million: u32,
    /// Messages that are refused alone
    /// ([`Refusal::FAULT_UNREACHABLE`](isolane_datapath::Refusal::FAULT_UNREACHABLE)).
    pub unreachable_per_million: u32,
    /// Send calls after which all free transmit frames of the lane are held. They return with the next call that sends
    /// or recycles after a frame was requested ([`Pool::exhausted`](isolane_datapath::Pool::exhausted) has grown),
    /// otherwise with the [`HELD_RECYCLES`](super::HELD_RECYCLES)-th `recycle`.
    pub exhaustion_per_million: u32,
    /// Plug of the interface: while it is pulled, every message is refused
    /// ([`Refusal::FAULT_INTERFACE_GONE`](isolane_datapath::Refusal::FAULT_INTERFACE_GONE)), and
    /// arriving and delayed datagrams are dropped
    /// ([`ReceiveDrop::FAULT_INTERFACE_GONE`](isolane_datapath::ReceiveDrop::FAULT_INTERFACE_GONE)).
    pub plug: Plug,
}

impl FaultPlan {
    /// Returns an empty plan: no faults while the plug is in.
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

    /// Returns whether datagrams of the lane can be delayed or copied.
    pub(super) fn keeps_back(&self, lane: Lane) -> bool {
        let delays = self.delay_per_million > 0 && self.delay_bursts > 0;
        self.covers(lane) && (delays || self.duplication_per_million > 0)
    }
}

/// Plug of an interface. Any thread can pull the plug and put it back while the datapath is in use. Clones are the same
/// plug.
#[derive(Clone, Debug, Default)]
pub struct Plug {
    is_pulled: Arc<AtomicBool>,
}

impl Plug {
    /// Returns a plug that is in.
    #[must_use]
    pub fn new() -> Plug {
        Plug::default()
    }

    /// Takes the interface away.
    pub fn pull(&self) {
        self.is_pulled.store(true, Ordering::Relaxed);
    }

    /// Brings the interface back.
    pub fn put_back(&self) {
        self.is_pulled.store(false, Ordering::Relaxed);
    }

    /// Returns whether the interface is gone.
    #[must_use]
    pub fn is_pulled(&self) -> bool {
        // Relaxed: no other memory depends on the flag.
        self.is_pulled.load(Ordering::Relaxed)
    }
}
