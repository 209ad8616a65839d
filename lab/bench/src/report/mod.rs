//! Results of round-trip measurements: the schema `isolane/rtt/1` and its text and HTML forms.
//!
//! An unavailable value is null, never 0 and never left out: the structures have no optional keys, only optional
//! values. Times are microseconds, sizes bytes.

mod bars;
mod compare;
mod csv;
mod environment;
mod expectation;
mod page;
mod result_comparison;
mod run;
mod settings;
mod step;
mod system_state;
mod table;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cable::{self, Arbiter};
use crate::experiment;

pub use bars::wrapped;
pub(crate) use compare::words;
pub use compare::{Measure, Of, Ratio, Series, parts_of_ratios, ratios};
pub use csv::csv;
pub use environment::{Clock, Environment, origin};
pub use expectation::{Counter, Counters, Expectations, Expected, TRIES};
pub use page::page;
pub use result_comparison::{
    COMPARISON_SCHEMA, CellComparison, MeasuredResult, ResultComparison, StatisticComparison,
    Verdict, compare_results, comparison_text,
};
pub use run::{
    BackgroundLoadSettings, CableLedger, Counted, Distributions, Disturbed, EndLanes, EndUsage,
    Inversions, Lanes, Ledger, MulticastLoadSettings, Run, RunCores, Stream, Took, Windows,
};
pub(crate) use settings::RATE_HZ;
pub use settings::{Disturbance, Order, Place, Publisher, ReceiveWork, RunSettings, Stage};
pub use step::Step;
pub use system_state::{Frequencies, Softirqs, SystemActivity, SystemTimes};
pub use table::{aligned, text};

/// Schema name and version. A key never changes its meaning within a version.
pub const SCHEMA: &str = "isolane/rtt/1";

/// Schema of a result with throughput runs, whose [`Run::stream`] is set.
pub const STREAM_SCHEMA: &str = "isolane/throughput/2";

/// Schemas of a [`Report`].
const SCHEMAS: [&str; 2] = [SCHEMA, STREAM_SCHEMA];

/// Complete result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Schema name, [`SCHEMA`] or [`STREAM_SCHEMA`].
    pub schema: String,
    /// Environment of the measurement; of the first session, if it was resumed.
    pub environment: Environment,
    /// Environments of the sessions that resumed the measurement.
    #[serde(default)]
    pub resumed: Vec<Environment>,
    /// Scenario of the measurement, after options.
    pub scenario: experiment::Scenario,
    /// SHA-256 of the scenario's file in hexadecimal digits, before options changed it.
    pub scenario_sha256: String,
    /// Systems under test, each with the version that its program prints.
    #[serde(default)]
    pub systems: BTreeMap<String, String>,
    /// False until all runs have ended, and after an interruption.
    pub is_complete: bool,
    /// Cable of the first run; each run also has its own. The drops are the sum over all runs.
    pub cable: Cable,
    /// Completed runs.
    pub runs: Vec<Run>,
    /// Comparisons between runs.
    pub ratios: Vec<Ratio>,
    /// Requested runs without a result.
    pub missing: Vec<Missing>,
    /// Runs not attempted, because this machine does not support them.
    pub left_out: Vec<Missing>,
}

/// Reasons why a text is no report of this version.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The text is no JSON.
    #[error("it is no JSON: {0}")]
    Json(serde_json::Error),
    /// The text has another schema.
    #[error("its schema is {0}, and only {SCHEMA} can be read here")]
    Schema(String),
    /// Members are missing.
    #[error(
        "it was written by an earlier build{built}, and has no {}. Measure again, or read it with that build",
        .members.join(", ")
    )]
    Earlier {
        /// Names of the missing members.
        members: Vec<&'static str>,
        /// " of commit ...", if the text has the commit.
        built: String,
    },
    /// A member is not of this version.
    #[error(
        "it was written by another build{built}: {why}. Measure again, or read it with that build"
    )]
    Member {
        /// Reason, with the name of the member.
        why: serde_json::Error,
        /// " of commit ...", if the text has the commit.
        built: String,
    },
}

/// Members of a report, except those with a default.
const MEMBERS: [&str; 9] = [
    "environment",
    "scenario",
    "scenario_sha256",
    "is_complete",
    "cable",
    "runs",
    "ratios",
    "missing",
    "left_out",
];

/// Values without repetitions, in their order.
pub(crate) fn unique<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut unique = Vec::new();
    for value in values {
        if !unique.contains(&value) {
            unique.push(value);
        }
    }
    unique
}

/// Requested run without a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Description of the run.
    pub row: String,
    /// Reason.
    pub why: String,
}

impl Report {
    /// Creates a report without runs.
    pub fn new(scenario: experiment::Scenario, scenario_sha256: String) -> Report {
        Report {
            schema: SCHEMA.to_owned(),
            environment: Environment::probe(),
            resumed: Vec::new(),
            scenario,
            scenario_sha256,
            systems: BTreeMap::new(),
            is_complete: false,
            cable: Cable::of(&cable::Config::default()),
            runs: Vec::new(),
            ratios: Vec::new(),
            missing: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Parses a report.
    pub fn parse(text: &[u8]) -> Result<Report, ReportError> {
        let error = match serde_json::from_slice::<Report>(text) {
            Ok(report) if SCHEMAS.contains(&report.schema.as_str()) => return Ok(report),
            Ok(report) => return Err(ReportError::Schema(report.schema)),
            Err(error) => error,
        };
        let json: serde_json::Value = serde_json::from_slice(text).map_err(ReportError::Json)?;
        let schema = json["schema"].as_str();
        if !schema.is_some_and(|schema| SCHEMAS.contains(&schema)) {
            return Err(ReportError::Schema(schema.unwrap_or("missing").to_owned()));
        }
        let commit = json["environment"]["commit"].as_str();
        let built = commit.map_or_else(String::new, |commit| format!(" of commit {commit}"));
        let is_missing = |name: &&str| json.get(name).is_none();
        let members: Vec<_> = MEMBERS.into_iter().filter(is_missing).collect();
        Err(match members.is_empty() {
            true => ReportError::Member { why: error, built },
            false => ReportError::Earlier { members, built },
        })
    }

    /// Adds a run and its ingress drops.
    pub fn add(&mut self, run: Run) {
        if let (true, Some(cable)) = (self.runs.is_empty(), &run.cable) {
            self.cable = Cable {
                ingress_drops: 0,
                ..cable.clone()
            };
        }
        if let Some(ledger) = &run.ledger {
            self.cable.ingress_drops += ledger.cable.ingress_drops();
        }
        self.runs.push(run);
    }

    /// Returns whether the run's block expects values of counters.
    pub(crate) fn is_judged(&self, run: &Run) -> bool {
        let block = run.block.and_then(|index| self.scenario.blocks.get(index));
        block.is_some_and(|block| !block.expect.is_empty())
    }

    /// Word and reason for a run that is no result, or not as its block expects.
    pub fn fault<'a>(&self, run: &'a Run) -> Option<(&'static str, &'a str)> {
        match (&run.unexpected, &run.invalid) {
            (Some(why), _) => Some(("NOT AS EXPECTED", why)),
            (None, Some(why)) if !self.is_judged(run) => Some(("INVALID", why)),
            _ => None,
        }
    }
}

/// Cable configuration, and the number of frames dropped before the cable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cable {
    /// Rate of each direction, in bits per second.
    pub bits_per_s: u64,
    /// Arbiter of the link.
    pub arbiter: Arbiter,
    /// Share of frames lost by the seeded loss.
    pub loss: f64,
    /// Minimum payload in bytes of UDP datagrams subject to loss; null for any frame.
    pub loss_min_payload_bytes: Option<u32>,
    /// Queue length of each direction in frames, per class under `strict`.
    pub queue_frames: u32,
    /// Seed of the losses.
    pub seed: u64,
    /// Frames dropped before the cable. A value above 0 means that a run is invalid.
    pub ingress_drops: u64,
}

impl Cable {
    /// Report of an unused cable with this configuration.
    pub fn of(config: &cable::Config) -> Cable {
        Cable {
            bits_per_s: config.bits_per_s,
            arbiter: config.arbiter,
            loss: config.loss.probability,
            loss_min_payload_bytes: config.loss.min_payload_bytes,
            queue_frames: config.queue_frames,
            seed: config.seed,
            ingress_drops: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Cell;
    use crate::record::{PingRecorder, PongRecorder, Rounds, StampClock};

    /// Rounds of both recorders, with unknown clocks.
    pub(super) fn rounds(ping: PingRecorder, pong: PongRecorder, period_ns: u64) -> Rounds {
        Rounds::merge(ping, pong, None, period_ns, [&StampClock::default(); 2]).unwrap()
    }

    /// Run in which no ping returned.
    pub(super) fn silent_run(disturbance: Option<Disturbance>) -> Run {
        let (ping, pong) = (PingRecorder::new(10, 1), PongRecorder::new(10, 1));
        let settings = RunSettings {
            disturbance,
            ..RunSettings::new("udp", 64)
        };
        let rounds = rounds(ping, pong, settings.period_ns());
        Run::new(&settings, &rounds, None)
    }

    /// Scenario with one block of these factors.
    pub(super) const ORDERS: &str = r#"
        title = "orders"
        [[block]]
        name = "orders"
        title = "Two orders"
        set = { publisher = "job" }
        factor = [
            { name = "disturbance", levels = ["none", "bulk"] },
            { name = "order", levels = ["fifo", "priority"] },
        ]
        compare = [{ factor = "disturbance", pairs = [["bulk", "none"]] }]
    "#;

    /// Report of a scenario whose round trips took 200 us, and every fiftieth the time that `slow_us` gives its cell.
    pub(super) fn report(text: &str, slow_us: impl Fn(&Cell) -> u64) -> Report {
        const SAMPLES: u32 = 6_000;
        let scenario = experiment::Scenario::parse(text).expect("a scenario");
        let planned = scenario.plan(true).expect("runs");
        let mut report = Report::new(scenario, "0".repeat(64));
        let mut series = Vec::new();
        for planned in planned {
            let settings = planned.cell.round_trips().settings;
            let (mut ping, pong) = (PingRecorder::new(SAMPLES, 1), PongRecorder::new(SAMPLES, 1));
            for id in 0..SAMPLES {
                let start_ns = 1 + u64::from(id) * settings.period_ns();
                let rtt_us = match id % 50 {
                    0 => slow_us(&planned.cell),
                    _ => 200,
                };
                ping.sent(id, start_ns, start_ns);
                ping.returned(id, ping.nonce(id), start_ns + rtt_us * 1_000);
            }
            let rounds = rounds(ping, pong, settings.period_ns());
            let mut run = Run::new(&settings, &rounds, None);
            run.number = planned.number;
            run.block = Some(planned.block);
            run.repetition = planned.repetition;
            run.cell = Some(planned.cell);
            report.add(run);
            series.push(Series::of(planned.number, &rounds, &[Of::Rtt, Of::Host]));
        }
        let times = |number, of| Series::find(&series, number, of);
        report.ratios = ratios(&report.scenario, &report.runs, times);
        report.is_complete = true;
        report
    }

    fn empty() -> Report {
        let scenario = experiment::Scenario::parse(ORDERS).expect("a scenario");
        Report::new(scenario, "0".repeat(64))
    }

    #[test]
    fn every_promised_key_is_there_also_when_unknown() {
        let mut report = empty();
        report.add(silent_run(None));
        report.ratios = self::report(ORDERS, |_| 300).ratios;
        let json = serde_json::to_value(&report).unwrap();
        let has = |place: &str, keys: &str| {
            let object = json.pointer(place).unwrap().as_object().unwrap();
            for key in keys.split_whitespace() {
                assert!(object.contains_key(key), "{place} lacks {key}");
            }
        };
        has(
            "",
            "schema environment resumed scenario scenario_sha256 is_complete cable runs ratios missing left_out",
        );
        has(
            "/environment",
            "kernel cpu cores realtime_kernel commit command root began clock",
        );
        has("/environment/clock", "source is_kept");
        has(
            "/cable",
            "bits_per_s arbiter loss queue_frames seed ingress_drops",
        );
        has(
            "/runs/0",
            "number block cell datapath stages receive_work publisher order disturbance interference payload_bytes rate_hz samples \
             lost late_sends rtt_us owd_us one_way host_us cable_us window_p99_median_us \
             sender_late_max_us cable_late_max_us bound_us cable cores inversions kernel_late disturbed \
             windows distribution remarks storm repetition took_s system counters unexpected",
        );
        has(
            "/runs/0/one_way",
            "clock refused rounds there_us turnaround_us back_us",
        );
        has("/runs/0/inversions", "ping pong total all_levels");
        has("/runs/0/kernel_late", "ping pong total");
        for series in ["rtt_us", "owd_us", "host_us", "cable_us"] {
            has(
                &format!("/runs/0/{series}"),
                "min median p99 p99_9 max mean variance",
            );
        }
        has(
            "/ratios/0",
            "name payload_bytes value low high block factor levels at of measure disturbance pairs",
        );
        assert_eq!(json["ratios"][0]["measure"], "median");
        assert!(json["runs"][0]["rtt_us"]["median"].is_null());
        assert!(json["runs"][0]["sender_late_max_us"].is_null());
        assert_eq!(json["runs"][0]["lost"], 10);
        assert_eq!(json["schema"], SCHEMA);
        assert_eq!(json["cable"]["arbiter"], "fifo");
    }

    #[test]
    fn a_report_of_an_earlier_build_is_refused_by_its_missing_members() {
        let mut json = serde_json::to_value(empty()).unwrap();
        let error = |json: &serde_json::Value| {
            let parsed = Report::parse(json.to_string().as_bytes());
            parsed.expect_err("of another build").to_string()
        };
        json["environment"]["commit"] = "abc".into();
        let mut earlier = json.clone();
        let members = earlier.as_object_mut().unwrap();
        members.remove("scenario");
        members.remove("is_complete");
        assert_eq!(
            error(&earlier),
            "it was written by an earlier build of commit abc, and has no scenario, is_complete. Measure again, or \
             read it with that build"
        );
        let mut other = json.clone();
        other["runs"] = serde_json::json!([{}]);
        assert!(
            error(&other).starts_with("it was written by another build of commit abc: missing")
        );
        other["schema"] = concat!("isolane/", "peers/1").into();
        assert!(error(&other).starts_with("its schema is isolane/peers/1, and only"));
        assert!(error(&serde_json::json!([])).starts_with("its schema is missing"));
        let Err(error) = Report::parse(b"title = 1") else {
            panic!("it is no JSON")
        };
        assert!(error.to_string().starts_with("it is no JSON"), "{error}");
        json.as_object_mut().unwrap().remove("resumed");
        assert!(Report::parse(json.to_string().as_bytes()).is_ok());
    }

    #[test]
    fn a_report_survives_being_written_and_read() {
        let mut report = empty();
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
        let run = Run::new(&RunSettings::default(), &Rounds::none(), Some(&cable));
        assert!(
            run.invalid
                .as_ref()
                .unwrap()
                .contains("3 frames before the cable")
        );
        let mut report = empty();
        report.add(run);
        assert_eq!(report.cable.ingress_drops, 3);
    }
}
