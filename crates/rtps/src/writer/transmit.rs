//! First transmissions: each sample of a reliable writer once, to all its readers.
//!
//! Waiting samples share a datagram, as many as fit into one Ethernet frame. No sample is delayed for that unless
//! LATENCY_BUDGET allows it.
//!
//! # LATENCY_BUDGET (DDS 1.4 §2.2.3.8)
//!
//! A writer with a budget holds its samples until a datagram is full or half of the budget has passed since the first
//! of them. A shorter LIFESPAN, DEADLINE or manual lease takes the place of the budget. Then it files their first
//! transmission, which packs as many samples into a datagram as fit. The other half of
//! the budget is left for transport. Without a budget, the default, each sample is filed at once.

use core::time::Duration;

use isolane_wire::{
    BufferTooSmall,
    guid::EntityId,
    message::{
        CoherentSetInfo, DataPrefix, Gap, HEADER_BYTES, HEARTBEAT_BYTES, INFO_TIMESTAMP_BYTES,
        MessageWriter,
    },
    qos::{LivelinessKind, QosPolicies},
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};

use crate::{
    coherent_access::head_of,
    limits::{BATCH_BYTES, MAX_DATA_PAYLOAD_BYTES, MAX_DATAGRAM_BYTES, MAX_HOLD, MIN_PERIOD},
    participant::{LocalParticipant, Shared},
    slab::WriterId,
    timed_qos::Expired,
    timers::TimerOwner,
    work_queue::{Destinations, Filed, Work, WorkKind, gap},
    writer::{
        Writer, Writers,
        history::ChangeKind,
        write::{WriteSample, data_head},
    },
};

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
    /// Maximum size in bytes, appended to other samples in a message.
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
    /// included. It is found here when others before it were removed, and is then filed as a fragment.
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
        Some(Work {
            kind: WorkKind::Data,
            level,
            bytes,
            to: Destinations::Writer(index),
        })
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

/// State of a writer that batches samples.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch {
    hold: Duration,
    /// Maximum size in bytes of the shared datagram.
    pub(crate) limit_bytes: usize,
    /// Bytes of the held samples, with the submessage heads in front of each.
    bytes: usize,
    samples: usize,
    /// Bytes of all unsent samples, including released ones.
    unsent_bytes: usize,
}

impl Batch {
    /// Creates the state for a writer with these policies, whose samples are sent as one datagram up to
    /// `max_datagram_bytes`. Returns `None` if the writer does not batch.
    pub(crate) fn of(qos: &QosPolicies, max_datagram_bytes: usize) -> Option<Self> {
        let budget = qos.latency_budget.to_core().unwrap_or(2 * MAX_HOLD);
        // A held sample must still be valid when it is sent, and its delay must not break a lease or deadline.
        let is_manual = qos.liveliness.kind == LivelinessKind::ManualByTopic;
        let lease = qos.liveliness.lease.to_core().filter(|_| is_manual);
        let others = [qos.lifespan.to_core(), qos.deadline.to_core(), lease];
        let shortest = others.into_iter().flatten().fold(budget, Duration::min);
        let hold = (shortest / 2).min(MAX_HOLD);
        (hold >= MIN_HOLD).then_some(Self {
            hold,
            limit_bytes: match max_datagram_bytes > MAX_DATA_PAYLOAD_BYTES {
                true => max_datagram_bytes.clamp(BATCH_BYTES, MAX_DATAGRAM_BYTES),
                false => BATCH_BYTES,
            },
            bytes: 0,
            samples: 0,
            unsent_bytes: 0,
        })
    }

    /// Counts one more sample; returns true if there is no room for another of the same size.
    fn add(&mut self, sample_bytes: usize) -> bool {
        self.bytes += sample_bytes;
        self.samples += 1;
        self.bytes + sample_bytes > self.limit_bytes - HEADER_BYTES - HEARTBEAT_BYTES
    }
}

/// Shortest hold time worth a timer: a twentieth of the shortest period of the protocol.
const MIN_HOLD: Duration = MIN_PERIOD.checked_div(20).expect("it is no zero");

impl Writer {
    /// Returns the maximum size in bytes of a datagram shared by several samples.
    pub(crate) fn batch_bytes(&self) -> usize {
        self.batch.map_or(BATCH_BYTES, |batch| batch.limit_bytes)
    }

    /// Returns the maximum size in bytes of the next shared datagram, so that a few samples do not claim a large frame.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.batch.map_or(BATCH_BYTES, |batch| {
            let around = HEADER_BYTES + HEARTBEAT_BYTES;
            let bytes = batch.unsent_bytes.saturating_add(around);
            bytes.clamp(BATCH_BYTES, batch.limit_bytes)
        })
    }
}

impl LocalParticipant {
    /// Sends the samples that a writer holds because of its LATENCY_BUDGET.
    pub fn flush(&mut self, writer: WriterId) {
        if self
            .writers
            .table
            .get(writer)
            .is_some_and(|it| it.batch.is_some())
        {
            self.writers.flush_batch(&mut self.shared, writer);
        }
    }

    /// Returns whether a transmission of this writer is filed.
    #[must_use]
    pub fn is_filed(&self, writer: WriterId) -> bool {
        let writer = self.writers.table.get(writer);
        writer.is_some_and(|writer| writer.data_filed)
    }

    /// Returns whether all samples of a writer are sent as one DATA each.
    #[must_use]
    pub fn sends_whole(&self, writer: WriterId) -> bool {
        let writer = self.writers.table.get(writer);
        writer.is_some_and(|writer| !writer.fragmenter.cuts())
    }
}

impl Writers {
    /// Adds a sample just written; files the first transmission of the held samples if that is due.
    pub(crate) fn add_to_batch(
        &mut self,
        shared: &mut Shared,
        index: WriterId,
        payload_bytes: usize,
        sample: &WriteSample,
    ) {
        let written = shared.instant_of(sample.timestamp);
        let sequence = SequenceNumber(1);
        let head = data_head(EntityId::UNKNOWN, EntityId::UNKNOWN, sequence, sample);
        let data_bytes = head.buffer_len() + payload_bytes.next_multiple_of(4);
        let writer = &mut self.table[index];
        let is_alone = writer.next_unsent == writer.last;
        if let Some(batch) = &mut writer.batch {
            let before = if is_alone { 0 } else { batch.unsent_bytes };
            batch.unsent_bytes = before.saturating_add(INFO_TIMESTAMP_BYTES + data_bytes);
        }
        if writer.data_filed {
            // The filed transmission includes this sample.
            return;
        }
        let half = writer.history.as_ref().map_or(0, |it| it.depth() / 2);
        let is_fragmented = writer.fragmenter.is_fragmented(payload_bytes);
        let Some(batch) = &mut writer.batch else {
            return;
        };
        let is_full = batch.add(INFO_TIMESTAMP_BYTES + data_bytes)
            || batch.samples >= half.max(1)
            || is_fragmented;
        let hold = batch.hold;
        if is_full {
            self.flush_batch(shared, index);
            return;
        }
        let timer = TimerOwner::batch(index, &shared.config.limits);
        if !shared.timers.is_armed(timer) {
            // A time stamp chosen by the user does not determine when the sample is due.
            let begin = written.clamp(shared.latest, shared.latest + MAX_HOLD);
            shared.timers.arm(timer, begin + hold);
        }
    }

    /// Files the first transmission of the samples that a writer holds, if any.
    pub(crate) fn flush_batch(&mut self, shared: &mut Shared, index: WriterId) {
        let timer = TimerOwner::batch(index, &shared.config.limits);
        shared.timers.disarm(timer);
        let Some(writer) = self.table.get_mut(index) else {
            return;
        };
        if let Some(batch) = &mut writer.batch {
            (batch.bytes, batch.samples) = (0, 0);
        }
        if writer.next_unsent > writer.last {
            return;
        }
        if writer.fragmenter.cuts() {
            self.schedule_first(shared, index);
        } else if !core::mem::replace(&mut writer.data_filed, true) {
            let queue = writer.data_queue();
            shared.schedule(queue, Filed::Data(index));
        }
    }

    /// Applies a changed LATENCY_BUDGET; held samples are released.
    pub(crate) fn set_batch(&mut self, shared: &mut Shared, index: WriterId) {
        let Some(writer) = self.table.get_mut(index) else {
            return;
        };
        if writer.history.is_none() || writer.presents.is_some() {
            return;
        }
        let datagram_bytes = writer.fragmenter.whole_bytes();
        writer.batch = Batch::of(&writer.data.qos, datagram_bytes).map(|batch| Batch {
            // The size of the samples written so far is unknown.
            unsent_bytes: batch.limit_bytes,
            ..batch
        });
        self.flush_batch(shared, index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_budget(budget: Duration) -> Option<Batch> {
        let qos = QosPolicies {
            latency_budget: budget.into(),
            ..QosPolicies::default()
        };
        Batch::of(&qos, MAX_DATA_PAYLOAD_BYTES)
    }

    #[test]
    fn a_writer_without_a_budget_keeps_nothing_back() {
        assert!(of_budget(Duration::ZERO).is_none());
        assert!(of_budget(Duration::from_micros(10)).is_none());
        let batch = of_budget(Duration::from_millis(4)).expect("it waits");
        assert_eq!(batch.hold, Duration::from_millis(2));
        assert_eq!(of_budget(Duration::MAX).map(|it| it.hold), Some(MAX_HOLD));
    }

    #[test]
    fn a_batch_is_full_when_the_next_sample_would_not_fit() {
        let mut batch = of_budget(Duration::from_millis(4)).expect("it waits");
        let one = 64;
        let count = (1..).find(|_| batch.add(one)).expect("some day");
        assert!(HEADER_BYTES + count * one + HEARTBEAT_BYTES <= BATCH_BYTES);
        assert!(HEADER_BYTES + (count + 1) * one + HEARTBEAT_BYTES > BATCH_BYTES);
    }
}
