//! Writers, used on the participant's thread.

pub(crate) mod handle;

use std::{cell::Cell, marker::PhantomData, ops::Range, rc::Rc, time::Duration};

use isolane_datapath::{Class, Frame, Lane, clock::monotonic_now};
use isolane_rtps::{
    ChangeKind, EnableError, Incompatible, LocalParticipant, Priority, WriteSample, WriterId,
    WriterLedger,
};
use isolane_wire::{
    cdr::{CdrError, Representation, TopicType, key_hash, write_key_payload, write_payload},
    level::Level,
    time::{Instant, Timestamp},
};

use crate::{
    error::WriteError,
    instance::unregistered,
    limits::{FLUSHED_DATAGRAMS, MIN_KEY_PAYLOAD_BYTES},
    listener::Endpoint,
    participant::Of,
    participant::event_loop::{BurstBound, Core},
    participant::io::Addresses,
    participant::state::Lanes,
    participant::state::State,
    publisher_subscriber::Publisher,
    qos::Qos,
};

/// DataWriter of one topic (DDS 1.4 §2.2.2.4.2).
///
/// Dropping the handle deletes the writer. Its instances are unregistered and not disposed, and samples that readers
/// have not received yet are lost. To deliver a reliable writer's last samples, call
/// [`wait_for_acknowledgments`](Self::wait_for_acknowledgments) first.
///
/// ```
/// use std::time::Duration;
/// use isolane::{Network, Participant, Qos, TopicType, WriteError};
///
/// #[derive(TopicType)]
/// struct Position { #[topic(key)] robot: u16, x: f32, y: f32 }
///
/// let network = Network::new(1);
/// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
/// let qos = Qos::reliable().keep_all().max_samples(2);
/// let writer = participant.create_writer::<Position>("Positions", &qos)?;
/// let reader = participant.create_reader::<Position>("Positions", &qos)?;
///
/// writer.write(&Position { robot: 1, x: 0.5, y: 2.0 })?;
/// writer.dispose(&Position { robot: 1, x: 0.0, y: 0.0 })?; // only the key counts
/// // The history is full, because nothing was acknowledged yet.
/// let refused = writer.write(&Position { robot: 2, x: 0.0, y: 0.0 });
/// assert!(matches!(refused, Err(WriteError::Protocol(_))));
///
/// assert!(writer.wait_for_acknowledgments(Duration::from_secs(5)));
/// assert_eq!(reader.available(), 2);
/// let ledger = writer.ledger();
/// assert_eq!((ledger.written, ledger.sent, ledger.refused), (2, 2, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DataWriter<T: TopicType> {
    pub(crate) core: Rc<Core>,
    pub(crate) id: WriterId,
    pub(crate) topic: String,
    pub(crate) level: Level,
    pub(crate) encoding: Encoding,
    /// Offset of the payload in a frame.
    payload_begin: usize,
    /// Maximum payload of a single datagram.
    whole_bytes: usize,
    pub(crate) max_blocking: Duration,
    /// Publisher of the writer, if any; the handle keeps it alive.
    pub(crate) publisher: Option<Publisher>,
    pub(crate) autodispose: Cell<bool>,
    of: Of<T>,
}

/// Encoding of a writer's samples, and the lane that sends them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Encoding {
    pub(crate) representation: Representation,
    pub(crate) lane: Lane,
    pub(crate) reliable: bool,
    /// True for a best-effort writer whose samples may be stored before they are sent: some are fragmented or batched.
    pub(crate) staged: bool,
}

impl Encoding {
    pub(crate) fn of<T: TopicType>(qos: &Qos, lanes: Lanes) -> Self {
        let qos = &qos.sized::<T>();
        Self {
            representation: qos.sent(T::EXTENSIBILITY),
            lane: lanes.lane(qos.transport_level()),
            reliable: qos.is_reliable(),
            staged: !qos.is_reliable() && (qos.is_cut() || qos.is_batched()),
        }
    }

    /// Serialises a sample, or only its key for a dispose or unregister.
    pub(crate) fn serialise<T: TopicType>(
        self,
        value: &T,
        kind: ChangeKind,
        out: &mut [u8],
    ) -> Result<usize, CdrError> {
        match kind {
            ChangeKind::Alive => write_payload(value, self.representation, out),
            _ => {
                let length = write_key_payload(value, self.representation, out)?;
                Ok(lengthened(length, out))
            }
        }
    }
}

/// Returns the source time stamp of a write now. The RTPS participant's time may be old, because the loop may not have
/// run recently.
#[inline]
pub(crate) fn now(protocol: &mut LocalParticipant) -> Timestamp {
    let now = monotonic_now();
    protocol.note_time(now);
    protocol.timestamp(now)
}

/// Returns the payload length of a dispose or unregister, after padding a short key with zeros if there is room.
pub(crate) fn lengthened(length: usize, out: &mut [u8]) -> usize {
    match out.get_mut(length..MIN_KEY_PAYLOAD_BYTES) {
        Some(zeros) => {
            zeros.fill(0);
            MIN_KEY_PAYLOAD_BYTES
        }
        None => length,
    }
}

impl<T: TopicType> DataWriter<T> {
    pub(crate) fn new(core: Rc<Core>, id: WriterId, qos: &Qos, topic: &str) -> Self {
        let (encoding, payload_begin) = {
            let state = core.state.borrow();
            (
                Encoding::of::<T>(qos, state.lanes),
                state.io.payload_begin(),
            )
        };
        Self {
            core,
            id,
            topic: topic.into(),
            level: qos.transport_level(),
            encoding,
            payload_begin,
            whole_bytes: qos.sized::<T>().whole_bytes(),
            max_blocking: qos.max_blocking,
            publisher: None,
            autodispose: Cell::new(qos.autodispose),
            of: PhantomData,
        }
    }

    /// Writes a sample. A best-effort sample is sent before this returns. A reliable sample is stored, and the loop
    /// sends it at the topic's priority.
    ///
    /// Samples that are fragmented ([`Qos::max_datagram_bytes`]) are always stored and sent by the loop, and so are
    /// samples written after them.
    ///
    /// # Errors
    /// [`WriteError`]; nothing was written then. The call never waits, unless [`Qos::max_blocking_time`] allows it.
    pub fn write(&self, value: &T) -> Result<(), WriteError> {
        self.write_change(value, ChangeKind::Alive, now)
    }

    /// Disposes the instance of this key (DDS 1.4 §2.2.2.4.2.13).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn dispose(&self, key: &T) -> Result<(), WriteError> {
        self.write_change(key, ChangeKind::Dispose, now)
    }

    /// Unregisters the instance from this writer (§2.2.2.4.2.7), and disposes it unless [`Qos::autodispose`] is off.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn unregister(&self, key: &T) -> Result<(), WriteError> {
        self.write_change(key, unregistered(self.autodispose.get()), now)
    }

    #[inline]
    pub(crate) fn write_change(
        &self,
        value: &T,
        kind: ChangeKind,
        timestamp: impl FnOnce(&mut LocalParticipant) -> Timestamp,
    ) -> Result<(), WriteError> {
        if self.core.is_abandoned() {
            return Err(WriteError::Gone);
        }
        let key = T::KEYED.then(|| key_hash(value)).transpose()?;
        let until = self.may_wait().then(|| {
            let now = monotonic_now();
            let until = now + self.max_blocking;
            self.core.run_from(now, until, || {
                self.core.state.borrow().protocol.has_room(self.id, key)
            });
            until
        });
        let mut state = self.core.state.borrow_mut();
        let sample = WriteSample {
            kind,
            key_hash: key,
            timestamp: timestamp(&mut state.protocol),
        };
        let mut bytes = 0;
        let written = if self.encoding.reliable {
            self.keep(&mut state, value, &sample, &mut bytes)
        } else if self.encoding.staged && state.protocol.keeps_history(self.id) {
            self.stage(&mut state, value, &sample)
        } else {
            self.send(&mut state, value, &sample)
        };
        drop(state);
        written.or_else(|error| match until {
            Some(until) => self.write_again(value, &sample, error, bytes, until),
            None => Err(error.of(value)),
        })
    }

    /// Returns whether a write may wait for room.
    #[inline]
    fn may_wait(&self) -> bool {
        self.encoding.reliable && !self.max_blocking.is_zero() && !self.core.is_running()
    }

    /// Waits for memory for a long sample that found a slot, but no free pages (`isolane_rtps::sample_memory`). The
    /// wait ends when the bytes known to be needed are free; the next attempt may find that the sample needs more.
    #[cold]
    fn write_again(
        &self,
        value: &T,
        sample: &WriteSample,
        mut error: WriteError,
        mut bytes: usize,
        until: Instant,
    ) -> Result<(), WriteError> {
        while error == WriteError::Protocol(isolane_rtps::WriteError::HistoryFull) {
            let now = monotonic_now();
            let has_memory = || {
                let protocol = &mut self.core.state.borrow_mut().protocol;
                protocol.has_room(self.id, sample.key_hash) && protocol.has_memory(self.id, bytes)
            };
            if now >= until || !self.core.run_from(now, until, has_memory) {
                return Err(error);
            }
            let mut state = self.core.state.borrow_mut();
            state.protocol.forget_refused(self.id);
            match self.keep(&mut state, value, sample, &mut bytes) {
                Ok(()) => return Ok(()),
                Err(again) => error = again,
            }
        }
        Err(error.of(value))
    }

    /// Stores a reliable writer's sample in the history; the loop sends it. `bytes` as in
    /// [`fill_slot`](Self::fill_slot).
    fn keep(
        &self,
        state: &mut State,
        value: &T,
        sample: &WriteSample,
        bytes: &mut usize,
    ) -> Result<(), WriteError> {
        let length = self.fill_slot(state, value, sample, bytes)?;
        state.protocol.commit(self.id, sample, length)?;
        Ok(())
    }

    /// Writes a best-effort sample of a topic whose samples may be fragmented. A short sample is sent at once in a
    /// frame, unless a long one is being sent or no frame is free. Any other sample is stored in a slot, and the loop
    /// sends it.
    fn stage(&self, state: &mut State, value: &T, sample: &WriteSample) -> Result<(), WriteError> {
        if state.protocol.sends_at_once(self.id, 0)
            && let Some(mut frame) = state.io.take_frame(self.class_of(state, self.whole_bytes))
        {
            let begin = self.payload_begin;
            let room = &mut frame.buffer_mut()[begin..begin + self.whole_bytes];
            match self.encoding.serialise(value, sample.kind, room) {
                Ok(length) => {
                    return self.send_frame(state, frame, sample, begin..begin + length);
                }
                Err(CdrError::NoRoom) => {}
                Err(error) => return Err(self.refuse(state, error.into())),
            }
        }
        let length = self.fill_slot(state, value, sample, &mut 0)?;
        state.protocol.commit(self.id, sample, length)?;
        self.send_full(state);
        Ok(())
    }

    /// Returns the class of frames that fits a payload of this length.
    fn class_of(&self, state: &State, length: usize) -> Class {
        let head_room = state.io.capabilities.head_room_bytes;
        state
            .io
            .class_for(self.encoding.lane, self.payload_begin - head_room + length)
    }

    /// Serialises a sample into a history slot and returns its length. `bytes` is the lower bound of its size known so
    /// far, 0 for most samples.
    fn fill_slot(
        &self,
        state: &mut State,
        value: &T,
        sample: &WriteSample,
        bytes: &mut usize,
    ) -> Result<usize, WriteError> {
        loop {
            let slot = state.protocol.reserve(self.id, sample.key_hash, *bytes)?;
            let room = slot.len();
            let error = match self.encoding.serialise(value, sample.kind, slot) {
                Ok(length) => return Ok(length),
                Err(error) => error,
            };
            let limit = state.protocol.max_payload_bytes(self.id);
            if error == CdrError::NoRoom && room < limit {
                // Each element takes at least a byte. Reserving for a sample that can never fit would evict older
                // samples in vain.
                let mut least = room + 1;
                value.lengths(&mut |member| least = least.max(member.length));
                if least <= limit {
                    *bytes = least;
                    continue;
                }
            }
            state.protocol.note_refused(self.id);
            return Err(match error {
                CdrError::NoRoom => WriteError::too_large(limit),
                error => error.into(),
            });
        }
    }

    /// Sends a best-effort sample in a frame.
    fn send(&self, state: &mut State, value: &T, sample: &WriteSample) -> Result<(), WriteError> {
        let lane = self.encoding.lane;
        let mut class = Class::Transmit(lane);
        let mut frame;
        let payload = loop {
            frame = match state.io.take_frame(class) {
                Some(frame) => frame,
                None => return Err(self.refuse(state, WriteError::NoFrame)),
            };
            match self.fill(&mut frame, value, sample.kind) {
                Ok(payload) => break payload,
                // A device's frames are small. A sample that does not fit is serialised again into a large frame, which
                // is sent through a socket. A sample larger than `max_bytes` may fit that frame too; the RTPS
                // participant then refuses it.
                Err(CdrError::NoRoom)
                    if class != Class::Oversize(lane)
                        && state.io.pool.capacity(Class::Oversize(lane)) > 0 =>
                {
                    class = Class::Oversize(lane);
                }
                Err(error) => return Err(self.refuse(state, error.into())),
            }
        };
        self.send_frame(state, frame, sample, payload)
    }

    #[inline(always)]
    fn send_frame(
        &self,
        state: &mut State,
        mut frame: Frame,
        sample: &WriteSample,
        payload: Range<usize>,
    ) -> Result<(), WriteError> {
        let buffer = frame.buffer_mut();
        let datagram = state
            .protocol
            .write_best_effort(self.id, sample, buffer, payload)?;
        frame.set_range(datagram);
        state.io.send(
            &state.protocol,
            self.encoding.lane,
            frame,
            Addresses::Writer(self.id),
        );
        Ok(())
    }

    /// Serialises the sample into a frame and returns its range.
    #[inline]
    fn fill(
        &self,
        frame: &mut Frame,
        value: &T,
        kind: ChangeKind,
    ) -> Result<Range<usize>, CdrError> {
        let begin = self.payload_begin;
        let room = &mut frame.buffer_mut()[begin..];
        let length = self.encoding.serialise(value, kind, room)?;
        Ok(begin..begin + length)
    }

    /// Counts a sample that was refused before it reached the RTPS participant.
    #[cold]
    #[inline(never)]
    fn refuse(&self, state: &mut State, error: WriteError) -> WriteError {
        state.protocol.note_refused(self.id);
        error
    }

    /// Sends the samples that this writer has batched because of its [LATENCY_BUDGET](crate::Qos::latency_budget). A
    /// best-effort writer sends them before this returns; a reliable writer leaves that to the loop. Without a budget
    /// this does nothing.
    ///
    /// ```
    /// use std::time::Duration;
    /// use isolane::{Network, Participant, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Trace { value: u32 }
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let qos = Qos::best_effort().latency_budget(Duration::from_secs(1)).keep_last(8);
    /// let writer = participant.create_writer::<Trace>("Traces", &qos)?;
    /// let reader = participant.create_reader::<Trace>("Traces", &qos)?;
    /// for value in 0..3 {
    ///     writer.write(&Trace { value })?;
    /// }
    /// assert_eq!(writer.ledger().pending, 3);
    /// writer.flush();
    /// assert_eq!(writer.ledger().sent, 3); // in one datagram
    /// assert!(participant.run_until(Duration::from_secs(5), || reader.available() == 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush(&self) {
        self.flush_batch(&mut self.core.state.borrow_mut());
    }

    /// Sends the batched samples.
    fn flush_batch(&self, state: &mut State) {
        state.protocol.flush(self.id);
        self.send_full(state);
    }

    /// Sends full datagrams of a best-effort writer before `write` returns.
    fn send_full(&self, state: &mut State) {
        // The loop sends samples that may be fragmented, at a priority below the level's samples.
        if self.encoding.reliable || !state.protocol.sends_whole(self.id) {
            return;
        }
        let priority = Priority::of_data(self.level);
        let mut left = FLUSHED_DATAGRAMS;
        while left > 0 {
            // Equally urgent work of the level's other writers may be queued first; it is sent too.
            let is_under_way = state.io.has_pending(priority);
            if !(is_under_way || state.protocol.is_filed(self.id)) {
                return;
            }
            let bound = BurstBound::LARGEST;
            match state.work(monotonic_now(), priority, left, Some(bound)) {
                0 => return,
                steps => left = left.saturating_sub(steps),
            }
        }
    }

    /// Enables the writer: it is announced and matched. An enabled writer is unchanged.
    ///
    /// # Errors
    /// [`EnableError`]; nothing was changed then.
    pub fn enable(&self) -> Result<(), EnableError> {
        let mut state = self.core.state.borrow_mut();
        state.protocol.enable_writer(monotonic_now(), self.id)
    }

    /// Returns whether the writer is enabled.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.core.state.borrow().protocol.is_writer_enabled(self.id)
    }

    /// Asserts the writer's manual [LIVELINESS](Qos::liveliness) without writing (DDS 1.4 §2.2.2.4.2.22). With
    /// MANUAL_BY_PARTICIPANT this asserts the liveliness of all such writers of the participant.
    pub fn assert_liveliness(&self) {
        let mut state = self.core.state.borrow_mut();
        state.protocol.assert_liveliness(monotonic_now(), self.id);
    }

    /// Returns the number of matched readers that are confirmed to receive all samples written from now on.
    ///
    /// A reliable reader counts from its own first response, a best-effort reader from the first response of its
    /// participant. The status `PUBLICATION_MATCHED` counts readers from the match on.
    #[must_use]
    pub fn matched_readers(&self) -> usize {
        self.core.state.borrow().protocol.matched_readers(self.id)
    }

    /// Returns the last reader whose requested QoS is incompatible with this writer's offer.
    #[must_use]
    pub fn incompatible(&self) -> Option<Incompatible> {
        let state = self.core.state.borrow();
        state.protocol.offered_incompatible(self.id)
    }

    /// Returns the account of all samples on the writer's side.
    #[must_use]
    pub fn ledger(&self) -> WriterLedger {
        let state = self.core.state.borrow();
        state.protocol.writer_ledger(self.id).unwrap_or_default()
    }

    /// Returns whether every matched reliable reader has acknowledged all written samples.
    #[must_use]
    pub fn all_acknowledged(&self) -> bool {
        self.core.state.borrow().protocol.all_acknowledged(self.id)
    }

    /// Runs the loop until all samples are acknowledged (DDS 1.4 §2.2.2.4.2.15), and returns false on a timeout.
    /// Samples delayed by [LATENCY_BUDGET](Qos::latency_budget) are sent first.
    ///
    /// # Panics
    /// Inside a callback of the participant.
    pub fn wait_for_acknowledgments(&self, timeout: Duration) -> bool {
        self.core.state.borrow_mut().protocol.flush(self.id);
        self.core.run_until(timeout, || self.all_acknowledged())
    }
}

impl<T: TopicType> Drop for DataWriter<T> {
    fn drop(&mut self) {
        // The state may be borrowed if a panic inside a step unwinds.
        let Ok(mut borrowed) = self.core.state.try_borrow_mut() else {
            return;
        };
        let state = &mut *borrowed;
        self.flush_batch(state);
        state
            .io
            .unregister_instances(&mut state.protocol, self.id, self.encoding.lane);
        state.protocol.delete_writer(monotonic_now(), self.id);
        let listeners = state.listeners.clear(
            &mut state.jobs,
            &mut state.executor,
            Endpoint::Writer(self.id),
        );
        drop(borrowed);
        // The listeners may own writers, whose deletion borrows the state.
        drop(listeners);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_instance_is_longer_than_a_key_hash() {
        let mut out = [0xff; 64];
        assert_eq!(lengthened(16, &mut out), MIN_KEY_PAYLOAD_BYTES);
        assert_eq!(out[16..MIN_KEY_PAYLOAD_BYTES], [0; 4]);
        assert!(
            out[..16]
                .iter()
                .chain(&out[MIN_KEY_PAYLOAD_BYTES..])
                .all(|byte| *byte == 0xff)
        );
    }

    #[test]
    fn a_long_key_and_one_without_room_stay_as_they_are() {
        assert_eq!(lengthened(24, &mut [0; 64]), 24);
        assert_eq!(lengthened(8, &mut [0; 12]), 8);
    }
}
