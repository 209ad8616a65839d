//! Which runs the demo makes.

use crate::cable;
use crate::clock::now_ns;
use crate::flood;
use crate::report::{Disturbance, Order, Publisher, Scenario, Stage};
use crate::scenario::rtt::Config;

/// Pings a second, as in paper 000.
pub const RATE_HZ: u32 = 2_000;

/// What the demo's flood offers, in multiples of the cable's rate: the wire is full with it alone,
/// and the critical topic comes on top.
pub const FLOOD_FACTOR: f64 = 1.0;

/// The flood's payload is the message's (definitions), but not below this: of shorter frames the wire
/// takes more a second than one core relays (about 30,000, both ways together, on the two-core machine
/// this was first run on: a flood of 64 B reached 0.40 of the wire), and a wire that is not full shows
/// nothing. The result says which payload it was.
pub const MIN_FLOOD_PAYLOAD_BYTES: u32 = 512;

/// The rows of the demo: each payload, published by a thread and by a job, without and with the flood.
/// The two of a pair run one after the other, so that they are measured on the same machine.
pub fn demo(payloads: &[u32], seconds: u32) -> Vec<Config> {
    let mut rows = Vec::new();
    for publisher in [Publisher::Thread, Publisher::Job] {
        for &payload_bytes in payloads {
            for disturbance in [None, Some(Disturbance::Flood)] {
                let scenario = scenario("udp", publisher, payload_bytes, disturbance);
                rows.push(config(scenario, seconds));
            }
        }
    }
    rows
}

/// Undisturbed rows of a datapath that nothing can be put between.
pub fn quiet(datapath: &str, payloads: &[u32], seconds: u32) -> Vec<Config> {
    let row = |&payload_bytes: &u32| {
        let scenario = scenario(datapath, Publisher::Job, payload_bytes, None);
        config(scenario, seconds)
    };
    payloads.iter().map(row).collect()
}

/// A scenario as this version has it: sockets, and jobs by priority.
pub fn scenario(
    datapath: &str,
    publisher: Publisher,
    payload_bytes: u32,
    disturbance: Option<Disturbance>,
) -> Scenario {
    Scenario {
        datapath: datapath.to_owned(),
        stages: vec![Stage::Executor],
        publisher,
        order: Order::Priority,
        disturbance,
        payload_bytes,
        rate_hz: RATE_HZ,
        bound_us: None,
    }
}

/// A run of a scenario through the usual cable.
pub fn config(scenario: Scenario, seconds: u32) -> Config {
    let flood = flood::Config {
        factor: FLOOD_FACTOR,
        payload_bytes: scenario.payload_bytes.max(MIN_FLOOD_PAYLOAD_BYTES),
        ..flood::Config::default()
    };
    Config {
        scenario,
        seconds,
        // Differs from run to run: a message of another one is not taken for this one's.
        seed: now_ns(),
        cable: cable::Config::default(),
        flood,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_measures_each_payload_by_thread_and_job_without_and_with_the_flood() {
        let rows = demo(&[64, 512, 1024], 5);
        assert_eq!(rows.len(), 12);
        for pair in rows.chunks(2) {
            let [quiet, loaded] = pair else {
                unreachable!()
            };
            assert_eq!(quiet.scenario.disturbance, None);
            assert_eq!(loaded.scenario.disturbance, Some(Disturbance::Flood));
            assert_eq!(quiet.scenario.payload_bytes, loaded.scenario.payload_bytes);
            assert_eq!(quiet.scenario.publisher, loaded.scenario.publisher);
        }
        assert!(rows.iter().all(|row| row.check().is_ok()));
    }
}
