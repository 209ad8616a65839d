//! Frames belong to one holder, and to one class.

use super::world::{BULK, CRITICAL, finish, pair, participants, payload};
use super::{Fixture, Options};
use crate::burst::TransmitBurst;
use crate::contract::Datapath;
use crate::limits::MAX_BURST;
use crate::pool::{Class, PoolConfig};

/// Whoever holds all frames of bulk, either way, keeps nobody else from working.
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

/// A reader that keeps all its frames for a while gets the rest afterwards: what waits is not
/// lost for want of a frame.
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

/// Sent, refused, without destination, received and dropped unread.
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
