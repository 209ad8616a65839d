//! Tables and datagrams with which a hash is learnt.
//!
//! Adjacent hash bits are sums of adjacent key bits. So each of the 32 port bits must be flipped once for the lowest
//! hash bit, and one of them for each further bit: 45 datagrams for a table of 128 entries and two queues.

use std::net::Ipv4Addr;

use super::learn::Learner;
use super::toeplitz::Tuple;
use crate::limits::{PROBE_DESTINATION_PORT, PROBE_SOURCE_PORT};

/// Table to set, and datagrams to send under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// RSS table.
    pub table: Vec<u32>,
    /// Datagrams to send. No program need listen at their ports, since they are counted by queue. Each may be replaced
    /// by one with other ports, as long as all are different.
    pub datagrams: Vec<Tuple>,
}

/// Rounds with which a [`Learner`] can determine the entry of every datagram between these pairs of addresses (source,
/// destination), by its ports. Empty without pairs, for an unsuitable table, or with fewer than two queues, which
/// cannot distinguish a bit.
pub fn rounds(entries: usize, queues: &[u32], pairs: &[(Ipv4Addr, Ipv4Addr)]) -> Vec<Round> {
    let is_possible = Learner::new(entries).is_some() && entries > 1;
    if !is_possible || queues.len() < 2 || pairs.is_empty() {
        return Vec::new();
    }
    let at_once = queues.len().ilog2();
    let bits = entries.ilog2();
    let firsts = (0..bits).step_by(at_once as usize);
    firsts
        .map(|first| Round {
            table: (0..entries)
                .map(|entry| queues[entry >> first & ((1 << at_once) - 1)])
                .collect(),
            datagrams: datagrams(pairs, first == 0),
        })
        .collect()
}

/// Source and destination ports of the datagrams of [`rounds`].
pub fn probed_ports() -> [Vec<u16>; 2] {
    [PROBE_SOURCE_PORT, PROBE_DESTINATION_PORT].map(|port| {
        let changed = (0..u16::BITS).map(move |bit| port ^ (1 << bit));
        std::iter::once(port).chain(changed).collect()
    })
}

/// Datagrams of a round: one per pair; for the first pair, also those with one port bit flipped, each of the 32 or one
/// only.
pub(super) fn datagrams(pairs: &[(Ipv4Addr, Ipv4Addr)], all_bits: bool) -> Vec<Tuple> {
    let of = |(source, destination): &(Ipv4Addr, Ipv4Addr), ports: u32| Tuple {
        source: *source,
        destination: *destination,
        source_port: PROBE_SOURCE_PORT ^ (ports >> 16) as u16,
        destination_port: PROBE_DESTINATION_PORT ^ (ports & 0xffff) as u16,
    };
    let plain = pairs.iter().map(|pair| of(pair, 0));
    let changes = if all_bits { 0..32 } else { 31..32 };
    let changed = pairs.first().into_iter().flat_map(move |pair| {
        let changes = changes.clone();
        changes.map(move |bit| of(pair, 1 << bit))
    });
    plain.chain(changed).collect()
}
