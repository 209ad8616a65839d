//! Samples that are shown together, or in an order over several writers: where each belongs, and those that are
//! held until the set they belong to has ended (`presentation`).
//!
//! What is held lies in slots set aside for it, as many as may be available: it takes no room from samples the
//! user may see, nor from those that wait for others, and a set larger than that could never be shown whole.

mod holding;
mod turns;

use alloc::{boxed::Box, vec, vec::Vec};

use isolane_wire::{
    guid::{EntityId, Guid},
    rtps::GroupDigest,
    sequence::SequenceNumber,
    time::Instant,
};

use super::Cache;
use crate::presentation::Access;

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
    /// Which writers the group had when that was written.
    pub(crate) writers: Option<GroupDigest>,
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
        writers: None,
        shown: 0,
    };

    /// The same among the samples of its writer alone.
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

/// A sample of a set has found no slot.
#[derive(Debug, Clone, Copy)]
struct Refusal {
    /// `None`: it has found one since. Others may have been refused meanwhile.
    set: Option<(Guid, SequenceNumber)>,
    /// Until when others may end; `None`: it was not looked at yet.
    until: Option<Instant>,
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
    /// A part of that by instance, while it is counted.
    by_instance: Vec<u16>,
    room: usize,
    /// The set of a sample that was to be held and found no slot.
    refused: Option<Refusal>,
    /// What gave its place to a sample of another writer: its proxy, and its number.
    displaced: Option<(u16, SequenceNumber)>,
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
            by_instance: Vec::with_capacity(room),
            room,
            refused: None,
            displaced: None,
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

    /// Up to which number samples with an order may be shown now, and as what they count.
    pub(crate) fn permit(&mut self, number: SequenceNumber, shown: u64) {
        if let Some(sets) = &mut self.sets {
            (sets.permitted, sets.shown) = (number, shown);
        }
    }

    /// What is made available from now on counts as shown then.
    pub(crate) fn count_as_shown(&mut self, shown: u64) {
        if let Some(sets) = &mut self.sets {
            sets.shown = shown;
        }
    }

    pub(crate) fn permitted(&self) -> SequenceNumber {
        let sets = self.sets.as_ref();
        sets.map_or(SequenceNumber(0), |sets| sets.permitted)
    }

    /// The sample that was just made available is shown now.
    fn note_shown(&mut self) {
        if let (Some(&slot), Some(sets)) = (self.available.back(), &mut self.sets) {
            sets.places[usize::from(slot)].shown = sets.shown;
        }
    }

    /// What is about to be made available nobody numbered: it comes behind all that was shown before.
    pub(super) fn note_end_shown(&mut self, slot: u16) {
        if let Some(sets) = &mut self.sets {
            sets.places[usize::from(slot)] = Place {
                number: SequenceNumber(i64::MAX),
                shown: sets.shown,
                ..Place::NONE
            };
        }
    }

    /// When the oldest available sample was shown, and its number.
    pub(crate) fn first_shown(&self) -> Option<(u64, SequenceNumber)> {
        let place = self.place(*self.available.front()?);
        Some((place.shown, place.number))
    }

    fn place(&self, slot: u16) -> Place {
        let sets = self.sets.as_ref();
        sets.map_or(Place::NONE, |sets| sets.places[usize::from(slot)])
    }
}
