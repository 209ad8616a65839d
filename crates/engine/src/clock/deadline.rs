//! DEADLINE (DDS 1.4 §2.2.3.7): each instance is updated once a period at least.
//!
//! A writer counts from what it writes, a reader from what it receives; an instance is watched from its
//! first sample on, until it is disposed or nobody writes it any more. Each period that passes without a
//! sample counts once.

use core::time::Duration;

use isolane_wire::{cdr::KeyHash, time::Instant};

use super::periods::Periods;
use crate::{history::ChangeKind, limits::CLOCK_ITEMS, write::WriteSample};

/// Periods that passed without a sample (*OfferedDeadlineMissedStatus*, *RequestedDeadlineMissedStatus*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadlineMissed {
    /// So many ever, of all instances.
    pub total: u64,
    /// Those since this was last taken.
    pub change: u64,
    /// The instance whose period passed last; zeros for a topic without a key.
    pub last_instance: KeyHash,
}

/// What one endpoint knows of its deadlines.
#[derive(Debug)]
pub(crate) struct Deadline {
    /// `None`: none is asked for any more, and what was counted is yet to be told.
    period: Option<Duration>,
    instances: Periods<()>,
    total: u64,
    told: u64,
    last_instance: KeyHash,
}

impl Deadline {
    /// Room for so many instances.
    pub(crate) fn new(period: Duration, instances: u16, seed: u64) -> Self {
        Self {
            period: Some(period),
            instances: Periods::new(instances, seed),
            total: 0,
            told: 0,
            last_instance: KeyHash::default(),
        }
    }

    /// The same with the period of another, or with none. What has been counted stays, and so do the instances,
    /// unless for a while none was watched.
    pub(crate) fn followed_by(self, next: Option<Self>) -> Self {
        let period = next.as_ref().and_then(|next| next.period);
        let instances = match (self.period, next) {
            (Some(_), Some(_)) => self.instances,
            (None, Some(next)) => next.instances,
            (_, None) => Periods::new(0, 0),
        };
        Self {
            period,
            instances,
            ..self
        }
    }

    /// A writer has written a sample, or the end of an instance. False: as [`Self::touch`].
    pub(crate) fn note_written(&mut self, sample: &WriteSample, at: Instant) -> bool {
        let key = sample.key_hash.unwrap_or_default();
        if sample.kind == ChangeKind::Alive {
            return self.touch(key, at);
        }
        self.end(key);
        true
    }

    /// A sample of an instance. False: there is no room to watch another one.
    pub(crate) fn touch(&mut self, key: KeyHash, at: Instant) -> bool {
        self.period.is_none() || self.instances.touch(key, at)
    }

    /// An instance has ended.
    pub(crate) fn end(&mut self, key: KeyHash) {
        self.instances.remove(key);
    }

    /// When the next period ends.
    pub(crate) fn next(&self) -> Option<Instant> {
        let (_, since) = self.instances.oldest()?;
        Some(since + self.period?)
    }

    /// Counts periods that have passed, of a bounded number of instances, each of which `is_missed` is told of,
    /// and forgets instances that have ended. True: some were missed.
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
        for _ in 0..CLOCK_ITEMS {
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
            // The next period follows the one that was missed. Where this came late, others may lie
            // before it that are due a little later: by as much as this came late.
            self.instances.touch(key, since + period * missed);
            self.total += u64::from(missed);
            is_missed(key);
            self.last_instance = key;
        }
        self.total > before
    }

    pub(crate) fn take(&mut self) -> Option<DeadlineMissed> {
        let change = self.total - self.told;
        self.told = self.total;
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
