//! Tests of balanced and unbalanced flows.

use super::*;

fn balanced() -> Flow {
    Flow {
        topic: "T".into(),
        offered: 100,
        refused: 1,
        written: 99,
        unsent: 2,
        send_refused: 3,
        sent: 94,
        cable: Some(CableFlow {
            arrived: 94,
            dropped: 10,
        }),
        receive_dropped: 4,
        received: 80,
        duplicates: 0,
        rejected: 0,
        delivered: 80,
        shared_lane: None,
        datagrams: None,
    }
}

#[test]
fn a_flow_balances_when_every_sample_has_one_place() {
    assert_eq!(balanced().check(), Ok(()));
    assert_eq!(balanced().unaccounted(), 0);
    let direct = Flow {
        cable: None,
        receive_dropped: 14,
        ..balanced()
    };
    assert_eq!(direct.check(), Ok(()));
}

#[test]
fn a_sample_that_vanished_names_its_hop() {
    let vanished = Flow {
        received: 79,
        delivered: 79,
        ..balanced()
    };
    assert_eq!(
        vanished.check().unwrap_err(),
        "T: 84 samples were on their last way, 83 are accounted for"
    );
    assert_eq!(vanished.unaccounted(), 1);
    let made_up = Flow {
        delivered: 81,
        ..balanced()
    };
    assert!(made_up.check().unwrap_err().contains("received"));
    assert_eq!(made_up.unaccounted(), 1);
    let both = Flow {
        received: 79,
        ..balanced()
    };
    assert_eq!(both.unaccounted(), 2, "one vanished, another was made up");
}

/// Flow over a lane with 500 other datagrams. Of all datagrams, 3 were refused and 4 dropped.
fn through_a_shared_lane(delivered: u64) -> Flow {
    let from = EndCounts {
        written: 99,
        unsent: 2,
        sent: 594,
        send_refused: 3,
        is_lane_shared: true,
        ..EndCounts::default()
    };
    let to = EndCounts {
        received: 500,
        receive_dropped: 4,
        delivered,
        ..EndCounts::default()
    };
    let cable = CableFlow {
        arrived: 94,
        dropped: 10,
    };
    Flow::between("T", (100, 1), &from, &to, Some(cable))
}

#[test]
fn in_a_shared_lane_samples_that_are_missing_are_among_its_drops() {
    let flow = through_a_shared_lane(80);
    assert_eq!(flow.check(), Ok(()));
    assert_eq!((flow.sent, flow.send_refused), (94, 3));
    assert_eq!((flow.received, flow.receive_dropped), (80, 4));
    assert_eq!(flow.unaccounted(), 0);
    assert_eq!(through_a_shared_lane(79).unaccounted(), 1);
    let vanished = through_a_shared_lane(79).check().unwrap_err();
    assert!(
        vanished.starts_with("T: 8 samples are missing"),
        "{vanished}"
    );
    let made_up = through_a_shared_lane(85).check().unwrap_err();
    assert!(made_up.contains("on their last way"), "{made_up}");
}

#[test]
fn a_packet_that_the_kernel_dropped_may_have_held_many_datagrams() {
    let from = EndCounts {
        written: 90,
        sent: 90,
        ..EndCounts::default()
    };
    for (received, is_possible) in [(0, true), (40, true), (88, true), (89, false)] {
        let to = EndCounts {
            received,
            receive_dropped: 2,
            receive_dropped_max: 2 * MAX_SEGMENTS as u64,
            delivered: received,
            ..EndCounts::default()
        };
        let flow = Flow::between("T", (90, 0), &from, &to, None);
        assert_eq!(flow.check().is_ok(), is_possible, "{flow:?}");
        let flow = Flow::in_datagrams("T", (90, 0), &from, &to, 1);
        assert_eq!(flow.check().is_ok(), is_possible, "{flow:?}");
    }
}

/// Flow of 90 samples in 10 datagrams of at most nine samples. One datagram was refused, one dropped.
fn in_shared_datagrams(received: u64, delivered: u64) -> Flow {
    let from = EndCounts {
        written: 90,
        sent: 9,
        send_refused: 1,
        ..EndCounts::default()
    };
    let to = EndCounts {
        received,
        receive_dropped: 1,
        delivered,
        ..EndCounts::default()
    };
    Flow::in_datagrams("T", (90, 0), &from, &to, 9)
}

#[test]
fn samples_that_share_datagrams_are_missing_with_those_that_are_lost_alone() {
    for delivered in [72, 80] {
        let flow = in_shared_datagrams(8, delivered);
        assert_eq!(flow.check(), Ok(()));
        assert_eq!((flow.sent, flow.received), (90, delivered));
        assert_eq!(flow.unaccounted(), 0);
    }
    let vanished = in_shared_datagrams(8, 71);
    assert_eq!(vanished.unaccounted(), 1);
    let said = vanished.check().unwrap_err();
    assert!(said.starts_with("T: 19 samples are missing"), "{said}");
    let made_up = in_shared_datagrams(8, 91).check().unwrap_err();
    assert!(made_up.contains("on their last way"), "{made_up}");
    let vanished = in_shared_datagrams(7, 72).check().unwrap_err();
    assert_eq!(vanished, "T: 9 datagrams were sent, 8 are accounted for");
}
