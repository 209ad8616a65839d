//! The ledger of the links: where every datagram went.

/// Datagrams, counted once for each node they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkLedger {
    /// Given to the link by a node, or by the test.
    pub sent: u64,
    /// Copies the link made.
    pub doubled: u64,
    /// Read by an engine.
    pub delivered: u64,
    /// Lost by chance.
    pub lost: u64,
    /// Stopped by a partition.
    pub partitioned: u64,
    /// For an address that nobody has, or a port nobody listens at.
    pub unreachable: u64,
    /// Arrived, or waited in a lane, while the node was down.
    pub node_down: u64,
    /// Arrived at a lane that was full.
    pub lane_full: u64,
    /// On the way.
    pub in_flight: u64,
    /// In the lane of a node, not yet read.
    pub queued: u64,
}

impl LinkLedger {
    /// Whether every datagram is accounted for exactly once.
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
