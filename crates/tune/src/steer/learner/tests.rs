//! Tests that the learner's results match the device, and that the learner returns no other results.

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::super::{entry, hash};
use super::*;
use super::{datagrams, probed_ports, rounds};

fn address(bits: u32) -> Ipv4Addr {
    Ipv4Addr::from(bits)
}

/// Learns a device with this key by [`rounds`]. Returns the learner and the number of datagrams.
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
    /// For every key, table and number of queues, results for any ports match the device.
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
                let learnt = learner.entry_of(tuple).map(|entry| entry as usize);
                prop_assert_eq!(learnt, expected, "{:?}", tuple);
            }
        }
    }

    /// Results follow from the observations alone.
    #[test]
    fn what_is_claimed_after_any_datagrams_is_true(
        key in any::<[u8; 16]>(),
        seen in prop::collection::vec(any::<(u32, u16, u16)>(), 0..40),
        asked in prop::collection::vec(any::<(u32, u16, u16)>(), 20),
        bits in 1_u32..=3,
    ) {
        // Each entry has a queue of its own, so each datagram reveals its entry.
        let table: Vec<u32> = (0..1 << bits).collect();
        let tuple = |(source, source_port, destination_port)| Tuple {
            source: address(source),
            destination: address(7),
            source_port,
            destination_port,
        };
        let entry = |tuple| entry(hash(&key, tuple).expect("a key"), table.len()).expect("an entry");
        let mut learner = Learner::new(table.len()).expect("a table");
        for seen in seen {
            let tuple = tuple(seen);
            learner.observe(tuple, &table, table[entry(tuple)]).expect("no contradiction");
            prop_assert_eq!(learner.entry_of(tuple), Some(entry(tuple) as u32));
        }
        for asked in asked {
            let tuple = tuple(asked);
            if let Some(learnt) = learner.entry_of(tuple) {
                prop_assert_eq!(learnt as usize, entry(tuple));
            }
        }
    }
}

#[test]
fn a_program_with_the_probed_ports_can_send_and_receive_every_datagram() {
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
            // A hash that multiplies the ports is not linear.
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
fn nothing_is_asked_if_nothing_can_be_learnt() {
    let pairs = [(address(1), address(2))];
    assert!(rounds(128, &[0], &pairs).is_empty(), "one queue");
    assert!(rounds(100, &[0, 1], &pairs).is_empty(), "no power of two");
    assert!(rounds(128, &[0, 1], &[]).is_empty(), "no sender");
    assert!(Learner::new(MAX_TABLE_ENTRIES * 2).is_none());
}
