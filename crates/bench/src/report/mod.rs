//! Results of round-trip measurements: the schema `isolane/rtt/1` and its forms for people.
//!
//! A key that could not be obtained is null, never 0 and never left out: the structures have no
//! optional keys, only optional values. Times are microseconds, sizes bytes.

mod comparison;
mod environment;
mod histogram;
mod scenario;
mod table;
mod terminal;

use serde::{Deserialize, Serialize};

use crate::cable::{self, Arbiter};
use crate::flood;
use crate::process::Note;
use crate::record::{Rounds, Statistics};
use crate::scenario::flow::Flow;

pub use comparison::{Ratio, ratio_table, ratios};
pub use environment::Environment;
pub use histogram::{Series, histogram};
pub use scenario::{Disturbance, Order, Publisher, Scenario, Stage};
pub use table::table;
pub use terminal::{Charset, terminal_width};

/// The name of the schema and its version: a key never changes its meaning within one.
pub const SCHEMA: &str = "isolane/rtt/1";

/// A whole result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// Where it was measured.
    pub environment: Environment,
    /// Through what.
    pub cable: Cable,
    /// What was measured.
    pub runs: Vec<Run>,
    /// What was compared.
    pub ratios: Vec<Ratio>,
    /// What was asked for and has no run.
    pub missing: Vec<Missing>,
}

/// A run that was asked for and not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Which, in words.
    pub row: String,
    /// Why.
    pub why: String,
}

impl Report {
    /// A report without runs.
    pub fn new(environment: Environment, cable: &cable::Config) -> Report {
        Report {
            schema: SCHEMA.to_owned(),
            environment,
            cable: Cable {
                bits_per_s: cable.bits_per_s,
                arbiter: cable.arbiter,
                loss: cable.loss.probability,
                queue_frames: cable.queue_frames,
                seed: cable.seed,
                ingress_drops: 0,
            },
            runs: Vec::new(),
            ratios: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Takes a run in, and what the cable dropped before its own entrance in it.
    pub fn add(&mut self, run: Run) {
        if let Some(ledger) = &run.ledger {
            self.cable.ingress_drops += ledger.cable.ingress_drops();
        }
        self.runs.push(run);
    }
}

/// The cable of all runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cable {
    /// Each way.
    pub bits_per_s: u64,
    /// Which waiting frame was next.
    pub arbiter: Arbiter,
    /// The share of frames lost on purpose.
    pub loss: f64,
    /// Each way.
    pub queue_frames: u32,
    /// Of the losses.
    pub seed: u64,
    /// Frames dropped before the cable in all runs: not 0 means that a run is invalid.
    pub ingress_drops: u64,
}

/// One run: a scenario and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// See [`Scenario`].
    pub datapath: String,
    /// See [`Scenario`].
    pub stages: Vec<Stage>,
    /// See [`Scenario`].
    pub publisher: Publisher,
    /// See [`Scenario`].
    pub order: Order,
    /// See [`Scenario`].
    pub disturbance: Option<Disturbance>,
    /// Whether there was a disturbance.
    pub interference: bool,
    /// See [`Scenario`].
    pub payload_bytes: u32,
    /// See [`Scenario`].
    pub rate_hz: u32,
    /// Pings scheduled.
    pub samples: u64,
    /// Pings without a pong. They are in no percentile: read those with this number beside them.
    pub lost: u64,
    /// Pings sent more than half a period late.
    pub late_sends: u64,
    /// Messages that arrived twice.
    pub duplicates: u64,
    /// The round trip, from the intended time of sending.
    pub rtt_us: Statistics,
    /// The way there, from the intended time of sending.
    pub owd_us: Statistics,
    /// The round trip without the cable's part.
    pub host_us: Statistics,
    /// The cable's part of the round trip.
    pub cable_us: Statistics,
    /// The median of one-second windows' p99.
    pub window_p99_median_us: Option<f64>,
    /// How late the sender's timer was at most.
    pub sender_late_max_us: Option<f64>,
    /// How late the cable's timer was at most.
    pub cable_late_max_us: Option<f64>,
    /// What the analysis promised.
    pub bound_us: Option<f64>,
    /// The flood that was asked for; what it reached is in the ledger.
    pub flood: Option<FloodAsked>,
    /// Where all frames of the run went.
    pub ledger: Option<Ledger>,
    /// Where the samples of each topic went.
    pub flows: Vec<Flow>,
    /// Why this run is no result, if it is none.
    pub invalid: Option<String>,
    /// What the machine did not allow.
    pub notes: Vec<Note>,
}

/// What a flood was to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FloodAsked {
    /// Its wire rate each way, in multiples of the cable's.
    pub factor: f64,
    /// UDP payload of each of its datagrams.
    pub payload_bytes: u32,
}

/// The datagrams of a run, hop by hop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// The cable's both directions.
    pub cable: CableLedger,
    /// The flood's both directions, if there was one.
    pub flood: Option<flood::Report>,
}

/// The cable's part of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CableLedger {
    /// From host A to host B.
    pub a_to_b: cable::DirectionReport,
    /// From host B to host A.
    pub b_to_a: cable::DirectionReport,
}

impl CableLedger {
    fn ingress_drops(&self) -> u64 {
        self.a_to_b.ingress_drops + self.b_to_a.ingress_drops
    }
}

impl Run {
    /// The run of a scenario from its merged stamps, the cable's report and the flood's.
    pub fn new(
        scenario: &Scenario,
        rounds: &Rounds,
        cable: Option<&cable::Report>,
        flood: Option<flood::Report>,
    ) -> Run {
        let invalid = cable.and_then(|cable| cable.validate().err());
        Run {
            datapath: scenario.datapath.clone(),
            stages: scenario.stages.clone(),
            publisher: scenario.publisher,
            order: scenario.order,
            disturbance: scenario.disturbance,
            interference: scenario.disturbance.is_some(),
            payload_bytes: scenario.payload_bytes,
            rate_hz: scenario.rate_hz,
            samples: rounds.samples(),
            lost: rounds.lost(),
            late_sends: rounds.late_sends(),
            duplicates: rounds.duplicates(),
            rtt_us: rounds.rtt_us(),
            owd_us: rounds.owd_us(),
            host_us: rounds.host_us(),
            cable_us: rounds.cable_us(),
            window_p99_median_us: rounds.window_p99_median_us(),
            sender_late_max_us: rounds.sender_late_max_us(),
            cable_late_max_us: cable.map(|cable| cable.late_max_us),
            bound_us: scenario.bound_us,
            flood: None,
            flows: Vec::new(),
            invalid: invalid.map(|invalid| invalid.to_string()),
            notes: cable.map(|cable| cable.notes.clone()).unwrap_or_default(),
            ledger: cable.map(|cable| Ledger {
                cable: CableLedger {
                    a_to_b: cable.a_to_b,
                    b_to_a: cable.b_to_a,
                },
                flood,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{PingRecorder, PongRecorder};

    pub(super) fn scenario(payload_bytes: u32, disturbance: Option<Disturbance>) -> Scenario {
        Scenario {
            datapath: "udp".into(),
            stages: vec![Stage::Executor],
            publisher: Publisher::Job,
            order: Order::Priority,
            disturbance,
            payload_bytes,
            rate_hz: 2000,
            bound_us: None,
        }
    }

    /// A run in which nothing came back.
    pub(super) fn silent_run(disturbance: Option<Disturbance>) -> Run {
        let (ping, pong) = (PingRecorder::new(10, 1), PongRecorder::new(10, 1));
        let scenario = scenario(64, disturbance);
        let rounds = Rounds::merge(ping, pong, None, scenario.period_ns()).unwrap();
        Run::new(&scenario, &rounds, None, None)
    }

    #[test]
    fn every_promised_key_is_there_also_when_unknown() {
        let mut report = Report::new(Environment::probe(), &cable::Config::default());
        report.add(silent_run(None));
        report.ratios.push(Ratio::of_pairs("a / b", 64, []));
        let json = serde_json::to_value(&report).unwrap();
        let has = |place: &str, keys: &str| {
            let object = json.pointer(place).unwrap().as_object().unwrap();
            for key in keys.split_whitespace() {
                assert!(object.contains_key(key), "{place} lacks {key}");
            }
        };
        has("", "schema environment cable runs ratios missing");
        has(
            "/environment",
            "kernel cpu cores realtime_kernel commit command root",
        );
        has(
            "/cable",
            "bits_per_s arbiter loss queue_frames seed ingress_drops",
        );
        has(
            "/runs/0",
            "datapath stages publisher order disturbance interference payload_bytes rate_hz samples \
             lost late_sends rtt_us owd_us host_us cable_us window_p99_median_us \
             sender_late_max_us cable_late_max_us bound_us",
        );
        for series in ["rtt_us", "owd_us", "host_us", "cable_us"] {
            has(
                &format!("/runs/0/{series}"),
                "min median p99 p99_9 max mean variance",
            );
        }
        has("/ratios/0", "name payload_bytes value low high");
        assert!(json["runs"][0]["rtt_us"]["median"].is_null());
        assert!(json["runs"][0]["sender_late_max_us"].is_null());
        assert_eq!(json["runs"][0]["lost"], 10);
        assert_eq!(json["schema"], SCHEMA);
        assert_eq!(json["cable"]["arbiter"], "fifo");
    }

    #[test]
    fn a_report_survives_being_written_and_read() {
        let mut report = Report::new(Environment::probe(), &cable::Config::default());
        report.add(silent_run(Some(Disturbance::Flood)));
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }

    #[test]
    fn a_run_with_frames_dropped_before_the_cable_is_invalid() {
        let drops = cable::DirectionReport {
            ingress_drops: 3,
            ..cable::DirectionReport::default()
        };
        let cable = cable::Report {
            a_to_b: drops,
            b_to_a: cable::DirectionReport::default(),
            late_max_us: 12.0,
            passages: None,
            notes: vec![],
        };
        let (ping, pong) = (PingRecorder::new(1, 1), PongRecorder::new(1, 1));
        let rounds = Rounds::merge(ping, pong, None, 500_000).unwrap();
        let run = Run::new(&scenario(64, None), &rounds, Some(&cable), None);
        assert!(
            run.invalid
                .as_ref()
                .unwrap()
                .contains("3 frames before the cable")
        );
        let mut report = Report::new(Environment::probe(), &cable::Config::default());
        report.add(run);
        assert_eq!(report.cable.ingress_drops, 3);
    }
}
