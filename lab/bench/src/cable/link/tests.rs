//! Tests of the link in virtual time.

use super::*;
use crate::cable::{Arbiter, Loss};
use crate::limits::MAX_QUEUE_FRAMES;
use proptest::prelude::*;

const MEGABIT: u64 = 1_000_000;

fn config() -> Config {
    Config {
        bits_per_s: 40 * MEGABIT,
        queue_frames: 4,
        ..Config::default()
    }
}

/// An arriving frame of class 0 that carries no datagram.
fn arrival<F>(at_ns: u64, frame: F, bytes: u64) -> Arrival<F> {
    Arrival {
        at_ns,
        bytes,
        class: 0,
        datagram: None,
        frame,
    }
}

/// Advances to `now_ns` and returns the numbers of the frames delivered.
fn delivered(link: &mut Link<u32>, now_ns: u64) -> Vec<u32> {
    let mut out = Vec::new();
    link.advance(now_ns, now_ns, |departure| {
        if let Departure::Deliver(frame) = departure {
            out.push(frame);
        }
    });
    out
}

#[test]
fn a_full_frame_takes_its_bits_and_overhead() {
    // 1024 bytes of UDP payload: a frame of 1066 bytes, 1090 on the wire.
    assert_eq!(wire_bytes(1066), 1090);
    assert_eq!(wire_time_ns(1066, 40 * MEGABIT), 218_000);
    // Minimum frame: 672 bit times, as on every Ethernet.
    assert_eq!(wire_time_ns(42, 1_000 * MEGABIT), 672);
}

#[test]
fn a_frame_leaves_when_its_last_bit_does() {
    let mut link = Link::new(&config(), 1).unwrap();
    link.offer(arrival(1_000, 1, 1066)).unwrap();
    assert_eq!(link.next_time_ns(), Some(219_000));
    assert!(delivered(&mut link, 218_999).is_empty());
    assert_eq!(delivered(&mut link, 219_000), [1]);
    assert_eq!(link.next_time_ns(), None);
}

#[test]
fn looking_late_does_not_slow_the_wire_and_is_recorded() {
    let mut link = Link::new(&config(), 1).unwrap();
    for frame in 0..3 {
        link.offer(arrival(0, frame, 1066)).unwrap();
    }
    assert_eq!(delivered(&mut link, 2 * 218_000 + 100_000), [0, 1]);
    assert_eq!(link.next_time_ns(), Some(3 * 218_000));
    assert_eq!(link.late_max_ns(), 218_000 + 100_000);
}

#[test]
fn a_full_queue_drops_the_newest_and_counts_it() {
    let mut link = Link::new(&config(), 1).unwrap();
    // One frame is on the wire, and four wait.
    for frame in 0..5 {
        link.offer(arrival(0, frame, 1066)).unwrap();
    }
    assert_eq!(link.offer(arrival(0, 5, 1066)), Err(5));
    let ledger = link.ledger();
    assert_eq!(
        (ledger.arrived, ledger.dropped_queue, ledger.queued),
        (6, 1, 5)
    );
    assert_eq!(ledger.imbalance(), 0);
    assert_eq!(delivered(&mut link, 5 * 218_000), [0, 1, 2, 3, 4]);
}

#[test]
fn reading_arrivals_late_changes_nothing_but_the_lateness() {
    let arrivals: Vec<u64> = (0..60).map(|number| number * number * 5_000).collect();
    let run = |held_up_ns: u64| {
        let mut link = Link::new(&config(), 1).unwrap();
        let mut out = Vec::new();
        let mut collect = |departure| out.push(departure);
        for (number, &arrived_ns) in arrivals.iter().enumerate() {
            let now_ns = arrived_ns + held_up_ns;
            link.advance(arrived_ns, now_ns, &mut collect);
            if let Err(dropped) = link.offer(arrival(arrived_ns, number, 1066)) {
                collect(Departure::Lost(dropped));
            }
        }
        link.advance(u64::MAX, 0, &mut collect);
        (out, link.late_max_ns())
    };
    let ((in_time, late), (held_up, later)) = (run(0), run(10_000_000));
    assert_eq!(in_time, held_up);
    let dropped = |departure: &Departure<usize>| matches!(departure, Departure::Lost(_));
    assert!(
        in_time.iter().any(dropped),
        "the queue never filled: {in_time:?}"
    );
    assert_eq!(later, late + 10_000_000);
}

#[test]
fn a_hidden_loss_is_booked_as_delivered_and_is_not() {
    let loss = |is_hidden| Loss {
        probability: 1.0,
        is_hidden,
        ..Loss::default()
    };
    for is_hidden in [false, true] {
        let config = Config {
            loss: loss(is_hidden),
            ..config()
        };
        let mut link = Link::new(&config, 1).unwrap();
        link.offer(arrival(0, 1, 1066)).unwrap();
        assert_eq!(delivered(&mut link, 218_000), [0; 0]);
        let ledger = link.ledger();
        assert_eq!(ledger.sent, u64::from(is_hidden));
        assert_eq!(ledger.dropped_loss, u64::from(!is_hidden));
        assert_eq!(ledger.imbalance(), 0, "the cable itself sees no fault");
    }
}

#[test]
fn a_lost_frame_used_the_wire() {
    let config = Config {
        loss: Loss {
            probability: 1.0,
            udp_port: Some(7401),
            ..Loss::default()
        },
        ..config()
    };
    let to_port = |port, frame| Arrival {
        datagram: Some(Datagram {
            port,
            payload_bytes: 1024,
        }),
        ..arrival(0, frame, 1066)
    };
    let mut link = Link::new(&config, 1).unwrap();
    link.offer(to_port(7401, 1)).unwrap();
    link.offer(to_port(7400, 2)).unwrap();
    assert_eq!(delivered(&mut link, 218_000), [0; 0]);
    assert_eq!(delivered(&mut link, 2 * 218_000), [2]);
    assert_eq!(link.ledger().dropped_loss, 1);
    assert_eq!(link.ledger().imbalance(), 0);
}

fn strict() -> Config {
    Config {
        arbiter: Arbiter::Strict,
        ..config()
    }
}

fn of_class(class: u8, at_ns: u64, frame: u32) -> Arrival<u32> {
    Arrival {
        class,
        ..arrival(at_ns, frame, 1066)
    }
}

#[test]
fn under_strict_a_critical_frame_waits_for_the_frame_on_the_wire_and_no_other() {
    let mut link = Link::new(&strict(), 1).unwrap();
    for frame in 0..5 {
        link.offer(of_class(0, 0, frame)).unwrap();
    }
    // Frame 0 is on the wire until 218 us, 1 to 4 wait.
    assert!(delivered(&mut link, 100_000).is_empty());
    link.offer(of_class(7, 100_000, 7)).unwrap();
    assert_eq!(delivered(&mut link, 2 * 218_000), [0, 7]);
    assert_eq!(delivered(&mut link, 6 * 218_000), [1, 2, 3, 4]);
    assert_eq!(link.ledger().imbalance(), 0);
}

#[test]
fn under_strict_a_full_class_loses_its_own_frames_only() {
    let mut link = Link::new(&strict(), 1).unwrap();
    for frame in 0..5 {
        link.offer(of_class(1, 0, frame)).unwrap();
    }
    assert_eq!(link.offer(of_class(1, 0, 5)), Err(5));
    for frame in 10..14 {
        assert_eq!(link.offer(of_class(7, 0, frame)), Ok(()));
    }
    assert_eq!(link.offer(of_class(7, 0, 14)), Err(14));
    assert_eq!(link.ledger().dropped_queue, 2);
    assert_eq!(
        delivered(&mut link, 9 * 218_000),
        [0, 10, 11, 12, 13, 1, 2, 3, 4]
    );
}

#[test]
fn the_longest_queue_is_divided_among_the_classes() {
    let config = |queue_frames| Config {
        queue_frames,
        ..strict()
    };
    assert_eq!(config(MAX_QUEUE_FRAMES / 8).check(), Ok(()));
    assert!(matches!(
        config(MAX_QUEUE_FRAMES / 8 + 1).check(),
        Err(ConfigError::QueueLength { .. })
    ));
}

fn in_order(arbiter: Arbiter, classes: &[u8]) -> Vec<usize> {
    let mut waiting = Waiting::new(arbiter, 8);
    for (number, &class) in classes.iter().enumerate() {
        waiting.push(class, number).unwrap();
    }
    std::iter::from_fn(|| waiting.pop()).collect()
}

#[test]
fn fifo_knows_no_classes() {
    assert_eq!(in_order(Arbiter::Fifo, &[0, 7, 3, 0]), [0, 1, 2, 3]);
}

#[test]
fn strict_takes_the_most_urgent_class_first_and_keeps_the_order_within_it() {
    assert_eq!(
        in_order(Arbiter::Strict, &[0, 7, 3, 0, 7, 3]),
        [1, 4, 2, 5, 0, 3]
    );
}

#[test]
fn bulk_fills_its_own_queue_only() {
    let mut waiting = Waiting::new(Arbiter::Strict, 2);
    for number in 0..2 {
        assert_eq!(waiting.push(0, number), Ok(()));
    }
    assert_eq!(waiting.push(0, 2), Err(2));
    assert_eq!(waiting.push(7, 3), Ok(()), "another class has room");
    assert_eq!(waiting.len(), 3);
}

/// Datagram of 100 bytes to port 7401.
const DATAGRAM: Datagram = Datagram {
    port: 7401,
    payload_bytes: 100,
};

fn lost(probability: f64, port: Option<u16>, seed: u64) -> Vec<bool> {
    let loss = Loss {
        probability,
        udp_port: port,
        ..Loss::default()
    };
    let mut fates = Fates::new(loss, seed);
    let draw = |_| fates.draw(Some(DATAGRAM)).lost;
    (0..10_000).map(draw).collect()
}

#[test]
fn a_seed_repeats_its_losses_and_another_has_others() {
    assert_eq!(lost(0.1, None, 1), lost(0.1, None, 1));
    assert_ne!(lost(0.1, None, 1), lost(0.1, None, 2));
}

#[test]
fn the_share_lost_is_the_probability() {
    let count = lost(0.1, None, 7).iter().filter(|&&lost| lost).count();
    assert!((900..1100).contains(&count), "{count} of 10000");
    assert!(lost(0.0, None, 7).iter().all(|&lost| !lost));
    assert!(lost(1.0, None, 7).iter().all(|&lost| lost));
}

#[test]
fn loss_for_one_port_spares_all_others() {
    assert!(lost(1.0, Some(7400), 1).iter().all(|&lost| !lost));
    assert!(lost(1.0, Some(7401), 1).iter().all(|&lost| lost));
}

#[test]
fn loss_of_large_datagrams_spares_small_ones_and_what_is_none() {
    let mut fates = Fates::new(
        Loss {
            probability: 1.0,
            udp_port: None,
            min_payload_bytes: Some(101),
            ..Loss::default()
        },
        1,
    );
    let large = Datagram {
        payload_bytes: 101,
        ..DATAGRAM
    };
    assert!(fates.draw(Some(large)).lost);
    assert!(!fates.draw(Some(DATAGRAM)).lost);
    assert!(!fates.draw(None).lost, "ARP, or a fragment");
}

#[test]
fn both_limits_of_a_loss_must_be_met() {
    let loss = Loss {
        probability: 1.0,
        udp_port: Some(7401),
        min_payload_bytes: Some(100),
        ..Loss::default()
    };
    let mut fates = Fates::new(loss, 1);
    let elsewhere = Datagram {
        port: 7400,
        ..DATAGRAM
    };
    let smaller = Datagram {
        payload_bytes: 99,
        ..DATAGRAM
    };
    let drawn = [DATAGRAM, elsewhere, smaller].map(|datagram| fates.draw(Some(datagram)).lost);
    assert_eq!(drawn, [true, false, false]);
}

proptest! {
    /// Invariant of `strict` for any arrivals: when a frame is transmitted, no more urgent frame waits, and no earlier
    /// frame of the same class waits.
    #[test]
    fn under_strict_no_waiting_frame_is_more_urgent_than_the_one_that_is_sent(
        arrivals in prop::collection::vec((0_u64..300_000, 0_u8..8, 60_u64..1514), 1..200),
    ) {
        let mut link = Link::new(&strict(), 1).unwrap();
        // Arrival time, class and length by frame number; departure times.
        let mut came: Vec<(u64, u8, u64)> = Vec::new();
        let mut left: Vec<(u64, u32)> = Vec::new();
        let mut now_ns = 0;
        let mut step = |link: &mut Link<u32>, to_ns: u64| {
            while let Some(next_ns) = link.next_time_ns().filter(|&next_ns| next_ns <= to_ns) {
                link.advance(next_ns, next_ns, |departure| {
                    if let Departure::Deliver(frame) = departure {
                        left.push((next_ns, frame));
                    }
                });
            }
        };
        let mut dropped = Vec::new();
        for (number, &(gap_ns, class, bytes)) in arrivals.iter().enumerate() {
            now_ns += gap_ns;
            step(&mut link, now_ns);
            came.push((now_ns, class, bytes));
            let arrival = Arrival { class, ..arrival(now_ns, number as u32, bytes) };
            dropped.extend(link.offer(arrival).err());
        }
        step(&mut link, u64::MAX);
        prop_assert_eq!(left.len() + dropped.len(), arrivals.len());
        for (at, &(left_ns, frame)) in left.iter().enumerate() {
            let (_, class, bytes) = came[frame as usize];
            let taken_ns = left_ns - wire_time_ns(bytes, config().bits_per_s);
            for &(_, later) in &left[at + 1..] {
                let (other_ns, other_class, _) = came[later as usize];
                let waited = other_ns < taken_ns;
                prop_assert!(!(waited && other_class > class), "{frame} before {later}");
                prop_assert!(!(other_class == class && later < frame), "{frame} before {later}");
            }
        }
    }

    #[test]
    fn the_ledger_balances_and_the_rate_holds(
        arrivals in prop::collection::vec((0_u64..400_000, 0_u64..1514), 1..300),
        probability in 0.0..1.0,
        seed: u64,
    ) {
        let config = Config {
            loss: Loss { probability, ..Loss::default() },
            ..config()
        };
        let mut link = Link::new(&config, seed).unwrap();
        let (mut now_ns, mut out_bits, mut out_frames) = (0, 0, 0_u64);
        for &(gap_ns, bytes) in &arrivals {
            now_ns += gap_ns;
            let _ = link.offer(arrival(now_ns, bytes, bytes));
            link.advance(now_ns, now_ns, |departure| {
                out_frames += 1;
                let (Departure::Deliver(bytes) | Departure::Lost(bytes) | Departure::Hidden(bytes)) = departure;
                out_bits += wire_bytes(bytes) * 8;
            });
            prop_assert_eq!(link.ledger().imbalance(), 0);
            // Departures never exceed the wire's rate.
            prop_assert!(out_bits as u128 * 1_000_000_000 <= u128::from(now_ns) * u128::from(config.bits_per_s));
        }
        let end_ns = now_ns + 60 * NANOS_PER_SECOND;
        link.advance(end_ns, end_ns, |_| out_frames += 1);
        let ledger = link.ledger();
        prop_assert_eq!(ledger.queued, 0);
        prop_assert_eq!(ledger.imbalance(), 0);
        prop_assert_eq!(ledger.sent + ledger.dropped_loss, out_frames);
    }
}
