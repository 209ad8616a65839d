//! Which waiting frame the wire takes next: the one decision a NIC's transmit side makes.
//!
//! Queues are as a NIC has them: `fifo` is one for everything; `strict` is one for each of the eight
//! classes, each as long as the other's only one. So the bound is a class's own: bulk fills its queue
//! and loses its own frames, and never pushes out a critical one. A frame on the wire is never
//! interrupted, so a critical frame that finds no other of its class waits for at most one other
//! frame.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Classes of frames: 0, the least urgent, to 7.
pub(super) const CLASSES: usize = 8;

/// The order in which waiting frames get the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arbiter {
    /// As they came, whatever they are.
    #[default]
    Fifo,
    /// The most urgent class first, within it as they came. The class is the PCP of a tagged frame,
    /// else the class selector of its DSCP, else the least urgent.
    Strict,
}

impl Arbiter {
    /// Its word, the same in results and for people.
    pub fn word(self) -> &'static str {
        match self {
            Arbiter::Fifo => "fifo",
            Arbiter::Strict => "strict",
        }
    }

    /// How many queues it serves, each as long as configured.
    pub(super) const fn queues(self) -> usize {
        match self {
            Arbiter::Fifo => 1,
            Arbiter::Strict => CLASSES,
        }
    }
}

/// The frames that wait for the wire, never more than were reserved for.
#[derive(Debug)]
pub(super) struct Waiting<F> {
    /// The least urgent first.
    queues: Vec<VecDeque<F>>,
    /// Of each queue.
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

    /// Takes a frame of that class in, or gives it back when its queue is full (drop-tail).
    pub(super) fn push(&mut self, class: u8, frame: F) -> Result<(), F> {
        // With one queue every class is the same; a class beyond the last is the last.
        let last = self.queues.len() - 1;
        let queue = &mut self.queues[usize::from(class).min(last)];
        if queue.len() == self.capacity {
            return Err(frame);
        }
        queue.push_back(frame);
        Ok(())
    }

    /// The next frame for the wire.
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
