//! Delivery of samples to the callbacks of readers.
//!
//! While a callback runs, it is out of its reader's slot, and the state is not borrowed. Afterwards it is put back,
//! unless the reader was deleted or got another callback meanwhile.

use std::{cell::RefMut, time::Duration};

use isolane_datapath::clock::monotonic_now;
use isolane_executor::{JobId, Name};
use isolane_rtps::{Delivery, ReaderId, RejectReason, SampleInfo};
use isolane_wire::{cdr::TopicType, level::Level, time::Instant};

use crate::{
    participant::event_loop::Core, participant::state::State, rate_limit::ReaderFlow,
    reader::DataReader,
};

/// Application's callback for views: payload and metadata. An error says why the payload was rejected.
pub(crate) type ViewCallback = Box<dyn FnMut(&[u8], &SampleInfo) -> Result<(), RejectReason>>;
/// Application's callback for one cached sample.
pub(crate) type CacheCallback = Box<dyn FnMut()>;
/// State of a reader outside the RTPS participant, in a table with the same indexes.
#[derive(Default)]
pub(crate) struct ReaderSlot {
    pub(crate) level: Level,
    /// Number of readers that have used this slot, so that a callback that outlives its reader does not pass to the
    /// next.
    pub(crate) generation: u32,
    pub(crate) view: Option<ViewCallback>,
    pub(crate) cached: Option<CacheCallback>,
    pub(crate) job: Option<JobId>,
    /// Port and budget of a reader's datagrams.
    pub(crate) flow: ReaderFlow,
    pub(crate) response: Option<ResponseDeadline>,
}

/// Callbacks of a deleted reader. Drop them while the state is not borrowed.
pub(crate) type ReaderCallbacks = (Option<ViewCallback>, Option<CacheCallback>);

impl ReaderSlot {
    /// Clears the slot of a deleted reader. Returns its job, which is to be removed, and its callbacks.
    pub(crate) fn clear(&mut self) -> (Option<JobId>, ReaderCallbacks) {
        self.generation = self.generation.wrapping_add(1);
        self.response = None;
        (self.job.take(), (self.view.take(), self.cached.take()))
    }
}

impl State {
    /// Creates the slot of a new reader.
    pub(crate) fn make_reader_slot(&mut self, reader: ReaderId, level: Level) {
        let places = self.reader_slots.len().max(reader.index() + 1);
        self.reader_slots.resize_with(places, ReaderSlot::default);
        self.reader_slots[reader.index()].level = level;
    }

    /// Clears the slot of a deleted reader and returns its callbacks.
    pub(crate) fn clear_reader_slot(&mut self, reader: usize) -> ReaderCallbacks {
        let (job, callbacks) = self.reader_slots[reader].clear();
        if let Some(job) = job {
            self.jobs.remove(&mut self.executor, job);
        }
        callbacks
    }

    /// Checks the deadline of a sample whose callback has ended, or that was taken. The sample arrived at `arrived`.
    #[inline]
    pub(crate) fn note_response(
        &mut self,
        reader: ReaderId,
        arrived: Instant,
        now: impl FnOnce() -> Instant,
    ) {
        let slot = &mut self.reader_slots[reader.index()];
        let Some(response) = &mut slot.response else {
            return;
        };
        let due = arrived + response.deadline;
        let now = now();
        if now <= due {
            return;
        }
        response.missed += 1;
        let late_ns = now.as_nanos() - due.as_nanos();
        response.lateness_max = response.lateness_max.max(Duration::from_nanos(late_ns));
        let job = self
            .executor
            .running_at(due)
            .and_then(|job| self.executor.get(job));
        response.missed_during = job.map(|job| job.config.name.clone());
    }
}

/// Response deadline of a reader, and its misses ([`Qos::response_deadline`](crate::Qos::response_deadline)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseDeadline {
    /// Maximum time from a sample's arrival to the end of its callback, or until it is taken.
    pub deadline: Duration,
    /// Number of samples that took longer.
    pub missed: u64,
    /// Longest excess over the deadline; zero if none was missed.
    pub lateness_max: Duration,
    /// Job that ran when the last missed deadline expired. `None` if none was missed, if the loop slept, polled or was
    /// not run then, or if too many jobs have run since.
    pub missed_during: Option<Name>,
}

impl ResponseDeadline {
    pub(crate) fn new(deadline: Duration) -> Self {
        Self {
            deadline,
            missed: 0,
            lateness_max: Duration::ZERO,
            missed_during: None,
        }
    }
}

impl<T: TopicType> DataReader<T> {
    /// Returns the response deadline and its misses; `None` without a deadline.
    #[must_use]
    pub fn response_deadline(&self) -> Option<ResponseDeadline> {
        let state = self.core.state.borrow();
        state.reader_slots[self.id.index()].response.clone()
    }
}

/// Memory of a reassembled sample, lent by the RTPS participant during a callback. Dropping this returns it, even if
/// the callback panics.
struct Lent<'a> {
    core: &'a Core,
    delivery: &'a Delivery,
    memory: Vec<u8>,
}

impl<'a> Lent<'a> {
    #[inline]
    fn of(core: &'a Core, state: &mut State, delivery: &'a Delivery) -> Option<Self> {
        if !delivery.is_assembled {
            return None;
        }
        let memory = state.protocol.lend(delivery)?;
        Some(Self {
            core,
            delivery,
            memory,
        })
    }

    fn bytes(&self) -> &[u8] {
        &self.memory
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        let mut state = self.core.state.borrow_mut();
        state.protocol.give_back(self.delivery, memory);
    }
}

impl Core {
    /// Passes a view to its reader's callback, with the state released meanwhile. Returns the state, and the reader's
    /// level.
    #[inline]
    pub(crate) fn deliver_view<'a>(
        &'a self,
        mut state: RefMut<'a, State>,
        delivery: &Delivery,
        bytes: &[u8],
    ) -> (RefMut<'a, State>, Level) {
        let place = delivery.reader.index();
        let slot = &mut state.reader_slots[place];
        let (level, generation, mut callback) = (slot.level, slot.generation, slot.view.take());
        let lent = Lent::of(self, &mut state, delivery);
        drop(state);
        let without_callback = Err(RejectReason::NotOfType);
        let delivered = callback.as_mut().map_or(without_callback, |callback| {
            let bytes = lent.as_ref().map_or(bytes, Lent::bytes);
            callback(&bytes[delivery.payload.clone()], &delivery.info)
        });
        drop(lent);

        let mut state = self.state.borrow_mut();
        let slot = &mut state.reader_slots[place];
        let is_there = slot.generation == generation;
        if is_there && slot.view.is_none() {
            slot.view = callback.take();
        }
        match delivered {
            Err(reason) if is_there => {
                state.reject_delivered(delivery.reader, delivery.info.writer, reason);
            }
            Ok(()) if is_there && delivery.info.valid_data() => {
                state.note_response(delivery.reader, delivery.info.received, monotonic_now);
            }
            _ => {}
        }
        if callback.is_some() {
            // The reader is deleted or has another callback. This one may own endpoints, whose deletion borrows the
            // state.
            drop(state);
            drop(callback);
            state = self.state.borrow_mut();
        }
        (state, level)
    }

    pub(crate) fn call_back(&self, reader: ReaderId, limit: usize) -> bool {
        let place = reader.index();
        let (generation, callback) = {
            let slot = &mut self.state.borrow_mut().reader_slots[place];
            (slot.generation, slot.cached.take())
        };
        let Some(mut callback) = callback else {
            return false;
        };
        for handled in 1.. {
            callback();
            // Declared after the callback, so that the borrow ends before a removed callback is dropped.
            let mut state = self.state.borrow_mut();
            let slot = &mut state.reader_slots[place];
            if slot.generation != generation {
                return false;
            }
            let is_replaced = slot.cached.is_some();
            let is_empty = state.protocol.available(reader) == 0;
            if is_empty || is_replaced || handled == limit {
                state.note_handled(handled);
                state.reader_slots[place].cached.get_or_insert(callback);
                return !is_empty;
            }
        }
        false
    }
}
