//! Samples that are shown together, or in an order over several writers: where each belongs, and those that are
//! held until the set they belong to has ended (`presentation`).
//!
//! What is held lies in slots set aside for it, as many as may be available: it takes no room from samples the
//! user may see, nor from those that wait for others, and a set larger than that could never be shown whole.

use alloc::{boxed::Box, vec, vec::Vec};

use isolane_wire::{guid::Guid, sequence::SequenceNumber};

use super::{Cache, Refused, SampleInfo};
use crate::presentation::{Access, Progress, Turn};

/// Where a sample belongs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Whose samples it is numbered among: a publisher, or a writer.
    pub(crate) publisher: Guid,
    pub(crate) number: SequenceNumber,
    /// The number of the first sample of its set.
    pub(crate) set: Option<SequenceNumber>,
    /// The same, as its writer numbers its own samples.
    pub(crate) first: Option<SequenceNumber>,
    /// It is shown when all before it are.
    pub(crate) is_ordered: bool,
    /// It is no sample, but the end of a set.
    pub(crate) is_end: bool,
    /// When it was made available, among all that are shown in their order.
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
        shown: 0,
    };
}

/// What a cache has beside its slots where samples belong together.
#[derive(Debug)]
pub(super) struct Sets {
    access: Access,
    /// Of what lies in each slot.
    places: Vec<Place>,
    /// Of the sample that is stored next.
    next: Place,
    /// What is held, ascending by publisher and number.
    held: Vec<u16>,
    room: usize,
    /// Samples up to this number may be shown now.
    permitted: SequenceNumber,
    /// What is made available now counts as shown then.
    shown: u64,
}

impl Sets {
    /// Slots that are set aside, and empty.
    pub(super) fn set_aside(&self) -> usize {
        self.room - self.held.len()
    }
}

impl Cache {
    /// Samples belong together from now on. As many of the slots for what is kept back hold sets.
    pub(crate) fn group(&mut self, access: Access, room: u16) {
        let room = usize::from(room).min(self.held_room);
        self.held_room -= room;
        self.sets = Some(Box::new(Sets {
            access,
            places: vec![Place::NONE; self.slots.len()],
            next: Place::NONE,
            held: Vec::with_capacity(room),
            room,
            permitted: SequenceNumber(0),
            shown: 0,
        }));
    }

    /// Whether samples belong together.
    #[inline]
    pub(crate) fn groups(&self) -> bool {
        self.sets.is_some()
    }

    /// How they do.
    pub(crate) fn access(&self) -> Option<Access> {
        self.sets.as_ref().map(|sets| sets.access)
    }

    /// Samples that are held.
    pub(crate) fn in_sets(&self) -> usize {
        self.sets.as_ref().map_or(0, |sets| sets.held.len())
    }

    /// Where the sample belongs that is stored next.
    pub(crate) fn note_place(&mut self, place: Place) {
        if let Some(sets) = &mut self.sets {
            sets.next = place;
        }
    }

    /// The number before the one of the sample that is stored next.
    pub(crate) fn number_before_next(&self) -> Option<SequenceNumber> {
        let sets = self.sets.as_ref()?;
        Some(SequenceNumber(sets.next.number.get() - 1))
    }

    /// Up to which number samples with an order may be shown now, and as what they count.
    pub(crate) fn permit(&mut self, number: SequenceNumber, shown: u64) {
        if let Some(sets) = &mut self.sets {
            (sets.permitted, sets.shown) = (number, shown);
        }
    }

    /// The sample that was just made available is shown now.
    fn note_shown(&mut self) {
        if let (Some(&slot), Some(sets)) = (self.available.back(), &mut self.sets) {
            sets.places[usize::from(slot)].shown = sets.shown;
        }
    }

    /// When the oldest available sample was shown, and its number.
    pub(crate) fn first_shown(&self) -> Option<(u64, SequenceNumber)> {
        let place = self.place(*self.available.front()?);
        Some((place.shown, place.number))
    }

    pub(crate) fn permitted(&self) -> SequenceNumber {
        let sets = self.sets.as_ref();
        sets.map_or(SequenceNumber(0), |sets| sets.permitted)
    }

    fn place(&self, slot: u16) -> Place {
        let sets = self.sets.as_ref();
        sets.map_or(Place::NONE, |sets| sets.places[usize::from(slot)])
    }

    /// Where the nearest sample of a writer belongs that waits.
    pub(crate) fn first_waiting_place(&self, proxy: u16) -> Option<Place> {
        let slot = *self.waiting.get(self.waiting_of(proxy).start)?;
        (self.slot(slot).proxy == proxy).then(|| self.place(slot))
    }

    /// Its number; `None`: samples do not belong together.
    pub(crate) fn first_waiting_number(&self, proxy: u16) -> Option<SequenceNumber> {
        self.sets.as_ref()?;
        self.first_waiting_place(proxy).map(|place| place.number)
    }

    /// As [`wait`](Self::wait), of so many writers that share what there is room for: each finds a place for the
    /// sample whose turn is next, or others would wait for that one for ever.
    pub(crate) fn wait_within_share(
        &mut self,
        writers: usize,
        proxy: u16,
        info: SampleInfo,
        payload: &[u8],
    ) -> Result<Option<SequenceNumber>, Refused> {
        let share = (self.waiting_room / writers.max(1)).max(1);
        let own = self.waiting_of(proxy);
        let mut displaced = None;
        if own.len() >= share {
            let furthest = self.slot(self.waiting[own.end - 1]).info.sequence;
            if furthest < info.sequence {
                return Err(Refused::Full);
            }
            let slot = self.waiting.remove(own.end - 1);
            self.empty(slot);
            displaced = Some(furthest);
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

    /// The nearest sample of a writer that waits is made available if there is room, or held.
    #[inline]
    pub(crate) fn take_turn(
        &mut self,
        turn: Turn,
        proxy: u16,
        sequence: SequenceNumber,
    ) -> Result<(), Refused> {
        if turn == Turn::Hold {
            self.hold_in_set(proxy);
            return Ok(());
        }
        self.promote(proxy, sequence)?;
        if self.groups() {
            self.note_shown();
        }
        Ok(())
    }

    /// Whether one more sample can be held.
    pub(crate) fn has_set_room(&self) -> bool {
        let sets = self.sets.as_ref();
        sets.is_some_and(|sets| sets.set_aside() > 0)
    }

    /// Holds the nearest sample of a writer that waits.
    fn hold_in_set(&mut self, proxy: u16) {
        let slot = self.waiting.remove(self.waiting_of(proxy).start);
        let Some(sets) = &mut self.sets else { return };
        let key = |slot: u16| {
            let place = &sets.places[usize::from(slot)];
            (place.publisher, place.number)
        };
        let at = sets.held.partition_point(|&other| key(other) <= key(slot));
        sets.held.insert(at, slot);
    }

    /// Lets go of what is held of one writer; returns how many.
    pub(crate) fn drop_sets_of(&mut self, proxy: u16) -> u64 {
        self.drop_held_sets(|of, _| of == proxy)
    }

    /// Lets go of what is held of the set that goes on at one writer; returns how many samples.
    pub(crate) fn drop_open_set(&mut self, proxy: u16, progress: &Progress) -> u64 {
        let open = progress.open.map(|open| open.set);
        self.drop_held_sets(|of, place| of == proxy && place.set == open)
    }

    /// Lets go of a set, and of any before it; returns how many samples.
    pub(crate) fn drop_sets_to(&mut self, publisher: Guid, set: SequenceNumber) -> u64 {
        self.drop_held_sets(|_, place| {
            place.publisher == publisher && place.set.is_some_and(|of| of <= set)
        })
    }

    fn drop_held_sets(&mut self, is_dropped: impl Fn(u16, &Place) -> bool) -> u64 {
        let Some(sets) = &mut self.sets else { return 0 };
        let (slots, free, places) = (&mut self.slots, &mut self.free, &sets.places);
        let before = sets.held.len();
        sets.held.retain(|&slot| {
            let at = usize::from(slot);
            let proxy = slots[at].as_ref().map_or(u16::MAX, |slot| slot.proxy);
            let is_kept = !is_dropped(proxy, &places[at]);
            if !is_kept {
                slots[at] = None;
                free.push(slot);
            }
            is_kept
        });
        (before - sets.held.len()) as u64
    }

    /// Where in what is held a set lies.
    fn held_set(&self, publisher: Guid, set: SequenceNumber) -> core::ops::Range<usize> {
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

    /// Whether all of a set finds room among the samples the user may see. Where it is more than there can be
    /// while others are there, it does when those are taken.
    pub(crate) fn has_room_for_set(&self, publisher: Guid, set: SequenceNumber) -> bool {
        let Some(sets) = &self.sets else { return true };
        let held = &sets.held[self.held_set(publisher, set)];
        let is_new = |&&slot: &&u16| {
            let key = self.slot(slot).info.key_hash.unwrap_or_default();
            !self.would_replace(key)
        };
        let new = held.iter().filter(is_new).count();
        self.available.is_empty() || self.available.len() + new <= self.available_room
    }

    /// Makes a set available that was held; returns how many samples.
    pub(crate) fn show_set(&mut self, publisher: Guid, set: SequenceNumber, shown: u64) -> usize {
        self.permit(SequenceNumber(0), shown);
        let range = self.held_set(publisher, set);
        for at in range.clone() {
            let slot = match &self.sets {
                Some(sets) => sets.held[at],
                None => return 0,
            };
            let key = self.slot(slot).info.key_hash.unwrap_or_default();
            self.evict_replaced(key, 0);
            self.make_available(slot);
            self.note_shown();
        }
        if let Some(sets) = &mut self.sets {
            sets.held.drain(range.clone());
        }
        range.len()
    }
}
