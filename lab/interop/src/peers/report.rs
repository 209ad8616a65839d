//! Results as `isolane/peers/1` and as a table, with intervals of medians over repetitions.

use std::fmt::Write as _;
use std::path::Path;

use isolane_bench::report::Environment;
use isolane_support::disturbance::Disturbance;
use isolane_support::{Result, json};
use serde::Serialize;

use super::case::{Case, Place, Scenario, Setting, System};
use super::run::{BARE_CASE, BARE_IDENTITY, Bare, Measured, Plan, Repetition, Table, median_of};

/// Name and version of the schema.
const SCHEMA: &str = "isolane/peers/1";

/// Aims as ratios to Cyclone DDS: upper bounds of round trips on one core and on two, lower bound of throughput.
const ROUND_TRIPS_ONE_CORE: f64 = 0.8;
const ROUND_TRIPS_TWO_CORES: f64 = 1.0;
/// Upper bound of round trips as a ratio to bare AF_XDP, both spinning.
const ROUND_TRIPS_OVER_BARE: f64 = 1.15;
const SAMPLES_PER_S: f64 = 1.5;
const SAMPLES_PER_S_BY_LANE: f64 = 2.0;

/// isolane against one other system, or its lanes against its sockets.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    measure: &'static str,
    payload_bytes: u32,
    interference: bool,
    reliability: &'static str,
    /// Number of cores of the two ends.
    cores: u8,
    /// "writer" or "reader" for a measure of that end alone.
    end: Option<&'static str>,
    system: String,
    /// Description of isolane's setting; empty: its defaults.
    system_setting: String,
    /// isolane's median over the repetitions.
    value: Option<f64>,
    against: String,
    /// Setting of the other system.
    setting: Setting,
    /// Description of that setting; empty: the defaults.
    setting_is: String,
    /// The other system's median over the repetitions.
    against_value: Option<f64>,
    /// Median of the ratios of isolane to the other, repetition by repetition; `None` where a better setting of the
    /// other system was measured.
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    /// Confidence of the interval.
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
    /// Circumstances of each repetition of each case.
    runs: Vec<Run>,
}

/// Circumstances of one repetition of one case.
#[derive(Clone, Debug, Serialize)]
struct Run {
    case: String,
    /// Number of the repetition, from 1.
    repetition: usize,
    /// Number of runs; the last one counts.
    tries: u32,
    #[serde(flatten)]
    disturbance: Disturbance,
}

/// Measure of a run: its name, its end, and the accessor of its value.
type Measure = (
    &'static str,
    Option<&'static str>,
    fn(&Measured) -> Option<f64>,
);

const OF_ROUND_TRIPS: &[Measure] = &[
    ("rtt_median_us", None, |run| run.rtt_median_us),
    ("rtt_p99_9_us", None, |run| run.rtt_p99_9_us),
];
/// The second measure restates the first as payload bits.
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
                let compared = System::compared(case.scenario).iter();
                rows.extend(
                    compared.map(|both| row(place, *case, *measure, *both, systems, table)),
                );
            }
        }
        rows.push(over_bare(bare, table));
        Self {
            schema: SCHEMA,
            environment: Environment::probe(),
            seconds: plan.seconds,
            rows,
            runs: runs(plan, table),
        }
    }

    /// Writes the JSON to `file`; `-` is standard output.
    pub(super) fn write(&self, file: &Path) -> Result<()> {
        json::write(self, file)
    }

    /// Table, one line a row.
    pub(super) fn table(&self) -> String {
        let mut text = format!(
            "\n{:24} {:>7} {:11} {:>5} {:20} {:>11} {:>11}  {:30} {:>5} {:13} aim\n",
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
            let word = |changes: &str| {
                if changes.is_empty() {
                    "defaults"
                } else {
                    "best"
                }
            };
            let system = format!("{} {}", row.system, word(&row.system_setting));
            let against = format!("{} {}", row.against, word(&row.setting_is));
            let line = format!(
                "{measure:24} {:>7} {:11} {:>5} {system:20} {:>11} {:>11}  {against:30} {:>5} {interval:13} {aim}",
                row.payload_bytes,
                row.reliability,
                row.cores,
                number(row.value, digits),
                number(row.against_value, digits),
                number(row.ratio, 2),
            );
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let disturbed = self.runs.iter().filter(|run| run.disturbance.is_too_much());
        let _ = writeln!(
            text,
            "{} of {} repetitions of a case were disturbed at each try",
            disturbed.count(),
            self.runs.len()
        );
        text
    }
}

fn runs(plan: &Plan, table: &Table) -> Vec<Run> {
    let of_repetition = |(repetition, cases): (usize, &Vec<Repetition>)| {
        let run = |(case, run): (&Case, &Repetition)| Run {
            case: case.name(),
            repetition: repetition + 1,
            tries: run.tries,
            disturbance: run.disturbance,
        };
        plan.cases.iter().zip(cases).map(run).collect::<Vec<_>>()
    };
    let repetitions = table.repetitions.iter().enumerate();
    repetitions.flat_map(of_repetition).collect()
}

fn row(
    place: usize,
    case: Case,
    (measure, end, of): Measure,
    (own, other): (Place, Place),
    systems: &[System; System::COUNT],
    table: &Table,
) -> Row {
    let is_best = System::is_best(other, case.scenario);
    let quotient = |cases: &Vec<Repetition>| {
        let runs = &cases[place].systems;
        Some(of(&runs[own])? / of(&runs[other]).filter(|&value| is_best && value > 0.0)?)
    };
    let ratios = table
        .repetitions
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
        system_setting: systems[own].setting_is.clone(),
        value: median_of(table, place, own, of),
        against: systems[other].identity.clone(),
        setting: systems[other].setting,
        setting_is: systems[other].setting_is.clone(),
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

/// Row of round trips by lane against bare AF_XDP.
fn over_bare(bare: &Bare, table: &Table) -> Row {
    let runs = &table.over_bare;
    let estimate = Estimate::of(runs.iter().map(|[own, bare]| own / bare).collect());
    let median_of = |place: usize| median(runs.iter().map(|both| both[place]).collect());
    Row {
        measure: "rtt_median_us",
        payload_bytes: BARE_CASE.payload_bytes,
        interference: false,
        reliability: BARE_CASE.reliability(),
        cores: BARE_CASE.cores,
        end: None,
        system: bare.by_lane.identity.clone(),
        system_setting: bare.by_lane.setting_is.clone(),
        value: median_of(0),
        against: BARE_IDENTITY.into(),
        setting: Setting::Defaults,
        setting_is: String::new(),
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

/// Aim against Cyclone DDS, the first of the other systems.
fn aim(case: Case, measure: &str, (own, other): (Place, Place)) -> Option<f64> {
    if !System::is_cyclonedds(other) || !System::is_best(other, case.scenario) {
        return None;
    }
    match (System::is_by_lane(own), measure, case.cores) {
        (false, "rtt_median_us", 1) => Some(ROUND_TRIPS_ONE_CORE),
        (false, "rtt_median_us", _) => Some(ROUND_TRIPS_TWO_CORES),
        (false, "samples_per_s", _) if case.is_reliable => Some(SAMPLES_PER_S),
        (true, "samples_per_s", _) if case.is_reliable => Some(SAMPLES_PER_S_BY_LANE),
        _ => None,
    }
}

/// Confidence of an interval, given enough repetitions.
const CONFIDENCE: f64 = 0.95;

/// The median; of an even number, the mean of the middle two.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// Median with the order statistics that enclose the true median, for any distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: Option<f64>,
    /// `None` for fewer than two values.
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    /// Probability that the interval holds the true median: at least 0.95; for fewer than six values, the probability
    /// for their whole range.
    pub(super) confidence: Option<f64>,
}

impl Estimate {
    pub(super) fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len();
        let value = median(values.clone());
        if count < 2 {
            return Self {
                value,
                ..Self::default()
            };
        }
        let left_out = left_out(count);
        Self {
            value,
            low: Some(values[left_out]),
            high: Some(values[count - 1 - left_out]),
            confidence: Some(coverage(count, left_out)),
        }
    }
}

/// Number of values that the shortest interval of sufficient confidence leaves out at either end.
fn left_out(count: usize) -> usize {
    let candidates = (1..count / 2).take_while(|&out| coverage(count, out) >= CONFIDENCE);
    candidates.last().unwrap_or(0)
}

/// The probability that the true median lies between the values of rank `out + 1` and `count - out`:
/// the number of values below it is binomial with p = 1/2.
fn coverage(count: usize, out: usize) -> f64 {
    let mut term = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut below = 0.0;
    for rank in 0..=out {
        below += term;
        term *= (count - rank) as f64 / (rank + 1) as f64;
    }
    1.0 - 2.0 * below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rtt(median_us: f64) -> Measured {
        Measured {
            rtt_median_us: Some(median_us),
            ..Measured::default()
        }
    }

    /// Report of round trips on one core, of the systems that run there, in their order.
    fn report(repetitions: Vec<[Measured; 4]>) -> Report {
        let case = Case::all()[0];
        let plan = Plan {
            cases: vec![case],
            repetitions: repetitions.len() as u32,
            seconds: 1,
            tries: 1,
        };
        let in_places = |runs: [Measured; 4]| {
            let mut repetition = Repetition::default();
            for (place, run) in System::in_scenario(case.scenario).into_iter().zip(runs) {
                repetition.systems[place] = run;
            }
            vec![repetition]
        };
        let table = Table {
            repetitions: repetitions.into_iter().map(in_places).collect(),
            over_bare: vec![[11.0, 10.0]; 3],
        };
        Report::new(&plan, &System::for_tests(), &Bare::for_tests(), &table)
    }

    #[test]
    fn a_ratio_is_quoted_against_the_best_setting_alone_and_each_row_names_the_setting() {
        let case = *Case::all()
            .iter()
            .find(|case| case.scenario == Scenario::Throughput)
            .unwrap();
        let mut repetition = Repetition::default();
        for (place, run) in repetition.systems.iter_mut().enumerate() {
            run.samples_per_s = Some(100.0 * (place + 1) as f64);
        }
        let table = Table {
            repetitions: vec![vec![repetition]],
            over_bare: vec![],
        };
        let plan = Plan {
            cases: vec![case],
            repetitions: 1,
            seconds: 1,
            tries: 1,
        };
        let report = Report::new(&plan, &System::for_tests(), &Bare::for_tests(), &table);
        let rows = report
            .rows
            .iter()
            .filter(|row| row.measure == "samples_per_s");
        let compared = rows
            .map(|row| (row.against_value.unwrap(), row.setting, row.ratio.is_some()))
            .collect::<Vec<_>>();
        assert_eq!(compared[0], (500.0, Setting::Best, true));
        assert_eq!(compared[2], (400.0, Setting::Defaults, false));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["rows"][0]["setting"], "best");
        assert!(
            json["rows"][0]["setting_is"]
                .as_str()
                .unwrap()
                .contains("batching")
        );
        assert_eq!(json["runs"][0]["repetition"], 1);
    }

    #[test]
    fn ratios_are_made_within_a_repetition() {
        // The machine is ten times as slow in the second repetition; every ratio stays the same.
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
        assert_eq!(row.setting, Setting::Defaults, "programs are not modified");
        assert!(!report.table().contains("udp best"), "{}", report.table());
        assert_eq!(report.rows[1].aim, None, "aims are against the first");
        let by_lane = &report.rows[2];
        assert_eq!(
            (by_lane.system.as_str(), by_lane.against.as_str()),
            ("isolane xdp", "cyclonedds 0.10.2 udp")
        );
        assert_eq!(by_lane.ratio, Some(0.5));
        let over_bare = report.rows.last().unwrap();
        assert_eq!(over_bare.against, BARE_IDENTITY);
        assert_eq!(
            (over_bare.ratio, over_bare.aim_met),
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

    #[test]
    fn ten_repetitions_leave_out_one_at_either_end() {
        let estimate = Estimate::of((1..=10).map(f64::from).collect());
        assert_eq!(estimate.value, Some(5.5));
        assert_eq!((estimate.low, estimate.high), (Some(2.0), Some(9.0)));
        // 1 - 2 (1 + 10) / 1024
        assert!((estimate.confidence.unwrap() - 0.978_515_625).abs() < 1e-12);
    }

    #[test]
    fn few_repetitions_have_their_range_and_say_how_sure_it_is() {
        let estimate = Estimate::of(vec![3.0, 1.0, 2.0]);
        assert_eq!((estimate.low, estimate.high), (Some(1.0), Some(3.0)));
        assert_eq!(estimate.confidence, Some(0.75));
        let six = Estimate::of(vec![1.0; 6]);
        assert!(six.confidence > Some(0.95));
        let one = Estimate::of(vec![4.0]);
        assert_eq!(
            (one.value, one.low, one.confidence),
            (Some(4.0), None, None)
        );
        assert_eq!(Estimate::of(vec![]), Estimate::default());
    }
}
