//! Text table of the components of round trips: forward delay, turnaround and return delay, with their clocks and
//! checks.

use std::fmt::Write;

use super::{Run, table};

/// Description of the check on each round's timestamps, and of its limits.
pub(super) const CHECKED: &str = "of each round the stamps are there and in order. That both ways and the turnaround are the round \
                                  trip, as they are, is no proof of it: they would add up by any clocks";

/// Two-line headings of the columns.
const HEADINGS: [[&str; 2]; 12] = [
    ["", "payload"],
    ["", "interf."],
    ["", "arbiter"],
    ["", "order"],
    ["there", "median"],
    ["there", "p99"],
    ["there", "max"],
    ["turnaround", "median"],
    ["back", "median"],
    ["back", "p99"],
    ["back", "max"],
    ["", "rounds"],
];

/// Table with a line per run, grouped by datapath, followed by the clocks and the distinct reasons why runs have no
/// one-way delays. Empty without runs.
pub fn one_way_table(runs: &[Run]) -> String {
    let mut text = String::new();
    let has_delays = |run: &&Run| run.one_way.refused.is_none();
    for block in runs.chunk_by(|a, b| a.datapath == b.datapath) {
        let rows: Vec<[String; HEADINGS.len()]> =
            block.iter().filter(has_delays).map(row).collect();
        if rows.is_empty() {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "One way over {} (times in us)", block[0].datapath);
        write_rows(&mut text, &rows);
    }
    let mut told: Vec<String> = Vec::new();
    for run in runs {
        let sentence = match (&run.one_way.refused, &run.one_way.clock) {
            (Some(why), _) => format!("{} B over {}: {why}.", run.payload_bytes, run.datapath),
            (None, clock) => format!(
                "Both ends stamp by {}, which each of them says; {CHECKED}.",
                clock.as_deref().unwrap_or("one clock")
            ),
        };
        if !told.contains(&sentence) {
            let _ = writeln!(text, "{sentence}");
            told.push(sentence);
        }
    }
    text
}

fn write_rows(text: &mut String, rows: &[[String; HEADINGS.len()]]) {
    let width = |column: usize| {
        let contents = rows.iter().map(|row| row[column].len());
        let headings = HEADINGS[column].iter().map(|heading| heading.len());
        contents.chain(headings).max().unwrap_or(0)
    };
    let mut write_row = |cell: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = (0..HEADINGS.len())
            .map(|column| format!("{:>width$}", cell(column), width = width(column)))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    };
    write_row(&|column| HEADINGS[column][0].to_owned());
    write_row(&|column| HEADINGS[column][1].to_owned());
    for row in rows {
        write_row(&|column| row[column].clone());
    }
}

fn row(run: &Run) -> [String; HEADINGS.len()] {
    let parts = &run.one_way;
    let time = table::micros;
    [
        format!("{} B", run.payload_bytes),
        table::interference(run),
        table::arbiter(run),
        run.order.word().to_owned(),
        time(parts.there_us.median),
        time(parts.there_us.p99),
        time(parts.there_us.max),
        time(parts.turnaround_us.median),
        time(parts.back_us.median),
        time(parts.back_us.p99),
        time(parts.back_us.max),
        parts.rounds.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::tests::{scenario, silent_run};
    use super::*;
    use crate::record::{PingRecorder, PongRecorder, Rounds, StampClock};

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
            lines[5].starts_with("Both ends stamp by CLOCK_MONOTONIC")
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
