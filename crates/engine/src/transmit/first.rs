//! First transmissions: each sample of a reliable writer once, to all its readers.
//!
//! Waiting samples share a datagram, as many as fit into one Ethernet frame. No sample is delayed for that unless
//! LATENCY_BUDGET allows it (`batch.rs`).

use isolane_wire::{
    BufferTooSmall,
    guid::EntityId,
    rtps::{
        DataHead, Gap, HEADER_BYTES, HEARTBEAT_BYTES, INFO_TIMESTAMP_BYTES, MessageWriter, SetMark,
    },
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};

use super::gap;
use crate::{
    clock::Expired,
    engine::Engine,
    history::ChangeKind,
    ids::WriterId,
    presentation::head_of,
    work::{Destinations, Work, WorkKind},
    write::data_head,
    writer::Writer,
};

/// Next sample to send, with a GAP for removed samples before it.
pub(super) struct Unsent<'a> {
    gone: Option<Gap>,
    pub(super) sequence: SequenceNumber,
    pub(super) kind: ChangeKind,
    pub(super) timestamp: Timestamp,
    head: DataHead,
    mark: Option<&'a SetMark>,
    pub(super) payload: &'a [u8],
}

impl Unsent<'_> {
    /// Maximum size in bytes, appended to other samples in a message.
    pub(super) fn bytes(&self) -> usize {
        let gap_bytes = self.gone.as_ref().map_or(0, Gap::buffer_len);
        let head_bytes = match self.mark {
            None => self.head.buffer_len(),
            Some(mark) => self.head.marked_len(mark),
        };
        let data_bytes = head_bytes + self.payload.len().next_multiple_of(4);
        gap_bytes + INFO_TIMESTAMP_BYTES + data_bytes
    }

    /// Appends the sample. `last` is the timestamp currently in force in the message.
    pub(super) fn emit(
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
            Some(mark) => message.marked_data(&self.head, mark, self.payload),
        }
        .map(|_| ())
    }
}

impl Writer {
    /// Next unsent sample that is still in the history.
    #[inline]
    pub(super) fn unsent(&self) -> Option<Unsent<'_>> {
        self.unsent_from(self.next_unsent)
    }

    /// Next sample from a sequence number on, with a GAP for removed samples since that number.
    #[inline]
    pub(super) fn unsent_from(&self, skipped: SequenceNumber) -> Option<Unsent<'_>> {
        let sequence = self.history.as_ref()?.at_or_after(skipped)?;
        self.sample(skipped, sequence)
    }

    /// Sample `sequence` for all readers, with a GAP for all numbers from `skipped` up to it.
    #[inline]
    pub(super) fn sample(
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
    /// included. It is found here when others before it were removed, and is then filed as a fragment.
    pub(super) fn next_bytes(&self) -> usize {
        let is_cut = |unsent: &Unsent<'_>| self.fragmenter.is_cut(unsent.payload.len());
        let whole = self.unsent().filter(|unsent| !is_cut(unsent));
        let bytes = whole.map_or(0, |unsent| unsent.bytes());
        HEADER_BYTES + bytes + HEARTBEAT_BYTES
    }

    /// Records a sample as sent for the first time, or as unmatched if there are no readers.
    pub(super) fn note_first(&mut self, sequence: SequenceNumber, bytes: usize, is_sent: bool) {
        self.pass_unsent(sequence);
        self.next_unsent = sequence.next();
        if is_sent {
            self.ledger.sent += 1;
            if self.has_reliable_reader() {
                let history = self.history.as_ref();
                self.since_demand += history.map_or(1, |history| history.share(bytes));
            }
        } else {
            self.ledger.unmatched += 1;
        }
    }

    /// Appends waiting samples that fit into the datagram, and a HEARTBEAT where one is due.
    pub(super) fn complete(&mut self, message: &mut MessageWriter<'_>, mut timestamp: Timestamp) {
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
    pub(super) fn add_heartbeat(&mut self, message: &mut MessageWriter<'_>) {
        // The last sample of a run carries one, so that a loss before it is noticed at once. One with a response
        // request follows whenever a quarter of the history has been sent.
        let is_last = self.next_unsent > self.last;
        let demands = self.since_demand >= self.demand_after();
        if self.has_reliable_reader() && (is_last || demands) {
            let heartbeat = self.heartbeat(!demands);
            // If it does not fit, the timer's HEARTBEAT follows.
            let _ = message.heartbeat(&heartbeat);
        }
    }
}

impl Engine {
    /// Sends the next unsent sample, and others that fit into its datagram.
    pub(super) fn send_data(
        &mut self,
        now: Instant,
        index: u16,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let header = self.header;
        if self.writers.get(index)?.has_filters
            && let Some(work) = self.send_filtered(now, index, buffer)
        {
            return Some(work);
        }
        if self.writers.get(index)?.clock.is_some()
            && self.expire_history(now, index) != Expired::Nothing
        {
            // The next sample may be larger than the buffer was chosen for.
            self.writers.get_mut(index)?.data_filed = false;
            self.file_first(index);
            return None;
        }
        let writer = self.writers.get_mut(index)?;
        writer.data_filed = false;
        writer.history.as_ref()?;
        let begins_run = writer.highest_acknowledged >= writer.next_unsent;
        let level = writer.level;
        let Some(first) = writer.unsent() else {
            // All unsent samples have been replaced or have expired.
            writer.pass_unsent(writer.last.next());
            self.arm_heartbeat(now, index);
            return None;
        };
        if writer.fragmenter.is_cut(first.payload.len()) {
            // Samples before it were removed since this step was filed.
            self.file_first(index);
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
                Err(_) => self.counters.buffer_too_small += 1,
            }
        }
        self.file_after_first(now, index, begins_run);
        Some(Work {
            kind: WorkKind::Data,
            level,
            bytes,
            to: Destinations::Writer(WriterId(index)),
        })
    }

    /// Files the work due after a first transmission: the next one, and a HEARTBEAT to all readers.
    pub(super) fn file_after_first(&mut self, now: Instant, index: u16, begins_run: bool) {
        self.file_first(index);
        self.release_acknowledged(index);
        self.arm_heartbeat(now, index);
        if begins_run {
            self.hasten_heartbeat(now, index);
        }
    }
}
