//! Tests of the frames that a storm sends, and how often they are delivered.

use std::thread;
use std::time::Duration;

use isolane_bench::cable::Cable;
use isolane_bench::multicast_load::{self, MulticastLoad};
use isolane_bench::namespace::Host;

use crate::support::{fast, program, testbed};

#[test]
fn each_frame_of_a_storm_is_delivered_to_every_socket_or_dropped_there() {
    let Some(testbed) = testbed() else { return };
    let config = multicast_load::Config {
        frames_per_s: 1_000.0,
        seconds: 20,
        ..multicast_load::Config::default()
    };
    let cable = Cable::start(&testbed, &program(), &fast()).unwrap();
    let storm = MulticastLoad::start(&testbed, &program(), &config).unwrap();
    thread::sleep(Duration::from_secs(1));
    let storm = storm.finish().unwrap();
    let cable = cable.finish().unwrap();
    assert_eq!(cable.validate(), Ok(()));
    assert_eq!(storm.check(), Ok(()));
    for direction in [storm.a_to_b, storm.b_to_a] {
        println!("{direction:?}");
        assert!(direction.sent > 100, "{direction:?}");
        // The link is faster than the storm, so all frames arrive.
        assert_eq!(direction.reached, direction.sent);
        let deliveries = direction.reached * u64::from(config.sockets);
        assert_eq!(direction.received + direction.overflowed, deliveries);
        assert!(
            direction.overflowed > 0,
            "the sockets are not read before the end"
        );
    }
}

#[test]
fn receive_work_is_put_back_when_its_threads_are_released() {
    let Some(testbed) = testbed() else { return };
    // Twice, because anything that the first run leaves behind would disturb the second.
    for _ in 0..2 {
        let threads = testbed.thread_receive_work(70).unwrap();
        let found: Vec<String> = napi_threads();
        for host in Host::BOTH {
            let name = format!("napi/{}", host.interface());
            let of_host = found.iter().filter(|thread| thread.starts_with(&name));
            assert!(of_host.count() >= 2, "{name}: {found:?}");
        }
        drop(threads);
    }
}

/// Names of the receive threads of this machine.
fn napi_threads() -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let names = processes.filter_map(|entry| {
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        Some(name.trim().to_owned())
    });
    names.filter(|name| name.starts_with("napi/")).collect()
}
