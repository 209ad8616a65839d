//! Conformance cases of accounting: no datagram and no frame is lost without a counter.
//!
//! The cases up to [`no_frame_is_kept_for_good`], and [`a_closed_lane_refuses_by_name`], also hold under injected
//! faults (`accounts`). The others do not.

use std::collections::BTreeMap;
use std::time::Instant;

use isolane_datapath::limits::MAX_BURST;
use isolane_datapath::{Datapath, Lane, ReceiveBurst, Refusal, TransmitBurst};
use isolane_wire::locator::Locator;

use super::participant::{
    BULK, CRITICAL, MAGIC, Participant, assert_hop, attach, finish, pair, participants, payload,
};
use super::{Fixture, Options};

const LANES: [Lane; 2] = [BULK, CRITICAL];

/// Bursts of each case: a few hundred datagrams.
const ROUNDS: usize = 30;

/// Returns a payload that contains its number.
fn numbered(number: usize) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend((number as u32).to_be_bytes());
    bytes.extend(payload(number, 20 + number % 50));
    bytes
}

/// Each datagram is sent or refused, and received or dropped, in both directions on several lanes.
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
        // Both ends are summed: datagrams of `one` have two destinations.
        assert_hop(&sent, &sent);
        assert_eq!(sent.receive.pending, 0, "{lane} was drained");
    }
    finish([one, other]);
}

/// Every invented, repeated, changed or reordered datagram is counted.
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
    // Delayed datagrams arrive within a few more calls.
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

/// Receives with several calls.
fn collect<D: Datapath>(from: &mut Participant<D>, received: &mut Vec<Vec<u8>>) {
    for _ in 0..20 {
        let burst = from.receive_now(CRITICAL, MAX_BURST);
        received.extend(burst.iter().map(|one| one.frame.to_vec()));
    }
}

/// Limits of all sizes and partly filled bursts: no call exceeds the limit or the room.
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

/// Frames return to the pool whether sent, refused, without destination, lost or delayed.
pub fn no_frame_is_kept_for_good<F: Fixture>() {
    let [mut one, mut other] = participants::<F, 2>(&Options::default(), &LANES);
    for lane in LANES {
        let to = other.address(lane);
        for n in 0..ROUNDS {
            one.send_some(lane, &[numbered(n), numbered(n + 1)], &[to]);
            if let Some(frame) = one.path.pool().take(lane) {
                let before = one.ledger(lane).transmit.refused(Refusal::NO_DESTINATION);
                let mut burst = TransmitBurst::new();
                burst.push(frame).expect("room in the burst");
                assert_eq!(one.path.send_burst(lane, &mut burst).refused, 1);
                assert!(burst.is_empty(), "sending empties the burst");
                let refused = one.ledger(lane).transmit.refused(Refusal::NO_DESTINATION);
                assert_eq!(refused, before + 1);
            }
            one.assert_sent_frames_home(lane);
            drop(other.receive_now(lane, n % 4));
        }
    }
    finish([one, other]);
}

/// All datagrams arrive in both directions on several lanes.
pub fn what_is_sent_is_received_or_dropped_by_name<F: Fixture>() {
    let lanes = [BULK, CRITICAL];
    let [mut one, mut other] = pair::<F>(&lanes);
    for lane in lanes {
        let (here, there) = (one.address(lane), other.address(lane));
        for round in 0..10 {
            let payloads: Vec<Vec<u8>> = (0..16).map(|n| payload(n, 16 * round)).collect();
            one.send(lane, &payloads, &[there]);
            other.send(lane, &payloads, &[here]);
            assert_eq!(other.receive(lane, 16), payloads);
            assert_eq!(one.receive(lane, 16), payloads);
        }
        for (from, to) in [(&one, &other), (&other, &one)] {
            let (sent, arrived) = (from.ledger(lane), to.ledger(lane));
            assert_hop(&sent, &arrived);
            assert_eq!(arrived.receive.received, 160, "{lane}");
            assert_eq!(arrived.receive.received_bytes, sent.transmit.sent_bytes);
        }
    }
    finish([one, other]);
}

/// A locator of an unknown kind is refused; the rest of its burst is sent.
pub fn what_cannot_be_reached_is_named_and_the_rest_goes_on<F: Fixture>() {
    let [mut one, mut other] = pair::<F>(&[CRITICAL]);
    let there = other.address(CRITICAL);
    let shared_memory = Locator {
        kind: 16_777_216,
        ..there
    };
    let report = one.send(CRITICAL, &[payload(1, 10)], &[shared_memory, there]);
    assert_eq!((report.sent, report.refused), (1, 1));
    let transmit = one.ledger(CRITICAL).transmit;
    assert_eq!(transmit.refused(Refusal::UNKNOWN_DESTINATION), 1);
    assert_eq!(other.receive(CRITICAL, 1), [payload(1, 10)]);
    finish([one, other]);
}

/// An absent participant is reported, and costs no other participant a datagram: neither in the same burst, nor in
/// later ones, nor in the opposite direction.
pub fn an_absent_participant_harms_no_other_datagram<F: Fixture>() {
    let [mut one, mut other, gone] = participants::<F, 3>(&Options::default(), &[CRITICAL]);
    let (here, there) = (one.address(CRITICAL), other.address(CRITICAL));
    let absent = gone.address(CRITICAL);
    gone.finish();
    for n in 0..50 {
        one.send(CRITICAL, &[payload(n, 10)], &[there, absent, there]);
        other.send(CRITICAL, &[payload(n, 20)], &[here]);
        let expected = [payload(n, 10), payload(n, 10)];
        assert_eq!(other.receive(CRITICAL, 2), expected);
        assert_eq!(one.receive(CRITICAL, 1), [payload(n, 20)]);
    }
    let start = Instant::now();
    loop {
        one.drain(CRITICAL);
        let transmit = one.ledger(CRITICAL).transmit;
        if transmit.bounced + transmit.refused(Refusal::CONNECTION_REFUSED) > 0 {
            break;
        }
        let waited = start.elapsed();
        assert!(
            waited < F::PATIENCE,
            "the absence is not known: {transmit:?}"
        );
        // The other host may still be closing a lane, and rate-limits its ICMP answers.
        std::thread::yield_now();
        one.send(CRITICAL, &[payload(0, 10)], &[absent]);
    }
    assert_eq!(other.ledger(CRITICAL).receive.received, 100);
    finish([one, other]);
}

/// A closed lane neither sends nor receives.
pub fn a_closed_lane_refuses_by_name<F: Fixture>() {
    let mut fixture = F::new();
    let mut one = attach(&mut fixture, &Options::default(), &[CRITICAL]);
    let mut other = attach(&mut fixture, &Options::default(), &[CRITICAL, BULK]);
    assert!(one.path.unicast(BULK).is_empty());
    assert!(one.path.multicast(BULK).is_empty());
    assert!(one.receive_now(BULK, 16).is_empty());
    assert!(one.path.pool().take(BULK).is_none());

    let frame = one.frame(CRITICAL, b"on the wrong lane");
    let mut burst = TransmitBurst::new();
    burst.push(frame).expect("room in the burst");
    burst.address(other.address(BULK)).expect("room");
    let report = one.path.send_burst(BULK, &mut burst);
    assert_eq!((report.sent, report.refused), (0, 1));
    assert!(burst.is_empty());
    assert_eq!(one.ledger(BULK).transmit.refused(Refusal::LANE_CLOSED), 1);
    other.assert_empty(BULK);
    finish([one, other]);
}

/// Datagrams lost to a full queue are counted exactly: at the reader, also before it reads, or at the sender if the
/// medium refuses them there. Other lanes lose none.
pub fn a_reader_that_does_not_drain_loses_only_by_count<F: Fixture>() {
    const SENT: usize = 512;
    let options = Options {
        queue_bytes: Some(16 * 1_024),
        ..Options::default()
    };
    let [mut one, mut other] = participants::<F, 2>(&options, &[BULK, CRITICAL]);
    let to = other.address(BULK);
    let payloads: Vec<Vec<u8>> = (0..SENT).map(|n| payload(n, 1_000)).collect();
    let report = one.send(BULK, &payloads, &[to]);
    let refused = one.ledger(BULK).transmit.refused(Refusal::WOULD_BLOCK);
    assert_eq!(u64::from(report.sent) + refused, SENT as u64);
    let dropped = other.ledger(BULK).receive.dropped_total();
    let overflow = if F::PUSHES_BACK { refused } else { dropped };
    assert!(overflow > 0, "the case needs a queue that overflows");
    assert_eq!(overflow, dropped + refused, "it overflows in one place");

    one.send(CRITICAL, &[payload(1, 64)], &[other.address(CRITICAL)]);
    assert_eq!(other.receive(CRITICAL, 1), [payload(1, 64)]);
    assert_eq!(other.ledger(CRITICAL).receive.dropped_total(), 0);

    other.drain(BULK);
    let receive = other.ledger(BULK).receive;
    assert_eq!(receive.dropped_total(), dropped, "reading loses nothing");
    assert_eq!(receive.received + dropped + refused, SENT as u64);
    assert_hop(&one.ledger(BULK), &other.ledger(BULK));

    // The next datagram reports the same losses; they are not counted again.
    one.send(BULK, &payloads[..4], &[to]);
    assert_eq!(other.receive(BULK, 4), payloads[..4]);
    assert_hop(&one.ledger(BULK), &other.ledger(BULK));
    finish([one, other]);
}
