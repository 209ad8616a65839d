//! A ring that this program and the kernel share: one puts entries in, the other takes them out.
//!
//! ```text
//!             consumer                 producer
//!                │                        │
//!    ┌───┬───┬───▼────┬────────┬────────┬─▼─┬───┐
//!    │   │   │ entry  │ entry  │ entry  │   │   │     entries: a power of two
//!    └───┴───┴────────┴────────┴────────┴───┴───┘     indexes: run on, modulo 2^32
//! ```
//!
//! Each side advances its own index and reads the other's. Entries are written before the index that
//! shows them is (release), and read after it was (acquire). Of the two indexes ours is kept here and
//! never read back; the other's is believed only if it has moved forward, and no farther than the ring
//! has entries. An index that has not is counted as nonsense and moves nothing, so that whatever
//! the memory says, no entry outside the ring is touched and none is seen twice.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::system::Mapping;
use super::umem::Umem;

/// Where the parts of a ring lie in its memory, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) producer: u64,
    pub(super) consumer: u64,
    pub(super) flags: u64,
    pub(super) entries: u64,
}

/// What keeps a ring's memory.
#[derive(Debug)]
pub(super) enum Memory {
    /// The socket's, which lives as long as this mapping of it; and then, dropped after it, the
    /// memory that the kernel uses for as long as the socket lives.
    Mapped(Mapping, #[allow(dead_code, reason = "kept, not used")] Umem),
    /// Nobody else's, for tests without a kernel.
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

/// Entries that lie in a ring as they are: any bytes are one.
///
/// # Safety
/// The implementor has no padding, no invalid bit patterns, and an alignment of at most 8.
pub(super) unsafe trait Entry: Copy {}

// SAFETY: an address is a number.
unsafe impl Entry for u64 {}

/// Both indexes and the entries, found in memory that this value keeps.
#[derive(Debug)]
struct Parts<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    /// One less than there are entries.
    mask: u32,
    _memory: Memory,
}

// SAFETY: the pointers lead into memory that this value keeps, wherever it moves to; what is shared
// with the kernel are atomics, and entries that belong to one side at a time.
unsafe impl<T: Entry + Send> Send for Parts<T> {}
// SAFETY: who shares it reads its atomics and changes nothing.
unsafe impl<T: Entry + Send> Sync for Parts<T> {}

impl<T: Entry> Parts<T> {
    /// `None` if a part would not lie in the memory.
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
        // SAFETY: inside the memory this value keeps, aligned (`find`), and atomic on both sides.
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

    /// The place of the entry with that index.
    #[inline]
    fn entry(&self, index: u32) -> NonNull<T> {
        // SAFETY: masked, the index is below the number of entries, which lie in the memory (`find`).
        unsafe { self.entries.add((index & self.mask) as usize) }
    }
}

/// The end at which entries are put in.
#[derive(Debug)]
pub(super) struct Producer<T> {
    parts: Parts<T>,
    own: u32,
    /// Our index as the kernel was shown it: nobody takes what is behind that.
    shown: u32,
    /// The kernel's index as it was last believed: in `own - count ..= shown`.
    other: u32,
    nonsense: u64,
}

impl<T: Entry> Producer<T> {
    /// An empty ring in fresh memory, with `count` entries. `None` if it does not fit there.
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

    /// Whether the kernel wants to be told of new entries.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.parts.flags() & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// Entries that the kernel has not taken yet, as it says now.
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

    /// The same, and nothing is learnt from it: what it cannot be is cut.
    pub(super) fn peek_used(&self) -> u32 {
        let consumer = self.parts.consumer().load(Ordering::Relaxed);
        self.own.wrapping_sub(consumer).min(self.count())
    }

    /// Puts in as many as there is room for, from the front, and shows them to the kernel; returns
    /// how many.
    #[inline]
    pub(super) fn push(&mut self, items: &[T]) -> usize {
        let put = items.iter().take_while(|item| self.stage(**item)).count();
        if put > 0 {
            self.show();
        }
        put
    }

    /// Puts one in that the kernel does not see before [`show`](Self::show): so what is made one by
    /// one is shown together, and needs no list of its own. False: there is no room.
    #[inline]
    pub(super) fn stage(&mut self, item: T) -> bool {
        if !self.has_room() {
            return false;
        }
        // SAFETY: the place is in the memory; it is ours, because the kernel has taken what was
        // there (fewer are in use than there are) and has not been shown the new entry.
        unsafe { self.parts.entry(self.own).write(item) };
        self.own = self.own.wrapping_add(1);
        true
    }

    /// Whether there is room for one. Asks the kernel only if there was none.
    #[inline]
    pub(super) fn has_room(&mut self) -> bool {
        self.known_used() < self.count() || self.has_room_by_now()
    }

    #[cold]
    fn has_room_by_now(&mut self) -> bool {
        self.used() < self.count()
    }

    /// Shows the kernel all that was put in.
    #[inline]
    pub(super) fn show(&mut self) {
        self.shown = self.own;
        self.parts.producer().store(self.own, Ordering::Release);
    }

    /// Entries that the kernel had not taken when it was last asked, and those put in since.
    #[inline]
    pub(super) fn known_used(&self) -> u32 {
        self.own.wrapping_sub(self.other)
    }
}

/// The end at which entries are taken out.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    parts: Parts<T>,
    own: u32,
    /// The kernel's index as it was last believed: in `own ..= own + count`.
    other: u32,
    nonsense: u64,
}

impl<T: Entry> Consumer<T> {
    /// An empty ring in fresh memory, with `count` entries. `None` if it does not fit there.
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

    /// Entries that wait to be taken out, as the kernel says now.
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

    /// The same, and nothing is learnt from it: what it cannot be is cut.
    pub(super) fn peek_waiting(&self) -> u32 {
        let producer = self.parts.producer().load(Ordering::Relaxed);
        producer.wrapping_sub(self.own).min(self.count())
    }

    /// Takes out as many as there are, into the front of `into`, and gives their places back to the
    /// kernel; returns how many.
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

    /// How many there are to be taken one by one, at most `limit`. Asks the kernel if fewer are known.
    #[inline]
    pub(super) fn ready(&mut self, limit: usize) -> usize {
        let mut waiting = self.other.wrapping_sub(self.own);
        if (waiting as usize) < limit {
            waiting = self.waiting();
        }
        limit.min(waiting as usize)
    }

    /// Takes one out of those that are known, and keeps its place until
    /// [`give_back`](Self::give_back): so a burst needs no list of its own.
    #[inline]
    pub(super) fn take(&mut self) -> Option<T> {
        if self.own == self.other {
            return None;
        }
        // SAFETY: the place is in the memory; any bytes are an entry (Entry), and the kernel has
        // shown it (acquire, `waiting`) and does not write there before it is given back.
        let entry = unsafe { self.parts.entry(self.own).read() };
        self.own = self.own.wrapping_add(1);
        Some(entry)
    }

    /// Gives the places of all that was taken back to the kernel.
    #[inline]
    pub(super) fn give_back(&mut self) {
        self.parts.consumer().store(self.own, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
