//! Which runs the demo makes.

use crate::cable::{self, Arbiter, Loss};
use crate::clock::now_ns;
use crate::flood;
use crate::report::{Disturbance, Order, Place, Publisher, ReceiveWork, Scenario, Stage, Step};
use crate::scenario::inside::{
    LINK_BITS_PER_S, LINK_QUEUE_FRAMES, REPAIR_LOSS, REPAIR_MIN_PAYLOAD_BYTES,
};
use crate::scenario::rtt::Config;
use crate::scenario::transport::{BulkReader, Lanes, Policing, Transport};
use crate::storm;
use crate::target::Target;

/// Pings a second, as in paper 000.
pub const RATE_HZ: u32 = 2_000;

/// What the demo's flood offers, in multiples of the cable's rate: the wire is full with it alone,
/// and the critical topic comes on top.
pub const FLOOD_FACTOR: f64 = 1.0;

/// The flood's payload is the message's (definitions), but not below this: of shorter frames the wire
/// takes more a second than one core relays, beside the flood's own senders, and a wire that is not full
/// shows nothing. The result says which payload it was.
pub const MIN_FLOOD_PAYLOAD_BYTES: u32 = 512;

/// The message of rows about the executor and about receive work, unless a smaller one is asked for: a control value with
/// its time stamp.
pub const EXECUTOR_PAYLOAD_BYTES: u32 = 64;

/// Parts of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Without and with a flood, on a link that serves frames as they came.
    Link,
    /// The flood again, on a link that serves the most urgent class first.
    Arbiter,
    /// Heavy receive work on the hosts, and one remedy at a time.
    Lane,
    /// Disturbed from inside the participants, in both orders of jobs.
    Executor,
}

/// How long runs last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds {
    /// Undisturbed, or beside a flood.
    pub link: u32,
    /// Disturbed from inside: as many samples as a p99.9 takes.
    pub inside: u32,
}

/// The rows of these parts of the demo. What is compared runs one after the other, so that it is
/// measured on the same machine.
pub fn demo(parts: &[Part], payloads: &[u32], seconds: Seconds) -> Vec<Config> {
    let mut rows = Vec::new();
    let has = |part| parts.contains(&part);
    for publisher in [Publisher::Thread, Publisher::Job] {
        let with_strict = has(Part::Arbiter) && publisher == Publisher::Thread;
        if !has(Part::Link) && !with_strict {
            continue;
        }
        for &payload_bytes in payloads {
            let row = |disturbance, arbiter| {
                let scenario = scenario("udp", publisher, payload_bytes, disturbance);
                config(scenario, seconds.link).through(arbiter)
            };
            rows.push(row(None, Arbiter::Fifo));
            rows.push(row(Some(Disturbance::Flood), Arbiter::Fifo));
            if with_strict {
                rows.push(row(Some(Disturbance::Flood), Arbiter::Strict));
            }
        }
    }
    if has(Part::Lane) {
        rows.extend(lane(payloads, seconds.link));
    }
    if has(Part::Executor) {
        rows.extend(executor(payloads, seconds));
    }
    rows
}

/// Beside a storm, one remedy at a time, and undisturbed without and with all of them; then beside a flood
/// that a bulk reader of the participants gets, without and with its budget. With the smallest payload, on
/// a link that serves the most urgent class first: it can tell classes apart, so it can put them into
/// queues of their own.
fn lane(payloads: &[u32], seconds: u32) -> Vec<Config> {
    let storm = Some(Disturbance::Storm);
    let flood = Some(Disturbance::Flood);
    let rows = [
        (None, Step::SocketALevel),
        (None, Step::Budgets),
        (storm, Step::OneSocket),
        (storm, Step::SocketALevel),
        (storm, Step::NapiPriorities),
        (storm, Step::Xdp),
        (storm, Step::Lane),
        (storm, Step::Budgets),
        (flood, Step::SocketALevel),
        (flood, Step::Lane),
        (flood, Step::Budgets),
    ];
    let row = |(disturbance, step): (Option<Disturbance>, Step)| {
        let payload_bytes = smallest(payloads);
        let scenario = scenario("udp", Publisher::Thread, payload_bytes, disturbance);
        let row = config(step.of(scenario), seconds).through(Arbiter::Strict);
        match disturbance == flood {
            true => row.read_as_bulk(),
            false => row,
        }
    };
    rows.into_iter().map(row).collect()
}

/// The payload of rows that are measured with one.
fn smallest(payloads: &[u32]) -> u32 {
    let smallest = payloads.iter().copied().min();
    smallest.map_or(EXECUTOR_PAYLOAD_BYTES, |smallest| {
        smallest.min(EXECUTOR_PAYLOAD_BYTES)
    })
}

/// Disturbed from inside, and undisturbed beside it, in both orders, with the smallest payload.
fn executor(payloads: &[u32], seconds: Seconds) -> Vec<Config> {
    let payload_bytes = smallest(payloads);
    let disturbances = [
        (None, seconds.link),
        (Some(Disturbance::Joining), seconds.inside),
        (Some(Disturbance::Bulk), seconds.inside),
        (Some(Disturbance::Repair), seconds.inside),
    ];
    let mut rows = Vec::new();
    for (disturbance, seconds) in disturbances {
        for order in [Order::Fifo, Order::Priority] {
            let scenario = scenario("udp", Publisher::Job, payload_bytes, disturbance);
            rows.push(inside(scenario.in_order(order), seconds));
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

/// A scenario with jobs by priority, and with lanes where the datapath has them: then the link puts frames
/// into the queue that their lane is on. A link that does not spreads them over the device's queues as
/// the kernel likes, and what arrives on another queue comes by a socket.
pub fn scenario(
    datapath: &str,
    publisher: Publisher,
    payload_bytes: u32,
    disturbance: Option<Disturbance>,
) -> Scenario {
    Scenario {
        datapath: datapath.to_owned(),
        stages: match datapath {
            "xdp" => vec![Stage::Executor, Stage::Xdp, Stage::Lanes],
            _ => vec![Stage::Executor],
        },
        receive_work: match datapath {
            "xdp" => ReceiveWork::Steered,
            _ => ReceiveWork::Softirq,
        },
        publisher,
        order: Order::Priority,
        disturbance,
        payload_bytes,
        rate_hz: RATE_HZ,
        bound_us: None,
    }
}

/// A run of a scenario where its disturbance is at home; undisturbed, on the usual link.
pub fn config(scenario: Scenario, seconds: u32) -> Config {
    let place = scenario.disturbance.map_or(Place::Link, Disturbance::place);
    in_place(place, scenario, seconds)
}

/// A run on the usual link.
fn on_link(scenario: Scenario, seconds: u32) -> Config {
    let flood = flood::Config {
        factor: FLOOD_FACTOR,
        payload_bytes: scenario.payload_bytes.max(MIN_FLOOD_PAYLOAD_BYTES),
        ..flood::Config::default()
    };
    Config {
        transport: transport_of(&scenario),
        policing: policing_of(&scenario),
        bulk_reader: None,
        scenario,
        seconds,
        // Differs from run to run: a message of another one is not taken for this one's.
        seed: now_ns(),
        cable: cable::Config::default(),
        flood,
        storm: storm::Config::default(),
        repetition: 1,
        place: Place::Link,
    }
}

/// What the scenario's datapath is made of.
fn transport_of(scenario: &Scenario) -> Transport {
    match scenario.datapath.as_str() {
        "xdp" => Transport::Xdp(Lanes::of(scenario)),
        _ => Transport::Udp,
    }
}

/// What receivers are protected with: where there are budgets, from strangers.
fn policing_of(scenario: &Scenario) -> Policing {
    match scenario.stages.contains(&Stage::Budgets) {
        true => Policing::OF_STRANGERS,
        false => Policing::default(),
    }
}

/// A run about the executor (see [`inside`](crate::scenario::inside)): a fast link, a core for each
/// end, and the losses that `repair` repairs.
pub fn inside(scenario: Scenario, seconds: u32) -> Config {
    let loss = match scenario.disturbance {
        Some(Disturbance::Repair) => Loss {
            probability: REPAIR_LOSS,
            udp_port: None,
            min_payload_bytes: Some(REPAIR_MIN_PAYLOAD_BYTES),
            ..Loss::default()
        },
        _ => Loss::default(),
    };
    Config {
        transport: transport_of(&scenario),
        policing: policing_of(&scenario),
        bulk_reader: None,
        scenario,
        seconds,
        seed: now_ns(),
        cable: cable::Config {
            bits_per_s: LINK_BITS_PER_S,
            queue_frames: LINK_QUEUE_FRAMES,
            loss,
            ..cable::Config::default()
        },
        flood: flood::Config::default(),
        storm: storm::Config::default(),
        repetition: 1,
        place: Place::FastLink,
    }
}

/// A run about the executor between two hosts that one veth pair joins, without a cable.
pub fn joined(scenario: Scenario, seconds: u32) -> Config {
    // One queue has no other to steer to.
    let receive_work = ReceiveWork::Softirq;
    Config {
        place: Place::Pair,
        ..inside(
            Scenario {
                receive_work,
                ..scenario
            },
            seconds,
        )
    }
}

/// A run of a scenario in that place.
pub fn in_place(place: Place, scenario: Scenario, seconds: u32) -> Config {
    match place {
        Place::Link => on_link(scenario, seconds),
        Place::FastLink => inside(scenario, seconds),
        Place::Pair => joined(scenario, seconds),
        Place::Devices => Config {
            place: Place::Devices,
            ..on_link(scenario, seconds)
        },
    }
}

impl Config {
    /// Whether it takes AF_XDP: lanes at the ends, or a link that puts frames into the queue of their class.
    pub fn takes_lanes(&self) -> bool {
        let is_steered = self.scenario.receive_work != ReceiveWork::Softirq;
        is_steered || matches!(self.transport, Transport::Xdp(_))
    }

    /// The same with what floods meant for a bulk reader of the participants, which both ends have then;
    /// where there are budgets, it has one.
    #[must_use]
    pub fn read_as_bulk(mut self) -> Config {
        self.bulk_reader = Some(BulkReader::Drains);
        self.flood.target = Target::Level(self.transport.bulk_level());
        if !self.policing.is_off() {
            self.policing = self.policing.of_bulk();
        }
        self
    }

    /// The same through a link with that arbiter.
    pub fn through(mut self, arbiter: Arbiter) -> Config {
        self.cable.arbiter = arbiter;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Part; 4] = [Part::Link, Part::Arbiter, Part::Lane, Part::Executor];
    const SECONDS: Seconds = Seconds { link: 3, inside: 5 };

    #[test]
    fn the_link_is_measured_by_thread_and_job_without_and_with_the_flood() {
        let rows = demo(&[Part::Link], &[64, 512, 1024], SECONDS);
        assert_eq!(rows.len(), 12);
        for pair in rows.chunks(2) {
            let [quiet, loaded] = pair else {
                unreachable!()
            };
            assert_eq!(quiet.scenario.disturbance, None);
            assert_eq!(loaded.scenario.disturbance, Some(Disturbance::Flood));
            assert_eq!(quiet.scenario.payload_bytes, loaded.scenario.payload_bytes);
            assert_eq!(quiet.scenario.publisher, loaded.scenario.publisher);
            assert_eq!(loaded.cable.arbiter, Arbiter::Fifo);
        }
    }

    #[test]
    fn a_strict_row_stands_beside_the_fifo_row_it_is_compared_with() {
        let rows = demo(&[Part::Arbiter], &[64, 512], SECONDS);
        assert_eq!(rows.len(), 6);
        for three in rows.chunks(3) {
            let arbiters = three.iter().map(|row| row.cable.arbiter);
            assert!(arbiters.eq([Arbiter::Fifo, Arbiter::Fifo, Arbiter::Strict]));
            assert_eq!(three[1].scenario, three[2].scenario);
        }
    }

    #[test]
    fn each_disturbance_inside_is_measured_in_both_orders_on_the_same_link() {
        let rows = demo(&[Part::Executor], &[1024, 512], SECONDS);
        assert_eq!(rows.len(), 8);
        for pair in rows.chunks(2) {
            assert_eq!(pair[0].scenario.order, Order::Fifo);
            assert!(pair[0].scenario.stages.is_empty());
            assert_eq!(pair[1].scenario.order, Order::Priority);
            assert_eq!(pair[0].cable, pair[1].cable);
            assert!(pair.iter().all(|row| row.place == Place::FastLink));
            assert!(pair.iter().all(|row| row.scenario.payload_bytes == 64));
        }
        assert_eq!(rows[7].cable.loss.probability, REPAIR_LOSS);
    }

    #[test]
    fn receive_work_is_shown_with_one_remedy_more_in_each_row() {
        let rows = demo(&[Part::Lane], &[1024, 64], SECONDS);
        let stages: Vec<usize> = rows[2..]
            .iter()
            .map(|row| row.scenario.stages.len())
            .collect();
        assert_eq!(stages, [0, 1, 1, 2, 3, 4, 1, 3, 4]);
        let (quiet, disturbed) = rows.split_at(2);
        assert!(quiet.iter().all(|row| row.scenario.disturbance.is_none()));
        let (storm, flood) = disturbed.split_at(6);
        let is_storm = |row: &Config| row.scenario.disturbance == Some(Disturbance::Storm);
        assert!(storm.iter().all(is_storm));
        assert!(storm.iter().all(|row| row.bulk_reader.is_none()));
        let is_read = |row: &Config| row.bulk_reader == Some(BulkReader::Drains);
        assert!(flood.iter().all(is_read));
        let are_policed: Vec<bool> = flood
            .iter()
            .map(|row| row.policing.bulk.is_some())
            .collect();
        assert_eq!(are_policed, [false, false, true]);
        assert!(rows.iter().all(|row| row.scenario.payload_bytes == 64));
        assert!(rows.last().is_some_and(|row| !row.policing.is_off()));
    }

    #[test]
    fn every_row_of_the_demo_can_be_measured() {
        for payload in [12, 64, 1400] {
            let rows = demo(&ALL, &[payload], SECONDS);
            assert_eq!(rows.len(), 3 + 2 + 11 + 8);
            assert!(rows.iter().all(|row| row.check().is_ok()));
        }
    }

    #[test]
    fn a_message_that_repair_would_lose_is_refused() {
        let of_size = |bytes| {
            let repair = Some(Disturbance::Repair);
            config(scenario("udp", Publisher::Job, bytes, repair), 1)
        };
        assert_eq!(of_size(960).check(), Ok(()));
        assert!(of_size(961).check().is_err());
    }
}
