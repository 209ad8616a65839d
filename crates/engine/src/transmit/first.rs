//! First transmissions: each sample of a reliable writer once, to all its readers.
//!
//! Samples that wait leave together, as many as fit into one Ethernet frame: a step takes what waits when it
//! runs. None is held back for that, unless LATENCY_BUDGET lets it be (`batch.rs`).

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

/// The next sample to send, and what of the numbers before it is gone.
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
    /// Bytes it takes at most, behind other samples.
    pub(super) fn bytes(&self) -> usize {
        let gap_bytes = self.gone.as_ref().map_or(0, Gap::buffer_len);
        let head_bytes = match self.mark {
            None => self.head.buffer_len(),
            Some(mark) => self.head.marked_len(mark),
        };
        let data_bytes = head_bytes + self.payload.len().next_multiple_of(4);
        gap_bytes + INFO_TIMESTAMP_BYTES + data_bytes
    }

    /// Appends it. `last` is the time stamp that holds so far.
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
    /// The next sample that was not sent yet and is still there.
    #[inline]
    pub(super) fn unsent(&self) -> Option<Unsent<'_>> {
        self.unsent_from(self.next_unsent)
    }

    /// The same from a number on; what is gone before it is gone from there.
    #[inline]
    pub(super) fn unsent_from(&self, skipped: SequenceNumber) -> Option<Unsent<'_>> {
        let sequence = self.history.as_ref()?.at_or_after(skipped)?;
        self.sample(skipped, sequence)
    }

    /// A sample for all; from `skipped` on to it, all is gone.
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

    /// Bytes of a datagram with the next sample and a HEARTBEAT. One that leaves in fragments is in none:
    /// where others before it are gone it is found here, and filed elsewhere.
    pub(super) fn next_bytes(&self) -> usize {
        let is_cut = |unsent: &Unsent<'_>| self.fragmenter.is_cut(unsent.payload.len());
        let whole = self.unsent().filter(|unsent| !is_cut(unsent));
        let bytes = whole.map_or(0, |unsent| unsent.bytes());
        HEADER_BYTES + bytes + HEARTBEAT_BYTES
    }

    /// A sample of so many bytes counts as sent for the first time, or as nobody's.
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

    /// Appends what waits and still fits into a shared datagram, and a HEARTBEAT where one is due.
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
        // The last of a run tells what there is, so that a loss before it shows at once; a quarter
        // of the history sent demands an acknowledgement.
        let is_last = self.next_unsent > self.last;
        let demands = self.since_demand >= self.demand_after();
        if self.has_reliable_reader() && (is_last || demands) {
            let heartbeat = self.heartbeat(!demands);
            // Where it finds no room the timer's heartbeat follows.
            let _ = message.heartbeat(&heartbeat);
        }
    }
}

impl Engine {
    /// First transmission of the next unsent sample, and of those that fit into its datagram.
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
            // What comes first now may be longer than the buffer was chosen for.
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
            // All that was unsent has been pushed out, or has expired.
            writer.pass_unsent(writer.last.next());
            self.arm_heartbeat(now, index);
            return None;
        };
        if writer.fragmenter.is_cut(first.payload.len()) {
            // Others before it were pushed out since this was filed.
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

    /// Files what is due after a first transmission: the next one, and the HEARTBEAT of all.
    pub(super) fn file_after_first(&mut self, now: Instant, index: u16, begins_run: bool) {
        self.file_first(index);
        self.release_acknowledged(index);
        self.arm_heartbeat(now, index);
        if begins_run {
            self.hasten_heartbeat(now, index);
        }
    }
}
