//! Bursts and datagrams of the smallest and largest sizes.

use super::world::{CRITICAL, assert_hop, attach, finish, pair, payload};
use super::{Fixture, Options};
use crate::burst::TransmitBurst;
use crate::contract::Datapath;
use crate::ledger::{ReceiveDrop, Refusal};
use crate::limits::MAX_BURST;
use crate::pool::PoolConfig;

/// A limit of none, of some, of more than a burst holds, and a burst that is not empty.
pub fn a_burst_takes_no_more_than_it_is_asked_for<F: Fixture>() {
    let [mut one, mut other] = pair::<F>(&[CRITICAL]);
    let payloads: Vec<Vec<u8>> = (0..40).map(|n| payload(n, 20)).collect();
    one.send(CRITICAL, &payloads, &[other.address(CRITICAL)]);

    assert!(other.receive_now(CRITICAL, 0).is_empty());
    assert_eq!(other.receive(CRITICAL, 1), payloads[..1]);
    let mut burst = crate::burst::ReceiveBurst::new();
    assert_eq!(other.path.receive_burst(CRITICAL, 5, &mut burst), 5);
    assert_eq!(burst.len(), 5);
    let rest = MAX_BURST - 5;
    let taken = other.path.receive_burst(CRITICAL, usize::MAX, &mut burst);
    assert_eq!((taken, burst.len()), (rest, MAX_BURST));
    assert_eq!(other.path.receive_burst(CRITICAL, 1, &mut burst), 0);
    for (received, sent) in burst.iter().zip(&payloads[1..]) {
        assert_eq!(*received.frame, **sent);
    }
    drop(burst);
    assert_eq!(other.receive(CRITICAL, 40 - 17), payloads[17..]);
    other.assert_empty(CRITICAL);
    assert_hop(&one.ledger(CRITICAL), &other.ledger(CRITICAL));
    finish([one, other]);
}

/// No byte, one byte, a sample of 60,000 bytes, and all that the datapath says it can.
pub fn empty_and_largest_datagrams_arrive<F: Fixture>() {
    let [mut one, mut other] = pair::<F>(&[CRITICAL]);
    let largest = one.path.capabilities().max_frame_bytes;
    for len in [0, 1, 60_000.min(largest), largest] {
        let sent = [payload(len, len)];
        let report = one.send(CRITICAL, &sent, &[other.address(CRITICAL)]);
        assert_eq!(report.sent, 1, "{len} bytes");
        assert_eq!(other.receive(CRITICAL, 1), sent, "{len} bytes");
    }
    assert_hop(&one.ledger(CRITICAL), &other.ledger(CRITICAL));
    finish([one, other]);
}

/// One byte more than the datapath says it can; those before and behind it are sent.
pub fn too_long_is_refused_by_name<F: Fixture>() {
    let [mut one, mut other] = pair::<F>(&[CRITICAL]);
    let to = other.address(CRITICAL);
    let too_long = one.path.capabilities().max_frame_bytes + 1;
    let mut long = one.frame_for(CRITICAL, too_long);
    let head = long.head_room();
    assert!(
        head + too_long <= long.capacity(),
        "the case needs frames longer than the largest datagram"
    );
    long.set_range(head..head + too_long);

    let mut burst = TransmitBurst::new();
    let before = one.frame(CRITICAL, &payload(1, 10));
    let behind = one.frame(CRITICAL, &payload(2, 10));
    for frame in [before, long, behind] {
        burst.push(frame).expect("room in the burst");
        burst.address(to).expect("room for the destination");
    }
    let report = one.path.send_burst(CRITICAL, &mut burst);
    assert_eq!((report.sent, report.refused), (2, 1));
    assert_eq!(one.ledger(CRITICAL).transmit.refused(Refusal::TooLong), 1);
    assert_eq!(other.receive(CRITICAL, 2), [payload(1, 10), payload(2, 10)]);
    finish([one, other]);
}

/// The reader's frames are smaller than what the sender sends: never half a datagram.
pub fn datagrams_longer_than_a_frame_are_dropped_by_name<F: Fixture>() {
    let mut fixture = F::new();
    let mut one = attach(&mut fixture, &Options::default(), &[CRITICAL]);
    let pool = PoolConfig {
        frame_bytes: 512,
        ..PoolConfig::default()
    };
    let small = Options {
        pool,
        ..Options::default()
    };
    let mut other = attach(&mut fixture, &small, &[CRITICAL]);
    let sent = [
        payload(1, 512),
        payload(2, 513),
        payload(3, 9_000),
        payload(4, 10),
    ];
    one.send(CRITICAL, &sent, &[other.address(CRITICAL)]);
    assert_eq!(
        other.receive(CRITICAL, 2),
        [sent[0].clone(), sent[3].clone()]
    );
    let receive = other.ledger(CRITICAL).receive;
    assert_eq!(receive.dropped(ReceiveDrop::Truncated), 2);
    assert_hop(&one.ledger(CRITICAL), &other.ledger(CRITICAL));
    finish([one, other]);
}
