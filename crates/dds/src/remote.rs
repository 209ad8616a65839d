//! Writers for other threads.
//!
//! A [`RemoteWriter`] and the executor share two wait-free rings: samples on the way in, empty
//! frames on the way back. The publisher serialises into a frame it was lent at creation, hands the frame over,
//! and writes the eventfd only when the loop has said that it sleeps. Nothing is copied for best
//! effort: the frame that was filled is the one that is sent.
//!
//! The order that makes it safe to sleep: the loop sets *sleeping*, then looks at the rings once
//! more; the publisher puts the sample into the ring, then looks at *sleeping*. One of the two sees
//! the other.

use std::{
    marker::PhantomData,
    os::fd::OwnedFd,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering, fence},
    },
};

use isolane_datapath::{Datapath, LeasedFrame, clock::wall_now_ns};
use isolane_engine::{ChangeKind, Priority, WriteSample, WriterId};
use isolane_executor::{JobConfig, JobId};
use isolane_wire::{
    cdr::{TopicType, key_hash},
    time::{Instant, Timestamp},
};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::{
    error::{BuildError, WriteError},
    limits::{REMOTE_ITEMS, REMOTE_QUEUE},
    participant::{Of, Participant},
    qos::Qos,
    runtime::{Addresses, Core, Task},
    writer::{Encoding, payload_begin},
};

/// A sample on its way to the executor.
struct Handed {
    frame: LeasedFrame,
    /// Where in the frame the payload lies.
    payload: std::ops::Range<usize>,
    sample: WriteSample,
}

/// What the two threads share beside the rings.
struct Doorbell {
    sleeping: AtomicBool,
    wake: Arc<OwnedFd>,
}

/// The executor's end.
pub(crate) struct Inlet {
    pub(crate) job: JobId,
    writer: WriterId,
    encoding: Encoding,
    handed: Consumer<Handed>,
    empty: Producer<LeasedFrame>,
    bell: Arc<Doorbell>,
    /// Frames that could not be lent again because the pool had none; made up for later.
    owed: usize,
}

impl Inlet {
    pub(crate) fn has_samples(&self) -> bool {
        !self.handed.is_empty()
    }

    /// The publisher is gone, and all it handed over is taken: the endpoint to delete.
    pub(crate) fn ended(&self) -> Option<WriterId> {
        (self.handed.is_abandoned() && self.handed.is_empty()).then_some(self.writer)
    }

    pub(crate) fn set_sleeping(&self, sleeping: bool) {
        self.bell.sleeping.store(sleeping, Ordering::SeqCst);
        if sleeping {
            fence(Ordering::SeqCst);
        }
    }
}

/// A writer that one other thread uses. When it is dropped, the participant's housekeeping deletes
/// the endpoint, within about a second.
pub struct RemoteWriter<T: TopicType> {
    handed: Producer<Handed>,
    empty: Consumer<LeasedFrame>,
    bell: Arc<Doorbell>,
    encoding: Encoding,
    begin: usize,
    max_bytes: usize,
    of: Of<T>,
}

pub(crate) fn create<T: TopicType>(
    participant: &Participant,
    writer: WriterId,
    topic: &str,
    qos: &Qos,
) -> Result<RemoteWriter<T>, BuildError> {
    let mut state = participant.core.state.borrow_mut();
    let encoding = Encoding::of(qos);
    let frames = state.transport.pool().lease(encoding.lane, REMOTE_QUEUE);
    let (handed_in, handed_out) = RingBuffer::new(REMOTE_QUEUE);
    let (mut empty_in, empty_out) = RingBuffer::new(REMOTE_QUEUE);
    for frame in frames {
        if empty_in.push(frame).is_err() {
            unreachable!("the ring was made for as many");
        }
    }
    let bell = Arc::new(Doorbell {
        sleeping: AtomicBool::new(true),
        wake: state.waiter.wake_descriptor(),
    });
    let index = state.inlets.len() as u16;
    let name = format!("remote writer {topic}");
    let priority = Priority::of_data(qos.transport_level());
    let config = JobConfig {
        items: REMOTE_ITEMS,
        ..JobConfig::event(&name, priority.get())
    };
    let job = state.add_job(config, Task::Inlet(index))?;
    let begin = payload_begin(&state);
    state.inlets.push(Inlet {
        job,
        writer,
        encoding,
        handed: handed_out,
        empty: empty_in,
        bell: Arc::clone(&bell),
        owed: 0,
    });
    Ok(RemoteWriter {
        handed: handed_in,
        empty: empty_out,
        bell,
        encoding,
        begin,
        max_bytes: qos.max_bytes,
        of: PhantomData,
    })
}

impl<T: TopicType> RemoteWriter<T> {
    /// Writes a sample: serialises it and hands it to the executor.
    ///
    /// # Errors
    /// [`WriteError::QueueFull`] if the executor is behind. What goes wrong later (a full
    /// history) is counted in the writer's ledger as refused.
    pub fn write(&mut self, value: &T) -> Result<(), WriteError> {
        self.write_change(value, ChangeKind::Alive)
    }

    /// Disposes the instance of this key.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn dispose(&mut self, key: &T) -> Result<(), WriteError> {
        self.write_change(key, ChangeKind::Dispose)
    }

    fn write_change(&mut self, value: &T, kind: ChangeKind) -> Result<(), WriteError> {
        if self.handed.is_abandoned() {
            return Err(WriteError::Gone);
        }
        let key = if T::KEYED {
            Some(key_hash(value)?)
        } else {
            None
        };
        let timestamp = Timestamp::from_nanos(wall_now_ns());
        let mut frame = self.empty.pop().map_err(|_| WriteError::QueueFull)?;
        let room = &mut frame.buffer_mut()[self.begin..][..self.max_bytes];
        let length = match self.encoding.serialise(value, kind, room) {
            Ok(length) => length,
            Err(error) => {
                // The frame stays with this thread: it goes to the back of the ring of empty
                // ones by way of the executor, as a sample of length 0.
                let sample = WriteSample {
                    kind,
                    key_hash: key,
                    timestamp,
                };
                let _ = self.handed.push(Handed {
                    frame,
                    payload: 0..0,
                    sample,
                });
                return Err(error.into());
            }
        };
        let sample = WriteSample {
            kind,
            key_hash: key,
            timestamp,
        };
        let payload = self.begin..self.begin + length;
        // As many places as frames: a frame in hand means there is a place.
        let _ = self.handed.push(Handed {
            frame,
            payload,
            sample,
        });
        fence(Ordering::SeqCst);
        if self.bell.sleeping.load(Ordering::SeqCst) {
            // It can only fail by overflow, which means that it is readable already.
            let _ = rustix::io::write(&*self.bell.wake, &1u64.to_ne_bytes());
        }
        Ok(())
    }
}

/// Takes handed-over samples, up to the job's limit. True: there are more.
pub(crate) fn drain(core: &Rc<Core>, now: Instant, index: u16) -> bool {
    let mut guard = core.state.borrow_mut();
    let state = &mut *guard;
    for _ in 0..REMOTE_ITEMS {
        let inlet = &mut state.inlets[usize::from(index)];
        let Ok(Handed {
            frame,
            payload,
            sample,
        }) = inlet.handed.pop()
        else {
            return false;
        };
        let (writer, encoding) = (inlet.writer, inlet.encoding);
        let mut frame = state.transport.pool().adopt(frame);
        if payload.is_empty() {
            drop(frame);
        } else if encoding.reliable {
            let copied = state.engine.reserve(writer, sample.key_hash).map(|slot| {
                let bytes = &frame.buffer()[payload.clone()];
                slot[..bytes.len()].copy_from_slice(bytes);
            });
            if copied.is_ok() {
                // The slot was just reserved, and takes what the writer was created with.
                let _ = state.engine.commit(now, writer, &sample, payload.len());
            }
            drop(frame);
        } else {
            let datagram =
                state
                    .engine
                    .write_best_effort(writer, &sample, frame.buffer_mut(), payload);
            if let Ok(datagram) = datagram {
                frame.set_range(datagram);
                state.send(encoding.lane, frame, Addresses::Writer(writer));
            }
        }
        let inlet = &mut state.inlets[usize::from(index)];
        inlet.owed += 1;
        while inlet.owed > 0 {
            let Some(frame) = state.transport.pool().take(encoding.lane) else {
                break;
            };
            let _ = inlet.empty.push(frame.into_leased());
            inlet.owed -= 1;
        }
    }
    state.inlets[usize::from(index)].has_samples()
}
