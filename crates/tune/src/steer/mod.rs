//! Prediction of a device's receive queues: computed from the hash key, or learnt from observed queues if the key is
//! unreadable. This module sends nothing and accesses no device.
//!
//! It serves NICs without flow rules. Each level has separate UDP ports, so a level gets a separate queue by an RSS
//! table in which the entries of its ports map there ([`reserve`]).

mod learner;
mod toeplitz;

pub use self::learner::{Contradiction, Learner, Round, probed_ports, rounds};
pub use self::toeplitz::{KEY_BYTES, Tuple, apart, entry, entry_of, hash};

/// Table in which only `critical_entries` map to the critical queue. Other entries of that queue are distributed over
/// the other queues; the rest is unchanged. `None` if there is no other queue.
pub fn reserve(
    table: &[u32],
    critical_queue: u32,
    critical_entries: &[u32],
    queues: u32,
) -> Option<Vec<u32>> {
    let others: Vec<u32> = (0..queues)
        .filter(|queue| *queue != critical_queue)
        .collect();
    if others.is_empty() {
        return None;
    }
    let queue = |(entry, queue): (usize, &u32)| {
        let is_critical = u32::try_from(entry).is_ok_and(|it| critical_entries.contains(&it));
        match (is_critical, *queue == critical_queue) {
            (true, _) => critical_queue,
            (false, true) => others[entry % others.len()],
            (false, false) => *queue,
        }
    };
    Some(table.iter().enumerate().map(queue).collect())
}

/// Table with an equal block per queue, as `ethtool -X DEVICE weight` makes it for weights of 1 (0 for queues not
/// listed), so that it can be set without isolane.
pub fn shared(entries: usize, queues: &[u32]) -> Vec<u32> {
    let count = queues.len().max(1);
    let share = |entry: usize| {
        // First queue whose cumulative share exceeds the entry.
        let mut all = queues.iter().zip(1..);
        let found = all.find(|(_, number)| entry < entries * number / count);
        found.map_or(0, |(queue, _)| *queue)
    };
    (0..entries).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_that_share_a_table_have_blocks_of_it() {
        assert_eq!(shared(8, &[0, 1, 3]), [0, 0, 1, 1, 1, 3, 3, 3]);
        assert_eq!(shared(4, &[2]), [2; 4]);
        let table = shared(128, &[0, 1, 2, 4, 5, 6, 7]);
        for queue in [0, 1, 2, 4, 5, 6, 7] {
            let count = table.iter().filter(|it| **it == queue).count();
            assert!((18..=19).contains(&count), "queue {queue}: {count}");
        }
    }

    #[test]
    fn only_critical_entries_lead_to_the_critical_queue() {
        let table: Vec<u32> = (0..128).map(|entry| entry % 4).collect();
        let reserved = reserve(&table, 3, &[5, 77], 4).expect("other queues");
        let lead: Vec<usize> = (0..128).filter(|entry| reserved[*entry] == 3).collect();
        assert_eq!(lead, [5, 77]);
        // The rest is distributed evenly: 126 entries over three queues.
        for queue in 0..3 {
            let count = reserved.iter().filter(|it| **it == queue).count();
            assert!((40..=44).contains(&count), "queue {queue}: {count}");
        }
        assert_eq!(reserve(&reserved, 3, &[5, 77], 4), Some(reserved));
    }

    #[test]
    fn with_one_queue_there_is_nothing_to_keep() {
        assert_eq!(reserve(&[0; 4], 0, &[1], 1), None);
    }
}
