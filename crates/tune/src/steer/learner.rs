//! Learning of a hash with an unreadable key, from the receive queues of datagrams.
//!
//! The hash is linear: each hash bit is the XOR of those key bits that the datagram selects. The queue of a datagram
//! reveals the hash bits in which all table entries of that queue agree. Each revealed bit is a linear equation over
//! the key bits. The learner knows the hash of every datagram whose equations are sums of observed equations. It need
//! not determine the key itself.
//!
//! [`rounds`](super::rounds()) selects the datagrams, so that few of them suffice.

use std::net::Ipv4Addr;
use thiserror::Error;

use super::{Tuple, key_bits};
use crate::limits::{MAX_TABLE_ENTRIES, PROBE_DESTINATION_PORT, PROBE_SOURCE_PORT};

/// Knowledge about a hash so far.
#[derive(Clone, Debug)]
pub struct Learner {
    /// Number of hash bits that select an entry.
    bits: u32,
    /// Equations, by their leading unknown: mask of the unknown key bits, and their XOR.
    known: Vec<Option<(u128, bool)>>,
}

/// Observation that contradicts the assumed hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Contradiction {
    /// A datagram arrived on a queue that is not in the table: something else steers too.
    #[error("a datagram arrived on queue {queue}, which is not in the RSS table")]
    ForeignQueue {
        /// Receive queue.
        queue: u32,
    },
    /// A datagram arrived on another queue than earlier ones imply: the hash is another function or has other inputs,
    /// or other programs' frames were counted.
    #[error(
        "the datagram from {}:{} to {}:{} arrived on another queue than earlier ones imply: the device does not use a \
         Toeplitz hash of these fields, or frames of other programs were counted",
        datagram.source, datagram.source_port, datagram.destination, datagram.destination_port
    )]
    NotThisHash {
        /// Datagram.
        datagram: Tuple,
    },
    /// The table's length differs from the learner's.
    #[error("the RSS table has {entries} entries now")]
    OtherTable {
        /// Number of table entries.
        entries: usize,
    },
}

impl Learner {
    /// Learner for a device with `entries` table entries; `None` if the number is not a power of two, or above
    /// [`MAX_TABLE_ENTRIES`].
    pub fn new(entries: usize) -> Option<Self> {
        let is_possible = entries.is_power_of_two() && entries <= MAX_TABLE_ENTRIES;
        is_possible.then(|| Self {
            bits: entries.ilog2(),
            known: vec![None; 128],
        })
    }

    /// Adds an observation: the queue of a datagram under this table. Returns whether it was new information.
    ///
    /// # Errors
    /// [`Contradiction`]: earlier results are not reliable either.
    pub fn observe(
        &mut self,
        datagram: Tuple,
        table: &[u32],
        queue: u32,
    ) -> Result<bool, Contradiction> {
        if table.len() != 1 << self.bits {
            return Err(Contradiction::OtherTable {
                entries: table.len(),
            });
        }
        let entries = || (0_u32..).zip(table).filter(|(_, of)| **of == queue);
        let Some((first, _)) = entries().next() else {
            return Err(Contradiction::ForeignQueue { queue });
        };
        let mut has_learnt = false;
        for bit in 0..self.bits {
            let is_equal = entries().all(|(entry, _)| (entry ^ first) >> bit & 1 == 0);
            if is_equal {
                let value = first >> bit & 1 == 1;
                has_learnt |= self.add(key_bits(datagram, bit), value, datagram)?;
            }
        }
        Ok(has_learnt)
    }

    /// Table entry of a datagram; `None` if not all of its bits are known.
    pub fn entry_of(&self, datagram: Tuple) -> Option<u32> {
        (0..self.bits).try_fold(0, |entry, bit| {
            let value = self.bit_of(datagram, bit)?;
            Some(entry | u32::from(value) << bit)
        })
    }

    fn bit_of(&self, datagram: Tuple, bit: u32) -> Option<bool> {
        let (rest, value) = self.reduce(key_bits(datagram, bit), false);
        (rest == 0).then_some(value)
    }

    /// Adds an equation; returns whether it was new.
    fn add(&mut self, sum: u128, value: bool, datagram: Tuple) -> Result<bool, Contradiction> {
        let (rest, value) = self.reduce(sum, value);
        if rest == 0 {
            return match value {
                false => Ok(false),
                true => Err(Contradiction::NotThisHash { datagram }),
            };
        }
        self.known[rest.ilog2() as usize] = Some((rest, value));
        Ok(true)
    }

    /// Reduces an equation by the known ones.
    fn reduce(&self, mut sum: u128, mut value: bool) -> (u128, bool) {
        let mut left = sum;
        while left != 0 {
            let first = left.ilog2();
            if let Some((known, of)) = self.known[first as usize] {
                sum ^= known;
                value ^= of;
                left = sum & ((1 << first) - 1);
            } else {
                left &= !(1 << first);
            }
        }
        (sum, value)
    }
}

/// Table to set, and datagrams to send under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// RSS table.
    pub table: Vec<u32>,
    /// Datagrams to send; the queue of each is observed.
    pub datagrams: Vec<Tuple>,
}

/// Rounds with which a [`Learner`] can determine the entry of every datagram between these pairs of addresses (source,
/// destination), whatever its ports. Empty without pairs, for a table that cannot be learnt, or with fewer than two
/// queues: a single queue reveals nothing.
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

/// Datagrams of a round: one per pair, and for the first pair also datagrams with one port bit flipped. With
/// `all_bits`, each of the 32 bits is flipped in turn, else one bit.
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

#[cfg(test)]
mod tests;
