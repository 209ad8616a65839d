//! Selection of UDP ports by the table entry or queue of their flows.

use super::learn::Learner;
use super::toeplitz::{Tuple, entry, hash};

/// Known hash of a device.
#[derive(Clone, Debug)]
pub enum Hashing {
    /// Hash key.
    Key(Vec<u8>),
    /// Result of learning.
    Learnt(Learner),
}

impl Hashing {
    /// Entry of a datagram in a table of `entries` entries; `None` if unknown.
    pub fn entry_of(&self, datagram: Tuple, entries: usize) -> Option<u32> {
        match self {
            Self::Key(key) => {
                let entry = entry(hash(key, datagram)?, entries)?;
                u32::try_from(entry).ok()
            }
            Self::Learnt(learner) => learner.entry_of(datagram),
        }
    }

    /// Receive queue of a datagram under this table; `None` if unknown.
    pub fn queue_of(&self, datagram: Tuple, table: &[u32]) -> Option<u32> {
        match self {
            Self::Key(_) => {
                let entry = self.entry_of(datagram, table.len())?;
                table.get(entry as usize).copied()
            }
            Self::Learnt(learner) => learner.queue_of(datagram, table),
        }
    }
}

/// Ports of `range` whose flows all arrive on `queue`. `flows` returns the flows of a port: one per sender to a
/// receiver, and the replies if they matter.
pub fn on_queue<'a>(
    hashing: &'a Hashing,
    table: &'a [u32],
    queue: u32,
    range: impl Iterator<Item = u16> + 'a,
    flows: impl Fn(u16) -> Vec<Tuple> + 'a,
) -> impl Iterator<Item = u16> + 'a {
    range.filter(move |port| {
        let flows = flows(*port);
        let is_there = |flow: &Tuple| hashing.queue_of(*flow, table) == Some(queue);
        !flows.is_empty() && flows.iter().all(is_there)
    })
}

/// First of `candidates` with which no other flow shares an entry with a critical one. `flows` returns critical and
/// other flows of a candidate.
pub fn apart(
    hashing: &Hashing,
    entries: usize,
    mut candidates: impl Iterator<Item = u16>,
    flows: impl Fn(u16) -> (Vec<Tuple>, Vec<Tuple>),
) -> Option<u16> {
    candidates.find(|port| {
        let (critical, others) = flows(*port);
        let of = |flows: &[Tuple]| -> Option<Vec<u32>> {
            let entries = flows.iter().map(|flow| hashing.entry_of(*flow, entries));
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
    fn ports_are_found_with_which_a_flow_and_its_twin_reach_the_critical_queue() {
        let table: Vec<u32> = (0..128).map(|entry| entry % 4).collect();
        let hashing = Hashing::Key(KEY.to_vec());
        let queue = |tuple| hashing.queue_of(tuple, &table);
        let flows = |port| vec![flow(2, port), flow(2, port + 8)];
        let ports: Vec<u16> = on_queue(&hashing, &table, 3, 7_000..7_400, flows).collect();
        assert!(!ports.is_empty());
        for port in 7_000..7_400 {
            let both = flows(port).into_iter().all(|it| queue(it) == Some(3));
            assert_eq!(ports.contains(&port), both, "{port}");
        }
    }

    #[test]
    fn which_entries_two_peers_are_apart_no_port_changes() {
        // The hash is linear: the difference of two peers' flows does not depend on the port. So with several peers
        // only the table helps.
        let hashing = Hashing::Key(KEY.to_vec());
        let apart = |port| {
            let of = |peer| hashing.entry_of(flow(peer, port), 128).expect("an entry");
            of(2) ^ of(3)
        };
        assert!((7_000..7_400).all(|port| apart(port) == apart(7_000)));
    }

    #[test]
    fn a_port_is_found_that_keeps_critical_flows_apart_from_others() {
        let hashing = Hashing::Key(KEY.to_vec());
        // Of two entries each flow gets one, so about every second port works.
        let flows = |port| (vec![flow(2, port)], vec![flow(3, 9_000)]);
        let port = apart(&hashing, 2, 7_000..7_400, flows).expect("a port");
        let entry = |tuple| hashing.entry_of(tuple, 2);
        assert_ne!(entry(flow(2, port)), entry(flow(3, 9_000)));
        let same = |_| (vec![flow(2, 1)], vec![flow(2, 1)]);
        assert_eq!(apart(&hashing, 128, 7_000..7_400, same), None);
    }
}
