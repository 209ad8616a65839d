//! Datagrams arrive, where they should and only there.

use super::Fixture;
use super::world::{BULK, CRITICAL, assert_hop, finish, pair, participants, payload};
use crate::burst::TransmitBurst;
use crate::contract::Datapath;
use crate::lane::Lane;

/// Datagrams of many sizes, on every lane.
pub fn what_is_sent_arrives_unchanged_and_in_order<F: Fixture>() {
    let [mut one, mut other] = pair::<F>(&Lane::ALL);
    for lane in Lane::ALL {
        let payloads: Vec<Vec<u8>> = (0..40).map(|n| payload(n, 4 + n * 37)).collect();
        let to = other.address(lane);
        for some in payloads.chunks(20) {
            let report = one.send(lane, some, &[to]);
            assert_eq!((report.sent, report.refused), (20, 0), "{lane}");
            assert_eq!(other.receive(lane, 20), some, "{lane}");
        }
        assert_hop(&one.ledger(lane), &other.ledger(lane));
    }
    finish([one, other]);
}

/// Each lane gets its own, whatever waits on the others.
pub fn lanes_do_not_see_each_others_datagrams<F: Fixture>() {
    let [mut one, mut other] = pair::<F>(&Lane::ALL);
    for lane in Lane::ALL {
        let to = other.address(lane);
        one.send(lane, &[payload(lane.index(), 100)], &[to]);
    }
    for lane in Lane::ALL.into_iter().rev() {
        let expected = [payload(lane.index(), 100)];
        assert_eq!(other.receive(lane, 1), expected, "{lane}");
        other.assert_empty(lane);
    }
    finish([one, other]);
}

/// Without a copy of the frame.
pub fn one_frame_reaches_several_destinations<F: Fixture>() {
    let [mut one, mut two, mut three] = participants::<F, 3>(&Default::default(), &[CRITICAL]);
    let to = [
        one.address(CRITICAL),
        two.address(CRITICAL),
        three.address(CRITICAL),
    ];
    let report = one.send(CRITICAL, &[payload(1, 64), payload(2, 64)], &to);
    assert_eq!((report.sent, report.refused), (6, 0));
    for reader in [&mut one, &mut two, &mut three] {
        let expected = [payload(1, 64), payload(2, 64)];
        assert_eq!(reader.receive(CRITICAL, 2), expected);
        reader.assert_empty(CRITICAL);
    }
    finish([one, two, three]);
}

/// So that an answer to the source reaches the sender's lane.
pub fn the_source_of_a_datagram_is_where_its_sender_is_reached<F: Fixture>() {
    let [mut one, mut other] = pair::<F>(&[CRITICAL, BULK]);
    for lane in [CRITICAL, BULK] {
        one.send(lane, &[payload(1, 10)], &[other.address(lane)]);
        let received = other.receive_one(lane);
        let source = received.expect("a datagram arrived").from;
        assert!(one.path.unicast(lane).contains(&source), "{source:?}");
        other.send(lane, &[payload(2, 10)], &[source]);
        assert_eq!(one.receive(lane, 1), [payload(2, 10)]);
    }
    assert_ne!(one.address(CRITICAL), one.address(BULK));
    finish([one, other]);
}

/// Whatever the runtime waits for says which lane to look at.
pub fn a_datagram_wakes_its_lane<F: Fixture>() {
    let [mut one, mut other] = pair::<F>(&[CRITICAL, BULK]);
    let has_descriptors = !other.path.descriptors().is_empty();
    assert_eq!(readable(&other.path), 0);
    one.send(CRITICAL, &[payload(1, 10)], &[other.address(CRITICAL)]);
    if has_descriptors {
        assert_eq!(readable(&other.path), CRITICAL.bit());
    }
    assert_ne!(other.path.ready_lanes() & CRITICAL.bit(), 0);
    assert_eq!(other.receive(CRITICAL, 1).len(), 1);
    assert_eq!(readable(&other.path), 0);
    finish([one, other]);
}

/// Lanes whose descriptors are readable now, or within a moment.
fn readable(path: &impl Datapath) -> u16 {
    use std::os::fd::AsRawFd;

    const A_MOMENT_MS: libc::c_int = 20;
    let descriptors = path.descriptors();
    let mut polled: Vec<libc::pollfd> = descriptors
        .iter()
        .map(|(_, descriptor)| libc::pollfd {
            fd: descriptor.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let count = polled.len() as libc::nfds_t;
    // SAFETY: `polled` holds `count` entries for the time of the call.
    unsafe { libc::poll(polled.as_mut_ptr(), count, A_MOMENT_MS) };
    let both = descriptors.iter().zip(&polled);
    both.filter(|(_, polled)| polled.revents & libc::POLLIN != 0)
        .fold(0, |set, ((lane, _), _)| set | lane.bit())
}

/// Nothing is reserved again, and what waits is not lost.
pub fn a_lane_opened_twice_is_the_same_lane<F: Fixture>() {
    let [mut one, mut other] = pair::<F>(&[CRITICAL]);
    let (unicast, multicast) = (
        other.path.unicast(CRITICAL).to_vec(),
        other.path.multicast(CRITICAL).to_vec(),
    );
    let frames = other.path.pool().capacity(CRITICAL);
    one.send(CRITICAL, &[payload(1, 10)], &unicast[..1]);
    other.path.open_lane(CRITICAL).expect("the lane is open");
    assert_eq!(other.path.unicast(CRITICAL), unicast);
    assert_eq!(other.path.multicast(CRITICAL), multicast);
    assert_eq!(other.path.pool().capacity(CRITICAL), frames);
    assert_eq!(other.receive(CRITICAL, 1), [payload(1, 10)]);

    let mut burst = TransmitBurst::new();
    let report = one.path.send_burst(CRITICAL, &mut burst);
    assert_eq!((report.sent, report.refused), (0, 0), "an empty burst");
    finish([one, other]);
}
