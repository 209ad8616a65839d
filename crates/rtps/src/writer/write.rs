//! Writing of samples, and their first transmission.
//!
//! Best effort: the payload is already in a frame, and [`LocalParticipant::write_best_effort`] adds the heads in front
//! of it. Reliable: [`LocalParticipant::reserve`] lends a slot of the history. [`LocalParticipant::commit`] makes it a
//! change and files its first transmission to all readers.
//!
//! Waiting samples share a datagram, as many as fit into one Ethernet frame. No sample is delayed for that unless
//! LATENCY_BUDGET allows it.

use core::ops::Range;

use isolane_wire::{
    BufferTooSmall,
    cdr::KeyHash,
    guid::EntityId,
    locator::Locator,
    message::{
        CoherentSetInfo, DataPrefix, Gap, HEADER_BYTES, HEARTBEAT_BYTES, Header,
        INFO_TIMESTAMP_BYTES, InfoTimestamp, MessageWriter, PayloadKind, SAMPLE_PREFIX_BYTES,
        StatusInfo,
    },
    sequence::{SequenceNumber, SequenceNumberSet},
    time::{Instant, Timestamp},
};
use thiserror::Error;

use crate::{
    coherent_access::head_of,
    participant::{LocalParticipant, Shared},
    slab::WriterId,
    timed_qos::Expired,
    work::{Filed, Work, WorkKind},
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
    /// Returns whether this writer keeps samples: a reliable writer in its history, a best-effort one until they are
    /// sent. It is then written by [`LocalParticipant::reserve`] and [`LocalParticipant::commit`], otherwise by
    /// [`LocalParticipant::write_best_effort`].
    #[must_use]
    pub fn keeps_history(&self, writer: WriterId) -> bool {
        self.writers
            .get(writer)
            .is_some_and(|writer| writer.history.is_some())
    }

    /// Returns the maximum payload size in bytes, with the encapsulation header.
    #[must_use]
    pub fn max_payload_bytes(&self, writer: WriterId) -> usize {
        self.writers.get(writer).map_or(0, Writer::payload_limit)
    }

    /// Returns the destinations of first transmissions, sorted.
    #[inline]
    #[must_use]
    pub fn destinations(&self, writer: WriterId) -> &[Locator] {
        self.writers
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
    // Inlined always: the one call site in a writer's path has all arguments in registers.
    #[inline(always)]
    pub fn write_best_effort(
        &mut self,
        id: WriterId,
        sample: &WriteSample,
        buffer: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, WriteError> {
        let writer = self.writers.get_mut(id).ok_or(WriteError::NoSuchWriter)?;
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
        let writer = self.writers.get(id);
        writer.is_some_and(|writer| writer.history.is_none() || writer.sends_at_once(payload_bytes))
    }

    /// Counts a sample that was refused before it reached the participant.
    pub fn note_refused(&mut self, id: WriterId) {
        if let Some(writer) = self.writers.get_mut(id) {
            writer.ledger.refused += 1;
        }
    }

    /// Takes back the count of a refused sample that is tried again.
    pub fn forget_refused(&mut self, id: WriterId) {
        if let Some(writer) = self.writers.get_mut(id) {
            writer.ledger.refused = writer.ledger.refused.saturating_sub(1);
        }
    }

    /// Returns whether a transmission of this writer is filed.
    #[must_use]
    pub fn is_filed(&self, writer: WriterId) -> bool {
        let writer = self.writers.get(writer);
        writer.is_some_and(|writer| writer.data_filed)
    }

    /// Returns whether all samples of a writer are sent as one DATA each.
    #[must_use]
    pub fn sends_whole(&self, writer: WriterId) -> bool {
        let writer = self.writers.get(writer);
        writer.is_some_and(|writer| !writer.fragmenter.cuts())
    }

    /// Lends room in the history to serialise the next sample of this instance. It has at least `bytes` bytes, or the
    /// size of the longest sample if that is less. If the size is unknown, ask for 0, which is enough for most samples.
    /// If it is not enough, ask for one byte more than was lent. Under KEEP_LAST older samples make way for a long one.
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
                // The removal counts as a replacement (KEEP_LAST).
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
            start: writer.written_bytes,
        });
        writer.written_bytes += length as u64;
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
        // The transmission arms the heartbeat timer; before it, no HEARTBEAT is due.
        Ok(sequence)
    }
}

/// Next sample to send, with a GAP for removed samples before it.
pub(crate) struct Unsent<'a> {
    gone: Option<Gap>,
    pub(crate) sequence: SequenceNumber,
    pub(crate) kind: ChangeKind,
    pub(crate) timestamp: Timestamp,
    head: DataPrefix,
    mark: Option<&'a CoherentSetInfo>,
    pub(crate) payload: &'a [u8],
}

impl Unsent<'_> {
    /// Maximum size in bytes of the sample when it is appended to others in a message.
    pub(crate) fn bytes(&self) -> usize {
        let gap_bytes = self.gone.as_ref().map_or(0, Gap::buffer_len);
        let head_bytes = match self.mark {
            None => self.head.buffer_len(),
            Some(mark) => self.head.len_with_set(mark),
        };
        let data_bytes = head_bytes + self.payload.len().next_multiple_of(4);
        gap_bytes + INFO_TIMESTAMP_BYTES + data_bytes
    }

    /// Appends the sample. `last` is the timestamp currently in force in the message.
    pub(crate) fn emit(
        &self,
        message: &mut MessageWriter<'_>,
        last: Option<Timestamp>,
    ) -> Result<(), BufferTooSmall> {
        if let Some(gone) = &self.gone {
            message.gap(gone)?;
        }
        if last != Some(self.timestamp) {
            message.info_timestamp(self.timestamp)?;
        }
        match self.mark {
            None => message.data(&self.head, self.payload),
            Some(mark) => message.data_with_set(&self.head, mark, self.payload),
        }
        .map(|_| ())
    }
}

impl Writer {
    /// Next unsent sample that is still in the history.
    #[inline]
    pub(crate) fn unsent(&self) -> Option<Unsent<'_>> {
        self.unsent_from(self.next_unsent)
    }

    /// Next sample from a sequence number on, with a GAP for removed samples since that number.
    #[inline]
    pub(crate) fn unsent_from(&self, skipped: SequenceNumber) -> Option<Unsent<'_>> {
        let sequence = self.history.as_ref()?.at_or_after(skipped)?;
        self.sample(skipped, sequence)
    }

    /// Sample `sequence` for all readers, with a GAP for all numbers from `skipped` up to it.
    #[inline]
    pub(crate) fn sample(
        &self,
        skipped: SequenceNumber,
        sequence: SequenceNumber,
    ) -> Option<Unsent<'_>> {
        let history = self.history.as_ref()?;
        let (change, payload) = history.get(sequence)?;
        let sample = change.sample();
        let entity = self.guid.entity;
        let mark = history.mark_of(sequence);
        let head = data_head(entity, EntityId::UNKNOWN, sequence, &sample);
        Some(Unsent {
            gone: (skipped < sequence).then(|| gap(entity, EntityId::UNKNOWN, skipped, sequence)),
            sequence,
            kind: sample.kind,
            timestamp: sample.timestamp,
            head: mark.map_or(head, |mark| head_of(head, mark)),
            mark,
            payload,
        })
    }

    /// Maximum size in bytes of a datagram with the next sample and a HEARTBEAT. A sample to be fragmented is not
    /// included: it can be next only if samples before it were removed, and it is then filed as a fragment.
    pub(crate) fn next_bytes(&self) -> usize {
        let is_fragmented =
            |unsent: &Unsent<'_>| self.fragmenter.is_fragmented(unsent.payload.len());
        let whole = self.unsent().filter(|unsent| !is_fragmented(unsent));
        let bytes = whole.map_or(0, |unsent| unsent.bytes());
        HEADER_BYTES + bytes + HEARTBEAT_BYTES
    }

    /// Records a sample as sent for the first time, or as unmatched if there are no readers.
    pub(crate) fn note_first(&mut self, sequence: SequenceNumber, bytes: usize, is_sent: bool) {
        self.pass_unsent(sequence);
        self.next_unsent = sequence.next();
        if is_sent {
            self.ledger.sent += 1;
            if self.has_reliable_reader() {
                let history = self.history.as_ref();
                self.since_demand += history.map_or(1, |history| history.share(bytes));
                self.bytes_since_demand += bytes;
                self.flight.bytes += bytes as u64;
            }
        } else {
            self.ledger.unmatched += 1;
        }
    }

    /// Appends waiting samples that fit into the datagram, and a HEARTBEAT where one is due.
    pub(crate) fn complete(&mut self, message: &mut MessageWriter<'_>, mut timestamp: Timestamp) {
        let batch_bytes = self.batch_bytes();
        while let Some(next) = self.unsent() {
            let end = message.len() + next.bytes() + HEARTBEAT_BYTES;
            if end > batch_bytes || next.emit(message, Some(timestamp)).is_err() {
                break;
            }
            timestamp = next.timestamp;
            let (sequence, bytes) = (next.sequence, next.payload.len());
            self.note_first(sequence, bytes, true);
        }
        self.add_heartbeat(message);
    }

    /// Appends a HEARTBEAT where one is due.
    pub(crate) fn add_heartbeat(&mut self, message: &mut MessageWriter<'_>) {
        // The last waiting sample carries a HEARTBEAT, so that readers notice a loss before it at once. A HEARTBEAT
        // that requests a response follows whenever a quarter of the history has been sent.
        let is_last = self.next_unsent > self.last;
        let demands = self.demands_answer();
        if self.has_reliable_reader() && (is_last || demands) {
            let heartbeat = self.heartbeat(!demands);
            // If it does not fit, the timer's HEARTBEAT follows.
            let _ = message.heartbeat(&heartbeat);
        }
    }
}

impl Writers {
    /// Sends the next unsent sample, and others that fit into its datagram.
    pub(crate) fn send_data(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        index: WriterId,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let header = shared.header;
        if self.table.get(index)?.has_filters
            && let Some(work) = self.send_filtered(shared, now, index, buffer)
        {
            return Some(work);
        }
        if self.table.get(index)?.clock.is_some()
            && self.expire_history(shared, now, index) != Expired::Nothing
        {
            // The next sample may be larger than the buffer was chosen for.
            self.table.get_mut(index)?.data_filed = false;
            self.schedule_first(shared, index);
            return None;
        }
        let writer = self.table.get_mut(index)?;
        writer.data_filed = false;
        if writer.holds_for_window() {
            return None;
        }
        writer.history.as_ref()?;
        let begins_run = writer.highest_acknowledged >= writer.next_unsent;
        let level = writer.level;
        let Some(first) = writer.unsent() else {
            // All unsent samples have been replaced or have expired.
            writer.pass_unsent(writer.last.next());
            self.arm_heartbeat(shared, now, index);
            return None;
        };
        if writer.fragmenter.is_fragmented(first.payload.len()) {
            // Samples before it were removed since this step was filed.
            self.schedule_first(shared, index);
            return None;
        }
        let (sequence, timestamp) = (first.sequence, first.timestamp);
        let payload_bytes = first.payload.len();
        let mut bytes = 0;
        if writer.destinations.is_empty() {
            writer.note_first(sequence, payload_bytes, false);
        } else {
            let written = MessageWriter::new(buffer, &header).and_then(|mut message| {
                first.emit(&mut message, None)?;
                Ok(message)
            });
            writer.note_first(sequence, payload_bytes, true);
            match written {
                Ok(mut message) => {
                    writer.complete(&mut message, timestamp);
                    bytes = message.len();
                }
                Err(_) => shared.counters.buffer_too_small += 1,
            }
        }
        self.schedule_after_first(shared, now, index, begins_run);
        Some(Work::new(WorkKind::Data, level, bytes, index))
    }

    /// Files the work due after a first transmission: the next one, and a HEARTBEAT to all readers.
    pub(crate) fn schedule_after_first(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        index: WriterId,
        begins_run: bool,
    ) {
        self.schedule_first(shared, index);
        self.release_acknowledged(shared, index);
        self.arm_heartbeat(shared, now, index);
        if begins_run {
            self.hasten_heartbeat(shared, now, index);
        }
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

/// GAP of the numbers from `start` to before `end`.
pub(crate) fn gap(
    writer: EntityId,
    reader: EntityId,
    start: SequenceNumber,
    end: SequenceNumber,
) -> Gap {
    Gap {
        reader,
        writer,
        group: None,
        filtered: None,
        start,
        list: SequenceNumberSet::new(end),
    }
}
