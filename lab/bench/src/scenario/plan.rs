//! Configurations of round-trip runs from their scenarios.

use crate::background_load;
use crate::cable::{self, Arbiter, Loss};
use crate::clock::now_ns;
use crate::multicast_load;
use crate::report::{Disturbance, Order, Place, Publisher, ReceiveWork, Scenario, Stage};
use crate::scenario::in_process_load::{
    LINK_BITS_PER_S, LINK_QUEUE_FRAMES, REPAIR_LOSS, REPAIR_MIN_PAYLOAD_BYTES,
};
use crate::scenario::rtt::Config;
use crate::scenario::throughput::Reliability;
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
        share_core: true,
        reliability: Reliability::BestEffort,
        max_samples: 256,
        system: None,
        queues: None,
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
        share_core: false,
        ..on_link(scenario, seconds)
    }
}

/// Run that tests the executor between two hosts joined by one veth pair, without a cable.
pub fn joined(scenario: Scenario, seconds: u32) -> Config {
    let config = Config {
        place: Place::Pair,
        ..in_process(scenario, seconds)
    };
    config.with_one_queue()
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

    /// Gives the hosts devices with one queue, which leaves nothing to steer: lanes share the queue's buffers.
    #[must_use]
    pub fn with_one_queue(mut self) -> Config {
        self.queues = Some(1);
        self.scenario.receive_work = ReceiveWork::Softirq;
        if let Transport::Xdp(lanes) = &mut self.transport {
            lanes.are_steered = false;
        }
        self
    }

    /// Addresses floods to a bulk reader that both ends then have, with a budget if the scenario includes budgets.
    #[must_use]
    pub fn read_as_bulk(mut self, reader: BulkReader) -> Config {
        self.bulk_reader = Some(reader);
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
