//! Ledger of the links: what happened to every datagram.

/// Datagrams, counted once for each destination node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkLedger {
    /// Sent by a node, or injected by the test.
    pub sent: u64,
    /// Duplicates made by the link.
    pub doubled: u64,
    /// Read by an engine.
    pub delivered: u64,
    /// Lost by chance.
    pub lost: u64,
    /// Dropped by a partition.
    pub partitioned: u64,
    /// Sent to an unused address or port.
    pub unreachable: u64,
    /// Dropped because the node was down on arrival, or went down while they were queued.
    pub node_down: u64,
    /// Dropped by a full lane.
    pub lane_full: u64,
    /// In transit.
    pub in_flight: u64,
    /// Queued in the lane of a node.
    pub queued: u64,
}

impl LinkLedger {
    /// Returns whether every datagram is accounted for exactly once.
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
