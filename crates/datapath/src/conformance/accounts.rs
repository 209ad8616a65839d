//! Nothing is lost silently.

use std::time::Instant;

use isolane_wire::locator::Locator;

use super::world::{BULK, CRITICAL, assert_hop, attach, finish, pair, participants, payload};
use super::{Fixture, Options};
use crate::contract::Datapath;
use crate::ledger::Refusal;

/// Both directions at once, on several lanes.
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

/// Kinds of address the datapath does not know, in a burst with others.
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
    assert_eq!(transmit.refused(Refusal::UnknownDestination), 1);
    assert_eq!(other.receive(CRITICAL, 1), [payload(1, 10)]);
    finish([one, other]);
}

/// A participant that went away is heard of, and its absence costs no other participant a
/// datagram: neither in the same burst, nor in later ones, nor on the way back.
pub fn nobody_listening_harms_no_other_datagram<F: Fixture>() {
    let [mut one, mut other, gone] = participants::<F, 3>(&Options::default(), &[CRITICAL]);
    let (here, there) = (one.address(CRITICAL), other.address(CRITICAL));
    let nobody = gone.address(CRITICAL);
    gone.finish();
    for n in 0..50 {
        one.send(CRITICAL, &[payload(n, 10)], &[there, nobody, there]);
        other.send(CRITICAL, &[payload(n, 20)], &[here]);
        let expected = [payload(n, 10), payload(n, 10)];
        assert_eq!(other.receive(CRITICAL, 2), expected);
        assert_eq!(one.receive(CRITICAL, 1), [payload(n, 20)]);
    }
    let start = Instant::now();
    loop {
        one.drain(CRITICAL);
        let transmit = one.ledger(CRITICAL).transmit;
        if transmit.bounced + transmit.refused(Refusal::ConnectionRefused) > 0 {
            break;
        }
        let waited = start.elapsed();
        assert!(
            waited < F::PATIENCE,
            "the absence is not known: {transmit:?}"
        );
        // The other host may still be taking a lane down, and answers only so many a second.
        std::thread::yield_now();
        one.send(CRITICAL, &[payload(0, 10)], &[nobody]);
    }
    assert_eq!(other.ledger(CRITICAL).receive.received, 100);
    finish([one, other]);
}

/// Neither sends nor receives, and says so.
pub fn a_closed_lane_refuses_by_name<F: Fixture>() {
    let mut fixture = F::new();
    let mut one = attach(&mut fixture, &Options::default(), &[CRITICAL]);
    let mut other = attach(&mut fixture, &Options::default(), &[CRITICAL, BULK]);
    assert!(one.path.unicast(BULK).is_empty());
    assert!(one.path.multicast(BULK).is_empty());
    assert!(one.receive_now(BULK, 16).is_empty());
    assert!(one.path.pool().take(BULK).is_none());

    let frame = one.frame(CRITICAL, b"on the wrong lane");
    let mut burst = crate::burst::TransmitBurst::new();
    burst.push(frame).expect("room in the burst");
    burst.address(other.address(BULK)).expect("room");
    let report = one.path.send_burst(BULK, &mut burst);
    assert_eq!((report.sent, report.refused), (0, 1));
    assert!(burst.is_empty());
    assert_eq!(one.ledger(BULK).transmit.refused(Refusal::LaneClosed), 1);
    other.assert_empty(BULK);
    finish([one, other]);
}

/// The reader's queue overflows: what is missing is counted at the reader, exactly, also before
/// it has read anything, and other lanes are none the worse.
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
    assert_eq!(report.sent as usize, SENT);
    let dropped = other.ledger(BULK).receive.dropped_total();
    assert!(dropped > 0, "the case needs a queue that overflows");

    one.send(CRITICAL, &[payload(1, 64)], &[other.address(CRITICAL)]);
    assert_eq!(other.receive(CRITICAL, 1), [payload(1, 64)]);
    assert_eq!(other.ledger(CRITICAL).receive.dropped_total(), 0);

    other.drain(BULK);
    let receive = other.ledger(BULK).receive;
    assert_eq!(receive.dropped_total(), dropped, "reading loses nothing");
    assert_eq!(receive.received + dropped, SENT as u64);
    assert_hop(&one.ledger(BULK), &other.ledger(BULK));

    // What the next datagram tells of the same losses is not counted again.
    one.send(BULK, &payloads[..4], &[to]);
    assert_eq!(other.receive(BULK, 4), payloads[..4]);
    assert_hop(&one.ledger(BULK), &other.ledger(BULK));
    finish([one, other]);
}
