//! Learning a hash whose key cannot be read, from the queues that datagrams land on.
//!
//! The hash is linear: each of its bits is a sum (without carry) of bits of the key, and which ones
//! follows from the datagram alone. A datagram that lands on a queue tells the bits in which all
//! entries of that queue agree: equations with the bits of the key as unknowns. Solved, they tell
//! the bits of every datagram whose sums are sums of those seen. The key itself need not come out.
//!
//! What to ask, so that all comes out with few datagrams: [`rounds`](super::rounds()).

use std::fmt;

use super::toeplitz::{Tuple, key_bits};
use crate::limits::MAX_TABLE_ENTRIES;

/// What is known of a hash so far.
#[derive(Clone, Debug)]
pub struct Learner {
    /// Bits of the hash that pick an entry.
    bits: u32,
    /// Equations by their first unknown: the others of it, and the sum.
    known: Vec<Option<(u128, bool)>>,
}

/// What was seen cannot be of this hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// A datagram came to a queue that no entry of the table leads to: something else steers, too.
    ForeignQueue {
        /// The queue.
        queue: u32,
    },
    /// It came to another queue than those before it tell: the hash is another function, or takes in
    /// something else, or frames of others were counted.
    NotThisHash {
        /// The datagram.
        datagram: Tuple,
    },
    /// The table has another length than the learner was made for.
    OtherTable {
        /// Its entries.
        entries: usize,
    },
}

impl fmt::Display for Contradiction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForeignQueue { queue } => write!(
                formatter,
                "a datagram came to queue {queue}, which the receive table does not lead to"
            ),
            Self::NotThisHash { datagram } => write!(
                formatter,
                "the datagram from {}:{} to {}:{} came where those before it do not tell: the device does \
                 not hash as it says, or frames of others were counted",
                datagram.source,
                datagram.source_port,
                datagram.destination,
                datagram.destination_port
            ),
            Self::OtherTable { entries } => {
                write!(formatter, "the receive table has {entries} entries now")
            }
        }
    }
}

impl std::error::Error for Contradiction {}

impl Learner {
    /// Nothing is known yet of a device with so many entries; `None` if their number is no power of
    /// two, or beyond [`MAX_TABLE_ENTRIES`].
    pub fn new(entries: usize) -> Option<Self> {
        let is_possible = entries.is_power_of_two() && entries <= MAX_TABLE_ENTRIES;
        is_possible.then(|| Self {
            bits: entries.ilog2(),
            known: vec![None; 128],
        })
    }

    /// Takes in where a datagram came to, with this table in the device. Whether anything was learnt.
    ///
    /// # Errors
    /// [`Contradiction`]: what was learnt so far is not to be trusted either.
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
            let is_told = entries().all(|(entry, _)| (entry ^ first) >> bit & 1 == 0);
            if is_told {
                let value = first >> bit & 1 == 1;
                has_learnt |= self.add(key_bits(datagram, bit), value, datagram)?;
            }
        }
        Ok(has_learnt)
    }

    /// The entry that a datagram picks; `None`: not all of its bits are known.
    pub fn entry_of(&self, datagram: Tuple) -> Option<u32> {
        (0..self.bits).try_fold(0, |entry, bit| {
            let value = self.bit_of(datagram, bit)?;
            Some(entry | u32::from(value) << bit)
        })
    }

    /// The queue that a datagram comes to with this table: that of its entry, or that of all entries
    /// it may pick as far as its bits are known.
    pub fn queue_of(&self, datagram: Tuple, table: &[u32]) -> Option<u32> {
        let bits: Vec<Option<bool>> = (0..self.bits)
            .map(|bit| self.bit_of(datagram, bit))
            .collect();
        let is_possible = |entry: u32| {
            let mut bits = (0..).zip(&bits);
            bits.all(|(bit, value)| value.is_none_or(|value| (entry >> bit & 1 == 1) == value))
        };
        let mut queues = (0_u32..)
            .zip(table)
            .filter(|(entry, _)| is_possible(*entry))
            .map(|(_, queue)| *queue);
        let first = queues.next()?;
        queues.all(|queue| queue == first).then_some(first)
    }

    fn bit_of(&self, datagram: Tuple, bit: u32) -> Option<bool> {
        let (rest, value) = self.reduce(key_bits(datagram, bit), false);
        (rest == 0).then_some(value)
    }

    /// Takes an equation in; whether it was new.
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

    /// What is left of an equation when those that are known are taken out of it.
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

#[cfg(test)]
mod tests;
