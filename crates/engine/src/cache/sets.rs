//! Samples in coherent sets or in an order over several writers (`presentation`): their places, and those held until
//! their set has ended.
//!
//! Held samples use reserved slots, as many as samples may be available. They take no room from available or waiting
//! samples, and a larger set could never be available as a whole.

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

/// Place of a sample in its set and order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Publisher or writer whose samples are numbered.
    pub(crate) publisher: Guid,
    /// Sequence number within the publisher or writer.
    pub(crate) number: SequenceNumber,
    /// Number of the first sample of its set.
    pub(crate) set: Option<SequenceNumber>,
    /// Writer sequence number of the first sample of its set.
    pub(crate) first: Option<SequenceNumber>,
    /// True if it becomes available only after all earlier samples.
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

    /// Same place within the samples of its writer only.
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

/// First set of which a sample found no slot.
#[derive(Debug, Clone, Copy)]
struct Refusal {
    /// `None` once the sample has found a slot. Others may have been refused meanwhile.
    set: Option<(Guid, SequenceNumber)>,
    /// Limit of the wait for other sets to end; `None` before it is first checked.
    until: Option<Instant>,
}

/// State of a cache with sets or order.
#[derive(Debug)]
pub(super) struct Sets {
    access: Access,
    /// Places of the samples in all slots.
    places: Vec<Place>,
    /// Place of the next sample stored.
    next: Place,
    /// Held samples, ascending by publisher and number.
    held: Vec<u16>,
    /// Scratch list of held samples sorted by instance, for counting.
    by_instance: Vec<u16>,
    room: usize,
    refused: Option<Refusal>,
    /// Displaced sample of another writer: its proxy and sequence number.
    displaced: Option<(u16, SequenceNumber)>,
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
    /// Enables sets and order, with `room` of the held-back slots reserved for sets.
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
    fn note_shown(&mut self) {
        if let (Some(&slot), Some(sets)) = (self.available.back(), &mut self.sets) {
            sets.places[usize::from(slot)].shown = sets.shown;
        }
    }

    /// Gives an end without a sequence number its place, after all samples available before.
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
