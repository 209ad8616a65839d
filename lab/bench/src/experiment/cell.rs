//! Cell of a scenario: everything that is set for one run.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use toml::{Table, Value};

use super::What;
use crate::background_load;
use crate::cable::{self, Arbiter, Loss};
use crate::clock::now_ns;
use crate::limits::{
    MAX_FLOOD_PAYLOAD_BYTES, MAX_FLOOD_SECONDS, MAX_LATENCY_BUDGET_US, MAX_LINK_BITS_PER_S,
    MAX_QUEUE_FRAMES, MAX_RATE_HZ, MAX_READERS, MAX_RUN_SECONDS, MAX_SAMPLES, MIN_FLOOD_FACTOR,
    MIN_LINK_BITS_PER_S,
};
use crate::multicast_load;
use crate::process::Cores;
use crate::report::{
    Disturbance, Order, Place, Publisher, RATE_HZ, ReceiveWork, RunSettings, Stage, Step,
};
use crate::scenario::in_process_load::{
    LINK_BITS_PER_S, LINK_QUEUE_FRAMES, REPAIR_LOSS, REPAIR_MIN_PAYLOAD_BYTES,
};
use crate::scenario::rtt::{self, OUTLASTS_SECONDS};
use crate::scenario::throughput::{self, Reliability};
use crate::scenario::transport::{BulkReader, Lanes, Policing, Transport};
use crate::scenario::{Content, Waiting};
use crate::traffic_load::TrafficLoad as _;
use crate::traffic_source::{MIN_SAMPLE_DATAGRAM_BYTES, Target};

/// Values of one run. A scenario file sets them by these names; the defaults are those of [`Cell::default`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cell {
    /// Name of the run in tables and figures.
    pub label: Option<String>,
    /// Measured quantity.
    pub measure: What,
    /// Name of the system under test in the scenario file; by default isolane's own ends.
    pub system: Option<String>,
    /// Datapath: `udp`, `xdp`, `udp-loopback` or `memory`; a `step` has precedence. A system's arguments set its own.
    pub datapath: Datapath,
    /// Mechanisms of this step of an ablation and of all steps before it.
    pub step: Option<Step>,
    /// Order in which participants run jobs, unless a `step` sets it.
    pub order: Order,
    /// Caller of `write`; by default a thread at the place `link`, and a job at other places and in memory.
    pub publisher: Option<Publisher>,
    /// Disturbing traffic or work.
    pub disturbance: Load,
    /// Order in which the link sends waiting frames.
    pub arbiter: Arbiter,
    /// Connection of the hosts; by default that of the disturbance. An undisturbed cell without a place is measured at
    /// the place of each disturbed cell of its block.
    pub place: Option<Place>,
    /// Serialised size of a sample in bytes, without the encapsulation header.
    pub payload_bytes: u32,
    /// Pings per second, by default 2000; samples per second of a throughput run, by default as many as possible.
    pub rate_hz: Option<u32>,
    /// Duration in seconds.
    pub seconds: u32,
    /// Rate of the link in bits per second, each way; by default that of the place.
    pub link_bits_per_s: Option<u64>,
    /// Frames that may wait in the link, each way; by default that of the place.
    pub queue_frames: Option<u32>,
    /// Receive queues of the hosts' devices, 1 or 2; by default those of the place. A `step` has precedence.
    pub queues: Option<u32>,
    /// Budgets on foreign traffic and on a read flood, over lanes. A `step` has precedence.
    pub budgets: bool,
    /// Recycling: lanes drop waiting bulk before it takes a buffer that is reserved for the critical lane.
    pub recycling: bool,
    /// Bulk ring that is larger than the buffer pool, so that only recycling protects the reserve of the critical lane.
    pub overcommit: bool,
    /// Share of frames that the link loses and counts as delivered.
    pub hidden_loss: f64,
    /// Reader of a `read-flood`.
    pub bulk_reader: BulkReader,
    /// Wire rate of a flood, as a multiple of the link's rate.
    pub flood_factor: f64,
    /// UDP payload of a flood's datagrams in bytes; by default that of the samples, but not below 512.
    pub flood_payload_bytes: Option<u32>,
    /// Cores of the two ends together, 1 or 2; by default 1 at the place `link` and 2 elsewhere.
    pub cores: Option<u8>,
    /// Reliability of the measured topics; by default best effort for round trips, and reliable for throughput. Reliable
    /// topics are KEEP_ALL.
    pub reliability: Option<Reliability>,
    /// Depth of a reliable topic's history, in samples.
    pub max_samples: u16,
    /// LATENCY_BUDGET of a throughput run's topic in microseconds; 0 sends each sample at once.
    pub latency_budget_us: u64,
    /// Way in which isolane's ends wait for work. Spinning ends need a core each, and no relay: the place `pair`.
    pub waiting: Waiting,
    /// Padding of messages.
    pub content: Content,
    /// Two streams at the same time, one in each direction.
    pub both_directions: bool,
    /// Readers of a throughput run, each a process on host B.
    pub readers: u8,
    /// A busy loop on each core of a throughput run, as other load.
    pub busy: bool,
}

impl Default for Cell {
    fn default() -> Cell {
        Cell {
            label: None,
            measure: What::RoundTrips,
            system: None,
            datapath: Datapath::Udp,
            step: None,
            order: Order::Priority,
            publisher: None,
            disturbance: Load::None,
            arbiter: Arbiter::Fifo,
            place: None,
            payload_bytes: 64,
            rate_hz: None,
            seconds: 3,
            link_bits_per_s: None,
            queue_frames: None,
            queues: None,
            budgets: false,
            recycling: true,
            overcommit: false,
            hidden_loss: 0.0,
            bulk_reader: BulkReader::Drains,
            flood_factor: 1.0,
            flood_payload_bytes: None,
            cores: None,
            reliability: None,
            max_samples: 256,
            latency_budget_us: 0,
            waiting: Waiting::Sleep,
            content: Content::Zeros,
            both_directions: false,
            readers: 1,
            busy: false,
        }
    }
}

/// Datapath of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Datapath {
    /// Kernel sockets of two test hosts.
    Udp,
    /// AF_XDP lanes of two test hosts.
    Xdp,
    /// Kernel sockets on 127.0.0.1.
    UdpLoopback,
    /// Memory of one process, on one thread.
    Memory,
}

impl Datapath {
    /// Returns whether runs are made between two test hosts.
    pub fn has_hosts(self) -> bool {
        matches!(self, Datapath::Udp | Datapath::Xdp)
    }
}

/// Disturbing traffic or work of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Load {
    /// Undisturbed.
    None,
    /// [`Disturbance::Flood`].
    Flood,
    /// A flood that a bulk reader of the participants receives. Bulk lanes and budgets protect against it.
    ReadFlood,
    /// [`Disturbance::Storm`].
    Storm,
    /// [`Disturbance::Joining`].
    Joining,
    /// [`Disturbance::Bulk`].
    Bulk,
    /// [`Disturbance::Repair`].
    Repair,
    /// [`Disturbance::Large`].
    Large,
}

impl Load {
    /// Disturbance of the run.
    pub fn disturbance(self) -> Option<Disturbance> {
        Some(match self {
            Load::None => return None,
            Load::Flood | Load::ReadFlood => Disturbance::Flood,
            Load::Storm => Disturbance::Storm,
            Load::Joining => Disturbance::Joining,
            Load::Bulk => Disturbance::Bulk,
            Load::Repair => Disturbance::Repair,
            Load::Large => Disturbance::Large,
        })
    }

    fn place(self) -> Option<Place> {
        self.disturbance().map(Disturbance::place)
    }
}

/// Minimum payload of a flood's datagrams in bytes, if their size is not set. They are as long as the samples, but not
/// shorter than this: with shorter frames, one core could not run the relay and the flood's senders at the wire rate.
const MIN_FLOOD_PAYLOAD_BYTES: u32 = 512;

/// Largest share of hidden losses: more leave no round trips.
const MAX_HIDDEN_LOSS: f64 = 0.99;

/// Checks that a value is in its range. NaN is in no range.
fn within<T: PartialOrd + Display>(
    name: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), String> {
    match range.contains(&value) {
        true => Ok(()),
        false => Err(format!(
            "{name} = {value} is not within {} to {}",
            range.start(),
            range.end()
        )),
    }
}

impl Cell {
    /// All values that are set, by their names.
    pub fn values(&self) -> Table {
        Table::try_from(self).unwrap_or_default()
    }

    /// Value with this name; `None` if it is not set, or if the name is unknown.
    pub fn value(&self, name: &str) -> Option<Value> {
        self.values().remove(name)
    }

    /// Returns whether the value of this name is the level of a scenario file, which may write 1.0 as 1.
    pub(crate) fn has(&self, name: &str, level: &Value) -> bool {
        let number = |value: &Value| value.as_float().or(value.as_integer().map(|it| it as f64));
        self.value(name).is_some_and(|value| {
            value == *level || number(&value).is_some_and(|it| Some(it) == number(level))
        })
    }

    /// Replaces values that are not set by those that follow from the others, and values without an effect by their
    /// defaults, so that cells with the same runs are equal.
    pub(super) fn complete(&mut self) {
        let usual = Cell::default();
        if self.system.is_some() {
            // `check` refuses the step.
            self.datapath = usual.datapath;
            self.order = usual.order;
            self.publisher = None;
            self.latency_budget_us = usual.latency_budget_us;
            self.waiting = usual.waiting;
            self.content = usual.content;
        }
        if !self.datapath.has_hosts() {
            self.waiting = usual.waiting;
        }
        if self.measure == What::Throughput {
            if self.reliability == Some(Reliability::BestEffort) {
                self.max_samples = usual.max_samples;
            }
            // `check` refuses the disturbance and the step.
            *self = Cell {
                label: self.label.take(),
                measure: self.measure,
                system: self.system.take(),
                datapath: self.datapath,
                step: self.step,
                disturbance: self.disturbance,
                place: Some(Place::Pair),
                payload_bytes: self.payload_bytes,
                rate_hz: self.rate_hz,
                seconds: self.seconds,
                cores: self.cores.or(Some(2)),
                reliability: self.reliability.or(Some(Reliability::Reliable)),
                max_samples: self.max_samples,
                latency_budget_us: self.latency_budget_us,
                waiting: self.waiting,
                content: self.content,
                both_directions: self.both_directions && self.datapath.has_hosts(),
                readers: self.readers,
                busy: self.busy,
                ..usual
            };
            return;
        }
        self.both_directions = usual.both_directions;
        self.readers = usual.readers;
        self.busy = usual.busy;
        self.rate_hz.get_or_insert(RATE_HZ);
        self.latency_budget_us = usual.latency_budget_us;
        let reliability = self.reliability.get_or_insert(Reliability::BestEffort);
        if *reliability == Reliability::BestEffort {
            self.max_samples = usual.max_samples;
        }
        if self.step.is_some() {
            self.datapath = usual.datapath;
            self.order = usual.order;
        }
        if self.disturbance.disturbance() != Some(Disturbance::Flood) {
            self.flood_factor = usual.flood_factor;
            self.flood_payload_bytes = None;
        }
        let place = self.place();
        self.place = Some(place);
        self.cores = Some(self.cores());
        if !self.datapath.has_hosts() || place == Place::Pair {
            self.arbiter = Arbiter::Fifo;
            self.link_bits_per_s = None;
            self.queue_frames = None;
            self.hidden_loss = 0.0;
            self.queues = None;
        }
        // The hosts of a link have two queues.
        self.queues = self
            .queues
            .filter(|&queues| queues != 2 && self.step.is_none());
        let has_lanes = self.datapath() == Datapath::Xdp;
        self.budgets &= has_lanes && self.step.is_none();
        self.recycling |= !has_lanes;
        self.overcommit &= has_lanes;
        if self.disturbance != Load::ReadFlood {
            self.bulk_reader = BulkReader::Drains;
        }
        self.publisher = Some(self.publisher());
        // Explicit values that are equal to the usual ones.
        let usual = usual_link(place);
        self.link_bits_per_s
            .take_if(|rate| *rate == usual.bits_per_s);
        self.queue_frames
            .take_if(|frames| *frames == usual.queue_frames);
        let usual_bytes = self.usual_flood_payload_bytes();
        self.flood_payload_bytes
            .take_if(|bytes| *bytes == usual_bytes);
    }

    /// Place of a round-trip run; by default that of the disturbance, and the pair for spinning ends.
    pub(crate) fn place(&self) -> Place {
        let usual = match self.waiting {
            Waiting::Sleep => Place::Link,
            Waiting::Spin | Waiting::BusyPoll => Place::Pair,
        };
        self.place.or(self.disturbance.place()).unwrap_or(usual)
    }

    /// Number of cores of both ends together; by default 2 where the participants' own work disturbs, and 1 elsewhere.
    pub(crate) fn cores(&self) -> u8 {
        let usual = match self.place() {
            Place::Link | Place::Devices => 1,
            Place::FastLink | Place::Pair => 2,
        };
        self.cores.unwrap_or(usual)
    }

    /// Publisher of pings. Where the participants' own work disturbs, pings compete with it as jobs. Memory has a
    /// single thread.
    fn publisher(&self) -> Publisher {
        let is_thread = self.datapath != Datapath::Memory && self.place() == Place::Link;
        self.publisher.unwrap_or(match is_thread {
            true => Publisher::Thread,
            false => Publisher::Job,
        })
    }

    /// Datapath of a round-trip run; a step has precedence.
    fn datapath(&self) -> Datapath {
        match self.step {
            Some(step) if step >= Step::Xdp => Datapath::Xdp,
            Some(_) => Datapath::Udp,
            None => self.datapath,
        }
    }

    /// Returns whether the hosts' devices have one queue, which leaves nothing to steer: lanes share the queue's
    /// buffers.
    pub(crate) fn has_one_queue(&self) -> bool {
        self.queues == Some(1) || self.place() == Place::Pair
    }

    fn usual_flood_payload_bytes(&self) -> u32 {
        self.payload_bytes.max(MIN_FLOOD_PAYLOAD_BYTES)
    }

    /// Checks the values of a complete cell against their ranges.
    ///
    /// # Errors
    /// A text with the name of the value and its range.
    pub fn check(&self) -> Result<(), String> {
        within("seconds", self.seconds, 1..=MAX_RUN_SECONDS)?;
        within("cores", self.cores.unwrap_or(1), 1..=2)?;
        within("max_samples", self.max_samples, 1..=u16::MAX)?;
        within("queues", self.queues.unwrap_or(1), 1..=2)?;
        within("hidden_loss", self.hidden_loss, 0.0..=MAX_HIDDEN_LOSS)?;
        if self.hidden_loss > 0.0 && self.disturbance == Load::Repair {
            return Err("hidden_loss and the losses of repair exclude each other".to_owned());
        }
        if let Some(rate_hz) = self.rate_hz {
            within("rate_hz", rate_hz, 1..=MAX_RATE_HZ)?;
        }
        if self.system.is_some() && self.step.is_some() {
            return Err("a system under test has no step: leave it out".to_owned());
        }
        let refused = |why: &str| Err(why.to_owned());
        let spins = self.waiting != Waiting::Sleep;
        if spins && (self.place != Some(Place::Pair) || self.cores == Some(1)) {
            return refused(
                "waiting = spin or busy-poll needs a core each and no relay: set place = pair and cores = 2",
            );
        }
        if self.waiting == Waiting::BusyPoll && self.datapath() != Datapath::Xdp {
            return refused("waiting = busy-poll needs AF_XDP lanes: set datapath = xdp");
        }
        if self.both_directions && spins {
            return refused(
                "both_directions has two ends a core, which cannot spin: set waiting = sleep",
            );
        }
        if self.both_directions && (self.system.is_some() || self.datapath == Datapath::Xdp) {
            return refused(
                "both_directions needs isolane's ends over udp, because programs and lanes have one direction: \
                 leave out `system` and set datapath = udp",
            );
        }
        if self.readers > 1 && spins {
            return refused("readers share a core, and cannot spin: set waiting = sleep");
        }
        if self.readers > 1 && self.both_directions {
            return refused("readers are all on one host: set both_directions = false");
        }
        if self.readers > 1 && self.datapath == Datapath::Xdp {
            return refused("a queue of lanes belongs to one reader: set datapath = udp");
        }
        if self.measure == What::Throughput {
            within("readers", self.readers, 1..=MAX_READERS)?;
            let is_set = [
                ("disturbance", self.disturbance != Load::None),
                ("step", self.step.is_some()),
            ];
            if let Some((name, _)) = is_set.into_iter().find(|(_, is_set)| *is_set) {
                return Err(format!("a throughput run has no {name}: leave it out"));
            }
            let budget_us = self.latency_budget_us;
            return within("latency_budget_us", budget_us, 0..=MAX_LATENCY_BUDGET_US);
        }
        let config = self.round_trips();
        within(
            "rate_hz * seconds",
            config.samples(),
            1..=MAX_SAMPLES.into(),
        )?;
        let place = self.place();
        if matches!(place, Place::Link | Place::FastLink) {
            let cable = &config.cable;
            let rates = MIN_LINK_BITS_PER_S..=MAX_LINK_BITS_PER_S;
            within("link_bits_per_s", cable.bits_per_s, rates)?;
            let most = MAX_QUEUE_FRAMES / cable.arbiter.queues() as u32;
            within("queue_frames", cable.queue_frames, 1..=most)?;
        }
        let needs = |places: &str| {
            let disturbance = Value::try_from(self.disturbance).unwrap_or_else(|_| "".into());
            let place = Value::try_from(place).unwrap_or_else(|_| "".into());
            Err(format!(
                "disturbance = {disturbance} cannot be judged at place = {place}: its place is {places}"
            ))
        };
        match self.disturbance.disturbance() {
            Some(Disturbance::Flood | Disturbance::Storm) if place == Place::Pair => {
                needs("link or fast-link, whose frames are counted")
            }
            Some(Disturbance::Repair) if place != Place::FastLink => {
                needs("fast-link, which loses the samples")
            }
            Some(Disturbance::Flood) => {
                let flood = config.flood();
                let bytes = flood.payload_bytes;
                let least = match self.disturbance {
                    // Smaller datagrams are no samples.
                    Load::ReadFlood => MIN_SAMPLE_DATAGRAM_BYTES,
                    _ => 1,
                };
                within(
                    "flood_payload_bytes",
                    bytes,
                    least..=MAX_FLOOD_PAYLOAD_BYTES,
                )?;
                let longest = MAX_FLOOD_SECONDS - OUTLASTS_SECONDS;
                within("seconds of a flood", self.seconds, 1..=longest)?;
                let factors = MIN_FLOOD_FACTOR..=flood.max_factor();
                within("flood_factor", self.flood_factor, factors)?;
                flood.check().map_err(|error| error.to_string())
            }
            Some(Disturbance::Storm) => {
                let longest = MAX_FLOOD_SECONDS - OUTLASTS_SECONDS;
                within("seconds of a storm", self.seconds, 1..=longest)?;
                config.storm().check().map_err(|error| error.to_string())
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the cell is undisturbed and its place is not set.
    pub(super) fn is_placed_by_others(&self) -> bool {
        self.place.is_none() && self.disturbance == Load::None
    }

    /// Place of a disturbed cell.
    pub(super) fn disturbed_place(&self) -> Option<Place> {
        self.disturbance
            .place()
            .map(|usual| self.place.unwrap_or(usual))
    }

    /// Settings of a round-trip run.
    fn settings(&self) -> RunSettings {
        let mut settings = RunSettings {
            publisher: self.publisher(),
            order: self.order,
            disturbance: self.disturbance.disturbance(),
            rate_hz: self.rate_hz.unwrap_or(RATE_HZ),
            ..RunSettings::new(self.datapath().word(), self.payload_bytes)
        };
        match self.step {
            Some(step) => {
                settings.order = match step {
                    Step::OneSocket => Order::Fifo,
                    _ => Order::Priority,
                };
                settings.stages = step.stages();
                settings.receive_work = step.receive_work();
            }
            // FIFO removes all mechanisms.
            None if self.order == Order::Fifo => settings.stages.clear(),
            None => {}
        }
        if self.budgets {
            settings.stages.push(Stage::Budgets);
        }
        if self.has_one_queue() {
            settings.receive_work = ReceiveWork::Softirq;
        }
        settings
    }

    /// Loss of the link: hidden losses, or those of `repair`.
    fn loss(&self) -> Loss {
        match self.disturbance {
            _ if self.hidden_loss > 0.0 => Loss {
                probability: self.hidden_loss,
                is_hidden: true,
                ..Loss::default()
            },
            Load::Repair => Loss {
                probability: REPAIR_LOSS,
                min_payload_bytes: Some(REPAIR_MIN_PAYLOAD_BYTES),
                ..Loss::default()
            },
            _ => Loss::default(),
        }
    }

    /// Configuration of a round-trip run.
    pub fn round_trips(&self) -> rtt::Config {
        let settings = self.settings();
        let usual = usual_link(self.place());
        let transport = match self.datapath() {
            Datapath::Xdp => Transport::Xdp(Lanes {
                recycles: self.recycling,
                overcommits: self.overcommit,
                busy_polls: self.waiting == Waiting::BusyPoll,
                ..Lanes::of(&settings)
            }),
            _ => Transport::Udp,
        };
        let is_read = self.disturbance == Load::ReadFlood;
        let policing = match settings.stages.contains(&Stage::Budgets) {
            true if is_read => Policing::OF_FOREIGN.of_bulk(),
            true => Policing::OF_FOREIGN,
            false => Policing::default(),
        };
        rtt::Config {
            cell: self.clone(),
            settings,
            // The seed is unique per run, so that messages of other runs are not recognised.
            seed: now_ns(),
            cable: cable::Config {
                bits_per_s: self.link_bits_per_s.unwrap_or(usual.bits_per_s),
                queue_frames: self.queue_frames.unwrap_or(usual.queue_frames),
                arbiter: self.arbiter,
                loss: self.loss(),
                ..usual
            },
            flood: background_load::Config {
                factor: self.flood_factor,
                payload_bytes: self
                    .flood_payload_bytes
                    .unwrap_or(self.usual_flood_payload_bytes()),
                target: match is_read {
                    true => Target::Level(transport.bulk_level()),
                    false => Target::Foreign,
                },
                ..background_load::Config::default()
            },
            storm: multicast_load::Config::default(),
            repetition: 1,
            transport,
            policing,
            bulk_reader: is_read.then_some(self.bulk_reader),
            reliability: self.reliability.unwrap_or(Reliability::BestEffort),
            system: None,
        }
    }

    /// Returns whether isolane's ends need AF_XDP.
    pub fn takes_lanes(&self) -> bool {
        match self.measure {
            What::RoundTrips => self.system.is_none() && self.round_trips().takes_lanes(),
            What::Throughput => self.datapath == Datapath::Xdp,
        }
    }

    /// Configuration of a throughput run.
    pub fn throughput(&self) -> throughput::Config {
        throughput::Config {
            reliability: self.reliability.unwrap_or(Reliability::Reliable),
            max_samples: self.max_samples,
            rate_hz: self.rate_hz,
            latency_budget_us: self.latency_budget_us,
            payload_bytes: self.payload_bytes,
            waiting: self.waiting,
            content: self.content,
            both_directions: self.both_directions,
            readers: self.readers,
            busy: self.busy,
            seconds: self.seconds,
            cores: match (Cores::of_machine(), self.cores) {
                (Cores { hosts, .. }, Some(1)) => Cores {
                    hosts,
                    cable: hosts,
                },
                (cores, _) => cores,
            },
        }
    }
}

/// Link of a place, unless a cell sets another rate or queue length.
fn usual_link(place: Place) -> cable::Config {
    let usual = cable::Config::default();
    match place {
        Place::Link | Place::Devices => usual,
        Place::FastLink | Place::Pair => cable::Config {
            bits_per_s: LINK_BITS_PER_S,
            queue_frames: LINK_QUEUE_FRAMES,
            ..usual
        },
    }
}
