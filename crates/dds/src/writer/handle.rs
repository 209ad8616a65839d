//! Writers for other threads.
//!
//! A [`WriterHandle`] and the executor share two wait-free rings: samples go in, empty frames come back. The other
//! thread, here the *publisher*, serialises into a frame lent at creation and hands the frame over. It writes the
//! eventfd only if the loop sleeps. Best-effort samples are not copied: the filled frame is sent.
//!
//! Wake-ups are not lost: the loop sets *sleeping*, then checks the rings once more; the publisher pushes the sample,
//! then checks *sleeping*. At least one of the two sees what the other has done. The publisher that sees *sleeping*
//! clears it, so that one sleep costs one system call.
//!
//! Every sample handed over is written. If a KEEP_ALL history is full, samples stay in the ring until readers have
//! acknowledged older ones, and then the ring fills. [`WriterHandle::write_timeout`] waits for room: the loop wakes the
//! publisher when it lends frames. When the writer is dropped, the samples in the ring are still written. The endpoint
//! stays until readers have these samples, or until [`HANDLE_LINGER`] has passed. If the participant is dropped first,
//! these samples are sent once, and the endpoint is deleted at once.

use std::{
    marker::PhantomData,
    ops::Range,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering, fence},
    },
    task::Poll,
    time::Duration,
};

use atomic_waker::AtomicWaker;
use isolane_datapath::{
    Class, Frame, LeasedFrame, Pool,
    clock::{monotonic_now, wall_now_ns},
};
use isolane_executor::{JobConfig, JobId};
use isolane_rtps::{ChangeKind, LocalParticipant, Priority, WriteSample, WriterId};
use isolane_wire::{
    cdr::{CdrError, TopicType, key_hash},
    qos::HistoryKind,
    time::{Instant, Timestamp},
};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::{
    error::{BuildError, WriteError},
    instance::unregistered,
    limits::{HANDLE_GRACE, HANDLE_ITEMS, HANDLE_LINGER, HANDLE_QUEUE},
    listener::Endpoint,
    participant::io::Addresses,
    participant::jobs::Task,
    participant::state::State,
    participant::{Of, create_writer},
    qos::Qos,
    ring_waker::{RingWaker, block_on},
    writer::Encoding,
};

/// Frame on its way to the executor.
struct HandedFrame {
    frame: LeasedFrame,
    /// Sample in the frame; `None` for a frame that is only returned.
    written: Option<Written>,
}

/// Serialised sample.
struct Written {
    /// Range of the payload in the frame.
    payload: Range<usize>,
    sample: WriteSample,
}

/// State shared by both threads, in addition to the rings.
struct Doorbell {
    sleeping: AtomicBool,
    wake: Arc<OwnedFd>,
}

/// Publisher's end of the doorbell, which rings once more when dropped.
struct Bell(Arc<Doorbell>);

impl Bell {
    /// Wakes the loop if it sleeps. Call this after the data is in the ring.
    fn ring(&self) {
        fence(Ordering::SeqCst);
        let sleeping = &self.0.sleeping;
        if sleeping.load(Ordering::SeqCst) && sleeping.swap(false, Ordering::SeqCst) {
            // The write fails only on overflow, and then the descriptor is already readable.
            let _ = rustix::io::write(&*self.0.wake, &1u64.to_ne_bytes());
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.ring();
    }
}

/// Executor's end of a writer handle.
pub(crate) struct SendQueue {
    pub(crate) job: JobId,
    pub(crate) writer: WriterId,
    encoding: Encoding,
    /// Class of the lent frames.
    class: Class,
    keeps_all: bool,
    // Drop order: the rings are abandoned before the publisher is woken for the last time.
    handed: Consumer<HandedFrame>,
    empty: Producer<LeasedFrame>,
    publisher: RingWaker,
    bell: Arc<Doorbell>,
    /// Number of frames that are lent again later, because the pool had none.
    owed: usize,
    /// True if nothing can be done until the writer's status changes (room, or all acknowledged).
    parked: bool,
    /// Time at which the publisher had dropped its end and all its samples were written.
    ended: Option<Instant>,
}

impl SendQueue {
    /// Returns whether the queue's job has something to do.
    pub(crate) fn is_ready(&self) -> bool {
        !self.parked && (!self.handed.is_empty() || self.handed.is_abandoned())
    }

    /// Lets the job try again, after a change of the writer's status.
    pub(crate) fn wake(&mut self) {
        self.parked = false;
    }

    /// Sets whether the publisher writes the eventfd.
    pub(crate) fn set_sleeping(&self, sleeping: bool) {
        self.bell.sleeping.store(sleeping, Ordering::SeqCst);
        if sleeping {
            fence(Ordering::SeqCst);
        }
    }

    /// Lends a new frame for each frame that was handed in.
    pub(crate) fn relend(&mut self, pool: &Pool) {
        let owed = self.owed;
        while self.owed > 0 && !self.handed.is_abandoned() {
            let Some(frame) = pool.take(self.class) else {
                break;
            };
            // The ring has as many slots as frames were lent.
            let _ = self.empty.push(frame.into_leased());
            self.owed -= 1;
        }
        if self.owed < owed {
            self.publisher.wake();
        }
    }

    /// Returns the number of frames at the publisher or in the rings.
    pub(crate) fn lent(&self) -> usize {
        HANDLE_QUEUE - self.owed
    }
}

/// Writer for use by one other thread.
///
/// When the handle is dropped, the samples handed over are still written. The endpoint is deleted within about a
/// second, or, if readers have not acknowledged everything, within [`HANDLE_LINGER`] and a second.
///
/// ```
/// use std::{thread, time::Duration};
/// use isolane::{Network, Participant, Qos, TopicType};
///
/// #[derive(TopicType)]
/// struct Speed { metres_per_second: f32 }
///
/// let network = Network::new(1);
/// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
/// let reader = participant.create_reader::<Speed>("Speed", &Qos::best_effort())?;
/// let mut writer = participant.create_writer_handle::<Speed>("Speed", &Qos::best_effort())?;
///
/// let publisher = thread::spawn(move || writer.write(&Speed { metres_per_second: 3.5 }));
/// // The loop runs here, and may be asleep when the other thread writes.
/// assert!(participant.run_until(Duration::from_secs(5), || reader.available() == 1));
/// publisher.join().unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct WriterHandle<T: TopicType> {
    // Drop order: the ring is abandoned before the bell rings for the last time.
    handed: Producer<HandedFrame>,
    empty: Consumer<LeasedFrame>,
    /// Frame of a sample that could not be serialised; used first.
    spare: Option<LeasedFrame>,
    /// Woken when a frame has come back.
    room: Arc<AtomicWaker>,
    bell: Bell,
    encoding: Encoding,
    begin: usize,
    max_bytes: usize,
    autodispose: bool,
    of: Of<T>,
}

pub(crate) fn create<T: TopicType>(
    state: &mut State,
    topic: &str,
    qos: &Qos,
) -> Result<WriterHandle<T>, BuildError> {
    // A sample is handed over in one frame, even if it is sent in fragments.
    let (mut sized, limit) = (qos.sized::<T>(), state.io.max_sample_bytes());
    let max_bytes = match qos.max_bytes {
        Some(asked) if asked > limit => {
            return Err(BuildError::SampleTooLarge { asked, limit });
        }
        _ => sized.sample_bytes().min(limit),
    };
    sized.max_bytes = Some(max_bytes);
    let qos = &sized;
    let encoding = Encoding::of::<T>(qos, state.lanes);
    let config = JobConfig {
        items: HANDLE_ITEMS,
        ..JobConfig::event(
            &format!("writer handle {topic}"),
            Priority::of_data(qos.transport_level()).get(),
        )
    };
    let job = state.add_job(config, Task::SendQueue)?;
    let created = create_writer::<T>(state, topic, qos)
        .and_then(|writer| enable(&mut state.protocol, writer).map(|()| writer));
    let writer = created.inspect_err(|_| {
        state.jobs.remove(&mut state.executor, job);
    })?;
    let (handed_in, handed_out) = RingBuffer::new(HANDLE_QUEUE);
    let (mut empty_in, empty_out) = RingBuffer::new(HANDLE_QUEUE);
    // A device's frames may be too small for the topic's largest sample.
    let head_room = state.io.capabilities.head_room_bytes;
    let class = state.io.class_for(
        encoding.lane,
        state.io.payload_begin() - head_room + max_bytes,
    );
    let leased = state.io.pool.lease(class, HANDLE_QUEUE);
    let frames = leased.map_err(|error| {
        state.jobs.remove(&mut state.executor, job);
        state.protocol.delete_writer(monotonic_now(), writer);
        BuildError::Datapath(error.into())
    })?;
    let owed = HANDLE_QUEUE - frames.len();
    for mut frame in frames {
        if state.io.prefault {
            let begin = state.io.payload_begin();
            frame.buffer_mut()[..begin + max_bytes].fill(0);
        }
        // The ring has as many slots as frames were lent.
        let _ = empty_in.push(frame);
    }
    let bell = Arc::new(Doorbell {
        sleeping: AtomicBool::new(true),
        wake: state.io.poller.wake_descriptor(),
    });
    let publisher = RingWaker::default();
    let room = Arc::clone(&publisher.0);
    state.send_queues.push(SendQueue {
        job,
        writer,
        encoding,
        class,
        keeps_all: qos.policies().history.kind == HistoryKind::KeepAll,
        handed: handed_out,
        empty: empty_in,
        publisher,
        bell: Arc::clone(&bell),
        owed,
        parked: false,
        ended: None,
    });
    Ok(WriterHandle {
        handed: handed_in,
        empty: empty_out,
        spare: None,
        room,
        bell: Bell(bell),
        encoding,
        begin: state.io.payload_begin(),
        max_bytes,
        autodispose: qos.autodispose,
        of: PhantomData,
    })
}

/// Enables a writer handle, whose handle has no `enable` method. Deletes the writer on an error.
fn enable(protocol: &mut LocalParticipant, writer: WriterId) -> Result<(), BuildError> {
    let now = monotonic_now();
    protocol.enable_writer(now, writer).map_err(|error| {
        protocol.delete_writer(now, writer);
        error.into()
    })
}

impl<T: TopicType> WriterHandle<T> {
    /// Serialises a sample and hands it to the executor. The call never waits; [`Qos::max_blocking_time`] has no effect
    /// here. [`write_timeout`](Self::write_timeout) waits.
    ///
    /// # Errors
    /// [`WriteError::QueueFull`] if the executor is behind, or a KEEP_ALL history is full; [`WriteError::Gone`] if the
    /// participant was dropped. If a KEEP_LAST history has no room for another instance, the executor notices it later
    /// and counts the sample as refused in the writer's ledger.
    pub fn write(&mut self, value: &T) -> Result<(), WriteError> {
        self.write_change(value, ChangeKind::Alive)
    }

    /// Writes a sample as [`write`](Self::write), and waits up to `timeout` while the executor is behind, or a KEEP_ALL
    /// history is full. In a callback of the same participant, the loop cannot make room during the call.
    ///
    /// ```
    /// use std::time::Duration;
    /// use isolane::{Participant, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Step { number: u32 }
    ///
    /// let participant = Participant::spawn(|| Participant::builder(96).loopback().build())?;
    /// let mut writer = participant.create_writer::<Step>("Steps", &Qos::best_effort())?;
    /// for number in 0..100 {
    ///     writer.write_timeout(&Step { number }, Duration::from_secs(1))?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`write`](Self::write); [`WriteError::QueueFull`] at the end of the timeout.
    pub fn write_timeout(&mut self, value: &T, timeout: Duration) -> Result<(), WriteError> {
        match self.write(value) {
            Err(WriteError::QueueFull) => {}
            written => return written,
        }
        let until = std::time::Instant::now().checked_add(timeout);
        let written = block_on(until, |context| {
            self.room.register(context.waker());
            match self.write(value) {
                Err(WriteError::QueueFull) => Poll::Pending,
                written => Poll::Ready(written),
            }
        });
        written.unwrap_or(Err(WriteError::QueueFull))
    }

    /// Disposes the instance of this key (DDS 1.4 §2.2.2.4.2.13).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn dispose(&mut self, key: &T) -> Result<(), WriteError> {
        self.write_change(key, ChangeKind::Dispose)
    }

    /// Unregisters the instance from this writer (§2.2.2.4.2.7), and disposes it unless [`Qos::autodispose`] is off.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn unregister(&mut self, key: &T) -> Result<(), WriteError> {
        self.write_change(key, unregistered(self.autodispose))
    }

    fn write_change(&mut self, value: &T, kind: ChangeKind) -> Result<(), WriteError> {
        if self.handed.is_abandoned() {
            return Err(WriteError::Gone);
        }
        let key_hash = T::KEYED.then(|| key_hash(value)).transpose()?;
        let sample = WriteSample {
            kind,
            key_hash,
            timestamp: Timestamp::from_nanos(wall_now_ns()),
        };
        if self.spare.is_none() {
            self.spare = self.empty.pop().ok();
        }
        // The frame stays in its place until the sample is complete: a `Loan` may panic.
        let frame = self.spare.as_mut().ok_or(WriteError::QueueFull)?;
        let room = &mut frame.buffer_mut()[self.begin..][..self.max_bytes];
        let length = match self.encoding.serialise(value, kind, room) {
            Ok(length) => length,
            Err(error) => {
                let error = match error {
                    CdrError::NoRoom => WriteError::too_large(self.max_bytes),
                    error => error.into(),
                };
                return Err(error.of(value));
            }
        };
        let written = Some(Written {
            payload: self.begin..self.begin + length,
            sample,
        });
        if let Some(frame) = self.spare.take() {
            // The push succeeds: the ring has as many slots as frames were lent, and one of them is here.
            let _ = self.handed.push(HandedFrame { frame, written });
            self.bell.ring();
        }
        Ok(())
    }
}

impl<T: TopicType> Drop for WriterHandle<T> {
    fn drop(&mut self) {
        // Unused frames return through the same ring as samples.
        let empty = std::iter::from_fn(|| self.empty.pop().ok());
        for frame in self.spare.take().into_iter().chain(empty) {
            let written = None;
            let _ = self.handed.push(HandedFrame { frame, written });
        }
    }
}

impl State {
    /// Returns whether all samples that writer handles have handed over were written and acknowledged.
    pub(crate) fn has_sent_all(&self) -> bool {
        self.send_queues
            .iter()
            .all(|queue| queue.handed.is_empty() && self.protocol.all_acknowledged(queue.writer))
    }

    /// Writes the samples that writer handles have handed over, as far as there is room, and deletes the writers. For
    /// each writer, [`send_filed`](Self::send_filed) sends once.
    pub(crate) fn close_send_queues(&mut self) {
        for place in 0..self.send_queues.len() {
            while take_one(self, place) {}
            self.protocol.flush(self.send_queues[place].writer);
            self.send_filed();
        }
        while let Some(queue) = self.send_queues.pop() {
            delete(self, monotonic_now(), &queue);
        }
    }
}

/// Takes frames from the queue of this job, up to the limit. Returns true if there are more.
pub(crate) fn drain(state: &mut State, now: Instant, job: JobId, limit: usize) -> bool {
    let Some(place) = state.send_queues.iter().position(|queue| queue.job == job) else {
        return false;
    };
    let taken = (0..limit).take_while(|_| take_one(state, place)).count();
    state.note_handled(taken);
    state.send_queues[place].relend(&state.io.pool);
    if state.send_queues[place].is_ready() && state.send_queues[place].handed.is_empty() {
        end(state, now, place);
        return false;
    }
    state.send_queues[place].is_ready()
}

/// Takes one frame out of the ring and writes its sample. Returns false if there is none, or its sample cannot be
/// written now.
fn take_one(state: &mut State, place: usize) -> bool {
    let queue = &mut state.send_queues[place];
    let writer = queue.writer;
    let Ok(next) = queue.handed.peek() else {
        return false;
    };
    if let Some(written) = &next.written
        && queue.keeps_all
        && (!state.protocol.has_room(writer, written.sample.key_hash)
            || !state.protocol.has_memory(writer, written.payload.len()))
    {
        state.protocol.request_room_notice(writer);
        queue.parked = true;
        return false;
    }
    let Ok(HandedFrame { frame, written }) = queue.handed.pop() else {
        return false;
    };
    queue.owed += 1;
    let encoding = queue.encoding;
    let frame = state.io.pool.adopt(frame);
    if let Some(written) = written {
        write(state, writer, encoding, frame, written);
    }
    true
}

/// Writes a serialised sample. The protocol counts a sample that cannot be written.
fn write(
    state: &mut State,
    writer: WriterId,
    encoding: Encoding,
    mut frame: Frame,
    written: Written,
) {
    let Written { payload, sample } = written;
    let waits = encoding.staged && !state.protocol.sends_at_once(writer, payload.len());
    if encoding.reliable || waits {
        let bytes = &frame.buffer()[payload];
        if let Ok(slot) = state.protocol.reserve(writer, sample.key_hash, bytes.len()) {
            slot[..bytes.len()].copy_from_slice(bytes);
            // The slot was just reserved with this size.
            let _ = state.protocol.commit(writer, &sample, bytes.len());
        }
        return;
    }
    let buffer = frame.buffer_mut();
    let datagram = state
        .protocol
        .write_best_effort(writer, &sample, buffer, payload);
    if let Ok(datagram) = datagram {
        frame.set_range(datagram);
        state.io.send(
            &state.protocol,
            encoding.lane,
            frame,
            Addresses::Writer(writer),
        );
    }
}

/// Deletes the writer of a dropped publisher with an empty ring, once its readers have everything.
fn end(state: &mut State, now: Instant, place: usize) {
    let queue = &mut state.send_queues[place];
    let ended = *queue.ended.get_or_insert(now);
    let is_awaited = !state.protocol.all_acknowledged(queue.writer) && now < ended + HANDLE_LINGER;
    if is_awaited || now < ended + HANDLE_GRACE {
        // If nothing wakes the queue before, housekeeping does.
        queue.parked = true;
        return;
    }
    let queue = state.send_queues.swap_remove(place);
    delete(state, now, &queue);
}

/// Deletes the writer of a queue that was removed.
fn delete(state: &mut State, now: Instant, queue: &SendQueue) {
    let (writer, lane) = (queue.writer, queue.encoding.lane);
    state
        .io
        .unregister_instances(&mut state.protocol, writer, lane);
    state.protocol.delete_writer(now, writer);
    // A writer handle has no listeners.
    let endpoint = Endpoint::Writer(writer);
    let _ = state
        .listeners
        .clear(&mut state.jobs, &mut state.executor, endpoint);
    state.jobs.remove(&mut state.executor, queue.job);
}
