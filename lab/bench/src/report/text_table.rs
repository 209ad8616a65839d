//! Text tables of runs, with columns as wide as their widest cell.
//!
//! The table of all runs has the columns of tables I and II of Meszlényi et al., the percentiles of the round trip, the
//! median of the p99s of one-second windows, losses, late sends and timer lateness. The table of one-way delays has the
//! components of round trips, followed by their clocks and checks.

use std::fmt::Write;

use super::ablation::{ablation_table, effects_table, overall_table};
use super::comparison::{arbiter_table, flood_table, order_table};
use super::{ReceiveWork, Run, Stage, summary};

/// Form of the results on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A line with every number per run.
    EachRun,
    /// Ablation tables only, because a table of alternating runs would be unreadable.
    Steps,
    /// Bars and a conclusion for one screen.
    Summary,
}

/// Tables of a result for people, without the empty ones.
pub fn tables(runs: &[Run], shown: Shown) -> Vec<String> {
    let all: &[fn(&[Run]) -> String] = match shown {
        Shown::EachRun => &[
            table,
            one_way_table,
            flood_table,
            arbiter_table,
            order_table,
            ablation_table,
            effects_table,
            overall_table,
        ],
        Shown::Steps => &[ablation_table, effects_table, overall_table],
        Shown::Summary => &[summary::text],
    };
    let tables = all.iter().map(|table| table(runs));
    tables.filter(|table| !table.is_empty()).collect()
}

/// Side to which cells are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// Formats rows with the same number of cells, each column as wide as its widest cell.
pub(super) fn aligned(rows: &[Vec<String>], align: Align) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let padded = row.iter().zip(&widths).map(|(cell, &width)| match align {
            Align::Left => format!("{cell:<width$}"),
            Align::Right => format!("{cell:>width$}"),
        });
        text.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

pub(super) fn cells<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// Column with its two lines of heading and its cell function.
type Column = (&'static str, &'static str, fn(&Run) -> String);

/// Formats a line per run below the headings of `columns`.
fn of_runs<'a>(columns: &[Column], runs: impl Iterator<Item = &'a Run>) -> String {
    let mut rows = vec![
        columns.iter().map(|column| column.0.to_owned()).collect(),
        columns.iter().map(|column| column.1.to_owned()).collect(),
    ];
    rows.extend(runs.map(|run| columns.iter().map(|(_, _, cell)| cell(run)).collect()));
    aligned(&rows, Align::Right)
}

const COLUMNS: [Column; 20] = [
    ("", "payload", |run| format!("{} B", run.payload_bytes)),
    ("", "interf.", interference),
    ("", "arbiter", arbiter),
    ("", "order", |run| run.order.word().to_owned()),
    ("RTT", "max", |run| micros(run.rtt_us.max)),
    ("OWD", "max", |run| micros(run.owd_us.max)),
    ("RTT", "min", |run| micros(run.rtt_us.min)),
    ("OWD", "min", |run| micros(run.owd_us.min)),
    ("RTT", "var", |run| micros(run.rtt_us.variance)),
    ("OWD", "var", |run| micros(run.owd_us.variance)),
    ("RTT", "med", |run| micros(run.rtt_us.median)),
    ("OWD", "med", |run| micros(run.owd_us.median)),
    ("RTT", "p99", |run| micros(run.rtt_us.p99)),
    ("RTT", "p99.9", |run| micros(run.rtt_us.p99_9)),
    ("1 s p99", "median", |run| micros(run.window_p99_median_us)),
    ("", "samples", |run| run.samples.to_string()),
    ("", "lost", |run| run.lost.to_string()),
    ("", "late", |run| run.late_sends.to_string()),
    ("sender", "late max", |run| micros(run.sender_late_max_us)),
    ("cable", "late max", |run| micros(run.cable_late_max_us)),
];

/// Table of all runs in blocks with the same settings, in the given order. Times are microseconds, variances square
/// microseconds; "-" marks unknown values.
fn table(runs: &[Run]) -> String {
    let mut text = String::new();
    for block in runs.chunk_by(|a, b| settings(a) == settings(b)) {
        if !text.is_empty() {
            text.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} (times in us)", settings(&block[0]));
        text.push_str(&of_runs(&COLUMNS, block.iter()));
        for run in block {
            if let Some(reason) = &run.invalid {
                let (interference, order) = (interference(run), run.order.word());
                let _ = writeln!(
                    text,
                    "INVALID: {} B, {interference}, order {order}: {reason}",
                    run.payload_bytes
                );
            }
        }
    }
    text
}

/// Heading of a block. It omits jobs by priority, because the order is a column, and `xdp`, because it is the
/// datapath's name.
fn settings(run: &Run) -> String {
    let is_shown = |stage: &&Stage| !matches!(stage, Stage::Executor | Stage::Xdp);
    let stages = run.stages.iter().filter(is_shown).map(|stage| stage.word());
    let receive_work = match run.receive_work {
        ReceiveWork::Softirq => None,
        other => Some(other.word()),
    };
    let words: Vec<&str> = std::iter::once(run.datapath.as_str())
        .chain(stages)
        .chain(receive_work)
        .collect();
    let link = match &run.cable {
        Some(cable) => format!("a link of {} Mbit/s", cable.bits_per_s as f64 / 1e6),
        None => "no link".to_owned(),
    };
    format!(
        "{}, published by a {}, {} Hz, {link}",
        words.join(" + "),
        run.publisher.word(),
        run.rate_hz
    )
}

fn interference(run: &Run) -> String {
    let word = run
        .disturbance
        .map_or("off", |disturbance| disturbance.word());
    match run.bulk_reader {
        Some(_) => format!("{word}, read"),
        None => word.to_owned(),
    }
}

fn arbiter(run: &Run) -> String {
    let word = run.arbiter().map(|arbiter| arbiter.word());
    word.unwrap_or("-").to_owned()
}

fn micros(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

/// Description of the check on each round's timestamps, and of its limits.
const CHECKED: &str = "each round has all its timestamps, in order. Both ways and the turnaround add up to the round \
                                  trip; that is no proof of a shared clock, because they add up with any clocks";

const ONE_WAY_COLUMNS: [Column; 12] = [
    ("", "payload", |run| format!("{} B", run.payload_bytes)),
    ("", "interf.", interference),
    ("", "arbiter", arbiter),
    ("", "order", |run| run.order.word().to_owned()),
    ("there", "median", |run| micros(run.one_way.there_us.median)),
    ("there", "p99", |run| micros(run.one_way.there_us.p99)),
    ("there", "max", |run| micros(run.one_way.there_us.max)),
    ("turnaround", "median", |run| {
        micros(run.one_way.turnaround_us.median)
    }),
    ("back", "median", |run| micros(run.one_way.back_us.median)),
    ("back", "p99", |run| micros(run.one_way.back_us.p99)),
    ("back", "max", |run| micros(run.one_way.back_us.max)),
    ("", "rounds", |run| run.one_way.rounds.to_string()),
];

/// Table with a line per run, grouped by datapath, followed by the clocks and the distinct reasons why runs have no
/// one-way delays. Empty without runs.
fn one_way_table(runs: &[Run]) -> String {
    let mut text = String::new();
    let has_delays = |run: &&Run| run.one_way.refused.is_none();
    for block in runs.chunk_by(|a, b| a.datapath == b.datapath) {
        if block.iter().any(|run| has_delays(&run)) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "One way over {} (times in us)", block[0].datapath);
            text.push_str(&of_runs(&ONE_WAY_COLUMNS, block.iter().filter(has_delays)));
        }
    }
    let mut sentences: Vec<String> = Vec::new();
    for run in runs {
        let sentence = match (&run.one_way.refused, &run.one_way.clock) {
            (Some(why), _) => format!("{} B over {}: {why}.", run.payload_bytes, run.datapath),
            (None, clock) => format!(
                "Both ends report {} as the clock of their timestamps; {CHECKED}.",
                clock.as_deref().unwrap_or("one clock")
            ),
        };
        if !sentences.contains(&sentence) {
            let _ = writeln!(text, "{sentence}");
            sentences.push(sentence);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cable;
    use crate::report::tests::silent_run;
    use crate::report::{Cable, Disturbance, Order};

    #[test]
    fn each_way_of_running_is_a_block_and_unknown_is_a_dash() {
        let mut fifo = silent_run(Some(Disturbance::Bulk));
        fifo.order = Order::Fifo;
        fifo.rtt_us.max = Some(14_045.25);
        fifo.invalid = Some("the ledger is off".into());
        let fast = cable::Config {
            bits_per_s: 1_000_000_000,
            ..cable::Config::default()
        };
        fifo.cable = Some(Cable::of(&fast));
        let text = table(&[silent_run(None), silent_run(Some(Disturbance::Flood)), fifo]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "udp, published by a job, 2000 Hz, no link (times in us)"
        );
        assert!(
            lines[1].contains("RTT") && lines[2].contains("p99.9"),
            "{text}"
        );
        assert!(
            lines[3].contains("64 B") && lines[3].contains(" off "),
            "{text}"
        );
        assert!(
            lines[3].contains(" - ") && !lines[3].contains(" 0.0"),
            "{text}"
        );
        assert!(lines[4].contains(" flood "), "{text}");
        assert!(lines[6].contains("a link of 1000 Mbit/s"), "{text}");
        let row: Vec<&str> = lines[9].split_whitespace().collect();
        assert!(row.contains(&"14045.2"), "{text}");
        assert!(
            row.windows(3)
                .any(|words| words == ["bulk", "fifo", "fifo"]),
            "arbiter and order: {text}"
        );
        assert_eq!(
            lines[10],
            "INVALID: 64 B, bulk, order fifo: the ledger is off"
        );
    }

    #[test]
    fn columns_stand_under_their_headings() {
        let mut run = silent_run(None);
        run.rtt_us.variance = Some(148_494.1);
        let text = table(&[run]);
        let lines: Vec<&str> = text.lines().collect();
        let end_of = |line: &str, word: &str| line.find(word).unwrap() + word.len();
        assert_eq!(end_of(lines[2], "var"), end_of(lines[3], "148494.1"));
        assert_eq!(end_of(lines[2], "samples"), end_of(lines[3], "10"));
    }
}

#[cfg(test)]
mod one_way_tests {
    use super::*;
    use crate::record::{PingRecorder, PongRecorder, Rounds, StampClock};
    use crate::report::tests::{scenario, silent_run};

    /// Rounds of 200 us: 90 forward, 10 turnaround, 100 back.
    fn run(ping_clock: &StampClock, pong_clock: &StampClock) -> Run {
        let (mut ping, mut pong) = (PingRecorder::new(100, 1), PongRecorder::new(100, 1));
        let scenario = scenario(64, None);
        for id in 0..100 {
            let start_ns = 1 + u64::from(id) * scenario.period_ns();
            let nonce = ping.nonce(id);
            ping.sent(id, start_ns, start_ns);
            pong.received(id, nonce, start_ns + 90_000);
            pong.replied(id, start_ns + 100_000);
            ping.returned(id, nonce, start_ns + 200_000);
        }
        let clocks = [ping_clock, pong_clock];
        let rounds = Rounds::merge(ping, pong, None, scenario.period_ns(), clocks).unwrap();
        Run::new(&scenario, &rounds, None)
    }

    #[test]
    fn ways_of_one_clock_stand_in_a_line_and_the_clock_is_named_once() {
        let here = StampClock::of_this_process();
        let text = one_way_table(&[run(&here, &here), run(&here, &here)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "One way over udp (times in us)");
        assert!(
            lines[1].contains("there") && lines[1].contains("back"),
            "{text}"
        );
        let cells: Vec<&str> = lines[3].split_whitespace().collect();
        assert_eq!(
            cells[5..],
            ["90.0", "-", "90.0", "10.0", "100.0", "-", "100.0", "100"],
            "{text}"
        );
        assert_eq!(lines[3], lines[4]);
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
        let text = one_way_table(&[run]);
        assert!(
            text.contains("two machines") && !text.contains("90.0"),
            "{text}"
        );
    }

    #[test]
    fn a_run_of_which_nothing_came_back_has_no_ways() {
        let run = silent_run(None);
        assert_eq!(run.one_way.rounds, 0);
        assert!(one_way_table(&[]).is_empty());
    }
}
