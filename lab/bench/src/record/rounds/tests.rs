//! Tests of merged rounds.

use super::*;
use crate::cable::Passages;
use crate::record::{nonce, stamp};

const PERIOD_NS: u64 = 500_000;
const SEED: u64 = 4;

/// Rounds of 200 us each (90 forward, 10 turnaround, 100 back); ids in `lost` do not return.
fn run(samples: u32, lost: &[u32]) -> (PingRecorder, PongRecorder) {
    let mut ping = PingRecorder::new(samples, SEED);
    let mut pong = PongRecorder::new(samples, SEED);
    for id in 0..samples {
        let start = 1_000_000 + u64::from(id) * PERIOD_NS;
        ping.sent(id, start, start + 2_000);
        pong.received(id, nonce(SEED, id), start + 90_000);
        pong.replied(id, start + 100_000);
        if !lost.contains(&id) {
            ping.returned(id, nonce(SEED, id), start + 200_000);
        }
    }
    (ping, pong)
}

/// Merges with a shared clock.
fn merge(
    ping: PingRecorder,
    pong: PongRecorder,
    passages: Option<RoundPassages>,
) -> Result<Rounds, MergeError> {
    let here = clock("here");
    Rounds::merge(ping, pong, passages, PERIOD_NS, [&here, &here])
}

fn clock(boot: &str) -> StampClock {
    StampClock {
        boot: Some(boot.to_owned()),
        time_namespace: None,
    }
}

#[test]
fn a_round_counts_from_the_intended_time() {
    let (ping, pong) = run(100, &[3, 4]);
    let rounds = merge(ping, pong, None).unwrap();
    assert_eq!((rounds.samples(), rounds.lost()), (100, 2));
    assert_eq!(Statistics::of(rounds.rtt_ns()).median, Some(200.0));
    assert_eq!(rounds.rtt_ns().len(), 98);
    assert_eq!(Statistics::of(rounds.owd_ns()).max, Some(90.0));
    assert_eq!(rounds.owd_ns().len(), 100);
    assert_eq!(rounds.sender_late_max_us(), Some(2.0));
    assert_eq!(rounds.late_sends(), 0);
}

#[test]
fn both_ways_and_the_turnaround_are_the_round_trip() {
    let (ping, pong) = run(100, &[3, 4]);
    let silent = StampClock::default();
    let without_clocks = Rounds::merge(ping, pong, None, PERIOD_NS, [&silent; 2]).unwrap();
    let without_clocks = without_clocks.one_way();
    assert!(without_clocks.refused.unwrap().contains("is unknown"));
    assert_eq!(without_clocks.there_us, Statistics::default());

    let (ping, pong) = run(100, &[3, 4]);
    let parts = merge(ping, pong, None).unwrap().one_way();
    assert_eq!((parts.rounds, parts.refused), (98, None));
    let medians = [parts.there_us, parts.turnaround_us, parts.back_us].map(|part| part.median);
    assert_eq!(medians, [Some(90.0), Some(10.0), Some(100.0)]);
}

#[test]
fn a_ping_that_arrives_before_it_was_meant_to_leave_is_no_delay() {
    let (mut ping, pong) = run(3, &[]);
    ping.intended_ns[1] = Some(stamp(pong.received.first_ns[1].unwrap().get() + 1));
    let rounds = merge(ping, pong, None).unwrap();
    let parts = rounds.one_way();
    assert!(parts.refused.unwrap().contains("round 1"));
}

#[test]
fn a_ping_sent_after_half_its_period_is_late_and_stays_in_the_numbers() {
    let (mut ping, pong) = run(100, &[]);
    ping.sent_ns[7] = Some(stamp(
        ping.intended_ns[7].unwrap().get() + PERIOD_NS / 2 + 1,
    ));
    ping.returned.first_ns[7] = Some(stamp(ping.intended_ns[7].unwrap().get() + 900_000));
    // The pong end's timestamps move with the sending time. Otherwise the merge would find two clocks.
    let mut pong = pong;
    pong.received.first_ns[7] = ping.sent_ns[7];
    pong.replied_ns[7] = ping.sent_ns[7];
    let rounds = merge(ping, pong, None).unwrap();
    assert_eq!(rounds.late_sends(), 1);
    assert_eq!(Statistics::of(rounds.rtt_ns()).max, Some(900.0));
    assert_eq!(rounds.rtt_ns().len(), 100);
}

#[test]
fn the_cables_part_and_the_hosts_part_are_the_round_trip() {
    let (ping, pong) = run(30, &[5]);
    let passages = |delay: u64| Passages {
        arrived_ns: (0..30).map(|_| Some(stamp(1_000))).collect(),
        sent_ns: (0..30).map(|_| Some(stamp(1_000 + delay))).collect(),
    };
    let passages = RoundPassages {
        a_to_b: passages(20_000),
        b_to_a: passages(30_000),
    };
    let rounds = merge(ping, pong, Some(passages)).unwrap();
    assert_eq!(Statistics::of(rounds.cable_ns()).median, Some(50.0));
    assert_eq!(Statistics::of(rounds.host_ns()).median, Some(150.0));
    assert_eq!(rounds.cable_ns().len(), 29);
}

#[test]
fn without_stamps_of_the_cable_its_part_is_unknown() {
    let (ping, pong) = run(30, &[]);
    let rounds = merge(ping, pong, None).unwrap();
    assert_eq!(Statistics::of(rounds.cable_ns()), Statistics::default());
    assert_eq!(Statistics::of(rounds.host_ns()), Statistics::default());
}

#[test]
fn ends_with_two_clocks_have_round_trips_and_no_delays_whichever_is_ahead() {
    const HOUR_NS: u64 = 3_600_000_000_000;
    for pong_is_ahead in [true, false] {
        let (mut ping, mut pong) = run(100, &[3]);
        let ahead = |stamps: &mut Vec<Stamp>| {
            for one in stamps.iter_mut().flatten() {
                *one = stamp(one.get() + HOUR_NS);
            }
        };
        match pong_is_ahead {
            true => {
                ahead(&mut pong.received.first_ns);
                ahead(&mut pong.replied_ns);
            }
            false => {
                ahead(&mut ping.intended_ns);
                ahead(&mut ping.sent_ns);
                ahead(&mut ping.returned.first_ns);
            }
        }
        let clocks = [&clock("one"), &clock("other")];
        let rounds = Rounds::merge(ping, pong, None, PERIOD_NS, clocks).expect("round trips");
        assert_eq!((rounds.samples(), rounds.lost()), (100, 1));
        assert_eq!(Statistics::of(rounds.rtt_ns()).median, Some(200.0));
        let one_way = rounds.one_way();
        assert!(one_way.refused.expect("a reason").contains("two machines"));
        assert_eq!(
            (one_way.clock, one_way.there_us),
            (None, Statistics::default())
        );
    }
}

#[test]
fn an_end_whose_own_stamps_go_backwards_has_not_even_round_trips() {
    let clocks = [&clock("one"), &clock("other")];
    let (mut ping, pong) = run(3, &[]);
    ping.returned.first_ns[2] = Some(stamp(5));
    let of_ping = Rounds::merge(ping, pong, None, PERIOD_NS, clocks);
    assert_eq!(of_ping, Err(MergeError::SetBack(2)));
    let (ping, mut pong) = run(3, &[]);
    pong.replied_ns[1] = Some(stamp(5));
    let of_pong = Rounds::merge(ping, pong, None, PERIOD_NS, clocks);
    assert_eq!(of_pong, Err(MergeError::SetBack(1)));
}

#[test]
fn stamps_out_of_order_belie_ends_that_say_they_have_one_clock() {
    let (ping, mut pong) = run(3, &[]);
    pong.received.first_ns[1] = Some(stamp(5));
    assert_eq!(merge(ping, pong, None), Err(MergeError::NotOneClock(1)));
}

#[test]
fn stamps_of_two_runs_are_refused() {
    let ((ping, _), (_, pong)) = (run(3, &[]), run(4, &[]));
    let error = merge(ping, pong, None);
    assert_eq!(error, Err(MergeError::DifferentRuns { ping: 3, pong: 4 }));
}

fn clock_in(boot: &str, namespace: &str) -> StampClock {
    StampClock {
        time_namespace: Some(namespace.to_owned()),
        ..clock(boot)
    }
}

#[test]
fn two_processes_of_a_machine_have_one_clock() {
    let here = StampClock::of_this_process();
    let shared = here.shared_with(&here.clone()).expect("one clock");
    assert!(
        shared.contains(here.boot.as_deref().expect("a boot")),
        "{shared}"
    );
}

#[test]
fn ends_of_two_machines_or_time_namespaces_have_two_clocks() {
    let one = clock_in("a", "time:[1]");
    let why = |other: &StampClock| one.shared_with(other).expect_err("two clocks");
    assert!(why(&clock_in("b", "time:[1]")).contains("two machines"));
    assert!(why(&clock_in("a", "time:[2]")).contains("time namespaces"));
    assert!(why(&StampClock::default()).contains("is unknown"));
    let silent = StampClock::default();
    assert!(silent.shared_with(&one).is_err());
    let alike = silent.shared_with(&silent);
    assert!(
        alike.is_err(),
        "two that cannot tell are not alike: {alike:?}"
    );
}

#[test]
fn one_round_whose_parts_are_not_the_whole_takes_all_delays_with_it() {
    let whole = Parts {
        there_ns: 90,
        turnaround_ns: 10,
        back_ns: 100,
        round_trip_ns: 200,
    };
    let off = Parts {
        round_trip_ns: 201,
        ..whole
    };
    let of = |rounds: &[(usize, Option<Parts>)]| OneWay::of(&Ok(String::from("one")), rounds);
    let good = of(&[(0, Some(whole)), (2, Some(whole))]);
    assert_eq!((good.rounds, good.refused), (2, None));
    assert_eq!(good.back_us.max, Some(0.1));
    for (bad, said) in [(Some(off), "round 2"), (None, "no stamps of it")] {
        let refused = of(&[(0, Some(whole)), (2, bad)]);
        assert!(refused.refused.expect("a reason").contains(said));
        assert_eq!(refused.there_us, Statistics::default());
    }
    let endless = Parts {
        there_ns: u64::MAX,
        ..whole
    };
    assert!(of(&[(0, Some(endless))]).refused.is_some());
}
