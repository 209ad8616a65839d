//! Writing of samples by the user.
//!
//! Best effort: the payload is already in a frame, and [`LocalParticipant::write_best_effort`] adds the heads in front
//! of it. Reliable: [`LocalParticipant::reserve`] lends a slot of the history, [`LocalParticipant::commit`] makes it a
//! change and files its transmission.

use core::ops::Range;

use isolane_wire::{
    cdr::KeyHash,
    guid::EntityId,
    locator::Locator,
    message::{
        DataPrefix, HEADER_BYTES, Header, INFO_TIMESTAMP_BYTES, InfoTimestamp, PayloadKind,
        SAMPLE_PREFIX_BYTES, StatusInfo,
    },
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};
use thiserror::Error;

use crate::{
    participant::{LocalParticipant, Shared},
    slab::WriterId,
    work_queue::Filed,
    writer::{
        Writer, Writers,
        history::{Change, ChangeKind, HistoryFull},
    },
};

/// Metadata of a sample to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteSample {
    /// Value, or end of the instance (the payload is the key).
    pub kind: ChangeKind,
    /// Key hash of the instance; `None` for topics without a key.
    pub key_hash: Option<KeyHash>,
    /// Wall-clock time of the write; LIFESPAN, DEADLINE and LIVELINESS count from it.
    pub timestamp: Timestamp,
}

impl WriteSample {
    /// Returns whether the DATA has inline QoS.
    fn has_inline_qos(&self) -> bool {
        self.kind != ChangeKind::Alive || self.key_hash.is_some()
    }

    /// Returns the sample with a time stamp no earlier than the last one. After a wall clock step back, readers ordered
    /// by source time stamp would drop samples (DDS 1.4 §2.2.3.17).
    fn not_before(&self, last: &mut Timestamp) -> Self {
        *last = self.timestamp.max(*last);
        Self {
            timestamp: *last,
            ..*self
        }
    }
}

/// Reason why a sample was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WriteError {
    /// The writer was deleted.
    #[error("the writer no longer exists")]
    NoSuchWriter,
    /// KEEP_ALL: the history is full of samples that are unacknowledged or unsent. Write later, or raise `max_samples`.
    #[error(
        "the history is full of samples that are not sent yet, or that readers have not acknowledged; write later, or raise max_samples (where samples are long, max_bytes)"
    )]
    HistoryFull,
    /// KEEP_LAST: the instance is new, and every slot belongs to another. Unregister instances, or raise
    /// `max_instances`.
    #[error("every place in the history belongs to another instance; raise max_instances")]
    InstancesFull,
    /// The sample is larger than `max_bytes` of the topic.
    #[error("the sample is larger than the {limit} bytes that this writer takes; raise max_bytes")]
    TooLarge {
        /// Maximum payload size in bytes.
        limit: usize,
    },
    /// The writer or its participant is disabled (ENTITY_FACTORY): enable it first.
    #[error("the writer is not enabled: enable it, and its participant before it")]
    NotEnabled,
    /// The buffer has no room for the heads in front of the payload.
    #[error("the frame has no room for the RTPS heads")]
    NoHeadRoom,
    /// The call is for the other kind of writer: best effort or reliable.
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

impl LocalParticipant {
    /// Returns whether this writer keeps its samples, because it is reliable or until they are sent. It is then written
    /// by [`LocalParticipant::reserve`] and [`LocalParticipant::commit`], otherwise by
    /// [`LocalParticipant::write_best_effort`].
    #[must_use]
    pub fn keeps_history(&self, writer: WriterId) -> bool {
        self.writers
            .table
            .get(writer)
            .is_some_and(|writer| writer.history.is_some())
    }

    /// Returns the maximum payload size in bytes, with the encapsulation header.
    #[must_use]
    pub fn max_payload_bytes(&self, writer: WriterId) -> usize {
        self.writers
            .table
            .get(writer)
            .map_or(0, Writer::payload_limit)
    }

    /// Returns the destinations of first transmissions, sorted.
    #[inline]
    #[must_use]
    pub fn destinations(&self, writer: WriterId) -> &[Locator] {
        self.writers
            .table
            .get(writer)
            .map_or(&[], |writer| &writer.destinations)
    }

    /// Writes the heads of a datagram in front of the payload in `buffer[payload]`; returns the range of the datagram.
    ///
    /// The payload length must be a multiple of four, as made by [`write_payload`](isolane_wire::cdr::write_payload).
    /// There must be [`MAX_HEAD_BYTES`](crate::limits::MAX_HEAD_BYTES) in front of it.
    ///
    /// # Errors
    /// [`WriteError::WrongKind`] for a writer with history, unless it [sends this one at
    /// once](LocalParticipant::sends_at_once); otherwise as named.
    // Always: the one call site in a writer's path has all arguments in registers.
    #[inline(always)]
    pub fn write_best_effort(
        &mut self,
        id: WriterId,
        sample: &WriteSample,
        buffer: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, WriteError> {
        let writer = self
            .writers
            .table
            .get_mut(id)
            .ok_or(WriteError::NoSuchWriter)?;
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
            let head_bytes = put_heads(&self.shared.header, sample.timestamp, &head, length, room)?;
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
            SAMPLE_PREFIX_BYTES
        };
        writer.last = sequence;
        // Nothing is kept, so the sample counts as sent, and no acknowledgement is awaited.
        writer.next_unsent = sequence.next();
        if writer.destinations.is_empty() {
            writer.ledger.unmatched += 1;
        } else {
            writer.ledger.sent += 1;
        }
        if writer.clock.is_some() {
            self.writers.note_written(&mut self.shared, id, sample);
        }
        Ok(payload.start - head_bytes..payload.end)
    }

    /// Returns whether a best-effort writer that keeps its samples until they are sent would send this one at once by
    /// [`LocalParticipant::write_best_effort`]: it fits a datagram, and no sample is queued.
    #[must_use]
    pub fn sends_at_once(&self, id: WriterId, payload_bytes: usize) -> bool {
        let writer = self.writers.table.get(id);
        writer.is_some_and(|writer| writer.history.is_none() || writer.sends_at_once(payload_bytes))
    }

    /// Counts a sample that was refused before it reached the participant.
    pub fn note_refused(&mut self, id: WriterId) {
        if let Some(writer) = self.writers.table.get_mut(id) {
            writer.ledger.refused += 1;
        }
    }

    /// Takes back the count of a refused sample that is tried again.
    pub fn forget_refused(&mut self, id: WriterId) {
        if let Some(writer) = self.writers.table.get_mut(id) {
            writer.ledger.refused = writer.ledger.refused.saturating_sub(1);
        }
    }

    /// Lends room in the history to serialise the next sample of this instance. It has at least `bytes` bytes, or the
    /// size of the longest sample if that is less. If the size is unknown, ask for 0, which is enough for most samples,
    /// and then for one byte more than was lent. Under KEEP_LAST older samples make way for a long one.
    ///
    /// # Errors
    /// [`WriteError::HistoryFull`] or [`WriteError::InstancesFull`]: nothing was written.
    pub fn reserve(
        &mut self,
        id: WriterId,
        key_hash: Option<KeyHash>,
        bytes: usize,
    ) -> Result<&mut [u8], WriteError> {
        self.writers.reserve(id, key_hash, bytes)
    }

    /// Commits the reserved slot, filled with `length` bytes, as the writer's next change, and files its transmission.
    ///
    /// # Errors
    /// [`WriteError::TooLarge`] if `length` is larger than the slot.
    pub fn commit(
        &mut self,
        id: WriterId,
        sample: &WriteSample,
        length: usize,
    ) -> Result<SequenceNumber, WriteError> {
        self.writers.commit(&mut self.shared, id, sample, length)
    }
}

impl Writers {
    pub(crate) fn reserve(
        &mut self,
        id: WriterId,
        key_hash: Option<KeyHash>,
        bytes: usize,
    ) -> Result<&mut [u8], WriteError> {
        let writer = self.table.get_mut(id).ok_or(WriteError::NoSuchWriter)?;
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
                // Equivalent to a replacement.
                Ok(()) if history.remove_oldest() => continue,
                Ok(()) => HistoryFull::Unacknowledged,
            };
            let oldest = history.first_sample();
            let lowest = writer.lowest_unacknowledged();
            let is_replaced = writer.may_replace(lowest) || writer.fragmenter.replaces_unsent;
            match oldest.filter(|_| is_replaced) {
                Some(oldest) if writer.fragmenter.replaces_unsent => {
                    // The sample is counted when it would have been sent.
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

    pub(crate) fn commit(
        &mut self,
        shared: &mut Shared,
        id: WriterId,
        sample: &WriteSample,
        length: usize,
    ) -> Result<SequenceNumber, WriteError> {
        let writer = self.table.get_mut(id).ok_or(WriteError::NoSuchWriter)?;
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
            self.add_to_batch(shared, id, length, sample);
        } else if writer.fragmenter.cuts() {
            self.schedule_first(shared, id);
        } else if !core::mem::replace(&mut writer.data_filed, true) {
            let queue = writer.data_queue();
            shared.schedule(queue, Filed::Data(id));
        }
        if has_clock {
            self.note_written(shared, id, sample);
        }
        if is_marked {
            self.mark_written(id, sequence);
        }
        // The transmission arms the heartbeat: before it, nothing is owed.
        Ok(sequence)
    }
}

/// Writes header, INFO_TS and the head of a DATA to the end of `room`; returns their length.
#[inline(never)]
fn put_heads(
    header: &Header,
    timestamp: Timestamp,
    head: &DataPrefix,
    payload_len: usize,
    room: &mut [u8],
) -> Result<usize, WriteError> {
    let head_bytes = HEADER_BYTES + INFO_TIMESTAMP_BYTES + head.buffer_len();
    let start = room.len().checked_sub(head_bytes);
    let heads = start.and_then(|start| room.get_mut(start..));
    let heads = heads.ok_or(WriteError::NoHeadRoom)?;
    // Constant lengths, so that the compiler removes bounds checks.
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

pub(crate) fn data_head(
    writer: EntityId,
    reader: EntityId,
    sequence: SequenceNumber,
    sample: &WriteSample,
) -> DataPrefix {
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
    DataPrefix {
        reader,
        writer,
        sequence,
        key_hash: sample.key_hash,
        status,
        payload,
    }
}
