//! Event queue, ordered by time, and by creation at equal times.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
    time::Duration,
};

use isolane_wire::time::Instant;

use crate::node::{Frame, NodeId};

/// Future event.
#[derive(Debug)]
pub(crate) enum Event {
    /// Arrival of a datagram at a node's lane.
    Arrival {
        to: NodeId,
        lane: usize,
        frame: Frame,
    },
    /// Step of a node: its most urgent action.
    Step(NodeId),
    /// Timer of a node's participant.
    Timer(NodeId, Instant),
    /// Visit of a reader's slow user, who takes one sample.
    Visit(usize),
    /// Next planned sample of a writer's user.
    Publish { writer: usize, period: Duration },
}

/// Event with its order: by time, then by creation.
#[derive(Debug)]
struct Scheduled {
    at: Instant,
    number: u64,
    event: Event,
}

impl Scheduled {
    fn place(&self) -> (Instant, u64) {
        (self.at, self.number)
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

/// Queue of future events.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    events: BinaryHeap<Reverse<Scheduled>>,
    made: u64,
}

impl Queue {
    pub(crate) fn put(&mut self, at: Instant, event: Event) {
        self.made += 1;
        let number = self.made;
        self.events.push(Reverse(Scheduled { at, number, event }));
    }

    /// Removes and returns the first event, if it is due by `end`.
    pub(crate) fn take(&mut self, end: Instant) -> Option<(Instant, Event)> {
        if self.events.peek()?.0.at > end {
            return None;
        }
        let Reverse(first) = self.events.pop()?;
        Some((first.at, first.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_the_order_of_time_and_then_of_making() {
        let mut queue = Queue::default();
        for (at, visit) in [(20, 0), (10, 1), (20, 2), (10, 3), (30, 4)] {
            queue.put(Instant::new(at), Event::Visit(visit));
        }
        let mut order = Vec::new();
        while let Some((_, Event::Visit(visit))) = queue.take(Instant::new(20)) {
            order.push(visit);
        }
        assert_eq!(order, [1, 3, 0, 2]);
    }
}
