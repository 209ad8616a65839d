//! TIME_BASED_FILTER (DDS 1.4 §2.2.3.12): a reader sees at most one sample of each instance in each
//! `minimum_separation`, by the time they are received.
//!
//! What comes too soon was received all the same: it is acknowledged, not asked for again, and counted. A
//! reliable reader keeps the last such sample of each instance back, and shows it when the separation is
//! over: so it ends with the writer's last value, as the standard wants it once the writer rests. A younger
//! sample takes its place before. The end of an instance is shown at once, and what was kept back of it goes.
//! The pages of [`crate::sample_memory`] bound how many long samples are kept back.

use core::time::Duration;

use isolane_wire::{cdr::KeyHash, time::Instant};

use super::periods::Periods;
use crate::{
    cache::Cache,
    limits::{CLOCK_ITEMS, MIN_PERIOD},
};

#[derive(Debug)]
pub(crate) struct Filter {
    separation: Duration,
    /// Since when each instance was seen last, and the slot of the sample that is kept back.
    instances: Periods<Option<u16>>,
    /// Samples that passed unfiltered because there was no room for another instance, and are yet to be
    /// counted.
    pub(crate) unwatched: u64,
}

impl Filter {
    /// Room for so many instances.
    pub(crate) fn new(separation: Duration, instances: u16, seed: u64) -> Self {
        Self {
            separation,
            instances: Periods::new(instances, seed),
            unwatched: 0,
        }
    }

    /// The filter with another separation; with none, what is kept back is shown as soon as there is
    /// room.
    pub(crate) fn followed_by(self, next: Option<Self>) -> Self {
        Self {
            separation: next.map_or(Duration::ZERO, |next| next.separation),
            ..self
        }
    }

    /// Whether a sample of this instance comes too soon.
    pub(crate) fn is_too_soon(&self, key: KeyHash, at: Instant) -> bool {
        let seen = self.instances.get(key);
        seen.is_some_and(|(since, _)| at < since + self.separation)
    }

    /// A sample of an instance is shown, or its end. Returns the slot of one that was kept back, whose place
    /// it takes.
    pub(crate) fn pass(&mut self, key: KeyHash, at: Instant) -> Option<u16> {
        if self.instances.touch(key, at) {
            return self.instances.get_mut(key)?.take();
        }
        // The separation of the oldest may be over, and nothing kept back of it: then it need not be
        // remembered.
        if let Some((oldest, since)) = self.instances.oldest()
            && at >= since + self.separation
            && matches!(self.instances.get(oldest), Some((_, None)))
        {
            self.instances.remove(oldest);
            self.instances.touch(key, at);
        } else {
            self.unwatched += 1;
        }
        None
    }

    /// The end of an instance: returns the slot of what was kept back of it.
    pub(crate) fn end(&mut self, key: KeyHash) -> Option<u16> {
        self.instances.get_mut(key)?.take()
    }

    /// Keeps the sample in this slot back; nothing of its instance is kept back now.
    pub(crate) fn keep_back(&mut self, key: KeyHash, slot: u16) {
        let kept = self.instances.get_mut(key);
        debug_assert_eq!(kept, Some(&mut None), "it came too soon after another");
        if let Some(kept) = kept {
            *kept = Some(slot);
        }
    }

    /// The slot of what is kept back of an instance.
    fn kept_back(&self, key: KeyHash) -> Option<u16> {
        *self.instances.get(key)?.1
    }

    /// How long what is kept back waits: so long that to look for room again and again leaves time for all else.
    fn wait(&self) -> Duration {
        self.separation.max(MIN_PERIOD)
    }

    /// When something kept back is to be shown, at the earliest.
    pub(crate) fn next(&self, cache: Option<&Cache>) -> Option<Instant> {
        cache.filter(|cache| cache.held() > 0)?;
        let (_, since) = self.instances.oldest()?;
        Some(since + self.wait())
    }

    /// Shows what was kept back of instances whose separation is over, a bounded number of them, where the
    /// cache has room; true: there was some.
    pub(crate) fn release(&mut self, now: Instant, cache: &mut Cache) -> bool {
        let mut is_any = false;
        for _ in 0..CLOCK_ITEMS {
            let Some((key, since)) = self.instances.oldest() else {
                break;
            };
            if now < since + self.wait() {
                break;
            }
            match self.kept_back(key) {
                None => drop(self.instances.remove(key)),
                Some(slot) => {
                    // Without room it is tried again when as much time has passed once more.
                    self.instances.touch(key, now);
                    if cache.show_held(slot).is_ok() {
                        self.end(key);
                        is_any = true;
                    }
                }
            }
        }
        is_any
    }

    /// A writer is gone: what was kept back of its samples is shown, where there is room, or goes. Returns
    /// how many went.
    pub(crate) fn writer_gone(&mut self, proxy: u16, cache: &mut Cache) -> u64 {
        let mut gone = 0;
        for kept in self.instances.values_mut() {
            let of_writer = |slot: &mut u16| cache.writer_of_held(*slot) == proxy;
            let Some(slot) = kept.take_if(of_writer) else {
                continue;
            };
            if cache.show_held(slot).is_err() {
                cache.drop_held(slot);
                gone += 1;
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use isolane_wire::sequence::SequenceNumber;

    use super::*;
    use crate::sample_memory::Sizes;
    use crate::{
        cache::{Room, SampleInfo},
        history::Keep,
    };

    const KEY: KeyHash = [1; 16];

    fn sample(sequence: i64) -> SampleInfo {
        SampleInfo {
            sequence: SequenceNumber(sequence),
            key_hash: Some(KEY),
            ..SampleInfo::UNSEEN
        }
    }

    #[test]
    fn without_room_it_is_tried_again_no_sooner_than_anything_else_is_done_by_itself() {
        let room = Room {
            samples: 1,
            waiting: 1,
            held: 1,
            sizes: Sizes::fixed(8),
        };
        for is_removed in [false, true] {
            let mut cache = Cache::try_new(Keep::All, true, room, 1).expect("memory for a test");
            let mut filter = Filter::new(Duration::from_nanos(20), 1, 1);
            filter.pass(KEY, Instant::new(0));
            cache.push(0, sample(1), &[]).unwrap();
            let slot = cache.hold(0, sample(2), &[]).unwrap();
            filter.keep_back(KEY, slot);
            if is_removed {
                filter = filter.followed_by(None);
            }
            let now = Instant::new(1_000_000_000);
            assert!(!filter.release(now, &mut cache), "it is full");
            assert_eq!(filter.next(Some(&cache)), Some(now + MIN_PERIOD));
            cache.pop();
            assert!(filter.release(now + MIN_PERIOD, &mut cache));
            assert_eq!(filter.next(Some(&cache)), None);
        }
    }
}
