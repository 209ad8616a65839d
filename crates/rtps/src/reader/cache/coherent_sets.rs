//! Samples in coherent sets or in an order over several writers (`coherent_access`): the place of each sample in its
//! set and order, and the samples that are held until their set has ended.
//!
//! Held samples use reserved slots, so they take no room from available or waiting samples. The number of reserved
//! slots is the maximum number of available samples, because a larger set could never become available as a whole.
//!
//! Waiting samples of all writers share the slots for out-of-order samples.

use alloc::{boxed::Box, vec, vec::Vec};
use core::{
    ops::{Range, RangeInclusive},
    time::Duration,
};

use isolane_wire::{
    guid::{EntityId, Guid},
    message::GroupDigest,
    sequence::SequenceNumber,
    time::Instant,
};

use crate::{
    coherent_access::{Access, Progress},
    reader::reassembly::SampleId,
    reader::{
        cache::{Cache, Refused, Slot},
        read_take::SampleInfo,
    },
    slab::WriterProxyId,
    writer::history::Keep,
};

/// Place of a sample in its set and order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Publisher or writer whose samples are numbered.
    pub(crate) publisher: Guid,
    /// Sequence number within the publisher or writer.
    pub(crate) number: SequenceNumber,
    /// Number of the first sample of its set, in the same numbering.
    pub(crate) set: Option<SequenceNumber>,
    /// Writer sequence number of the first sample of its set.
    pub(crate) first: Option<SequenceNumber>,
    /// True if the sample becomes available only after all earlier samples.
    pub(crate) is_ordered: bool,
    /// True for the end of a set, which is no sample.
    pub(crate) is_end: bool,
    /// Writers of the group when the sample was written.
    pub(crate) writers: Option<GroupDigest>,
    /// Position in the order in which samples of all readers became available.
    pub(crate) shown: u64,
}

impl Place {
    const NONE: Self = Self {
        publisher: Guid::UNKNOWN,
        number: SequenceNumber(0),
        set: None,
        first: None,
        is_ordered: false,
        is_end: false,
        writers: None,
        shown: 0,
    };

    /// Returns the place that the sample has among the samples of its writer alone.
    pub(crate) fn alone(self, writer: EntityId, sequence: SequenceNumber, access: Access) -> Self {
        Self {
            publisher: Guid {
                entity: writer,
                ..self.publisher
            },
            number: sequence,
            set: self.first.filter(|_| access.is_coherent),
            is_ordered: false,
            ..self
        }
    }
}

/// Coherent set of the first sample that found no slot.
#[derive(Debug, Clone, Copy)]
struct Refusal {
    /// `None` once that sample has found a slot. Other samples may have been refused meanwhile.
    set: Option<(Guid, SequenceNumber)>,
    /// End of the wait for other sets; `None` before the sample is first checked.
    until: Option<Instant>,
}

/// State of a cache with sets or order.
#[derive(Debug)]
pub(super) struct Sets {
    access: Access,
    /// Place of the sample in each slot.
    places: Vec<Place>,
    /// Place of the next sample stored.
    next: Place,
    /// Held samples, ascending by publisher and number.
    held: Vec<u16>,
    /// Scratch list of held samples sorted by instance, for counting.
    by_instance: Vec<u16>,
    room: usize,
    refused: Option<Refusal>,
    /// Sample displaced by one of another writer: its proxy and sequence number.
    displaced: Option<SampleId>,
    /// Highest number that may become available now.
    permitted: SequenceNumber,
    /// Order position of samples that become available now.
    shown: u64,
}

impl Sets {
    /// Number of free reserved slots.
    pub(super) fn set_aside(&self) -> usize {
        self.room - self.held.len()
    }
}

impl Cache {
    /// Enables sets and order. Reserves for sets `room` of the slots for held-back and held samples.
    pub(crate) fn group(&mut self, access: Access, room: u16) {
        let room = usize::from(room).min(self.held_room);
        self.held_room -= room;
        self.sets = Some(Box::new(Sets {
            access,
            places: vec![Place::NONE; self.slots.len()],
            next: Place::NONE,
            held: Vec::with_capacity(room),
            by_instance: Vec::with_capacity(room),
            room,
            refused: None,
            displaced: None,
            permitted: SequenceNumber(0),
            shown: 0,
        }));
    }

    /// Returns whether samples have sets or an order.
    #[inline]
    pub(crate) fn groups(&self) -> bool {
        self.sets.is_some()
    }

    pub(crate) fn access(&self) -> Option<Access> {
        self.sets.as_ref().map(|sets| sets.access)
    }

    /// Number of held samples.
    pub(crate) fn in_sets(&self) -> usize {
        self.sets.as_ref().map_or(0, |sets| sets.held.len())
    }

    /// Sets the highest number that may become available now, and the order position for these samples.
    pub(crate) fn permit(&mut self, number: SequenceNumber, shown: u64) {
        if let Some(sets) = &mut self.sets {
            (sets.permitted, sets.shown) = (number, shown);
        }
    }

    /// Sets the order position of samples that become available from now on.
    pub(crate) fn count_as_shown(&mut self, shown: u64) {
        if let Some(sets) = &mut self.sets {
            sets.shown = shown;
        }
    }

    pub(crate) fn permitted(&self) -> SequenceNumber {
        let sets = self.sets.as_ref();
        sets.map_or(SequenceNumber(0), |sets| sets.permitted)
    }

    /// Records the order position of the sample that has just become available.
    pub(super) fn note_shown(&mut self) {
        if let (Some(&slot), Some(sets)) = (self.available.back(), &mut self.sets) {
            sets.places[usize::from(slot)].shown = sets.shown;
        }
    }

    /// Sets the place of a synthetic sample (end of an instance), which has no sequence number: after all samples that
    /// are available already.
    pub(super) fn note_end_shown(&mut self, slot: u16) {
        if let Some(sets) = &mut self.sets {
            sets.places[usize::from(slot)] = Place {
                number: SequenceNumber(i64::MAX),
                shown: sets.shown,
                ..Place::NONE
            };
        }
    }

    /// Order position and number of the oldest available sample.
    pub(crate) fn first_shown(&self) -> Option<(u64, SequenceNumber)> {
        let place = self.place(*self.available.front()?);
        Some((place.shown, place.number))
    }

    fn place(&self, slot: u16) -> Place {
        let sets = self.sets.as_ref();
        sets.map_or(Place::NONE, |sets| sets.places[usize::from(slot)])
    }
}

impl Cache {
    /// Returns whether another sample can be held.
    pub(crate) fn has_set_room(&self) -> bool {
        let sets = self.sets.as_ref();
        sets.is_some_and(|sets| sets.set_aside() > 0)
    }

    /// Returns whether a writer's first waiting sample can be held. If KEEP_LAST will make it replace a sample of its
    /// set, the replaced sample is removed now.
    pub(crate) fn makes_set_room(&mut self, proxy: WriterProxyId) -> bool {
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

    /// Returns the end of the refused sample's wait for other sets: `patience` after the first call. Returns `None` if
    /// there are no other sets.
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

    /// Clears the refusal, so that the next attempt to hold the sample starts anew.
    pub(crate) fn forget_refused_set(&mut self) {
        if let Some(sets) = &mut self.sets {
            sets.refused = None;
        }
    }

    /// Removes the oldest held sample that a writer's first waiting sample would replace. Both have the same instance,
    /// writer and set.
    #[cold]
    fn evict_within_set(&mut self, proxy: WriterProxyId) -> bool {
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

    pub(super) fn hold_in_set(&mut self, proxy: WriterProxyId) {
        let slot = self.waiting.remove(self.waiting_start(proxy));
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
    pub(crate) fn largest_set(&self) -> Option<SampleId> {
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
    pub(crate) fn drop_sets_of(&mut self, proxy: WriterProxyId) -> u64 {
        self.drop_held_sets(|of, _| of == proxy)
    }

    /// Drops the held samples of a writer's open set. Returns their number.
    pub(crate) fn drop_open_set(&mut self, proxy: WriterProxyId, progress: &Progress) -> u64 {
        let open = progress.open.map(|open| open.set);
        self.drop_held_sets(|of, place| of == proxy && place.set == open)
    }

    /// Drops the held samples of a publisher's sets. Returns their number.
    pub(crate) fn drop_sets(
        &mut self,
        publisher: Guid,
        dropped: &RangeInclusive<SequenceNumber>,
    ) -> u64 {
        self.drop_held_sets(|_, place| {
            place.publisher == publisher && place.set.is_some_and(|set| dropped.contains(&set))
        })
    }

    fn drop_held_sets(&mut self, is_dropped: impl Fn(WriterProxyId, &Place) -> bool) -> u64 {
        let sets = self.sets.as_mut().filter(|sets| !sets.held.is_empty());
        let Some(sets) = sets else { return 0 };
        let (slots, memory, places) = (&mut self.slots, &mut self.memory, &sets.places);
        let before = sets.held.len();
        sets.held.retain(|&slot| {
            let at = usize::from(slot);
            let proxy = slots[at]
                .as_ref()
                .map_or(WriterProxyId(u16::MAX), |slot| slot.proxy);
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

    /// Returns whether a whole set finds room among the available samples. A set larger than all room for available
    /// samples fits only if no sample is available.
    pub(crate) fn has_room_for_set(&mut self, publisher: Guid, set: SequenceNumber) -> bool {
        let range = self.held_set(publisher, set);
        let available = self.available.len();
        available == 0 || available + self.new_of(range) <= self.available_room
    }

    /// Number of samples in `range` of the held samples that would need another slot. The other samples of `range`
    /// would replace samples of their instance (HISTORY).
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
        mut is_seen: impl FnMut(&mut Self, WriterProxyId, &SampleInfo) -> bool,
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
            // The caller has made room for the whole set. Only when a writer is removed, the set is shown without a
            // check for room.
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

impl Cache {
    /// Sets the place of the next sample stored.
    pub(crate) fn note_place(&mut self, place: Place) {
        if let Some(sets) = &mut self.sets {
            sets.next = place;
        }
    }

    pub(crate) fn next_place(&self) -> Option<Place> {
        self.sets.as_ref().map(|sets| sets.next)
    }

    pub(crate) fn first_waiting_place(&self, proxy: WriterProxyId) -> Option<Place> {
        let slot = *self.waiting.get(self.waiting_start(proxy))?;
        (self.slot(slot).proxy == proxy).then(|| self.place(slot))
    }

    pub(crate) fn move_first_waiting(&mut self, proxy: WriterProxyId, place: Place) {
        let at = self.waiting_start(proxy);
        if let (Some(&slot), Some(sets)) = (self.waiting.get(at), &mut self.sets) {
            sets.places[usize::from(slot)] = place;
        }
    }

    /// Returns the number of a writer's first waiting sample; `None` without sets or order.
    pub(crate) fn first_waiting_number(&self, proxy: WriterProxyId) -> Option<SequenceNumber> {
        self.sets.as_ref()?;
        self.first_waiting_place(proxy).map(|place| place.number)
    }

    /// Stores an out-of-order sample as [`wait`](Self::wait) does, with the slots shared by `writers` writers.
    ///
    /// With `is_next`, other samples may wait for this one forever, so it always finds a slot. If none is free, the
    /// last sample of the writer with most waiting samples is displaced, and [`take_displaced`](Self::take_displaced)
    /// returns it.
    pub(crate) fn wait_within_share(
        &mut self,
        writers: usize,
        is_next: bool,
        proxy: WriterProxyId,
        info: SampleInfo,
        payload: &[u8],
    ) -> Result<Option<SequenceNumber>, Refused> {
        if payload.len() > self.memory.max_bytes() {
            return Err(Refused::TooLarge);
        }
        let share = (self.waiting_room / writers.max(1)).max(1);
        let own = self.waiting_of(proxy);
        let mut displaced = None;
        if own.len() >= share {
            let furthest = self.slot(self.waiting[own.end - 1]).info.sequence;
            if furthest < info.sequence {
                return Err(Refused::Full);
            }
            self.stop_waiting(own.end - 1);
            displaced = Some(furthest);
        } else if is_next && own.is_empty() && self.waiting.len() >= self.waiting_room {
            self.displace_another();
        }
        let further = self.wait(proxy, info, payload)?;
        let at = self.waiting.partition_point(|&other| {
            let other = self.slot(other);
            (other.proxy, other.info.sequence) < (proxy, info.sequence)
        });
        if let (Some(&slot), Some(sets)) = (self.waiting.get(at), &mut self.sets) {
            sets.places[usize::from(slot)] = sets.next;
        }
        Ok(further.or(displaced))
    }

    /// Displaces the last waiting sample of the writer that has most waiting samples. Among writers with equally many,
    /// the sample with the highest number is displaced, because it is needed last.
    fn displace_another(&mut self) {
        let mut most = None;
        let mut start = 0;
        while let Some(&slot) = self.waiting.get(start) {
            let proxy = self.slot(slot).proxy;
            let of_proxy = |&&slot: &&u16| self.slot(slot).proxy == proxy;
            let count = self.waiting[start..].iter().take_while(of_proxy).count();
            let last = start + count - 1;
            most = most.max(Some((count, self.place(self.waiting[last]).number, last)));
            start += count;
        }
        let Some((.., at)) = most else { return };
        let found = self.slot(self.waiting[at]);
        let displaced = (found.proxy, found.info.sequence);
        self.stop_waiting(at);
        if let Some(sets) = &mut self.sets {
            sets.displaced = Some(displaced);
        }
    }

    /// Returns the proxy and number of a sample displaced by a sample of another writer. It counts as never received.
    pub(crate) fn take_displaced(&mut self) -> Option<SampleId> {
        self.sets.as_mut()?.displaced.take()
    }
}
