//! Isolation shown by counters instead of times: what a flood does to a critical topic, and what it
//! would do without each of the mechanisms that keep it away.
//!
//! A machine that stands still now and then makes any latency possible; it makes no priority
//! inversion, loses no critical sample and takes no reserved buffer. So these are counted, and are 0
//! with all mechanisms on. That the counters count is shown by a companion for each, with the one
//! mechanism off, in which it is above 0.
//!
//! | counter | what it counts | mechanism |
//! | --- | --- | --- |
//! | inversions | less urgent activations begun while a more urgent sample waited | jobs by priority, a lane a level |
//! | lost | critical round trips that did not come back | a link that sends the most urgent class first |
//! | touched | looks that found fewer buffers free than are reserved | the critical reserve |
//! | unaccounted | datagrams in no count with a name | the ledgers: every drop has a name |

use serde::{Deserialize, Serialize};

use crate::cable::Arbiter;
use crate::namespace::TestbedConfig;
use crate::report::{Disturbance, Order, Publisher, ReceiveWork, Run, Scenario, Stage};
use crate::scenario::flow::Flow;
use crate::scenario::rtt::Config;
use crate::scenario::transport::{BULK_LEVEL, BulkReader, Lanes, Policing, Transport};
use crate::scenario::{ScenarioError, plan};
use crate::target::Target;

/// The schema of its results, and its version.
pub const SCHEMA: &str = "isolane/isolation/1";

/// Rates of the flood, in multiples of the link's: it fills the link, and overruns it.
pub const FACTORS: [f64; 2] = [0.9, 3.0];

/// UDP payload of the flood: long frames, or a relay on one core could not carry three times its rate.
const FLOOD_PAYLOAD_BYTES: u32 = 1_400;
/// The critical message.
const PAYLOAD_BYTES: u32 = 64;

/// What is switched off in a companion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// Jobs by priority, and a lane a level.
    Priorities,
    /// The link's strict order of classes.
    StrictLink,
    /// Buffers reserved for the most critical lane.
    Reserve,
    /// Drops have names: the same run is counted again without them.
    Ledger,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counter {
    /// Priority inversions, of all levels at both ends.
    Inversions,
    /// Critical round trips that did not come back.
    Lost,
    /// Looks at both ends that found fewer buffers free than are reserved.
    Touched,
    /// Datagrams in no count with a name.
    Unaccounted,
}

impl Mechanism {
    /// What counts when it is off.
    pub fn counter(self) -> Counter {
        match self {
            Mechanism::Priorities => Counter::Inversions,
            Mechanism::StrictLink => Counter::Lost,
            Mechanism::Reserve => Counter::Touched,
            Mechanism::Ledger => Counter::Unaccounted,
        }
    }

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Priorities => "jobs by priority",
            Mechanism::StrictLink => "a strict link",
            Mechanism::Reserve => "the critical reserve",
            Mechanism::Ledger => "names of drops",
        }
    }
}

impl Counter {
    /// All, in the order they are shown in.
    pub const ALL: [Counter; 4] = [
        Counter::Inversions,
        Counter::Lost,
        Counter::Touched,
        Counter::Unaccounted,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Inversions => "inversions",
            Counter::Lost => "lost",
            Counter::Touched => "touched",
            Counter::Unaccounted => "unaccounted",
        }
    }
}

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

/// The counters of a run. `None`: the run has nothing of the kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// See [`Counter::Inversions`].
    pub inversions: Option<u64>,
    /// See [`Counter::Lost`].
    pub lost: Option<u64>,
    /// See [`Counter::Touched`].
    pub touched: Option<u64>,
    /// See [`Counter::Unaccounted`].
    pub unaccounted: Option<u64>,
}

impl Counts {
    /// One of them.
    pub fn get(&self, counter: Counter) -> Option<u64> {
        match counter {
            Counter::Inversions => self.inversions,
            Counter::Lost => self.lost,
            Counter::Touched => self.touched,
            Counter::Unaccounted => self.unaccounted,
        }
    }
}

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// What it is, in words.
    pub name: String,
    /// What was off in it, if it is a companion.
    pub without: Option<Mechanism>,
    /// What was counted.
    pub counts: Counts,
    /// Critical round trips scheduled.
    pub samples: u64,
    /// Datagrams of the flood that reached the link, or samples of the participants' own bulk, both ways.
    pub bulk: u64,
    /// Why it does not show what it is there to show; null: it does.
    pub fault: Option<String>,
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
        for reader in [BulkReader::Drains, BulkReader::DoesNotDrain] {
            trials.push(base.kept(factor, Some(reader)));
        }
    }
    trials.push(base.kept(FACTORS[1], None));
    trials.push(Trial {
        name: format!(
            "{}: a bulk topic of the participants themselves",
            base.word()
        ),
        config: base.inside(),
        without: None,
    });
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

    /// All mechanisms are on.
    fn kept(self, factor: f64, reader: Option<BulkReader>) -> Trial {
        let who = match reader {
            Some(BulkReader::Drains) => "a bulk topic that is read",
            Some(BulkReader::DoesNotDrain) => "a bulk lane that nobody reads",
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

    fn companions(self) -> Vec<Trial> {
        let without = |mechanism: Mechanism, config: Config| Trial {
            name: format!("{}: without {}", self.word(), mechanism.name()),
            config,
            without: Some(mechanism),
        };
        let overrun = || self.config(FACTORS[1], Some(BulkReader::Drains));
        match self.transport {
            Transport::Udp => {
                let mut fifo = self.inside();
                fifo.scenario = fifo.scenario.in_order(Order::Fifo);
                let as_they_came = overrun().through(Arbiter::Fifo);
                vec![
                    without(Mechanism::Priorities, fifo),
                    without(Mechanism::StrictLink, as_they_came.clone()),
                    without(Mechanism::Ledger, as_they_came),
                ]
            }
            Transport::Xdp(lanes) => {
                let mut unreserved = self.config(FACTORS[1], Some(BulkReader::DoesNotDrain));
                unreserved.transport = Transport::Xdp(Lanes {
                    keeps_reserve: false,
                    ..lanes
                });
                vec![without(Mechanism::Reserve, unreserved)]
            }
        }
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
        if matches!(self.transport, Transport::Xdp(_)) && reader.is_none() {
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

impl Trial {
    /// Judges a run of it.
    pub fn judge(&self, run: &Run) -> Verdict {
        let counts = counts(self, run);
        let ledger = run.ledger.as_ref();
        let flood = ledger.and_then(|ledger| ledger.flood.as_ref());
        let of_flood = flood.map(|flood| flood.a_to_b.sent + flood.b_to_a.sent);
        let inside = run.disturbed.and_then(|disturbed| disturbed.bulk_delivered);
        let bulk = of_flood.or(inside).unwrap_or(0);
        let fault = run
            .invalid
            .clone()
            .or_else(|| (bulk == 0).then(|| "there was no bulk".to_owned()))
            .or_else(|| self.fault(&counts));
        Verdict {
            name: self.name.clone(),
            without: self.without,
            counts,
            samples: run.samples,
            bulk,
            fault,
        }
    }

    /// Of a trial that could not be made.
    pub fn not_made(&self, why: &ScenarioError) -> Verdict {
        Verdict {
            name: self.name.clone(),
            without: self.without,
            counts: Counts::default(),
            samples: 0,
            bulk: 0,
            fault: Some(why.to_string()),
        }
    }

    /// What the counters say against it.
    fn fault(&self, counts: &Counts) -> Option<String> {
        let Some(mechanism) = self.without else {
            let above = |counter: &Counter| counts.get(*counter).is_some_and(|count| count > 0);
            let above: Vec<&str> = Counter::ALL
                .iter()
                .filter(|counter| above(counter))
                .map(|counter| counter.name())
                .collect();
            return (!above.is_empty()).then(|| format!("above 0: {}", above.join(", ")));
        };
        let counter = mechanism.counter();
        match counts.get(counter) {
            Some(1..) => None,
            _ => Some(format!(
                "{} is not above 0 without {}: it counts nothing",
                counter.name(),
                mechanism.name()
            )),
        }
    }
}

fn counts(trial: &Trial, run: &Run) -> Counts {
    let is_bare = trial.config.bulk_reader == Some(BulkReader::DoesNotDrain);
    let touched = run.lanes.as_ref().and_then(|lanes| {
        let (ping, pong) = (lanes.ping.reserve_touched, lanes.pong.reserve_touched);
        Some(ping? + pong?)
    });
    let counts_names = trial.without != Some(Mechanism::Ledger);
    let flows = run.flows.iter();
    Counts {
        // Without an executor nothing is begun.
        inversions: (!is_bare).then_some(run.inversions.all_levels),
        lost: Some(run.lost),
        touched,
        unaccounted: Some(flows.map(|flow| unaccounted(flow, counts_names)).sum()),
    }
}

/// Samples of a flow that are in no count with a name; or, if names do not count, all that were written
/// and not delivered.
fn unaccounted(flow: &Flow, counts_names: bool) -> u64 {
    if !counts_names {
        return flow.offered.saturating_sub(flow.delivered);
    }
    let dropped = flow.cable.map_or(0, |cable| cable.dropped);
    let named = flow.refused + flow.unsent + flow.send_refused + dropped + flow.receive_dropped;
    let ended = named + flow.duplicates + flow.rejected + flow.delivered;
    flow.offered.abs_diff(ended)
}
