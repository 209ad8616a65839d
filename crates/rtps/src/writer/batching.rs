//! Batching under LATENCY_BUDGET (DDS 1.4 §2.2.3.8).
//!
//! A writer with a budget holds its samples until a datagram is full or half of the budget has passed since the first
//! held sample. A best-effort writer holds them until several datagrams are full, which leave together. A shorter LIFESPAN, DEADLINE or manual lease counts as the budget. Then the writer files the first
//! transmission of the held samples, which packs as many into a datagram as fit. The other half of the budget is left
//! for transport. Without a budget, the default, each sample is filed at once.

use core::time::Duration;

use isolane_wire::{
    guid::EntityId,
    message::{HEADER_BYTES, HEARTBEAT_BYTES, INFO_TIMESTAMP_BYTES},
    qos::{LivelinessKind, QosPolicies, ReliabilityKind},
    sequence::SequenceNumber,
};

use crate::{
    limits::{
        BATCH_BYTES, BATCHED_DATAGRAMS, MAX_DATA_PAYLOAD_BYTES, MAX_DATAGRAM_BYTES, MAX_HOLD,
        MIN_PERIOD,
    },
    participant::{LocalParticipant, Shared},
    slab::WriterId,
    work::Filed,
    work_queue::Timer,
    writer::{
        Writer, Writers,
        write::{WriteSample, data_head},
    },
};

/// Shortest hold time worth a timer: a twentieth of the shortest period of the protocol.
const MIN_HOLD: Duration = MIN_PERIOD.checked_div(20).expect("it is no zero");

/// State of a writer that batches samples.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch {
    hold: Duration,
    /// Maximum size in bytes of the shared datagram.
    pub(crate) limit_bytes: usize,
    /// Full datagrams for which the writer waits.
    max_datagrams: usize,
    /// Full datagrams of held samples.
    datagrams: usize,
    /// Bytes of the other held samples, with the submessage heads in front of each.
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
        let limit_bytes = match max_datagram_bytes > MAX_DATA_PAYLOAD_BYTES {
            true => max_datagram_bytes.clamp(BATCH_BYTES, MAX_DATAGRAM_BYTES),
            false => BATCH_BYTES,
        };
        // The loop sends what waits of a reliable writer together, so holding more gains nothing.
        let max_datagrams = match qos.reliability.kind {
            ReliabilityKind::Reliable => 1,
            ReliabilityKind::BestEffort => BATCHED_DATAGRAMS * BATCH_BYTES / limit_bytes,
        };
        (hold >= MIN_HOLD).then_some(Self {
            hold,
            limit_bytes,
            max_datagrams: max_datagrams.max(1),
            datagrams: 0,
            bytes: 0,
            samples: 0,
            unsent_bytes: 0,
        })
    }

    /// Counts one more sample; returns true if there is no room for another of the same size.
    fn add(&mut self, sample_bytes: usize) -> bool {
        let room = self.limit_bytes - HEADER_BYTES - HEARTBEAT_BYTES;
        self.bytes += sample_bytes;
        self.samples += 1;
        if self.bytes + sample_bytes > room {
            self.bytes = 0;
            self.datagrams += 1;
        }
        self.datagrams >= self.max_datagrams
    }
}

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
            .get(writer)
            .is_some_and(|it| it.batch.is_some())
        {
            self.writers.flush_batch(&mut self.shared, writer);
        }
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
        let timer = Timer::Batch(index);
        if !shared.timers.is_armed(timer) {
            // A time stamp chosen by the user does not determine when the sample is due.
            let begin = written.clamp(shared.latest, shared.latest + MAX_HOLD);
            shared.timers.arm(timer, begin + hold);
        }
    }

    /// Files the first transmission of the samples that a writer holds, if any.
    pub(crate) fn flush_batch(&mut self, shared: &mut Shared, index: WriterId) {
        let timer = Timer::Batch(index);
        shared.timers.disarm(timer);
        let Some(writer) = self.table.get_mut(index) else {
            return;
        };
        if let Some(batch) = &mut writer.batch {
            (batch.datagrams, batch.bytes, batch.samples) = (0, 0, 0);
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
        let budget = of_budget(Duration::from_millis(4)).expect("it waits");
        for (max_datagrams, one) in [(1, 64), (BATCHED_DATAGRAMS, 64), (2, 600)] {
            let mut batch = Batch {
                max_datagrams,
                ..budget
            };
            let count = (1..).find(|_| batch.add(one)).expect("some day");
            assert_eq!(count % max_datagrams, 0);
            let of_one = count / max_datagrams;
            assert!(HEADER_BYTES + of_one * one + HEARTBEAT_BYTES <= BATCH_BYTES);
            assert!(HEADER_BYTES + (of_one + 1) * one + HEARTBEAT_BYTES > BATCH_BYTES);
        }
    }

    #[test]
    fn only_best_effort_samples_wait_for_several_datagrams() {
        let datagrams = |kind, datagram_bytes| {
            let mut qos = QosPolicies {
                latency_budget: Duration::from_millis(4).into(),
                ..QosPolicies::default()
            };
            qos.reliability.kind = kind;
            let batch = Batch::of(&qos, datagram_bytes).expect("it waits");
            batch.max_datagrams
        };
        let (best_effort, reliable) = (ReliabilityKind::BestEffort, ReliabilityKind::Reliable);
        assert_eq!(datagrams(best_effort, BATCH_BYTES), BATCHED_DATAGRAMS);
        assert_eq!(
            datagrams(best_effort, 4 * BATCH_BYTES),
            BATCHED_DATAGRAMS / 4
        );
        assert_eq!(datagrams(best_effort, MAX_DATAGRAM_BYTES), 1);
        assert_eq!(datagrams(reliable, BATCH_BYTES), 1);
    }
}
