//! The results as `isolane/peers/1`, and as a table for people.

use std::fmt::Write as _;
use std::path::Path;

use isolane_bench::report::Environment;
use serde::Serialize;

use super::bare::{self, Bare};
use super::case::{Case, Scenario};
use super::run::{Measured, Plan, Table, median_of};
use super::statistics::{Estimate, median};
use super::system::System;
use crate::{Result, json};

/// The name of the schema and its version.
const SCHEMA: &str = "isolane/peers/1";

/// What is aimed at, of what the first of the others has: round trips at most so long, on one core
/// and on two, and at least so many samples a second.
const ROUND_TRIPS_ONE_CORE: f64 = 0.8;
const ROUND_TRIPS_TWO_CORES: f64 = 1.0;
/// Of what bare AF_XDP has, both spinning.
const ROUND_TRIPS_OVER_BARE: f64 = 1.15;
const SAMPLES_PER_S: f64 = 1.5;
const SAMPLES_PER_S_BY_LANE: f64 = 2.0;

/// isolane beside one other system, or its lanes beside its sockets.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    measure: &'static str,
    payload_bytes: u32,
    interference: bool,
    reliability: &'static str,
    /// On how many cores the two ends were.
    cores: u8,
    /// "writer" or "reader", where it is that end's own.
    end: Option<&'static str>,
    system: String,
    /// Of isolane: the median over the repetitions.
    value: Option<f64>,
    against: String,
    /// Of the other.
    against_value: Option<f64>,
    /// Median of isolane's divided by the other's, repetition by repetition.
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    /// Of the interval.
    confidence: Option<f64>,
    repetitions: u32,
    aim: Option<f64>,
    aim_met: Option<bool>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    schema: &'static str,
    environment: Environment,
    seconds: u32,
    rows: Vec<Row>,
}

/// One number of a run: its name, the end it is of, and where it is found.
type Measure = (
    &'static str,
    Option<&'static str>,
    fn(&Measured) -> Option<f64>,
);

const OF_ROUND_TRIPS: &[Measure] = &[
    ("rtt_median_us", None, |run| run.rtt_median_us),
    ("rtt_p99_9_us", None, |run| run.rtt_p99_9_us),
];
/// The second is the first in other words: as many bits of payload.
const OF_THROUGHPUT: &[Measure] = &[
    ("samples_per_s", None, |run| run.samples_per_s),
    ("mbit_per_s", None, |run| run.mbit_per_s),
];
const OF_LOAD: &[Measure] = &[
    ("cpu_us_per_sample", Some("writer"), |run| {
        run.ends[0].cpu_us_per_sample
    }),
    ("cpu_us_per_sample", Some("reader"), |run| {
        run.ends[1].cpu_us_per_sample
    }),
    ("resident_bytes", Some("writer"), |run| {
        run.ends[0].resident_bytes
    }),
    ("resident_bytes", Some("reader"), |run| {
        run.ends[1].resident_bytes
    }),
    ("threads", Some("writer"), |run| run.ends[0].threads),
    ("threads", Some("reader"), |run| run.ends[1].threads),
];

impl Report {
    pub(super) fn new(
        plan: &Plan,
        systems: &[System; System::COUNT],
        bare: &Bare,
        table: &Table,
    ) -> Self {
        let mut rows = Vec::new();
        for (place, case) in plan.cases.iter().enumerate() {
            let measures = match case.scenario {
                Scenario::RoundTrip => OF_ROUND_TRIPS,
                Scenario::Throughput => OF_THROUGHPUT,
                Scenario::Load => OF_LOAD,
            };
            for measure in measures {
                let compared = System::COMPARED.into_iter();
                rows.extend(compared.map(|both| row(place, *case, *measure, both, systems, table)));
            }
        }
        rows.push(beside_bare(bare, table));
        Self {
            schema: SCHEMA,
            environment: Environment::probe(),
            seconds: plan.seconds,
            rows,
        }
    }

    /// Writes the JSON to a file, or to standard output if that is `-`.
    pub(super) fn write(&self, file: &Path) -> Result<()> {
        json::write(self, file)
    }

    /// A line a row.
    pub(super) fn table(&self) -> String {
        let mut text = format!(
            "\n{:24} {:>7} {:11} {:>5} {:12} {:>11} {:>11}  {:22} {:>5} {:13} aim\n",
            "measure",
            "payload",
            "reliability",
            "cores",
            "system",
            "value",
            "other",
            "against",
            "ratio",
            "interval"
        );
        for row in &self.rows {
            let number = |value: Option<f64>, digits: usize| {
                value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
            };
            let digits = if row.value.is_some_and(|value| value < 1e3) {
                2
            } else {
                0
            };
            let measure = [row.measure, row.end.unwrap_or_default()].join(" ");
            let interval = format!("{}..{}", number(row.low, 2), number(row.high, 2));
            let aim = match (row.aim, row.aim_met) {
                (Some(aim), Some(true)) => format!("{aim} met"),
                (Some(aim), Some(false)) => format!("{aim} MISSED"),
                _ => String::new(),
            };
            let line = format!(
                "{measure:24} {:>7} {:11} {:>5} {:12} {:>11} {:>11}  {:22} {:>5} {interval:13} {aim}",
                row.payload_bytes,
                row.reliability,
                row.cores,
                row.system,
                number(row.value, digits),
                number(row.against_value, digits),
                row.against,
                number(row.ratio, 2),
            );
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }
}

fn row(
    place: usize,
    case: Case,
    (measure, end, of): Measure,
    (own, other): (usize, usize),
    systems: &[System; System::COUNT],
    table: &Table,
) -> Row {
    let quotient = |cases: &Vec<[Measured; System::COUNT]>| {
        let runs = &cases[place];
        Some(of(&runs[own])? / of(&runs[other]).filter(|&value| value > 0.0)?)
    };
    let ratios = table
        .systems
        .iter()
        .filter_map(quotient)
        .collect::<Vec<_>>();
    let repetitions = ratios.len() as u32;
    let estimate = Estimate::of(ratios);
    let aim = aim(case, measure, (own, other));
    let is_met = |ratio: f64, aim: f64| match case.scenario {
        Scenario::Throughput => ratio >= aim,
        Scenario::RoundTrip | Scenario::Load => ratio <= aim,
    };
    Row {
        measure,
        payload_bytes: case.payload_bytes,
        interference: false,
        reliability: case.reliability(),
        cores: case.cores,
        end,
        system: systems[own].identity.clone(),
        value: median_of(table, place, own, of),
        against: systems[other].identity.clone(),
        against_value: median_of(table, place, other, of),
        ratio: estimate.value,
        low: estimate.low,
        high: estimate.high,
        confidence: estimate.confidence,
        repetitions,
        aim,
        aim_met: estimate
            .value
            .zip(aim)
            .map(|(ratio, aim)| is_met(ratio, aim)),
    }
}

/// Round trips by lane beside those of bare AF_XDP.
fn beside_bare(bare: &Bare, table: &Table) -> Row {
    let runs = &table.beside_bare;
    let estimate = Estimate::of(runs.iter().map(|[own, bare]| own / bare).collect());
    let median_of = |place: usize| median(runs.iter().map(|both| both[place]).collect());
    Row {
        measure: "rtt_median_us",
        payload_bytes: bare::CASE.payload_bytes,
        interference: false,
        reliability: bare::CASE.reliability(),
        cores: bare::CASE.cores,
        end: None,
        system: bare.by_lane.identity.clone(),
        value: median_of(0),
        against: bare::IDENTITY.into(),
        against_value: median_of(1),
        ratio: estimate.value,
        low: estimate.low,
        high: estimate.high,
        confidence: estimate.confidence,
        repetitions: runs.len() as u32,
        aim: Some(ROUND_TRIPS_OVER_BARE),
        aim_met: estimate.value.map(|ratio| ratio <= ROUND_TRIPS_OVER_BARE),
    }
}

/// What is aimed at, against Cyclone DDS, the first of the others.
fn aim(case: Case, measure: &str, compared: (usize, usize)) -> Option<f64> {
    match (compared, measure, case.cores) {
        ((0, 1), "rtt_median_us", 1) => Some(ROUND_TRIPS_ONE_CORE),
        ((0, 1), "rtt_median_us", _) => Some(ROUND_TRIPS_TWO_CORES),
        ((0, 1), "samples_per_s", _) if case.is_reliable => Some(SAMPLES_PER_S),
        ((3, 1), "samples_per_s", _) if case.is_reliable => Some(SAMPLES_PER_S_BY_LANE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn systems() -> [System; 4] {
        let identities = [
            "isolane udp",
            "cyclonedds 0.10.2 udp",
            "fastdds 2.9.1 udp",
            "isolane xdp",
        ];
        identities.map(|identity| System {
            identity: identity.into(),
            program: "end".into(),
            arguments: &[],
        })
    }

    fn rtt(median_us: f64) -> Measured {
        Measured {
            rtt_median_us: Some(median_us),
            ..Measured::default()
        }
    }

    fn report(repetitions: Vec<[Measured; 4]>) -> Report {
        let plan = Plan {
            cases: vec![Case::all()[0]],
            repetitions: repetitions.len() as u32,
            seconds: 1,
        };
        let table = Table {
            systems: repetitions.into_iter().map(|runs| vec![runs]).collect(),
            beside_bare: vec![[11.0, 10.0]; 3],
        };
        Report::new(&plan, &systems(), &Bare::for_tests(), &table)
    }

    #[test]
    fn ratios_are_made_within_a_repetition() {
        // The machine is ten times as slow in the second: each ratio says the same.
        let report = report(vec![
            [rtt(7.0), rtt(10.0), rtt(14.0), rtt(5.0)],
            [rtt(70.0), rtt(100.0), rtt(140.0), rtt(50.0)],
            [rtt(7.7), rtt(11.0), rtt(15.4), rtt(5.5)],
        ]);
        let row = &report.rows[0];
        assert_eq!((row.measure, row.cores), ("rtt_median_us", 1));
        assert!((row.ratio.unwrap() - 0.7).abs() < 1e-9);
        assert!((row.high.unwrap() - row.low.unwrap()).abs() < 1e-9);
        assert_eq!((row.aim, row.aim_met), (Some(0.8), Some(true)));
        assert_eq!(report.rows[1].aim, None, "aims are against the first");
        let by_lane = &report.rows[2];
        assert_eq!(
            (by_lane.system.as_str(), by_lane.against.as_str()),
            ("isolane xdp", "cyclonedds 0.10.2 udp")
        );
        assert_eq!(by_lane.ratio, Some(0.5));
        let beside_bare = report.rows.last().unwrap();
        assert_eq!(beside_bare.against, bare::IDENTITY);
        assert_eq!(
            (beside_bare.ratio, beside_bare.aim_met),
            (Some(1.1), Some(true))
        );
        assert!(report.table().contains("0.8 met"));
    }

    #[test]
    fn what_failed_is_null_and_the_rest_is_not() {
        let report = report(vec![[rtt(7.0), Measured::default(), rtt(14.0), rtt(7.0)]]);
        let rows = serde_json::to_value(&report).unwrap();
        let row = &rows["rows"][0];
        assert!(row["ratio"].is_null() && row["against_value"].is_null());
        assert_eq!(
            (row["value"].as_f64(), row["repetitions"].as_u64()),
            (Some(7.0), Some(0))
        );
        assert_eq!(rows["rows"][1]["ratio"], 0.5);
        assert!(rows["rows"][5]["value"].is_null(), "no p99.9");
    }
}
