//! Comparison of two results, A and B: cells with equal values, and the ratio of their round-trip times.
//!
//! | valid runs of a cell in A and B | interval of the ratio |
//! | --- | --- |
//! | one each | block bootstrap of their round trips; needs their timestamps |
//! | two each | Student's, of the ratios of repetitions with the same position |
//! | at least three each | Welch's: repetitions of two results are not measured close in time, so they are no pairs |
//!
//! Other numbers of runs have a ratio without an interval. A verdict comes from an interval.

use std::fmt::Write;

use serde::Serialize;

use super::compare::SEED;
use super::table::{Row, aligned, micros, name, names};
use super::{Measure, Of, Report, Run};
use crate::experiment::Cell;
use crate::statistics::{Interval, paired_ratio, quantile_ratio, unpaired_ratio};

/// Schema name and version.
pub const COMPARISON_SCHEMA: &str = "isolane/comparison/1";

/// Compared statistics of a cell's runs, and the part of a run that they describe.
fn measures(row: &Row<'_>) -> (Of, &'static [Measure]) {
    match row.runs.iter().any(|run| run.stream.is_some()) {
        true => (
            Of::Stream,
            &[Measure::SamplesPerS, Measure::WriterCpu, Measure::ReaderCpu],
        ),
        false => (Of::Rtt, &[Measure::Median, Measure::P99]),
    }
}

/// Result of a measurement, and its round trips.
pub struct MeasuredResult<'a> {
    /// Name in texts, such as the path of its folder.
    pub name: String,
    /// Result.
    pub report: &'a Report,
    /// Returns the round trips of the run with this number in nanoseconds, if they are available.
    pub times: &'a dyn Fn(u32) -> Option<Vec<u64>>,
}

/// Comparison of two results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResultComparison {
    /// Schema name, [`COMPARISON_SCHEMA`].
    pub schema: &'static str,
    /// Names of A and B.
    pub results: [String; 2],
    /// Differences of the environments, as "kernel: 6.1 in A, 6.2 in B".
    pub environment: Vec<String>,
    /// Cells that both have, in the order of A.
    pub cells: Vec<CellComparison>,
    /// Cells that have valid runs in A only.
    pub only_a: Vec<String>,
    /// Cells that have valid runs in B only.
    pub only_b: Vec<String>,
}

/// Cell that both results have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellComparison {
    /// Title of the block in A.
    pub block: String,
    /// Name of the cell in its block.
    pub name: String,
    /// Values of the cell in A.
    pub cell: Cell,
    /// Numbers of valid runs in A and B.
    pub runs: [usize; 2],
    /// Compared statistics of the round trip.
    pub statistics: Vec<StatisticComparison>,
}

/// Statistic of a cell in both results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatisticComparison {
    /// Statistic.
    pub measure: Measure,
    /// Medians over the repetitions of A and B, in microseconds or samples per second.
    pub values: [Option<f64>; 2],
    /// Ratio of B to A.
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio.
    pub interval: Option<Interval>,
    /// Verdict on B.
    pub verdict: Verdict,
}

/// Verdict on B, from the interval of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval lies below 1; above 1 for samples per second.
    #[strum(serialize = "faster")]
    Faster,
    /// The interval lies on the other side of 1.
    #[strum(serialize = "slower")]
    Slower,
    /// The interval includes 1.
    #[strum(serialize = "no difference seen")]
    NoDifferenceSeen,
    /// There is no interval.
    #[strum(serialize = "no interval")]
    NoInterval,
}

impl Verdict {
    fn of(measure: Measure, interval: Option<Interval>) -> Verdict {
        match interval {
            None => Verdict::NoInterval,
            Some(interval) if !interval.is_difference() => Verdict::NoDifferenceSeen,
            Some(interval) if (interval.value < 1.0) == (measure != Measure::SamplesPerS) => {
                Verdict::Faster
            }
            Some(_) => Verdict::Slower,
        }
    }
}

/// Cell of a result with its valid runs.
struct OfCell<'a> {
    block: &'a str,
    title: &'a str,
    name: String,
    row: Row<'a>,
}

/// Cells of a report in the order of their runs, by block.
fn cells(report: &Report) -> Vec<OfCell<'_>> {
    let mut cells: Vec<OfCell<'_>> = Vec::new();
    for (index, block) in report.scenario.blocks.iter().enumerate() {
        let is_valid = |run: &&Run| run.block == Some(index) && run.invalid.is_none();
        let rows = Row::of(report.runs.iter().filter(is_valid));
        let names = names(block, &rows);
        cells.extend(rows.into_iter().map(|row| OfCell {
            block: &block.name,
            title: &block.title,
            name: name(&names, row.cell),
            row,
        }));
    }
    cells
}

/// Compares the cells that both results have.
pub fn compare_results(a: &MeasuredResult<'_>, b: &MeasuredResult<'_>) -> ResultComparison {
    let (of_a, of_b) = (cells(a.report), cells(b.report));
    let (mut compared, mut only_a) = (Vec::new(), Vec::new());
    let mut found = vec![false; of_b.len()];
    for cell in &of_a {
        let Some(partner) = partner(cell, &of_b) else {
            only_a.push(format!("{}: {}", cell.block, cell.name));
            continue;
        };
        found[partner] = true;
        let rows = [&cell.row, &of_b[partner].row];
        let times = match (&rows[0].runs[..], &rows[1].runs[..]) {
            ([run_a], [run_b]) => (a.times)(run_a.number).zip((b.times)(run_b.number)),
            _ => None,
        };
        compared.push(CellComparison {
            block: cell.title.to_owned(),
            name: cell.name.clone(),
            cell: cell.row.cell.clone(),
            runs: rows.map(|row| row.runs.len()),
            statistics: {
                let (of, measures) = measures(rows[0]);
                let measures = measures.iter();
                measures
                    .map(|&it| statistic((of, it), rows, times.as_ref()))
                    .collect()
            },
        });
    }
    let only_b = of_b.iter().zip(&found).filter(|(_, is_found)| !**is_found);
    ResultComparison {
        schema: COMPARISON_SCHEMA,
        results: [a.name.clone(), b.name.clone()],
        environment: differences(a.report, b.report),
        cells: compared,
        only_a,
        only_b: only_b
            .map(|(cell, _)| format!("{}: {}", cell.block, cell.name))
            .collect(),
    }
}

/// Index of the cell with the same values: in the block of the same name or else another one, with the same label or
/// else another one.
fn partner(cell: &OfCell<'_>, others: &[OfCell<'_>]) -> Option<usize> {
    let without_label = |cell: &Cell| Cell {
        label: None,
        ..cell.clone()
    };
    let wanted = without_label(cell.row.cell);
    let is_same = |(_, other): &(usize, &OfCell<'_>)| without_label(other.row.cell) == wanted;
    let same = others.iter().enumerate().filter(is_same);
    // The first of the largest.
    let likeness = |other: &OfCell<'_>| {
        let is_same_label = other.row.cell.label == cell.row.cell.label;
        (other.block == cell.block, is_same_label)
    };
    let best = same.rev().max_by_key(|(_, other)| likeness(other));
    best.map(|(index, _)| index)
}

/// Compares a statistic of the runs in `rows`, those of A and of B. `times` are the round trips of single runs.
fn statistic(
    (of, measure): (Of, Measure),
    rows: [&Row<'_>; 2],
    times: Option<&(Vec<u64>, Vec<u64>)>,
) -> StatisticComparison {
    let of_runs = rows.map(|row| {
        let values = row.runs.iter().filter_map(|run| measure.of(run, of));
        values.collect::<Vec<f64>>()
    });
    let [a, b] = &of_runs;
    let interval = match (times.zip(measure.quantile()), &a[..], &b[..]) {
        (Some(((a, b), quantile)), ..) => quantile_ratio(&[b], &[a], quantile, SEED),
        (None, [a, other_a], [b, other_b]) => paired_ratio(&[b / a, other_b / other_a]),
        _ => unpaired_ratio(b, a),
    };
    let mean = |values: &[f64]| {
        let sum: f64 = values.iter().map(|value| value.ln()).sum();
        (sum / values.len() as f64).exp()
    };
    let quotient = Some(mean(b) / mean(a)).filter(|ratio| ratio.is_finite());
    StatisticComparison {
        measure,
        values: rows.map(|row| row.median(|run| measure.of(run, of))),
        ratio: interval.map(|interval| interval.value).or(quotient),
        interval,
        verdict: Verdict::of(measure, interval),
    }
}

/// Values in which the environments differ, a line for each.
fn differences(a: &Report, b: &Report) -> Vec<String> {
    let values = |report: &Report| {
        let environment = &report.environment;
        let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
        [
            ("kernel", environment.kernel.clone()),
            ("commit", known(&environment.commit)),
            ("cpu", known(&environment.cpu)),
            ("cores", environment.cores.to_string()),
        ]
    };
    let pairs = values(a).into_iter().zip(values(b));
    let pairs = pairs.map(|((name, a), (_, b))| (name.to_owned(), a, b));
    let systems = a
        .systems
        .keys()
        .filter(|name| b.systems.contains_key(*name));
    let systems =
        systems.map(|name| (format!("system {name}"), version(a, name), version(b, name)));
    let different = pairs.chain(systems).filter(|(_, a, b)| a != b);
    let line = |(name, a, b)| format!("{name}: {a} in A, {b} in B");
    different.map(line).collect()
}

/// Version of a system under test, and its arguments.
fn version(report: &Report, name: &str) -> String {
    let version = report.systems.get(name).map_or("unknown", String::as_str);
    let system = report.scenario.systems.get(name);
    let arguments = system.map_or_else(String::new, |system| system.arguments.join(" "));
    format!("{version} {arguments}").trim_end().to_owned()
}

/// Text of a comparison.
pub fn comparison_text(comparison: &ResultComparison) -> String {
    let [a, b] = &comparison.results;
    let mut text = format!("A: {a}\nB: {b}\n");
    // Writing to a string cannot fail.
    for line in &comparison.environment {
        let _ = writeln!(text, "{line}");
    }
    let mut verdicts = Vec::new();
    for block in comparison
        .cells
        .chunk_by(|one, next| one.block == next.block)
    {
        let heading = ["cell", "", "A", "B", "B / A", "", "B is"];
        let mut lines = vec![heading.map(str::to_owned).to_vec()];
        for cell in block {
            for (number, it) in cell.statistics.iter().enumerate() {
                let name = if number == 0 { &*cell.name } else { "" };
                let range = it.interval.map_or_else(String::new, |interval| {
                    format!("({:.2} to {:.2})", interval.low, interval.high)
                });
                let ratio = it.ratio.map_or("-".to_owned(), |it| format!("{it:.2}"));
                let verdict: &str = it.verdict.into();
                let [a, b] = it.values.map(micros);
                let measure = it.measure.word().to_owned();
                let line = [
                    name.to_owned(),
                    measure,
                    a,
                    b,
                    ratio,
                    range,
                    verdict.to_owned(),
                ];
                lines.push(line.to_vec());
                verdicts.push(it.verdict);
            }
        }
        let table = aligned(&lines, 2);
        let are_times = block[0]
            .statistics
            .iter()
            .any(|it| it.measure == Measure::Median);
        let unit = if are_times { " (times in us)" } else { "" };
        let _ = write!(text, "\n{}{unit}\n{table}", block[0].block);
    }
    text.push('\n');
    for (only, cells) in [("A", &comparison.only_a), ("B", &comparison.only_b)] {
        for cell in cells {
            let _ = writeln!(text, "Only {only} has valid runs of {cell}.");
        }
    }
    if verdicts.is_empty() {
        text.push_str("The results have no cell with valid runs in common.\n");
        return text;
    }
    text.push_str(
        "Ratios with their 95 % intervals; a verdict needs an interval. Lost round trips do not count.\n",
    );
    if comparison.cells.iter().any(|cell| cell.runs == [1, 1]) {
        text.push_str(
            "Intervals of single runs cover the variation within these runs only. Runs of equal systems at different \
             times often differ more: measure with --repetitions 3 or more.\n",
        );
    }
    if verdicts.contains(&Verdict::NoInterval) {
        text.push_str(
            "No interval: single runs need the timestamps in their folders, and repetitions two or at least three runs \
             in both results.\n",
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Load;
    use crate::report::tests::{ORDERS, report};

    /// Round trips as `report` makes them.
    fn times(slow_us: u64) -> Vec<u64> {
        let time = |id| if id % 50 == 0 { slow_us } else { 200 };
        (0..6_000).map(|id| time(id) * 1_000).collect()
    }

    fn compared(a: &Report, b: &Report, times_of_b: Option<u64>) -> ResultComparison {
        let result_a = MeasuredResult {
            name: "a".to_owned(),
            report: a,
            times: &|_| times_of_b.map(|_| times(400)),
        };
        let result_b = MeasuredResult {
            name: "b".to_owned(),
            report: b,
            times: &|_| times_of_b.map(times),
        };
        compare_results(&result_a, &result_b)
    }

    fn verdicts(comparison: &ResultComparison) -> Vec<Verdict> {
        let cells = comparison.cells.iter();
        let statistics = cells.flat_map(|cell| &cell.statistics);
        statistics.map(|it| it.verdict).collect()
    }

    #[test]
    fn cells_with_equal_values_are_compared_and_the_others_are_named() {
        let a = report(ORDERS, |_| 400);
        let fewer = ORDERS.replace("[\"none\", \"bulk\"]", "[\"bulk\", \"joining\"]");
        let mut b = report(&fewer, |_| 800);
        b.environment.kernel = "6.1".to_owned();
        let comparison = compared(&a, &b, Some(800));
        let median_and_p99 = [Verdict::NoDifferenceSeen, Verdict::Slower];
        assert_eq!(verdicts(&comparison), [median_and_p99; 2].concat());
        let p99 = &comparison.cells[0].statistics[1];
        assert_eq!(
            (p99.values, p99.ratio),
            ([Some(400.0), Some(800.0)], Some(2.0))
        );
        let text = comparison_text(&comparison);
        assert!(text.contains("6.1 in B"), "{text}");
        assert!(
            text.contains("Only A has valid runs of orders: undisturbed, fifo order"),
            "{text}"
        );
        assert!(
            text.contains("Only B has valid runs of orders: joining, fifo order"),
            "{text}"
        );
        assert!(text.contains("2.00  (2.00 to 2.00)"), "{text}");
        assert!(text.contains("within these runs only"), "{text}");

        let back = compared(&b, &a, Some(200));
        assert_eq!(verdicts(&back)[1], Verdict::Faster);
        let without_times = compared(&a, &b, None);
        let ratio = without_times.cells[0].statistics[1].ratio;
        assert!(
            ratio.is_some_and(|ratio| (ratio - 2.0).abs() < 1e-9),
            "{ratio:?}"
        );
        assert_eq!(verdicts(&without_times), [Verdict::NoInterval; 4]);
    }

    #[test]
    fn repetitions_are_compared_without_times() {
        let repeated = |repetitions: u32, slow_us: u64| {
            let text = format!("repetitions = {repetitions}\n{ORDERS}");
            let mut report = report(&text, |cell| match cell.disturbance {
                Load::None => 400,
                _ => slow_us,
            });
            // Some variation.
            for run in &mut report.runs {
                let factor = 1.0 + f64::from(run.repetition) / 100.0;
                run.rtt_us.p99 = run.rtt_us.p99.map(|us| us * factor);
            }
            report
        };
        let p99s = |a: u32, b: u32| {
            let comparison = compared(&repeated(a, 400), &repeated(b, 1_600), None);
            let p99s = verdicts(&comparison);
            [p99s[1], p99s[5]]
        };
        let [none, slower] = [Verdict::NoDifferenceSeen, Verdict::Slower];
        assert_eq!(p99s(3, 4), [none, slower], "Welch");
        assert_eq!(p99s(2, 2), [none, slower], "Student");
        assert_eq!(p99s(1, 3), [Verdict::NoInterval; 2]);
        assert_eq!(p99s(2, 3), [Verdict::NoInterval; 2]);
    }

    #[test]
    fn cells_are_found_in_the_block_of_the_same_name_first() {
        let text = r#"
            title = "labels"
            [[block]]
            name = "other"
            title = "Other"
            cell = [{ label = "x" }]
            [[block]]
            name = "b"
            title = "B"
            cell = [{ label = "y" }]
        "#;
        let one = text.replace("label = \"x\"", "label = \"x\", order = \"fifo\"");
        let (a, b) = (report(&one, |_| 400), report(text, |_| 400));
        let cells = [cells(&a), cells(&b)];
        assert_eq!(partner(&cells[0][0], &cells[1]), None);
        assert_eq!(partner(&cells[0][1], &cells[1]), Some(1));
        assert_eq!(
            partner(&cells[1][0], &cells[0]),
            Some(1),
            "another block and label"
        );
    }
}
