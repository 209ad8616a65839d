//! LIFESPAN expiry of samples in the cache (DDS 1.4 §2.2.3.16).
//!
//! Each sample stores its expiry. Each access to the cache first drops expired samples. That is one comparison if none
//! is due, otherwise one pass over all samples. The reader's timer also drops them, a bounded number in each step, so
//! that their room is freed without access.

use isolane_wire::time::Instant;

use crate::{
    limits::EXPIRY_ITEMS,
    reader::cache::{Cache, NEVER},
};

/// Position of the timer's pass through the available samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sweep {
    /// Samples before this index are not expired.
    place: usize,
    /// Earliest expiry of the samples before this index.
    earliest: Instant,
}

impl Sweep {
    pub(super) const BEGIN: Self = Self {
        place: 0,
        earliest: NEVER,
    };

    /// Adjusts the index after the removal of a sample. If the sample was not before the index, one sample is checked
    /// twice.
    #[inline]
    pub(super) fn note_removed(&mut self) {
        self.place = self.place.saturating_sub(1);
    }
}

impl Cache {
    /// Returns whether any available sample has an expiry.
    pub(crate) fn may_expire(&self) -> bool {
        self.earliest_expiry != NEVER
    }

    /// Lower bound of the next expiry; `None` if no available sample expires.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.may_expire().then_some(self.earliest_expiry)
    }

    /// Drops all expired available samples in one pass, and returns their number.
    pub(crate) fn expire(&mut self, now: Instant) -> u64 {
        if now < self.earliest_expiry {
            return 0;
        }
        self.earliest_expiry = NEVER;
        let before = self.available.len();
        for _ in 0..before {
            let Some(index) = self.available.pop_front() else {
                break;
            };
            let expires = self.slot(index).info.expires.unwrap_or(NEVER);
            if expires <= now {
                self.release(index);
            } else {
                self.available.push_back(index);
                self.earliest_expiry = self.earliest_expiry.min(expires);
            }
        }
        self.sweep = Sweep::BEGIN;
        let expired = (before - self.available.len()) as u64;
        self.expired += expired;
        expired
    }

    /// Checks a bounded number of samples, continuing where the last call stopped. While [`Self::next_expiry`] is not
    /// in the future, more samples may be due.
    pub(crate) fn expire_some(&mut self, now: Instant) -> u64 {
        let mut expired = 0;
        for _ in 0..EXPIRY_ITEMS {
            if now < self.earliest_expiry {
                break;
            }
            let Some(&index) = self.available.get(self.sweep.place) else {
                // The pass is complete.
                self.earliest_expiry = self.sweep.earliest;
                self.sweep = Sweep::BEGIN;
                break;
            };
            let expires = self.slot(index).info.expires.unwrap_or(NEVER);
            // The index passes the sample before a removal, which moves the index back by one.
            self.sweep.place += 1;
            if expires <= now {
                self.available.remove(self.sweep.place - 1);
                self.release(index);
                expired += 1;
            } else {
                self.sweep.earliest = self.sweep.earliest.min(expires);
            }
        }
        self.expired += expired;
        expired
    }
}

#[cfg(test)]
mod tests {
    use isolane_wire::sequence::SequenceNumber;

    use super::*;
    use crate::slab::WriterProxyId;
    use crate::{
        reader::{
            cache::{Cache, Room},
            read_take::SampleInfo,
        },
        sample_memory::Sizes,
        writer::history::Keep,
    };

    fn sample(sequence: i64, key: u8, expires: Option<u64>) -> SampleInfo {
        SampleInfo {
            sequence: SequenceNumber(sequence),
            expires: expires.map(Instant::new),
            key_hash: Some([key; 16]),
            ..SampleInfo::UNSEEN
        }
    }

    #[test]
    fn what_expires_goes_wherever_it_stands_and_its_room_is_free() {
        let room = Room {
            samples: 4,
            waiting: 1,
            held: 0,
            sizes: Sizes::fixed(8),
        };
        let mut cache = Cache::try_new(Keep::All, true, room, 1).expect("memory for a test");
        let expiries = [(1, None), (1, Some(20)), (2, Some(10)), (1, Some(30))];
        for (sequence, (key, expires)) in (1..).zip(expiries) {
            cache
                .push(WriterProxyId(0), sample(sequence, key, expires), &[])
                .unwrap();
        }
        assert_eq!(cache.expire(Instant::new(9)), 0);
        assert_eq!(cache.next_expiry(), Some(Instant::new(10)));
        assert_eq!(cache.expire(Instant::new(20)), 2);
        let left = |cache: &Cache| {
            let numbers = (0..).map_while(|nth| Some(cache.get(nth)?.0.sequence.get()));
            numbers.collect::<alloc::vec::Vec<_>>()
        };
        assert_eq!(left(&cache), [1, 4]);
        cache
            .push(WriterProxyId(0), sample(5, 1, None), &[])
            .unwrap();
        assert_eq!(cache.expire(Instant::new(30)), 1);
        assert_eq!(left(&cache), [1, 5]);
        assert_eq!(cache.next_expiry(), None);
        assert_eq!(cache.expired, 3);
    }

    fn full_of(samples: i64, expires: impl Fn(i64) -> Option<u64>) -> Cache {
        let room = Room {
            samples: samples as u16,
            waiting: 1,
            held: 0,
            sizes: Sizes::fixed(8),
        };
        let mut cache = Cache::try_new(Keep::All, true, room, 1).expect("memory for a test");
        for sequence in 1..=samples {
            let info = sample(sequence, 1, expires(sequence));
            cache.push(WriterProxyId(0), info, &[]).unwrap();
        }
        cache
    }

    #[test]
    fn a_step_looks_at_a_bounded_number_and_the_next_goes_on_behind_them() {
        const ITEMS: i64 = EXPIRY_ITEMS as i64;
        let mut cache = full_of(3 * ITEMS, |_| Some(10));
        let now = Instant::new(10);
        let steps = (0..).map_while(|_| {
            let is_due = cache.next_expiry().is_some_and(|due| due <= now);
            is_due.then(|| cache.expire_some(now))
        });
        let steps: alloc::vec::Vec<_> = steps.collect();
        assert_eq!(steps, [EXPIRY_ITEMS as u64, ITEMS as u64, ITEMS as u64, 0]);
        assert_eq!((cache.available(), cache.expired), (0, 3 * ITEMS as u64));
    }

    #[test]
    fn what_is_taken_between_steps_hides_nothing_that_expires() {
        const ITEMS: i64 = EXPIRY_ITEMS as i64;
        // Every third sample never expires, and the last sample expires after the others.
        let last = 2 * ITEMS;
        let lives = |sequence| match sequence {
            sequence if sequence == last => Some(20),
            sequence if sequence % 3 == 0 => None,
            _ => Some(10),
        };
        for taken in 0..8 {
            let mut cache = full_of(last, lives);
            cache.expire_some(Instant::new(10));
            for _ in 0..taken {
                cache.pop();
            }
            while cache
                .next_expiry()
                .is_some_and(|due| due <= Instant::new(15))
            {
                cache.expire_some(Instant::new(15));
            }
            assert_eq!(cache.next_expiry(), Some(Instant::new(20)), "{taken} taken");
            let mut left = (0..).map_while(|nth| Some(cache.get(nth)?.0.sequence.get()));
            assert!(
                left.all(|sequence| lives(sequence) != Some(10)),
                "{taken} taken"
            );
        }
    }
}
