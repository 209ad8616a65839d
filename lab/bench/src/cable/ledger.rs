//! The ledger of one direction: nothing is lost silently.

use serde::{Deserialize, Serialize};

/// What happened to the frames that entered a direction. `arrived` is all of them; each is in
/// exactly one of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Frames read from the sending host.
    pub arrived: u64,
    /// Frames handed to the receiving host.
    pub sent: u64,
    /// Dropped because the queue was full.
    pub dropped_queue: u64,
    /// Dropped by the seeded loss.
    pub dropped_loss: u64,
    /// Dropped because longer than the link's MTU or several segments in one.
    pub dropped_oversize: u64,
    /// Refused by the kernel when they were to be handed over.
    pub refused: u64,
    /// Waiting, on the wire or travelling when counted.
    pub queued: u64,
}

impl Ledger {
    /// Arrived minus everything accounted for: 0, or the ledger does not balance.
    pub fn imbalance(&self) -> i64 {
        let accounted = self.sent
            + self.dropped_queue
            + self.dropped_loss
            + self.dropped_oversize
            + self.refused
            + self.queued;
        self.arrived as i64 - accounted as i64
    }
}
