//! Multicast.

use super::world::{BULK, CRITICAL, attach, finish, participants, payload};
use super::{Fixture, Options};
use crate::contract::Datapath;
use crate::lane::Lane;

/// On every lane, the sender's own participant included.
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

/// A group a level, though they share a port.
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

/// One frame, one burst.
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

/// Opening a lane is what joins.
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
