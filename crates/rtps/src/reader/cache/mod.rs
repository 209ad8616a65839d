//! HistoryCache of a reader, with all its memory allocated at creation.
//!
//! An out-of-order sample (reliable readers only) waits in one of a few reserved slots until the samples before it have
//! arrived. An in-order sample becomes *available*: the user sees it until the user takes it or, under KEEP_LAST, a
//! younger sample of its instance replaces it.
//!
//! Two rules keep RESOURCE_LIMITS from losing reliable samples. First, a sample without room is refused, not dropped.
//! It is not acknowledged, so the writer keeps it, and the reader requests it again when there is room. Second, waiting
//! samples have slots of their own, so they take no room from the sample that they wait for. If these slots are full, a
//! new sample displaces a waiting sample of its writer that has a higher number.
//!
//! # Held-back samples
//!
//! TIME_BASED_FILTER holds samples back from the user. Held-back samples are received and acknowledged, but not
//! available yet. They use reserved slots, at most one for each instance, and take no room from available or waiting
//! samples.

mod coherent_sets;
mod expiry;
mod instance_ends;
mod selection;

use alloc::{boxed::Box, collections::VecDeque, vec, vec::Vec};
use core::ops::Range;

use isolane_wire::{
    cdr::KeyHash,
    qos::{Presentation, PresentationAccessScope},
    sequence::SequenceNumber,
    time::Instant,
};

use crate::{
    coherent_access::Admission,
    participant::{Facts, LocalParticipant},
    reader::{
        cache::{coherent_sets::Sets, expiry::Sweep},
        instance::Instances,
        read_take::{CachedSample, SampleInfo, SampleState},
    },
    sample_memory::{SampleMemory, Sizes},
    slab::{ReaderId, SlotLinks, WriterProxyId},
    writer::history::Keep,
};

pub use self::selection::{InstanceSelector, Query, Selection};

pub(crate) use self::coherent_sets::Place;

/// Instant that never comes.
const NEVER: Instant = Instant::new(u64::MAX);

/// Sample in a slot.
#[derive(Debug, Clone, Copy)]
struct Slot {
    info: SampleInfo,
    proxy: WriterProxyId,
    instance: u16,
    length: u32,
    read: bool,
    /// Marked to be removed together with other samples.
    leaves: bool,
    /// Created by this cache when an instance lost its last writer; not counted in the ledger.
    synthetic: bool,
}

/// Reason why a sample was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// No room; a reliable reader requests the sample again.
    Full,
    /// All room that is left is reserved for other writers; a reliable reader requests the sample again.
    PutOff,
    /// Earlier samples are missing; the sample waits.
    Order,
    /// Every slot for samples of coherent sets is taken; the sample waits.
    Sets,
    /// Larger than the maximum sample size of this endpoint.
    TooLarge,
}

/// Capacities of a cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Maximum number of available samples.
    pub(crate) samples: u16,
    /// Maximum number of out-of-order samples.
    pub(crate) waiting: u16,
    /// Maximum number of held-back samples and samples held for their coherent set, together.
    pub(crate) held: u16,
    pub(crate) sizes: Sizes,
}

impl Room {
    fn slots(&self) -> u16 {
        let slots = self.samples.saturating_add(self.waiting);
        slots.saturating_add(self.held).min(u16::MAX - 1)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.sizes.bytes(self.slots().into())
    }
}

#[derive(Debug)]
pub(crate) struct Cache {
    keep: Keep,
    memory: SampleMemory,
    slots: Vec<Option<Slot>>,
    /// Slots of available samples, in the order in which they became available.
    available: VecDeque<u16>,
    /// Out-of-order samples, ascending by (proxy, sequence).
    waiting: Vec<u16>,
    available_room: usize,
    waiting_room: usize,
    held_room: usize,
    /// Number of held-back samples.
    held: usize,
    keyed: bool,
    /// If half of the slots are taken, a writer that has an available sample gets no further slot.
    is_shared: bool,
    /// Selections keep the order of arrival across instances.
    is_ordered: bool,
    pub(crate) instances: Instances,
    links: SlotLinks,
    /// Slots of the current selection.
    selected: Vec<u16>,
    /// Available samples that are not synthetic.
    pub(crate) counted: u64,
    /// Available samples replaced under KEEP_LAST before they were taken.
    pub(crate) evicted: u64,
    /// Available samples whose LIFESPAN ended before they were taken.
    pub(crate) expired: u64,
    /// Available samples removed by READER_DATA_LIFECYCLE.
    pub(crate) purged: u64,
    /// Unregister changes that became no sample: their instance has other writers, has already ended, or is unknown.
    pub(crate) unregistered: u64,
    /// Instances that lost their last writer without a sample, for lack of room; not yet counted.
    unseen: u64,
    /// Time before which no available sample expires.
    earliest_expiry: Instant,
    /// State of coherent or ordered access; `None` if the reader uses neither.
    sets: Option<Box<Sets>>,
    sweep: Sweep,
}

impl Cache {
    pub(crate) fn memory_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.memory.pieces_mut()
    }

    /// Creates an empty cache. The error is the number of bytes that could not be allocated.
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
            links: SlotLinks::new(slots),
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

    /// Reserves the second half of the slots for writers without an available sample.
    pub(crate) fn share(&mut self) {
        self.is_shared = true;
    }

    /// Applies PRESENTATION to the order of selections.
    pub(crate) fn present(&mut self, asked: &Presentation) {
        self.is_ordered = asked.ordered && asked.access_scope != PresentationAccessScope::Instance;
    }

    /// Returns whether a writer's next sample must leave room for other writers.
    fn is_over_share(&self, proxy: WriterProxyId) -> bool {
        let is_its = |&slot: &u16| self.slot(slot).proxy == proxy;
        self.is_shared
            && self.available.len() >= self.available_room / 2
            && self.available.iter().any(is_its)
    }

    pub(crate) fn available(&self) -> usize {
        self.available.len()
    }

    /// Returns the number of samples that wait for earlier ones.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns how many more samples can be stored, available or waiting; unlimited under KEEP_LAST.
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

    /// Returns the maximum number of available samples.
    pub(crate) fn keeps(&self) -> usize {
        self.available_room
    }

    /// Sequence number of a writer's oldest available sample; `None` under KEEP_LAST, where samples are replaced.
    pub(crate) fn first_untaken(&self, proxy: WriterProxyId) -> Option<SequenceNumber> {
        let of_writer = |slot: &&Slot| slot.proxy == proxy && !slot.synthetic;
        let mut available = self.available.iter().map(|&index| self.slot(index));
        match self.keep {
            Keep::All => available.find(of_writer).map(|slot| slot.info.sequence),
            Keep::Last { .. } => None,
        }
    }

    /// Stores the next in-order sample and makes it available, unless it is an unregistration [without
    /// effect](Self::make_room).
    pub(crate) fn push(
        &mut self,
        proxy: WriterProxyId,
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

    /// Returns the `nth` available sample, with the ranks of a selection that has only this sample.
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

    /// Sets the current states of a sample and its instance.
    #[inline]
    fn tell_states(&self, slot: &Slot, info: &mut SampleInfo) {
        if slot.read {
            info.sample_state = SampleState::Read;
        }
        self.instances.tell(slot.instance, info);
    }

    #[inline]
    fn payload_of(&self, index: u16) -> &[u8] {
        self.memory.get(index, self.slot(index).length as usize)
    }

    pub(crate) fn mark_read(&mut self, nth: usize) {
        if let Some(&index) = self.available.get(nth)
            && let Some(slot) = &mut self.slots[usize::from(index)]
        {
            slot.read = true;
            self.instances.note_look(slot.instance);
        }
    }

    /// Removes the oldest available sample, which the user has seen; returns `Some(true)` if it counts in the ledger.
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

    /// Stores a sample in a free slot. Returns `None` if there is no slot, or no memory for a long sample. `waits` is
    /// true if earlier samples are missing.
    fn fill(
        &mut self,
        proxy: WriterProxyId,
        info: SampleInfo,
        payload: &[u8],
        waits: bool,
    ) -> Option<u16> {
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

impl Cache {
    /// Stores an out-of-order sample. If there is no room, a later sample of the same writer is dropped; its number is
    /// returned and counts as never received.
    pub(crate) fn wait(
        &mut self,
        proxy: WriterProxyId,
        info: SampleInfo,
        payload: &[u8],
    ) -> Result<Option<SequenceNumber>, Refused> {
        if payload.len() > self.memory.max_bytes() {
            return Err(Refused::TooLarge);
        }
        let mut displaced = None;
        if self.waiting.len() >= self.waiting_room {
            let furthest = self.waiting_of(proxy).end;
            let last = furthest.checked_sub(1).filter(|&at| {
                let slot = self.slot(self.waiting[at]);
                slot.proxy == proxy && slot.info.sequence > info.sequence
            });
            // A waiting sample is dropped only if the new one then finds pages.
            let last = last.filter(|_| self.memory.fits_waiting(payload.len()));
            let last = last.ok_or(Refused::Full)?;
            displaced = Some(self.slot(self.waiting[last]).info.sequence);
            self.stop_waiting(last);
        }
        let slot = self.fill(proxy, info, payload, true).ok_or(Refused::Full)?;
        let place = self.waiting.partition_point(|&other| {
            let other = self.slot(other);
            (other.proxy, other.info.sequence) < (proxy, info.sequence)
        });
        self.waiting.insert(place, slot);
        Ok(displaced)
    }

    /// Sequence number of a writer's first waiting sample.
    pub(crate) fn first_waiting(&self, proxy: WriterProxyId) -> Option<SequenceNumber> {
        let found = self.waiting_info(proxy)?;
        Some(found.sequence)
    }

    /// Makes a writer's waiting sample `sequence` available if there is room. Returns `Ok(false)` if no such sample
    /// waits, or if it is an unregistration [without effect](Self::make_room).
    pub(crate) fn promote(
        &mut self,
        proxy: WriterProxyId,
        sequence: SequenceNumber,
    ) -> Result<bool, Refused> {
        let place = self.waiting_start(proxy);
        let Some(&slot) = self.waiting.get(place) else {
            return Ok(false);
        };
        let found = *self.slot(slot);
        if found.proxy != proxy || found.info.sequence != sequence {
            return Ok(false);
        }
        let is_sample = self.make_room(proxy, &found.info)?;
        self.waiting.remove(place);
        match is_sample {
            true => self.make_available(slot),
            false => self.empty(slot),
        }
        Ok(is_sample)
    }

    /// Makes a writer's first waiting sample available if there is room, or holds it, as `turn` says.
    #[inline]
    pub(crate) fn take_turn(
        &mut self,
        turn: Admission,
        proxy: WriterProxyId,
        sequence: SequenceNumber,
    ) -> Result<(), Refused> {
        if turn == Admission::Hold {
            self.hold_in_set(proxy);
            return Ok(());
        }
        if self.promote(proxy, sequence)? && self.groups() {
            self.note_shown();
        }
        Ok(())
    }

    /// Drops all waiting samples of a removed writer.
    pub(crate) fn forget_waiting(&mut self, proxy: WriterProxyId) {
        for place in self.waiting_of(proxy).rev() {
            let slot = self.waiting.remove(place);
            self.slots[usize::from(slot)] = None;
            self.memory.give_back(slot);
        }
    }

    /// Range of a writer's samples in `waiting`.
    fn waiting_of(&self, proxy: WriterProxyId) -> Range<usize> {
        let end = self
            .waiting
            .partition_point(|&slot| self.slot(slot).proxy <= proxy);
        self.waiting_start(proxy)..end
    }

    #[inline]
    fn waiting_start(&self, proxy: WriterProxyId) -> usize {
        self.waiting
            .partition_point(|&slot| self.slot(slot).proxy < proxy)
    }

    fn stop_waiting(&mut self, at: usize) {
        let slot = self.waiting.remove(at);
        self.empty(slot);
    }
}

impl Cache {
    fn would_replace(&self, key: KeyHash) -> bool {
        self.replaced_by_one(key, 0) > 0
    }

    /// Number of an instance's samples that a new sample replaces, if `extra` samples beyond HISTORY depth are allowed.
    #[inline]
    fn replaced_by_one(&self, key: KeyHash, extra: u16) -> u16 {
        match self.keep {
            Keep::All => 0,
            // No look-up for readers that take each sample at once.
            Keep::Last { .. } if self.available.is_empty() => 0,
            Keep::Last { depth } => {
                let most = depth.saturating_add(extra).saturating_sub(1);
                self.instances.samples(key).saturating_sub(most)
            }
        }
    }

    /// Removes the samples that a new sample of the instance replaces, and returns their number.
    #[inline]
    fn evict_replaced(&mut self, key: KeyHash, extra: u16) -> u16 {
        let replaced = self.replaced_by_one(key, extra);
        (0..replaced).for_each(|_| self.evict_oldest(key));
        replaced
    }

    /// Makes room for one available sample. Returns `false` if the change is an unregistration without effect, which is
    /// only recorded.
    #[inline]
    fn make_room(&mut self, proxy: WriterProxyId, info: &SampleInfo) -> Result<bool, Refused> {
        if !info.valid_data() {
            return self.make_room_for_end(proxy, info);
        }
        let key = info.key_hash.unwrap_or_default();
        if self.evict_replaced(key, 0) == 0 {
            self.find_room(proxy)?;
        }
        Ok(true)
    }

    /// Makes room for a long sample under KEEP_LAST by removing the oldest sample.
    #[cold]
    fn make_room_for_long(&mut self) -> Result<(), Refused> {
        match (self.keep, self.available.front()) {
            (Keep::Last { .. }, Some(&oldest)) => {
                self.evict(oldest);
                Ok(())
            }
            _ => Err(Refused::Full),
        }
    }

    /// Checks for room. If the cache is full, removes an end of an instance that exceeds the HISTORY depth.
    #[inline]
    fn find_room(&mut self, proxy: WriterProxyId) -> Result<(), Refused> {
        if self.available.len() >= self.available_room {
            let end = self.extra_end().ok_or(Refused::Full)?;
            self.evict(end);
        } else if self.is_over_share(proxy) {
            return Err(Refused::PutOff);
        }
        Ok(())
    }

    fn evict_oldest(&mut self, key: KeyHash) {
        if let Some(index) = self.instances.oldest(key) {
            self.evict(index);
        }
    }

    fn evict(&mut self, index: u16) {
        // The position is 0 if the topic has no key, or if all instances are written equally often.
        let position = self.available.iter().position(|&there| there == index);
        position.and_then(|position| self.available.remove(position));
        if !self.release(index).synthetic {
            self.evicted += 1;
        }
    }
}

impl Cache {
    /// Number of held-back samples.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Returns whether the next sample of an instance would find room among the available ones.
    pub(crate) fn has_place(&self, key: KeyHash) -> bool {
        let has_room = self.available.len() < self.available_room;
        has_room || self.would_replace(key) || self.extra_end().is_some()
    }

    #[inline]
    pub(crate) fn waiting_info(&self, proxy: WriterProxyId) -> Option<&SampleInfo> {
        let slot = self.slot(*self.waiting.get(self.waiting_start(proxy))?);
        (slot.proxy == proxy).then_some(&slot.info)
    }

    pub(crate) fn first_waiting_sample(
        &self,
        proxy: WriterProxyId,
    ) -> Option<(&SampleInfo, &[u8])> {
        let index = *self.waiting.get(self.waiting_start(proxy))?;
        let slot = self.slot(index);
        let payload = self.memory.get(index, slot.length as usize);
        (slot.proxy == proxy).then_some((&slot.info, payload))
    }

    /// Stores a sample as held back and returns its slot; `None` if all slots for held-back samples are used.
    pub(crate) fn hold(
        &mut self,
        proxy: WriterProxyId,
        info: SampleInfo,
        payload: &[u8],
    ) -> Option<u16> {
        if self.held == self.held_room || payload.len() > self.memory.max_bytes() {
            return None;
        }
        let slot = self.fill(proxy, info, payload, true)?;
        self.held += 1;
        Some(slot)
    }

    /// Holds back a writer's first waiting sample, which keeps its slot. If there is no room, drops it and returns
    /// `None`.
    pub(crate) fn hold_waiting(&mut self, proxy: WriterProxyId) -> Option<u16> {
        let slot = self.waiting.remove(self.waiting_start(proxy));
        if self.held < self.held_room {
            self.held += 1;
            return Some(slot);
        }
        self.empty(slot);
        None
    }

    pub(crate) fn forget_first_waiting(&mut self, proxy: WriterProxyId) {
        let slot = self.waiting.remove(self.waiting_start(proxy));
        self.empty(slot);
    }

    pub(crate) fn drop_held(&mut self, slot: u16) {
        self.held -= 1;
        self.empty(slot);
    }

    /// Makes a held-back sample available.
    pub(crate) fn show_held(&mut self, slot: u16) -> Result<(), Refused> {
        let key = self.slot(slot).info.key_hash.unwrap_or_default();
        if self.evict_replaced(key, 0) == 0 && self.available.len() >= self.available_room {
            let end = self.extra_end().ok_or(Refused::Full)?;
            self.evict(end);
        }
        self.held -= 1;
        self.make_available(slot);
        Ok(())
    }

    pub(crate) fn writer_of_held(&self, slot: u16) -> WriterProxyId {
        self.slot(slot).proxy
    }

    fn empty(&mut self, slot: u16) {
        self.slots[usize::from(slot)] = None;
        self.memory.give_back(slot);
    }
}

impl LocalParticipant {
    /// Returns the number of available samples of a reader.
    #[must_use]
    pub fn available(&self, id: ReaderId) -> usize {
        let cache = self
            .readers
            .get(id)
            .and_then(|reader| reader.cache.as_ref());
        cache.map_or(0, |cache| cache.available())
    }

    /// Returns the `nth` available sample of a reader, oldest first.
    #[must_use]
    pub fn sample(&self, id: ReaderId, nth: usize) -> Option<CachedSample<'_>> {
        let (info, payload) = self.readers.get(id)?.cache.as_ref()?.get(nth)?;
        Some(CachedSample { info, payload })
    }

    /// Marks the `nth` available sample as read.
    pub fn mark_read(&mut self, id: ReaderId, nth: usize) {
        if let Some(cache) = self
            .readers
            .get_mut(id)
            .and_then(|reader| reader.cache.as_mut())
        {
            cache.mark_read(nth);
        }
    }

    /// Removes the oldest available sample from the cache and counts it as delivered. The user has seen it through
    /// [`LocalParticipant::sample`]. Samples refused for lack of room are requested again.
    pub fn remove_oldest(&mut self, id: ReaderId) {
        self.readers.discard_oldest(
            &mut self.shared,
            Facts::of(&self.writers, &self.discovery),
            id,
        );
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
            sizes: Sizes::shared(64 << 10, 48, crate::limits::LONG_BYTES),
        };
        let mut cache = Cache::try_new(Keep::All, false, room, 1).expect("memory for a test");
        let payload = alloc::vec![0; 60_000];
        for left in (0..4).rev() {
            cache
                .push(WriterProxyId(0), SampleInfo::UNSEEN, &payload)
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
        cache.push(WriterProxyId(3), info, &[1]).unwrap();
        assert_eq!(
            cache.first_untaken(WriterProxyId(3)),
            Some(SequenceNumber(890))
        );
        cache.writer_gone(WriterProxyId(3), Guid::UNKNOWN, Instant::new(1));
        assert!(cache.available() > 0, "its sample is still to be taken");
        assert_eq!(cache.first_untaken(WriterProxyId(3)), None);
    }
}
