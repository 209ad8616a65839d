//! TIME_BASED_FILTER (DDS 1.4 §2.2.3.12): at most one sample of each instance per `minimum_separation`, by reception
//! time.
//!
//! An early sample counts as received: it is acknowledged, not requested again, and counted. A reliable reader holds
//! back the last early sample of each instance and delivers it when the separation has passed. It thus ends with the
//! writer's last value, as the standard requires; a newer sample replaces the held one. The end of an instance is
//! delivered at once and discards the held sample. The pages of [`crate::sample_memory`] bound the memory of long held
//! samples.

use core::time::Duration;

use isolane_wire::{cdr::KeyHash, time::Instant};

use crate::{
    limits::{MIN_PERIOD, TIMED_QOS_ITEMS},
    reader::cache::Cache,
    slab::WriterProxyId,
    timed_qos::event_order::EventOrder,
};

/// State of a reader's TIME_BASED_FILTER.
#[derive(Debug)]
pub(crate) struct Filter {
    separation: Duration,
    /// Last delivery time of each instance, and the slot of its held sample.
    instances: EventOrder<Option<u16>>,
    /// Samples that passed unfiltered for lack of room for their instance, not yet added to the counters.
    pub(crate) unwatched: u64,
}

impl Filter {
    pub(crate) fn new(separation: Duration, instances: u16, seed: u64) -> Self {
        Self {
            separation,
            instances: EventOrder::new(instances, seed),
            unwatched: 0,
        }
    }

    /// Applies another separation. If the filter is removed, held samples are delivered as soon as there is room.
    pub(crate) fn followed_by(self, next: Option<Self>) -> Self {
        Self {
            separation: next.map_or(Duration::ZERO, |next| next.separation),
            ..self
        }
    }

    /// Returns whether a sample of an instance arrives before the separation has passed.
    pub(crate) fn is_too_soon(&self, key: KeyHash, at: Instant) -> bool {
        let seen = self.instances.get(key);
        seen.is_some_and(|(since, _)| at < since + self.separation)
    }

    /// Records the delivery of a sample. Returns the slot of a held sample, which it replaces.
    pub(crate) fn pass(&mut self, key: KeyHash, at: Instant) -> Option<u16> {
        if self.instances.touch(key, at) {
            return self.instances.get_mut(key)?.take();
        }
        // The oldest instance can be forgotten if its separation has passed and nothing of it is held.
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

    /// Records the end of an instance. Returns the slot of its held sample.
    pub(crate) fn end(&mut self, key: KeyHash) -> Option<u16> {
        self.instances.get_mut(key)?.take()
    }

    /// Stores the slot of a held sample. Requires that no other sample of the instance is held.
    pub(crate) fn keep_back(&mut self, key: KeyHash, slot: u16) {
        let kept = self.instances.get_mut(key);
        debug_assert_eq!(kept, Some(&mut None), "it came too soon after another");
        if let Some(kept) = kept {
            *kept = Some(slot);
        }
    }

    fn kept_back(&self, key: KeyHash) -> Option<u16> {
        *self.instances.get(key)?.1
    }

    /// Delay of held samples, at least `MIN_PERIOD` to bound the cost of retries without room.
    fn wait(&self) -> Duration {
        self.separation.max(MIN_PERIOD)
    }

    /// Earliest time at which a held sample is due.
    pub(crate) fn next(&self, cache: Option<&Cache>) -> Option<Instant> {
        cache.filter(|cache| cache.held() > 0)?;
        let (_, since) = self.instances.oldest()?;
        Some(since + self.wait())
    }

    /// Delivers held samples whose separation has passed, of a bounded number of instances, while the cache has room.
    /// Returns whether any was delivered.
    pub(crate) fn release(&mut self, now: Instant, cache: &mut Cache) -> bool {
        let mut is_any = false;
        for _ in 0..TIMED_QOS_ITEMS {
            let Some((key, since)) = self.instances.oldest() else {
                break;
            };
            if now < since + self.wait() {
                break;
            }
            match self.kept_back(key) {
                None => drop(self.instances.remove(key)),
                Some(slot) => {
                    // Without room the next attempt comes after another such delay.
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

    /// Delivers a removed writer's held samples where there is room, and drops the others. Returns the number dropped.
    pub(crate) fn writer_gone(&mut self, proxy: WriterProxyId, cache: &mut Cache) -> u64 {
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
    use crate::{
        reader::{cache::Room, read_take::SampleInfo},
        sample_memory::Sizes,
        writer::history::Keep,
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
            cache.push(WriterProxyId(0), sample(1), &[]).unwrap();
            let slot = cache.hold(WriterProxyId(0), sample(2), &[]).unwrap();
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
