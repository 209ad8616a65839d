//! `cargo xtask shapes`: programs with a common command line, one for each implementation, in all pairs.
//!
//! Public interoperability tests start such programs, one for each vendor, and read their output. isolane's is
//! `isolane-shape-main`; those of Cyclone DDS and Fast DDS are in `lab/interop/programs` and follow the same contract
//! (`shape_main.h`). A case (`case.rs`) is the options of both sides and the required output. Every case runs with
//! every pair that includes isolane (`pair.rs`), and each run has its own network. A case that a program reports as
//! unsupported is skipped for its pairs, and counted.

mod case;
pub(super) mod judge;
pub(super) mod pair;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isolane_support::steps::Outcome;
use isolane_support::workspace::Metadata;
use isolane_support::{Result, packages};

use super::at_once;
use super::combination::Loss;
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

pub(super) enum Verdict {
    Pass,
    /// A side reported that it lacks the feature.
    Lacking(Vendor),
    /// The check fails, which is a known deviation of the other implementation.
    Known(&'static str),
    Fail(String),
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
    let (passed, lacking, failed) = run_all(&Metadata::read()?, &runs, arguments.jobs)?;
    eprintln!(
        "{passed} passed, {lacking} left out by a side that lacks something, {failed} failed"
    );
    Ok(failed == 0)
}

/// Step of `cargo xtask test --all`: every case once, with the pairs in rotation.
pub fn step(metadata: &Metadata) -> Result<Outcome> {
    let (passed, _, failed) = run_all(metadata, &in_turn(), DEFAULT_JOBS)?;
    Ok(Outcome::Counted { passed, failed })
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

/// Builds the programs and runs all, some at once; returns the numbers of passed, skipped and failed runs.
fn run_all(metadata: &Metadata, runs: &[Run], jobs: usize) -> Result<(usize, usize, usize)> {
    let programs = Programs::build(metadata)?;
    let folder = metadata.target_directory.join("interop/shapes");
    let run_one = |run: &Run| (*run, made(*run, &programs, &folder));
    let show = |_, (run, (verdict, account)): &(Run, (Verdict, String))| match verdict {
        Verdict::Pass => eprintln!("pass {run}"),
        Verdict::Lacking(vendor) => {
            eprintln!("left out {run}: {} does not have it", vendor.word());
        }
        Verdict::Known(why) => eprintln!("left out {run}: {why}"),
        Verdict::Fail(why) => eprint!("FAIL {run}: {why}\n{account}"),
    };
    let ended = at_once(runs, jobs, run_one, show);
    let count = |is_it: fn(&Verdict) -> bool| {
        let verdicts = ended.iter().map(|(_, (verdict, _))| verdict);
        verdicts.filter(|verdict| is_it(verdict)).count()
    };
    Ok((
        count(|verdict| matches!(verdict, Verdict::Pass)),
        count(|verdict| matches!(verdict, Verdict::Lacking(_) | Verdict::Known(_))),
        count(|verdict| matches!(verdict, Verdict::Fail(_))),
    ))
}

fn made(run: Run, programs: &Programs, folder: &Path) -> (Verdict, String) {
    let folder: PathBuf = folder.join(run.to_string().replace([' ', ':'], "-"));
    let capture = folder.join("cable.pcapng");
    let task = Task {
        publisher: &run.case.publisher(),
        subscriber: &run.case.subscriber(),
        is_late: run.case.is_late,
        loss: Loss::None,
        bits_per_s: None,
        capture: Some(&capture),
        longest_life: LONGEST_LIFE,
        judge: &run.case.judge,
    };
    let known = run.case.known(run.pair);
    let ended = run.pair.run_known(&task, known, programs, &folder);
    match (ended, run.case.disagreement(run.pair)) {
        (Ok((Verdict::Fail(_), account)), Some(why)) => (Verdict::Known(why), account),
        (Ok(ended), _) => ended,
        (Err(error), _) => (Verdict::Fail(error.to_string()), String::new()),
    }
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
