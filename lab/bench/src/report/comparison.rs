//! Ratios between runs of one result that differ in one property.
//!
//! Comparisons: flood against undisturbed; FIFO link against strict link; FIFO jobs against jobs by priority; storm
//! against undisturbed; large samples against undisturbed. The effects of an ablation's steps are in `ablation`.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::text_table::{Align, aligned, cells};
use super::{Disturbance, Order, Publisher, Run, Step, summary};
use crate::cable::Arbiter;
use crate::record::Window;
use crate::statistics::Statistics;

/// Minimum number of seconds for a range.
const LEAST_WINDOWS: usize = 3;

/// Property in which the two runs of a comparison differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Dividend with a flood, divisor undisturbed.
    Flood,
    /// Dividend through the arbiter `fifo`, divisor through `strict`, with the same flood.
    Arbiter,
    /// Dividend with FIFO jobs, divisor with jobs by priority, with the same disturbance inside the participants or
    /// none.
    Order,
    /// Dividend with a storm, divisor undisturbed.
    Storm,
    /// Dividend with large samples of the same participants, divisor undisturbed.
    Large,
    /// Dividend without isolane's mechanisms, divisor with them, with the same disturbance: a pair of the summary.
    Isolation,
}

/// Compared part of a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Of {
    /// The whole round trip.
    Rtt,
    /// The hosts' share.
    Host,
}

/// Statistic of a run.
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
    /// Median of the p99s of one-second windows.
    #[serde(rename = "1 s p99")]
    #[strum(serialize = "1 s p99")]
    TypicalP99,
    /// 99.9th percentile. Stalls of the machine dominate it.
    #[serde(rename = "p99.9")]
    #[strum(serialize = "p99.9")]
    P999,
    /// Maximum. Stalls of the machine dominate it.
    #[serde(rename = "max")]
    #[strum(serialize = "max")]
    Max,
}

/// Comparison within one result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Description of dividend and divisor.
    pub name: String,
    /// Message size in bytes.
    pub payload_bytes: u32,
    /// Property in which the runs differ.
    pub kind: Kind,
    /// Compared part of the round trip.
    pub of: Of,
    /// Compared statistic.
    pub measure: Measure,
    /// Disturbance of both runs; against undisturbed runs, that of the dividend.
    pub disturbance: Option<Disturbance>,
    /// Repetition of both runs.
    pub repetition: u32,
    /// Ratio of the whole runs.
    pub value: Option<f64>,
    /// Minimum of the ratios of the whole runs and of corresponding seconds; `None` if fewer than `LEAST_WINDOWS`
    /// seconds have enough samples.
    pub low: Option<f64>,
    /// Maximum of these ratios.
    pub high: Option<f64>,
}

impl Measure {
    /// Value for a whole run.
    fn of_run(self, of: Of, run: &Run) -> Option<f64> {
        let statistics: &Statistics = match of {
            Of::Rtt => &run.rtt_us,
            Of::Host => &run.host_us,
        };
        match (self, of) {
            (Measure::Median, _) => statistics.median,
            (Measure::P99, _) => statistics.p99,
            (Measure::P999, _) => statistics.p99_9,
            (Measure::Max, _) => statistics.max,
            (Measure::TypicalP99, Of::Rtt) => run.window_p99_median_us,
            (Measure::TypicalP99, Of::Host) => None,
        }
    }

    /// Value for one second of a run.
    fn of_window(self, window: &Window) -> Option<f64> {
        match self {
            Measure::Median => window.median,
            Measure::P99 | Measure::TypicalP99 => window.p99,
            Measure::P999 | Measure::Max => None,
        }
    }
}

/// Two valid runs that differ in one property.
#[derive(Clone, Copy)]
struct Pair<'a> {
    kind: Kind,
    dividend: &'a Run,
    divisor: &'a Run,
}

impl Pair<'_> {
    fn ratio(&self, of: Of, measure: Measure) -> Ratio {
        let name = |run: &Run| self.name(run, of, measure);
        let value = quotient(
            measure.of_run(of, self.dividend),
            measure.of_run(of, self.divisor),
        );
        let (low, high) = self.range(of, measure, value);
        Ratio {
            name: format!("{} / {}", name(self.dividend), name(self.divisor)),
            payload_bytes: self.dividend.payload_bytes,
            kind: self.kind,
            of,
            measure,
            disturbance: self.dividend.disturbance,
            repetition: self.dividend.repetition,
            value,
            low,
            high,
        }
    }

    /// Minimum and maximum of the ratios of corresponding seconds and of the whole runs. The p99 of a run can exceed
    /// the p99s of all its seconds but one.
    fn range(&self, of: Of, measure: Measure, whole: Option<f64>) -> (Option<f64>, Option<f64>) {
        let windows = |run: &'_ Run| -> Vec<Option<f64>> {
            let windows = match of {
                Of::Rtt => &run.windows.rtt_us,
                Of::Host => &run.windows.host_us,
            };
            let values = windows.iter().map(|window| measure.of_window(window));
            values.collect()
        };
        let seconds = windows(self.dividend)
            .into_iter()
            .zip(windows(self.divisor));
        let mut ratios: Vec<f64> = seconds
            .filter_map(|(dividend, divisor)| quotient(dividend, divisor))
            .collect();
        if ratios.len() < LEAST_WINDOWS {
            return (None, None);
        }
        ratios.extend(whole);
        ratios.sort_unstable_by(f64::total_cmp);
        (ratios.first().copied(), ratios.last().copied())
    }

    /// Description of one of the two runs, with the properties that distinguish it.
    fn name(&self, run: &Run, of: Of, measure: Measure) -> String {
        let mut words = vec![run.datapath.as_str(), run.publisher.word()];
        words.extend(run.disturbance.map(Disturbance::word));
        if run.arbiter() == Some(Arbiter::Strict) {
            words.push(Arbiter::Strict.word());
        }
        match self.kind {
            Kind::Order => words.extend([run.order.word(), "order"]),
            Kind::Storm => words.extend(Step::of_run(run).map(Step::word)),
            Kind::Isolation => words.extend(run.stages.iter().map(|stage| stage.word())),
            Kind::Flood | Kind::Arbiter | Kind::Large => {}
        }
        if of == Of::Host {
            words.push("hosts");
        }
        words.push(measure.word());
        words.join(" ")
    }
}

/// Quotient; `None` if either is unknown or the divisor is 0.
fn quotient(dividend: Option<f64>, divisor: Option<f64>) -> Option<f64> {
    Some(dividend? / divisor.filter(|&divisor| divisor > 0.0)?)
}

/// Comparisons of a kind between valid runs, in the order of their dividends, each with the first suitable divisor.
fn pairs(runs: &[Run], kind: Kind) -> impl Iterator<Item = Pair<'_>> {
    let valid = move || runs.iter().filter(|run| run.invalid.is_none());
    valid().filter_map(move |dividend| {
        let divisor = valid().find(|divisor| compares(kind, dividend, divisor))?;
        Some(Pair {
            kind,
            dividend,
            divisor,
        })
    })
}

/// Returns whether two runs differ in the compared property only.
fn compares(kind: Kind, dividend: &Run, divisor: &Run) -> bool {
    let alike = dividend.publisher == divisor.publisher
        && dividend.payload_bytes == divisor.payload_bytes
        && dividend.rate_hz == divisor.rate_hz
        && dividend.repetition == divisor.repetition
        && dividend.bulk_reader == divisor.bulk_reader
        && dividend.is_on_link_of(divisor);
    let same_way = dividend.datapath == divisor.datapath
        && dividend.receive_work == divisor.receive_work
        && dividend.order == divisor.order
        && dividend.stages == divisor.stages;
    let same_disturbance = dividend.disturbance == divisor.disturbance;
    let same_arbiter = dividend.arbiter() == divisor.arbiter();
    // On an otherwise idle link the arbiter is irrelevant.
    let served_alike = same_arbiter || divisor.arbiter() == Some(Arbiter::Fifo);
    let against_undisturbed = |disturbance| {
        dividend.disturbance == Some(disturbance)
            && divisor.disturbance.is_none()
            && same_way
            && served_alike
    };
    let differ = match kind {
        Kind::Flood => against_undisturbed(Disturbance::Flood),
        Kind::Storm => against_undisturbed(Disturbance::Storm),
        Kind::Large => against_undisturbed(Disturbance::Large),
        Kind::Arbiter => {
            let arbiters = (dividend.arbiter(), divisor.arbiter());
            let is_pair = arbiters == (Some(Arbiter::Fifo), Some(Arbiter::Strict));
            is_pair && same_disturbance && same_way
        }
        Kind::Order => {
            let orders = (dividend.order, divisor.order);
            // Under outside disturbances the order is a step of an ablation.
            let is_in_process = dividend.disturbance.is_none_or(Disturbance::is_in_process);
            let is_pair = orders == (Order::Fifo, Order::Priority)
                && dividend.datapath == divisor.datapath
                && dividend.receive_work == divisor.receive_work;
            is_pair && is_in_process && same_disturbance && same_arbiter
        }
        // The summary chooses its pairs.
        Kind::Isolation => false,
    };
    alike && differ
}

/// Ratio of the round trips of two given runs.
pub(super) fn between(kind: Kind, dividend: &Run, divisor: &Run, measure: Measure) -> Ratio {
    let pair = Pair {
        kind,
        dividend,
        divisor,
    };
    pair.ratio(Of::Rtt, measure)
}

/// All comparisons between a result's valid runs.
pub fn ratios(runs: &[Run]) -> Vec<Ratio> {
    use Measure::{Max, Median, P99, P999, TypicalP99};
    let mut ratios = Vec::new();
    for kind in [Kind::Flood, Kind::Arbiter, Kind::Large] {
        for pair in pairs(runs, kind) {
            ratios.extend([Median, P99, TypicalP99].map(|measure| pair.ratio(Of::Rtt, measure)));
        }
    }
    for pair in pairs(runs, Kind::Order) {
        for of in [Of::Rtt, Of::Host] {
            ratios.extend([Median, P99, P999, Max].map(|measure| pair.ratio(of, measure)));
        }
    }
    for pair in pairs(runs, Kind::Storm) {
        for of in [Of::Rtt, Of::Host] {
            ratios.extend([Median, P99].map(|measure| pair.ratio(of, measure)));
        }
    }
    ratios.extend(summary::ratios(runs));
    ratios
}

/// Ratios under the flood: a line per payload, two columns per publisher. Empty without a comparison.
pub(in crate::report) fn flood_table(runs: &[Run]) -> String {
    const SHOWN: [Measure; 2] = [Measure::Median, Measure::P99];
    let all: Vec<Pair<'_>> = pairs(runs, Kind::Flood)
        .filter(|pair| pair.dividend.arbiter() == pair.divisor.arbiter())
        .collect();
    let mut payloads: Vec<u32> = all.iter().map(|pair| pair.dividend.payload_bytes).collect();
    payloads.sort_unstable();
    payloads.dedup();
    if payloads.is_empty() {
        return String::new();
    }
    let is_by = |publisher| move |pair: &&Pair<'_>| pair.dividend.publisher == publisher;
    let mut publishers = vec![Publisher::Thread, Publisher::Job];
    publishers.retain(|&publisher| all.iter().any(|pair| is_by(publisher)(&pair)));
    let mut headings = cells([""]);
    let mut names = cells(["payload"]);
    for publisher in &publishers {
        headings.extend(cells(["", publisher.word()]));
        names.extend(SHOWN.map(|measure| measure.word().to_owned()));
    }
    let mut rows = vec![headings, names];
    for payload in payloads {
        let mut row = vec![format!("{payload} B")];
        for &publisher in &publishers {
            let mut of_publisher = all.iter().filter(is_by(publisher));
            let pair = of_publisher.find(|pair| pair.dividend.payload_bytes == payload);
            let value = |measure| pair.and_then(|pair| pair.ratio(Of::Rtt, measure).value);
            row.extend(SHOWN.map(|measure| times(value(measure))));
        }
        rows.push(row);
    }
    "Round trips under the flood, as multiples of undisturbed round trips\n".to_owned()
        + &aligned(&rows, Align::Right)
}

/// Flood on a FIFO link and on a strict one. Empty without a comparison.
pub(in crate::report) fn arbiter_table(runs: &[Run]) -> String {
    let mut rows: Vec<Vec<String>> = vec![
        cells([
            "",
            "written",
            "fifo",
            "",
            "",
            "strict",
            "",
            "",
            "fifo / strict",
            "",
        ]),
        cells([
            "payload", "by a", "median", "p99", "lost", "median", "p99", "lost", "median", "p99",
        ]),
    ];
    let is_flood = |pair: &Pair<'_>| pair.dividend.disturbance == Some(Disturbance::Flood);
    for pair in pairs(runs, Kind::Arbiter).filter(is_flood) {
        let mut row = vec![
            format!("{} B", pair.dividend.payload_bytes),
            pair.dividend.publisher.word().to_owned(),
        ];
        for run in [pair.dividend, pair.divisor] {
            row.extend([
                micros(run.rtt_us.median),
                micros(run.rtt_us.p99),
                run.lost.to_string(),
            ]);
        }
        for measure in [Measure::Median, Measure::P99] {
            row.push(times(pair.ratio(Of::Rtt, measure).value));
        }
        rows.push(row);
    }
    if rows.len() == 2 {
        return String::new();
    }
    "Round trips under the flood on two links: fifo serves frames in order of arrival, strict serves the most urgent \
     class first; RTT in us\n"
        .to_owned()
        + &aligned(&rows, Align::Right)
}

/// In-process disturbances with FIFO jobs and with jobs by priority. Empty without a comparison.
pub(in crate::report) fn order_table(runs: &[Run]) -> String {
    const SHOWN: [Measure; 4] = [Measure::Median, Measure::P99, Measure::P999, Measure::Max];
    let mut headings = vec![String::new(); 2];
    let mut names = cells(["interf.", "order"]);
    for part in ["RTT", "hosts"] {
        headings.extend(cells([part, "", "", ""]));
        names.extend(SHOWN.map(|measure| measure.word().to_owned()));
    }
    headings.extend(cells(["priority", "kernel"]));
    names.extend(cells(["inversions", "late (n)"]));
    let mut rows = vec![headings, names];
    for pair in pairs(runs, Kind::Order) {
        for run in [pair.dividend, pair.divisor] {
            let mut row = vec![interference(run).to_owned(), run.order.word().to_owned()];
            for of in [Of::Rtt, Of::Host] {
                row.extend(SHOWN.map(|measure| micros(measure.of_run(of, run))));
            }
            row.push(run.inversions.total.to_string());
            row.push(run.kernel_late.total.to_string());
            rows.push(row);
        }
        let mut ratio = cells(["", "ratio"]);
        for of in [Of::Rtt, Of::Host] {
            ratio.extend(SHOWN.map(|measure| times(pair.ratio(of, measure).value)));
        }
        ratio.extend(cells(["", ""]));
        rows.push(ratio);
    }
    if rows.len() == 2 {
        return String::new();
    }
    let mut text =
        "Round trips with interference inside the participants. Jobs run in the order in which they became ready \
                    (fifo), or the most urgent first (priority); times in us\n"
            .to_owned()
            + &aligned(&rows, Align::Right);
    for run in runs {
        text.push_str(&achieved(run));
    }
    text
}

/// Line with the work that a disturbance caused.
fn achieved(run: &Run) -> String {
    let Some(disturbed) = &run.disturbed else {
        return String::new();
    };
    let order = match run.order {
        Order::Fifo => "FIFO order",
        Order::Priority => "priority order",
    };
    let number =
        |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    match run.disturbance {
        Some(Disturbance::Joining) => format!(
            "joining, {order}: {} endpoints appeared and {} left; the ping and pong participants received {} and {} \
             announcements\n",
            number(disturbed.endpoints_joined),
            number(disturbed.endpoints_left),
            number(disturbed.announcements_ping),
            number(disturbed.announcements_pong),
        ),
        _ => format!(
            "{}, {order}: {:.0} bulk samples a second, {} in all; {} lost on purpose, {} sent again\n",
            interference(run),
            disturbed.achieved_per_s,
            number(disturbed.bulk_delivered),
            number(disturbed.bulk_lost),
            number(disturbed.bulk_repaired),
        ),
    }
}

fn interference(run: &Run) -> &'static str {
    run.disturbance.map_or("off", Disturbance::word)
}

fn micros(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"))
}

fn times(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{PingRecorder, PongRecorder};
    use crate::report::tests::rounds;
    use crate::report::{Cable, Place, RunCores};
    use crate::scenario::plan;
    use crate::scenario::plan::Part;
    use crate::scenario::rtt::Config;

    /// Run of three seconds with constant round-trip times.
    fn run(config: &Config, rtt_ns: u64) -> Run {
        let (mut ping, pong) = (PingRecorder::new(6_000, 1), PongRecorder::new(6_000, 1));
        for id in 0..6_000 {
            let start_ns = 1 + u64::from(id) * 500_000;
            ping.sent(id, start_ns, start_ns);
            ping.returned(id, ping.nonce(id), start_ns + rtt_ns);
        }
        let rounds = rounds(ping, pong, 500_000);
        let mut run = Run::new(&config.scenario, &rounds, None);
        run.cable = Some(Cable::of(&config.cable));
        run.cores = Some(RunCores {
            ping: 0,
            pong: usize::from(config.place != Place::Link),
            cable: 1,
            receive_work: 0,
        });
        run
    }

    /// Rows of a demo: 30 times as long under the flood, twice with the strict arbiter, and three times as long in FIFO
    /// order with a disturbance inside the participants.
    pub(super) fn runs(payloads: &[u32]) -> Vec<Run> {
        let of_row = |row: &Config| {
            let rtt_ns = match (row.scenario.disturbance, row.cable.arbiter) {
                (Some(Disturbance::Flood), Arbiter::Fifo) => 6_000_000,
                (Some(Disturbance::Flood), Arbiter::Strict) => 400_000,
                (Some(_), _) if row.scenario.order == Order::Fifo => 600_000,
                _ => 200_000,
            };
            run(row, rtt_ns)
        };
        let seconds = plan::Seconds {
            link: 3,
            in_process: 3,
        };
        let parts = [Part::Link, Part::Arbiter, Part::Executor];
        let rows = plan::demo(&parts, payloads, seconds);
        rows.iter().map(of_row).collect()
    }

    fn of_kind(runs: &[Run], kind: Kind) -> Vec<Ratio> {
        let mut ratios = ratios(runs);
        ratios.retain(|ratio| ratio.kind == kind);
        ratios
    }

    #[test]
    fn a_flood_is_compared_with_quiet_runs_that_differ_in_nothing_else_and_are_results() {
        let mut runs = runs(&[64, 512]);
        let all = of_kind(&runs, Kind::Flood);
        assert_eq!(all.len(), 3 * (2 * 3), "two publishers, and strict by one");
        let (strict, fifo): (Vec<_>, Vec<_>) =
            all.iter().partition(|ratio| ratio.name.contains("strict"));
        assert!(fifo.iter().all(|ratio| ratio.value == Some(30.0)));
        assert!(strict.iter().all(|ratio| ratio.value == Some(2.0)));
        assert_eq!(all[0].name, "udp thread flood median / udp thread median");
        runs[0].invalid = Some("the ledger is off".into());
        assert_eq!(of_kind(&runs, Kind::Flood).len(), 3 * 4);
    }

    #[test]
    fn arbiters_are_compared_under_the_same_flood() {
        let ratios = of_kind(&runs(&[64]), Kind::Arbiter);
        assert_eq!(ratios.len(), 3);
        assert!(ratios.iter().all(|ratio| ratio.value == Some(15.0)));
        assert_eq!(
            ratios[1].name,
            "udp thread flood p99 / udp thread flood strict p99"
        );
    }

    #[test]
    fn orders_are_compared_for_each_disturbance_and_both_parts() {
        let ratios = of_kind(&runs(&[64]), Kind::Order);
        assert_eq!(ratios.len(), 4 * 2 * 4);
        let of = |disturbance, of| {
            let mut all = ratios.iter();
            all.find(|ratio| ratio.disturbance == disturbance && ratio.of == of)
        };
        let bulk = of(Some(Disturbance::Bulk), Of::Rtt).unwrap();
        assert_eq!(bulk.value, Some(3.0));
        assert_eq!((bulk.low, bulk.high), (Some(3.0), Some(3.0)));
        assert_eq!(of(None, Of::Rtt).unwrap().value, Some(1.0));
        let hosts = of(Some(Disturbance::Joining), Of::Host).unwrap();
        assert_eq!(hosts.value, None, "this cable did not stamp");
        assert_eq!(
            hosts.name,
            "udp job joining fifo order hosts median / udp job joining priority order hosts median"
        );
    }

    #[test]
    fn a_range_is_over_the_same_seconds_of_both_runs() {
        let mut runs = runs(&[64]);
        let second = |p99| Window {
            p99: Some(p99),
            ..Window::default()
        };
        runs[0].windows.rtt_us = vec![second(2.0), second(4.0), second(3.0)];
        runs[1].windows.rtt_us = vec![second(20.0), second(20.0), second(20.0)];
        let mut short = runs.clone();
        let ratios = ratios(&runs);
        let p99 = &ratios[1];
        assert_eq!(
            (p99.low, p99.value, p99.high),
            (Some(5.0), Some(30.0), Some(30.0))
        );
        let median = &ratios[0];
        assert_eq!(
            (median.low, median.value, median.high),
            (None, Some(30.0), None)
        );
        short[0].windows.rtt_us.pop();
        let p99 = &super::ratios(&short)[1];
        assert_eq!(
            (p99.low, p99.value, p99.high),
            (None, Some(30.0), None),
            "two seconds have no range"
        );
    }

    #[test]
    fn runs_on_different_links_are_not_compared() {
        let mut runs = runs(&[64]);
        runs[0].cable.as_mut().unwrap().bits_per_s += 1;
        let ratios = of_kind(&runs, Kind::Flood);
        assert!(ratios.iter().all(|ratio| ratio.name.contains("udp job")));
    }
}

#[cfg(test)]
mod tables_tests {
    use super::*;
    use crate::report::Disturbed;
    use crate::report::comparison::tests::runs;

    #[test]
    fn ratios_are_shown_by_payload_and_publisher() {
        let mut runs = runs(&[64, 512]);
        runs[0].invalid = Some("the ledger is off".into());
        let text = flood_table(&runs);
        let rows: Vec<Vec<&str>> =
            (text.lines().map(|line| line.split_whitespace().collect())).collect();
        assert_eq!(rows[1], ["thread", "job"], "{text}");
        assert_eq!(rows[2], ["payload", "median", "p99", "median", "p99"]);
        assert_eq!(rows[3], ["64", "B", "-", "-", "30.0", "30.0"]);
        assert_eq!(rows[4], ["512", "B", "30.0", "30.0", "30.0", "30.0"]);
        assert_eq!(flood_table(&runs[..1]), "");
    }

    #[test]
    fn arbiters_stand_side_by_side() {
        let text = arbiter_table(&runs(&[64]));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        let words: Vec<&str> = lines[3].split_whitespace().collect();
        let expected = "64 B thread 6000 6000 0 400 400 0 15.0 15.0";
        assert_eq!(words.join(" "), expected, "{text}");
        assert_eq!(arbiter_table(&[]), "");
    }

    #[test]
    fn orders_stand_below_each_other_with_their_ratio_and_inversions() {
        let mut runs = runs(&[64]);
        let is_bulk_fifo =
            |run: &&mut Run| run.disturbance == Some(Disturbance::Bulk) && run.order == Order::Fifo;
        let bulk = runs.iter_mut().find(is_bulk_fifo).unwrap();
        bulk.inversions.total = 1234;
        bulk.disturbed = Some(Disturbed {
            bulk_delivered: Some(31_000),
            achieved_per_s: 15_500.0,
            ..Disturbed::default()
        });
        let text = order_table(&runs);
        let line = |start: &str| {
            let mut lines = text.lines().map(str::trim_start);
            lines
                .find(|line| line.starts_with(start))
                .unwrap_or("")
                .to_owned()
        };
        assert!(line("bulk      fifo").contains("600"), "{text}");
        assert!(line("bulk      fifo").contains("1234"), "{text}");
        assert!(line("bulk  priority").contains("200"), "{text}");
        assert!(
            line("ratio").contains("1.0"),
            "undisturbed comes first: {text}"
        );
        assert!(
            line("bulk, FIFO order").contains("15500 bulk samples a second"),
            "{text}"
        );
        assert_eq!(order_table(&runs[..5]), "");
    }
}
