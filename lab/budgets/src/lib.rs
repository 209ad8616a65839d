//! `cargo xtask budgets`: the cost of a sample, counted and compared with limits.
//!
//! The counted programs are examples of the package `isolane`. `budget` runs one path of a sample in two halves,
//! writing and receiving (`paths.rs`). `ten_topics` gives the resident memory; the size of the command is measured as
//! well. Lanes, which need root, are compared with `bare_ping_pong`, an example of `isolane-datapath-xdp` that uses
//! AF_XDP directly. callgrind counts instructions, dhat counts copies, and strace counts system calls and futexes. The
//! example counts its own allocations (`tools.rs`). No tool measures time, so load does not change the counts.
//! One table has all limits (`report.rs`).

pub mod discovery;
pub mod drop_cost;
mod paths;
mod report;
mod tools;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use isolane_support::steps::Outcome;
use isolane_support::workspace::{Metadata, build_commands, build_examples};
use isolane_support::{Result, command, json, packages};

use paths::{HALVES, Half};
use report::{Limit, PathReport, Report, limits_of};
use tools::Walk;

/// Arguments of `cargo xtask budgets`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the results to this file as `isolane/budgets/1`; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Builds the programs, runs them under the counting tools, and writes the results. Returns true if all gates hold.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let metadata = Metadata::read()?;
    command::run(&mut build_commands())?;
    let (_, failed) = count(&metadata, arguments.json.as_deref())?;
    Ok(failed == 0)
}

/// Step of `cargo xtask test --system`, which has built the command before. Each gate counts as a check.
pub fn step(metadata: &Metadata) -> Result<Outcome> {
    let file = metadata.target_directory.join("budgets/budgets.json");
    let (passed, failed) = count(metadata, Some(&file))?;
    Ok(Outcome::Counted { passed, failed })
}

/// Counts all costs and prints them. Returns how many gates hold, and how many do not.
fn count(metadata: &Metadata, json: Option<&Path>) -> Result<(usize, usize)> {
    build_examples("isolane", &["budget", "ten_topics", "hundred_thousand"])?;
    let has_lanes = packages::is_root();
    match has_lanes {
        true => build_examples("isolane-datapath-xdp", &["bare_ping_pong"])?,
        false => eprintln!("not root: lanes need network namespaces, and are NOT counted"),
    }
    let start = Instant::now();
    let programs = Programs::of(metadata)?;
    tools::check_the_copy_counter(&programs.budget, &programs.folder)?;

    let mut walks = BTreeMap::new();
    for path in paths::all(has_lanes) {
        walks.insert(path, Walk::of(&programs, path)?);
    }
    let of_half = |half: &'static Half| {
        let walk: &Walk = walks.get(half.path.as_str())?;
        Some(PathReport {
            half,
            counts: walk.counts(half.side),
            locks: walk.locks,
        })
    };
    let paths = HALVES.iter().filter_map(of_half).collect();
    let bare = match has_lanes {
        true => Some(tools::bare_round_trip(&programs.bare)?),
        false => None,
    };
    let report = Report::new(
        paths,
        bare,
        tools::resident_bytes(&programs.ten_topics)?,
        tools::stripped_bytes(&metadata.isolane(), &programs.folder)?,
    );
    if let Some(file) = json {
        json::write(&report, file)?;
    }
    eprintln!("{}", report.table());
    let limits = limits_of(&report);
    for limit in limits.iter().filter(|limit| !limit.holds()) {
        eprintln!("{}", limit.sentence());
    }
    let count = |is_gate, holds| {
        let is_of = |limit: &&Limit| (limit.is_gate, limit.holds()) == (is_gate, holds);
        limits.iter().filter(is_of).count()
    };
    let (passed, failed) = (count(true, true), count(true, false));
    eprintln!(
        "{passed} gates hold, {failed} do not; {} aims are met, {} are not ({:.0} s)",
        count(false, true),
        count(false, false),
        start.elapsed().as_secs_f64()
    );
    Ok((passed, failed))
}

/// Counted programs, and the folder of their output.
pub(crate) struct Programs {
    budget: PathBuf,
    ten_topics: PathBuf,
    hundred_thousand: PathBuf,
    bare: PathBuf,
    folder: PathBuf,
}

impl Programs {
    fn of(metadata: &Metadata) -> Result<Self> {
        let examples = metadata.target_directory.join("release/examples");
        let folder = metadata.target_directory.join("budgets");
        std::fs::create_dir_all(&folder)?;
        Ok(Self {
            budget: examples.join("budget"),
            ten_topics: examples.join("ten_topics"),
            hundred_thousand: examples.join("hundred_thousand"),
            bare: examples.join("bare_ping_pong"),
            folder,
        })
    }
}
