//! Cases of delivery: unicast, wake-ups, and multicast groups.

use isolane_datapath::{Datapath, Lane, TransmitBurst};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::participant::{BULK, CRITICAL, assert_hop, attach, finish, pair, participants, payload};
use super::{Fixture, Options};

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

/// Each lane receives its own datagrams only.
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

/// Every destination of a frame gets the datagram once.
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

/// An answer to the source reaches the sender's lane.
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

/// Descriptors and `ready_lanes` name the lane with a datagram.
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

/// Returns the lanes with a descriptor that is readable within 20 ms.
fn readable(path: &impl Datapath) -> u16 {
    const TIMEOUT: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    let descriptors = path.descriptors();
    let polled = descriptors
        .iter()
        .map(|(_, descriptor)| PollFd::new(descriptor, PollFlags::IN));
    let mut polled: Vec<PollFd<'_>> = polled.collect();
    poll(&mut polled, Some(&TIMEOUT)).expect("poll");
    let both = descriptors.iter().zip(&polled);
    both.filter(|(_, polled)| polled.revents().contains(PollFlags::IN))
        .fold(0, |set, ((lane, _), _)| set | lane.bit())
}

/// The second call reserves nothing and drops no datagram.
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

/// Each member gets each datagram once, on every lane, the sender included.
pub fn a_group_reaches_every_member_once<F: Fixture>() {
    let mut members = participants::<F, 3>(&Options::default(), &Lane::ALL);
    assert!(members[0].path.capabilities().multicast);
    for lane in Lane::ALL {
        let group = members[0].path.multicast(lane)[0];
        assert!(group.is_multicast(), "{group:?}");
        let sent = [payload(1, 100), payload(2, 1_400)];
        let report = members[0].send(lane, &sent, &[group]);
        assert_eq!((report.sent, report.refused), (2, 0), "{lane}");
        for member in &mut members {
            assert_eq!(member.path.multicast(lane), [group]);
            assert_eq!(member.receive(lane, 2), sent, "{lane}");
            member.assert_empty(lane);
        }
    }
    finish(members);
}

/// Groups of different levels are distinct although they share a port.
pub fn groups_of_levels_are_apart<F: Fixture>() {
    let [mut one, mut other] = participants::<F, 2>(&Options::default(), &Lane::ALL);
    for lane in Lane::ALL {
        let group = one.path.multicast(lane)[0];
        one.send(lane, &[payload(lane.index(), 50)], &[group]);
    }
    for lane in Lane::ALL {
        let expected = [payload(lane.index(), 50)];
        assert_eq!(other.receive(lane, 1), expected, "{lane}");
        other.assert_empty(lane);
        assert_eq!(one.receive(lane, 1), expected, "{lane}");
    }
    finish([one, other]);
}

/// One frame of one burst has a group and a participant as destinations.
pub fn a_frame_goes_to_a_group_and_a_participant_at_once<F: Fixture>() {
    let [mut one, mut other] = participants::<F, 2>(&Options::default(), &[CRITICAL]);
    let group = one.path.multicast(CRITICAL)[0];
    let to = [group, other.address(CRITICAL)];
    let report = one.send(CRITICAL, &[payload(1, 10)], &to);
    assert_eq!((report.sent, report.refused), (2, 0));
    let expected = [payload(1, 10), payload(1, 10)];
    assert_eq!(other.receive(CRITICAL, 2), expected);
    assert_eq!(one.receive(CRITICAL, 1), expected[..1]);
    one.assert_empty(CRITICAL);
    finish([one, other]);
}

/// A closed lane is not a member of its group.
pub fn who_has_not_opened_the_lane_gets_nothing_of_its_group<F: Fixture>() {
    let mut fixture = F::new();
    let options = Options::default();
    let mut one = attach(&mut fixture, &options, &[BULK, CRITICAL]);
    let mut other = attach(&mut fixture, &options, &[CRITICAL]);
    let group = one.path.multicast(BULK)[0];
    one.send(BULK, &[payload(1, 10)], &[group]);
    assert_eq!(one.receive(BULK, 1), [payload(1, 10)]);
    other.assert_empty(CRITICAL);
    assert_eq!(other.path.ledger().total().receive.arrived, 0);
    finish([one, other]);
}
