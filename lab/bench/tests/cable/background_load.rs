//! Tests of the frames that the flood sends, and where they arrive.

use std::thread;
use std::time::Duration;

use isolane_bench::background_load::{self, BackgroundLoad};
use isolane_bench::cable::{self, Cable};
use isolane_bench::namespace::Host;
use isolane_bench::process::Cores;

use crate::support::{program, testbed};

#[test]
fn the_flood_reaches_its_rate_and_every_datagram_is_accounted_for() {
    let Some(testbed) = testbed() else { return };
    for factor in [0.5, 2.0] {
        let cores = Cores::of_machine();
        let cable_config = cable::Config {
            core: Some(cores.cable),
            ..cable::Config::default()
        };
        let flood_config = background_load::Config {
            factor,
            seconds: 20,
            ..background_load::Config::default()
        };
        let before = Host::BOTH.map(|host| testbed.sent_frames(host).unwrap());
        let cable = Cable::start(&testbed, &program(), &cable_config).unwrap();
        let flood = BackgroundLoad::start(&testbed, &program(), &flood_config).unwrap();
        thread::sleep(Duration::from_millis(1500));
        let flood = flood.finish().unwrap();
        let cable = cable.finish().unwrap();
        println!("factor {factor}: {flood:?}\n{cable:?}");
        assert_eq!(cable.validate(), Ok(()));
        let directions = [
            (Host::A, flood.a_to_b, cable.a_to_b.frames),
            (Host::B, flood.b_to_a, cable.b_to_a.frames),
        ];
        for ((host, flooded, relayed), before) in directions.into_iter().zip(before) {
            assert!(flooded.sent > 1000);
            // The pace is right, however often the sender stalled, because it counts the datagrams that it could not
            // send.
            let due = flooded.sent + flooded.refused + flooded.missed;
            let paced = flooded.factor * due as f64 / flooded.sent as f64;
            assert!(
                (paced / factor - 1.0).abs() < 0.05,
                "{host:?} had to send {paced} times the rate"
            );
            // Half must suffice on a core that is shared with other work.
            assert!(
                flooded.factor > 0.5 * factor,
                "{host:?} reached only {}",
                flooded.factor
            );
            let left = testbed.sent_frames(host).unwrap() - before;
            assert_eq!(
                left, relayed.arrived,
                "what left {host:?} entered the cable"
            );
            // A host sends hardly anything in addition to the flood.
            assert!(
                left - flooded.sent < 10,
                "{left} frames, {} of the flood",
                flooded.sent
            );
            let dropped = relayed.dropped_queue + flooded.overflowed;
            let other = left - flooded.sent;
            let missing = flooded.sent as i64 - flooded.received as i64 - dropped as i64;
            assert!(
                missing.unsigned_abs() <= other,
                "{missing} datagrams vanished"
            );
            if factor > 1.0 {
                assert!(relayed.dropped_queue > 0, "an overrun cable drops");
            }
        }
    }
}
