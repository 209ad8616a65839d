//! Readers for other threads.
//!
//! A callback on the loop's thread takes samples from the cache and passes them to the other thread, here the
//! *consumer*, through a wait-free ring. It does so only on demand: samples without demand stay in the cache, where
//! HISTORY applies to them, so that a slow consumer gets the newest samples of a KEEP_LAST reader.
//!
//! No demand is lost: the consumer sets its demand, then checks whether samples are left in the cache, and asks the loop
//! for them. The callback notes that samples are left, then checks the demand once more. At least one of the two sees
//! what the other has done. The callback ends the demand, and wakes the consumer, when the ring is full or the cache
//! empty.

use std::{
    future::poll_fn,
    pin::Pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use atomic_waker::AtomicWaker;
use futures_core::Stream;
use isolane_rtps::{LocalParticipant, ReaderId, ReaderLedger};
use isolane_wire::cdr::TopicType;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::{
    error::BuildError,
    limits::HANDLE_QUEUE,
    participant::thread::{Call, Caller, ThreadEnded},
    reader::{DataReader, Progress, Sample},
    ring_waker::{RingWaker, block_on},
};

/// No samples are to be passed on.
const NONE: u8 = 0;
/// Samples are to be passed on as soon as they arrive.
const WAITS: u8 = 1;
/// As [`WAITS`], but an empty cache ends the demand.
const ASKS: u8 = 2;

/// State shared by both threads, in addition to the ring.
#[derive(Default)]
struct Shared {
    demand: AtomicU8,
    /// True if samples were left in the cache without demand.
    is_left: AtomicBool,
}

impl Shared {
    fn has_demand(&self, demand: u8) -> bool {
        self.demand.load(Ordering::SeqCst) == demand
    }
}

/// Reader for use by one other thread, or by one asynchronous task.
///
/// Samples pass from the loop's thread to this one by value, which allocates what their strings and sequences need, and
/// each wake-up of this thread is a system call of the loop. The waker of a task runs on the loop's thread. A critical
/// sample is best handled by a callback on that thread ([`ParticipantHandle::with`](crate::ParticipantHandle::with)).
/// Samples that are not of the type are counted as rejected. Dropping the handle deletes the reader, and does not wait for
/// it.
///
/// As a [`Stream`] it yields each sample, and ends with the participant's thread.
pub struct ReaderHandle<T: TopicType> {
    samples: Consumer<Sample<T>>,
    shared: Arc<Shared>,
    waker: Arc<AtomicWaker>,
    caller: Caller,
    id: ReaderId,
    generation: u32,
    /// True if the loop was asked for samples left in the cache, and its answer was not yet seen.
    is_asked: bool,
}

/// End of the ring on the loop's thread; owned by the reader's callback.
struct LoopEnd<T: TopicType> {
    reader: DataReader<T>,
    /// True if the ring has samples for which the consumer was not woken.
    is_unannounced: bool,
    shared: Arc<Shared>,
    // Drop order: the ring is abandoned before the consumer is woken for the last time.
    samples: Producer<Sample<T>>,
    consumer: RingWaker,
}

impl<T: TopicType> LoopEnd<T> {
    /// Passes one sample on, if there is a demand.
    fn pass(&mut self) -> Progress {
        if self.shared.has_demand(NONE) {
            self.shared.is_left.store(true, Ordering::SeqCst);
            if self.shared.has_demand(NONE) {
                return Progress::Stopped;
            }
            self.shared.is_left.store(false, Ordering::SeqCst);
        }
        if self.samples.is_full() {
            // The consumer has set its demand before it took the samples in the ring.
            self.shared.is_left.store(true, Ordering::SeqCst);
            self.end_demand();
            return Progress::Stopped;
        }
        // A sample that is not of the type was counted as rejected.
        if let Ok(Some(sample)) = self.reader.take() {
            self.is_unannounced = true;
            // The push succeeds: the ring has room, and only this end fills it.
            let _ = self.samples.push(sample);
        }
        let is_over = self.samples.is_full() || self.reader.available() == 0;
        if is_over && (self.is_unannounced || self.shared.has_demand(ASKS)) {
            self.end_demand();
        }
        Progress::Handled
    }

    fn end_demand(&mut self) {
        self.is_unannounced = false;
        self.shared.demand.store(NONE, Ordering::SeqCst);
        self.consumer.wake();
    }
}

impl<T: TopicType + Send + 'static> ReaderHandle<T> {
    pub(crate) fn new(reader: DataReader<T>, caller: Caller) -> Result<Self, BuildError> {
        let (producer, samples) = RingBuffer::new(HANDLE_QUEUE);
        let (shared, consumer) = (Arc::new(Shared::default()), RingWaker::default());
        let waker = Arc::clone(&consumer.0);
        let (core, id) = (Rc::clone(&reader.core), reader.id);
        let (topic, level) = (reader.topic.clone(), reader.level);
        let mut end = LoopEnd {
            reader,
            is_unannounced: false,
            shared: Arc::clone(&shared),
            samples: producer,
            consumer,
        };
        core.set_cache_callback(id, (&topic, level), Box::new(move || end.pass()))?;
        let generation = core.state.borrow().reader_slots[id.index()].generation;
        Ok(Self {
            samples,
            shared,
            waker,
            caller,
            id,
            generation,
            is_asked: false,
        })
    }

    /// Takes the oldest sample that has arrived, without waiting for one to arrive. Waits for the loop's thread only if
    /// it still holds samples.
    ///
    /// # Errors
    /// [`ThreadEnded`]; every sample that was handed over has been taken then.
    ///
    /// # Panics
    /// On the participant's own thread, which would wait for itself.
    pub fn take(&mut self) -> Result<Option<Sample<T>>, ThreadEnded> {
        if let Ok(sample) = self.samples.pop() {
            return Ok(Some(sample));
        }
        self.caller.assert_elsewhere();
        let taken = block_on(None, |context| match self.poll(context, ASKS) {
            Poll::Pending if self.shared.has_demand(NONE) => {
                Poll::Ready(Ok(self.samples.pop().ok()))
            }
            polled => polled.map(|sample| sample.map(Some)),
        });
        taken.unwrap_or(Ok(None))
    }

    /// Takes the oldest sample, and waits up to `timeout` for one to arrive. Returns `None` if none has.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    ///
    /// # Panics
    /// As [`take`](Self::take).
    pub fn take_timeout(&mut self, timeout: Duration) -> Result<Option<Sample<T>>, ThreadEnded> {
        if let Ok(sample) = self.samples.pop() {
            return Ok(Some(sample));
        }
        self.caller.assert_elsewhere();
        let until = Instant::now().checked_add(timeout);
        let taken = block_on(until, |context| self.poll(context, WAITS));
        if taken.is_none() {
            self.end_wait();
        }
        taken.transpose()
    }

    /// Takes the oldest sample, and waits for as long as it takes. Returns `None` once the participant's thread has
    /// ended. No sample is lost if the future is dropped before it is ready.
    pub async fn next(&mut self) -> Option<Sample<T>> {
        let waiting = Waiting(self);
        let sample = poll_fn(|context| waiting.0.poll(context, WAITS)).await.ok();
        std::mem::forget(waiting);
        sample
    }

    /// Returns the number of matched writers. Waits for the loop's thread, as [`ledger`](Self::ledger) does.
    ///
    /// # Errors
    /// [`ThreadEnded`].
    ///
    /// # Panics
    /// As [`take`](Self::take).
    pub fn matched_writers(&self) -> Result<usize, ThreadEnded> {
        self.ask(LocalParticipant::matched_writers)
    }

    /// Returns the account of all received samples. Samples that have left the cache count as delivered, also those
    /// that wait in the ring.
    ///
    /// # Errors
    /// [`ThreadEnded`].
    ///
    /// # Panics
    /// As [`take`](Self::take).
    pub fn ledger(&self) -> Result<ReaderLedger, ThreadEnded> {
        self.ask(|protocol, id| protocol.reader_ledger(id).unwrap_or_default())
    }

    fn ask<R: Send + 'static>(
        &self,
        of: fn(&LocalParticipant, ReaderId) -> R,
    ) -> Result<R, ThreadEnded> {
        let id = self.id;
        self.caller
            .call(move |participant| of(&participant.core().state.borrow().protocol, id))
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
        demand: u8,
    ) -> Poll<Result<Sample<T>, ThreadEnded>> {
        if let Ok(sample) = self.samples.pop() {
            return Poll::Ready(Ok(sample));
        }
        self.waker.register(context.waker());
        self.is_asked &= !self.shared.has_demand(NONE);
        let is_unanswered = demand == ASKS && self.is_asked;
        if !is_unanswered {
            self.shared.demand.store(demand, Ordering::SeqCst);
            if self.shared.is_left.swap(false, Ordering::SeqCst) {
                self.is_asked = true;
                // If the thread has ended, so has its end of the ring.
                let _ = self
                    .caller
                    .send(Call::ResumeReader(self.id, self.generation));
            } else if demand == ASKS {
                self.shared.demand.store(NONE, Ordering::SeqCst);
            }
        }
        // Read before the ring: a sample pushed before the end is then found.
        let has_ended = self.samples.is_abandoned();
        match self.samples.pop() {
            Ok(sample) => {
                self.shared.demand.store(NONE, Ordering::SeqCst);
                Poll::Ready(Ok(sample))
            }
            Err(_) if has_ended => Poll::Ready(Err(ThreadEnded)),
            Err(_) => Poll::Pending,
        }
    }
}

impl<T: TopicType> ReaderHandle<T> {
    /// Ends the demand for samples that arrive later.
    fn end_wait(&self) {
        // An answer that is on its way still comes; without one, samples wait in the cache.
        let demand = if self.is_asked { ASKS } else { NONE };
        let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
        let _ = self
            .shared
            .demand
            .compare_exchange(WAITS, demand, success, failure);
    }
}

/// Wait of a task, which ends when this is dropped.
struct Waiting<'a, T: TopicType>(&'a mut ReaderHandle<T>);

impl<T: TopicType> Drop for Waiting<'_, T> {
    fn drop(&mut self) {
        self.0.end_wait();
    }
}

impl<T: TopicType + Send + 'static> Stream for ReaderHandle<T> {
    type Item = Sample<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(context, WAITS).map(Result::ok)
    }
}

impl<T: TopicType> Unpin for ReaderHandle<T> {}

impl<T: TopicType> Drop for ReaderHandle<T> {
    fn drop(&mut self) {
        // The callback owns the reader. If the thread has ended, both are gone.
        let _ = self
            .caller
            .send(Call::RemoveReader(self.id, self.generation));
    }
}
