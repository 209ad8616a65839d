//! Transmit arbiter: selects the next waiting frame for the wire, as a NIC's transmit side does.
//!
//! `fifo` has one queue for all frames. `strict` has one queue for each of the eight classes, each as long as the
//! single FIFO queue. The bound is per class: bulk fills its own queue, loses its own frames, and never evicts a
//! critical one. A frame on the wire is never pre-empted, so a critical frame whose queue is empty waits for at most
//! one other frame.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Number of frame classes: 0 (least urgent) to 7.
pub(super) const CLASSES: usize = 8;

/// Order in which waiting frames get the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arbiter {
    /// Order of arrival, whatever the class.
    #[default]
    Fifo,
    /// Most urgent class first, in order of arrival within a class. The class is the PCP of a tagged frame, else the
    /// class selector of its DSCP, else 0.
    Strict,
}

impl Arbiter {
    /// Name used in result files and in printed text.
    pub fn word(self) -> &'static str {
        match self {
            Arbiter::Fifo => "fifo",
            Arbiter::Strict => "strict",
        }
    }

    /// Number of queues, each of the configured length.
    pub(super) const fn queues(self) -> usize {
        match self {
            Arbiter::Fifo => 1,
            Arbiter::Strict => CLASSES,
        }
    }
}

/// Frames waiting for the wire, bounded by the reserved capacity.
#[derive(Debug)]
pub(super) struct Waiting<F> {
    /// Queues by class, the least urgent first.
    queues: Vec<VecDeque<F>>,
    /// Capacity of each queue, in frames.
    capacity: usize,
}

impl<F> Waiting<F> {
    pub(super) fn new(arbiter: Arbiter, capacity: usize) -> Waiting<F> {
        let queue = |_| VecDeque::with_capacity(capacity);
        Waiting {
            queues: (0..arbiter.queues()).map(queue).collect(),
            capacity,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// Queues a frame of `class`, or returns it when its queue is full (drop-tail).
    pub(super) fn push(&mut self, class: u8, frame: F) -> Result<(), F> {
        // A single queue takes every class; classes beyond the last queue use the last.
        let last = self.queues.len() - 1;
        let queue = &mut self.queues[usize::from(class).min(last)];
        if queue.len() == self.capacity {
            return Err(frame);
        }
        queue.push_back(frame);
        Ok(())
    }

    /// Removes the next frame for the wire.
    pub(super) fn pop(&mut self) -> Option<F> {
        self.queues.iter_mut().rev().find_map(VecDeque::pop_front)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_order(arbiter: Arbiter, classes: &[u8]) -> Vec<usize> {
        let mut waiting = Waiting::new(arbiter, 8);
        for (number, &class) in classes.iter().enumerate() {
            waiting.push(class, number).unwrap();
        }
        std::iter::from_fn(|| waiting.pop()).collect()
    }

    #[test]
    fn fifo_knows_no_classes() {
        assert_eq!(in_order(Arbiter::Fifo, &[0, 7, 3, 0]), [0, 1, 2, 3]);
    }

    #[test]
    fn strict_takes_the_most_urgent_class_first_and_keeps_the_order_within_it() {
        assert_eq!(
            in_order(Arbiter::Strict, &[0, 7, 3, 0, 7, 3]),
            [1, 4, 2, 5, 0, 3]
        );
    }

    #[test]
    fn bulk_fills_its_own_queue_only() {
        let mut waiting = Waiting::new(Arbiter::Strict, 2);
        for number in 0..2 {
            assert_eq!(waiting.push(0, number), Ok(()));
        }
        assert_eq!(waiting.push(0, 2), Err(2));
        assert_eq!(waiting.push(7, 3), Ok(()), "another class has room");
        assert_eq!(waiting.len(), 3);
    }
}
