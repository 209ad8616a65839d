//! Accounts that hold whatever goes wrong: what a datapath with faults is still held to.

use std::collections::BTreeMap;

use super::world::{BULK, CRITICAL, MAGIC, Participant, assert_hop, finish, pair, payload};
use super::{Fixture, Options};
use crate::burst::{ReceiveBurst, TransmitBurst};
use crate::contract::Datapath;
use crate::lane::Lane;
use crate::ledger::Refusal;
use crate::limits::MAX_BURST;

const LANES: [Lane; 2] = [BULK, CRITICAL];

/// Bursts of each case: some hundred datagrams.
const ROUNDS: usize = 30;

/// A payload that begins with its number.
fn numbered(number: usize) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend((number as u32).to_be_bytes());
    bytes.extend(payload(number, 20 + number % 50));
    bytes
}

/// Sent and refused, lost, doubled or received: both directions at once, on several lanes.
pub fn every_datagram_sent_arrives_or_is_named<F: Fixture>() {
    let [mut one, mut other] = pair::<F>(&LANES);
    for lane in LANES {
        let (here, there) = (one.address(lane), other.address(lane));
        let mut offered = 0;
        for round in 0..ROUNDS {
            let payloads: Vec<Vec<u8>> = (0..1 + round % MAX_BURST).map(numbered).collect();
            let (frames, report) = one.send_some(lane, &payloads, &[there, here]);
            assert_eq!((report.sent + report.refused) as usize, 2 * frames);
            offered += 2 * frames as u64;
            other.send_some(lane, &payloads, &[here]);
            drop(one.receive_now(lane, 3));
            drop(other.receive_now(lane, MAX_BURST));
        }
        let transmit = one.ledger(lane).transmit;
        assert_eq!(transmit.offered, offered, "{lane}");
        one.drain(lane);
        other.drain(lane);
        let mut sent = one.ledger(lane);
        sent += &other.ledger(lane);
        // One sums up what arrived at both ends, as the datagrams of one have two destinations.
        assert_hop(&sent, &sent);
        assert_eq!(sent.receive.pending, 0, "{lane} was drained");
    }
    finish([one, other]);
}

/// Nothing is made up, nothing comes twice, changed or out of order without being counted.
pub fn what_is_handed_on_was_sent_or_is_counted_as_changed<F: Fixture>() {
    let [mut one, mut other] = pair::<F>(&[CRITICAL]);
    let to = other.address(CRITICAL);
    let mut received = Vec::new();
    for round in 0..ROUNDS {
        let first = round * MAX_BURST;
        let payloads: Vec<Vec<u8>> = (first..first + MAX_BURST).map(numbered).collect();
        one.send_some(CRITICAL, &payloads, &[to]);
        collect(&mut other, &mut received);
    }
    // What is kept back comes within some calls more, and nothing follows it.
    for _ in 0..ROUNDS {
        collect(&mut other, &mut received);
    }

    let ledger = other.ledger(CRITICAL);
    assert_eq!(received.len() as u64, ledger.receive.received);
    let bytes: usize = received.iter().map(Vec::len).sum();
    assert_eq!(bytes as u64, ledger.receive.received_bytes);
    let all = ROUNDS * MAX_BURST;
    let sent: BTreeMap<Vec<u8>, usize> = (0..all).map(|n| (numbered(n), n)).collect();
    let known: Vec<usize> = received
        .iter()
        .filter_map(|bytes| sent.get(bytes).copied())
        .collect();
    let injected = ledger.injected;
    let changed = (received.len() - known.len()) as u64;
    let may_be_changed = injected.corrupted + injected.shortened + injected.duplicated;
    assert!(
        changed == 0 || (injected.corrupted + injected.shortened > 0 && changed <= may_be_changed),
        "{changed} datagrams were never sent: {injected:?}"
    );
    let mut distinct = known.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let repeated = (known.len() - distinct.len()) as u64;
    assert!(
        repeated <= injected.duplicated,
        "{repeated} came again: {injected:?}"
    );
    let may_be_late = injected.delayed + injected.duplicated > 0;
    assert!(
        may_be_late || known.is_sorted(),
        "out of order, and nothing was delayed"
    );
    finish([one, other]);
}

/// Receives for some calls.
fn collect<D: Datapath>(from: &mut Participant<D>, received: &mut Vec<Vec<u8>>) {
    for _ in 0..20 {
        let burst = from.receive_now(CRITICAL, MAX_BURST);
        received.extend(burst.iter().map(|one| one.frame.to_vec()));
    }
}

/// Limits of all sizes, bursts that are partly filled: never more than asked for or than fits.
pub fn no_call_takes_more_than_it_may<F: Fixture>() {
    let [mut one, mut other] = pair::<F>(&[CRITICAL]);
    let to = other.address(CRITICAL);
    let mut burst = ReceiveBurst::new();
    for round in 0..20 * ROUNDS {
        one.send_some(CRITICAL, &[numbered(round), numbered(round + 1)], &[to]);
        let (limit, before) = (round % 5, burst.len());
        let taken = other.path.receive_burst(CRITICAL, limit, &mut burst);
        assert!(taken <= limit, "{taken} of {limit}");
        assert!(burst.len() - before <= taken, "more than it says");
        if burst.len() > MAX_BURST - 3 {
            let room = MAX_BURST - burst.len();
            let taken = other.path.receive_burst(CRITICAL, MAX_BURST, &mut burst);
            assert!(taken <= room, "{taken} where {room} fit");
            burst.clear();
        }
    }
    drop(burst);
    other.drain(CRITICAL);
    assert_hop(&one.ledger(CRITICAL), &other.ledger(CRITICAL));
    finish([one, other]);
}

/// Whatever becomes of it: sent, refused, never addressed, lost, kept back.
pub fn no_frame_is_kept_for_good<F: Fixture>() {
    let [mut one, mut other] = super::world::participants::<F, 2>(&Options::default(), &LANES);
    for lane in LANES {
        let to = other.address(lane);
        for n in 0..ROUNDS {
            one.send_some(lane, &[numbered(n), numbered(n + 1)], &[to]);
            if let Some(frame) = one.path.pool().take(lane) {
                let before = one.ledger(lane).transmit.refused(Refusal::NoDestination);
                let mut burst = TransmitBurst::new();
                burst.push(frame).expect("room in the burst");
                assert_eq!(one.path.send_burst(lane, &mut burst).refused, 1);
                assert!(burst.is_empty(), "sending empties the burst");
                let refused = one.ledger(lane).transmit.refused(Refusal::NoDestination);
                assert_eq!(refused, before + 1);
            }
            one.assert_sent_frames_home(lane);
            drop(other.receive_now(lane, n % 4));
        }
    }
    finish([one, other]);
}
