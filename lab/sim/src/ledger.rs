//! Ledger of the links: outcome of every datagram.

/// Datagrams, counted once for each destination node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkLedger {
    /// Sent by a node, or by the test.
    pub sent: u64,
    /// Duplicates made by the link.
    pub doubled: u64,
    /// Received by a local participant.
    pub delivered: u64,
    /// Lost at random.
    pub lost: u64,
    /// Stopped by a partition.
    pub partitioned: u64,
    /// Sent to an unused address or port.
    pub unreachable: u64,
    /// Arrived, or waited in a lane, while the node was down.
    pub node_down: u64,
    /// Arrived at a full lane.
    pub lane_full: u64,
    /// Scheduled, not arrived yet.
    pub in_flight: u64,
    /// Waiting in a lane.
    pub queued: u64,
}

impl LinkLedger {
    /// Returns true if every datagram is accounted for exactly once.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.sent + self.doubled
            == self.delivered
                + self.lost
                + self.partitioned
                + self.unreachable
                + self.node_down
                + self.lane_full
                + self.in_flight
                + self.queued
    }
}
