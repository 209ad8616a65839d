//! `paper`: the scenario of paper 000 in a machine whose every instruction takes the same time. Two hosts,
//! each with a device on one hub, share the guest's one processor; round trips of critical samples are measured by
//! sockets and by lanes, without and beside a flood each way and a busy loop, all in one boot.
//!
//! The same seed gives the same samples, to the bit: each is run twice, and both are compared whole.

mod ablation;
mod cell;
mod measure;
mod table;
mod trace;
mod tuning;

use std::time::{Duration, Instant};

use isolane_bench::namespace::Host;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Scenario;
use crate::Bench;
use crate::guest::{Guest, Network, Time};
use isolane_support::Result;

use cell::Extent;

pub(super) use ablation::SCENARIO as ABLATION;
pub(super) use trace::SCENARIO as TRACED;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "paper",
    shows: "what a flood and a busy loop do to round trips by sockets and by lanes, to the bit",
    run,
    inside,
};

/// The same, as short as a check of all checks may be.
pub(super) const IN_BRIEF: Scenario = Scenario {
    name: "brief",
    shows: "the same, a second of the three cells that are compared in the end",
    run: run_in_brief,
    inside,
};

/// A boot takes two to four minutes of a processor: on a machine that does much else, many times that.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// What came of a seed.
#[derive(Debug, Serialize)]
struct Seed {
    seed: u64,
    /// Whether a second boot told exactly the same.
    is_repeatable: bool,
    cells: Vec<cell::Result>,
}

/// What a guest tells.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Boot {
    cells: Vec<cell::Result>,
}

fn run(bench: &Bench) -> Result<bool> {
    measured(bench, Extent::Whole)
}

/// A few seconds of the cells that are compared in the end.
fn run_in_brief(bench: &Bench) -> Result<bool> {
    measured(bench, Extent::Brief)
}

fn measured(bench: &Bench, extent: Extent) -> Result<bool> {
    let mut seeds = Vec::new();
    let machine = &bench.machine;
    for seed in bench.first_seed..bench.first_seed + bench.seeds {
        let start = Instant::now();
        // At the same time: what a boot does, does not depend on what else the machine does.
        let guests =
            ["once", "again"].map(|which| guest(seed, which, &[SCENARIO.name, extent.word()]));
        let [first, second] = [guests[0].start(machine)?, guests[1].start(machine)?];
        let (first, second) = (first.finish()?, second.finish()?);
        let is_repeatable = first == second;
        let cells = serde_json::from_value::<Boot>(first)?.cells;
        let seconds = start.elapsed().as_secs();
        let word = if is_repeatable {
            "the same twice"
        } else {
            "NOT the same twice"
        };
        eprintln!("seed {seed}: {word} ({seconds} s)");
        eprint!("{}", table::of_seed(&cells));
        seeds.push(Seed {
            seed,
            is_repeatable,
            cells,
        });
    }
    let summary = table::Summary::of(&seeds);
    eprint!("\n{summary}");
    bench.report(&seeds)?;
    Ok(summary.is_sound())
}

/// A guest with the two devices, whose time is counted.
fn guest(seed: u64, which: &str, task: &[&str]) -> Guest {
    Guest {
        name: format!("paper-{seed}-{which}"),
        task: task.iter().map(|&word| word.to_owned()).collect(),
        time: Time::Counted { seed },
        network: Network::Hub { devices: 2 },
        processors: 1,
        patience: PATIENCE,
    }
}

fn inside(task: &[String]) -> Result<Value> {
    let extent = Extent::of(task.first().map(String::as_str)).ok_or("an extent is wanted")?;
    let hosts = measure::hosts()?;
    let mut cells = Vec::new();
    let mut is_tuned = false;
    for cell in extent.cells() {
        if cell.path.is_tuned() && !is_tuned {
            for host in Host::BOTH {
                tuning::apply(&hosts, host, None)?;
            }
            is_tuned = true;
        }
        let (result, _) = measure::cell(&hosts, cell, extent)?;
        eprintln!(
            "{:16} {:5} median {:7.1} p99 {:7.1} p99.9 {:7.1} max {:7.1} lost {} {:?}",
            cell.path,
            cell.is_disturbed,
            result.median_us,
            result.p99_us,
            result.p99_9_us,
            result.max_us,
            result.run.lost,
            result.run.invalid,
        );
        cells.push(result);
    }
    Ok(serde_json::to_value(Boot { cells })?)
}
