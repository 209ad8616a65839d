//! DESTINATION_ORDER BY_SOURCE_TIMESTAMP (DDS 1.4 §2.2.3.17): the latest source timestamp of an instance wins, whatever
//! the order of arrival.
//!
//! A reader drops and counts samples older than the latest accepted one of the same instance. If two writers use equal
//! timestamps, the sample of the lower GUID counts as later. Readers that receive the same samples thus end with the
//! same value. Samples without a timestamp are accepted on arrival.
//!
//! If more instances are written than can be monitored, the instance with the oldest last sample is forgotten.

use isolane_wire::{cdr::KeyHash, guid::Guid, time::Timestamp};

use crate::{reader::read_take::SampleInfo, timed_qos::event_order::EventOrder};

/// Latest sample of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Latest {
    timestamp: Timestamp,
    writer: Guid,
}

impl Latest {
    fn is_before(&self, other: &Self) -> bool {
        let by_time = self.timestamp.cmp(&other.timestamp);
        by_time.then(other.writer.cmp(&self.writer)).is_lt()
    }
}

#[derive(Debug)]
pub(crate) struct SourceOrder {
    instances: EventOrder<Option<Latest>>,
}

impl SourceOrder {
    pub(super) fn new(instances: u16, seed: u64) -> Self {
        Self {
            instances: EventOrder::new(instances, seed),
        }
    }

    /// Returns whether a sample is older than the latest accepted one of its instance.
    pub(super) fn is_outdated(&self, key: KeyHash, info: &SampleInfo) -> bool {
        let latest = self.instances.get(key).and_then(|(_, latest)| *latest);
        let sample = sample_of(info);
        latest
            .zip(sample)
            .is_some_and(|(latest, sample)| sample.is_before(&latest))
    }

    /// Records an accepted sample.
    pub(super) fn note(&mut self, key: KeyHash, info: &SampleInfo) {
        let Some(sample) = sample_of(info) else {
            return;
        };
        if !self.instances.touch(key, info.received) {
            if let Some((oldest, _)) = self.instances.oldest() {
                self.instances.remove(oldest);
            }
            self.instances.touch(key, info.received);
        }
        if let Some(latest) = self.instances.get_mut(key) {
            *latest = Some(sample);
        }
    }
}

fn sample_of(info: &SampleInfo) -> Option<Latest> {
    let timestamp = info.source_timestamp?;
    (timestamp < Timestamp::INFINITE).then_some(Latest {
        timestamp,
        writer: info.writer,
    })
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use isolane_wire::{sequence::SequenceNumber, time::Instant};

    use super::*;

    fn sample(writer: u8, seconds: u64) -> SampleInfo {
        SampleInfo {
            writer: Guid::from_bytes([writer; 16]),
            sequence: SequenceNumber(1),
            source_timestamp: Some(Timestamp::from_nanos(seconds * 1_000_000_000)),
            received: Instant::new(0),
            ..SampleInfo::UNSEEN
        }
    }

    fn last_of(order: &[(u8, u64)]) -> (u8, u64) {
        let mut latest = SourceOrder::new(4, 1);
        let mut last = (0, 0);
        for &(writer, seconds) in order {
            let info = sample(writer, seconds);
            if !latest.is_outdated([1; 16], &info) {
                latest.note([1; 16], &info);
                last = (writer, seconds);
            }
        }
        last
    }

    #[test]
    fn the_last_word_does_not_depend_on_the_order_of_arrival() {
        let samples = [(1, 5), (2, 5), (3, 4), (2, 3)];
        for first in 0..4 {
            for step in [1, 3] {
                let turned: Vec<_> = (0..4)
                    .map(|nth| samples[(first + nth * step) % 4])
                    .collect();
                assert_eq!(last_of(&turned), (1, 5), "{turned:?}");
            }
        }
    }

    #[test]
    fn a_writer_is_not_behind_itself_and_another_instance_not_behind_this_one() {
        assert_eq!(last_of(&[(7, 5), (7, 5)]), (7, 5));
        let mut latest = SourceOrder::new(1, 1);
        latest.note([1; 16], &sample(1, 9));
        assert!(latest.is_outdated([1; 16], &sample(2, 8)));
        assert!(!latest.is_outdated([2; 16], &sample(2, 8)));
        // Replaces the other instance.
        latest.note([2; 16], &sample(2, 8));
        assert!(!latest.is_outdated([1; 16], &sample(2, 8)));
    }
}
