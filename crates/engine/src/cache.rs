//! The cache of a reader, with all its memory reserved at creation.
//!
//! A sample comes in out of order or in order. Out of order (reliable readers only) it waits in
//! one of a few slots set aside for that, until what lies before it has come. In order it becomes
//! *available*: the user sees it, until it is taken or, under KEEP_LAST, pushed out by a younger
//! one of its instance.
//!
//! Two rules keep RESOURCE_LIMITS from losing reliable samples. What finds no room is refused, not
//! dropped: it is not acknowledged, the writer keeps it, and it is asked for when there is room.
//! And waiting samples never take the room of the one that everybody waits for: the slots for
//! waiting are apart, and a writer's furthest waiting sample gives way to a nearer one.

mod ends;
mod expiry;
mod held;
mod info;
mod replacing;
mod selection;
mod sets;
mod waiting;

use alloc::{boxed::Box, collections::VecDeque, vec, vec::Vec};

use isolane_wire::{
    qos::{Presentation, PresentationAccessScope},
    sequence::SequenceNumber,
    time::Instant,
};

use self::expiry::Sweep;
use crate::{
    chain::Links,
    history::Keep,
    instance::Instances,
    sample_memory::{SampleMemory, Sizes},
};

pub(crate) use self::sets::Place;
use self::sets::Sets;
pub use self::{
    info::SampleInfo,
    selection::{Query, Selection, Which},
};

/// An instant that never comes.
const NEVER: Instant = Instant::new(u64::MAX);

/// A sample in a slot.
#[derive(Debug, Clone, Copy)]
struct Slot {
    info: SampleInfo,
    /// Index of the writer's proxy.
    proxy: u16,
    instance: u16,
    length: u32,
    read: bool,
    /// It is about to be let go with others.
    leaves: bool,
    /// Made here because writers left, not received: it does not count in the ledger.
    synthetic: bool,
}

/// Why a sample was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// No room; a reliable reader asks for it again.
    Full,
    /// What room there is, is for other writers; it is asked for again likewise.
    PutOff,
    /// Others are before it; it waits.
    Order,
    /// Every slot for samples of sets is taken; it waits.
    Sets,
    /// Larger than a slot: the local limit for this topic.
    TooLarge,
}

/// How much a cache holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Available samples.
    pub(crate) samples: u16,
    /// Samples out of order.
    pub(crate) waiting: u16,
    /// Samples that TIME_BASED_FILTER keeps back.
    pub(crate) held: u16,
    pub(crate) sizes: Sizes,
}

impl Room {
    fn slots(&self) -> u16 {
        let slots = self.samples.saturating_add(self.waiting);
        slots.saturating_add(self.held).min(u16::MAX - 1)
    }

    /// Bytes of all samples.
    pub(crate) fn bytes(&self) -> usize {
        self.sizes.bytes(self.slots().into())
    }
}

#[derive(Debug)]
pub(crate) struct Cache {
    keep: Keep,
    memory: SampleMemory,
    slots: Vec<Option<Slot>>,
    /// What the user may see, in order.
    available: VecDeque<u16>,
    /// Out of order, ascending by (proxy, sequence).
    waiting: Vec<u16>,
    available_room: usize,
    waiting_room: usize,
    held_room: usize,
    /// Samples that are kept back now.
    held: usize,
    keyed: bool,
    /// Writers share the second half of the slots, one each.
    is_shared: bool,
    /// What is selected keeps the order in which it came, whatever the instances.
    is_ordered: bool,
    pub(crate) instances: Instances,
    links: Links,
    /// Slots that were asked for together.
    selected: Vec<u16>,
    /// Available samples that were received, not made here.
    pub(crate) counted: u64,
    /// Available samples that KEEP_LAST pushed out before they were taken.
    pub(crate) evicted: u64,
    /// Available samples that outlived their LIFESPAN before they were taken.
    pub(crate) expired: u64,
    /// Available samples that READER_DATA_LIFECYCLE let go.
    pub(crate) purged: u64,
    /// What was taken note of, and is no sample: that a writer writes an instance no longer that others write, that
    /// had ended, or that is not known.
    pub(crate) unregistered: u64,
    /// Instances that lost their last writer where there was no room to say so, and that are yet to be counted.
    unseen: u64,
    /// No available sample expires before.
    earliest_expiry: Instant,
    /// Which samples are shown together; `None`: none.
    sets: Option<Box<Sets>>,
    sweep: Sweep,
}

impl Cache {
    /// The memory of all slots.
    pub(crate) fn memory_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.memory.pieces_mut()
    }

    /// An empty cache, its memory taken; an error says how many bytes are not to be had.
    pub(crate) fn try_new(keep: Keep, keyed: bool, room: Room, seed: u64) -> Result<Self, usize> {
        let Room {
            samples,
            waiting,
            held,
            sizes,
        } = room;
        let slots = room.slots();
        let memory = SampleMemory::try_new(slots, sizes).ok_or(room.bytes())?;
        Ok(Self {
            keep,
            memory,
            slots: vec![None; usize::from(slots)],
            available: VecDeque::with_capacity(usize::from(slots)),
            waiting: Vec::with_capacity(usize::from(waiting)),
            available_room: usize::from(samples),
            waiting_room: usize::from(waiting),
            held_room: usize::from(held),
            held: 0,
            keyed,
            is_shared: false,
            is_ordered: false,
            instances: Instances::new(slots.saturating_add(1), seed),
            links: Links::new(slots),
            selected: Vec::with_capacity(usize::from(slots)),
            counted: 0,
            evicted: 0,
            expired: 0,
            purged: 0,
            unregistered: 0,
            unseen: 0,
            earliest_expiry: NEVER,
            sets: None,
            sweep: Sweep::BEGIN,
        })
    }

    /// From now on a writer that fills half of the slots leaves the others to other writers.
    pub(crate) fn share(&mut self) {
        self.is_shared = true;
    }

    /// What is selected is in the order that PRESENTATION asks for.
    pub(crate) fn present(&mut self, asked: &Presentation) {
        self.is_ordered = asked.ordered && asked.access_scope != PresentationAccessScope::Instance;
    }

    /// Whether a writer's next sample is to leave room for those of others.
    fn is_over_share(&self, proxy: u16) -> bool {
        let is_its = |&slot: &u16| self.slot(slot).proxy == proxy;
        self.is_shared
            && self.available.len() >= self.available_room / 2
            && self.available.iter().any(is_its)
    }

    /// Samples the user may see now.
    pub(crate) fn available(&self) -> usize {
        self.available.len()
    }

    /// Samples that wait for earlier ones.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Samples that could still be kept, now or in waiting; KEEP_LAST makes room for any number.
    pub(crate) fn room(&self) -> usize {
        match self.keep {
            Keep::Last { .. } => usize::MAX,
            Keep::All => {
                let available = self.available_room.saturating_sub(self.available.len());
                let slots = available + self.waiting_room.saturating_sub(self.waiting.len());
                slots.min(self.memory.room())
            }
        }
    }

    /// Available samples it has room for.
    pub(crate) fn keeps(&self) -> usize {
        self.available_room
    }

    /// Where nothing is pushed out, the oldest sample of a writer that was not taken yet.
    pub(crate) fn first_untaken(&self, proxy: u16) -> Option<SequenceNumber> {
        let of_writer = |slot: &&Slot| slot.proxy == proxy && !slot.synthetic;
        let mut available = self.available.iter().map(|&index| self.slot(index));
        match self.keep {
            Keep::All => available.find(of_writer).map(|slot| slot.info.sequence),
            Keep::Last { .. } => None,
        }
    }

    /// Stores the next sample in order and makes it available, unless it is [no sample](Self::make_room).
    pub(crate) fn push(
        &mut self,
        proxy: u16,
        info: SampleInfo,
        payload: &[u8],
    ) -> Result<(), Refused> {
        if payload.len() > self.memory.max_bytes() {
            return Err(Refused::TooLarge);
        }
        if !self.make_room(proxy, &info)? {
            return Ok(());
        }
        loop {
            if let Some(slot) = self.fill(proxy, info, payload, false) {
                self.make_available(slot);
                return Ok(());
            }
            self.make_room_for_long()?;
        }
    }

    /// The `nth` available sample, as a selection of its own.
    pub(crate) fn get(&self, nth: usize) -> Option<(SampleInfo, &[u8])> {
        let index = *self.available.get(nth)?;
        let slot = self.slot(index);
        let mut info = SampleInfo {
            sample_rank: 0,
            generation_rank: 0,
            ..slot.info
        };
        self.tell_states(slot, &mut info);
        Some((info, self.payload_of(index)))
    }

    /// Marks the `nth` available sample as read.
    pub(crate) fn mark_read(&mut self, nth: usize) {
        if let Some(&index) = self.available.get(nth)
            && let Some(slot) = &mut self.slots[usize::from(index)]
        {
            slot.read = true;
            self.instances.note_look(slot.instance);
        }
    }

    /// Removes the oldest available sample, which was looked at; `Some(true)` if it counts in the ledger.
    pub(crate) fn pop(&mut self) -> Option<bool> {
        let index = self.available.pop_front()?;
        let slot = self.release(index);
        self.instances.note_look(slot.instance);
        Some(!slot.synthetic)
    }

    fn release(&mut self, index: u16) -> Slot {
        let slot = self.slots[usize::from(index)]
            .take()
            .expect("an available slot is filled");
        let links = &mut self.links;
        self.instances.remove_sample(links, slot.instance, index);
        self.sweep.note_removed();
        self.memory.give_back(index);
        self.counted -= u64::from(!slot.synthetic);
        slot
    }

    fn make_available(&mut self, index: u16) {
        let Some(slot) = &mut self.slots[usize::from(index)] else {
            return;
        };
        let key = slot.info.key_hash.unwrap_or_default();
        let at = slot.info.received;
        let instance = self.instances.note(key, slot.proxy, slot.info.kind, at);
        slot.instance = instance;
        self.instances.tell_generation(instance, &mut slot.info);
        if let Some(expires) = slot.info.expires {
            self.earliest_expiry = self.earliest_expiry.min(expires);
        }
        self.counted += u64::from(!slot.synthetic);
        self.links.push(self.instances.chain_mut(instance), index);
        self.available.push_back(index);
    }

    /// Puts a sample into a slot; `None`: there is none, or no memory for a long sample. `waits`: others come before it.
    fn fill(&mut self, proxy: u16, info: SampleInfo, payload: &[u8], waits: bool) -> Option<u16> {
        let index = self.memory.claim()?;
        if !self.memory.store(index, payload, waits) {
            self.memory.give_back(index);
            return None;
        }
        self.slots[usize::from(index)] = Some(Slot {
            info,
            proxy,
            instance: u16::MAX,
            length: payload.len() as u32,
            read: false,
            leaves: false,
            synthetic: false,
        });
        Some(index)
    }

    fn slot(&self, index: u16) -> &Slot {
        self.slots[usize::from(index)]
            .as_ref()
            .expect("a listed slot is filled")
    }
}

#[cfg(test)]
mod tests {
    use isolane_wire::guid::Guid;

    use super::*;

    #[test]
    fn a_cache_whose_memory_long_samples_use_up_has_no_room_for_more() {
        let room = Room {
            samples: 32,
            waiting: 16,
            held: 0,
            sizes: Sizes::shared(64 << 10, 48),
        };
        let mut cache = Cache::try_new(Keep::All, false, room, 1).expect("memory for a test");
        let payload = alloc::vec![0; 60_000];
        for left in (0..4).rev() {
            cache
                .push(0, SampleInfo::UNSEEN, &payload)
                .expect("there is memory for four");
            assert_eq!(cache.room(), left);
        }
        cache.pop();
        assert_eq!(cache.room(), 1);
    }

    #[test]
    fn what_a_departed_writer_left_is_not_the_next_ones_that_has_its_place() {
        let room = Room {
            samples: 4,
            waiting: 1,
            held: 0,
            sizes: Sizes::fixed(8),
        };
        let mut cache = Cache::try_new(Keep::All, false, room, 1).expect("memory for a test");
        let info = SampleInfo {
            sequence: SequenceNumber(890),
            ..SampleInfo::UNSEEN
        };
        cache.push(3, info, &[1]).unwrap();
        assert_eq!(cache.first_untaken(3), Some(SequenceNumber(890)));
        cache.writer_gone(3, Guid::UNKNOWN, Instant::new(1));
        assert!(cache.available() > 0, "its sample is still to be taken");
        assert_eq!(cache.first_untaken(3), None);
    }
}
