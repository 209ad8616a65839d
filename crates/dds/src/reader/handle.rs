//! Readers for other threads.
//!
//! A callback on the loop's thread takes samples from the cache and passes them to the other thread, here the *taker*,
//! through a wait-free ring. It does so only on demand: samples without demand stay in the cache, where HISTORY applies
//! to them, so that a slow taker gets the newest samples of a KEEP_LAST reader.
//!
//! No demand is lost: the taker sets its demand, then checks whether samples are left in the cache, and asks the loop
//! for them. The callback notes that samples are left, then checks the demand once more. At least one of the two sees
//! what the other has done.

use std::{
    future::poll_fn,
    ops::Deref,
    pin::Pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use atomic_waker::AtomicWaker;
use futures_core::Stream;
use isolane_rtps::ReaderId;
use isolane_wire::cdr::TopicType;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::{
    error::BuildError,
    limits::HANDLE_QUEUE,
    participant::Participant,
    participant::thread::{Caller, ThreadEnded},
    reader::{DataReader, Progress, Sample},
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
    taker: AtomicWaker,
}

impl Shared {
    fn end_demand(&self) {
        self.demand.store(NONE, Ordering::SeqCst);
        self.taker.wake();
    }
}

/// Reader for use by one other thread, or by one asynchronous task.
///
/// Samples pass from the loop's thread to this one by value, which costs a wake-up. A critical sample is best handled
/// by a callback on the loop's thread ([`ParticipantHandle::with`](crate::ParticipantHandle::with)). Dropping the
/// handle deletes the reader.
///
/// As a [`Stream`] it yields each sample, and ends with the participant's thread.
pub struct ReaderHandle<T: TopicType> {
    samples: Consumer<Sample<T>>,
    shared: Arc<Shared>,
    caller: Caller,
    id: ReaderId,
    generation: u32,
}

/// End of the ring on the loop's thread; owned by the reader's callback.
struct Giver<T: TopicType> {
    reader: DataReader<T>,
    // Drop order: the ring is abandoned before the taker is woken for the last time.
    samples: Producer<Sample<T>>,
    shared: GiverEnd,
}

/// Shared state of the giver; wakes the taker when dropped.
struct GiverEnd(Arc<Shared>);

impl Deref for GiverEnd {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Drop for GiverEnd {
    fn drop(&mut self) {
        self.taker.wake();
    }
}

impl<T: TopicType> Giver<T> {
    /// Passes one sample on, if there is a demand.
    fn pass(&mut self) -> Progress {
        if self.shared.demand.load(Ordering::SeqCst) == NONE {
            self.shared.is_left.store(true, Ordering::SeqCst);
            if self.shared.demand.load(Ordering::SeqCst) == NONE {
                return Progress::Stopped;
            }
            self.shared.is_left.store(false, Ordering::SeqCst);
        }
        if self.samples.is_full() {
            // The taker has set its demand before it took the samples in the ring.
            self.shared.is_left.store(true, Ordering::SeqCst);
            self.shared.end_demand();
            return Progress::Stopped;
        }
        match self.reader.take() {
            Ok(Some(sample)) => {
                // The push succeeds: the ring has room, and nobody else fills it.
                let _ = self.samples.push(sample);
                if self.samples.is_full() || self.reader.available() == 0 {
                    self.shared.end_demand();
                }
            }
            Ok(None) if self.shared.demand.load(Ordering::SeqCst) == ASKS => {
                self.shared.end_demand();
            }
            // A sample that is not of the type was counted as rejected.
            Ok(None) | Err(_) => {}
        }
        Progress::Handled
    }
}

impl<T: TopicType + Send + 'static> ReaderHandle<T> {
    pub(crate) fn new(reader: DataReader<T>, caller: Caller) -> Result<Self, BuildError> {
        let (producer, samples) = RingBuffer::new(HANDLE_QUEUE);
        let shared = Arc::new(Shared::default());
        let (core, id) = (Rc::clone(&reader.core), reader.id);
        let (topic, level) = (reader.topic.clone(), reader.level);
        let mut giver = Giver {
            reader,
            samples: producer,
            shared: GiverEnd(Arc::clone(&shared)),
        };
        core.set_cache_callback(id, (&topic, level), Box::new(move || giver.pass()))?;
        let generation = core.state.borrow().reader_slots[id.index()].generation;
        Ok(Self {
            samples,
            shared,
            caller,
            id,
            generation,
        })
    }

    /// Takes the oldest sample that has arrived, without waiting for one to arrive. Waits for the loop's thread only if
    /// it still holds samples.
    ///
    /// # Errors
    /// [`ThreadEnded`]; every sample that was handed over has been taken then.
    pub fn take(&mut self) -> Result<Option<Sample<T>>, ThreadEnded> {
        let taken = block_on(None, |context| match self.poll(context, ASKS) {
            Poll::Pending if self.shared.demand.load(Ordering::SeqCst) == NONE => {
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
    pub fn take_timeout(&mut self, timeout: Duration) -> Result<Option<Sample<T>>, ThreadEnded> {
        let until = Instant::now().checked_add(timeout);
        let taken = block_on(until, |context| self.poll(context, WAITS));
        self.shared.demand.store(NONE, Ordering::SeqCst);
        taken.transpose()
    }

    /// Takes the oldest sample, and waits for as long as it takes. Returns `None` once the participant's thread has
    /// ended.
    pub async fn next(&mut self) -> Option<Sample<T>> {
        poll_fn(|context| self.poll(context, WAITS)).await.ok()
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
        demand: u8,
    ) -> Poll<Result<Sample<T>, ThreadEnded>> {
        if let Ok(sample) = self.samples.pop() {
            return Poll::Ready(Ok(sample));
        }
        self.shared.taker.register(context.waker());
        let is_unanswered = demand == ASKS && self.shared.demand.load(Ordering::SeqCst) == ASKS;
        if !is_unanswered {
            self.shared.demand.store(demand, Ordering::SeqCst);
            if self.shared.is_left.swap(false, Ordering::SeqCst) {
                let (id, generation) = (self.id, self.generation);
                // If the thread has ended, so has its end of the ring.
                let _ = self.caller.send(move |participant| {
                    participant.core().resume_callback(id, generation);
                });
            } else if demand == ASKS {
                self.shared.demand.store(NONE, Ordering::SeqCst);
            }
        }
        match self.samples.pop() {
            Ok(sample) => Poll::Ready(Ok(sample)),
            Err(_) if self.samples.is_abandoned() => Poll::Ready(Err(ThreadEnded)),
            Err(_) => Poll::Pending,
        }
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
        let (id, generation) = (self.id, self.generation);
        // The callback owns the reader. If the thread has ended, both are gone.
        let _ = self.caller.send(move |participant: &Participant| {
            participant.core().remove_callback(id, generation);
        });
    }
}

/// Wakes a thread that waits in [`block_on`].
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Calls `poll` until it is ready, and sleeps in between. Returns `None` at `until`.
fn block_on<R>(
    until: Option<Instant>,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<R>,
) -> Option<R> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        if let Poll::Ready(result) = poll(&mut Context::from_waker(&waker)) {
            return Some(result);
        }
        match until.map(|until| until.saturating_duration_since(Instant::now())) {
            None => thread::park(),
            Some(Duration::ZERO) => return None,
            Some(left) => thread::park_timeout(left),
        }
    }
}
