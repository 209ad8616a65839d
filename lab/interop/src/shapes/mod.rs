//! `cargo xtask shapes`: programs with a common command line, one for each implementation, in all pairs.
//!
//! Public interoperability tests start such programs, one for each vendor, and read their output. isolane's is
//! `isolane-shape-main`; those of Cyclone DDS and Fast DDS are in `lab/interop/programs` and follow the same contract
//! (`shape_main.h`). A case (`case.rs`) is the options of both sides and the required output. Every case runs with
//! every pair that includes isolane (`pair.rs`), and each run has its own network. A case that a program reports as
//! unsupported is skipped for its pairs, and counted.

pub(super) mod case;
pub(super) mod judge;
mod known;
pub(super) mod pair;

use std::fmt;
use std::time::Duration;

use isolane_support::steps::Outcome;
use isolane_support::workspace::Metadata;
use isolane_support::{Result, packages};

use super::combination::Loss;
use super::report::{Counts, RunReport};
use super::runner::Runner;
use case::{CASES, Case};
use pair::{Pair, Programs, Task, Vendor};

/// Default number of concurrent runs. They wait most of the time.
const DEFAULT_JOBS: usize = 5;
/// Timeout of a publisher, which writes for three seconds and then ends.
const LONGEST_LIFE: Duration = Duration::from_secs(10);

/// Arguments of `cargo xtask shapes`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Run only cases whose name contains this; if repeated, the name must contain all
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// Run the pairs of other implementations too, which shows whose fault a failure is
    #[arg(long)]
    all: bool,
    /// Print the names of the runs instead of running them
    #[arg(long)]
    list: bool,
    /// Number of runs at once
    #[arg(long, value_name = "N", default_value_t = DEFAULT_JOBS)]
    jobs: usize,
}

/// A case with a pair.
#[derive(Clone, Copy)]
struct Run {
    case: &'static Case,
    pair: Pair,
}

impl fmt::Display for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.pair, self.case.name)
    }
}

/// Builds the programs and runs the cases. Returns true when none failed.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let runs = chosen(arguments.all, &arguments.only);
    if arguments.list {
        runs.iter().for_each(|run| println!("{run}"));
        return Ok(true);
    }
    if runs.is_empty() {
        return Err("no run has such a name: `cargo xtask shapes --all --list` shows all".into());
    }
    packages::require_root("shapes")?;
    let counts = Counts::of(&run_all(&Metadata::read()?, &runs, arguments.jobs)?);
    eprintln!("{counts}");
    Ok(counts.failed == 0)
}

/// Step of `cargo xtask test --all`: every case once, with the pairs in rotation.
pub fn step(metadata: &Metadata) -> Result<Outcome> {
    let reports = run_all(metadata, &in_turn(), DEFAULT_JOBS)?;
    Ok(Counts::of(&reports).outcome())
}

fn in_turn() -> Vec<Run> {
    let pairs: Vec<Pair> = Pair::all()
        .filter(|pair| pair.has(Vendor::Isolane))
        .collect();
    let turns = CASES.iter().zip(pairs.iter().cycle());
    turns.map(|(case, &pair)| Run { case, pair }).collect()
}

fn chosen(all: bool, patterns: &[String]) -> Vec<Run> {
    let pairs = Pair::all().filter(|pair| all || pair.has(Vendor::Isolane));
    let runs = pairs.flat_map(|pair| CASES.iter().map(move |case| Run { case, pair }));
    let is_wanted = |run: &Run| {
        let name = run.to_string();
        patterns.iter().all(|pattern| name.contains(pattern))
    };
    runs.filter(is_wanted).collect()
}

/// Builds the programs and runs all, some at once.
fn run_all(metadata: &Metadata, runs: &[Run], jobs: usize) -> Result<Vec<RunReport>> {
    let programs = Programs::build(metadata)?;
    let runner = Runner::new(metadata.target_directory.join("interop/shapes"), None);
    Ok(runner.run(runs, jobs, |run, folder, _| {
        let task = Task {
            case: run.case,
            publisher: &run.case.publisher(),
            subscriber: &run.case.subscriber(),
            loss: Loss::None,
            needs_repair: false,
            is_segmented: false,
            bits_per_s: None,
            capture: Some(&folder.join("cable")),
            longest_life: LONGEST_LIFE,
        };
        run.pair.run_known(&task, &programs, folder)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_runs_with_isolane_on_either_side_of_everybody() {
        let pairs: Vec<String> = Pair::all()
            .filter(|pair| pair.has(Vendor::Isolane))
            .map(|pair| pair.to_string())
            .collect();
        assert_eq!(pairs.len(), 5);
        assert_eq!(chosen(false, &[]).len(), 5 * CASES.len());
        assert_eq!(chosen(true, &[]).len(), 9 * CASES.len());
    }

    #[test]
    fn in_turn_every_case_and_every_pair_has_its_run() {
        let runs = in_turn();
        assert_eq!(runs.len(), CASES.len());
        for pair in Pair::all().filter(|pair| pair.has(Vendor::Isolane)) {
            assert!(runs.iter().any(|run| run.pair == pair), "{pair}");
        }
    }

    #[test]
    fn a_run_is_found_by_its_name() {
        let only = |pattern: &str| chosen(true, &[pattern.to_owned()]).len();
        assert_eq!(only("fastdds to cyclonedds"), CASES.len());
        assert_eq!(only("no such run"), 0);
    }
}
