//! Which waiting frame the wire takes next: the one decision a NIC's transmit side makes.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// The order in which waiting frames get the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arbiter {
    /// As they came, whatever they are.
    #[default]
    Fifo,
}

/// The frames that wait for the wire, never more than were reserved for.
#[derive(Debug)]
pub(super) struct Waiting<F> {
    order: Order<F>,
    capacity: usize,
}

/// An arbiter's queues.
#[derive(Debug)]
enum Order<F> {
    Fifo(VecDeque<F>),
}

impl<F> Waiting<F> {
    pub(super) fn new(arbiter: Arbiter, capacity: usize) -> Waiting<F> {
        let order = match arbiter {
            Arbiter::Fifo => Order::Fifo(VecDeque::with_capacity(capacity)),
        };
        Waiting { order, capacity }
    }

    pub(super) fn len(&self) -> usize {
        match &self.order {
            Order::Fifo(queue) => queue.len(),
        }
    }

    /// Takes a frame in, or gives it back when the queue is full (drop-tail).
    pub(super) fn push(&mut self, frame: F) -> Result<(), F> {
        if self.len() == self.capacity {
            return Err(frame);
        }
        match &mut self.order {
            Order::Fifo(queue) => queue.push_back(frame),
        }
        Ok(())
    }

    /// The next frame for the wire.
    pub(super) fn pop(&mut self) -> Option<F> {
        match &mut self.order {
            Order::Fifo(queue) => queue.pop_front(),
        }
    }
}
