//! Writers, on the participant's own thread.

use std::{marker::PhantomData, time::Duration};

use isolane_datapath::{Datapath, Lane, clock::monotonic_now};
use isolane_engine::{
    ChangeKind, Incompatible, WriteSample, WriterId, WriterLedger, limits::MAX_HEAD_BYTES,
};
use isolane_wire::cdr::{
    CdrError, Representation, TopicType, key_hash, write_key_payload, write_payload,
};

use crate::{
    error::WriteError,
    participant::{Of, Participant},
    qos::Qos,
    runtime::{Addresses, State},
};

/// A writer of one topic (DDS 1.4 §2.2.2.4.2). Dropping it deletes it: readers see its instances
/// lose their writer, not disposed.
pub struct DataWriter<T: TopicType> {
    participant: Participant,
    id: WriterId,
    encoding: Encoding,
    max_blocking: Duration,
    of: Of<T>,
}

/// How a writer's samples are laid out, and on which lane they leave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Encoding {
    pub(crate) representation: Representation,
    pub(crate) lane: Lane,
    pub(crate) reliable: bool,
}

impl Encoding {
    pub(crate) fn of(qos: &Qos) -> Self {
        Self {
            representation: qos.representation,
            lane: Lane::Level(qos.transport_level()),
            reliable: qos.is_reliable(),
        }
    }

    /// Serialises a sample, or the key of one.
    pub(crate) fn serialise<T: TopicType>(
        self,
        value: &T,
        kind: ChangeKind,
        out: &mut [u8],
    ) -> Result<usize, CdrError> {
        match kind {
            ChangeKind::Alive => write_payload(value, self.representation, out),
            ChangeKind::Dispose | ChangeKind::Unregister => {
                write_key_payload(value, self.representation, out)
            }
        }
    }
}

impl<T: TopicType> DataWriter<T> {
    pub(crate) fn new(participant: Participant, id: WriterId, qos: &Qos) -> Self {
        let encoding = Encoding::of(qos);
        Self {
            participant,
            id,
            encoding,
            max_blocking: qos.max_blocking,
            of: PhantomData,
        }
    }

    /// Writes a sample. Best effort: it is sent before this returns. Reliable: it is kept, and sent by
    /// the loop at the topic's priority.
    ///
    /// # Errors
    /// [`WriteError`]; nothing of it was written then. Never waits, unless the QoS allows it
    /// ([`Qos::max_blocking_time`]).
    pub fn write(&self, value: &T) -> Result<(), WriteError> {
        self.write_change(value, ChangeKind::Alive)
    }

    /// Disposes the instance of this key (DDS 1.4 §2.2.2.4.2.10).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn dispose(&self, key: &T) -> Result<(), WriteError> {
        self.write_change(key, ChangeKind::Dispose)
    }

    /// Says that this writer no longer writes the instance (§2.2.2.4.2.7).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn unregister(&self, key: &T) -> Result<(), WriteError> {
        self.write_change(key, ChangeKind::Unregister)
    }

    fn write_change(&self, value: &T, kind: ChangeKind) -> Result<(), WriteError> {
        let core = &self.participant.core;
        let key = if T::KEYED {
            Some(key_hash(value)?)
        } else {
            None
        };
        let must_wait = !self.max_blocking.is_zero() && !core.running.get();
        if must_wait && self.encoding.reliable {
            self.participant.run_until(self.max_blocking, || {
                core.state.borrow().engine.has_room(self.id, key)
            });
        }
        let mut state = core.state.borrow_mut();
        let now = monotonic_now();
        let timestamp = state.engine.timestamp(now);
        let sample = WriteSample {
            kind,
            key_hash: key,
            timestamp,
        };
        if self.encoding.reliable {
            let slot = state.engine.reserve(self.id, key)?;
            let length = self.encoding.serialise(value, kind, slot)?;
            state.engine.commit(now, self.id, &sample, length)?;
            return Ok(());
        }
        let state = &mut *state;
        let mut frame = state
            .transport
            .pool()
            .take(self.encoding.lane)
            .ok_or(WriteError::NoFrame)?;
        let begin = payload_begin(state);
        let room = frame
            .buffer_mut()
            .get_mut(begin..)
            .ok_or(WriteError::NoFrame)?;
        let length = self.encoding.serialise(value, kind, room)?;
        let datagram = state.engine.write_best_effort(
            self.id,
            &sample,
            frame.buffer_mut(),
            begin..begin + length,
        )?;
        frame.set_range(datagram);
        state.send(self.encoding.lane, frame, Addresses::Writer(self.id));
        Ok(())
    }

    /// Readers matched now.
    #[must_use]
    pub fn matched_readers(&self) -> usize {
        self.participant
            .core
            .state
            .borrow()
            .engine
            .matched_readers(self.id)
    }

    /// The last reader that requested more than this writer offers.
    #[must_use]
    pub fn incompatible(&self) -> Option<Incompatible> {
        self.participant
            .core
            .state
            .borrow()
            .engine
            .offered_incompatible(self.id)
    }

    /// What became of its samples on this side.
    #[must_use]
    pub fn ledger(&self) -> WriterLedger {
        let state = self.participant.core.state.borrow();
        state.engine.writer_ledger(self.id).unwrap_or_default()
    }

    /// Whether every matched reliable reader has acknowledged all that was written.
    #[must_use]
    pub fn all_acknowledged(&self) -> bool {
        self.participant
            .core
            .state
            .borrow()
            .engine
            .all_acknowledged(self.id)
    }

    /// Runs the loop until all is acknowledged (DDS 1.4 §2.2.2.4.1.12); false: not in time.
    ///
    /// # Panics
    /// Inside a callback of the participant.
    pub fn wait_for_acknowledgments(&self, timeout: Duration) -> bool {
        self.participant
            .run_until(timeout, || self.all_acknowledged())
    }
}

impl<T: TopicType> Drop for DataWriter<T> {
    fn drop(&mut self) {
        self.participant.delete_writer(self.id);
    }
}

/// Where a payload begins in a frame: behind what the datapath and RTPS put in front of it.
pub(crate) fn payload_begin(state: &State) -> usize {
    state.transport.capabilities().head_room_bytes + MAX_HEAD_BYTES
}
