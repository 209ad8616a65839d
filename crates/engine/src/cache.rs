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

mod expiry;
mod held;
mod selection;
mod sets;

use alloc::{boxed::Box, collections::VecDeque, vec, vec::Vec};

use isolane_wire::{
    cdr::KeyHash,
    guid::Guid,
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};

use self::expiry::Sweep;
use crate::{
    chain::Links,
    history::{ChangeKind, Keep},
    instance::{InstanceState, Instances},
    states::{SampleState, ViewState},
};

pub use self::selection::{Query, Selection, Which};
pub(crate) use self::sets::Place;
use self::sets::Sets;

/// An instant that never comes.
const NEVER: Instant = Instant::new(u64::MAX);

/// What is known of a sample beside its value (DDS 1.4 §2.2.2.5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleInfo {
    /// The writer.
    pub writer: Guid,
    /// The writer's number for it.
    pub sequence: SequenceNumber,
    /// When the writer says it was written; `None` if it does not say.
    pub source_timestamp: Option<Timestamp>,
    /// When it came in, by this participant's clock.
    pub received: Instant,
    /// When it outlives the LIFESPAN its writer gave it, by this participant's clock; `None`: never.
    pub expires: Option<Instant>,
    /// A sample, or the end of its instance: then there is no value, only a key.
    pub kind: ChangeKind,
    /// Whether it was read before.
    pub sample_state: SampleState,
    /// Whether samples of its instance were looked at before, since that was born again last. Without a
    /// cache always new.
    pub view_state: ViewState,
    /// The state of its instance now; without a cache what this sample says of it.
    pub instance_state: InstanceState,
    /// How often its instance had been born again after it was disposed, when the sample came in.
    pub disposed_generation_count: u32,
    /// How often after nobody wrote it any more.
    pub no_writers_generation_count: u32,
    /// Samples of its instance that follow it in the same selection; see [`Selection`].
    pub sample_rank: u32,
    /// Lives of its instance between it and the last sample of that in the same selection.
    pub generation_rank: u32,
    /// Lives of its instance between it and now.
    pub absolute_generation_rank: u32,
    /// The instance; `None` for topics without a key.
    pub key_hash: Option<KeyHash>,
}

impl SampleInfo {
    /// Whether there is a value (DDS 1.4: `valid_data`).
    #[must_use]
    pub fn valid_data(&self) -> bool {
        self.kind == ChangeKind::Alive
    }

    /// What names its instance at the reader; zeros for topics without a key.
    #[must_use]
    pub fn instance_handle(&self) -> KeyHash {
        self.key_hash.unwrap_or_default()
    }

    /// What names its writer.
    #[must_use]
    pub fn publication_handle(&self) -> Guid {
        self.writer
    }
}

/// The writer of samples whose writer is gone.
const NOBODY: u16 = u16::MAX;

/// Ends of an instance that lie beside as many samples as HISTORY says: it is disposed, and its writers leave.
const ENDS_BESIDE: u16 = 2;

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
    /// The largest payload.
    pub(crate) slot_bytes: usize,
}

#[derive(Debug)]
pub(crate) struct Cache {
    keep: Keep,
    slot_bytes: usize,
    payload: Box<[u8]>,
    slots: Vec<Option<Slot>>,
    free: Vec<u16>,
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
    /// No available sample expires before.
    earliest_expiry: Instant,
    /// Which samples are shown together; `None`: none.
    sets: Option<Box<Sets>>,
    sweep: Sweep,
}

impl Cache {
    /// The memory of all slots.
    pub(crate) fn memory_mut(&mut self) -> &mut [u8] {
        &mut self.payload
    }

    /// An empty cache, its memory taken.
    pub(crate) fn new(keep: Keep, keyed: bool, room: Room, seed: u64) -> Self {
        let Room {
            samples,
            waiting,
            held,
            slot_bytes,
        } = room;
        let slots = samples.saturating_add(waiting).saturating_add(held);
        let slots = slots.min(u16::MAX - 1);
        Self {
            keep,
            slot_bytes,
            payload: vec![0; usize::from(slots) * slot_bytes].into_boxed_slice(),
            slots: vec![None; usize::from(slots)],
            free: (0..slots).rev().collect(),
            available: VecDeque::with_capacity(usize::from(slots)),
            waiting: Vec::with_capacity(usize::from(waiting)),
            available_room: usize::from(samples),
            waiting_room: usize::from(waiting),
            held_room: usize::from(held),
            held: 0,
            keyed,
            is_shared: false,
            instances: Instances::new(slots.saturating_add(1), seed),
            links: Links::new(slots),
            selected: Vec::with_capacity(usize::from(slots)),
            counted: 0,
            evicted: 0,
            expired: 0,
            purged: 0,
            earliest_expiry: NEVER,
            sets: None,
            sweep: Sweep::BEGIN,
        }
    }

    /// From now on a writer that fills half of the slots leaves the others to other writers.
    pub(crate) fn share(&mut self) {
        self.is_shared = true;
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
                available + self.waiting_room.saturating_sub(self.waiting.len())
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

    fn would_replace(&self, key: KeyHash) -> bool {
        self.replaced_by_one(key, 0) > 0
    }

    /// Samples of an instance that one more takes the place of, where it may have so many beside those that HISTORY
    /// says.
    fn replaced_by_one(&self, key: KeyHash, beside: u16) -> u16 {
        match self.keep {
            Keep::All => 0,
            Keep::Last { depth } => {
                let most = depth.saturating_add(beside).saturating_sub(1);
                self.instances.samples(key).saturating_sub(most)
            }
        }
    }

    /// Lets go of what one more takes the place of; returns how many.
    fn evict_replaced(&mut self, key: KeyHash, beside: u16) -> u16 {
        let replaced = self.replaced_by_one(key, beside);
        (0..replaced).for_each(|_| self.evict_oldest(key));
        replaced
    }

    /// Makes room for one available sample more, or says why there is none. The end of an instance is no value: as
    /// long as there is room at all it pushes none out, so that the last one is still seen.
    fn make_room(&mut self, proxy: u16, info: &SampleInfo) -> Result<(), Refused> {
        let key = info.key_hash.unwrap_or_default();
        let is_full = self.available.len() >= self.available_room;
        let beside = match info.valid_data() || is_full {
            true => 0,
            false => ENDS_BESIDE,
        };
        if self.evict_replaced(key, beside) > 0 {
            return Ok(());
        }
        if is_full {
            let end = self.end_beside().ok_or(Refused::Full)?;
            self.evict(end);
        } else if self.is_over_share(proxy) {
            return Err(Refused::PutOff);
        }
        Ok(())
    }

    /// Where KEEP_LAST promises each instance its room, the first end that lies beside that: its instance tells the
    /// state without it.
    #[cold]
    fn end_beside(&self) -> Option<u16> {
        let Keep::Last { depth } = self.keep else {
            return None;
        };
        let is_beside = |&index: &u16| {
            let slot = self.slot(index);
            let key = slot.info.key_hash.unwrap_or_default();
            !slot.info.valid_data() && self.instances.samples(key) > depth
        };
        self.available.iter().copied().find(is_beside)
    }

    /// Stores the next sample in order and makes it available.
    pub(crate) fn push(
        &mut self,
        proxy: u16,
        info: SampleInfo,
        payload: &[u8],
    ) -> Result<(), Refused> {
        if payload.len() > self.slot_bytes {
            return Err(Refused::TooLarge);
        }
        self.make_room(proxy, &info)?;
        let slot = self.fill(proxy, info, payload).ok_or(Refused::Full)?;
        self.make_available(slot);
        Ok(())
    }

    /// Stores a sample that others must come before. A sample of the same writer that lies
    /// further ahead gives way: its number is returned, it counts as never received.
    pub(crate) fn wait(
        &mut self,
        proxy: u16,
        info: SampleInfo,
        payload: &[u8],
    ) -> Result<Option<SequenceNumber>, Refused> {
        if payload.len() > self.slot_bytes {
            return Err(Refused::TooLarge);
        }
        let mut displaced = None;
        if self.waiting.len() >= self.waiting_room {
            let furthest = self.waiting_of(proxy).end;
            let last = furthest.checked_sub(1).filter(|&at| {
                let slot = self.slot(self.waiting[at]);
                slot.proxy == proxy && slot.info.sequence > info.sequence
            });
            let slot = self.waiting.remove(last.ok_or(Refused::Full)?);
            displaced = Some(self.slot(slot).info.sequence);
            self.slots[usize::from(slot)] = None;
            self.free.push(slot);
        }
        let slot = self.fill(proxy, info, payload).ok_or(Refused::Full)?;
        let place = self.waiting.partition_point(|&other| {
            let other = self.slot(other);
            (other.proxy, other.info.sequence) < (proxy, info.sequence)
        });
        self.waiting.insert(place, slot);
        Ok(displaced)
    }

    /// The nearest sample of a writer that waits.
    pub(crate) fn first_waiting(&self, proxy: u16) -> Option<SequenceNumber> {
        let slot = self.slot(*self.waiting.get(self.waiting_of(proxy).start)?);
        (slot.proxy == proxy).then_some(slot.info.sequence)
    }

    /// Makes a writer's waiting sample `sequence` available if there is room.
    ///
    /// `Ok(false)`: no such sample waits.
    pub(crate) fn promote(
        &mut self,
        proxy: u16,
        sequence: SequenceNumber,
    ) -> Result<bool, Refused> {
        let place = self.waiting_of(proxy).start;
        let Some(&slot) = self.waiting.get(place) else {
            return Ok(false);
        };
        let found = *self.slot(slot);
        if found.proxy != proxy || found.info.sequence != sequence {
            return Ok(false);
        }
        self.make_room(proxy, &found.info)?;
        self.waiting.remove(place);
        self.make_available(slot);
        Ok(true)
    }

    /// Drops what waits for a writer that is gone.
    pub(crate) fn forget_waiting(&mut self, proxy: u16) {
        for place in self.waiting_of(proxy).rev() {
            let slot = self.waiting.remove(place);
            self.slots[usize::from(slot)] = None;
            self.free.push(slot);
        }
    }

    /// Takes note that a writer is gone; see [`Self::writer_not_alive`].
    pub(crate) fn writer_gone(&mut self, proxy: u16, writer: Guid, now: Instant) -> u64 {
        self.forget_waiting(proxy);
        let unseen = self.writer_not_alive(proxy, writer, now);
        // The next writer may have its place: what this one leaves behind is not that one's.
        for &index in &self.available {
            if let Some(slot) = &mut self.slots[usize::from(index)]
                && slot.proxy == proxy
            {
                slot.proxy = NOBODY;
            }
        }
        unseen
    }

    /// Takes note that a writer writes no more; instances it was the last one of are no longer alive,
    /// which becomes visible as a sample without data where there is room for one. Returns how many found none.
    pub(crate) fn writer_not_alive(&mut self, proxy: u16, writer: Guid, now: Instant) -> u64 {
        let mut unseen = 0;
        for instance in 0..self.instances.end() {
            let Some(key) = self.instances.unregister_gone(instance, proxy, now) else {
                continue;
            };
            let info = SampleInfo {
                writer,
                received: now,
                kind: ChangeKind::Unregister,
                instance_state: InstanceState::NotAliveNoWriters,
                key_hash: self.keyed.then_some(key),
                ..SampleInfo::UNSEEN
            };
            let of_sets = self.sets.as_ref().map_or(0, |sets| sets.set_aside());
            let set_aside = self.waiting_room - self.waiting.len() + self.held_room - self.held;
            let set_aside = set_aside + of_sets;
            let pushed = self.free.len() > set_aside && self.push_synthetic(proxy, info);
            unseen += u64::from(!pushed);
        }
        unseen
    }

    fn push_synthetic(&mut self, proxy: u16, info: SampleInfo) -> bool {
        let Some(slot) = self.fill(proxy, info, &[]) else {
            return false;
        };
        if let Some(filled) = &mut self.slots[usize::from(slot)] {
            filled.synthetic = true;
        }
        self.make_available(slot);
        true
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
        let chain = self.instances.chain_mut(slot.instance);
        let is_removed = self.links.remove(chain, index);
        debug_assert!(is_removed, "a sample is in the chain of its instance");
        self.sweep.note_removed();
        self.free.push(index);
        self.counted -= u64::from(!slot.synthetic);
        slot
    }

    fn evict_oldest(&mut self, key: KeyHash) {
        if let Some(index) = self.instances.oldest(key) {
            self.evict(index);
        }
    }

    fn evict(&mut self, index: u16) {
        // Without a key, or where all instances are written alike, it is the first.
        let position = self.available.iter().position(|&there| there == index);
        position.and_then(|position| self.available.remove(position));
        if !self.release(index).synthetic {
            self.evicted += 1;
        }
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

    fn fill(&mut self, proxy: u16, info: SampleInfo, payload: &[u8]) -> Option<u16> {
        let index = self.free.pop()?;
        let start = usize::from(index) * self.slot_bytes;
        self.payload[start..start + payload.len()].copy_from_slice(payload);
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

    /// The places in `waiting` of one writer's samples.
    fn waiting_of(&self, proxy: u16) -> core::ops::Range<usize> {
        let start = self
            .waiting
            .partition_point(|&slot| self.slot(slot).proxy < proxy);
        let end = self
            .waiting
            .partition_point(|&slot| self.slot(slot).proxy <= proxy);
        start..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_departed_writer_left_is_not_the_next_ones_that_has_its_place() {
        let room = Room {
            samples: 4,
            waiting: 1,
            held: 0,
            slot_bytes: 8,
        };
        let mut cache = Cache::new(Keep::All, false, room, 1);
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
