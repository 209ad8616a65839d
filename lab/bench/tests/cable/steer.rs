//! Classes that a host receives on each queue from a cable that sends the critical class on a separate queue.

use std::process::Command;

use isolane_bench::cable::{self, Arbiter, Cable, Relay};
use isolane_bench::namespace::{Host, Place, TestHosts, TestHostsConfig};
use rustix::net::sockopt::set_ip_tos;

use crate::bpf::ClassCounter;
use crate::support::{
    PORT, fast, program, receive_all, socket, sockets, testbed, testbed_with, to, with_cable,
};

const CLASSES: u32 = 8;
const OF_EACH: u64 = 20;

/// Number of datagrams that arrived at host B, by receive queue and class.
type Arrived = [[u64; CLASSES as usize]; 2];

/// Fast cable that chooses the queue of each frame.
fn steering() -> cable::Config {
    cable::Config {
        steer: true,
        ..fast()
    }
}

/// Sends datagrams of all classes in turn from A to B; returns the numbers that arrived, and the cable's report.
fn arrivals(testbed: &TestHosts, config: &cable::Config) -> (Arrived, cable::Report) {
    let (a, b) = sockets(testbed);
    let index = || rustix::net::netdevice::name_to_index(&b, Host::B.interface()).unwrap();
    let attach = || ClassCounter::attach(index()).unwrap();
    let counter = testbed.run(Host::B, attach).unwrap();
    let mut received = 0;
    let report = with_cable(testbed, config, || {
        for _ in 0..OF_EACH {
            for class in 0..CLASSES {
                set_ip_tos(&a, (class << 5) as u8).unwrap();
                a.send_to(&[class as u8; 200], to(Host::B, PORT)).unwrap();
            }
        }
        received = receive_all(&b).len() as u64;
    });
    assert_eq!(
        received,
        OF_EACH * u64::from(CLASSES),
        "with right checksums"
    );
    let count = |queue| std::array::from_fn(|class| counter.count(queue, class as u32).unwrap());
    ([count(0), count(1)], report)
}

#[test]
fn each_class_arrives_on_its_own_queue() {
    for arbiter in [Arbiter::Fifo, Arbiter::Strict] {
        let Some(testbed) = testbed() else { return };
        let config = cable::Config {
            arbiter,
            queue_frames: 1024,
            ..steering()
        };
        let (arrived, report) = arrivals(&testbed, &config);
        assert_eq!(arrived[0], [0, 0, 0, 0, 0, 0, 0, OF_EACH], "{arbiter:?}");
        let mut others = [OF_EACH; CLASSES as usize];
        others[7] = 0;
        assert_eq!(arrived[1], others, "{arbiter:?}");
        let direction = report.a_to_b;
        let [critical, bulk] = direction.sent_on_queue.unwrap();
        assert_eq!(critical, OF_EACH);
        assert_eq!(critical + bulk, direction.frames.sent);
        assert_eq!(direction.frames.refused, 0);
    }
}

/// Without the mechanism, no class has its own queue.
#[test]
fn without_steering_classes_share_a_queue() {
    let Some(testbed) = testbed() else { return };
    let config = cable::Config {
        queue_frames: 1024,
        ..fast()
    };
    let (arrived, report) = arrivals(&testbed, &config);
    let shares = |queue: &[u64; 8]| queue[7] > 0 && queue[..7].iter().any(|&count| count > 0);
    assert!(arrived.iter().any(shares), "{arrived:?}");
    assert_eq!(report.a_to_b.sent_on_queue, None);
}

#[test]
fn datagrams_of_all_lengths_pass_unchanged_both_ways() {
    let Some(testbed) = testbed() else { return };
    let config = steering();
    let sockets = Host::BOTH.map(|host| socket(&testbed, host, PORT));
    let report = with_cable(&testbed, &config, || {
        for (from, host) in sockets.iter().zip(Host::BOTH) {
            for length in [0, 1, 17, 18, 64, 1023, 1472, 5000] {
                let sent: Vec<u8> = (0..length).map(|byte| (byte * 7 + length) as u8).collect();
                from.send_to(&sent, to(host.other(), PORT)).unwrap();
                let mut buffer = [0; 8192];
                let (received, source) = sockets[host.other() as usize]
                    .recv_from(&mut buffer)
                    .unwrap();
                assert_eq!(source, to(host, PORT));
                assert_eq!(&buffer[..received], sent, "{host:?}, {length} bytes");
            }
        }
    });
    for direction in [report.a_to_b, report.b_to_a] {
        assert_eq!(direction.sent_on_queue.unwrap()[0], 0, "nothing critical");
    }
}

#[test]
fn an_overrun_cable_drops_by_its_rules_and_its_ledger_balances() {
    for arbiter in [Arbiter::Fifo, Arbiter::Strict] {
        let Some(testbed) = testbed() else { return };
        let (a, b) = sockets(&testbed);
        let config = cable::Config {
            // A full frame takes 2.2 ms.
            bits_per_s: 4_000_000,
            queue_frames: 30,
            arbiter,
            steer: true,
            ..cable::Config::default()
        };
        let (mut bulk, mut critical) = (0, 0);
        let report = with_cable(&testbed, &config, || {
            for number in 0..300 {
                let is_critical = number % 30 == 0;
                set_ip_tos(&a, if is_critical { 7 << 5 } else { 0 }).unwrap();
                a.send_to(&[u8::from(is_critical); 1024], to(Host::B, PORT))
                    .unwrap();
            }
            for datagram in receive_all(&b) {
                let count = [&mut bulk, &mut critical];
                *count[usize::from(datagram[0])] += 1;
            }
        });
        println!("{report:?}");
        let direction = report.a_to_b;
        assert!(direction.frames.dropped_queue > 200);
        assert_eq!(direction.frames.refused, 0);
        assert_eq!(direction.frames.sent, bulk + critical);
        assert_eq!(direction.sent_on_queue, Some([critical, bulk]));
        if arbiter == Arbiter::Strict {
            assert_eq!(critical, 10, "none is lost to bulk");
        }
    }
}

#[test]
fn a_device_with_one_queue_cannot_be_steered_to() {
    let config = TestHostsConfig {
        queues: 1,
        ..TestHostsConfig::default()
    };
    let Some(testbed) = testbed_with(&config) else {
        return;
    };
    let open = || Relay::open(&steering()).err().unwrap().to_string();
    let error = testbed.run(Place::Cable, open).unwrap();
    assert!(error.contains("cable-b has no queue 1"), "{error}");
}

#[test]
fn a_steering_cable_follows_one_that_was_killed() {
    let Some(testbed) = testbed() else { return };
    let config = steering();
    let (a, b) = sockets(&testbed);
    let first = Cable::start(&testbed, &program(), &config).unwrap();
    let process = first.process_id().to_string();
    let killed = Command::new("kill").args(["-9", &process]).status();
    assert!(killed.unwrap().success());
    assert!(first.finish().is_err());
    let second = Cable::start(&testbed, &program(), &config).unwrap();
    a.send_to(b"again", to(Host::B, PORT)).unwrap();
    assert_eq!(receive_all(&b), [b"again"]);
    assert_eq!(second.finish().unwrap().validate(), Ok(()));
}
