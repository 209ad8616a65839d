//! Hash tables for records of a participant.
//!
//! The hash is keyed with a random seed, so that peers cannot choose names that collide.
//!
//! # Fingerprints
//!
//! FNV-1a fingerprints are equal on every machine. They serve for names that several sides derive independently, and
//! for values that differ between participants without a random source. They are not secret, and peers can choose
//! collisions; hash tables use the keyed hash.

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};

/// Hash map with a seeded hash.
pub(crate) type Index<K, V> = HashMap<K, V, FixedState>;

/// Creates an index that never allocates again while it has at most `entries` entries.
pub(crate) fn index<K, V>(entries: usize, seed: u64) -> Index<K, V> {
    HashMap::with_capacity_and_hasher(capacity(entries), FixedState::with_seed(seed))
}

/// Returns the capacity for `entries` entries that are added and removed without further allocation.
///
/// A removal can leave a tombstone, and tombstones use up capacity. When no capacity is left, a table that is at most
/// half full is rehashed in place; a fuller one is reallocated. So the capacity is twice the entries, where the
/// entry that is being added counts too.
fn capacity(entries: usize) -> usize {
    2 * (entries + 1)
}

/// Number of parts of a [`PeerIndex`]. With ten thousand entries, a part that grows moves about 160 in some
/// microseconds.
const PARTS: usize = 64;

/// Index of a table of peers. It grows part by part as the table does.
#[derive(Debug)]
pub(crate) struct PeerIndex<K, V> {
    parts: Vec<HashTable<(K, V)>>,
    state: FixedState,
}

impl<K: Copy + Eq + Hash, V: Copy> PeerIndex<K, V> {
    /// Creates an index for at most `entries` entries; `is_fixed` allocates all of them now.
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

    /// Returns the hash of a key, and its part, selected by bits of the hash that the part's table does not use.
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

/// FNV-1a state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    /// Fingerprint of no bytes.
    pub(crate) const NEW: Self = Self(0xcbf2_9ce4_8422_2325);

    pub(crate) fn with(self, bytes: &[u8]) -> Self {
        let step = |number: u64, &byte: &u8| {
            let mixed = number ^ u64::from(byte);
            mixed.wrapping_mul(0x0100_0000_01b3)
        };
        Self(bytes.iter().fold(self.0, step))
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// Returns a 16-bit fraction of the fingerprint (0 to 65,535), evenly distributed even for similar inputs.
    pub(crate) fn part(self) -> u32 {
        // In FNV-1a the last bytes hardly change the highest bits, so all bits are mixed first.
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 48) as u32
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
                    // Removes all entries now and then, otherwise the oldest.
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

    #[test]
    fn it_is_the_number_that_others_come_to() {
        // Test vectors published with the algorithm.
        assert_eq!(Fingerprint::NEW.with(b"").number(), 0xcbf2_9ce4_8422_2325);
        assert_eq!(
            Fingerprint::NEW.with(b"foobar").number(),
            0x8594_4171_f739_67e8
        );
    }

    #[test]
    fn parts_of_numbers_in_a_row_lie_all_over() {
        let mut used = [0_u32; 16];
        for number in 0..1_600_u32 {
            let part = Fingerprint::NEW.with(&number.to_be_bytes()).part();
            used[(part >> 12) as usize] += 1;
        }
        assert!(
            used.iter().all(|count| (50..200).contains(count)),
            "{used:?}"
        );
    }
}
