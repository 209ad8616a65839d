//! Isolation measured by counters: the effect of a flood on a critical topic with all mechanisms, and without each of
//! them.
//!
//! Stalls of a machine cause any latency, but no priority inversion, no critical loss and no use of reserved buffers.
//! These are counted, and must be 0 with all mechanisms on. A companion run per mechanism, over sockets and over lanes,
//! turns that mechanism off. The mechanism's counter must then be above 0, which proves that the counter works.
//!
//! | counter | counts | mechanism | off |
//! | --- | --- | --- | --- |
//! | inversions | activations before a more urgent sample | jobs by priority, lane per level | FIFO, one lane |
//! | lost | critical round trips that did not return | strict link | FIFO link |
//! | touched | polls with fewer free buffers than reserved | recycling | no recycling |
//! | unaccounted | critical samples in no named count | every drop has a name | a link that hides losses |
//!
//! `touched` does not count the buffers that the critical lane itself took. Recycling drops bulk before it takes a
//! reserved buffer, and takes back the buffers of waiting bulk.
//!
//! The reserve is tested twice: with a share of buffers per ring, which bulk cannot exceed, and with a bulk ring larger
//! than the buffer pool, where recycling alone protects the reserve. The companion without recycling uses the larger
//! ring.
//!
//! The ledger's companion shows that the sum over all ledgers detects frames that vanish between two balanced ledgers,
//! and that the run becomes invalid. Without a strict link thousands of samples are lost, and none is unaccounted for.
//!
//! Some runs read the bulk; others do not, in two ways. Either no sample is taken from a reader, whose cache and the
//! matched writer's history fill up. Or a job at a level between bulk and critical takes all the time the critical
//! level leaves, so that the bulk lane's ring or socket fills up.

mod verdict;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::flow::Flow;
use super::plan;
use super::rtt::{self, Config};
use super::transport::{BULK_LEVEL, BulkReader, Lanes, Policing, Transport};
use crate::cable::{Arbiter, Loss};
use crate::child::Program;
use crate::namespace::{TestHosts, TestHostsConfig};
use crate::report::{Disturbance, Order, Publisher, ReceiveWork, Run, Scenario, Stage};
use crate::traffic_source::Target;

pub use verdict::Verdict;

/// Schema name and version of results: an object with `schema`, the `environment` as in `isolane/rtt/1`, `seconds` of
/// each run, and `trials`, each a [`Verdict`].
pub const SCHEMA: &str = "isolane/isolation/1";

/// Rates of the flood as multiples of the link's: one nearly fills the link, one overruns it.
pub const FACTORS: [f64; 2] = [0.9, 3.0];

/// UDP payload of the flood in bytes. Frames are long, because a relay on one core could not carry short frames at
/// three times the link's rate.
const FLOOD_PAYLOAD_BYTES: u32 = 1_400;
/// Size of the critical message in bytes.
const PAYLOAD_BYTES: u32 = 64;
/// Share of frames that a link with hidden losses loses: some 80 critical samples a second.
const HIDDEN_LOSS: f64 = 0.02;

/// A run judged by its counters.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Description of the trial.
    pub name: String,
    /// Configuration of the run.
    pub config: Config,
    /// Disabled mechanism, if the trial is a companion.
    pub without: Option<Mechanism>,
}

impl Trial {
    /// Counters that a run of this trial must have.
    pub fn counters(&self) -> Vec<Counter> {
        let reserves = matches!(self.config.transport, Transport::Xdp(_));
        let all = Counter::ALL.into_iter();
        all.filter(|counter| *counter != Counter::Touched || reserves)
            .collect()
    }
}

/// Configuration of the hosts: devices with one queue, so that lanes share its buffers and only the reserve separates
/// them.
pub fn hosts() -> TestHostsConfig {
    TestHostsConfig {
        queues: 1,
        ..TestHostsConfig::default()
    }
}

/// All trials over a transport, of `seconds` each.
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
    trials.push(with_all(what, base.in_process()));
    trials.extend(base.companions());
    trials
}

/// Common settings of a transport's trials.
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

    /// Trial with all mechanisms on.
    fn kept(self, factor: f64, reader: Option<BulkReader>) -> Trial {
        let who = match reader {
            Some(BulkReader::Drains) => "bulk that is read",
            Some(BulkReader::Keeps) => "bulk for a reader whose cache is full",
            Some(BulkReader::DoesNotDrain) => "a bulk lane that is not drained",
            None => "sockets of other programs",
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

    /// One companion for each mechanism of the transport.
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

    /// Configuration of the run that depends most on `mechanism`, with the mechanism off.
    fn without(self, mechanism: Mechanism) -> Config {
        let overrun = |reader| self.config(FACTORS[1], Some(reader));
        match mechanism {
            Mechanism::PrioritiesAndLanes => {
                let mut fifo = self.in_process();
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

    /// Configuration with an undrained lane whose ring is larger than the buffer pool.
    fn overcommitted(self) -> Config {
        let mut overcommitted = self.config(FACTORS[1], Some(BulkReader::DoesNotDrain));
        if let Transport::Xdp(lanes) = &mut overcommitted.transport {
            lanes.overcommits = true;
        }
        overcommitted
    }

    /// Scenario whose pings a job publishes. A thread's ring of 16 samples would overflow when the machine stalls for 8
    /// ms.
    fn scenario(self, disturbance: Option<Disturbance>) -> Scenario {
        Scenario {
            receive_work: ReceiveWork::Softirq,
            ..plan::scenario(self.word(), Publisher::Job, PAYLOAD_BYTES, disturbance)
        }
    }

    /// Configuration with bulk of the participants themselves, which their jobs write, send and deliver.
    fn in_process(self) -> Config {
        let bulk = Some(Disturbance::Bulk);
        let scenario = self.scenario(bulk);
        Config {
            transport: self.transport,
            ..plan::in_process(scenario, self.seconds)
        }
    }

    fn config(self, factor: f64, reader: Option<BulkReader>) -> Config {
        let mut scenario = self.scenario(Some(Disturbance::Flood));
        let mut policing = Policing::default();
        if self.has_lanes() && reader.is_none() {
            scenario.stages.push(Stage::Budgets);
            policing = Policing::OF_FOREIGN;
        }
        let mut config = plan::config(scenario, self.seconds).through(Arbiter::Strict);
        config.flood.factor = factor;
        config.flood.payload_bytes = FLOOD_PAYLOAD_BYTES;
        config.flood.target = match reader {
            Some(_) => Target::Level(BULK_LEVEL),
            None => Target::Foreign,
        };
        config.transport = self.transport;
        config.policing = policing;
        config.bulk_reader = reader;
        config
    }
}

/// Mechanism that a companion turns off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// Jobs by priority, and a lane per level. Both go together, because a single lane has a single order.
    #[strum(serialize = "jobs by priority and a lane a level")]
    PrioritiesAndLanes,
    /// Strict priority of classes on the link.
    #[strum(serialize = "a strict link")]
    StrictLink,
    /// Recycling: bulk returns buffers before it takes any reserved for the most critical lane.
    #[strum(serialize = "recycling of bulk")]
    Recycling,
    /// Named drops: the companion's link counts some lost frames as delivered.
    #[strum(serialize = "names of drops")]
    Ledger,
}

/// Isolation counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "kebab-case")]
pub enum Counter {
    /// Priority inversions of all levels at both ends.
    Inversions,
    /// Critical round trips that did not return.
    Lost,
    /// Polls at both ends that found fewer free buffers than are reserved, without counting the buffers that the
    /// critical lane itself took.
    Touched,
    /// Critical samples in no named count, summed over the hops.
    Unaccounted,
}

impl Mechanism {
    /// All mechanisms.
    pub const ALL: [Mechanism; 4] = [
        Mechanism::PrioritiesAndLanes,
        Mechanism::StrictLink,
        Mechanism::Recycling,
        Mechanism::Ledger,
    ];

    /// Counter that rises when this mechanism is off.
    pub fn counter(self) -> Counter {
        match self {
            Mechanism::PrioritiesAndLanes => Counter::Inversions,
            Mechanism::StrictLink => Counter::Lost,
            Mechanism::Recycling => Counter::Touched,
            Mechanism::Ledger => Counter::Unaccounted,
        }
    }

    /// Name in texts.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Counter {
    /// All counters in display order.
    pub const ALL: [Counter; 4] = [
        Counter::Inversions,
        Counter::Lost,
        Counter::Touched,
        Counter::Unaccounted,
    ];

    /// Display name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Counters of a run. `None`, null in results, marks a counter the run does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Counter [`Counter::Inversions`]. `None` if an end delivered samples without a receive timestamp, for which
    /// inversions cannot be detected.
    pub inversions: Option<u64>,
    /// Counter [`Counter::Lost`].
    pub lost: Option<u64>,
    /// Counter [`Counter::Touched`]. `None` if an end reserves no buffers (sockets).
    pub touched: Option<u64>,
    /// Counter [`Counter::Unaccounted`]. `None` unless samples were written in both directions.
    pub unaccounted: Option<u64>,
}

impl Counts {
    pub(super) fn of(run: &Run) -> Counts {
        let ways: Option<&[Flow; 2]> = run.flows.as_slice().try_into().ok();
        let judged = run.inversions.judged;
        let are_judged = ways.is_some_and(|[pings, pongs]| {
            judged.pong >= pings.delivered.max(1) && judged.ping >= pongs.delivered.max(1)
        });
        let are_written = ways.filter(|ways| ways.iter().all(|way| way.written > 0));
        let touched = run.lanes.as_ref().and_then(|lanes| {
            let (ping, pong) = (lanes.ping.reserve_touched, lanes.pong.reserve_touched);
            Some(ping? + pong?)
        });
        Counts {
            inversions: are_judged.then_some(run.inversions.all_levels),
            lost: (run.samples > 0).then_some(run.lost),
            touched,
            unaccounted: are_written.map(|ways| ways.iter().map(Flow::unaccounted).sum()),
        }
    }

    /// Value of one counter.
    pub fn get(&self, counter: Counter) -> Option<u64> {
        match counter {
            Counter::Inversions => self.inversions,
            Counter::Lost => self.lost,
            Counter::Touched => self.touched,
            Counter::Unaccounted => self.unaccounted,
        }
    }
}

/// Maximum number of attempts at a trial that the machine spoils, or that cannot be run.
pub const TRIES: u32 = 3;

/// Completed trial.
pub struct Made {
    /// Verdict of the last attempt.
    pub verdict: Verdict,
    /// Measurements of the last attempt; `None` if it could not be run.
    pub run: Option<Run>,
}

impl Trial {
    /// Runs the trial between two hosts, up to [`TRIES`] times, until an attempt is not spoilt by the machine. Calls
    /// `thrown_away` with the number and verdict of each discarded attempt.
    pub fn make(
        &self,
        testbed: &TestHosts,
        program: &Program,
        mut thrown_away: impl FnMut(u32, &Verdict),
    ) -> Made {
        let mut attempt = 1;
        loop {
            let outcome = rtt::run_between_hosts(testbed, program, &self.config);
            let made = match outcome {
                Ok(outcome) => Made {
                    verdict: self.judge(&outcome.run),
                    run: Some(outcome.run),
                },
                Err(error) => Made {
                    verdict: self.not_made(&error),
                    run: None,
                },
            };
            let counts = made.run.as_ref().is_some_and(|run| !self.is_spoilt(run));
            if counts || attempt == TRIES {
                return made;
            }
            thrown_away(attempt, &made.verdict);
            attempt += 1;
        }
    }
}
