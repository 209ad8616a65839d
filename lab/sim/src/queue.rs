//! What is going to happen, ordered by time, and by the order of making where times are equal.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
    time::Duration,
};

use isolane_wire::time::Instant;

use crate::node::{Frame, NodeId};

/// Something that is going to happen.
#[derive(Debug)]
pub(crate) enum Event {
    /// A datagram reaches a lane of a node.
    Arrival {
        to: NodeId,
        lane: usize,
        frame: Frame,
    },
    /// A node does what is most urgent.
    Step(NodeId),
    /// A node's engine wants to be told the time.
    Timer(NodeId, Instant),
    /// The user of a reader looks in.
    Visit(usize),
    /// The user of a writer has the next sample planned.
    Publish { writer: usize, period: Duration },
}

/// An event's place in the queue: by time, then by the order of making.
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

/// The events to come.
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

    /// Takes the first event, if it is due by `end`.
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
