//! Ratios between runs of one result, as its scenario asks for them.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use toml::{Table, Value};

use super::{Disturbance, Run, Step, unique};
use crate::experiment::{Block, Cell, Comparison, Scenario};
use crate::record::Rounds;
use crate::statistics::{Interval, Quantile, paired_ratio, quantile_ratio};

/// Seed of the resamples, so that a ratio has the same interval when it is computed again.
pub(super) const SEED: u64 = 1;

/// Compared part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Of {
    /// The whole round trip.
    Rtt,
    /// The hosts' share.
    Host,
    /// The stream of a throughput run.
    Stream,
}

/// Compared statistic of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
pub enum Measure {
    /// Median.
    #[serde(rename = "median")]
    #[strum(serialize = "median")]
    Median,
    /// 99th percentile.
    #[serde(rename = "p99")]
    #[strum(serialize = "p99")]
    P99,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    #[strum(serialize = "p99.9")]
    P999,
    /// Samples per second at the reader.
    #[serde(rename = "samples/s")]
    #[strum(serialize = "samples/s")]
    SamplesPerS,
    /// CPU time of the writer for each sample.
    #[serde(rename = "writer-cpu")]
    #[strum(serialize = "writer CPU")]
    WriterCpu,
    /// CPU time of the reader for each sample.
    #[serde(rename = "reader-cpu")]
    #[strum(serialize = "reader CPU")]
    ReaderCpu,
}

impl Measure {
    /// Value of the statistic for a run.
    pub fn of(self, run: &Run, of: Of) -> Option<f64> {
        let stream = run.stream.as_ref();
        match self {
            Measure::Median => run.part(of)?.median,
            Measure::P99 => run.part(of)?.p99,
            Measure::P999 => run.part(of)?.p99_9,
            Measure::SamplesPerS => stream?.samples_per_s,
            Measure::WriterCpu => stream?.writer.cpu_us_per_sample,
            Measure::ReaderCpu => stream?.reader.cpu_us_per_sample,
        }
    }

    /// Quantile of a series; `None` for a value that a run has once.
    pub(super) fn quantile(self) -> Option<Quantile> {
        match self {
            Measure::Median => Some(Quantile::MEDIAN),
            Measure::P99 => Some(Quantile::P99),
            Measure::P999 => Some(Quantile::P99_9),
            Measure::SamplesPerS | Measure::WriterCpu | Measure::ReaderCpu => None,
        }
    }
}

impl Of {
    /// Times of this part in nanoseconds, in the order of the pings.
    pub fn times_ns(self, rounds: &Rounds) -> Vec<u64> {
        match self {
            Of::Rtt => rounds.rtt_ns(),
            Of::Host => rounds.host_ns(),
            Of::Stream => Vec::new(),
        }
    }
}

/// Times of a run, for the intervals of ratios.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// Number of the run in its scenario.
    pub number: u32,
    parts: Vec<(Of, Vec<u64>)>,
}

impl Series {
    /// Times of these parts of a run.
    pub fn of(number: u32, rounds: &Rounds, parts: &[Of]) -> Series {
        let parts = parts.iter().map(|&of| (of, of.times_ns(rounds)));
        Series {
            number,
            parts: parts.collect(),
        }
    }

    /// Times of a part of the run with this number, if they are in the list.
    pub fn find(series: &[Series], number: u32, of: Of) -> Option<Vec<u64>> {
        let of_run = series.iter().find(|series| series.number == number)?;
        let mut parts = of_run.parts.iter();
        let (_, times) = parts.find(|(part, _)| *part == of)?;
        Some(times.clone())
    }
}

/// Parts of a block's runs whose times the ratios need: those of single runs. Between repetitions, the runs' quantiles
/// suffice.
pub fn parts_of_ratios(scenario: &Scenario, block: usize) -> Vec<Of> {
    if scenario.repetitions > 1 {
        return Vec::new();
    }
    let comparisons = scenario.blocks.get(block).map(|block| &block.comparisons);
    let parts = comparisons.into_iter().flatten().flat_map(|it| &it.of);
    unique(parts.copied())
}

/// Ratio of a statistic between runs that differ in one factor, or between labelled runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Description of dividend and divisor.
    pub name: String,
    /// Serialised size of the dividend's samples in bytes.
    pub payload_bytes: u32,
    /// Index of the block in the scenario.
    pub block: usize,
    /// Factor in which the runs differ.
    pub factor: String,
    /// Levels of dividend and divisor.
    pub levels: [String; 2],
    /// Values of both runs that distinguish this ratio from the others of the block.
    pub at: String,
    /// Compared part of the round trip.
    pub of: Of,
    /// Compared statistic.
    pub measure: Measure,
    /// Disturbance of the dividend.
    pub disturbance: Option<Disturbance>,
    /// Number of pairs of runs.
    pub pairs: usize,
    /// Ratio; null where a run has too few samples, or where several pairs have no interval.
    pub value: Option<f64>,
    /// Lower end of its 95 % interval; null where too few samples are independent.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub high: Option<f64>,
}

impl Ratio {
    /// Ratio with its interval, if it has one.
    pub fn interval(&self) -> Option<Interval> {
        Some(Interval {
            value: self.value?,
            low: self.low?,
            high: self.high?,
        })
    }

    /// Returns whether the interval shows a difference.
    pub fn is_difference(&self) -> bool {
        self.interval()
            .is_some_and(|interval| interval.is_difference())
    }
}

/// All ratios that the scenario asks for, between valid runs. `times` returns the times of a part of a run in
/// nanoseconds. It is called for ratios between two runs, which have no interval without times.
pub fn ratios(
    scenario: &Scenario,
    runs: &[Run],
    times: impl Fn(u32, Of) -> Option<Vec<u64>>,
) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    for (index, block) in scenario.blocks.iter().enumerate() {
        let is_of_block = |run: &&Run| run.block == Some(index) && run.invalid.is_none();
        let of_block: Vec<&Run> = runs.iter().filter(is_of_block).collect();
        for comparison in &block.comparisons {
            for [dividend, divisor] in &comparison.pairs {
                let levels = [dividend, divisor];
                for pair in pairs(block, comparison, levels, &of_block) {
                    let what = compared(comparison, pair.runs[0][0]).into_iter();
                    ratios.extend(what.map(|it| pair.ratio(index, comparison, levels, it, &times)));
                }
            }
        }
    }
    ratios
}

/// Compared parts and statistics of runs such as this one.
fn compared(comparison: &Comparison, run: &Run) -> Vec<(Of, Measure)> {
    let is_stream = run.stream.is_some();
    let usual = match is_stream {
        true => &[Measure::SamplesPerS][..],
        false => &[Measure::Median, Measure::P99],
    };
    let measures = match &comparison.measures[..] {
        [] => usual,
        named => named,
    };
    let of = match is_stream {
        true => &[Of::Stream][..],
        false => &comparison.of,
    };
    let of = of.iter();
    of.flat_map(|&of| measures.iter().map(move |&it| (of, it)))
        .collect()
}

/// Runs of two cells. Runs with the same index are of the same repetition and have the same values otherwise.
struct Pair<'a> {
    runs: Vec<[&'a Run; 2]>,
    at: String,
}

/// Pairs of cells with these levels of the compared factor and all other values in common.
fn pairs<'a>(
    block: &Block,
    comparison: &Comparison,
    levels: [&Value; 2],
    runs: &[&'a Run],
) -> Vec<Pair<'a>> {
    let factor = comparison.factor.as_str();
    let mut pairs: Vec<(Table, Pair<'a>)> = Vec::new();
    for (dividend, cell) in of_level(runs, factor, levels[0]) {
        let common = others(block, cell, factor);
        let mut divisors = of_level(runs, factor, levels[1]);
        let is_partner = |(run, cell): &(&Run, &Cell)| {
            run.repetition == dividend.repetition && others(block, cell, factor) == common
        };
        let Some((divisor, _)) = divisors.find(is_partner) else {
            continue;
        };
        let mut key = common;
        key.retain(|name, _| !comparison.over.iter().any(|over| over == name));
        match pairs.iter_mut().find(|(known, _)| *known == key) {
            Some((_, pair)) => pair.runs.push([dividend, divisor]),
            None => {
                let pair = Pair {
                    runs: vec![[dividend, divisor]],
                    at: at(block, comparison, cell, runs),
                };
                pairs.push((key, pair));
            }
        }
    }
    pairs.into_iter().map(|(_, pair)| pair).collect()
}

fn of_level<'a>(
    runs: &[&'a Run],
    factor: &str,
    level: &Value,
) -> impl Iterator<Item = (&'a Run, &'a Cell)> {
    let with_cells = runs
        .iter()
        .filter_map(|run| Some((*run, run.cell.as_ref()?)));
    with_cells.filter(move |(_, cell)| cell.has(factor, level))
}

/// Values of a cell that the other run of a pair has too: all except the compared factor and the label. Labelled cells
/// may differ in everything but the factors of their block.
fn others(block: &Block, cell: &Cell, factor: &str) -> Table {
    let mut values = cell.values();
    values.remove(factor);
    values.remove("label");
    if factor == "label" {
        values.retain(|name, _| block.factors.iter().any(|factor| factor.name == *name));
    }
    values
}

/// Values of the block's factors that are neither compared nor pooled, and the place if the block has several.
fn at(block: &Block, comparison: &Comparison, cell: &Cell, runs: &[&Run]) -> String {
    let names = block.factors.iter().map(|factor| factor.name.as_str());
    let mut places = runs.iter().filter_map(|run| run.cell.as_ref()?.place);
    let place = (!places.all(|place| Some(place) == cell.place)).then_some("place");
    let names = names.chain(place.filter(|_| comparison.factor != "label"));
    let others = names.filter(|name| {
        comparison.factor != *name && !comparison.over.iter().any(|over| over == name)
    });
    let words = others.filter_map(|name| Some(words(name, &cell.value(name)?)));
    words.collect::<Vec<_>>().join(", ")
}

/// Text of a level as in the scenario file, without quotes.
fn text(level: &Value) -> String {
    level
        .as_str()
        .map_or_else(|| level.to_string(), str::to_owned)
}

/// Text of a value of a cell for people, with its unit.
pub(crate) fn words(name: &str, value: &Value) -> String {
    let text = text(value);
    match name {
        "payload_bytes" => format!("{text} B"),
        "rate_hz" => format!("{text} Hz"),
        "cores" if text == "1" => "one core".to_owned(),
        "cores" => format!("{text} cores"),
        "order" => format!("{text} order"),
        "arbiter" => format!("link {text}"),
        "bulk_reader" => format!("reader {text}"),
        "flood_factor" => format!("flood x {text}"),
        "disturbance" if text == "none" => "undisturbed".to_owned(),
        "step" => {
            let step = Step::deserialize(value.clone());
            step.map_or(text, |step| step.word().to_owned())
        }
        _ => text,
    }
}

impl Pair<'_> {
    fn ratio(
        &self,
        block: usize,
        comparison: &Comparison,
        levels: [&Value; 2],
        (of, measure): (Of, Measure),
        times: &impl Fn(u32, Of) -> Option<Vec<u64>>,
    ) -> Ratio {
        let pairs = self.runs.iter().filter_map(|pair| {
            // A run with too few samples has no such quantile.
            let [dividend, divisor] = pair.map(|run| measure.of(run, of));
            Some((pair, dividend? / divisor?))
        });
        let (pairs, quotients): (Vec<&[&Run; 2]>, Vec<f64>) = pairs.unzip();
        let interval = match (&pairs[..], measure.quantile()) {
            ([[dividend, divisor]], Some(quantile)) => {
                let times = times(dividend.number, of).zip(times(divisor.number, of));
                times.and_then(|(one, other)| quantile_ratio(&[&one], &[&other], quantile, SEED))
            }
            _ => paired_ratio(&quotients),
        };
        // One pair has a ratio even without an interval.
        let quotient = match quotients[..] {
            [quotient] if quotient > 0.0 && quotient.is_finite() => Some(quotient),
            _ => None,
        };
        let words = levels.map(|level| words(&comparison.factor, level));
        let what = match of {
            Of::Stream => measure.word().to_owned(),
            Of::Rtt | Of::Host => format!("{} {}", of.word(), measure.word()),
        };
        let [first, _] = self.runs[0];
        Ratio {
            name: format!("{} / {}, {what}", words[0], words[1]),
            payload_bytes: first.settings.payload_bytes,
            block,
            factor: comparison.factor.clone(),
            levels: levels.map(text),
            at: self.at.clone(),
            of,
            measure,
            disturbance: first.settings.disturbance,
            pairs: pairs.len(),
            value: interval.map(|interval| interval.value).or(quotient),
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::experiment::{Cell, Load, Scenario, shipped};
    use crate::report::tests::{ORDERS, report, silent_run};
    use crate::report::{Of, Order, Report, Stream};
    use crate::scenario::throughput::Reliability;

    #[test]
    fn runs_are_compared_that_differ_in_the_factor_alone() {
        let report = report(ORDERS, |cell| match (cell.disturbance, cell.order) {
            (Load::None, _) => 400,
            (_, Order::Fifo) => 4_000,
            (_, Order::Priority) => 800,
        });
        let names: Vec<&str> = report
            .ratios
            .iter()
            .map(|ratio| ratio.name.as_str())
            .collect();
        let [median, p99] = [
            "bulk / undisturbed, rtt median",
            "bulk / undisturbed, rtt p99",
        ];
        assert_eq!(names, [median, p99, median, p99]);
        let at: Vec<(&str, Option<f64>)> = report
            .ratios
            .iter()
            .map(|ratio| (ratio.at.as_str(), ratio.value))
            .collect();
        assert_eq!(at[1], ("fifo order", Some(10.0)));
        assert_eq!(at[3], ("priority order", Some(2.0)));
        assert_eq!(at[0].1, Some(1.0));
    }

    #[test]
    fn pairs_of_all_pooled_levels_and_repetitions_make_one_ratio() {
        let text = shipped("ablation")
            .expect("shipped")
            .replace("seconds = 3", "seconds = 1");
        let report = report(&text, |cell| 200 + u64::from(cell.payload_bytes));
        let of_step = report.ratios.iter().filter(|ratio| ratio.factor == "step");
        let of_step: Vec<_> = of_step.collect();
        // 9 pairs, 4 disturbances, 2 links, 2 parts.
        assert_eq!(of_step.len(), 9 * 4 * 2 * 2);
        // Without a link there is no hosts' part.
        for ratio in of_step.iter().filter(|ratio| ratio.of == Of::Rtt) {
            assert_eq!(
                (ratio.pairs, ratio.value),
                (3 * 3, Some(1.0)),
                "payloads and repetitions"
            );
        }
    }

    #[test]
    fn labelled_runs_are_compared_at_the_same_levels_of_their_block() {
        let text = r#"
            title = "labels"
            [[block]]
            name = "b"
            title = "b"
            factor = [{ name = "payload_bytes", levels = [64, 128] }]
            cell = [{ label = "one", order = "fifo" }, { label = "two" }]
            compare = [{ factor = "label", pairs = [["one", "two"]], measures = ["p99"] }]
        "#;
        let report = report(text, |cell| {
            let factor = if cell.order == Order::Fifo { 4 } else { 2 };
            u64::from(cell.payload_bytes) * 10 * factor
        });
        let ratios: Vec<_> = report
            .ratios
            .iter()
            .map(|ratio| (ratio.at.as_str(), ratio.value, ratio.pairs))
            .collect();
        assert_eq!(ratios, [("64 B", Some(2.0), 1), ("128 B", Some(2.0), 1)]);
        let table = crate::report::text(&report, None);
        assert!(table.contains("one    128 B"), "{table}");
    }

    #[test]
    fn streams_are_compared_by_their_rates_in_the_same_repetition() {
        let text = r#"
            title = "streams"
            repetitions = 3
            set = { measure = "throughput", seconds = 1 }
            [[block]]
            name = "b"
            title = "b"
            factor = [{ name = "reliability", levels = ["reliable", "best-effort"] }]
            compare = [{ factor = "reliability", pairs = [["best-effort", "reliable"]] }]
        "#;
        // The machine is slower in each repetition; the ratios stay the same.
        let rate = |cell: &Cell, repetition: u32| match cell.reliability {
            Some(Reliability::BestEffort) => 3_000.0 / f64::from(repetition),
            _ => 1_000.0 / f64::from(repetition),
        };
        let scenario = Scenario::parse(text).expect("a scenario");
        let planned = scenario.plan(true).expect("runs");
        let runs = planned.into_iter().map(|planned| {
            let mut run = silent_run(None);
            run.stream = Some(Stream {
                samples_per_s: Some(rate(&planned.cell, planned.repetition)),
                ..Stream::default()
            });
            (run.block, run.repetition) = (Some(planned.block), planned.repetition);
            run.cell = Some(planned.cell);
            run
        });
        let mut report = Report::new(scenario, "0".repeat(64));
        runs.for_each(|run| report.add(run));
        report.ratios = super::ratios(&report.scenario, &report.runs, |_, _| None);
        let [ratio] = &report.ratios[..] else {
            panic!("one ratio: {:?}", report.ratios);
        };
        assert_eq!(ratio.name, "best-effort / reliable, samples/s");
        let interval = ratio.interval().expect("three pairs");
        assert!((interval.low - 3.0).abs() < 1e-9 && (interval.high - 3.0).abs() < 1e-9);
        let table = crate::report::text(&report, Some(100));
        let line = table.lines().nth(3).expect("a row");
        // The median of 1,000, 500 and 333 samples per second.
        assert!(
            line.contains("reliable") && line.contains(" 500 "),
            "{table}"
        );
        assert!(!table.contains("repaired"), "no run counts it: {table}");
        assert!(!table.contains("One way"), "{table}");
        report.runs[0].stream = None;
        let csv = crate::report::csv(&report);
        let fields = |line: &str| line.split(',').count();
        let names = csv.lines().next().map_or(0, fields);
        assert!(csv.lines().all(|line| fields(line) == names), "{csv}");
    }

    #[test]
    fn an_invalid_run_is_in_no_ratio() {
        let mut report = report(ORDERS, |_| 400);
        report.runs[0].invalid = Some("the ledger is off".into());
        let ratios = super::ratios(&report.scenario, &report.runs, |_, _| None);
        assert_eq!(ratios.len(), 2, "of the other order");
        for ratio in ratios {
            let no_times = (Some(1.0), None);
            assert_eq!((ratio.value, ratio.interval()), no_times);
        }
    }

    #[test]
    fn times_are_read_for_single_pairs_only() {
        let mut report = report(ORDERS, |_| 400);
        let of = |report: &Report| super::parts_of_ratios(&report.scenario, 0);
        assert_eq!(of(&report), [Of::Rtt]);
        report.scenario.repetitions = 2;
        assert_eq!(of(&report), []);
        let again = report.runs.clone().into_iter().map(|mut run| {
            (run.number, run.repetition) = (run.number + 4, 2);
            run
        });
        report.runs.extend(again.collect::<Vec<_>>());
        let no_times = |_, _| unreachable!("the quantiles of the runs suffice");
        let ratios = super::ratios(&report.scenario, &report.runs, no_times);
        assert_eq!(ratios.len(), 4);
        for ratio in ratios {
            assert_eq!(
                (ratio.pairs, ratio.value, ratio.low),
                (2, Some(1.0), Some(1.0))
            );
        }
    }
}
