//! A table of records with stable indices and a bound.
//!
//! Its room is taken once; a removed record's index is used again. Nothing in the engine holds
//! an index beyond the removal of its record, because removal goes through the one function
//! that also withdraws filed work and unlinks neighbours.

use alloc::vec::Vec;

/// The table is full; the caller names and counts what did not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

#[derive(Debug)]
pub(crate) struct Table<T> {
    records: Vec<Option<T>>,
    free: Vec<u16>,
    room: usize,
    used: usize,
}

impl<T> Table<T> {
    /// A table for at most `room` records, at most 65,535.
    pub(crate) fn new(room: usize) -> Self {
        let room = room.min(usize::from(u16::MAX));
        Self {
            records: Vec::with_capacity(room),
            free: Vec::with_capacity(room),
            room,
            used: 0,
        }
    }

    pub(crate) fn insert(&mut self, record: T) -> Result<u16, Full> {
        if let Some(index) = self.free.pop() {
            self.records[usize::from(index)] = Some(record);
            self.used += 1;
            return Ok(index);
        }
        if self.records.len() == self.room {
            return Err(Full);
        }
        self.records.push(Some(record));
        self.used += 1;
        Ok((self.records.len() - 1) as u16)
    }

    pub(crate) fn remove(&mut self, index: u16) -> Option<T> {
        let record = self.records.get_mut(usize::from(index))?.take()?;
        self.free.push(index);
        self.used -= 1;
        Some(record)
    }

    #[inline]
    pub(crate) fn get(&self, index: u16) -> Option<&T> {
        self.records.get(usize::from(index))?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u16) -> Option<&mut T> {
        self.records.get_mut(usize::from(index))?.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, &T)> {
        self.records
            .iter()
            .enumerate()
            .filter_map(|(index, record)| record.as_ref().map(|record| (index as u16, record)))
    }

    /// The first record that is so.
    pub(crate) fn find(&self, is_so: impl Fn(&T) -> bool) -> Option<u16> {
        let mut records = self.iter();
        records
            .find(|(_, record)| is_so(record))
            .map(|(index, _)| index)
    }

    /// One past the highest index ever used: `0..end()` with [`Self::get`] visits all records
    /// while the table may change between visits.
    pub(crate) fn end(&self) -> u16 {
        self.records.len() as u16
    }

    /// Records there is room for.
    pub(crate) fn free(&self) -> usize {
        self.room - self.used
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
        let mut table = Table::new(2);
        let first = table.insert('a').unwrap();
        let second = table.insert('b').unwrap();
        assert_eq!(table.insert('c'), Err(Full));
        assert_eq!(table.remove(first), Some('a'));
        assert_eq!(table.insert('d'), Ok(first));
        assert_eq!(table.get(second), Some(&'b'));
        assert!(table.is_full());
    }
}
