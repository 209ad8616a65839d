//! Writers for other threads.
//!
//! A [`RemoteWriter`] and the executor share two wait-free rings: samples on the way in, empty
//! frames on the way back. The publisher serialises into a frame it was lent at creation, hands the
//! frame over, and writes the eventfd only when the loop has said that it sleeps. Nothing is copied
//! for best effort: the frame that was filled is the one that is sent.
//!
//! The order that makes it safe to sleep: the loop sets *sleeping*, then looks at the rings once
//! more; the publisher puts the sample into the ring, then looks at *sleeping*. One of the two sees
//! the other. The publisher that sees it takes it back, so that one sleep costs one system call.
//!
//! A sample that was handed over is as good as written. Where a KEEP_ALL history is full, samples
//! stay in the ring until readers have acknowledged others, and the ring is what is full next; when
//! the writer is dropped, what it handed over is still written, and the endpoint lingers until
//! readers have it, or [`REMOTE_LINGER`] has passed.

use std::{
    marker::PhantomData,
    ops::Range,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering, fence},
    },
};

use isolane_datapath::{
    Class, Frame, Lane, LeasedFrame, Pool,
    clock::{monotonic_now, wall_now_ns},
};
use isolane_engine::{ChangeKind, Priority, WriteSample, WriterId};
use isolane_executor::{JobConfig, JobId};
use isolane_wire::{
    cdr::{CdrError, TopicType, key_hash},
    qos::HistoryKind,
    time::{Instant, Timestamp},
};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::{
    error::{BuildError, WriteError},
    lifecycle::unregistered,
    limits::{REMOTE_GRACE, REMOTE_ITEMS, REMOTE_LINGER, REMOTE_QUEUE},
    listeners::Endpoint,
    participant::{Of, create_writer, frame_limit},
    qos::Qos,
    sending::Addresses,
    state::{State, Task},
    writer::{Encoding, payload_begin},
};

/// A frame on its way to the executor.
struct Handed {
    frame: LeasedFrame,
    /// The sample in it; `None` for a frame that is only given back.
    written: Option<Written>,
}

/// A serialised sample.
struct Written {
    /// Where in the frame the payload lies.
    payload: Range<usize>,
    sample: WriteSample,
}

/// What the two threads share beside the rings.
struct Doorbell {
    sleeping: AtomicBool,
    wake: Arc<OwnedFd>,
}

/// The publisher's end of the doorbell; it rings once more when it is dropped.
struct Bell(Arc<Doorbell>);

impl Bell {
    /// Wakes the loop if it sleeps; what it is to see has been done before.
    fn ring(&self) {
        fence(Ordering::SeqCst);
        let sleeping = &self.0.sleeping;
        if sleeping.load(Ordering::SeqCst) && sleeping.swap(false, Ordering::SeqCst) {
            // It can only fail by overflow, which means that it is readable already.
            let _ = rustix::io::write(&*self.0.wake, &1u64.to_ne_bytes());
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.ring();
    }
}

/// The executor's end.
pub(crate) struct Inlet {
    pub(crate) job: JobId,
    pub(crate) writer: WriterId,
    encoding: Encoding,
    /// Of the frames that are lent.
    class: Class,
    keeps_all: bool,
    handed: Consumer<Handed>,
    empty: Producer<LeasedFrame>,
    bell: Arc<Doorbell>,
    /// Frames that could not be lent again because the pool had none; made up for later.
    owed: usize,
    /// Nothing can be done before the writer's status changes: it has room, or all is acknowledged.
    parked: bool,
    /// Since when the publisher is gone, and all it handed over is written.
    ended: Option<Instant>,
}

impl Inlet {
    /// The lane of its writer.
    pub(crate) fn lane(&self) -> Lane {
        self.encoding.lane
    }

    /// Whether its job has something to do.
    pub(crate) fn is_ready(&self) -> bool {
        !self.parked && (!self.handed.is_empty() || self.handed.is_abandoned())
    }

    /// The writer's status has changed.
    pub(crate) fn wake(&mut self) {
        self.parked = false;
    }

    /// Tells the publisher whether to ring.
    pub(crate) fn set_sleeping(&self, sleeping: bool) {
        self.bell.sleeping.store(sleeping, Ordering::SeqCst);
        if sleeping {
            fence(Ordering::SeqCst);
        }
    }

    /// Lends frames again for those that were handed in.
    pub(crate) fn repay(&mut self, pool: &Pool) {
        while self.owed > 0 && !self.handed.is_abandoned() {
            let Some(frame) = pool.take(self.class) else {
                return;
            };
            // As many places as frames were lent.
            let _ = self.empty.push(frame.into_leased());
            self.owed -= 1;
        }
    }

    /// Frames in the publisher's hands, or on the way to or from there.
    pub(crate) fn lent(&self) -> usize {
        REMOTE_QUEUE - self.owed
    }
}

/// A writer that one other thread uses.
///
/// When it is dropped, what it handed over is still written; the endpoint is deleted within about a
/// second, or where readers have not yet acknowledged everything, within [`REMOTE_LINGER`] and a
/// second.
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
/// let mut writer = participant.create_remote_writer::<Speed>("Speed", &Qos::best_effort())?;
///
/// let publisher = thread::spawn(move || writer.write(&Speed { metres_per_second: 3.5 }));
/// // The loop runs here, and may be asleep when the other thread writes.
/// assert!(participant.run_until(Duration::from_secs(5), || reader.available() == 1));
/// publisher.join().unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RemoteWriter<T: TopicType> {
    // Dropped in this order: the ring is abandoned before the bell rings for the last time.
    handed: Producer<Handed>,
    empty: Consumer<LeasedFrame>,
    /// A frame whose sample could not be serialised; used first.
    spare: Option<LeasedFrame>,
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
) -> Result<RemoteWriter<T>, BuildError> {
    // A sample is handed over in a frame, also one that leaves in fragments.
    let (mut sized, limit) = (qos.sized::<T>(), frame_limit(state));
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
        items: REMOTE_ITEMS,
        ..JobConfig::event(
            &format!("remote writer {topic}"),
            Priority::of_data(qos.transport_level()).get(),
        )
    };
    let job = state.add_job(config, Task::Inlet)?;
    let created = create_writer::<T>(state, topic, qos)
        .and_then(|writer| state.enable_remote(writer).map(|()| writer));
    let writer = created.inspect_err(|_| {
        state.remove_job(job);
    })?;
    let (handed_in, handed_out) = RingBuffer::new(REMOTE_QUEUE);
    let (mut empty_in, empty_out) = RingBuffer::new(REMOTE_QUEUE);
    // A device's frames may be too small for the topic's largest sample.
    let head_room = state.capabilities.head_room_bytes;
    let class = state.class_for(encoding.lane, payload_begin(state) - head_room + max_bytes);
    let leased = state.pool.lease(class, REMOTE_QUEUE);
    let frames = leased.map_err(|error| {
        state.remove_job(job);
        state.engine.delete_writer(monotonic_now(), writer);
        BuildError::Datapath(error.into())
    })?;
    let owed = REMOTE_QUEUE - frames.len();
    for mut frame in frames {
        if state.prefault {
            let begin = payload_begin(state);
            frame.buffer_mut()[..begin + max_bytes].fill(0);
        }
        // As many places as frames.
        let _ = empty_in.push(frame);
    }
    let bell = Arc::new(Doorbell {
        sleeping: AtomicBool::new(true),
        wake: state.waiter.wake_descriptor(),
    });
    state.inlets.push(Inlet {
        job,
        writer,
        encoding,
        class,
        keeps_all: qos.policies().history.kind == HistoryKind::KeepAll,
        handed: handed_out,
        empty: empty_in,
        bell: Arc::clone(&bell),
        owed,
        parked: false,
        ended: None,
    });
    Ok(RemoteWriter {
        handed: handed_in,
        empty: empty_out,
        spare: None,
        bell: Bell(bell),
        encoding,
        begin: payload_begin(state),
        max_bytes,
        autodispose: qos.autodispose,
        of: PhantomData,
    })
}

impl<T: TopicType> RemoteWriter<T> {
    /// Writes a sample: serialises it and hands it to the executor. Never waits:
    /// [`Qos::max_blocking_time`] has no effect here.
    ///
    /// # Errors
    /// [`WriteError::QueueFull`] if the executor is behind, or a KEEP_ALL history is full;
    /// [`WriteError::Gone`] if the participant is. A KEEP_LAST history without room for another
    /// instance is found out later, and counted in the writer's ledger as refused.
    pub fn write(&mut self, value: &T) -> Result<(), WriteError> {
        self.write_change(value, ChangeKind::Alive)
    }

    /// Disposes the instance of this key (DDS 1.4 §2.2.2.4.2.10).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn dispose(&mut self, key: &T) -> Result<(), WriteError> {
        self.write_change(key, ChangeKind::Dispose)
    }

    /// Says that this writer no longer writes the instance (§2.2.2.4.2.7), and, unless
    /// [`Qos::autodispose`] says otherwise, disposes it.
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
        let frame = self.spare.take().or_else(|| self.empty.pop().ok());
        let mut frame = frame.ok_or(WriteError::QueueFull)?;
        let room = &mut frame.buffer_mut()[self.begin..][..self.max_bytes];
        let length = match self.encoding.serialise(value, kind, room) {
            Ok(length) => length,
            Err(error) => {
                self.spare = Some(frame);
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
        // As many places as frames: a frame in hand means there is a place.
        let _ = self.handed.push(Handed { frame, written });
        self.bell.ring();
        Ok(())
    }
}

impl<T: TopicType> Drop for RemoteWriter<T> {
    fn drop(&mut self) {
        // The frames go home the way samples go.
        let empty = std::iter::from_fn(|| self.empty.pop().ok());
        for frame in self.spare.take().into_iter().chain(empty) {
            let written = None;
            let _ = self.handed.push(Handed { frame, written });
        }
    }
}

/// Takes what was handed over to the inlet of this job, up to the limit. True: there is more.
pub(crate) fn drain(state: &mut State, now: Instant, job: JobId, limit: usize) -> bool {
    let Some(place) = state.inlets.iter().position(|inlet| inlet.job == job) else {
        return false;
    };
    let taken = (0..limit).take_while(|_| take_one(state, place)).count();
    state.note_handled(taken);
    state.inlets[place].repay(&state.pool);
    if state.inlets[place].is_ready() && state.inlets[place].handed.is_empty() {
        end(state, now, place);
        return false;
    }
    state.inlets[place].is_ready()
}

/// Takes one frame out of the ring, and writes the sample in it. False: there is none, or none can be
/// written now.
fn take_one(state: &mut State, place: usize) -> bool {
    let inlet = &mut state.inlets[place];
    let writer = inlet.writer;
    let Ok(next) = inlet.handed.peek() else {
        return false;
    };
    if let Some(written) = &next.written
        && inlet.keeps_all
        && (!state.engine.has_room(writer, written.sample.key_hash)
            || !state.engine.has_memory(writer, written.payload.len()))
    {
        state.engine.request_room_notice(writer);
        inlet.parked = true;
        return false;
    }
    let Ok(Handed { frame, written }) = inlet.handed.pop() else {
        return false;
    };
    inlet.owed += 1;
    let encoding = inlet.encoding;
    let frame = state.pool.adopt(frame);
    if let Some(written) = written {
        write(state, writer, encoding, frame, written);
    }
    true
}

/// Writes a serialised sample. What cannot be written is counted by the engine.
fn write(
    state: &mut State,
    writer: WriterId,
    encoding: Encoding,
    mut frame: Frame,
    written: Written,
) {
    let Written { payload, sample } = written;
    let waits = encoding.staged && !state.engine.sends_at_once(writer, payload.len());
    if encoding.reliable || waits {
        let bytes = &frame.buffer()[payload];
        if let Ok(slot) = state.engine.reserve(writer, sample.key_hash, bytes.len()) {
            slot[..bytes.len()].copy_from_slice(bytes);
            // The slot was just reserved, and is as large as the publisher's room.
            let _ = state.engine.commit(writer, &sample, bytes.len());
        }
        return;
    }
    let buffer = frame.buffer_mut();
    let datagram = state
        .engine
        .write_best_effort(writer, &sample, buffer, payload);
    if let Ok(datagram) = datagram {
        frame.set_range(datagram);
        state.send(encoding.lane, frame, Addresses::Writer(writer));
    }
}

/// The publisher is gone and the ring empty: deletes the writer once its readers can have everything.
fn end(state: &mut State, now: Instant, place: usize) {
    let inlet = &mut state.inlets[place];
    let ended = *inlet.ended.get_or_insert(now);
    let is_awaited = !state.engine.all_acknowledged(inlet.writer) && now < ended + REMOTE_LINGER;
    if is_awaited || now < ended + REMOTE_GRACE {
        // Housekeeping wakes it at the latest.
        inlet.parked = true;
        return;
    }
    let inlet = state.inlets.swap_remove(place);
    state.unregister_instances(inlet.writer, inlet.encoding.lane);
    state.engine.delete_writer(now, inlet.writer);
    // A writer of another thread has none.
    let _ = state.clear_listening(Endpoint::Writer(inlet.writer));
    state.remove_job(inlet.job);
}
