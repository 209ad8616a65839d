//! Network partition for a limited time.

use std::{ops::Range, time::Duration};

use isolane_wire::time::Instant;

use crate::node::NodeId;

/// Partition between two groups of nodes during a window of time. Datagrams sent within the window are dropped; those
/// in transit arrive.
#[derive(Debug, Clone)]
pub struct Partition {
    one: Vec<NodeId>,
    other: Vec<NodeId>,
    is_one_way: bool,
    from: Instant,
    until: Instant,
}

impl Partition {
    /// Creates a partition in both directions without an end.
    #[must_use]
    pub fn between(one: &[NodeId], other: &[NodeId]) -> Self {
        Self {
            one: one.to_vec(),
            other: other.to_vec(),
            is_one_way: false,
            from: Instant::new(0),
            until: Instant::new(u64::MAX),
        }
    }

    /// Creates a partition from the first group to the second; the opposite direction is open.
    #[must_use]
    pub fn one_way(from: &[NodeId], to: &[NodeId]) -> Self {
        Self {
            is_one_way: true,
            ..Self::between(from, to)
        }
    }

    /// Limits the partition to this window of the world's time.
    #[must_use]
    pub fn during(self, window: Range<Duration>) -> Self {
        let start = Instant::new(0);
        Self {
            from: start + window.start,
            until: start + window.end,
            ..self
        }
    }

    pub(crate) fn stops(&self, from: NodeId, to: NodeId, now: Instant) -> bool {
        let forth = self.one.contains(&from) && self.other.contains(&to);
        let back = self.other.contains(&from) && self.one.contains(&to);
        (self.from..self.until).contains(&now) && (forth || (back && !self.is_one_way))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_stops_what_crosses_it_within_its_window() {
        let (a, b, c) = (NodeId(0), NodeId(1), NodeId(2));
        let at = |seconds| Instant::new(0) + Duration::from_secs(seconds);
        let window = Duration::from_secs(1)..Duration::from_secs(2);
        let both = Partition::between(&[a], &[b]).during(window.clone());
        assert!(both.stops(a, b, at(1)) && both.stops(b, a, at(1)));
        assert!(!both.stops(a, b, at(0)) && !both.stops(a, b, at(2)));
        assert!(!both.stops(a, c, at(1)));
        let one_way = Partition::one_way(&[a], &[b]).during(window);
        assert!(one_way.stops(a, b, at(1)) && !one_way.stops(b, a, at(1)));
    }
}
