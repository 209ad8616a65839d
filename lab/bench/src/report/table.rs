//! Text table of runs: the columns of paper 000's tables I and II, the percentiles of the round trip, the median of
//! windows' p99, losses, late sends and timer lateness.

use std::fmt::Write;

use super::{ReceiveWork, Run, Stage};

/// Column with its two lines of heading and its cell function.
type Column = (&'static str, &'static str, fn(&Run) -> String);

const COLUMNS: [Column; 20] = [
    ("", "payload", |run| format!("{} B", run.payload_bytes)),
    ("RTT", "max", |run| micros(run.rtt_us.max)),
    ("OWD", "max", |run| micros(run.owd_us.max)),
    ("RTT", "min", |run| micros(run.rtt_us.min)),
    ("OWD", "min", |run| micros(run.owd_us.min)),
    ("RTT", "var", |run| micros(run.rtt_us.variance)),
    ("OWD", "var", |run| micros(run.owd_us.variance)),
    ("RTT", "med", |run| micros(run.rtt_us.median)),
    ("OWD", "med", |run| micros(run.owd_us.median)),
    ("", "interf.", interference),
    ("", "arbiter", arbiter),
    ("", "order", |run| run.order.word().to_owned()),
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
pub fn table(runs: &[Run]) -> String {
    let mut text = String::new();
    for block in runs.chunk_by(|a, b| way_of_running(a) == way_of_running(b)) {
        if !text.is_empty() {
            text.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} (times in us)", way_of_running(&block[0]));
        write_block(&mut text, block);
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

fn write_block(text: &mut String, block: &[Run]) {
    let cells: Vec<[String; COLUMNS.len()]> = block
        .iter()
        .map(|run| COLUMNS.map(|(_, _, cell)| cell(run)))
        .collect();
    let widths: [usize; COLUMNS.len()] = std::array::from_fn(|column| {
        let (over, name, _) = COLUMNS[column];
        let contents = cells.iter().map(|row| row[column].len());
        contents.chain([over.len(), name.len()]).max().unwrap_or(0)
    });
    let mut write_row = |cell: &dyn Fn(usize) -> String| {
        let row: Vec<String> = (0..COLUMNS.len())
            .map(|column| format!("{:>width$}", cell(column), width = widths[column]))
            .collect();
        text.push_str(row.join("  ").trim_end());
        text.push('\n');
    };
    write_row(&|column| COLUMNS[column].0.to_owned());
    write_row(&|column| COLUMNS[column].1.to_owned());
    for row in &cells {
        write_row(&|column| row[column].clone());
    }
}

/// Heading of a block. It omits jobs by priority, because the order is a column, and `xdp`, because it is the
/// datapath's name.
fn way_of_running(run: &Run) -> String {
    let is_told = |stage: &&Stage| !matches!(stage, Stage::Executor | Stage::Xdp);
    let stages = run.stages.iter().filter(is_told).map(|stage| stage.word());
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

pub(super) fn interference(run: &Run) -> String {
    let word = run
        .disturbance
        .map_or("off", |disturbance| disturbance.word());
    match run.bulk_reader {
        Some(_) => format!("{word}, read"),
        None => word.to_owned(),
    }
}

pub(super) fn arbiter(run: &Run) -> String {
    let word = run.arbiter().map(|arbiter| arbiter.word());
    word.unwrap_or("-").to_owned()
}

pub(super) fn micros(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::silent_run;
    use super::super::{Cable, Disturbance, Order};
    use super::*;
    use crate::cable;

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
