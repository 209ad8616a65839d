//! Text tables of comparisons.

use std::fmt::Write;

use super::{Kind, Measure, Of, Pair, Publisher, Run, pairs};
use crate::report::{Disturbance, Order};

/// Width of a column of numbers.
const COLUMN: usize = 9;

/// Ratios under the flood: a line per payload, two columns per publisher. Empty without a comparison.
pub fn flood_table(runs: &[Run]) -> String {
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

    let mut text = String::from("Round trips beside the flood take so many times as long\n");
    // Writing to a string cannot fail.
    let _ = write!(text, "{:>COLUMN$}", "");
    for publisher in &publishers {
        let _ = write!(text, "{:>1$}", publisher.word(), SHOWN.len() * COLUMN);
    }
    let _ = write!(text, "\n{:>COLUMN$}", "payload");
    for measure in publishers.iter().flat_map(|_| SHOWN) {
        let _ = write!(text, "{:>COLUMN$}", measure.word());
    }
    text.push('\n');
    for payload in payloads {
        let _ = write!(text, "{:>COLUMN$}", format!("{payload} B"));
        for &publisher in &publishers {
            let mut of_publisher = all.iter().filter(is_by(publisher));
            let pair = of_publisher.find(|pair| pair.dividend.payload_bytes == payload);
            for measure in SHOWN {
                let value = pair.and_then(|pair| pair.ratio(Of::Rtt, measure).value);
                let _ = write!(text, "{:>COLUMN$}", times(value));
            }
        }
        text.push('\n');
    }
    text
}

/// Flood on a FIFO link and on a strict one. Empty without a comparison.
pub fn arbiter_table(runs: &[Run]) -> String {
    let mut rows: Vec<Vec<String>> = vec![
        cells([
            "",
            "",
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
    "The flood on a link that serves frames as they came (fifo), and the most urgent class first \
     (strict); RTT in us\n"
        .to_owned()
        + &aligned(&rows)
}

/// Inside disturbances with FIFO jobs and with jobs by priority. Empty without a comparison.
pub fn order_table(runs: &[Run]) -> String {
    const SHOWN: [Measure; 4] = [Measure::Median, Measure::P99, Measure::P999, Measure::Max];
    let mut headings = vec![String::new(); 2];
    let mut names = cells(["interf.", "order"]);
    for part in ["RTT", "hosts"] {
        headings.extend(cells([part, "", "", ""]));
        names.extend(SHOWN.map(|measure| measure.word().to_owned()));
    }
    headings.extend(cells(["priority", "late by"]));
    names.extend(cells(["inversions", "the kernel"]));
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
        "Disturbed from inside the participants, jobs run as they became ready (fifo) and \
                    the most urgent first (priority); times in us\n"
            .to_owned()
            + &aligned(&rows);
    for run in runs {
        text.push_str(&achieved(run));
    }
    text
}

/// Line with a disturbance's achievement.
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
            "joining, {order}: {} endpoints appeared and {} left; the ends took in {} and {} announcements\n",
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

fn cells<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// Formats rows with the same number of cells, each column as wide as its widest cell.
pub(in crate::report) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, &width)| format!("{cell:>width$}"))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::runs;
    use super::*;
    use crate::report::Disturbed;

    #[test]
    fn ratios_are_shown_by_payload_and_publisher() {
        let mut runs = runs(&[64, 512]);
        runs[0].invalid = Some("the ledger is off".into());
        let lines = [
            "Round trips beside the flood take so many times as long",
            "                      thread               job",
            "  payload   median      p99   median      p99",
            "     64 B        -        -     30.0     30.0",
            "    512 B     30.0     30.0     30.0     30.0",
        ];
        let text = flood_table(&runs);
        let shown: Vec<&str> = text.lines().collect();
        assert_eq!(shown[0], lines[0]);
        assert_eq!(shown[2..], lines[2..], "{text}");
        assert!(shown[1].ends_with("job") && shown[1].contains("thread"));
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
