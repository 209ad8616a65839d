//! Cases of frames: classes, ownership, and the limits of bursts and datagrams.

use isolane_datapath::limits::MAX_BURST;
use isolane_datapath::{
    Class, Datapath, PoolConfig, ReceiveBurst, ReceiveDrop, Refusal, TransmitBurst,
};

use super::participant::{BULK, CRITICAL, assert_hop, attach, finish, pair, participants, payload};
use super::{Fixture, Options};

/// Holding all frames of one lane does not stop another lane.
pub fn an_exhausted_bulk_pool_leaves_critical_frames<F: Fixture>() {
    let [mut one, mut other] = pair::<F>(&[BULK, CRITICAL]);
    let hoard = |path: &F::Datapath| -> Vec<_> {
        let classes = [Class::Transmit(BULK), Class::Receive(BULK)];
        let frames = classes
            .into_iter()
            .flat_map(|class| std::iter::from_fn(move || path.pool().take(class)));
        frames.collect()
    };
    let hoarded = [hoard(&one.path), hoard(&other.path)];
    assert!(one.path.pool().take(BULK).is_none());
    assert!(one.path.pool().exhausted(BULK) > 0);
    let to = other.address(CRITICAL);
    for n in 0..50 {
        one.send(CRITICAL, &[payload(n, 64)], &[to]);
        assert_eq!(other.receive(CRITICAL, 1), [payload(n, 64)]);
    }
    drop(hoarded);
    finish([one, other]);
}

/// A reader that holds all its frames gets the waiting datagrams after it releases them.
pub fn a_reader_that_holds_its_frames_loses_nothing<F: Fixture>() {
    let pool = PoolConfig {
        receive_frames: [4; 9],
        ..PoolConfig::default()
    };
    let options = Options {
        pool,
        ..Options::default()
    };
    let [mut one, mut other] = participants::<F, 2>(&options, &[CRITICAL]);
    let payloads: Vec<Vec<u8>> = (0..10).map(|n| payload(n, 100)).collect();
    one.send(CRITICAL, &payloads, &[other.address(CRITICAL)]);

    let mut held = Vec::new();
    for _ in 0..3 {
        held.extend(other.receive_now(CRITICAL, MAX_BURST));
    }
    assert_eq!(held.len(), 4);
    assert!(other.ledger(CRITICAL).receive.starved > 0);
    for (received, sent) in held.iter().zip(&payloads) {
        assert_eq!(*received.frame, **sent);
    }
    drop(held);
    assert_eq!(other.receive(CRITICAL, 6), payloads[4..]);
    finish([one, other]);
}

/// Frames return to the pool whether sent, refused, without destination, received or dropped unread.
pub fn every_frame_goes_home<F: Fixture>() {
    let [mut one, mut other] = pair::<F>(&[BULK, CRITICAL]);
    let (to, other_lane) = (other.address(CRITICAL), other.address(BULK));
    for n in 0..200 {
        one.send(CRITICAL, &[payload(n, 64), payload(n, 0)], &[to]);
        one.send(BULK, &[payload(n, 64)], &[other_lane]);
        let mut burst = TransmitBurst::new();
        let frame = one.frame(CRITICAL, b"goes nowhere");
        burst.push(frame).expect("room in the burst");
        assert_eq!(one.path.send_burst(CRITICAL, &mut burst).refused, 1);
        burst
            .push(one.frame(CRITICAL, b"thought better of it"))
            .expect("room");
        burst.clear();
        drop(other.receive_now(CRITICAL, 2));
        drop(other.receive_now(BULK, 2));
    }
    for lane in [BULK, CRITICAL] {
        for participant in [&mut one, &mut other] {
            participant.assert_sent_frames_home(lane);
        }
    }
    finish([one, other]);
}

/// Limits of zero, some, and more than a burst holds; a burst that is partly filled.
pub fn a_burst_takes_no_more_than_requested<F: Fixture>() {
    let [mut one, mut other] = pair::<F>(&[CRITICAL]);
    let payloads: Vec<Vec<u8>> = (0..40).map(|n| payload(n, 20)).collect();
    one.send(CRITICAL, &payloads, &[other.address(CRITICAL)]);

    assert!(other.receive_now(CRITICAL, 0).is_empty());
    assert_eq!(other.receive(CRITICAL, 1), payloads[..1]);
    let mut burst = ReceiveBurst::new();
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

/// Datagrams of 0, 1, 60,000 bytes and of the stated maximum arrive.
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

/// A segmented burst arrives as its datagrams, and counts as many: without and with a shorter last one, and to a
/// participant that is not there. A datapath without segmentation passes.
pub fn a_segmented_burst_is_its_datagrams<F: Fixture>() {
    let [mut one, mut other] = pair::<F>(&[CRITICAL]);
    let places = [other.address(CRITICAL)];
    for (segment_bytes, last_bytes) in [(1_400, 1_400), (1_400, 60), (20, 1)] {
        if one.path.capabilities().segmented_lanes & CRITICAL.bit() == 0 {
            break;
        }
        let mut sent: Vec<Vec<u8>> = (0..40).map(|n| payload(n, segment_bytes)).collect();
        sent.push(payload(40, last_bytes));
        let mut frame = one.frame(CRITICAL, &sent.concat());
        frame.set_segment_bytes(segment_bytes as u16);
        assert_eq!(frame.datagram_count(), sent.len());
        let mut burst = TransmitBurst::new();
        burst.push_to(frame, &places);
        let report = one.path.send_burst(CRITICAL, &mut burst);
        assert_eq!(report.sent as usize, sent.len());
        assert_eq!(other.receive(CRITICAL, sent.len()), sent);
    }
    assert_hop(&one.ledger(CRITICAL), &other.ledger(CRITICAL));
    finish([one, other]);
}

/// A datagram one byte longer than the maximum is refused; its neighbours are sent.
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
    assert_eq!(one.ledger(CRITICAL).transmit.refused(Refusal::TOO_LONG), 1);
    assert_eq!(other.receive(CRITICAL, 2), [payload(1, 10), payload(2, 10)]);
    finish([one, other]);
}

/// A reader with small frames gets no truncated datagram.
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
    assert_eq!(receive.dropped(ReceiveDrop::TRUNCATED), 2);
    assert_hop(&one.ledger(CRITICAL), &other.ledger(CRITICAL));
    finish([one, other]);
}
