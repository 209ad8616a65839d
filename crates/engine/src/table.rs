//! Bounded table of records with stable indices, allocated in blocks.
//!
//! A record keeps its index until it is removed; then the index is reused. Nothing in the engine holds an index longer,
//! because a record is removed by one function that also withdraws filed work and unlinks neighbours.
//!
//! Few participants reach the bounds of the tables of peers, so a table allocates a block of [`BLOCK`] records when the
//! last one is full. Records are added when an endpoint is created and by the discovery job, so no sample waits for
//! that. With [`Limits::fixed_memory`](crate::Limits) all blocks are allocated at the start. Blocks are freed with the
//! table.

use alloc::vec::Vec;

use crate::limits::{COMMON_PLACES, KEPT_PART};

/// Records per block: few enough not to waste memory at a small participant, enough that a thousand records take some
/// sixty allocations. A power of two, so that an index is split by its bits.
const BLOCK: usize = 16;

/// Error of a full table; the caller names and counts the refused record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

#[derive(Debug)]
pub(crate) struct Table<T> {
    /// Blocks are full except for the last, and never move.
    blocks: Vec<Vec<Option<T>>>,
    free: Vec<u16>,
    room: usize,
    /// Entries beyond the bound, reserved for the highest level in use.
    kept: usize,
    used: usize,
    end: usize,
}

impl<T> Table<T> {
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
        let kept = room.saturating_sub(COMMON_PLACES) / KEPT_PART;
        Self {
            kept,
            ..Self::new(room + kept, is_fixed)
        }
    }

    pub(crate) fn insert(&mut self, record: T) -> Result<u16, Full> {
        if let Some(index) = self.free.pop() {
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
        Ok((self.end - 1) as u16)
    }

    #[inline]
    fn place(&mut self, index: u16) -> Option<&mut Option<T>> {
        let block = self.blocks.get_mut(usize::from(index) / BLOCK)?;
        block.get_mut(usize::from(index) % BLOCK)
    }

    pub(crate) fn remove(&mut self, index: u16) -> Option<T> {
        let record = self.place(index)?.take()?;
        self.free.push(index);
        self.used -= 1;
        Some(record)
    }

    #[inline]
    pub(crate) fn get(&self, index: u16) -> Option<&T> {
        let block = self.blocks.get(usize::from(index) / BLOCK)?;
        block.get(usize::from(index) % BLOCK)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u16) -> Option<&mut T> {
        self.place(index)?.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, &T)> {
        let records = self.blocks.iter().flatten().enumerate();
        records.filter_map(|(index, record)| record.as_ref().map(|record| (index as u16, record)))
    }

    pub(crate) fn find(&self, is_so: impl Fn(&T) -> bool) -> Option<u16> {
        let mut records = self.iter();
        records
            .find(|(_, record)| is_so(record))
            .map(|(index, _)| index)
    }

    /// Returns one past the highest index ever used: `0..end()` with [`Self::get`] visits all records while the table
    /// may change between visits.
    pub(crate) fn end(&self) -> u16 {
        self.end as u16
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_refuses_and_a_freed_index_is_used_again() {
        let mut table = Table::new(2, false);
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
            let mut table = Table::new(3 * BLOCK + 1, is_fixed);
            let first = table.insert(0).unwrap();
            let at = core::ptr::from_ref(table.get(first).unwrap());
            for record in 1..=3 * BLOCK {
                assert_eq!(table.insert(record), Ok(record as u16));
            }
            assert_eq!(table.insert(0), Err(Full));
            assert_eq!(core::ptr::from_ref(table.get(first).unwrap()), at);
            assert_eq!(table.remove(BLOCK as u16), Some(BLOCK));
            assert!(
                table
                    .iter()
                    .map(|(index, _)| index)
                    .eq((0..).take(BLOCK).chain(BLOCK as u16 + 1..table.end()))
            );
            assert_eq!(table.blocks.len(), 4);
        }
    }
}
