//! The way in from the user: samples to be written.
//!
//! Best effort: the payload is already in a frame, [`Engine::write_best_effort`] puts the heads in
//! front of it. Reliable: [`Engine::reserve`] lends a slot of the history, [`Engine::commit`] makes
//! it a change and files its transmission.

use core::ops::Range;

use isolane_wire::{
    cdr::KeyHash,
    guid::EntityId,
    locator::Locator,
    rtps::{
        DataHead, HEADER_BYTES, Header, INFO_TIMESTAMP_BYTES, InfoTimestamp, PayloadKind,
        SAMPLE_HEAD_BYTES, StatusInfo,
    },
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};
use thiserror::Error;

use crate::{
    engine::Engine,
    history::{Change, ChangeKind, HistoryFull},
    ids::WriterId,
    work::WorkKind,
    writer::Writer,
};

/// A sample to be written, beside its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteSample {
    /// A sample, or the end of its instance (then the payload is the key).
    pub kind: ChangeKind,
    /// The instance; `None` for topics without a key.
    pub key_hash: Option<KeyHash>,
    /// When it was written, by the wall clock: from then on LIFESPAN, DEADLINE and LIVELINESS count.
    pub timestamp: Timestamp,
}

impl WriteSample {
    /// Whether something is to be sent along in inline QoS.
    fn has_inline_qos(&self) -> bool {
        self.kind != ChangeKind::Alive || self.key_hash.is_some()
    }

    /// The same, written no earlier than the last one: a wall clock can go back, and readers that go by time
    /// stamps would drop what it says meanwhile (DDS 1.4 §2.2.3.17).
    fn not_before(&self, last: &mut Timestamp) -> Self {
        *last = self.timestamp.max(*last);
        Self {
            timestamp: *last,
            ..*self
        }
    }
}

/// Why a sample was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WriteError {
    /// The writer was deleted.
    #[error("the writer no longer exists")]
    NoSuchWriter,
    /// KEEP_ALL: readers have not yet acknowledged what fills the history, or it is not yet sent. Write later, or
    /// make `max_samples` larger.
    #[error(
        "the history is full of samples that are not sent yet, or that readers have not acknowledged; write later, or raise max_samples (where samples are long, max_bytes)"
    )]
    HistoryFull,
    /// KEEP_LAST: a new instance, and every place belongs to another. Unregister instances, or
    /// make `max_instances` larger.
    #[error("every place in the history belongs to another instance; raise max_instances")]
    InstancesFull,
    /// Larger than `max_bytes` of the topic.
    #[error("the sample is larger than the {limit} bytes that this writer takes; raise max_bytes")]
    TooLarge {
        /// The bound.
        limit: usize,
    },
    /// It is not enabled, or its participant is not (ENTITY_FACTORY): enable it first.
    #[error("the writer is not enabled: enable it, and its participant before it")]
    NotEnabled,
    /// The buffer has no room for the heads in front of the payload.
    #[error("the frame has no room for the RTPS heads")]
    NoHeadRoom,
    /// The other kind of writer is meant: best effort or reliable.
    #[error("this call is for the other kind of writer")]
    WrongKind,
}

impl From<HistoryFull> for WriteError {
    fn from(full: HistoryFull) -> Self {
        match full {
            HistoryFull::Unacknowledged => Self::HistoryFull,
            HistoryFull::Instances => Self::InstancesFull,
        }
    }
}

impl Engine {
    /// Whether this writer keeps its samples, reliable or until they are sent: it is written by
    /// [`Self::reserve`] and [`Self::commit`], else by [`Self::write_best_effort`].
    #[must_use]
    pub fn keeps_history(&self, writer: WriterId) -> bool {
        self.writers
            .get(writer.0)
            .is_some_and(|writer| writer.history.is_some())
    }

    /// The largest payload this writer takes, with its encapsulation header.
    #[must_use]
    pub fn max_payload_bytes(&self, writer: WriterId) -> usize {
        self.writers.get(writer.0).map_or(0, Writer::payload_limit)
    }

    /// Where first transmissions of this writer go, in the order of the addresses.
    #[inline]
    #[must_use]
    pub fn destinations(&self, writer: WriterId) -> &[Locator] {
        self.writers
            .get(writer.0)
            .map_or(&[], |writer| &writer.destinations)
    }

    /// Puts the heads of a datagram in front of a payload that already lies in
    /// `buffer[payload]`, and returns where in the buffer the datagram lies.
    ///
    /// The payload's length must be a multiple of four, as
    /// [`write_payload`](isolane_wire::cdr::write_payload) makes it, and there must be
    /// [`MAX_HEAD_BYTES`](crate::limits::MAX_HEAD_BYTES) in front of it.
    ///
    /// # Errors
    /// [`WriteError::WrongKind`] for a writer with history, unless it [sends this one at
    /// once](Self::sends_at_once); otherwise as named.
    // Always: there is one place for it in a writer's path, and its arguments are all at hand there.
    #[inline(always)]
    pub fn write_best_effort(
        &mut self,
        id: WriterId,
        sample: &WriteSample,
        buffer: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, WriteError> {
        let writer = self.writers.get_mut(id.0).ok_or(WriteError::NoSuchWriter)?;
        let length = payload.len();
        if writer.history.is_some() && !writer.sends_at_once(length) {
            return Err(WriteError::WrongKind);
        }
        if length > writer.max_payload_bytes {
            writer.ledger.refused += 1;
            return Err(writer.why_too_large());
        }
        let stamped;
        let sample = match &mut writer.last_stamp {
            None => sample,
            Some(last) => {
                stamped = sample.not_before(last);
                &stamped
            }
        };
        let sequence = writer.last.next();
        let room = buffer
            .get_mut(..payload.start)
            .ok_or(WriteError::NoHeadRoom)?;
        let head_bytes = if sample.has_inline_qos() {
            let entity = writer.guid.entity;
            let head = data_head(entity, EntityId::UNKNOWN, sequence, sample);
            let head_bytes = put_heads(&self.header, sample.timestamp, &head, length, room)?;
            if let Some(registered) = &mut writer.registered
                && !registered.knows(sample)
            {
                let payload = buffer.get(payload.clone()).unwrap_or_default();
                registered.note(sample, payload);
            }
            head_bytes
        } else {
            let heads = room.last_chunk_mut().ok_or(WriteError::NoHeadRoom)?;
            let timestamp = sample.timestamp;
            writer.head.emit(heads, timestamp, sequence, length);
            SAMPLE_HEAD_BYTES
        };
        writer.last = sequence;
        // Nothing is kept: it counts as sent, and nobody is waited for.
        writer.next_unsent = sequence.next();
        if writer.destinations.is_empty() {
            writer.ledger.unmatched += 1;
        } else {
            writer.ledger.sent += 1;
        }
        if writer.clock.is_some() {
            self.note_written(id.0, sample);
        }
        Ok(payload.start - head_bytes..payload.end)
    }

    /// Whether a best-effort writer that keeps its samples until they are sent would send this one at once,
    /// by [`Self::write_best_effort`]: it fits a datagram, and none waits before it.
    #[must_use]
    pub fn sends_at_once(&self, id: WriterId, payload_bytes: usize) -> bool {
        let writer = self.writers.get(id.0);
        writer.is_some_and(|writer| writer.history.is_none() || writer.sends_at_once(payload_bytes))
    }

    /// Counts a sample that could not be written before it came to the engine.
    pub fn note_refused(&mut self, id: WriterId) {
        if let Some(writer) = self.writers.get_mut(id.0) {
            writer.ledger.refused += 1;
        }
    }

    /// A refused sample is tried again, and not counted.
    pub fn forget_refused(&mut self, id: WriterId) {
        if let Some(writer) = self.writers.get_mut(id.0) {
            writer.ledger.refused = writer.ledger.refused.saturating_sub(1);
        }
    }

    /// Lends room of the history to serialise the next sample of this instance into: at least so many bytes, or as many
    /// as the longest sample has if that is fewer. Who does not know how many asks for 0, which is room for most, and
    /// for one more than was lent when that was not enough. Under KEEP_LAST older samples give way where a long one
    /// finds no room.
    ///
    /// # Errors
    /// [`WriteError::HistoryFull`] or [`WriteError::InstancesFull`]: nothing was written.
    pub fn reserve(
        &mut self,
        id: WriterId,
        key_hash: Option<KeyHash>,
        bytes: usize,
    ) -> Result<&mut [u8], WriteError> {
        let writer = self.writers.get_mut(id.0).ok_or(WriteError::NoSuchWriter)?;
        if writer.history.is_some() && !writer.is_enabled() {
            writer.ledger.refused += 1;
            return Err(WriteError::NotEnabled);
        }
        loop {
            let history = writer.history.as_mut().ok_or(WriteError::WrongKind)?;
            let full = match history.room_for(key_hash) {
                Err(full) => full,
                Ok(()) if history.fits(bytes) => break,
                Ok(()) if history.keeps_all() => HistoryFull::Unacknowledged,
                // As if it had been replaced.
                Ok(()) if history.remove_oldest() => continue,
                Ok(()) => HistoryFull::Unacknowledged,
            };
            let oldest = history.first_sample();
            let lowest = writer.lowest_unacknowledged();
            let is_replaced = writer.may_replace(lowest) || writer.fragmenter.replaces_unsent;
            match oldest.filter(|_| is_replaced) {
                Some(oldest) if writer.fragmenter.replaces_unsent => {
                    // It is counted when its turn would have come.
                    if let Some(history) = &mut writer.history {
                        history.remove(oldest);
                    }
                }
                Some(oldest) => {
                    writer.ledger.replaced += 1;
                    if let Some(history) = &mut writer.history {
                        history.remove(oldest);
                    }
                }
                None => {
                    writer.ledger.refused += 1;
                    writer.wants_room = true;
                    return Err(full.into());
                }
            }
        }
        let history = writer.history.as_mut().ok_or(WriteError::WrongKind)?;
        Ok(history.reserve(key_hash, bytes)?)
    }

    /// Makes the reserved slot, filled with `length` bytes, the writer's next change, and files
    /// its transmission.
    ///
    /// # Errors
    /// [`WriteError::TooLarge`] if `length` is larger than the slot.
    pub fn commit(
        &mut self,
        id: WriterId,
        sample: &WriteSample,
        length: usize,
    ) -> Result<SequenceNumber, WriteError> {
        let writer = self.writers.get_mut(id.0).ok_or(WriteError::NoSuchWriter)?;
        let history = writer.history.as_mut().ok_or(WriteError::WrongKind)?;
        if length > history.max_bytes() {
            writer.ledger.refused += 1;
            return Err(WriteError::TooLarge {
                limit: history.max_bytes(),
            });
        }
        let stamped;
        let sample = match &mut writer.last_stamp {
            None => sample,
            Some(last) => {
                stamped = sample.not_before(last);
                &stamped
            }
        };
        let sequence = writer.last.next();
        history.commit(Change {
            sequence,
            kind: sample.kind,
            key_hash: sample.key_hash,
            timestamp: sample.timestamp,
            written: Instant::new(0),
            length: length as u32,
        });
        writer.last = sequence;
        if let Some(registered) = &mut writer.registered
            && !registered.knows(sample)
            && let Some((_, payload)) = history.get(sequence)
        {
            registered.note(sample, payload);
        }
        let (has_clock, is_marked) = (writer.clock.is_some(), writer.presents.is_some());
        if writer.batch.is_some() {
            self.add_to_batch(id.0, length, sample);
        } else if writer.fragmenter.cuts() {
            self.file_first(id.0);
        } else if !core::mem::replace(&mut writer.data_filed, true) {
            let priority = writer.data_priority();
            self.file(priority, WorkKind::Data, id.0);
        }
        if has_clock {
            self.note_written(id.0, sample);
        }
        if is_marked {
            self.mark_written(id.0, sequence);
        }
        // Nothing is owed before it is sent: the heartbeat is armed then.
        Ok(sequence)
    }
}

/// Writes header, INFO_TS and the head of a DATA to the end of `room`; returns how many bytes.
#[inline(never)]
fn put_heads(
    header: &Header,
    timestamp: Timestamp,
    head: &DataHead,
    payload_len: usize,
    room: &mut [u8],
) -> Result<usize, WriteError> {
    let head_bytes = HEADER_BYTES + INFO_TIMESTAMP_BYTES + head.buffer_len();
    let start = room.len().checked_sub(head_bytes);
    let heads = start.and_then(|start| room.get_mut(start..));
    let heads = heads.ok_or(WriteError::NoHeadRoom)?;
    // Of lengths that the compiler knows, so that what writes into them checks nothing.
    let (header_room, rest) = heads
        .split_first_chunk_mut::<HEADER_BYTES>()
        .ok_or(WriteError::NoHeadRoom)?;
    let (info_room, head_room) = rest
        .split_first_chunk_mut::<INFO_TIMESTAMP_BYTES>()
        .ok_or(WriteError::NoHeadRoom)?;
    header.emit(header_room);
    InfoTimestamp(Some(timestamp)).emit(info_room);
    head.emit(head_room, payload_len);
    Ok(head_bytes)
}

/// The head of a DATA for this sample.
pub(crate) fn data_head(
    writer: EntityId,
    reader: EntityId,
    sequence: SequenceNumber,
    sample: &WriteSample,
) -> DataHead {
    let ended = |disposed, unregistered| {
        let status = StatusInfo {
            disposed,
            unregistered,
        };
        (PayloadKind::Key, Some(status))
    };
    let (payload, status) = match sample.kind {
        ChangeKind::Alive => (PayloadKind::Data, None),
        ChangeKind::Dispose => ended(true, false),
        ChangeKind::Unregister => ended(false, true),
        ChangeKind::DisposeAndUnregister => ended(true, true),
    };
    DataHead {
        reader,
        writer,
        sequence,
        key_hash: sample.key_hash,
        status,
        payload,
    }
}
