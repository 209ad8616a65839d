//! Slab: bounded table of records with stable indices, allocated in blocks.
//!
//! A record keeps its index until it is removed; then the index is reused. Nothing in the participant holds the index
//! of a removed record: the function that removes it also withdraws filed work and unlinks neighbours.
//!
//! Few participants reach the bounds of the tables of peers, so a table allocates a block of [`BLOCK`] records when the
//! last one is full. Records are added when an endpoint is created and by the discovery job, so no sample waits for
//! that. With [`Limits::fixed_memory`](crate::Limits) all blocks are allocated at the start. Blocks are freed with the
//! table.
//!
//! Handles of local endpoints and groups are such indices.
//!
//! # Lists of slots
//!
//! Doubly linked lists of slots, oldest first: the changes of one instance in a history or a cache.
//!
//! KEEP_LAST replaces the oldest change of an instance, so a history and a cache must find it at once. Each slot links
//! to the next younger and the next older one; the instance has both ends. A slot is added and removed in constant time
//! at any position: mostly it is the oldest, but users take what they select, and LIFESPAN expires any slot.

use alloc::{vec, vec::Vec};
use core::{
    marker::PhantomData,
    ops::{Index, IndexMut},
};

use crate::limits::{RESERVE_RATIO, UNRESERVED_ENTRIES};

/// Records per block: few enough not to waste memory at a small participant, enough that a thousand records take some
/// sixty allocations. A power of two, so that an index is split by its bits.
const BLOCK: usize = 16;

/// Error of a full table; the caller names and counts the refused record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

/// Index of a record in a [`Slab`]; each table has a separate type.
pub(crate) trait Id: Copy + Eq {
    fn at(slot: u16) -> Self;

    fn slot(self) -> u16;
}

/// Defines types that implement [`Id`].
macro_rules! ids {
    ($($(#[$doc:meta])* $vis:vis struct $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis struct $name(pub(crate) u16);

        impl Id for $name {
            #[inline]
            fn at(slot: u16) -> Self {
                Self(slot)
            }

            #[inline]
            fn slot(self) -> u16 {
                self.0
            }
        }
    )+};
}

ids! {
    /// Local writer. Valid from `create_writer` to `delete_writer`.
    pub struct WriterId;
    /// Local reader. Valid from `create_reader` to `delete_reader`.
    pub struct ReaderId;
    /// Group of local writers. Valid from `create_publisher` to `delete_publisher`.
    pub struct PublisherId;
    /// Group of local readers. Valid from `create_subscriber` to `delete_subscriber`.
    pub struct SubscriberId;
    /// Match of a local writer with a reader.
    pub(crate) struct ReaderProxyId;
    /// Match of a local reader with a writer.
    pub(crate) struct WriterProxyId;
    /// Remote participant.
    pub(crate) struct RemoteParticipantId;
    /// Remote endpoint.
    pub(crate) struct EndpointId;
    /// Piece of a stored announcement.
    pub(crate) struct PieceId;
}

#[derive(Debug)]
pub(crate) struct Slab<I, T> {
    /// Blocks are full except for the last, and never move.
    blocks: Vec<Vec<Option<T>>>,
    free: Vec<u16>,
    room: usize,
    /// Entries beyond the bound, reserved for the highest level in use.
    kept: usize,
    used: usize,
    end: usize,
    index: PhantomData<I>,
}

impl<I: Id, T> Slab<I, T> {
    /// Creates a table for at most `room` records (up to 65,535); `is_fixed` allocates all of them now.
    pub(crate) fn new(room: usize, is_fixed: bool) -> Self {
        let room = room.min(usize::from(u16::MAX));
        let mut table = Self {
            blocks: Vec::new(),
            free: Vec::new(),
            room,
            kept: 0,
            used: 0,
            end: 0,
            index: PhantomData,
        };
        if is_fixed {
            let blocks = (0..room.div_ceil(BLOCK)).map(|_| Vec::with_capacity(BLOCK));
            table.blocks = blocks.collect();
            table.free = Vec::with_capacity(room);
        }
        table
    }

    /// Creates a table with additional entries reserved for topics of the highest level in use.
    pub(crate) fn with_kept(room: usize, is_fixed: bool) -> Self {
        let kept = room.saturating_sub(UNRESERVED_ENTRIES) / RESERVE_RATIO;
        Self {
            kept,
            ..Self::new(room + kept, is_fixed)
        }
    }

    pub(crate) fn insert(&mut self, record: T) -> Result<I, Full> {
        if let Some(index) = self.free.pop().map(I::at) {
            if let Some(place) = self.place(index) {
                *place = Some(record);
            }
            self.used += 1;
            return Ok(index);
        }
        if self.end == self.room {
            return Err(Full);
        }
        let block = self.end / BLOCK;
        if block == self.blocks.len() {
            self.blocks.push(Vec::with_capacity(BLOCK));
            // Removals must not allocate.
            self.free.reserve(self.end + BLOCK);
        }
        self.blocks[block].push(Some(record));
        self.end += 1;
        self.used += 1;
        Ok(I::at((self.end - 1) as u16))
    }

    #[inline]
    fn place(&mut self, index: I) -> Option<&mut Option<T>> {
        let block = self.blocks.get_mut(usize::from(index.slot()) / BLOCK)?;
        block.get_mut(usize::from(index.slot()) % BLOCK)
    }

    pub(crate) fn remove(&mut self, index: I) -> Option<T> {
        let record = self.place(index)?.take()?;
        self.free.push(index.slot());
        self.used -= 1;
        Some(record)
    }

    #[inline]
    pub(crate) fn get(&self, index: I) -> Option<&T> {
        let block = self.blocks.get(usize::from(index.slot()) / BLOCK)?;
        block.get(usize::from(index.slot()) % BLOCK)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: I) -> Option<&mut T> {
        self.place(index)?.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        let records = self.blocks.iter().flatten().enumerate();
        records.filter_map(|(index, record)| Some((I::at(index as u16), record.as_ref()?)))
    }

    pub(crate) fn find(&self, is_so: impl Fn(&T) -> bool) -> Option<I> {
        let mut records = self.iter();
        records
            .find(|(_, record)| is_so(record))
            .map(|(index, _)| index)
    }

    /// Returns one past the highest index ever used.
    pub(crate) fn end(&self) -> u16 {
        self.end as u16
    }

    /// Iterates over all indexes ever used: with [`Self::get`] this visits all records while the table may change
    /// between visits.
    pub(crate) fn ids(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.end()).map(I::at)
    }

    /// Iterates over all indexes ever used from this one.
    pub(crate) fn ids_from(&self, from: I) -> impl Iterator<Item = I> + use<I, T> {
        (from.slot()..self.end()).map(I::at)
    }

    pub(crate) fn len(&self) -> usize {
        self.used
    }

    pub(crate) fn free(&self) -> usize {
        self.room - self.used
    }

    /// Returns the number of free entries for topics of the highest level in use, or of a lower one.
    pub(crate) fn free_for(&self, is_highest: bool) -> usize {
        let kept = if is_highest { 0 } else { self.kept };
        self.free().saturating_sub(kept)
    }

    /// Returns the capacity, with reserved entries.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    pub(crate) fn is_full(&self) -> bool {
        self.used == self.room
    }
}

/// Writer or reader of this participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalId {
    Writer(WriterId),
    Reader(ReaderId),
}

/// Panics if there is no record. Used for an index that a live record holds: a proxy's writer or reader, the proxies in
/// the list of an endpoint or a ring, the ends of a chain, and the entries of the indexes by GUID, prefix or entity.
/// All of these are removed before the record; only a failed creation removes a record that nothing holds yet. An index
/// from the user, a timer or the work queue, and an endpoint's participant, may have no record: use [`Slab::get`].
/// Nothing that a peer sends is an index.
impl<I: Id, T> Index<I> for Slab<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, index: I) -> &T {
        self.get(index).expect(NO_RECORD)
    }
}

impl<I: Id, T> IndexMut<I> for Slab<I, T> {
    #[inline]
    fn index_mut(&mut self, index: I) -> &mut T {
        self.get_mut(index).expect(NO_RECORD)
    }
}

/// Panic message of a broken invariant.
const NO_RECORD: &str = "a record outlives what refers to it";

impl WriterId {
    /// Returns the index for tables that the caller keeps per writer.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ReaderId {
    /// Returns the index for tables that the caller keeps per reader.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Marker of a missing link.
const NONE: u16 = u16::MAX;

/// Both ends and the length of an instance's chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chain {
    oldest: u16,
    youngest: u16,
    count: u16,
}

impl Chain {
    pub(crate) const EMPTY: Self = Self {
        oldest: NONE,
        youngest: NONE,
        count: 0,
    };

    pub(crate) fn count(&self) -> u16 {
        self.count
    }

    pub(crate) fn oldest(&self) -> Option<u16> {
        (self.count > 0).then_some(self.oldest)
    }

    pub(crate) fn youngest(&self) -> Option<u16> {
        (self.count > 0).then_some(self.youngest)
    }
}

#[derive(Debug, Clone, Copy)]
struct Link {
    younger: u16,
    /// Undefined for the oldest slot.
    older: u16,
}

/// Links between all slots of a cache.
#[derive(Debug)]
pub(crate) struct SlotLinks {
    links: Vec<Link>,
}

impl SlotLinks {
    pub(crate) fn new(slots: u16) -> Self {
        let unlinked = Link {
            younger: NONE,
            older: NONE,
        };
        Self {
            links: vec![unlinked; usize::from(slots)],
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, chain: &mut Chain, slot: u16) {
        let older = chain.youngest;
        self.links[usize::from(slot)] = Link {
            younger: NONE,
            older,
        };
        if chain.count == 0 {
            chain.oldest = slot;
        } else {
            self.links[usize::from(older)].younger = slot;
        }
        chain.youngest = slot;
        chain.count += 1;
    }

    pub(crate) fn younger(&self, slot: u16) -> Option<u16> {
        let younger = self.links[usize::from(slot)].younger;
        (younger != NONE).then_some(younger)
    }

    #[inline]
    pub(crate) fn pop_oldest(&mut self, chain: &mut Chain) -> Option<u16> {
        let slot = chain.oldest()?;
        chain.oldest = self.links[usize::from(slot)].younger;
        chain.count -= 1;
        Some(slot)
    }

    /// Removes a slot at any position of its chain.
    #[inline]
    pub(crate) fn remove(&mut self, chain: &mut Chain, slot: u16) {
        if chain.oldest() == Some(slot) {
            self.pop_oldest(chain);
        } else {
            self.remove_younger(chain, slot);
        }
    }

    fn remove_younger(&mut self, chain: &mut Chain, slot: u16) {
        let Link { younger, older } = self.links[usize::from(slot)];
        let before = &mut self.links[usize::from(older)];
        debug_assert_eq!(before.younger, slot, "a slot leaves the chain it is in");
        before.younger = younger;
        match younger {
            NONE => chain.youngest = older,
            younger => self.links[usize::from(younger)].older = older,
        }
        chain.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_refuses_and_a_freed_index_is_used_again() {
        let mut table = Slab::<WriterId, _>::new(2, false);
        let first = table.insert('a').unwrap();
        let second = table.insert('b').unwrap();
        assert_eq!(table.insert('c'), Err(Full));
        assert_eq!(table.remove(first), Some('a'));
        assert_eq!(table.insert('d'), Ok(first));
        assert_eq!(table.get(second), Some(&'b'));
        assert!(table.is_full());
    }

    #[test]
    fn records_keep_their_place_while_the_table_grows_by_blocks() {
        for is_fixed in [false, true] {
            let mut table = Slab::<WriterId, _>::new(3 * BLOCK + 1, is_fixed);
            let first = table.insert(0).unwrap();
            let at = core::ptr::from_ref(table.get(first).unwrap());
            for record in 1..=3 * BLOCK {
                assert_eq!(table.insert(record), Ok(WriterId(record as u16)));
            }
            assert_eq!(table.insert(0), Err(Full));
            assert_eq!(core::ptr::from_ref(table.get(first).unwrap()), at);
            assert_eq!(table.remove(WriterId(BLOCK as u16)), Some(BLOCK));
            assert!(
                table
                    .iter()
                    .map(|(id, _)| id.0)
                    .eq((0..).take(BLOCK).chain(BLOCK as u16 + 1..table.end()))
            );
            assert_eq!(table.blocks.len(), 4);
        }
    }

    #[test]
    fn slots_leave_a_chain_in_the_order_they_came() {
        let mut links = SlotLinks::new(4);
        let (mut a, mut b) = (Chain::EMPTY, Chain::EMPTY);
        links.push(&mut a, 3);
        links.push(&mut b, 0);
        links.push(&mut a, 1);
        assert_eq!(a.count(), 2);
        assert_eq!(links.pop_oldest(&mut a), Some(3));
        assert_eq!(links.pop_oldest(&mut a), Some(1));
        assert_eq!(links.pop_oldest(&mut a), None);
        links.push(&mut a, 3);
        assert_eq!(a.oldest(), Some(3));
        assert_eq!(b.oldest(), Some(0));
    }

    #[test]
    fn a_slot_leaves_from_anywhere_and_the_others_keep_their_order() {
        for gone in 0..4 {
            let mut links = SlotLinks::new(5);
            let mut chain = Chain::EMPTY;
            (0..4).for_each(|slot| links.push(&mut chain, slot));
            links.remove(&mut chain, gone);
            links.push(&mut chain, 4);
            let left: Vec<u16> = core::iter::from_fn(|| links.pop_oldest(&mut chain)).collect();
            let expected: Vec<u16> = (0..5).filter(|&slot| slot != gone).collect();
            assert_eq!(left, expected);
        }
    }

    #[test]
    fn slots_leave_in_any_order_and_come_again() {
        let mut links = SlotLinks::new(6);
        let mut chain = Chain::EMPTY;
        (0..6).for_each(|slot| links.push(&mut chain, slot));
        for gone in [0, 3, 2, 5, 1] {
            links.remove(&mut chain, gone);
        }
        assert_eq!((chain.oldest(), chain.youngest()), (Some(4), Some(4)));
        for again in [5, 0, 3] {
            links.push(&mut chain, again);
        }
        links.remove(&mut chain, 4);
        links.remove(&mut chain, 0);
        let left: Vec<u16> = core::iter::from_fn(|| links.pop_oldest(&mut chain)).collect();
        assert_eq!(left, [5, 3]);
        assert_eq!((chain.count(), chain.youngest()), (0, None));
    }
}
