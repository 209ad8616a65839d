//! One remedy at a time: the rows of an ablation, what tells them from each other, and their table.
//!
//! Each step has what those before it have, so what a step brings is the difference to the line above
//! it. A step may bring nothing: the table shows every repetition, and no summary hides that.

use std::fmt::Write;

use super::comparison::aligned;
use super::{Disturbance, Order, Publisher, ReceiveWork, Run, Scenario, Stage};
use crate::cable::Arbiter;
use crate::record::Statistics;

/// A row of an ablation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// One socket for all levels, jobs as they became ready: the baseline.
    OneSocket,
    /// A socket a level, jobs by priority.
    SocketALevel,
    /// The link puts critical frames into a receive queue of their own.
    Steering,
    /// A kernel thread for each queue, at priorities around the applications'.
    NapiPriorities,
    /// AF_XDP instead of sockets, a lane a level.
    Lane,
    /// Budgets, and bulk policed by the classifier before it becomes receive work.
    Budgets,
}

impl Step {
    /// All, each with what those before it have.
    pub const ALL: [Step; 6] = [
        Step::OneSocket,
        Step::SocketALevel,
        Step::Steering,
        Step::NapiPriorities,
        Step::Lane,
        Step::Budgets,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Step::OneSocket => "one socket for all levels",
            Step::SocketALevel => "a socket a level",
            Step::Steering => "+ steering",
            Step::NapiPriorities => "+ NAPI priorities",
            Step::Lane => "+ lane",
            Step::Budgets => "+ budgets",
        }
    }

    /// A scenario with this step and those before it, and no other mechanism.
    #[must_use]
    pub fn of(self, scenario: Scenario) -> Scenario {
        let receive_work = match self {
            Step::OneSocket | Step::SocketALevel => ReceiveWork::Softirq,
            Step::Steering => ReceiveWork::Steered,
            Step::NapiPriorities | Step::Lane | Step::Budgets => ReceiveWork::Threads,
        };
        let (order, stages): (Order, &[Stage]) = match self {
            Step::OneSocket => (Order::Fifo, &[]),
            Step::SocketALevel | Step::Steering | Step::NapiPriorities => {
                (Order::Priority, &[Stage::Executor])
            }
            Step::Lane => (
                Order::Priority,
                &[Stage::Executor, Stage::Xdp, Stage::Lanes],
            ),
            Step::Budgets => (
                Order::Priority,
                &[Stage::Executor, Stage::Xdp, Stage::Lanes, Stage::Budgets],
            ),
        };
        let datapath = match stages.contains(&Stage::Xdp) {
            true => "xdp",
            false => "udp",
        };
        Scenario {
            datapath: datapath.to_owned(),
            stages: stages.to_vec(),
            receive_work,
            order,
            ..scenario
        }
    }

    /// Which step a run is, if it is any: both ends receive on one core.
    pub fn of_run(run: &Run) -> Option<Step> {
        if run.cores.is_some_and(|cores| cores.ping != cores.pong) {
            return None;
        }
        Step::ALL.into_iter().find(|step| {
            let (order, receive_work) = (run.order, run.receive_work);
            let scenario = step.of(Scenario::of_run(run));
            (scenario.datapath == run.datapath && scenario.stages == run.stages)
                && (scenario.order, scenario.receive_work) == (order, receive_work)
        })
    }
}

/// What the lines of a block have in common.
type Block = (u32, Option<Disturbance>, Option<Arbiter>, Publisher);

fn block_of(run: &Run) -> Block {
    (
        run.payload_bytes,
        run.disturbance,
        run.arbiter(),
        run.publisher,
    )
}

/// A block for each payload, disturbance and arbiter, a line for each step, in each cell every
/// repetition. Empty if there are no two steps to compare.
pub fn ablation_table(runs: &[Run]) -> String {
    let mut blocks: Vec<Block> = Vec::new();
    for run in runs.iter().filter(|run| Step::of_run(run).is_some()) {
        if !blocks.contains(&block_of(run)) {
            blocks.push(block_of(run));
        }
    }
    let mut tables: Vec<String> = Vec::new();
    for block in blocks {
        let of_block: Vec<&Run> = runs.iter().filter(|run| block_of(run) == block).collect();
        let mut steps: Vec<Step> = of_block.iter().copied().filter_map(Step::of_run).collect();
        steps.sort_unstable();
        steps.dedup();
        if steps.len() > 1 {
            tables.push(block_table(&of_block, &steps));
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
    let mut rows: Vec<Vec<String>> = HEADINGS
        .iter()
        .map(|row| row.map(str::to_owned).to_vec())
        .collect();
    for &step in steps {
        let of_step = runs.iter().filter(|run| Step::of_run(run) == Some(step));
        let repetitions: Vec<&Run> = of_step.copied().collect();
        rows.push(line(step, &repetitions));
    }
    let mut text = heading(runs);
    text.push_str(&aligned(&rows));
    for run in runs {
        if let (Some(reason), Some(step)) = (&run.invalid, Step::of_run(run)) {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "INVALID: {}, repetition {}: {reason}",
                step.name(),
                run.repetition
            );
        }
    }
    text
}

fn heading(runs: &[&Run]) -> String {
    let Some(run) = runs.first() else {
        return String::new();
    };
    let disturbance = run.disturbance.map_or("undisturbed", Disturbance::word);
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
        "{} B, {disturbance}, {link}{cores} (times in us; each repetition)\n",
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
            // Its times are no result.
            Some(_) => "x".to_owned(),
            None => value(of(run)).map_or_else(|| "-".to_owned(), |us| format!("{us:.0}")),
        })
    };
    vec![
        format!("{:<25}", step.name()),
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
    use super::super::tests::{scenario, silent_run};
    use super::*;
    use crate::report::{Cable, RunCores};

    fn run(step: Step, repetition: u32) -> Run {
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
    fn each_step_has_a_line_with_every_repetition() {
        let mut runs = Vec::new();
        for repetition in 1..=3 {
            runs.extend(Step::ALL.map(|step| run(step, repetition)));
        }
        runs[1].invalid = Some("the ledger is off".into());
        let text = ablation_table(&runs);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("64 B, storm, link fifo; cores: ping 0, pong 0"));
        assert_eq!(lines.len(), 3 + Step::ALL.len() + 1, "{text}");
        assert!(lines[3].contains("100 / 200 / 300"), "{text}");
        assert!(lines[4].contains("x / 200 / 300"), "{text}");
        assert!(lines[7].trim_start().starts_with("+ lane"), "{text}");
        assert_eq!(
            lines.last(),
            Some(&"INVALID: a socket a level, repetition 1: the ledger is off")
        );
        assert_eq!(ablation_table(&[]), "");
    }
}
