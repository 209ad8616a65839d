//! READER_DATA_LIFECYCLE (DDS 1.4 §2.2.3.22): samples of an ended instance are purged after a delay.
//!
//! Disposed instances and instances without writers have separate delays. Each has a list of its instances in the order
//! of their ends, so the first entry is due first. An instance enters when it ends and leaves when it is alive again.
//! Purged samples are counted (`purged`).

use alloc::boxed::Box;
use core::time::Duration;

use isolane_wire::{cdr::KeyHash, qos::ReaderDataLifecycle, time::Instant};

use crate::{
    limits::TIMED_QOS_ITEMS,
    reader::{cache::Cache, instance::InstanceState},
    timed_qos::{event_order::EventOrder, period},
};

/// Instances of one of the two delays.
#[derive(Debug)]
struct Purge {
    delay: Duration,
    instances: EventOrder<()>,
}

impl Purge {
    fn next(&self) -> Option<Instant> {
        let (_, since) = self.instances.oldest()?;
        Some(since + self.delay)
    }

    /// Removes and returns an instance that is due.
    fn take_due(&mut self, now: Instant) -> Option<KeyHash> {
        let (key, since) = self.instances.oldest()?;
        if now < since + self.delay {
            return None;
        }
        self.instances.remove(key);
        Some(key)
    }
}

/// Ended instances whose samples are to be purged.
#[derive(Debug)]
pub(crate) struct Purges {
    nowriter: Option<Purge>,
    disposed: Option<Purge>,
    /// Latest end. Times of later ends are raised to it, to keep the lists ordered.
    latest: Instant,
}

impl Purges {
    /// Creates the lists of a policy for up to `instances` instances; `None` if nothing is purged.
    pub(crate) fn of(policy: &ReaderDataLifecycle, instances: u16, seed: u64) -> Option<Box<Self>> {
        let purge = |delay| {
            period(delay).map(|delay| Purge {
                delay,
                instances: EventOrder::new(instances, seed),
            })
        };
        let purges = Self {
            nowriter: purge(policy.autopurge_nowriter_samples_delay),
            disposed: purge(policy.autopurge_disposed_samples_delay),
            latest: Instant::new(0),
        };
        let is_any = purges.nowriter.is_some() || purges.disposed.is_some();
        is_any.then(|| Box::new(purges))
    }

    /// Returns whether the policy purges anything.
    pub(super) fn is_requested(policy: &ReaderDataLifecycle) -> bool {
        *policy != ReaderDataLifecycle::default()
    }

    /// Returns whether an instance waits to be purged.
    pub(crate) fn counts_for(&self, key: KeyHash) -> bool {
        let lists = [&self.nowriter, &self.disposed];
        let mut lists = lists.into_iter().flatten();
        lists.any(|list| list.instances.get(key).is_some())
    }

    /// Records a change of an instance's state at time `at`.
    pub(crate) fn turn(&mut self, key: KeyHash, state: InstanceState, at: Instant) {
        self.latest = self.latest.max(at);
        let lists = [
            (&mut self.nowriter, InstanceState::NotAliveNoWriters),
            (&mut self.disposed, InstanceState::NotAliveDisposed),
        ];
        for (list, counts_for) in lists {
            let Some(list) = list else { continue };
            list.instances.remove(key);
            if state == counts_for {
                // Each list has a place for every instance.
                list.instances.touch(key, self.latest);
            }
        }
    }

    /// Time at which the next instance is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        let lists = [&self.nowriter, &self.disposed];
        lists.into_iter().flatten().filter_map(Purge::next).min()
    }

    pub(crate) fn take_due(&mut self, now: Instant) -> Option<KeyHash> {
        let lists = [&mut self.nowriter, &mut self.disposed];
        lists
            .into_iter()
            .flatten()
            .find_map(|list| list.take_due(now))
    }
}

impl Cache {
    /// Purges the samples of a bounded number of due instances. Returns the number of samples.
    pub(super) fn purge(&mut self, now: Instant) -> usize {
        let mut is_any = false;
        for _ in 0..TIMED_QOS_ITEMS {
            if !self.instances.purge_next(now) {
                break;
            }
            is_any = true;
        }
        match is_any {
            true => self.drop_purged(),
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use isolane_wire::time;

    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::new(milliseconds * 1_000_000)
    }

    fn purges() -> Purges {
        let policy = ReaderDataLifecycle {
            autopurge_nowriter_samples_delay: time::Duration::from_millis(20),
            autopurge_disposed_samples_delay: time::Duration::from_millis(10),
        };
        *Purges::of(&policy, 4, 1).expect("it asks for something")
    }

    #[test]
    fn each_end_has_its_own_time_and_a_new_life_ends_it() {
        let mut purges = purges();
        purges.turn([1; 16], InstanceState::NotAliveNoWriters, at(0));
        purges.turn([2; 16], InstanceState::NotAliveDisposed, at(5));
        purges.turn([3; 16], InstanceState::NotAliveNoWriters, at(6));
        assert_eq!(purges.next(), Some(at(15)));
        assert_eq!(purges.take_due(at(14)), None);
        assert_eq!(purges.take_due(at(15)), Some([2; 16]));
        purges.turn([1; 16], InstanceState::Alive, at(16));
        assert_eq!(purges.next(), Some(at(26)));
        purges.turn([3; 16], InstanceState::NotAliveDisposed, at(17));
        assert_eq!(purges.take_due(at(26)), None);
        assert_eq!(purges.take_due(at(27)), Some([3; 16]));
        assert_eq!(purges.next(), None);
    }

    #[test]
    fn the_default_keeps_all() {
        assert!(Purges::of(&ReaderDataLifecycle::default(), 4, 1).is_none());
        assert!(!Purges::is_requested(&ReaderDataLifecycle::default()));
    }
}
