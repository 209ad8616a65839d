//! Cell of a scenario: everything that is set for one run.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use toml::{Table, Value};

use super::What;
use crate::cable::{Arbiter, Loss};
use crate::process::Cores;
use crate::report::{Disturbance, Order, Place, Publisher, Stage, Step};
use crate::scenario::throughput::{self, Reliability};
use crate::scenario::transport::{BulkReader, Transport};
use crate::scenario::{plan, rtt};

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
    /// Name in results.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// Returns whether runs are made between two test hosts.
    pub fn has_hosts(self) -> bool {
        matches!(self, Datapath::Udp | Datapath::Xdp)
    }
}

/// Disturbing traffic or work of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    ///
    /// # Errors
    /// A value that cannot be measured.
    pub(super) fn complete(&mut self) -> Result<(), &'static str> {
        if !self.flood_factor.is_finite() {
            return Err("flood_factor is no finite number");
        }
        if !matches!(self.queues, None | Some(1 | 2)) {
            return Err("queues is neither 1 nor 2");
        }
        if !(0.0..1.0).contains(&self.hidden_loss) {
            return Err("hidden_loss is no share from 0 to less than 1");
        }
        if self.hidden_loss > 0.0 && self.disturbance == Load::Repair {
            return Err("hidden_loss and the losses of repair exclude each other");
        }
        let usual = match self.measure {
            What::RoundTrips => {
                self.rate_hz.get_or_insert(plan::RATE_HZ);
                self.reliability.get_or_insert(Reliability::BestEffort);
                self.disturbance.place().unwrap_or(Place::Link)
            }
            What::Throughput => {
                self.reliability.get_or_insert(Reliability::Reliable);
                Place::Pair
            }
        };
        let place = *self.place.get_or_insert(usual);
        self.cores
            .get_or_insert(if place == Place::Link { 1 } else { 2 });
        if !self.datapath.has_hosts() || place == Place::Pair {
            self.arbiter = Arbiter::Fifo;
            self.hidden_loss = 0.0;
            self.queues = None;
        }
        // The hosts of a link have two queues.
        self.queues = self
            .queues
            .filter(|&queues| queues == 1 && self.step.is_none());
        let has_lanes = match self.step {
            Some(step) => step >= Step::Xdp,
            None => self.datapath == Datapath::Xdp,
        };
        self.budgets &= has_lanes && self.step.is_none();
        self.recycling |= !has_lanes;
        self.overcommit &= has_lanes;
        if self.disturbance != Load::ReadFlood {
            self.bulk_reader = BulkReader::Drains;
        }
        // Where the participants' own work disturbs, pings compete with it as jobs. Memory has a single thread.
        let is_thread = self.datapath != Datapath::Memory && place == Place::Link;
        self.publisher.get_or_insert(match is_thread {
            true => Publisher::Thread,
            false => Publisher::Job,
        });
        Ok(())
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

    /// Configuration of a round-trip run.
    pub fn round_trips(&self) -> rtt::Config {
        let publisher = self.publisher.unwrap_or(Publisher::Thread);
        let disturbance = self.disturbance.disturbance();
        let datapath = self.datapath.word();
        let scenario = plan::scenario(datapath, publisher, self.payload_bytes, disturbance);
        let mut scenario = match self.step {
            Some(step) => step.of(scenario),
            None => scenario.in_order(self.order),
        };
        scenario.rate_hz = self.rate_hz.unwrap_or(plan::RATE_HZ);
        if self.budgets {
            scenario.stages.push(Stage::Budgets);
        }
        let place = self.place.unwrap_or(Place::Link);
        let mut config = plan::in_place(place, scenario, self.seconds).through(self.arbiter);
        let cable = &mut config.cable;
        cable.bits_per_s = self.link_bits_per_s.unwrap_or(cable.bits_per_s);
        cable.queue_frames = self.queue_frames.unwrap_or(cable.queue_frames);
        config.share_core = self.cores == Some(1);
        config.reliability = self.reliability.unwrap_or(Reliability::BestEffort);
        config.max_samples = self.max_samples;
        config.flood.factor = self.flood_factor;
        let flood_bytes = &mut config.flood.payload_bytes;
        *flood_bytes = self.flood_payload_bytes.unwrap_or(*flood_bytes);
        if self.hidden_loss > 0.0 {
            config.cable.loss = Loss {
                probability: self.hidden_loss,
                is_hidden: true,
                ..Loss::default()
            };
        }
        if let Transport::Xdp(lanes) = &mut config.transport {
            lanes.recycles = self.recycling;
            lanes.overcommits = self.overcommit;
        }
        if self.queues == Some(1) {
            config = config.with_one_queue();
        }
        match self.disturbance {
            Load::ReadFlood => config.read_as_bulk(self.bulk_reader),
            _ => config,
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
