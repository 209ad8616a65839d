//! Learning a hash whose key cannot be read, from the queues that datagrams land on.
//!
//! The hash is linear: each of its bits is a sum (without carry) of bits of the key, and which ones
//! follows from the datagram alone. A datagram that lands on a queue tells the bits in which all
//! entries of that queue agree: equations with the bits of the key as unknowns. Solved, they tell
//! the bits of every datagram whose sums are sums of those seen. The key itself need not come out.
//!
//! Because neighbouring bits of the hash are sums of neighbouring bits of the key, it is enough to
//! change each of the 32 bits of the ports once while the lowest bit is looked at, and one of them for
//! each further bit: 45 datagrams for a table of 128 entries and two queues ([`rounds`]).

use std::fmt;
use std::net::Ipv4Addr;

use super::toeplitz::{Tuple, key_bits};
use crate::limits::{MAX_TABLE_ENTRIES, PROBE_DESTINATION_PORT, PROBE_SOURCE_PORT};

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
fn datagrams(pairs: &[(Ipv4Addr, Ipv4Addr)], all_bits: bool) -> Vec<Tuple> {
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
mod tests {
    use proptest::prelude::*;

    use super::super::toeplitz::{entry, hash};
    use super::*;

    fn address(bits: u32) -> Ipv4Addr {
        Ipv4Addr::from(bits)
    }

    /// A device with this key, asked as [`rounds`] says; the learner, and how many datagrams it took.
    fn learn(
        key: &[u8],
        entries: usize,
        queues: &[u32],
        pairs: &[(Ipv4Addr, Ipv4Addr)],
    ) -> (Learner, usize) {
        let mut learner = Learner::new(entries).expect("a table");
        let mut sent = 0;
        for round in rounds(entries, queues, pairs) {
            for datagram in round.datagrams {
                let hash = hash(key, datagram).expect("a key");
                let queue = round.table[entry(hash, entries).expect("an entry")];
                learner
                    .observe(datagram, &round.table, queue)
                    .expect("no contradiction");
                sent += 1;
            }
        }
        (learner, sent)
    }

    proptest! {
        /// For every key, table and number of queues: what is told of any ports is what the device does.
        #[test]
        fn after_the_rounds_the_entry_of_every_port_is_known(
            key in any::<[u8; 16]>(),
            bits in 1_u32..=11,
            queues in 2_u32..=8,
            peers in prop::collection::vec(any::<u32>(), 1..4),
            own in any::<u32>(),
            ports in prop::collection::vec(any::<(u16, u16)>(), 32),
        ) {
            let entries = 1 << bits;
            let queues: Vec<u32> = (0..queues).collect();
            let pairs: Vec<_> = peers.iter().map(|peer| (address(*peer), address(own))).collect();
            let (learner, sent) = learn(&key, entries, &queues, &pairs);
            let rounds = bits.div_ceil(queues.len().ilog2()) as usize;
            prop_assert!(sent <= 32 + (pairs.len() + 1) * rounds, "{} datagrams", sent);
            for (source, destination) in pairs {
                for (source_port, destination_port) in &ports {
                    let tuple = Tuple {
                        source,
                        destination,
                        source_port: *source_port,
                        destination_port: *destination_port,
                    };
                    let expected = entry(hash(&key, tuple).expect("a key"), entries);
                    let told = learner.entry_of(tuple).map(|entry| entry as usize);
                    prop_assert_eq!(told, expected, "{:?}", tuple);
                }
            }
        }

        /// Nothing is claimed that was not seen to follow.
        #[test]
        fn what_is_claimed_after_any_datagrams_is_true(
            key in any::<[u8; 16]>(),
            seen in prop::collection::vec(any::<(u32, u16, u16)>(), 0..40),
            asked in prop::collection::vec(any::<(u32, u16, u16)>(), 20),
            queues in 2_u32..=5,
        ) {
            let table: Vec<u32> = (0..128).map(|entry| entry % queues).collect();
            let tuple = |(source, source_port, destination_port)| Tuple {
                source: address(source),
                destination: address(7),
                source_port,
                destination_port,
            };
            let queue = |tuple| {
                table[entry(hash(&key, tuple).expect("a key"), 128).expect("an entry")]
            };
            let mut learner = Learner::new(128).expect("a table");
            for seen in seen {
                let tuple = tuple(seen);
                learner.observe(tuple, &table, queue(tuple)).expect("no contradiction");
                prop_assert_eq!(learner.queue_of(tuple, &table).unwrap_or(queue(tuple)), queue(tuple));
            }
            for asked in asked {
                let tuple = tuple(asked);
                if let Some(told) = learner.queue_of(tuple, &table) {
                    prop_assert_eq!(told, queue(tuple));
                }
            }
        }
    }

    #[test]
    fn whoever_has_the_probed_ports_can_send_and_receive_every_datagram() {
        let [from, to] = probed_ports();
        let pairs = [(address(1), address(2)), (address(3), address(2))];
        for round in rounds(128, &[0, 1], &pairs) {
            let known =
                |it: &Tuple| from.contains(&it.source_port) && to.contains(&it.destination_port);
            assert!(round.datagrams.iter().all(known), "{round:?}");
        }
        assert!(
            from.iter().chain(&to).all(|port| *port >= 1_024),
            "no rights are needed"
        );
    }

    #[test]
    fn a_table_of_128_entries_and_two_queues_takes_45_datagrams() {
        let pair = (address(1), address(2));
        let (_, sent) = learn(&[0x5a; 16], 128, &[0, 1], &[pair]);
        assert_eq!(sent, 45);
    }

    #[test]
    fn a_table_that_cannot_be_set_tells_queues_where_it_tells_bits() {
        // Four queues in turn tell the two lowest bits, which are all that queues depend on.
        let table: Vec<u32> = (0..128).map(|entry| entry % 4).collect();
        let key = [0x3c; 16];
        let mut learner = Learner::new(128).expect("a table");
        for datagram in datagrams(&[(address(9), address(8))], true) {
            let hash = hash(&key, datagram).expect("a key");
            learner
                .observe(datagram, &table, hash & 3)
                .expect("no contradiction");
        }
        let tuple = Tuple {
            source: address(9),
            destination: address(8),
            source_port: 7_007,
            destination_port: 7_015,
        };
        assert_eq!(learner.entry_of(tuple), None);
        let expected = hash(&key, tuple).expect("a key") & 3;
        assert_eq!(learner.queue_of(tuple, &table), Some(expected));
    }

    #[test]
    fn a_device_that_hashes_otherwise_is_found_out() {
        let mut learner = Learner::new(128).expect("a table");
        let pairs = [(address(1), address(2))];
        let outcomes: Result<Vec<bool>, Contradiction> = rounds(128, &[0, 1], &pairs)
            .into_iter()
            .flat_map(|round| {
                let table = round.table.clone();
                round
                    .datagrams
                    .into_iter()
                    .map(move |it| (it, table.clone()))
            })
            .map(|(datagram, table)| {
                // A product of the ports is not linear.
                let product = datagram
                    .source_port
                    .wrapping_mul(datagram.destination_port | 1);
                let entry = usize::from(product >> 4) & 127;
                learner.observe(datagram, &table, table[entry])?;
                let twice = Tuple {
                    source_port: !datagram.source_port,
                    ..datagram
                };
                let product = twice.source_port.wrapping_mul(twice.destination_port | 1);
                learner.observe(twice, &table, table[usize::from(product >> 4) & 127])
            })
            .collect();
        assert!(
            matches!(outcomes, Err(Contradiction::NotThisHash { .. })),
            "{outcomes:?}"
        );
        let foreign = learner.observe(datagrams(&pairs, false)[0], &[0; 128], 5);
        assert_eq!(foreign, Err(Contradiction::ForeignQueue { queue: 5 }));
    }

    #[test]
    fn where_nothing_can_be_told_nothing_is_asked() {
        let pairs = [(address(1), address(2))];
        assert!(rounds(128, &[0], &pairs).is_empty(), "one queue");
        assert!(rounds(100, &[0, 1], &pairs).is_empty(), "no power of two");
        assert!(rounds(128, &[0, 1], &[]).is_empty(), "nobody to send");
        assert!(Learner::new(MAX_TABLE_ENTRIES * 2).is_none());
    }
}
