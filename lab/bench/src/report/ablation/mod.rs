//! Ablation: one remedy at a time, with tables and the effect of each step.
//!
//! ```text
//!   runs --> blocks (same payload, disturbance, link)
//!              +--> table: a line a step, in each cell every repetition, and their median and range
//!              +--> effects: a step and the one it builds on, with the interval of its ratio
//!              +--> overall: the same over all payloads, which says more where the machine is noisy
//! ```
//!
//! A step may have no effect: then the interval of its ratio covers 1, and the text says that no difference was seen.

mod effects;
mod step;

use std::fmt::Write;

use super::text_table::{Align, aligned, cells};
use super::{Disturbance, Publisher, Run};
use crate::cable::Arbiter;
use crate::statistics::Statistics;

pub use effects::{Baseline, Compared, Effect, Overall, Unit, effects, overall};
pub(super) use effects::{effects_table, overall_table};
pub use step::Step;

/// Common properties of a block's runs.
type Block = (u32, Option<Disturbance>, bool, Option<Arbiter>, Publisher);

fn block_of(run: &Run) -> Block {
    (
        run.payload_bytes,
        run.disturbance,
        run.bulk_reader.is_some(),
        run.arbiter(),
        run.publisher,
    )
}

/// Runs that are steps, grouped into blocks that differ only in step and repetition.
fn blocks(runs: &[Run]) -> Vec<Vec<&Run>> {
    let mut blocks: Vec<Vec<&Run>> = Vec::new();
    for run in runs.iter().filter(|run| Step::of_run(run).is_some()) {
        match blocks
            .iter_mut()
            .find(|block| block_of(block[0]) == block_of(run))
        {
            Some(block) => block.push(run),
            None => blocks.push(vec![run]),
        }
    }
    blocks
}

fn steps_of(block: &[&Run]) -> Vec<Step> {
    let mut steps: Vec<Step> = block.iter().copied().filter_map(Step::of_run).collect();
    steps.sort_unstable();
    steps.dedup();
    steps
}

/// Text table of an ablation: a block per payload, disturbance and arbiter, a line per step, all repetitions in each
/// cell, and median and range of the p99s. Empty without two steps to compare.
pub(in crate::report) fn ablation_table(runs: &[Run]) -> String {
    let mut tables: Vec<String> = Vec::new();
    for block in blocks(runs) {
        let steps = steps_of(&block);
        if steps.len() > 1 {
            tables.push(block_table(&block, &steps));
        }
    }
    tables.join("\n")
}

fn block_table(runs: &[&Run], steps: &[Step]) -> String {
    const HEADINGS: [[&str; 8]; 2] = [
        ["", "RTT", "", "hosts", "", "link", "lost", "priority"],
        [
            "",
            "median",
            "p99",
            "median",
            "p99",
            "p99",
            "",
            "inversions",
        ],
    ];
    let mut rows: Vec<Vec<String>> = HEADINGS.map(cells).to_vec();
    for &step in steps {
        let of_step = runs.iter().filter(|run| Step::of_run(run) == Some(step));
        let repetitions: Vec<&Run> = of_step.copied().collect();
        rows.push(line(step, &repetitions));
    }
    let mut text = heading(runs);
    text.push_str(&aligned(&rows, Align::Right));
    text.push_str(&summary(runs, steps));
    for run in runs {
        if let (Some(reason), Some(step)) = (&run.invalid, Step::of_run(run)) {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "INVALID: {}, repetition {}: {reason}",
                step.word(),
                run.repetition
            );
        }
    }
    text
}

/// Median, minimum and maximum over the repetitions, where there are several.
fn summary(runs: &[&Run], steps: &[Step]) -> String {
    let mut rows = vec![cells(["", "RTT p99", "hosts' p99", "link's p99"])];
    for &step in steps {
        let of_step: Vec<&Run> = (runs.iter().copied())
            .filter(|run| Step::of_run(run) == Some(step) && run.invalid.is_none())
            .collect();
        let cell = |of: fn(&Run) -> &Statistics| range(of_step.iter().map(|run| of(run).p99));
        rows.push(vec![
            format!("{:<25}", step.word()),
            cell(|run| &run.rtt_us),
            cell(|run| &run.host_us),
            cell(|run| &run.cable_us),
        ]);
    }
    match runs.iter().any(|run| run.repetition > 1) {
        true => format!(
            "Median of the repetitions [least .. most]\n{}",
            aligned(&rows, Align::Right)
        ),
        false => String::new(),
    }
}

fn range(values: impl Iterator<Item = Option<f64>>) -> String {
    let mut values: Vec<f64> = values.flatten().collect();
    values.sort_unstable_by(f64::total_cmp);
    let (Some(least), Some(most)) = (values.first(), values.last()) else {
        return "-".to_owned();
    };
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    format!("{:.0} [{least:.0} .. {most:.0}]", (low + high) / 2.0)
}

fn disturbance_words(disturbance: Option<Disturbance>, is_read: bool) -> String {
    let reader = if is_read { " for a bulk reader" } else { "" };
    disturbance
        .map_or("undisturbed", Disturbance::word)
        .to_owned()
        + reader
}

fn heading(runs: &[&Run]) -> String {
    let Some(run) = runs.first() else {
        return String::new();
    };
    let disturbance = disturbance_words(run.disturbance, run.bulk_reader.is_some());
    let link = run.arbiter().map_or_else(
        || "no link".to_owned(),
        |arbiter| format!("link {}", arbiter.word()),
    );
    let cores = run.cores.map_or_else(String::new, |cores| {
        format!(
            "; cores: ping {}, pong {}, receive work {}, link and disturbance {}",
            cores.ping, cores.pong, cores.receive_work, cores.cable
        )
    });
    format!(
        "{} B, {disturbance}, {link}{cores} (times in us; repetitions separated by /)\n",
        run.payload_bytes
    )
}

fn line(step: Step, repetitions: &[&Run]) -> Vec<String> {
    let each = |cell: &dyn Fn(&Run) -> String| {
        let cells: Vec<String> = repetitions.iter().map(|run| cell(run)).collect();
        cells.join(" / ")
    };
    let time = |of: fn(&Run) -> &Statistics, value: fn(&Statistics) -> Option<f64>| {
        each(&|run| match run.invalid {
            // Times of an invalid run are no result.
            Some(_) => "x".to_owned(),
            None => value(of(run)).map_or_else(|| "-".to_owned(), |us| format!("{us:.0}")),
        })
    };
    vec![
        format!("{:<25}", step.word()),
        time(|run| &run.rtt_us, |us| us.median),
        time(|run| &run.rtt_us, |us| us.p99),
        time(|run| &run.host_us, |us| us.median),
        time(|run| &run.host_us, |us| us.p99),
        time(|run| &run.cable_us, |us| us.p99),
        each(&|run| run.lost.to_string()),
        each(&|run| run.inversions.total.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{scenario, silent_run};
    use crate::report::{Cable, ReceiveWork, RunCores};

    pub(super) fn run(step: Step, repetition: u32) -> Run {
        let scenario = step.of(scenario(64, Some(Disturbance::Storm)));
        let mut run = silent_run(scenario.disturbance);
        run.datapath = scenario.datapath;
        run.stages = scenario.stages;
        run.order = scenario.order;
        run.receive_work = scenario.receive_work;
        run.repetition = repetition;
        run.rtt_us.p99 = Some(100.0 * f64::from(repetition));
        run.cable = Some(Cable::of(&crate::cable::Config::default()));
        run.cores = Some(RunCores {
            ping: 0,
            pong: 0,
            cable: 1,
            receive_work: 0,
        });
        run
    }

    #[test]
    fn a_run_is_known_as_the_step_it_was_made_as() {
        for step in Step::ALL {
            assert_eq!(Step::of_run(&run(step, 1)), Some(step));
        }
        let mut other = run(Step::Budgets, 1);
        other.receive_work = ReceiveWork::Softirq;
        assert_eq!(Step::of_run(&other), None);
    }

    #[test]
    fn a_flood_that_is_read_is_a_separate_block() {
        let mut runs = [run(Step::OneSocket, 1), run(Step::Xdp, 1)];
        assert_eq!(blocks(&runs).len(), 1);
        runs[1].bulk_reader = Some(crate::scenario::transport::BulkReader::Drains);
        assert_eq!(blocks(&runs).len(), 2);
        let words = disturbance_words(runs[1].disturbance, true);
        assert_eq!(words, "storm for a bulk reader");
    }

    #[test]
    fn each_step_has_a_line_with_every_repetition() {
        let mut runs = Vec::new();
        for repetition in 1..=3 {
            runs.extend(Step::ALL.map(|step| run(step, repetition)));
        }
        runs[1].invalid = Some("the ledger is off".into());
        let text = ablation_table(&runs);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("64 B, storm, link fifo; cores: ping 0, pong 0"));
        assert_eq!(lines.len(), 3 + 2 + 2 * Step::ALL.len() + 1, "{text}");
        assert!(lines[3].contains("100 / 200 / 300"), "{text}");
        assert!(lines[4].contains("x / 200 / 300"), "{text}");
        assert!(lines[8].trim_start().starts_with("+ lane"), "{text}");
        assert!(lines[12].contains("200 [100 .. 300]"), "{text}");
        assert!(lines[13].contains("250 [200 .. 300]"), "{text}");
        assert_eq!(
            lines.last(),
            Some(&"INVALID: a socket a level, repetition 1: the ledger is off")
        );
        assert_eq!(ablation_table(&[]), "");
    }
}
