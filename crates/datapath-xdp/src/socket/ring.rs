//! Single-producer single-consumer ring shared with the kernel.
//!
//! ```text
//!             consumer                 producer
//!                │                        │
//!    ┌───┬───┬───▼────┬────────┬────────┬─▼─┬───┐
//!    │   │   │ entry  │ entry  │ entry  │   │   │     entries: a power of two
//!    └───┴───┴────────┴────────┴────────┴───┴───┘     indexes: run on, modulo 2^32
//! ```
//!
//! Each side advances its own index and reads the other's. Entries are written before the index that publishes them
//! (release) and read after it (acquire). The own index is kept in this process and never read back. The kernel's index
//! is accepted only if it advanced, by no more than the ring allows. A rejected index is counted (`nonsense`) and
//! changes nothing. So no entry outside the ring is accessed and none is seen twice, whatever the memory contains.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::system_calls::Mapping;
use super::umem::Umem;

/// Byte offsets of a ring's parts in its memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) producer: u64,
    pub(super) consumer: u64,
    pub(super) flags: u64,
    pub(super) entries: u64,
}

/// Owner of a ring's memory.
#[derive(Debug)]
pub(super) enum Memory {
    /// Mapping of the socket's ring, then the UMEM. The UMEM is dropped after the mapping: the kernel uses it as long
    /// as the socket lives, and the socket lives as long as the mapping.
    Mapped(Mapping, #[allow(dead_code, reason = "kept, not used")] Umem),
    /// Private memory, for tests without a kernel.
    #[cfg(test)]
    Plain(Box<[u64]>),
}

impl Memory {
    fn start(&mut self) -> NonNull<u8> {
        match self {
            Memory::Mapped(mapping, _) => mapping.start(),
            #[cfg(test)]
            Memory::Plain(words) => NonNull::from(&mut **words).cast(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Memory::Mapped(mapping, _) => mapping.bytes(),
            #[cfg(test)]
            Memory::Plain(words) => size_of_val::<[u64]>(words),
        }
    }
}

/// Type whose values are stored in a ring as they are: every bit pattern is valid.
///
/// # Safety
/// The implementor has no padding, no invalid bit patterns, and an alignment of at most 8.
pub(super) unsafe trait Entry: Copy {}

// SAFETY: an integer.
unsafe impl Entry for u64 {}

/// Indexes, flags and entries of a ring, with the memory they are in.
#[derive(Debug)]
struct Parts<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    /// Number of entries less one.
    mask: u32,
    _memory: Memory,
}

// SAFETY: the pointers lead into memory that this value owns, wherever the value moves. Memory shared with the kernel
// is accessed by atomics, or as entries that belong to one side at a time.
unsafe impl<T: Entry + Send> Send for Parts<T> {}
// SAFETY: a shared reference only reads the atomics and changes nothing.
unsafe impl<T: Entry + Send> Sync for Parts<T> {}

impl<T: Entry> Parts<T> {
    /// Locates the parts of a ring. `None` if a part is not within the memory.
    fn find(mut memory: Memory, layout: Layout, count: u32) -> Option<Parts<T>> {
        if !count.is_power_of_two() {
            return None;
        }
        let (start, bytes) = (memory.start(), memory.bytes());
        let part = |offset: u64, length: usize, align: usize| {
            let offset = usize::try_from(offset).ok()?;
            let end = offset.checked_add(length)?;
            // SAFETY: checked: `offset` is inside the memory.
            (end <= bytes && offset.is_multiple_of(align)).then(|| unsafe { start.add(offset) })
        };
        let word = size_of::<u32>();
        let entries_bytes = (count as usize).checked_mul(size_of::<T>())?;
        Some(Parts {
            producer: part(layout.producer, word, word)?.cast(),
            consumer: part(layout.consumer, word, word)?.cast(),
            flags: part(layout.flags, word, word)?.cast(),
            entries: part(layout.entries, entries_bytes, 8)?.cast(),
            mask: count - 1,
            _memory: memory,
        })
    }

    #[inline]
    fn count(&self) -> u32 {
        self.mask + 1
    }

    #[inline]
    fn producer(&self) -> &AtomicU32 {
        // SAFETY: inside the memory this value owns, aligned (`find`), and atomic on both sides.
        unsafe { self.producer.as_ref() }
    }

    #[inline]
    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.consumer.as_ref() }
    }

    #[inline]
    fn flags(&self) -> u32 {
        // SAFETY: as above.
        unsafe { self.flags.as_ref() }.load(Ordering::Relaxed)
    }

    /// Pointer to the entry with this index.
    #[inline]
    fn entry(&self, index: u32) -> NonNull<T> {
        // SAFETY: masked, the index is below the number of entries, which are in the memory (`find`).
        unsafe { self.entries.add((index & self.mask) as usize) }
    }
}

/// Producing end of a ring.
#[derive(Debug)]
pub(super) struct Producer<T> {
    parts: Parts<T>,
    own: u32,
    /// Own index as published to the kernel, which takes no entries beyond it.
    shown: u32,
    /// Last accepted index of the kernel: in `own - count ..= shown`.
    other: u32,
    nonsense: u64,
}

impl<T: Entry> Producer<T> {
    /// Creates an empty ring of `count` entries in zeroed memory. `None` if it does not fit.
    pub(super) fn new(memory: Memory, layout: Layout, count: u32) -> Option<Producer<T>> {
        Some(Producer {
            parts: Parts::find(memory, layout, count)?,
            own: 0,
            shown: 0,
            other: 0,
            nonsense: 0,
        })
    }

    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.parts.count()
    }

    pub(super) fn nonsense(&self) -> u64 {
        self.nonsense
    }

    /// Returns whether the kernel must be woken for new entries.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.parts.flags() & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// Entries not taken yet, by the kernel's current index.
    #[inline]
    pub(super) fn used(&mut self) -> u32 {
        let consumer = self.parts.consumer().load(Ordering::Acquire);
        let in_ring = self.shown.wrapping_sub(self.other);
        if consumer.wrapping_sub(self.other) <= in_ring {
            self.other = consumer;
        } else {
            self.nonsense += 1;
        }
        self.own.wrapping_sub(self.other)
    }

    /// Entries not taken yet, clamped to the ring's size. The kernel's index is not adopted.
    pub(super) fn peek_used(&self) -> u32 {
        let consumer = self.parts.consumer().load(Ordering::Relaxed);
        self.own.wrapping_sub(consumer).min(self.count())
    }

    /// Pushes items from the front while there is room, and publishes them; returns how many.
    #[inline]
    pub(super) fn push(&mut self, items: &[T]) -> usize {
        let put = items.iter().take_while(|item| self.stage(**item)).count();
        if put > 0 {
            self.show();
        }
        put
    }

    /// Writes one entry without publishing it ([`show`](Self::show) does). Entries made one by one are thus published
    /// together, without a temporary list. Returns false if the ring is full.
    #[inline]
    pub(super) fn stage(&mut self, item: T) -> bool {
        if !self.has_room() {
            return false;
        }
        // SAFETY: the entry is in the memory. Only this process accesses it: the kernel has taken the entry that was
        // there (the ring is not full), and the new one is not published.
        unsafe { self.parts.entry(self.own).write(item) };
        self.own = self.own.wrapping_add(1);
        true
    }

    /// Returns whether there is room for one entry. Reads the kernel's index only if the ring seemed full.
    #[inline]
    pub(super) fn has_room(&mut self) -> bool {
        self.known_used() < self.count() || self.has_room_by_now()
    }

    #[cold]
    fn has_room_by_now(&mut self) -> bool {
        self.used() < self.count()
    }

    /// Publishes all staged entries to the kernel.
    #[inline]
    pub(super) fn show(&mut self) {
        self.shown = self.own;
        self.parts.producer().store(self.own, Ordering::Release);
    }

    /// Entries not taken as of the last read of the kernel's index, plus those staged since.
    #[inline]
    pub(super) fn known_used(&self) -> u32 {
        self.own.wrapping_sub(self.other)
    }
}

/// Consuming end of a ring.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    parts: Parts<T>,
    own: u32,
    /// Last accepted index of the kernel: in `own ..= own + count`.
    other: u32,
    nonsense: u64,
}

impl<T: Entry> Consumer<T> {
    /// Creates an empty ring of `count` entries in zeroed memory. `None` if it does not fit.
    pub(super) fn new(memory: Memory, layout: Layout, count: u32) -> Option<Consumer<T>> {
        Some(Consumer {
            parts: Parts::find(memory, layout, count)?,
            own: 0,
            other: 0,
            nonsense: 0,
        })
    }

    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.parts.count()
    }

    pub(super) fn nonsense(&self) -> u64 {
        self.nonsense
    }

    /// Entries to take, by the kernel's current index.
    #[inline]
    pub(super) fn waiting(&mut self) -> u32 {
        let producer = self.parts.producer().load(Ordering::Acquire);
        let known = self.other.wrapping_sub(self.own);
        if producer.wrapping_sub(self.other) <= self.count() - known {
            self.other = producer;
        } else {
            self.nonsense += 1;
        }
        self.other.wrapping_sub(self.own)
    }

    /// Entries to take, clamped to the ring's size. The kernel's index is not adopted.
    pub(super) fn peek_waiting(&self) -> u32 {
        let producer = self.parts.producer().load(Ordering::Relaxed);
        producer.wrapping_sub(self.own).min(self.count())
    }

    /// Pops entries into the front of `into` and returns their slots to the kernel; returns how many.
    #[inline]
    pub(super) fn pop(&mut self, into: &mut [T]) -> usize {
        let count = self.ready(into.len());
        for (item, entry) in into.iter_mut().zip(std::iter::from_fn(|| self.take())) {
            *item = entry;
        }
        if count > 0 {
            self.give_back();
        }
        count
    }

    /// Number of entries that can be taken one by one, at most `limit`. Reads the kernel's index if fewer are known.
    #[inline]
    pub(super) fn ready(&mut self, limit: usize) -> usize {
        let mut waiting = self.other.wrapping_sub(self.own);
        if (waiting as usize) < limit {
            waiting = self.waiting();
        }
        limit.min(waiting as usize)
    }

    /// Takes one known entry and keeps its slot until [`give_back`](Self::give_back), so a burst needs no temporary
    /// list.
    #[inline]
    pub(super) fn take(&mut self) -> Option<T> {
        if self.own == self.other {
            return None;
        }
        // SAFETY: the entry is in the memory, and any bytes are a valid entry (Entry). The kernel has published it
        // (acquire, `waiting`) and does not write there before its slot is given back.
        let entry = unsafe { self.parts.entry(self.own).read() };
        self.own = self.own.wrapping_add(1);
        Some(entry)
    }

    /// Returns the slots of all taken entries to the kernel.
    #[inline]
    pub(super) fn give_back(&mut self) {
        self.parts.consumer().store(self.own, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
