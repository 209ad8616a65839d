//! Runs of the demo.

use crate::background_load;
use crate::cable::{self, Arbiter, Loss};
use crate::clock::now_ns;
use crate::multicast_load;
use crate::report::{Disturbance, Order, Place, Publisher, ReceiveWork, Scenario, Stage, Step};
use crate::scenario::in_process_load::{
    LINK_BITS_PER_S, LINK_QUEUE_FRAMES, REPAIR_LOSS, REPAIR_MIN_PAYLOAD_BYTES,
};
use crate::scenario::rtt::Config;
use crate::scenario::transport::{BulkReader, Lanes, Policing, Transport};
use crate::traffic_source::Target;

/// Pings per second, as in Meszlényi et al.
pub const RATE_HZ: u32 = 2_000;

/// Offered rate of the demo's flood as a multiple of the cable's: the flood alone fills the wire.
pub const FLOOD_FACTOR: f64 = 1.0;

/// Minimum payload of the flood in bytes. The flood's datagrams are as long as the message, but not shorter than this.
/// With shorter frames, one core could not run the relay and the flood's senders at the wire rate. The result states
/// the payload used.
pub const MIN_FLOOD_PAYLOAD_BYTES: u32 = 512;

/// Message size in bytes of executor and receive-work runs, unless a smaller one is configured: a control value with
/// its timestamp.
pub const EXECUTOR_PAYLOAD_BYTES: u32 = 64;

/// Parts of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// FIFO link, with and without a flood.
    Link,
    /// Flood on a strict link.
    Arbiter,
    /// Heavy receive work on the hosts, with one remedy at a time.
    Lane,
    /// Disturbances inside the participants, in both job orders.
    Executor,
}

impl Part {
    /// Explanation for first-time readers, of the rows and what they show.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Part::Link => "\
What this shows. A critical topic (level 7, 2000 round trips a second) and a flood share one
network stack and one link of 40 Mbit/s, which sends frames in order of arrival. A critical sample
waits behind all frames of the flood that are already in the queue. When the queue is full, the
critical sample is dropped like any other. These rows are the problem.

The flood's datagrams have 512 B, also in runs with smaller payloads. With datagrams of 64 B, a full
link would carry more frames a second than one core can relay (on a machine of two cores such a
flood reached 0.40 of the link's rate), and a link that is not full shows nothing.",
            Part::Arbiter => "\
The strict rows have the same flood on the same link, which now sends the most urgent class first, as
a network controller with several queues does. Nothing else has changed: isolane gives every level
its own socket, UDP port and DSCP, and the link classifies frames by the DSCP. The remaining delay is
at most one frame of the flood on the wire in each direction, and the hosts' own work.",
            Part::Lane => "\
The storm rows run during a storm of short multicast datagrams (10000 a second, both directions
together). The kernel delivers each of them to 250 sockets on each host. The link has room for them;
the receiving core does not. Each row adds one mechanism: a socket for all levels; a socket a level;
the link puts critical frames into a receive queue of their own, and kernel threads serve the queues,
the critical queue's thread above the application, the other queue's thread below it; AF_XDP, which
bypasses the shared stack, with one lane for all levels; a lane a level; and budgets, beyond which the
driver drops frames before they become receive work. The last rows run during a flood for a bulk
reader of the same participants, and the budget is that reader's. Compare the hosts' part. The ratios
over all payloads are computed from this run; a row of fewer than three seconds has no separate ratio.",
            Part::Executor => "\
In the rows joining, bulk and repair, the participants' own work interferes: two hundred endpoints
that appear and leave (joining); reliable bulk in both directions at level 1 (bulk); the same bulk
with a tenth of its samples lost and repaired (repair). In FIFO order, jobs run in the order in which
they became ready, and all levels share one socket. By priority, the most urgent ready job runs next,
and each level has a socket. A priority inversion is less urgent work that started while a critical
sample was waiting. By priority there is none, whatever the load: a critical sample waits at most for
the one activation that was running. In both orders the link is fast (10000 Mbit/s), and each end has
its own core if the machine has two. The order of jobs affects the hosts' part. This part also contains
work that no order can change: the kernel's receive work, and the relay, which uses the pong end's
core for each frame that it carries. So stalls of the machine may determine p99.9 and max in either
order: compare the median and p99 of the hosts' part. The inversions are the proof.",
        }
    }
}

/// Durations of runs, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds {
    /// Duration of undisturbed and flooded runs.
    pub link: u32,
    /// Duration of runs with a disturbance inside the participants: enough samples for a p99.9.
    pub in_process: u32,
}

/// Runs of the selected parts. Runs to be compared are adjacent, so that the machine is in the same state.
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

/// Runs of the receive-work part: a storm with one remedy at a time, undisturbed runs without and with all remedies,
/// and a flood read by a bulk reader without and with a budget. They use the smallest payload and a strict link, which
/// can put classes into separate queues.
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

/// Payload of runs that use a single payload.
fn smallest(payloads: &[u32]) -> u32 {
    let smallest = payloads.iter().copied().min();
    smallest.map_or(EXECUTOR_PAYLOAD_BYTES, |smallest| {
        smallest.min(EXECUTOR_PAYLOAD_BYTES)
    })
}

/// Runs of the executor part: undisturbed and with each disturbance inside the participants, in both job orders, with
/// the smallest payload.
fn executor(payloads: &[u32], seconds: Seconds) -> Vec<Config> {
    let payload_bytes = smallest(payloads);
    let disturbances = [
        (None, seconds.link),
        (Some(Disturbance::Joining), seconds.in_process),
        (Some(Disturbance::Bulk), seconds.in_process),
        (Some(Disturbance::Repair), seconds.in_process),
    ];
    let mut rows = Vec::new();
    for (disturbance, seconds) in disturbances {
        for order in [Order::Fifo, Order::Priority] {
            let scenario = scenario("udp", Publisher::Job, payload_bytes, disturbance);
            rows.push(in_process(scenario.in_order(order), seconds));
        }
    }
    rows
}

/// Undisturbed runs of a datapath without a link.
pub fn quiet(datapath: &str, payloads: &[u32], seconds: u32) -> Vec<Config> {
    let row = |&payload_bytes: &u32| {
        let scenario = scenario(datapath, Publisher::Job, payload_bytes, None);
        config(scenario, seconds)
    };
    payloads.iter().map(row).collect()
}

/// Scenario with jobs by priority, and with lanes where the datapath has them. With lanes, the link steers each frame
/// into the queue of its lane. Otherwise the kernel would spread the frames over the queues, and frames on another
/// queue would arrive by a socket.
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

/// Run of a scenario in the place that its disturbance needs; without one, on the default link.
pub fn config(scenario: Scenario, seconds: u32) -> Config {
    let place = scenario.disturbance.map_or(Place::Link, Disturbance::place);
    in_place(place, scenario, seconds)
}

/// Run on the default link.
fn on_link(scenario: Scenario, seconds: u32) -> Config {
    let flood = background_load::Config {
        factor: FLOOD_FACTOR,
        payload_bytes: scenario.payload_bytes.max(MIN_FLOOD_PAYLOAD_BYTES),
        ..background_load::Config::default()
    };
    Config {
        transport: transport_of(&scenario),
        policing: policing_of(&scenario),
        bulk_reader: None,
        scenario,
        seconds,
        // The seed is unique per run, so that messages of other runs are not recognised.
        seed: now_ns(),
        cable: cable::Config::default(),
        flood,
        storm: multicast_load::Config::default(),
        repetition: 1,
        place: Place::Link,
    }
}

fn transport_of(scenario: &Scenario) -> Transport {
    match scenario.datapath.as_str() {
        "xdp" => Transport::Xdp(Lanes::of(scenario)),
        _ => Transport::Udp,
    }
}

/// Policing of the scenario: budgets against foreign traffic, if it includes budgets.
fn policing_of(scenario: &Scenario) -> Policing {
    match scenario.stages.contains(&Stage::Budgets) {
        true => Policing::OF_FOREIGN,
        false => Policing::default(),
    }
}

/// Run that tests the executor (see [`in_process_load`](crate::scenario::in_process_load)), with a fast link, a core
/// for each end, and the losses of `repair`.
pub fn in_process(scenario: Scenario, seconds: u32) -> Config {
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
        cable: cable::Config {
            bits_per_s: LINK_BITS_PER_S,
            queue_frames: LINK_QUEUE_FRAMES,
            loss,
            ..cable::Config::default()
        },
        place: Place::FastLink,
        ..on_link(scenario, seconds)
    }
}

/// Run that tests the executor between two hosts joined by one veth pair, without a cable.
pub fn joined(scenario: Scenario, seconds: u32) -> Config {
    // A single queue leaves nothing to steer.
    let receive_work = ReceiveWork::Softirq;
    Config {
        place: Place::Pair,
        ..in_process(
            Scenario {
                receive_work,
                ..scenario
            },
            seconds,
        )
    }
}

/// Run of a scenario in `place`.
pub fn in_place(place: Place, scenario: Scenario, seconds: u32) -> Config {
    match place {
        Place::Link => on_link(scenario, seconds),
        Place::FastLink => in_process(scenario, seconds),
        Place::Pair => joined(scenario, seconds),
        Place::Devices => Config {
            place: Place::Devices,
            ..on_link(scenario, seconds)
        },
    }
}

impl Config {
    /// Returns whether the run uses AF_XDP: lanes at the ends, or a steering link.
    pub fn takes_lanes(&self) -> bool {
        let is_steered = self.scenario.receive_work != ReceiveWork::Softirq;
        is_steered || matches!(self.transport, Transport::Xdp(_))
    }

    /// Addresses floods to a bulk reader that both ends then have, with a budget if the scenario includes budgets.
    #[must_use]
    pub fn read_as_bulk(mut self) -> Config {
        self.bulk_reader = Some(BulkReader::Drains);
        self.flood.target = Target::Level(self.transport.bulk_level());
        if !self.policing.is_off() {
            self.policing = self.policing.of_bulk();
        }
        self
    }

    /// Replaces the link's arbiter.
    pub fn through(mut self, arbiter: Arbiter) -> Config {
        self.cable.arbiter = arbiter;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Part; 4] = [Part::Link, Part::Arbiter, Part::Lane, Part::Executor];
    const SECONDS: Seconds = Seconds {
        link: 3,
        in_process: 5,
    };

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
    fn a_strict_row_follows_the_fifo_row_it_is_compared_with() {
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
