//! DEADLINE (DDS 1.4 §2.2.3.7): each instance is updated at least once a period.
//!
//! A writer measures from writing, a reader from reception. An instance is monitored from its first sample until it is
//! disposed or has no writer. Each period without a sample counts once.

use core::time::Duration;

use isolane_wire::{cdr::KeyHash, time::Instant};

use crate::{
    limits::TIMED_QOS_ITEMS,
    timed_qos::event_order::EventOrder,
    writer::{history::ChangeKind, write::WriteSample},
};

/// Number of missed deadlines (*OfferedDeadlineMissedStatus*, *RequestedDeadlineMissedStatus*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadlineMissed {
    /// Total since creation, of all instances.
    pub total: u64,
    /// Increase since the status was last taken.
    pub change: u64,
    /// Instance that missed the last deadline; zeros for a topic without a key.
    pub last_instance: KeyHash,
}

/// Deadline monitoring of one endpoint.
#[derive(Debug)]
pub(crate) struct Deadline {
    /// `None` if the policy was removed and only the counts remain.
    period: Option<Duration>,
    instances: EventOrder<()>,
    total: u64,
    reported: u64,
    last_instance: KeyHash,
}

impl Deadline {
    pub(crate) fn new(period: Duration, instances: u16, seed: u64) -> Self {
        Self {
            period: Some(period),
            instances: EventOrder::new(instances, seed),
            total: 0,
            reported: 0,
            last_instance: KeyHash::default(),
        }
    }

    /// Applies another period, or none. Counts are kept. Instances are kept unless monitoring was suspended.
    pub(crate) fn followed_by(self, next: Option<Self>) -> Self {
        let period = next.as_ref().and_then(|next| next.period);
        let instances = match (self.period, next) {
            (Some(_), Some(_)) => self.instances,
            (None, Some(next)) => next.instances,
            (_, None) => EventOrder::new(0, 0),
        };
        Self {
            period,
            instances,
            ..self
        }
    }

    /// Records a written sample or end of an instance. Returns `false` as [`Self::touch`] does.
    pub(crate) fn note_written(&mut self, sample: &WriteSample, at: Instant) -> bool {
        let key = sample.key_hash.unwrap_or_default();
        if sample.kind == ChangeKind::Alive {
            return self.touch(key, at);
        }
        self.end(key);
        true
    }

    /// Records a sample of an instance. Returns `false` if there is no room to monitor another one.
    pub(crate) fn touch(&mut self, key: KeyHash, at: Instant) -> bool {
        self.period.is_none() || self.instances.touch(key, at)
    }

    /// Stops monitoring an instance that has ended.
    pub(crate) fn end(&mut self, key: KeyHash) {
        self.instances.remove(key);
    }

    /// Time at which the next period ends.
    pub(crate) fn next(&self) -> Option<Instant> {
        let (_, since) = self.instances.oldest()?;
        Some(since + self.period?)
    }

    /// Counts missed periods of a bounded number of instances, calling `is_missed` for each instance, and removes
    /// instances that have ended. Returns whether any was missed.
    pub(crate) fn miss(
        &mut self,
        now: Instant,
        has_ended: impl Fn(KeyHash) -> bool,
        mut is_missed: impl FnMut(KeyHash),
    ) -> bool {
        let Some(period) = self.period else {
            return false;
        };
        let before = self.total;
        for _ in 0..TIMED_QOS_ITEMS {
            let Some((key, since)) = self.instances.oldest() else {
                break;
            };
            let silent = now.saturating_since(since);
            if silent < period {
                break;
            }
            if has_ended(key) {
                self.instances.remove(key);
                continue;
            }
            let missed = silent.as_nanos() / period.as_nanos().max(1);
            let missed = u32::try_from(missed).unwrap_or(u32::MAX);
            // The next period starts at the end of the missed one. If this step is late, other instances may be due
            // slightly before it, by at most that delay.
            self.instances.touch(key, since + period * missed);
            self.total += u64::from(missed);
            is_missed(key);
            self.last_instance = key;
        }
        self.total > before
    }

    pub(crate) fn take(&mut self) -> Option<DeadlineMissed> {
        let change = self.total - self.reported;
        self.reported = self.total;
        (change > 0).then_some(DeadlineMissed {
            total: self.total,
            change,
            last_instance: self.last_instance,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_nanos(10);

    fn deadline() -> Deadline {
        Deadline::new(PERIOD, 4, 1)
    }

    #[test]
    fn each_period_without_a_sample_counts_once() {
        let mut deadline = deadline();
        deadline.touch([1; 16], Instant::new(0));
        assert_eq!(deadline.next(), Some(Instant::new(10)));
        assert!(!deadline.miss(Instant::new(9), |_| false, |_| {}));
        assert!(deadline.miss(Instant::new(10), |_| false, |_| {}));
        assert!(!deadline.miss(Instant::new(19), |_| false, |_| {}));
        assert!(deadline.miss(Instant::new(45), |_| false, |_| {}));
        let missed = deadline.take().unwrap();
        assert_eq!((missed.total, missed.change), (4, 4));
        assert_eq!(missed.last_instance, [1; 16]);
        assert_eq!(deadline.take(), None);
        assert_eq!(deadline.next(), Some(Instant::new(50)));
    }

    #[test]
    fn instances_are_watched_each_for_itself_until_they_end() {
        let mut deadline = deadline();
        deadline.touch([1; 16], Instant::new(0));
        deadline.touch([2; 16], Instant::new(0));
        deadline.touch([1; 16], Instant::new(8));
        assert!(deadline.miss(Instant::new(10), |_| false, |_| {}));
        assert_eq!(deadline.take().unwrap().last_instance, [2; 16]);
        deadline.end([2; 16]);
        assert!(!deadline.miss(Instant::new(40), |key| key == [1; 16], |_| {}));
        assert_eq!(deadline.next(), None);
    }

    #[test]
    fn an_instance_that_finds_no_room_is_said_to() {
        let mut deadline = Deadline::new(PERIOD, 1, 1);
        assert!(deadline.touch([1; 16], Instant::new(0)));
        assert!(!deadline.touch([2; 16], Instant::new(0)));
    }
}
