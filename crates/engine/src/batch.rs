//! LATENCY_BUDGET (DDS 1.4 §2.2.3.8): samples that may be late leave together.
//!
//! A writer with a budget keeps what is written back until its datagram is full or half of the budget is over (or of
//! LIFESPAN, DEADLINE, or a lease that its samples renew, if that is shorter), counted from the first of them, then files their first transmission, which takes as many into a datagram as fit
//! ([`transmit`](crate::transmit)). The other half is left for the way. A writer without one, the default, has
//! nothing of all this: what it writes is filed at once.

use core::time::Duration;

use isolane_wire::{
    guid::EntityId,
    qos::{LivelinessKind, QosPolicies},
    rtps::{HEADER_BYTES, HEARTBEAT_BYTES, INFO_TIMESTAMP_BYTES},
    sequence::SequenceNumber,
};

use crate::{
    engine::{Engine, Subject},
    ids::WriterId,
    limits::{BATCH_BYTES, MAX_DATAGRAM_BYTES, MAX_HOLD, MIN_PERIOD, WHOLE_BYTES},
    work::WorkKind,
    write::{WriteSample, data_head},
    writer::Writer,
};

/// What a writer keeps back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch {
    /// How long, at most.
    hold: Duration,
    /// Bytes of the datagram they leave in.
    pub(crate) limit_bytes: usize,
    /// Bytes of those that wait, with what stands in front of each.
    bytes: usize,
    samples: usize,
    /// The same of all that are not sent yet: of those that were let go as well.
    unsent_bytes: usize,
}

impl Batch {
    /// Of a writer with these policies, whose samples leave as one datagram up to `max_datagram_bytes`; `None`: it
    /// keeps nothing back.
    pub(crate) fn of(qos: &QosPolicies, max_datagram_bytes: usize) -> Option<Self> {
        let budget = qos.latency_budget.to_core().unwrap_or(2 * MAX_HOLD);
        // A sample that is kept back is still of use when it leaves, and no reader misses it meanwhile.
        let is_manual = qos.liveliness.kind == LivelinessKind::ManualByTopic;
        let lease = qos.liveliness.lease.to_core().filter(|_| is_manual);
        let others = [qos.lifespan.to_core(), qos.deadline.to_core(), lease];
        let shortest = others.into_iter().flatten().fold(budget, Duration::min);
        let hold = (shortest / 2).min(MAX_HOLD);
        // What is due at once is not kept back.
        (hold >= MIN_HOLD).then_some(Self {
            hold,
            limit_bytes: match max_datagram_bytes > WHOLE_BYTES {
                true => max_datagram_bytes.clamp(BATCH_BYTES, MAX_DATAGRAM_BYTES),
                false => BATCH_BYTES,
            },
            bytes: 0,
            samples: 0,
            unsent_bytes: 0,
        })
    }

    /// Takes note of one sample more; true: there is no room for another as long.
    fn add(&mut self, sample_bytes: usize) -> bool {
        self.bytes += sample_bytes;
        self.samples += 1;
        self.bytes + sample_bytes > self.limit_bytes - HEADER_BYTES - HEARTBEAT_BYTES
    }
}

/// The shortest time that is worth a timer: a twentieth of that of anything the engine does by itself.
const MIN_HOLD: Duration = MIN_PERIOD.checked_div(20).expect("it is no zero");

impl Writer {
    /// Bytes of a datagram that several samples share.
    pub(crate) fn batch_bytes(&self) -> usize {
        self.batch.map_or(BATCH_BYTES, |batch| batch.limit_bytes)
    }

    /// Bytes that the next such datagram takes at most: where few samples wait, no large frame is asked for.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.batch.map_or(BATCH_BYTES, |batch| {
            let around = HEADER_BYTES + HEARTBEAT_BYTES;
            let bytes = batch.unsent_bytes.saturating_add(around);
            bytes.clamp(BATCH_BYTES, batch.limit_bytes)
        })
    }
}

impl Engine {
    /// Takes note of a sample that was just written; files the first transmission of what waits where that is due.
    pub(crate) fn add_to_batch(&mut self, index: u16, payload_bytes: usize, sample: &WriteSample) {
        let written = self.instant_of(sample.timestamp);
        let sequence = SequenceNumber(1);
        let head = data_head(EntityId::UNKNOWN, EntityId::UNKNOWN, sequence, sample);
        let data_bytes = head.buffer_len() + payload_bytes.next_multiple_of(4);
        let Some(writer) = self.writers.get_mut(index) else {
            return;
        };
        let is_alone = writer.next_unsent == writer.last;
        if let Some(batch) = &mut writer.batch {
            let before = if is_alone { 0 } else { batch.unsent_bytes };
            batch.unsent_bytes = before.saturating_add(INFO_TIMESTAMP_BYTES + data_bytes);
        }
        if writer.data_filed {
            // It leaves with those that are about to.
            return;
        }
        let half = writer.history.as_ref().map_or(0, |it| it.depth() / 2);
        let is_cut = writer.fragmenter.is_cut(payload_bytes);
        let Some(batch) = &mut writer.batch else {
            return;
        };
        let is_full =
            batch.add(INFO_TIMESTAMP_BYTES + data_bytes) || batch.samples >= half.max(1) || is_cut;
        let hold = batch.hold;
        if is_full {
            self.flush_batch(index);
            return;
        }
        let timer = Subject::batch(index, &self.config.limits);
        if !self.timers.is_armed(timer) {
            // A time stamp of the user's own says nothing of when it is due.
            let begin = written.clamp(self.latest, self.latest + MAX_HOLD);
            self.timers.arm(timer, begin + hold);
        }
    }

    /// Files the first transmission of what a writer keeps back, if anything.
    pub(crate) fn flush_batch(&mut self, index: u16) {
        let timer = Subject::batch(index, &self.config.limits);
        self.timers.disarm(timer);
        let Some(writer) = self.writers.get_mut(index) else {
            return;
        };
        if let Some(batch) = &mut writer.batch {
            (batch.bytes, batch.samples) = (0, 0);
        }
        if writer.next_unsent > writer.last {
            return;
        }
        if writer.fragmenter.cuts() {
            self.file_first(index);
        } else if !core::mem::replace(&mut writer.data_filed, true) {
            let priority = writer.data_priority();
            self.file(priority, WorkKind::Data, index);
        }
    }

    /// Lets go of what a writer keeps back because of its LATENCY_BUDGET.
    pub fn flush(&mut self, writer: WriterId) {
        if self
            .writers
            .get(writer.0)
            .is_some_and(|it| it.batch.is_some())
        {
            self.flush_batch(writer.0);
        }
    }

    /// Whether a writer's samples are filed to be sent.
    #[must_use]
    pub fn is_filed(&self, writer: WriterId) -> bool {
        let writer = self.writers.get(writer.0);
        writer.is_some_and(|writer| writer.data_filed)
    }

    /// Whether all samples of a writer leave as one DATA each.
    #[must_use]
    pub fn sends_whole(&self, writer: WriterId) -> bool {
        let writer = self.writers.get(writer.0);
        writer.is_some_and(|writer| !writer.fragmenter.cuts())
    }

    /// The budget of a writer is another one now: what waits is let go.
    pub(crate) fn set_batch(&mut self, index: u16) {
        let Some(writer) = self.writers.get_mut(index) else {
            return;
        };
        if writer.history.is_none() || writer.presents.is_some() {
            return;
        }
        let datagram_bytes = writer.fragmenter.whole_bytes();
        writer.batch = Batch::of(&writer.data.qos, datagram_bytes).map(|batch| Batch {
            // What waits was not counted.
            unsent_bytes: batch.limit_bytes,
            ..batch
        });
        self.flush_batch(index);
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
        Batch::of(&qos, WHOLE_BYTES)
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
