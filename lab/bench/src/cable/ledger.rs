//! Frame ledger of one direction: every frame is accounted for.

use serde::{Deserialize, Serialize};

/// Frame counts of one direction. `arrived` counts all frames; each is in exactly one of the other counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Frames read from the sending host.
    pub arrived: u64,
    /// Frames handed to the receiving host.
    pub sent: u64,
    /// Frames dropped because the queue was full.
    pub dropped_queue: u64,
    /// Frames dropped by the seeded loss.
    pub dropped_loss: u64,
    /// Frames dropped because they exceed the link's MTU or hold several segments (segmentation offload).
    pub dropped_oversize: u64,
    /// Frames the kernel refused on delivery.
    pub refused: u64,
    /// Frames queued, on the wire or in the delay line when counted.
    pub queued: u64,
}

impl Ledger {
    /// `arrived` minus all accounted frames; 0 when the ledger balances.
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
