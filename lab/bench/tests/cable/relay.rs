//! Tests of the effects of the cable on frames.

use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use isolane_bench::cable::{self, Arbiter, Cable, Loss, Observe, wire_bytes};
use isolane_bench::namespace::Host;
use isolane_bench::process::Cores;
use isolane_bench::record::nonce;
use rustix::net::sockopt::set_ip_tos;

use crate::support::{
    HEADERS, PORT, fast, link, program, receive_all, socket, sockets, testbed, to, with_cable,
};

#[test]
fn datagrams_pass_unchanged_both_ways_with_their_checksums_complete() {
    let Some(testbed) = testbed() else { return };
    let sockets = Host::BOTH.map(|host| socket(&testbed, host, PORT));
    let report = with_cable(&testbed, &fast(), || {
        for (from, host) in sockets.iter().zip(Host::BOTH) {
            let to_socket = &sockets[host.other() as usize];
            for length in [0, 1, 17, 18, 19, 63, 64, 512, 1023, 1024, 1471, 1472] {
                let sent: Vec<u8> = (0..length).map(|byte| (byte * 7 + length) as u8).collect();
                from.send_to(&sent, to(host.other(), PORT)).unwrap();
                let mut buffer = [0; 2048];
                // The kernel delivers only datagrams with the right checksum.
                let (received, source) = to_socket.recv_from(&mut buffer).unwrap();
                assert_eq!(source, to(host, PORT));
                assert_eq!(&buffer[..received], sent, "{host:?}, {length} bytes");
            }
        }
    });
    for (direction, host) in [(report.a_to_b, Host::A), (report.b_to_a, Host::B)] {
        assert!(direction.frames.sent >= 12);
        let left = testbed.sent_frames(host).unwrap();
        assert_eq!(
            direction.frames.arrived, left,
            "what left {host:?} entered the cable"
        );
    }
}

#[test]
fn nothing_passes_without_a_cable() {
    let Some(testbed) = testbed() else { return };
    let (a, b) = sockets(&testbed);
    a.send_to(b"no relay for this.", to(Host::B, PORT)).unwrap();
    assert_eq!(receive_all(&b).len(), 0);
}

#[test]
fn multicast_and_fragments_are_relayed_alike() {
    let Some(testbed) = testbed() else { return };
    let group = Ipv4Addr::new(239, 255, 16, 0);
    let (a, b) = sockets(&testbed);
    with_cable(&testbed, &fast(), || {
        b.join_multicast_v4(&group, &Host::B.address()).unwrap();
        a.send_to(b"to the group", (group, PORT)).unwrap();
        a.send_to(&[3; 5000], to(Host::B, PORT)).unwrap();
        let received = receive_all(&b);
        assert_eq!(received.len(), 2);
        assert_eq!(received[0], b"to the group");
        assert_eq!(
            received[1].len(),
            2048,
            "cut by the reader, not by the cable"
        );
    });
}

#[test]
fn a_burst_takes_as_long_as_its_bits() {
    let Some(testbed) = testbed() else { return };
    let (a, b) = sockets(&testbed);
    const FRAMES: usize = 1000;
    let config = link(40_000_000, FRAMES as u32);
    let bits = FRAMES as f64 * wire_bytes(1024 + HEADERS) as f64 * 8.0;
    let ideal = bits / config.bits_per_s as f64;
    let burst = || {
        let start = Instant::now();
        for _ in 0..FRAMES {
            a.send_to(&[0; 1024], to(Host::B, PORT)).unwrap();
        }
        let mut buffer = [0; 2048];
        for _ in 0..FRAMES {
            b.recv(&mut buffer).unwrap();
        }
        start.elapsed().as_secs_f64()
    };
    let mut took = [0.0; 3];
    let report = with_cable(&testbed, &config, || took = [burst(), burst(), burst()]);
    println!("{FRAMES} frames in {took:.3?} s, ideally {ideal:.3} s");
    // On a machine that stalls, a burst takes longer, never shorter. So the shortest time is that of the wire.
    took.sort_unstable_by(f64::total_cmp);
    assert!(took[0] > 0.99 * ideal, "{took:?} s, at least {ideal} s");
    assert!(took[0] < 1.1 * ideal, "{took:?} s, ideally {ideal} s");
    assert_eq!(report.a_to_b.frames.dropped_queue, 0);
}

#[test]
fn a_full_queue_drops_the_newest_and_the_ledger_balances() {
    let Some(testbed) = testbed() else { return };
    let (a, b) = sockets(&testbed);
    // A full frame takes 8.7 ms, so the burst ends before the second frame has left.
    let config = link(1_000_000, 10);
    let mut received = Vec::new();
    let report = with_cable(&testbed, &config, || {
        for number in 0..100_u8 {
            a.send_to(&[number; 1024], to(Host::B, PORT)).unwrap();
        }
        received = receive_all(&b);
    });
    let frames = report.a_to_b.frames;
    println!("{report:?}");
    assert_eq!(frames.queued, 0);
    assert_eq!(frames.dropped_queue, frames.arrived - frames.sent);
    assert!((80..=89).contains(&frames.dropped_queue), "{frames:?}");
    let numbers: Vec<u8> = received.iter().map(|datagram| datagram[0]).collect();
    assert!(numbers.is_sorted());
    assert!(
        numbers[..10].iter().copied().eq(0..10),
        "the oldest stay: {numbers:?}"
    );
}

#[test]
fn a_cable_stopped_while_busy_counts_what_it_holds() {
    let Some(testbed) = testbed() else { return };
    let a = socket(&testbed, Host::A, 0);
    // A full frame takes 8.7 ms.
    let config = link(1_000_000, 200);
    let report = with_cable(&testbed, &config, || {
        for _ in 0..100 {
            a.send_to(&[0; 1024], to(Host::B, PORT)).unwrap();
        }
    });
    let frames = report.a_to_b.frames;
    assert_eq!(frames.arrived, 100, "unread frames: {frames:?}");
    assert!(frames.queued > 80, "{frames:?}");
}

#[test]
fn a_seed_loses_the_same_datagrams_again() {
    let Some(testbed) = testbed() else { return };
    let survivors = |seed: u64| {
        let (a, b) = sockets(&testbed);
        let spared = socket(&testbed, Host::B, PORT + 1);
        let config = cable::Config {
            loss: Loss {
                probability: 0.2,
                udp_port: Some(PORT),
                ..Loss::default()
            },
            seed,
            ..fast()
        };
        let mut arrived = Vec::new();
        let report = with_cable(&testbed, &config, || {
            for number in 0..250_u8 {
                a.send_to(&[number], to(Host::B, PORT)).unwrap();
                a.send_to(&[number], to(Host::B, PORT + 1)).unwrap();
                // Pauses so that the sockets' buffers do not overflow.
                if number % 50 == 49 {
                    thread::sleep(Duration::from_millis(5));
                }
            }
            arrived = receive_all(&b)
                .into_iter()
                .map(|datagram| datagram[0])
                .collect();
            assert_eq!(
                receive_all(&spared).len(),
                250,
                "another port lost datagrams"
            );
        });
        assert_eq!(
            report.a_to_b.frames.dropped_loss as usize,
            250 - arrived.len()
        );
        arrived
    };
    let first = survivors(11);
    assert!((170..=230).contains(&first.len()), "{} of 250", first.len());
    assert_eq!(survivors(11), first);
    assert_ne!(survivors(12), first);
}

#[test]
fn loss_of_large_datagrams_spares_small_ones_to_the_same_port() {
    let Some(testbed) = testbed() else { return };
    let (a, b) = sockets(&testbed);
    let config = cable::Config {
        loss: Loss {
            probability: 1.0,
            udp_port: None,
            min_payload_bytes: Some(1_000),
            ..Loss::default()
        },
        ..fast()
    };
    let mut lengths = Vec::new();
    let report = with_cable(&testbed, &config, || {
        for length in [999, 1_000, 64, 1_400] {
            a.send_to(&vec![0; length], to(Host::B, PORT)).unwrap();
        }
        lengths = receive_all(&b).iter().map(Vec::len).collect();
    });
    assert_eq!(lengths, [999, 64]);
    assert_eq!(report.a_to_b.frames.dropped_loss, 2);
}

/// Position at which a critical datagram arrives that is sent after twenty bulk datagrams, on a link that takes 44 ms
/// for each.
fn place_behind_bulk(arbiter: Arbiter) -> usize {
    const BULK: u8 = 20;
    const CRITICAL: u8 = 99;
    /// DSCP class selector 7, as a value of IP_TOS.
    const CLASS_7: u8 = 7 << 5;
    let Some(testbed) = testbed() else { return 1 };
    let (bulk, critical) = (socket(&testbed, Host::A, 0), socket(&testbed, Host::A, 0));
    set_ip_tos(&critical, CLASS_7).unwrap();
    let b = socket(&testbed, Host::B, PORT);
    let config = cable::Config {
        bits_per_s: 200_000,
        arbiter,
        ..cable::Config::default()
    };
    let mut arrived = Vec::new();
    let report = with_cable(&testbed, &config, || {
        for _ in 0..BULK {
            bulk.send_to(&[0; 1024], to(Host::B, PORT)).unwrap();
        }
        critical.send_to(&[CRITICAL], to(Host::B, PORT)).unwrap();
        arrived = receive_all(&b);
    });
    assert_eq!(report.a_to_b.frames.dropped_queue, 0);
    assert_eq!(arrived.len(), usize::from(BULK) + 1);
    arrived
        .iter()
        .position(|datagram| datagram[0] == CRITICAL)
        .expect("it came")
}

#[test]
fn under_strict_a_critical_frame_waits_for_at_most_one_bulk_frame() {
    // One bulk frame is on the wire. If the machine stalls while they are sent, one more may leave.
    let place = place_behind_bulk(Arbiter::Strict);
    assert!(place <= 2, "it came behind {place} bulk frames");
}

#[test]
fn under_fifo_a_critical_frame_waits_for_all_that_came_before_it() {
    if testbed().is_some() {
        assert_eq!(place_behind_bulk(Arbiter::Fifo), 20);
    }
}

#[test]
fn round_trip_messages_are_stamped_both_ways_as_a_child_process() {
    let Some(testbed) = testbed() else { return };
    let (a, b) = (
        socket(&testbed, Host::A, PORT),
        socket(&testbed, Host::B, PORT),
    );
    let config = cable::Config {
        observe: Some(Observe {
            payload_bytes: 64,
            samples: 20,
            seed: 3,
        }),
        // A frame of 146 bytes takes two milliseconds.
        bits_per_s: 680_000,
        core: Some(Cores::of_machine().cable),
        ..cable::Config::default()
    };
    let cable = Cable::start(&testbed, &program(), &config).unwrap();
    for note in cable.notes() {
        println!("note: {note}");
    }
    for id in 0..20_u32 {
        let mut message = vec![0xee; 40];
        message.extend(id.to_le_bytes());
        message.extend(nonce(3, id).to_le_bytes());
        message.resize(40 + 64, 0);
        let mut buffer = [0; 2048];
        a.send_to(&message, to(Host::B, PORT)).unwrap();
        let length = b.recv(&mut buffer).unwrap();
        b.send_to(&buffer[..length], to(Host::A, PORT)).unwrap();
        let length = a.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], message, "stamping changed the frame");
    }
    let report = cable.finish().unwrap();
    assert_eq!(report.validate(), Ok(()));
    let passages = report.passages.unwrap();
    for id in 0..20 {
        for direction in [&passages.a_to_b, &passages.b_to_a] {
            let in_cable = direction.duration_ns(id).unwrap();
            assert!(in_cable >= 2_000_000, "round {id}: {in_cable} ns");
        }
    }
}
