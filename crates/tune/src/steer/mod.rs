//! Prediction of a device's receive queues: computed from the hash key, or learnt from observed queues if the key is
//! unreadable. This module sends nothing and accesses no device.
//!
//! The hash is the Toeplitz hash of receive-side scaling (RSS), over addresses and ports, as defined in Microsoft's
//! "RSS hashing functions" and implemented by devices. Each level has UDP ports of its own. So an RSS table can give a
//! level its own queue: the entries of the level's ports map to it ([`reserve`]). This serves devices without flow
//! rules.

mod learner;

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

pub use self::learner::{Contradiction, Learner, Round, probed_ports, rounds};

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

/// Table with an equal block per queue. `ethtool -X DEVICE weight` makes the same table, with weight 1 for each listed
/// queue and 0 for others, so that it can be set without isolane.
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

/// Addresses and ports of a UDP datagram over IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuple {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

const INPUT_BITS: u32 = 96;
#[cfg(test)]
const HASH_BITS: u32 = 32;
/// Bytes of the key used for IPv4 tuples: 96 input bits plus 32 hash bits.
pub const KEY_BYTES: usize = 16;

impl Tuple {
    /// Hash input: source address, destination address, source port, destination port; the first bit is the highest of
    /// 96.
    fn bits(self) -> u128 {
        u128::from(u32::from(self.source)) << 64
            | u128::from(u32::from(self.destination)) << 32
            | u128::from(self.source_port) << 16
            | u128::from(self.destination_port)
    }

    /// Tuple of the reply.
    #[must_use]
    pub fn reply(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
        }
    }
}

/// Hash of a tuple; `None` if the key is shorter than [`KEY_BYTES`].
///
/// Each set input bit XORs in the 32 key bits that start at its position. So the hash is linear, which the learner
/// uses.
pub fn hash(key: &[u8], tuple: Tuple) -> Option<u32> {
    let key = u128::from_be_bytes(key.get(..KEY_BYTES)?.try_into().ok()?);
    let input = tuple.bits();
    let window = |place: u32| (key >> (INPUT_BITS - place)) as u32;
    let is_set = |place: &u32| input >> (INPUT_BITS - 1 - place) & 1 == 1;
    let set = (0..INPUT_BITS).filter(is_set);
    Some(set.fold(0, |hash, place| hash ^ window(place)))
}

/// Table entry of a hash: its lowest bits, since the length of tables is a power of two. `None` for any other length.
pub fn entry(hash: u32, entries: usize) -> Option<usize> {
    let mask = entries.is_power_of_two().then(|| entries - 1)?;
    Some(hash as usize & mask)
}

/// Mask of those of the 128 key bits whose XOR is this hash bit (0 is the lowest).
fn key_bits(tuple: Tuple, hash_bit: u32) -> u128 {
    // Input bit j (0 the first) adds key bit j + 31 - b to hash bit b; key bit 0 is the highest of 128.
    tuple.bits() << (hash_bit + 1)
}

/// Entry that a datagram selects in a table of `entries` entries; `None` for a short key, or a length that is not a
/// power of two.
pub fn entry_of(key: &[u8], datagram: Tuple, entries: usize) -> Option<u32> {
    u32::try_from(entry(hash(key, datagram)?, entries)?).ok()
}

/// First of `candidates` for which no other flow has the table entry of a critical flow. `flows` returns the critical
/// and the other flows of a candidate.
pub fn apart(
    key: &[u8],
    entries: usize,
    mut candidates: impl Iterator<Item = u16>,
    flows: impl Fn(u16) -> (Vec<Tuple>, Vec<Tuple>),
) -> Option<u16> {
    candidates.find(|port| {
        let (critical, others) = flows(*port);
        let of = |flows: &[Tuple]| -> Option<Vec<u32>> {
            let entries = flows.iter().map(|flow| entry_of(key, *flow, entries));
            entries.collect()
        };
        match (of(&critical), of(&others)) {
            (Some(critical), Some(others)) => !critical.iter().any(|it| others.contains(it)),
            _ => false,
        }
    })
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

#[cfg(test)]
mod toeplitz_tests {
    use super::*;

    /// Key and tuples of the specification ("Verifying the RSS hash calculation"): destination, source, hash with
    /// ports.
    const KEY: [u8; 40] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
        0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ];
    /// Destination, its port, source, its port, hash.
    type Vector = ([u8; 4], u16, [u8; 4], u16, u32);
    const VECTORS: [Vector; 5] = [
        (
            [161, 142, 100, 80],
            1766,
            [66, 9, 149, 187],
            2794,
            0x51cc_c178,
        ),
        (
            [65, 69, 140, 83],
            4739,
            [199, 92, 111, 2],
            14230,
            0xc626_b0ea,
        ),
        (
            [12, 22, 207, 184],
            38024,
            [24, 19, 198, 95],
            12898,
            0x5c2b_394a,
        ),
        (
            [209, 142, 163, 6],
            2217,
            [38, 27, 205, 30],
            48228,
            0xafc7_327f,
        ),
        (
            [202, 188, 127, 2],
            1303,
            [153, 39, 163, 191],
            44251,
            0x10e8_28a2,
        ),
    ];

    fn tuples() -> impl Iterator<Item = (Tuple, u32)> {
        VECTORS
            .into_iter()
            .map(|(to, to_port, from, from_port, hash)| {
                let tuple = Tuple {
                    source: from.into(),
                    destination: to.into(),
                    source_port: from_port,
                    destination_port: to_port,
                };
                (tuple, hash)
            })
    }

    #[test]
    fn the_hash_is_that_of_the_specification() {
        for (tuple, expected) in tuples() {
            assert_eq!(hash(&KEY, tuple), Some(expected), "{tuple:?}");
        }
    }

    #[test]
    fn each_bit_of_the_hash_is_a_sum_of_bits_of_the_key() {
        let key = u128::from_be_bytes(KEY[..16].try_into().expect("16 bytes"));
        for (tuple, expected) in tuples() {
            for bit in 0..HASH_BITS {
                let sum = (key_bits(tuple, bit) & key).count_ones() & 1;
                assert_eq!(sum, expected >> bit & 1, "{tuple:?}, bit {bit}");
            }
        }
    }

    #[test]
    fn a_key_that_is_too_short_has_no_hash_and_an_odd_table_no_entry() {
        let (tuple, _) = tuples().next().expect("a vector");
        assert_eq!(hash(&KEY[..15], tuple), None);
        assert_eq!(entry(0x1ff, 128), Some(127));
        assert_eq!(entry(7, 0), None);
        assert_eq!(entry(7, 3), None);
    }
}

#[cfg(test)]
mod ports_tests {
    use std::net::Ipv4Addr;

    use super::*;

    const KEY: [u8; 16] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
        0xb0,
    ];

    fn flow(peer: u8, port: u16) -> Tuple {
        Tuple {
            source: Ipv4Addr::new(10, 0, 0, peer),
            destination: Ipv4Addr::new(10, 0, 0, 1),
            source_port: 7_007,
            destination_port: port,
        }
    }

    #[test]
    fn which_entries_two_peers_are_apart_no_port_changes() {
        // The hash is linear: the difference of two peers' flows does not depend on the port. So with several peers
        // only the table helps.
        let apart = |port| {
            let of = |peer| entry_of(&KEY, flow(peer, port), 128).expect("an entry");
            of(2) ^ of(3)
        };
        assert!((7_000..7_400).all(|port| apart(port) == apart(7_000)));
    }

    #[test]
    fn a_port_is_found_that_keeps_critical_flows_apart_from_others() {
        // Of two entries each flow gets one, so about every second port works.
        let flows = |port| (vec![flow(2, port)], vec![flow(3, 9_000)]);
        let port = apart(&KEY, 2, 7_000..7_400, flows).expect("a port");
        let entry = |tuple| entry_of(&KEY, tuple, 2);
        assert_ne!(entry(flow(2, port)), entry(flow(3, 9_000)));
        let same = |_| (vec![flow(2, 1)], vec![flow(2, 1)]);
        assert_eq!(apart(&KEY, 128, 7_000..7_400, same), None);
    }
}
