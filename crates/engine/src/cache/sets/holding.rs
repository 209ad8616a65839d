//! Samples held until their set has ended.

use core::{
    ops::{Range, RangeInclusive},
    time::Duration,
};

use isolane_wire::{guid::Guid, sequence::SequenceNumber, time::Instant};

use super::{Place, Refusal};
use crate::{
    cache::{Cache, SampleInfo, Slot},
    history::Keep,
    presentation::Progress,
};

impl Cache {
    /// Returns whether another sample can be held.
    pub(crate) fn has_set_room(&self) -> bool {
        let sets = self.sets.as_ref();
        sets.is_some_and(|sets| sets.set_aside() > 0)
    }

    /// Returns whether a writer's first waiting sample can be held. If KEEP_LAST will make it replace a sample of its
    /// set, that is removed now.
    pub(crate) fn makes_set_room(&mut self, proxy: u16) -> bool {
        if self.has_set_room() || self.evict_within_set(proxy) {
            return true;
        }
        let place = self.first_waiting_place(proxy);
        let set = place.and_then(|place| Some((place.publisher, place.set?)));
        if let (Some(set), Some(sets)) = (set, &mut self.sets) {
            let is_over = |refusal: &mut Refusal| refusal.set.is_none();
            sets.refused.take_if(is_over);
            sets.refused.get_or_insert(Refusal {
                set: Some(set),
                until: None,
            });
        }
        false
    }

    /// Returns whether a sample to be held has found no slot.
    pub(crate) fn has_refused_set(&self) -> bool {
        self.sets
            .as_ref()
            .is_some_and(|sets| sets.refused.is_some())
    }

    /// Returns whether the sample refused first still waits.
    pub(crate) fn is_still_refused(&self) -> bool {
        let refusal = self.sets.as_ref().and_then(|sets| sets.refused.as_ref());
        refusal.is_some_and(|refusal| refusal.set.is_some())
    }

    /// Returns how long the refused sample waits for other sets to end: `patience` from the first call; `None` if there
    /// are no other sets.
    pub(crate) fn refused_until(&mut self, now: Instant, patience: Duration) -> Option<Instant> {
        let sets = self.sets.as_mut()?;
        let refusal = sets.refused.as_mut()?;
        let (publisher, set) = refusal.set?;
        let is_other = |&slot: &u16| {
            let place = &sets.places[usize::from(slot)];
            (place.publisher, place.set) != (publisher, Some(set))
        };
        let until = *refusal.until.get_or_insert(now + patience);
        sets.held.iter().any(is_other).then_some(until)
    }

    /// Clears the refusal, so that it is checked again.
    pub(crate) fn forget_refused_set(&mut self) {
        if let Some(sets) = &mut self.sets {
            sets.refused = None;
        }
    }

    /// Removes the oldest held sample that a writer's first waiting one would replace: of the same instance, writer and
    /// set.
    #[cold]
    fn evict_within_set(&mut self, proxy: u16) -> bool {
        let (Keep::Last { depth }, Some(sets)) = (self.keep, &self.sets) else {
            return false;
        };
        let Some((next, place)) = self
            .waiting_info(proxy)
            .zip(self.first_waiting_place(proxy))
        else {
            return false;
        };
        let (key, set) = (next.key_hash, place.set);
        let is_alike = |&(_, &slot): &(usize, &u16)| {
            let held = self.slot(slot);
            let is_of_set = sets.places[usize::from(slot)].set == set;
            held.proxy == proxy && held.info.key_hash == key && is_of_set
        };
        let mut alike = sets.held.iter().enumerate().filter(is_alike);
        let Some((at, &slot)) = alike.next() else {
            return false;
        };
        if alike.count() + 1 < usize::from(depth) {
            return false;
        }
        if let Some(sets) = &mut self.sets {
            sets.held.remove(at);
        }
        self.empty(slot);
        self.evicted += 1;
        true
    }

    pub(super) fn hold_in_set(&mut self, proxy: u16) {
        let slot = self.waiting.remove(self.waiting_of(proxy).start);
        let Some(sets) = &mut self.sets else { return };
        let key = |slot: u16| {
            let place = &sets.places[usize::from(slot)];
            (place.publisher, place.number)
        };
        let at = sets.held.partition_point(|&other| key(other) <= key(slot));
        sets.held.insert(at, slot);
        let place = &sets.places[usize::from(slot)];
        let set = place.set.map(|set| (place.publisher, set));
        if let Some(refusal) = sets.refused.as_mut().filter(|it| it.set == set) {
            // The next refusal starts another wait.
            refusal.set = None;
        }
    }

    /// Returns the set with most held samples, and the proxy of one of its writers.
    pub(crate) fn largest_set(&self) -> Option<(u16, SequenceNumber)> {
        let sets = self.sets.as_ref()?;
        let of = |slot: u16| {
            let place = &sets.places[usize::from(slot)];
            (place.publisher, place.set)
        };
        let same = |one: &u16, other: &u16| of(*one) == of(*other);
        let largest = sets.held.chunk_by(same).max_by_key(|set| set.len())?;
        let first = *largest.first()?;
        Some((self.slot(first).proxy, of(first).1?))
    }

    /// Drops all held samples of a writer. Returns their number.
    pub(crate) fn drop_sets_of(&mut self, proxy: u16) -> u64 {
        self.drop_held_sets(|of, _| of == proxy)
    }

    /// Drops the held samples of a writer's open set. Returns their number.
    pub(crate) fn drop_open_set(&mut self, proxy: u16, progress: &Progress) -> u64 {
        let open = progress.open.map(|open| open.set);
        self.drop_held_sets(|of, place| of == proxy && place.set == open)
    }

    /// Drops sets of a publisher. Returns the number of samples.
    pub(crate) fn drop_sets(
        &mut self,
        publisher: Guid,
        dropped: &RangeInclusive<SequenceNumber>,
    ) -> u64 {
        self.drop_held_sets(|_, place| {
            place.publisher == publisher && place.set.is_some_and(|set| dropped.contains(&set))
        })
    }

    fn drop_held_sets(&mut self, is_dropped: impl Fn(u16, &Place) -> bool) -> u64 {
        let sets = self.sets.as_mut().filter(|sets| !sets.held.is_empty());
        let Some(sets) = sets else { return 0 };
        let (slots, memory, places) = (&mut self.slots, &mut self.memory, &sets.places);
        let before = sets.held.len();
        sets.held.retain(|&slot| {
            let at = usize::from(slot);
            let proxy = slots[at].as_ref().map_or(u16::MAX, |slot| slot.proxy);
            let is_kept = !is_dropped(proxy, &places[at]);
            if !is_kept {
                slots[at] = None;
                memory.give_back(slot);
            }
            is_kept
        });
        (before - sets.held.len()) as u64
    }

    /// Range of a set among the held samples.
    fn held_set(&self, publisher: Guid, set: SequenceNumber) -> Range<usize> {
        let Some(sets) = &self.sets else { return 0..0 };
        let place = |slot: u16| &sets.places[usize::from(slot)];
        let is_before =
            |place: &Place| (place.publisher, place.set.unwrap_or(place.number)) < (publisher, set);
        let start = sets.held.partition_point(|&slot| is_before(place(slot)));
        let is_in = |&&slot: &&u16| {
            let place = place(slot);
            place.publisher == publisher && place.set == Some(set)
        };
        let count = sets.held[start..].iter().take_while(is_in).count();
        start..start + count
    }

    /// Returns whether a whole set finds room among the available samples. A set larger than that room fits when none
    /// are available.
    pub(crate) fn has_room_for_set(&mut self, publisher: Guid, set: SequenceNumber) -> bool {
        let range = self.held_set(publisher, set);
        let available = self.available.len();
        available == 0 || available + self.new_of(range) <= self.available_room
    }

    /// Number of held samples that would replace no other, as limited by HISTORY for each instance.
    fn new_of(&mut self, range: Range<usize>) -> usize {
        let Some(sets) = &mut self.sets else { return 0 };
        let Keep::Last { depth } = self.keep else {
            return range.len();
        };
        let slots = &self.slots;
        let key = |slot: u16| {
            let slot = slots[usize::from(slot)].as_ref();
            slot.and_then(|slot| slot.info.key_hash).unwrap_or_default()
        };
        sets.by_instance.clear();
        sets.by_instance.extend_from_slice(&sets.held[range]);
        sets.by_instance.sort_unstable_by_key(|&slot| key(slot));
        let instances = sets
            .by_instance
            .chunk_by(|&one, &other| key(one) == key(other));
        let new = instances.map(|instance| {
            let there = self.instances.samples(key(instance[0]));
            instance.len().min(usize::from(depth.saturating_sub(there)))
        });
        new.sum()
    }

    /// Makes a held set available, except samples for which `is_seen` returns `false`. Returns the number of samples.
    pub(crate) fn show_set(
        &mut self,
        publisher: Guid,
        set: SequenceNumber,
        shown: u64,
        mut is_seen: impl FnMut(&mut Self, u16, &SampleInfo) -> bool,
    ) -> usize {
        self.permit(SequenceNumber(0), shown);
        let range = self.held_set(publisher, set);
        let mut count = 0;
        for at in range.clone() {
            let slot = match &self.sets {
                Some(sets) => sets.held[at],
                None => return 0,
            };
            let Slot { proxy, info, .. } = *self.slot(slot);
            if !is_seen(self, proxy, &info) {
                self.empty(slot);
                continue;
            }
            // There is room for the whole set, or its writer is removed and it is shown without.
            if self.make_room(proxy, &info) == Ok(false) {
                self.empty(slot);
                continue;
            }
            self.make_available(slot);
            self.note_shown();
            count += 1;
        }
        if let Some(sets) = &mut self.sets {
            sets.held.drain(range);
        }
        count
    }
}
