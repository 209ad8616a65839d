//! Isolation shown by counters instead of times: what a flood does to a critical topic, and what it
//! would do without each of the mechanisms that keep it away.
//!
//! A machine that stands still now and then makes any latency possible; it makes no priority
//! inversion, loses no critical sample and takes no reserved buffer. So these are counted, and are 0
//! with all mechanisms on. That the counters count is shown, over sockets and over lanes, by a companion
//! for each: a run of its own with the one mechanism off, in which it is above 0.
//!
//! | counter | what it counts | mechanism | off |
//! | --- | --- | --- | --- |
//! | inversions | less urgent activations begun while a more urgent sample waited | jobs by priority, a lane a level | jobs as they became ready, one lane for all levels |
//! | lost | critical round trips that did not come back | a link that sends the most urgent class first | a link that sends frames as they came |
//! | touched | looks that found fewer buffers free than are reserved, without those that the critical lane had taken | recycling: bulk is dropped before it takes one of them, and what waits is taken back | neither |
//! | unaccounted | critical samples in no count with a name | every drop has a name | a link that loses some frames and books them as handed over |
//!
//! The reserve is shown twice: where each ring has its share of buffers bulk cannot take it; where bulk's ring takes
//! more than there are, recycling alone keeps it, and its companion has the same rings and buffers.
//!
//! The last companion shows what the sum over the ledgers is worth: frames that vanish between two books
//! which are each in order are noticed, by the same sum that is 0 otherwise, and the run as a whole is marked
//! invalid. That what isolane and the kernel drop has a name is shown by the others: without a strict link
//! thousands are lost, and none is unaccounted for.
//!
//! Bulk is read in some runs and not drained in others, in the two ways there are. From a reader nobody takes
//! a sample: its cache is full, then the history of the writer that it is matched with. Or nobody gets to the
//! lane: a job of the participants between the two levels takes all the time that the critical one leaves, so
//! that ring or socket are full.

mod attempts;
mod counter;
mod verdict;

use crate::cable::{Arbiter, Loss};
use crate::namespace::TestbedConfig;
use crate::report::{Disturbance, Order, Publisher, ReceiveWork, Scenario, Stage};
use crate::scenario::plan;
use crate::scenario::rtt::Config;
use crate::scenario::transport::{BULK_LEVEL, BulkReader, Lanes, Policing, Transport};
use crate::target::Target;

pub use attempts::{Made, TRIES};
pub use counter::{Counter, Counts, Mechanism};
pub use verdict::Verdict;

/// The schema of its results, and its version: an object with `schema`, the `environment` as in
/// `isolane/rtt/1`, `seconds` of each run, and `trials`, of which each is a [`Verdict`].
pub const SCHEMA: &str = "isolane/isolation/1";

/// Rates of the flood, in multiples of the link's: it fills the link, and overruns it.
pub const FACTORS: [f64; 2] = [0.9, 3.0];

/// UDP payload of the flood: long frames, or a relay on one core could not carry three times its rate.
const FLOOD_PAYLOAD_BYTES: u32 = 1_400;
/// The critical message.
const PAYLOAD_BYTES: u32 = 64;
/// The share of frames that a link loses which does not say so: of a second's round trips, a hundred or so.
const HIDDEN_LOSS: f64 = 0.02;

/// A run that is judged by its counters.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// What it is, in words.
    pub name: String,
    /// How it is made.
    pub config: Config,
    /// What is off in it, if it is a companion.
    pub without: Option<Mechanism>,
}

impl Trial {
    /// The counters that a run of it must have.
    pub fn counters(&self) -> Vec<Counter> {
        let reserves = matches!(self.config.transport, Transport::Xdp(_));
        let all = Counter::ALL.into_iter();
        all.filter(|counter| *counter != Counter::Touched || reserves)
            .collect()
    }
}

/// The hosts of trials: devices of one queue, so that lanes share its buffers, and nothing but the reserve
/// keeps them apart.
pub fn hosts() -> TestbedConfig {
    TestbedConfig {
        queues: 1,
        ..TestbedConfig::default()
    }
}

/// All trials over a transport, of so many seconds each.
pub fn trials(transport: Transport, seconds: u32) -> Vec<Trial> {
    let mut trials = Vec::new();
    let base = Base { transport, seconds };
    for factor in FACTORS {
        for reader in BulkReader::ALL {
            trials.push(base.kept(factor, Some(reader)));
        }
    }
    trials.push(base.kept(FACTORS[1], None));
    let with_all = |what: &str, config| Trial {
        name: format!("{}: {what}", base.word()),
        config,
        without: None,
    };
    if base.has_lanes() {
        let factor = FACTORS[1];
        let what =
            format!("flood at {factor} times the rate, for a bulk lane with too few buffers");
        trials.push(with_all(&what, base.overcommitted()));
    }
    let what = "bulk of the participants themselves";
    trials.push(with_all(what, base.inside()));
    trials.extend(base.companions());
    trials
}

/// What all trials of a transport have in common.
#[derive(Clone, Copy)]
struct Base {
    transport: Transport,
    seconds: u32,
}

impl Base {
    fn word(self) -> &'static str {
        match self.transport {
            Transport::Udp => "udp",
            Transport::Xdp(_) => "xdp",
        }
    }

    fn has_lanes(self) -> bool {
        matches!(self.transport, Transport::Xdp(_))
    }

    /// All mechanisms are on.
    fn kept(self, factor: f64, reader: Option<BulkReader>) -> Trial {
        let who = match reader {
            Some(BulkReader::Drains) => "bulk that is read",
            Some(BulkReader::Keeps) => "bulk beside a full reader",
            Some(BulkReader::DoesNotDrain) => "a bulk lane nobody drains",
            None => "ports of strangers",
        };
        Trial {
            name: format!(
                "{}: flood at {factor} times the rate, for {who}",
                self.word()
            ),
            config: self.config(factor, reader),
            without: None,
        }
    }

    /// A run without each mechanism that the transport has.
    fn companions(self) -> Vec<Trial> {
        let has = |mechanism: &Mechanism| match mechanism {
            Mechanism::Recycling => self.has_lanes(),
            Mechanism::PrioritiesAndLanes | Mechanism::StrictLink | Mechanism::Ledger => true,
        };
        let those = Mechanism::ALL.into_iter().filter(has);
        those
            .map(|mechanism| Trial {
                name: format!("{}: without {}", self.word(), mechanism.name()),
                config: self.without(mechanism),
                without: Some(mechanism),
            })
            .collect()
    }

    /// The run of those with all mechanisms that leans most on this one, with it off.
    fn without(self, mechanism: Mechanism) -> Config {
        let overrun = |reader| self.config(FACTORS[1], Some(reader));
        match mechanism {
            Mechanism::PrioritiesAndLanes => {
                let mut fifo = self.inside();
                fifo.scenario = fifo.scenario.in_order(Order::Fifo);
                if let Transport::Xdp(lanes) = &mut fifo.transport {
                    lanes.shared_level = Lanes::of(&fifo.scenario).shared_level;
                }
                fifo
            }
            Mechanism::StrictLink => overrun(BulkReader::Drains).through(Arbiter::Fifo),
            Mechanism::Recycling => {
                let mut unrecycled = self.overcommitted();
                if let Transport::Xdp(lanes) = &mut unrecycled.transport {
                    lanes.recycles = false;
                }
                unrecycled
            }
            Mechanism::Ledger => {
                let mut unnamed = overrun(BulkReader::Drains);
                unnamed.cable.loss = Loss {
                    probability: HIDDEN_LOSS,
                    is_hidden: true,
                    ..Loss::default()
                };
                unnamed
            }
        }
    }

    /// A lane that nobody drains, whose ring takes more buffers than there are.
    fn overcommitted(self) -> Config {
        let mut overcommitted = self.config(FACTORS[1], Some(BulkReader::DoesNotDrain));
        if let Transport::Xdp(lanes) = &mut overcommitted.transport {
            lanes.overcommits = true;
        }
        overcommitted
    }

    /// Published by a job, not a thread: a thread's ring of 16 samples is full when the machine stands
    /// still for 8 ms.
    fn scenario(self, disturbance: Option<Disturbance>) -> Scenario {
        Scenario {
            receive_work: ReceiveWork::Softirq,
            ..plan::scenario(self.word(), Publisher::Job, PAYLOAD_BYTES, disturbance)
        }
    }

    /// Bulk is the participants' own: jobs that write it, send it and hand it to callbacks.
    fn inside(self) -> Config {
        let bulk = Some(Disturbance::Bulk);
        let scenario = self.scenario(bulk);
        Config {
            transport: self.transport,
            ..plan::inside(scenario, self.seconds)
        }
    }

    fn config(self, factor: f64, reader: Option<BulkReader>) -> Config {
        let mut scenario = self.scenario(Some(Disturbance::Flood));
        let mut policing = Policing::default();
        if self.has_lanes() && reader.is_none() {
            scenario.stages.push(Stage::Budgets);
            policing = Policing::OF_STRANGERS;
        }
        let mut config = plan::config(scenario, self.seconds).through(Arbiter::Strict);
        config.flood.factor = factor;
        config.flood.payload_bytes = FLOOD_PAYLOAD_BYTES;
        config.flood.target = match reader {
            Some(_) => Target::Level(BULK_LEVEL),
            None => Target::Strangers,
        };
        config.transport = self.transport;
        config.policing = policing;
        config.bulk_reader = reader;
        config
    }
}
