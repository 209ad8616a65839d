//! Text of a result: for each block a table of its runs and one of its ratios, as wide as the terminal allows.

use std::fmt::Write;

use super::compare::words;
use super::{Counter, Of, Ratio, Report, Run, Stream, bars, unique};
use crate::experiment::{Block, Cell, Show};
use crate::record::{OneWay, median};
use crate::statistics::Statistics;

/// Columns of a text that is not shown on a terminal.
const USUAL_COLUMNS: usize = 100;

/// Text of a report, for a terminal with this number of columns.
pub fn text(report: &Report, columns: Option<usize>) -> String {
    match report.scenario.show {
        Show::Bars => bars::text(report),
        Show::Tables => {
            let mut parts = Vec::new();
            for (index, block) in report.scenario.blocks.iter().enumerate() {
                let tables = of_block(report, index, columns.unwrap_or(USUAL_COLUMNS));
                let meaning = block.meaning.trim();
                let has_meaning = !tables.is_empty() && !meaning.is_empty();
                parts.extend(tables);
                parts.extend(has_meaning.then(|| format!("{meaning}\n")));
            }
            parts.push(clocks(&timed(report)));
            parts.retain(|part| !part.is_empty());
            parts.join("\n")
        }
    }
}

/// Tables of all blocks, and the clocks of the one-way delays.
pub(super) fn tables(report: &Report, columns: usize) -> Vec<String> {
    let blocks = 0..report.scenario.blocks.len();
    let mut tables: Vec<String> = blocks
        .flat_map(|index| of_block(report, index, columns))
        .collect();
    tables.push(clocks(&timed(report)));
    tables.retain(|table| !table.is_empty());
    tables
}

/// Runs of blocks that expect no counters.
fn timed(report: &Report) -> Vec<&Run> {
    let runs = report.runs.iter();
    runs.filter(|run| !report.is_judged(run)).collect()
}

/// Table of a block's runs, and of its ratios, if it has any.
fn of_block(report: &Report, index: usize, columns: usize) -> Vec<String> {
    let of_block = |run: &&Run| run.block == Some(index);
    let runs: Vec<&Run> = report.runs.iter().filter(of_block).collect();
    let ratios = report.ratios.iter().filter(|ratio| ratio.block == index);
    let ratios: Vec<&Ratio> = ratios.collect();
    let mut tables = vec![
        runs_table(report, &report.scenario.blocks[index], &runs, columns),
        ratio_table(&ratios),
    ];
    tables.retain(|table| !table.is_empty());
    tables
}

/// Formats rows with the same number of cells: the first `left` columns aligned to the left, the others to the right.
pub fn aligned(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let padded = cells.map(|(column, (cell, &width))| match column < left {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        });
        text.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Repetitions of a cell. Times are those of the valid ones.
pub(super) struct Row<'a> {
    pub(super) cell: &'a Cell,
    pub(super) runs: Vec<&'a Run>,
}

impl<'a> Row<'a> {
    /// Rows of these runs, in the order of their first ones.
    pub(super) fn of(runs: impl IntoIterator<Item = &'a Run>) -> Vec<Row<'a>> {
        let mut rows: Vec<Row<'a>> = Vec::new();
        for run in runs {
            let Some(cell) = &run.cell else { continue };
            match rows.iter_mut().find(|row| row.cell == cell) {
                Some(row) => row.runs.push(run),
                None => rows.push(Row {
                    cell,
                    runs: vec![run],
                }),
            }
        }
        rows
    }

    /// Median over the repetitions as text, in microseconds.
    fn time(&self, of: Of, value: fn(&Statistics) -> Option<f64>) -> String {
        micros(self.median(|run| value(run.part(of)?)))
    }

    /// Median over the repetitions.
    pub(super) fn median(&self, value: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        let valid = self.runs.iter().filter(|run| run.invalid.is_none());
        median(valid.filter_map(|run| value(run)))
    }

    /// Median over the repetitions of a stream's value.
    fn stream(&self, value: fn(&Stream) -> Option<f64>) -> String {
        micros(self.median(|run| value(run.stream.as_ref()?)))
    }

    /// Sum over the repetitions of a stream's count; a dash if no run has it.
    fn count(&self, value: fn(&Stream) -> Option<u64>) -> String {
        let counts = self
            .runs
            .iter()
            .filter_map(|run| value(run.stream.as_ref()?));
        let sum = counts.reduce(|sum, count| sum + count);
        sum.map_or_else(|| "-".to_owned(), |sum| sum.to_string())
    }

    /// Median over the repetitions of a one-way delay as text, in microseconds.
    fn delay(&self, value: fn(&OneWay) -> Option<f64>) -> String {
        micros(self.median(|run| value(&run.one_way)))
    }

    fn sum(&self, count: fn(&Run) -> u64) -> String {
        let sum: u64 = self.runs.iter().map(|run| count(run)).sum();
        sum.to_string()
    }

    fn counter(&self, counter: Counter) -> String {
        let counts = self.runs.iter().map(|run| run.counter(counter));
        let sum: Option<u64> = counts.sum();
        sum.map_or_else(|| "-".to_owned(), |sum| sum.to_string())
    }
}

/// Column: rank, two lines of heading, and its cells. On a narrow terminal, columns with the highest rank are left out
/// first.
type Column = (u8, &'static str, &'static str, fn(&Row<'_>) -> String);

const COLUMNS: [Column; 11] = [
    (0, "RTT", "median", |row| row.time(Of::Rtt, |it| it.median)),
    (0, "RTT", "p99", |row| row.time(Of::Rtt, |it| it.p99)),
    (4, "RTT", "p99.9", |row| row.time(Of::Rtt, |it| it.p99_9)),
    (3, "RTT", "max", |row| row.time(Of::Rtt, |it| it.max)),
    (5, "RTT", "jitter", |row| row.time(Of::Rtt, |it| it.jitter)),
    (2, "hosts", "median", |row| {
        row.time(Of::Host, |it| it.median)
    }),
    (1, "hosts", "p99", |row| row.time(Of::Host, |it| it.p99)),
    (0, "", "lost", |row| row.sum(|run| run.lost)),
    (6, "", "late", |row| row.sum(|run| run.late_sends)),
    // A system under test does not count them.
    (1, "priority", "inversions", |row| match row.cell.system {
        Some(_) => "-".to_owned(),
        None => row.sum(|run| run.inversions.total),
    }),
    (7, "", "samples", |row| row.sum(|run| run.samples)),
];

const STREAM_COLUMNS: [Column; 13] = [
    (0, "", "samples/s", |row| row.stream(|it| it.samples_per_s)),
    (1, "", "Mbit/s", |row| row.stream(|it| it.mbit_per_s)),
    (5, "", "written", |row| row.sum(|run| run.samples)),
    (0, "", "lost", |row| row.sum(|run| run.lost)),
    (3, "writer", "refused", |row| row.count(|it| it.refused)),
    (4, "writer", "waits", |row| row.count(|it| it.writer_waits)),
    (4, "", "repaired", |row| row.count(|it| it.repaired)),
    (2, "writer", "CPU us", |row| {
        row.stream(|it| it.writer.cpu_us_per_sample)
    }),
    (2, "reader", "CPU us", |row| {
        row.stream(|it| it.reader.cpu_us_per_sample)
    }),
    (6, "writer", "MB", |row| {
        row.stream(|it| megabytes(it.writer.resident_bytes))
    }),
    (6, "reader", "MB", |row| {
        row.stream(|it| megabytes(it.reader.resident_bytes))
    }),
    (7, "writer", "threads", |row| {
        row.stream(|it| it.writer.threads.map(|it| it as f64))
    }),
    (7, "reader", "threads", |row| {
        row.stream(|it| it.reader.threads.map(|it| it as f64))
    }),
];

fn megabytes(bytes: Option<u64>) -> Option<f64> {
    bytes.map(|bytes| bytes as f64 / 1e6)
}

/// Columns of a block that expects values of counters.
const COUNTERS: [Column; 6] = [
    (0, "priority", "inversions", |row| {
        row.counter(Counter::Inversions)
    }),
    (0, "", "lost", |row| row.counter(Counter::Lost)),
    (0, "reserve", "touched", |row| row.counter(Counter::Touched)),
    (0, "", "unaccounted", |row| {
        row.counter(Counter::Unaccounted)
    }),
    (2, "kernel", "late", |row| {
        row.sum(|run| run.kernel_late.total)
    }),
    (1, "", "samples", |row| row.sum(|run| run.samples)),
];

/// Table of a block: a line for each cell. Times are microseconds, medians over the repetitions; counts are sums.
fn runs_table(report: &Report, block: &Block, runs: &[&Run], columns: usize) -> String {
    let rows = Row::of(runs.iter().copied());
    let Some(first) = rows.first() else {
        return String::new();
    };
    let names = names(block, &rows);
    let is_stream = first.runs.iter().any(|run| run.stream.is_some());
    let (shown, unit) = match is_stream {
        true => (&STREAM_COLUMNS[..], "CPU time for each sample"),
        false if block.expect.is_empty() => (&COLUMNS[..], "times in us"),
        false => (&COUNTERS[..], "counts"),
    };
    let repetitions = match first.runs.len() {
        1 => String::new(),
        count if block.expect.is_empty() => format!(", medians of {count} repetitions"),
        count => format!(", sums of {count} repetitions"),
    };
    let table = cells_table(&names, &rows, shown, columns);
    let mut text = format!("{} ({unit}{repetitions})\n{table}", block.title);
    for (row, run) in rows
        .iter()
        .flat_map(|row| row.runs.iter().map(move |run| (row, run)))
    {
        if let Some((word, reason)) = report.fault(run) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{word}: {}: {reason}", name(&names, row.cell));
        }
    }
    let has_delays = |run: &&Run| run.one_way.refused.is_none() && run.stream.is_none();
    if block.expect.is_empty() && runs.iter().any(has_delays) {
        let table = cells_table(&names, &rows, &ONE_WAY_COLUMNS, columns);
        // Writing to a string cannot fail.
        let _ = write!(text, "\nOne way ({unit}{repetitions})\n{table}");
    }
    text
}

/// Lines with the values of these names, and these columns as far as the width allows. Streams leave out columns without
/// a value.
fn cells_table(names: &[String], rows: &[Row<'_>], shown: &[Column], columns: usize) -> String {
    let lines_of = |shown: &[Column]| {
        let mut lines = vec![vec![String::new(); names.len()], names.to_vec()];
        for (_, above, below, _) in shown {
            lines[0].push((*above).to_owned());
            lines[1].push((*below).to_owned());
        }
        for row in rows {
            let value = |name: &String| {
                let value = row.cell.value(name);
                value.map_or_else(String::new, |value| words(name, &value))
            };
            let mut line: Vec<String> = names.iter().map(value).collect();
            line.extend(shown.iter().map(|(_, _, _, cell)| cell(row)));
            lines.push(line);
        }
        lines
    };
    let is_stream = |row: &Row<'_>| row.runs.iter().any(|run| run.stream.is_some());
    let has_value = |column: &Column| rows.iter().any(|row| column.3(row) != "-");
    let mut shown = shown.to_vec();
    if rows.iter().any(is_stream) {
        shown.retain(has_value);
    }
    let mut text = aligned(&lines_of(&shown), names.len());
    for least in (1..=7).rev() {
        if text.lines().all(|line| line.chars().count() <= columns) {
            break;
        }
        shown.retain(|(number, ..)| *number < least);
        text = aligned(&lines_of(&shown), names.len());
    }
    text
}

/// Names of the values in which the rows differ; only the label if each row has one.
pub(super) fn names(block: &Block, rows: &[Row<'_>]) -> Vec<String> {
    let factors = block.factors.iter().map(|factor| factor.name.clone());
    if rows.iter().all(|row| row.cell.label.is_some()) {
        return ["label".to_owned()].into_iter().chain(factors).collect();
    }
    let mut names: Vec<String> = factors.collect();
    let Some(first) = rows.first().map(|row| row.cell) else {
        return Vec::new();
    };
    names.extend(
        rows.iter()
            .flat_map(|row| row.cell.values())
            .map(|(name, _)| name),
    );
    let mut names = unique(names);
    names.retain(|name| {
        let value = first.value(name);
        name == "payload_bytes" || rows.iter().any(|row| row.cell.value(name) != value)
    });
    names
}

/// Name of a cell by these values.
pub(super) fn name(names: &[String], cell: &Cell) -> String {
    let values = names
        .iter()
        .filter_map(|name| Some(words(name, &cell.value(name)?)));
    values.collect::<Vec<_>>().join(", ")
}

/// Table of a block's ratios: a line for each pair of levels, a column for each compared statistic.
fn ratio_table(ratios: &[&Ratio]) -> String {
    let what = unique(ratios.iter().map(|ratio| (ratio.of, ratio.measure)));
    let key = |ratio: &Ratio| (ratio.at.clone(), ratio.factor.clone(), ratio.levels.clone());
    let mut lines: Vec<Vec<String>> = vec![["ratio of", "to", ""].map(str::to_owned).to_vec()];
    lines[0].extend(what.iter().map(|(of, measure)| match of {
        Of::Rtt => format!("RTT {}", measure.word()),
        Of::Host => format!("hosts {}", measure.word()),
        Of::Stream => measure.word().to_owned(),
    }));
    let mut keys = Vec::new();
    for ratio in ratios {
        let of_key = key(ratio);
        if keys.contains(&of_key) {
            continue;
        }
        let levels = ratio
            .levels
            .clone()
            .map(|level| words(&ratio.factor, &level.into()));
        let mut line = [levels.to_vec(), vec![ratio.at.clone()]].concat();
        for wanted in &what {
            let mut same = ratios.iter().filter(|other| key(other) == of_key);
            let found = same.find(|other| (other.of, other.measure) == *wanted);
            line.push(found.map_or_else(String::new, |ratio| ratio_words(ratio)));
        }
        lines.push(line);
        keys.push(of_key);
    }
    match keys.is_empty() {
        true => String::new(),
        false => {
            aligned(&lines, 3)
                + &bars::wrapped(
                    "Ratios with their 95 % intervals. An interval without a ratio includes 1: no \
                     difference was seen. Lost round trips do not count.",
                )
        }
    }
}

/// Ratio with its interval; the interval alone if it includes 1.
fn ratio_words(ratio: &Ratio) -> String {
    match (ratio.value, ratio.interval()) {
        (Some(value), Some(interval)) => {
            let range = format!("({:.2} to {:.2})", interval.low, interval.high);
            match interval.is_difference() {
                true => format!("{value:.2} {range}"),
                false => range,
            }
        }
        (Some(value), None) => format!("{value:.2}, no interval"),
        (None, _) => "-".to_owned(),
    }
}

pub(super) fn micros(value: Option<f64>) -> String {
    let Some(value) = value else {
        return "-".to_owned();
    };
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value => format!("{value:.1}"),
    }
}

/// Description of the check on each round's timestamps, and of its limits.
const CHECKED: &str = "each round has all its timestamps, in order. Both ways and the turnaround add up to the round \
                                  trip; that is no proof of a shared clock, because they add up with any clocks";

const ONE_WAY_COLUMNS: [Column; 8] = [
    (0, "there", "median", |row| {
        row.delay(|it| it.there_us.median)
    }),
    (1, "there", "p99", |row| row.delay(|it| it.there_us.p99)),
    (3, "there", "max", |row| row.delay(|it| it.there_us.max)),
    (2, "turnaround", "median", |row| {
        row.delay(|it| it.turnaround_us.median)
    }),
    (0, "back", "median", |row| row.delay(|it| it.back_us.median)),
    (1, "back", "p99", |row| row.delay(|it| it.back_us.p99)),
    (3, "back", "max", |row| row.delay(|it| it.back_us.max)),
    (4, "", "rounds", |row| row.sum(|run| run.one_way.rounds)),
];

/// Clocks of the timestamps, and the distinct reasons why runs have no one-way delays. Empty without runs.
fn clocks(runs: &[&Run]) -> String {
    let timed = runs.iter().filter(|run| run.stream.is_none());
    let sentences = timed.map(|run| match (&run.one_way.refused, &run.one_way.clock) {
        (Some(why), _) => {
            let settings = &run.settings;
            format!(
                "{} B over {}: {why}.\n",
                settings.payload_bytes, settings.datapath
            )
        }
        (None, clock) => format!(
            "Both ends report {} as the clock of their timestamps; {CHECKED}.\n",
            clock.as_deref().unwrap_or("one clock")
        ),
    });
    unique(sentences).concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{self, Load};
    use crate::record::{PingRecorder, PongRecorder, Rounds, StampClock};
    use crate::report::RunSettings;
    use crate::report::tests::{ORDERS, report, silent_run};

    #[test]
    fn a_line_has_its_levels_and_times_and_narrow_terminals_fewer_columns() {
        let mut report = report(ORDERS, |cell| match cell.disturbance {
            Load::None => 400,
            _ => 4_000,
        });
        report.runs[1].rtt_us.max = Some(14_045.25);
        report.runs[1].rtt_us.p99_9 = None;
        report.runs[2].invalid = Some("the ledger is off".into());
        let wide = text(&report, Some(140));
        let lines: Vec<&str> = wide.lines().collect();
        assert_eq!(lines[0], "Two orders (times in us)");
        let cells: Vec<&str> = lines[4].split_whitespace().collect();
        assert_eq!(
            cells[..8],
            [
                "undisturbed",
                "priority",
                "order",
                "64",
                "B",
                "200",
                "400",
                "-"
            ]
        );
        assert!(cells.contains(&"14045"), "{wide}");
        assert!(
            lines[5].contains(" -  "),
            "no times of an invalid run: {wide}"
        );
        assert!(
            wide.contains("INVALID: bulk, fifo order, 64 B: the ledger is off"),
            "{wide}"
        );
        let end_of = |line: &str, word: &str| line.find(word).expect(word) + word.len();
        assert_eq!(end_of(lines[2], "max"), end_of(lines[4], "14045"));
        for columns in [80, 120] {
            let text = text(&report, Some(columns));
            let table = text.split("\n\n").next().expect("a table");
            let fits = |line: &&str| line.chars().count() <= columns || line.starts_with("INVALID");
            assert!(table.lines().all(|line| fits(&line)), "{text}");
            assert!(table.contains("p99") && table.contains("lost"), "{text}");
        }
    }

    #[test]
    fn repetitions_are_one_line_with_their_median() {
        let text = format!("repetitions = 3\n{ORDERS}");
        let mut report = report(&text, |_| 400);
        let fifo = report.runs.iter_mut().filter(|run| run.number % 4 == 1);
        for (p99, run) in [100.0, 900.0, 300.0].into_iter().zip(fifo) {
            (run.rtt_us.p99, run.lost) = (Some(p99), 2);
        }
        let text = super::text(&report, Some(120));
        assert!(text.starts_with("Two orders (times in us, medians of 3 repetitions)"));
        let line = text.lines().nth(3).expect("a line");
        assert!(line.contains(" 300 ") && line.contains(" 6 "), "{text}");
    }

    #[test]
    fn a_ratio_without_a_difference_is_its_interval_alone() {
        let report = report(ORDERS, |cell| match (cell.disturbance, cell.order.word()) {
            (Load::None, _) | (_, "fifo") => 400,
            _ => 4_000,
        });
        let text = text(&report, None);
        let of_order = |order: &str| {
            let mut lines = text
                .lines()
                .filter(|line| line.starts_with("bulk      undisturbed"));
            lines
                .find(|line| line.contains(order))
                .expect("a ratio")
                .to_owned()
        };
        assert!(
            of_order("priority order").ends_with("10.00 (10.00 to 10.00)"),
            "{text}"
        );
        assert!(
            of_order("fifo order").ends_with("  (1.00 to 1.00)"),
            "{text}"
        );
    }

    /// Rounds of 200 us: 90 forward, 10 turnaround, 100 back.
    fn run(ping_clock: &StampClock, pong_clock: &StampClock) -> Run {
        let (mut ping, mut pong) = (PingRecorder::new(100, 1), PongRecorder::new(100, 1));
        let settings = RunSettings::new("udp", 64);
        for id in 0..100 {
            let start_ns = 1 + u64::from(id) * settings.period_ns();
            let nonce = ping.nonce(id);
            ping.sent(id, start_ns, start_ns);
            pong.received(id, nonce, start_ns + 90_000);
            pong.replied(id, start_ns + 100_000);
            ping.returned(id, nonce, start_ns + 200_000);
        }
        let clocks = [ping_clock, pong_clock];
        let rounds = Rounds::merge(ping, pong, None, settings.period_ns(), clocks).unwrap();
        Run::new(&settings, &rounds, None)
    }

    #[test]
    fn ways_of_one_clock_stand_in_a_line_and_the_clock_is_named_once() {
        let here = StampClock::of_this_process();
        let scenario = experiment::Scenario::parse(ORDERS).expect("a scenario");
        let mut report = Report::new(scenario, String::new());
        for repetition in 1..=2 {
            let mut run = run(&here, &here);
            run.repetition = repetition;
            run.block = Some(0);
            run.cell = Some(Cell::default());
            report.add(run);
        }
        let text = text(&report, Some(100));
        let start = text.find("One way (times in us, medians of 2 repetitions)");
        let lines: Vec<&str> = text[start.expect("a table")..].lines().collect();
        assert!(
            lines[1].contains("there") && lines[1].contains("back"),
            "{text}"
        );
        assert!(
            lines[3].ends_with("90.0      -   90.0        10.0     100     -   100     200"),
            "{text}"
        );
        assert!(
            lines[5].starts_with("Both ends report CLOCK_MONOTONIC")
                && lines[5].contains("no proof"),
            "{text}"
        );
        assert_eq!(lines.len(), 6, "{text}");
    }

    #[test]
    fn of_two_clocks_there_is_the_reason_and_no_number_anywhere() {
        let here = StampClock::of_this_process();
        let elsewhere = StampClock {
            boot: Some("another".to_owned()),
            ..here.clone()
        };
        let run = run(&here, &elsewhere);
        assert_eq!(run.owd_us, Default::default());
        assert_eq!(run.distribution.owd_us, None);
        assert_eq!(run.rtt_us.median, Some(200.0), "round trips are right");
        let text = clocks(&[&run]);
        assert!(text.contains("two machines"), "{text}");
    }

    #[test]
    fn a_run_of_which_nothing_came_back_has_no_ways() {
        let run = silent_run(None);
        assert_eq!(run.one_way.rounds, 0);
        assert!(clocks(&[]).is_empty());
    }
}
