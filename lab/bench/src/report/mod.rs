//! Results of round-trip measurements: the schema `isolane/rtt/1` and its forms for people.
//!
//! A key that could not be obtained is null, never 0 and never left out: the structures have no
//! optional keys, only optional values. Times are microseconds, sizes bytes.

mod ablation;
mod comparison;
mod disturbed;
mod environment;
mod histogram;
mod one_way;
mod page;
mod run;
mod scenario;
mod table;
mod terminal;

use serde::{Deserialize, Serialize};

use crate::cable::{self, Arbiter};

pub use ablation::{
    Against, Brought, Interval, Overall, Step, Unit, ablation_table, brought, brought_table,
    overall, overall_table,
};
pub use comparison::{Kind, Measure, Of, Ratio, arbiter_table, flood_table, order_table, ratios};
pub use disturbed::{Counted, Disturbed, Inversions};
pub use environment::{Clock, Environment};
pub use histogram::{Series, histogram};
pub use one_way::one_way_table;
pub use page::page;
pub use run::{
    CableLedger, Distributions, EndLanes, FloodAsked, Lanes, Ledger, Run, RunCores, StormAsked,
    Took, Windows,
};
pub use scenario::{Disturbance, Order, Place, Publisher, ReceiveWork, Scenario, Stage};
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
    /// Through what, in the first run; each run has its own beside it. The drops are those of all.
    pub cable: Cable,
    /// What was measured.
    pub runs: Vec<Run>,
    /// What was compared.
    pub ratios: Vec<Ratio>,
    /// What each step of an ablation brought.
    pub brought: Vec<Brought>,
    /// The same over all payloads; empty if one was measured.
    pub overall: Vec<Overall>,
    /// What was asked for and has no run.
    pub missing: Vec<Missing>,
    /// What this machine does not allow and was not tried.
    pub left_out: Vec<Missing>,
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
            cable: Cable::of(cable),
            runs: Vec::new(),
            ratios: Vec::new(),
            brought: Vec::new(),
            overall: Vec::new(),
            missing: Vec::new(),
            left_out: Vec::new(),
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

/// A cable, as configured, and what the kernel dropped before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cable {
    /// Each way.
    pub bits_per_s: u64,
    /// Which waiting frame was next.
    pub arbiter: Arbiter,
    /// The share of frames lost on purpose.
    pub loss: f64,
    /// Only UDP datagrams with at least so much payload are; null: any frame.
    pub loss_min_payload_bytes: Option<u32>,
    /// Each way; under `strict` of each class.
    pub queue_frames: u32,
    /// Of the losses.
    pub seed: u64,
    /// Frames dropped before the cable: not 0 means that a run is invalid.
    pub ingress_drops: u64,
}

impl Cable {
    /// A cable of that configuration before it has carried anything.
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
    use crate::record::{PingRecorder, PongRecorder, Rounds, StampClock};

    pub(super) fn scenario(payload_bytes: u32, disturbance: Option<Disturbance>) -> Scenario {
        Scenario {
            datapath: "udp".into(),
            stages: vec![Stage::Executor],
            receive_work: ReceiveWork::Softirq,
            publisher: Publisher::Job,
            order: Order::Priority,
            disturbance,
            payload_bytes,
            rate_hz: 2000,
            bound_us: None,
        }
    }

    /// The rounds that both recorded, by clocks that nobody named.
    pub(super) fn rounds(ping: PingRecorder, pong: PongRecorder, period_ns: u64) -> Rounds {
        Rounds::merge(ping, pong, None, period_ns, [&StampClock::default(); 2]).unwrap()
    }

    /// A run in which nothing came back.
    pub(super) fn silent_run(disturbance: Option<Disturbance>) -> Run {
        let (ping, pong) = (PingRecorder::new(10, 1), PongRecorder::new(10, 1));
        let scenario = scenario(64, disturbance);
        let rounds = rounds(ping, pong, scenario.period_ns());
        Run::new(&scenario, &rounds, None)
    }

    #[test]
    fn every_promised_key_is_there_also_when_unknown() {
        let mut report = Report::new(Environment::probe(), &cable::Config::default());
        report.add(silent_run(None));
        report.ratios.push(Ratio {
            name: "a / b".into(),
            payload_bytes: 64,
            kind: Kind::Flood,
            of: Of::Rtt,
            measure: Measure::P999,
            disturbance: Some(Disturbance::Flood),
            repetition: 1,
            value: None,
            low: None,
            high: None,
        });
        let json = serde_json::to_value(&report).unwrap();
        let has = |place: &str, keys: &str| {
            let object = json.pointer(place).unwrap().as_object().unwrap();
            for key in keys.split_whitespace() {
                assert!(object.contains_key(key), "{place} lacks {key}");
            }
        };
        has(
            "",
            "schema environment cable runs ratios brought missing left_out",
        );
        has(
            "/environment",
            "kernel cpu cores realtime_kernel commit command root clock",
        );
        has("/environment/clock", "source is_kept");
        has(
            "/cable",
            "bits_per_s arbiter loss queue_frames seed ingress_drops",
        );
        has(
            "/runs/0",
            "datapath stages receive_work publisher order disturbance interference payload_bytes rate_hz samples \
             lost late_sends rtt_us owd_us one_way host_us cable_us window_p99_median_us \
             sender_late_max_us cable_late_max_us bound_us cable cores inversions kernel_late disturbed \
             windows distribution remarks storm repetition took_s",
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
            "name payload_bytes value low high kind of measure disturbance",
        );
        assert_eq!(json["ratios"][0]["measure"], "p99.9");
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
        let rounds = rounds(ping, pong, 500_000);
        let run = Run::new(&scenario(64, None), &rounds, Some(&cable));
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
