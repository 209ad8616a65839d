//! The last activations, to answer questions about the past: arrivals and deadlines are often
//! learnt of after the activation during which they fell.

use isolane_wire::time::Instant;

use crate::job::JobId;
use crate::limits::REMEMBERED_ACTIVATIONS;

/// One run of one job, to its end.
#[derive(Clone, Copy)]
pub(crate) struct Activation {
    pub(crate) job: JobId,
    pub(crate) priority: u8,
    pub(crate) begin: Instant,
    pub(crate) finish: Instant,
}

impl Activation {
    fn was_running_at(&self, instant: Instant) -> bool {
        self.begin <= instant && instant < self.finish
    }
}

/// A ring of the last [`REMEMBERED_ACTIVATIONS`].
pub(crate) struct History {
    ring: [Option<Activation>; REMEMBERED_ACTIVATIONS],
    next: usize,
}

impl History {
    pub(crate) const fn new() -> History {
        History {
            ring: [None; REMEMBERED_ACTIVATIONS],
            next: 0,
        }
    }

    pub(crate) fn push(&mut self, activation: Activation) {
        self.ring[self.next] = Some(activation);
        self.next = (self.next + 1) % REMEMBERED_ACTIVATIONS;
    }

    /// Activations that ended after `instant`, the last one first.
    pub(crate) fn ended_after(&self, instant: Instant) -> impl Iterator<Item = &Activation> {
        let (newer, older) = self.ring.split_at(self.next);
        newer
            .iter()
            .rev()
            .chain(older.iter().rev())
            .map_while(Option::as_ref)
            .take_while(move |activation| activation.finish > instant)
    }

    /// Who was running at an instant of the past.
    pub(crate) fn running_at(&self, instant: Instant) -> Option<&Activation> {
        self.ended_after(instant)
            .find(|activation| activation.was_running_at(instant))
    }
}
