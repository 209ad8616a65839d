//! Hash tables that find a record in constant time.
//!
//! The hash is keyed with a random seed, so that a peer cannot choose names that collide.

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};

/// From a key to what belongs to it.
pub(crate) type Index<K, V> = HashMap<K, V, FixedState>;

/// An index that never takes memory again as long as it holds at most `entries`.
pub(crate) fn index<K, V>(entries: usize, seed: u64) -> Index<K, V> {
    HashMap::with_capacity_and_hasher(capacity(entries), FixedState::with_seed(seed))
}

/// What so many entries need to come and go for ever without further memory.
///
/// A removal can leave a mark where the entry was, and marks use up room. When they have used up
/// all, the table clears them away where it stands if it is at most half full, and moves to new
/// memory if it is fuller: so it gets twice the room, and one more, since it counts the newcomer.
fn capacity(entries: usize) -> usize {
    2 * (entries + 1)
}

/// Parts of a [`PeerIndex`]. One of ten thousand entries moves some 160 of them when a part grows, in some microseconds.
const PARTS: usize = 64;

/// An index of a table of peers, which takes memory as the table does: part by part, each when it is full.
#[derive(Debug)]
pub(crate) struct PeerIndex<K, V> {
    parts: Vec<HashTable<(K, V)>>,
    state: FixedState,
}

impl<K: Copy + Eq + Hash, V: Copy> PeerIndex<K, V> {
    /// An index for at most `entries`; with `is_fixed` it takes the memory for all of them now.
    pub(crate) fn new(entries: usize, is_fixed: bool, seed: u64) -> Self {
        let parts = match is_fixed {
            true => Vec::from_iter([HashTable::with_capacity(capacity(entries))]),
            false => (0..PARTS).map(|_| HashTable::new()).collect(),
        };
        Self {
            parts,
            state: FixedState::with_seed(seed),
        }
    }

    /// The hash of a key, and its part: by bits that a part does not look at.
    #[inline]
    fn place(&self, key: &K) -> (u64, usize) {
        let hash = self.state.hash_one(key);
        (hash, (hash >> 40) as usize % self.parts.len())
    }

    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let (hash, part) = self.place(key);
        let found = self.parts[part].find(hash, |(other, _)| other == key);
        found.map(|(_, value)| value)
    }

    pub(crate) fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Enters a value; returns the former one.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (hash, part) = self.place(&key);
        let part = &mut self.parts[part];
        if let Some((_, there)) = part.find_mut(hash, |(other, _)| *other == key) {
            return Some(core::mem::replace(there, value));
        }
        let state = &self.state;
        part.insert_unique(hash, (key, value), |(key, _)| state.hash_one(key));
        None
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let (hash, part) = self.place(key);
        let found = self.parts[part].find_entry(hash, |(other, _)| other == key);
        found.ok().map(|entry| entry.remove().0.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_come_and_go_for_ever_need_no_more_room() {
        for entries in 1..40usize {
            let mut table = index::<usize, ()>(entries, 1);
            let capacity = table.capacity();
            for key in 0..20_000 {
                table.insert(key, ());
                if table.len() == entries {
                    // Now and then all, else the oldest.
                    let keep = if key % 1_000 == 0 {
                        key
                    } else {
                        key + 1 - entries
                    };
                    table.retain(|&there, ()| there > keep);
                }
                assert!(table.capacity() <= capacity);
            }
            assert_eq!(
                table.allocation_size(),
                index::<usize, ()>(entries, 1).allocation_size()
            );
        }
    }

    #[test]
    fn entries_are_found_replaced_and_removed_in_whichever_part_they_lie() {
        for is_fixed in [false, true] {
            let mut index = PeerIndex::new(10_000, is_fixed, 1);
            let allocated = |index: &PeerIndex<u32, u32>| -> usize {
                index.parts.iter().map(HashTable::allocation_size).sum()
            };
            let before = allocated(&index);
            for key in 0..10_000u32 {
                assert_eq!(index.insert(key, key), None);
            }
            assert_eq!(is_fixed, allocated(&index) == before);
            for key in 0..10_000 {
                assert_eq!(index.insert(key, key + 1), Some(key));
                assert_eq!(index.get(&key), Some(&(key + 1)));
                assert_eq!(index.remove(&key), Some(key + 1));
                assert_eq!(index.remove(&key), None);
            }
            assert!(!index.contains_key(&0));
        }
    }
}
