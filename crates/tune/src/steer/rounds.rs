//! What to ask a device whose hash is learnt: tables, and datagrams while each is set.
//!
//! Because neighbouring bits of the hash are sums of neighbouring bits of the key, it is enough to
//! change each of the 32 bits of the ports once while the lowest bit is looked at, and one of them for
//! each further bit: 45 datagrams for a table of 128 entries and two queues.

use std::net::Ipv4Addr;

use super::learn::Learner;
use super::toeplitz::Tuple;
use crate::limits::{PROBE_DESTINATION_PORT, PROBE_SOURCE_PORT};

/// A table to set, and the datagrams to send while it is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// The table.
    pub table: Vec<u32>,
    /// The datagrams. Whether somebody listens at their ports does not matter: they are counted by
    /// queue. Each may be replaced by one with other ports, as long as no two are alike.
    pub datagrams: Vec<Tuple>,
}

/// What to send so that a [`Learner`] can tell the entry of every datagram between these pairs of
/// addresses (source, destination), by its ports: at least two different queues are needed to tell
/// bits by. Nothing, where there are fewer, no pairs, or no such table.
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

/// The ports that datagrams of [`rounds`] come from, and those they go to.
pub fn probed_ports() -> [Vec<u16>; 2] {
    [PROBE_SOURCE_PORT, PROBE_DESTINATION_PORT].map(|port| {
        let changed = (0..u16::BITS).map(move |bit| port ^ (1 << bit));
        std::iter::once(port).chain(changed).collect()
    })
}

/// One datagram of each pair; of the first pair also those with one bit of the ports changed: with
/// each of them, or with the first only.
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
