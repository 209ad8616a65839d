//! Hash tables that find a record in constant time and take their room once.
//!
//! The hash is keyed with a random seed, so that a peer cannot choose names that collide.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// From a key to what belongs to it.
pub(crate) type Index<K, V> = HashMap<K, V, FixedState>;

/// An index that never takes memory again as long as it holds at most `entries`.
///
/// A removal can leave a mark where the entry was, and marks use up room. When they have used up
/// all, the table clears them away where it stands if it is at most half full, and moves to new
/// memory if it is fuller: so it gets twice the room, and one more, since it counts the newcomer.
pub(crate) fn index<K, V>(entries: usize, seed: u64) -> Index<K, V> {
    HashMap::with_capacity_and_hasher(2 * (entries + 1), FixedState::with_seed(seed))
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
}
