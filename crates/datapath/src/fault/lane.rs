//! A lane with faults: its generators, what it keeps back, and its own half of the accounts.

use super::bell::Bell;
use super::plan::FaultPlan;
use crate::burst::ReceivedFrame;
use crate::chance::Generator;
use crate::lane::Lane;
use crate::ledger::{Counts, Injected, LaneLedger, ReceiveLedger, TransmitLedger};
use crate::limits::MAX_HELD;

/// A datagram that is kept back.
pub(super) struct Held {
    /// The call from which on it may be handed on.
    pub(super) due: u64,
    pub(super) received: ReceivedFrame,
}

pub(super) struct FaultyLane {
    pub(super) lane: Lane,
    /// Of what is received, and of what is sent: neither direction changes the other's fates.
    pub(super) receiving: Generator,
    pub(super) sending: Generator,
    /// Calls that received from the lane.
    pub(super) calls: u64,
    /// Kept back, in the order of arrival.
    pub(super) held: heapless::Vec<Held, MAX_HELD>,
    /// Readable while something is kept back, where descriptors wake the reader.
    pub(super) bell: Option<Bell>,
    /// What was handed on, and what was dropped here. Counted by itself, not derived from the
    /// ledger of the datapath within, so that balancing finds mistakes of either.
    pub(super) received: ReceiveLedger,
    /// What was refused here.
    pub(super) refused: TransmitLedger,
    pub(super) injected: Injected,
}

impl FaultyLane {
    pub(super) fn new(plan: &FaultPlan, lane: Lane, bell: Option<Bell>) -> FaultyLane {
        let stream = 2 * lane.index() as u64;
        FaultyLane {
            lane,
            receiving: Generator::new(plan.seed, stream),
            sending: Generator::new(plan.seed, stream + 1),
            calls: 0,
            held: heapless::Vec::new(),
            bell,
            received: ReceiveLedger::default(),
            refused: TransmitLedger::default(),
            injected: Injected::default(),
        }
    }

    /// Something is kept back.
    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Turns the lane's ledger of the datapath within into that of the lane with faults.
    pub(super) fn add_to(&self, ledger: &mut LaneLedger) {
        // What the datapath within handed over has arrived there; its fate was decided here.
        ledger.receive.received = 0;
        ledger.receive.received_bytes = 0;
        let arrived = ledger.receive.arrived + self.injected.duplicated;
        *ledger += &LaneLedger {
            receive: self.received,
            transmit: self.refused,
            injected: self.injected,
            counts: Counts::default(),
        };
        ledger.receive.arrived = arrived;
        ledger.receive.pending += self.held.len() as u64;
    }
}
