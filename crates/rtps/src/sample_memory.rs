//! Sample memory of a history or a cache, all of it allocated when the endpoint is created.
//!
//! Each sample has a *slot* of a fixed size. Samples longer than a slot share *pages*; a long sample is in a run of
//! them. An endpoint with bounded samples has slots of that size and no pages. An endpoint with mostly short samples
//! has slots of an Ethernet frame and pages for a few long ones. So a rare long sample does not enlarge every slot.
//!
//! A sample takes the first run that fits. A sample that waits for an earlier one takes a run of the upper half. So the
//! lower half is free for the earlier one as soon as the user has taken the samples there. TIME_BASED_FILTER doubles
//! the pages. The samples that it defers also take no run of the lower half, and no other samples take the new pages.

use alloc::{boxed::Box, vec, vec::Vec};
use core::ops::Range;

use crate::{
    config::{Zeroed, from_allocator, memory_of},
    limits::{MAX_DATA_PAYLOAD_BYTES, USUAL_LONG_BYTES, WAITING_BYTES},
};

/// Page size in bytes; a long sample wastes half a page on average.
const PAGE_BYTES: usize = 1_024;

/// Layout of sample memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Slot size in bytes.
    slot_bytes: usize,
    /// Maximum sample size in bytes.
    max_bytes: usize,
    /// Bytes shared by samples longer than a slot; 0 if there are none.
    long_bytes: usize,
    /// Part of `long_bytes`, at the end, for waiting and deferred samples.
    waiting_bytes: usize,
    /// Part of `waiting_bytes`, at the end, that no other samples take.
    kept_bytes: usize,
    zeroed: Zeroed,
}

impl Sizes {
    pub(crate) fn taken_from(self, zeroed: Zeroed) -> Self {
        Self { zeroed, ..self }
    }

    /// Returns a layout with slots of `max_bytes` and no pages.
    pub(crate) fn fixed(max_bytes: usize) -> Self {
        Self {
            slot_bytes: max_bytes,
            max_bytes,
            long_bytes: 0,
            waiting_bytes: 0,
            kept_bytes: 0,
            zeroed: from_allocator,
        }
    }

    /// Returns a layout with slots of an Ethernet frame, and pages for longer samples. The pages hold as many of the
    /// longest samples as fit `share_bytes` ([`WAITING_BYTES`] if the longest exceeds [`USUAL_LONG_BYTES`]), but at least
    /// four, and at most one for each slot.
    pub(crate) fn shared(max_bytes: usize, slots: usize, share_bytes: usize) -> Self {
        if max_bytes <= MAX_DATA_PAYLOAD_BYTES {
            return Self::fixed(max_bytes);
        }
        let longest = max_bytes.next_multiple_of(2 * PAGE_BYTES);
        let share = match max_bytes <= USUAL_LONG_BYTES {
            true => share_bytes,
            false => WAITING_BYTES,
        };
        let samples = (share / longest).max(4).min(slots);
        let long_bytes = samples.saturating_mul(longest);
        Self {
            slot_bytes: MAX_DATA_PAYLOAD_BYTES,
            max_bytes,
            long_bytes,
            waiting_bytes: long_bytes / 2,
            kept_bytes: 0,
            zeroed: from_allocator,
        }
    }

    /// Doubles the pages; the second half is for samples that TIME_BASED_FILTER defers.
    pub(crate) fn with_kept_back(self) -> Self {
        Self {
            long_bytes: self.long_bytes.saturating_mul(2),
            waiting_bytes: self.waiting_bytes.saturating_add(self.long_bytes),
            kept_bytes: self.long_bytes,
            ..self
        }
    }

    pub(crate) fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    pub(crate) fn bytes(&self, slots: usize) -> usize {
        slots
            .saturating_mul(self.slot_bytes)
            .saturating_add(self.long_bytes)
    }
}

/// Slots and pages of a history or a cache.
#[derive(Debug)]
pub(crate) struct SampleMemory {
    sizes: Sizes,
    /// Bytes of the slots; grows, within its capacity, to the last slot in use.
    slots: Vec<u8>,
    count: u16,
    free: Vec<u16>,
    long: Option<Box<Long>>,
}

/// Pages for samples longer than a slot.
#[derive(Debug)]
struct Long {
    bytes: Box<[u8]>,
    /// Free runs of pages, ascending, adjacent ones joined: at most one more than slots.
    free: Vec<Range<u32>>,
    /// Pages of each slot's sample.
    runs: Box<[Range<u32>]>,
    /// Pages of the longest sample so far; 0 before the first.
    longest: usize,
    /// Pages for waiting and deferred samples.
    waiting: Range<usize>,
    /// Pages for all other samples.
    available: Range<usize>,
}

impl SampleMemory {
    /// Allocates memory for `slots` samples; `None` if there is none left.
    pub(crate) fn try_new(slots: u16, sizes: Sizes) -> Option<Self> {
        let count = usize::from(slots);
        let long = match sizes.long_bytes {
            0 => None,
            bytes => Some(Box::new(Long {
                bytes: (sizes.zeroed)(bytes)?,
                free: Long::all_free(bytes, count),
                runs: vec![0..0; count].into_boxed_slice(),
                longest: 0,
                waiting: (bytes - sizes.waiting_bytes) / PAGE_BYTES..bytes / PAGE_BYTES,
                available: 0..(bytes - sizes.kept_bytes) / PAGE_BYTES,
            })),
        };
        Some(Self {
            sizes,
            slots: memory_of(count.checked_mul(sizes.slot_bytes)?, sizes.zeroed)?,
            count: slots,
            free: (0..slots).rev().collect(),
            long,
        })
    }

    /// Returns all memory, for prefaulting.
    pub(crate) fn pieces_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.grow(usize::from(self.count) * self.sizes.slot_bytes);
        let long = self.long.as_mut().map(|long| &mut long.bytes[..]);
        core::iter::once(&mut self.slots[..]).chain(long)
    }

    #[inline]
    pub(crate) fn max_bytes(&self) -> usize {
        self.sizes.max_bytes
    }

    #[inline]
    pub(crate) fn claim(&mut self) -> Option<u16> {
        self.free.pop()
    }

    pub(crate) fn free_slots(&self) -> usize {
        self.free.len()
    }

    /// Frees a slot and its pages.
    #[inline]
    pub(crate) fn give_back(&mut self, slot: u16) {
        self.free.push(slot);
        if let Some(long) = &mut self.long {
            long.release(slot);
        }
    }

    /// Copies a sample into a slot; `waits` is true if it waits for an earlier one. Returns false if the sample is long
    /// and no run of pages is free for it.
    #[inline]
    pub(crate) fn store(&mut self, slot: u16, payload: &[u8], waits: bool) -> bool {
        if payload.len() > self.sizes.slot_bytes {
            return self.store_long(slot, payload, waits);
        }
        self.slot_mut(slot)[..payload.len()].copy_from_slice(payload);
        true
    }

    #[inline]
    fn slot_mut(&mut self, slot: u16) -> &mut [u8] {
        let start = usize::from(slot) * self.sizes.slot_bytes;
        let end = start + self.sizes.slot_bytes;
        if end > self.slots.len() {
            self.grow(end);
        }
        &mut self.slots[start..end]
    }

    /// Extends `slots`, within its capacity, at the first use of a slot.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, end: usize) {
        debug_assert!(end <= self.slots.capacity());
        self.slots.resize(end.max(self.slots.len()), 0);
    }

    #[cold]
    fn store_long(&mut self, slot: u16, payload: &[u8], waits: bool) -> bool {
        let Some(long) = &mut self.long else {
            return false;
        };
        let pages = payload.len().div_ceil(PAGE_BYTES);
        let within = if waits {
            &long.waiting
        } else {
            &long.available
        };
        let Some(start) = long.first_run(within, pages) else {
            return false;
        };
        long.take(slot, start, pages);
        long.note_length(pages);
        long.bytes[start * PAGE_BYTES..][..payload.len()].copy_from_slice(payload);
        true
    }

    /// Returns whether there are pages for a waiting sample of this size.
    #[cold]
    pub(crate) fn fits_waiting(&self, bytes: usize) -> bool {
        let long = self.long.as_ref().filter(|_| bytes > self.sizes.slot_bytes);
        long.is_none_or(|long| {
            let pages = bytes.div_ceil(PAGE_BYTES);
            long.first_run(&long.waiting, pages).is_some()
        })
    }

    /// Returns the sample of a slot, which has `length` bytes.
    #[inline]
    pub(crate) fn get(&self, slot: u16, length: usize) -> &[u8] {
        if length > self.sizes.slot_bytes {
            return self.get_long(slot, length);
        }
        let start = usize::from(slot) * self.sizes.slot_bytes;
        self.slots.get(start..start + length).unwrap_or_default()
    }

    #[cold]
    fn get_long(&self, slot: u16, length: usize) -> &[u8] {
        let Some(long) = &self.long else { return &[] };
        let start = long.runs[usize::from(slot)].start as usize * PAGE_BYTES;
        long.bytes.get(start..start + length).unwrap_or_default()
    }

    /// Returns whether memory for a sample of this size can be lent now. True for a sample above the maximum, which is
    /// refused later.
    #[inline]
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        bytes <= self.sizes.slot_bytes || self.fits_long(bytes)
    }

    #[cold]
    fn fits_long(&self, bytes: usize) -> bool {
        let bytes = bytes.min(self.sizes.max_bytes);
        let pages = bytes.div_ceil(PAGE_BYTES);
        match &self.long {
            Some(long) => long.first_run(&long.available, pages).is_some(),
            None => true,
        }
    }

    /// Lends a slot to be filled: all of it, or for a longer sample the largest free run of pages.
    #[inline]
    pub(crate) fn lend(&mut self, slot: u16, bytes: usize) -> &mut [u8] {
        if bytes > self.sizes.slot_bytes && self.long.is_some() {
            return self.lend_long(slot);
        }
        if let Some(long) = &mut self.long {
            // A refused sample may have left pages lent.
            long.release(slot);
        }
        self.slot_mut(slot)
    }

    #[cold]
    fn lend_long(&mut self, slot: u16) -> &mut [u8] {
        let most = self.sizes.max_bytes.div_ceil(PAGE_BYTES);
        let Some(long) = &mut self.long else {
            return &mut [];
        };
        long.release(slot);
        let (start, pages) = long.largest_run(most);
        long.take(slot, start, pages);
        let bytes = (pages * PAGE_BYTES).min(self.sizes.max_bytes);
        &mut long.bytes[start * PAGE_BYTES..][..bytes]
    }

    /// Stores the length of the sample in lent memory; frees the rest.
    #[inline]
    pub(crate) fn settle(&mut self, slot: u16, length: usize) {
        if self.long.is_some() {
            self.settle_long(slot, length);
        }
    }

    #[cold]
    fn settle_long(&mut self, slot: u16, length: usize) {
        let Some(long) = &mut self.long else { return };
        let run = long.runs[usize::from(slot)].clone();
        if run.is_empty() {
            return;
        }
        long.release(slot);
        if length > self.sizes.slot_bytes {
            let pages = length.div_ceil(PAGE_BYTES).min(run.len());
            long.take(slot, run.start as usize, pages);
            long.note_length(pages);
            return;
        }
        // The sample is shorter than announced, and fits the slot.
        self.slot_mut(slot);
        let Some(long) = &self.long else { return };
        let bytes = &long.bytes[run.start as usize * PAGE_BYTES..][..length];
        self.slots[usize::from(slot) * self.sizes.slot_bytes..][..length].copy_from_slice(bytes);
    }

    /// Returns the number of `slots` that a sample counts as: one with half of the pages counts as half of the slots.
    #[inline]
    pub(crate) fn share(&self, bytes: usize, slots: usize) -> u32 {
        match self.long {
            Some(_) if bytes > self.sizes.slot_bytes => {
                let taken = bytes.next_multiple_of(PAGE_BYTES);
                (taken * slots).div_ceil(self.sizes.long_bytes) as u32
            }
            _ => 1,
        }
    }

    /// Returns how many samples as long as the longest so far have room.
    pub(crate) fn room(&self) -> usize {
        match &self.long {
            Some(long) if long.longest > 0 => {
                let free = long.free.iter();
                let end = long.available.end as u32;
                free.map(|run| run.end.min(end).saturating_sub(run.start) as usize / long.longest)
                    .sum()
            }
            _ => usize::MAX,
        }
    }
}

impl Long {
    /// Returns all pages as one free run; the list has capacity for the maximum number of runs.
    fn all_free(bytes: usize, samples: usize) -> Vec<Range<u32>> {
        let mut free = Vec::with_capacity(samples + 1);
        free.push(0..(bytes / PAGE_BYTES) as u32);
        free
    }

    fn note_length(&mut self, pages: usize) {
        self.longest = self.longest.max(pages);
    }

    /// Returns the start of the first free run of `pages` pages within a range.
    fn first_run(&self, within: &Range<usize>, pages: usize) -> Option<usize> {
        let start_of = |run: &Range<u32>| {
            let start = within.start.max(run.start as usize);
            let end = within.end.min(run.end as usize);
            (start + pages <= end).then_some(start)
        };
        self.free.iter().find_map(start_of)
    }

    /// Returns start and length of the first free run of `most` pages, or of the largest one.
    fn largest_run(&self, most: usize) -> (usize, usize) {
        let mut largest = 0..0;
        for run in &self.free {
            if run.len() > largest.len() {
                largest = run.clone();
            }
            if largest.len() >= most {
                break;
            }
        }
        (largest.start as usize, largest.len().min(most))
    }

    /// Allocates pages of a free run to a slot.
    fn take(&mut self, slot: u16, start: usize, pages: usize) {
        let run = start as u32..(start + pages) as u32;
        let at = self.first_behind(run.start);
        let Some(free) = self.free.get_mut(at).filter(|_| pages > 0) else {
            return;
        };
        let behind = run.end..free.end;
        free.end = run.start;
        match (free.start == free.end, behind.start == behind.end) {
            (false, false) => self.free.insert(at + 1, behind),
            (false, true) => {}
            (true, false) => *free = behind,
            (true, true) => drop(self.free.remove(at)),
        }
        self.runs[usize::from(slot)] = run;
    }

    fn release(&mut self, slot: u16) {
        let run = core::mem::take(&mut self.runs[usize::from(slot)]);
        if run.is_empty() {
            return;
        }
        let at = self.first_behind(run.start);
        let joins_before = at > 0 && self.free[at - 1].end == run.start;
        let joins_behind = self.free.get(at).is_some_and(|it| it.start == run.end);
        match (joins_before, joins_behind) {
            (true, true) => self.free[at - 1].end = self.free.remove(at).end,
            (true, false) => self.free[at - 1].end = run.end,
            (false, true) => self.free[at].start = run.start,
            (false, false) => self.free.insert(at, run),
        }
    }

    /// Returns the index of the first free run that ends after a page.
    fn first_behind(&self, page: u32) -> usize {
        self.free.partition_point(|free| free.end <= page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::LONG_BYTES;

    /// Allocates eight slots, and twelve pages for samples of up to 3,000 bytes.
    fn memory() -> SampleMemory {
        let sizes = Sizes {
            slot_bytes: MAX_DATA_PAYLOAD_BYTES,
            max_bytes: 3_000,
            long_bytes: 12 * PAGE_BYTES,
            waiting_bytes: 6 * PAGE_BYTES,
            kept_bytes: 0,
            zeroed: from_allocator,
        };
        SampleMemory::try_new(8, sizes).expect("memory for a test")
    }

    #[test]
    fn long_samples_share_memory_for_some_of_the_longest() {
        let bytes = |max_bytes, slots| Sizes::shared(max_bytes, slots, LONG_BYTES).long_bytes;
        assert_eq!(bytes(MAX_DATA_PAYLOAD_BYTES, 100), 0);
        assert_eq!(bytes(2_000, 10), 10 * 2_048, "all of them");
        assert_eq!(bytes(64 << 10, 100), 256 << 10);
        assert_eq!(bytes(1 << 20, 100), 4 << 20);
        assert_eq!(bytes(16 << 20, 100), 64 << 20, "four");
        assert_eq!(bytes(16 << 20, 2), 32 << 20);
    }

    fn sample(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at % 251) as u8).collect()
    }

    #[test]
    fn short_and_long_samples_are_kept_together() {
        let mut memory = memory();
        let lengths = [
            10,
            2_500,
            MAX_DATA_PAYLOAD_BYTES,
            MAX_DATA_PAYLOAD_BYTES + 1,
            0,
        ];
        let slots = lengths.map(|length| {
            let slot = memory.claim().expect("there are eight");
            assert!(memory.store(slot, &sample(length), false), "{length}");
            slot
        });
        for (slot, length) in slots.into_iter().zip(lengths) {
            assert_eq!(memory.get(slot, length), sample(length));
        }
    }

    #[test]
    fn long_samples_find_no_room_when_the_pages_are_used_and_again_when_one_goes() {
        let mut memory = memory();
        let mut slots = Vec::new();
        for _ in 0..4 {
            let slot = memory.claim().expect("there are eight");
            assert!(memory.store(slot, &sample(2_500), false));
            slots.push(slot);
        }
        let slot = memory.claim().expect("a slot is left");
        assert!(!memory.store(slot, &sample(1_500), false));
        assert!(!memory.fits(1_500) && memory.fits(1_400));
        assert!(
            memory.store(slot, &sample(1_400), false),
            "a short one does"
        );
        memory.give_back(slots[1]);
        assert!(memory.fits(2_500));
        let slot = memory.claim().expect("it came back");
        assert!(memory.store(slot, &sample(2_500), false));
    }

    #[test]
    fn samples_that_wait_leave_the_lower_half_to_the_one_they_wait_for() {
        let mut memory = memory();
        let mut waiting = 0;
        while let Some(slot) = memory.claim()
            && memory.store(slot, &sample(2_500), true)
        {
            waiting += 1;
        }
        assert_eq!(waiting, 2);
        let slot = memory.claim().expect("a slot is left");
        assert!(memory.store(slot, &sample(2_500), false));
    }

    #[test]
    fn samples_that_are_not_kept_back_leave_the_pages_for_those_that_are() {
        let sizes = Sizes::shared(64 << 10, 64, LONG_BYTES).with_kept_back();
        let mut memory = SampleMemory::try_new(64, sizes).expect("memory for a test");
        let long = vec![1; 60_000];
        let mut store = |waits| {
            let slot = memory.claim().expect("a slot");
            memory.store(slot, &long, waits)
        };
        let shown = (0..64).take_while(|_| store(false)).count();
        let kept_back = (0..32).take_while(|_| store(true)).count();
        assert_eq!((shown, kept_back), (4, 4));
    }

    #[test]
    fn a_short_sample_after_one_that_was_refused_is_the_short_one() {
        let mut memory = memory();
        let slot = memory.claim().expect("there are eight");
        memory.lend(slot, MAX_DATA_PAYLOAD_BYTES + 1).fill(0xaa);
        // The first sample did not fit the pages either.
        memory.lend(slot, 0)[..10].copy_from_slice(&sample(10));
        memory.settle(slot, 10);
        assert_eq!(memory.get(slot, 10), sample(10));
        assert!(memory.fits(3_000), "the pages are free again");
    }

    #[test]
    fn what_is_lent_and_not_used_is_free_again() {
        let mut memory = memory();
        for length in [2_000, 1_500, 1_500, 1_500, 1_500] {
            let slot = memory.claim().expect("there are eight");
            assert_eq!(memory.lend(slot, 0).len(), MAX_DATA_PAYLOAD_BYTES);
            let lent = memory.lend(slot, MAX_DATA_PAYLOAD_BYTES + 1);
            assert!(lent.len() >= length, "two pages each");
            lent[..length].copy_from_slice(&sample(length));
            memory.settle(slot, length);
            assert_eq!(memory.get(slot, length), sample(length));
        }
        assert_eq!(memory.room(), 1);
        let slot = memory.claim().expect("there are eight");
        memory.lend(slot, MAX_DATA_PAYLOAD_BYTES + 1)[..5].copy_from_slice(&sample(5));
        memory.settle(slot, 5);
        assert_eq!(memory.get(slot, 5), sample(5), "a short one after all");
        assert!(memory.fits(2_000));
    }

    #[test]
    fn pages_are_taken_and_given_back_in_any_order() {
        let sizes = Sizes::shared(64 << 10, 64, LONG_BYTES);
        let mut memory = SampleMemory::try_new(64, sizes).expect("memory for a test");
        let (mut random, mut kept) = (1_u32, Vec::new());
        for turn in 0..20_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let length = 1 + random as usize % (20 << 10);
            let is_lent = turn % 2 == 0;
            let fits = memory.fits(length);
            if fits && let Some(slot) = memory.claim() {
                if is_lent {
                    let lent = memory.lend(slot, length);
                    lent[..length].copy_from_slice(&sample(length));
                    memory.settle(slot, length);
                } else {
                    assert!(memory.store(slot, &sample(length), false));
                }
                kept.push((slot, length));
            } else {
                let (slot, length) = kept.swap_remove(random as usize % kept.len());
                assert_eq!(memory.get(slot, length), sample(length));
                memory.give_back(slot);
            }
        }
        let capacity = memory.long.as_ref().map(|long| long.free.capacity());
        assert_eq!(capacity, Some(65), "the list takes no memory");
        for (slot, length) in kept {
            assert_eq!(memory.get(slot, length), sample(length));
            memory.give_back(slot);
        }
        let free = memory.long.map(|long| long.free).unwrap_or_default();
        assert_eq!((free.len(), free.first()), (1, Some(&(0..256))));
    }

    #[test]
    fn slots_are_written_when_they_are_used_and_take_no_memory_then() {
        let mut memory = SampleMemory::try_new(8, Sizes::fixed(64)).expect("memory for a test");
        let at = memory.slots.as_ptr();
        assert!(memory.slots.is_empty());
        for used in 1..=8 {
            let slot = memory.claim().expect("there are eight");
            assert!(memory.store(slot, &sample(64), false));
            assert_eq!(memory.slots.len(), used * 64);
        }
        assert_eq!(memory.slots.as_ptr(), at);
        let touched = SampleMemory::try_new(8, Sizes::fixed(64))
            .map(|mut memory| memory.pieces_mut().map(|piece| piece.len()).sum());
        assert_eq!(touched, Some(8 * 64));
    }

    #[test]
    fn memory_that_cannot_be_had_is_no_panic() {
        let none = |_| None;
        assert!(SampleMemory::try_new(8, Sizes::fixed(64 << 10).taken_from(none)).is_none());
        assert!(SampleMemory::try_new(u16::MAX, Sizes::fixed(usize::MAX / 2)).is_none());
    }
}
