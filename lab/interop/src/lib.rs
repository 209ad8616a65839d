//! `cargo xtask interop`: isolane against other DDS implementations, one cell at a time.
//!
//! A cell is one value from every axis (`combination.rs`); `covering_array.rs` chooses the cells that run. Each cell
//! has its own network (`network.rs`). The peer's program runs on one host, `isolane pub` or `isolane sub` on the other
//! (`side.rs`, `program.rs`, `run.rs`). The subscriber's output decides (`printed.rs`, `verdict.rs`); no verdict reads
//! packets or isolane's internals. The DDS policies have their own axes (`policies.rs`), and `extra_runs.rs` has the
//! runs outside the axes. `recording.rs` captures the network's traffic to diagnose a failure.

mod coexistence;
mod combination;
mod covering_array;
mod extra_runs;
mod foreign;
mod network;
pub mod peers;
mod policies;
mod printed;
mod program;
mod recording;
mod report;
mod run;
pub mod shapes;
mod side;
pub mod types;
mod verdict;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use std::{fs, thread};

use isolane_support::steps::Outcome;
use isolane_support::workspace::{Metadata, build_commands};
use isolane_support::{Result, command, packages};

use combination::{AXES, Axis, Cell};
use extra_runs::ExtraRun;
use policies::PolicyCell;
use report::{CellReport, Report, Verdict};
use side::{Installed, Peer, Programs};

/// Strength of the cover that CI runs: every combination of values of any three axes occurs.
const CI_STRENGTH: usize = 3;
/// Upper bound of the cells that CI runs: a few minutes.
const CI_CELLS: usize = 48;
/// Strength of the cover of the policies' axes in CI.
const CI_POLICY_STRENGTH: usize = 2;
/// Cells that run at once: they mostly wait.
const DEFAULT_JOBS: usize = 2;
/// Policy cells that run at once: they wait even more.
const POLICY_JOBS: usize = 4;

/// Arguments of `cargo xtask interop`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Run the full product of the axes instead of the cover that CI runs
    #[arg(long)]
    all: bool,
    /// Run only the cells whose name contains this, of the full product; repeated: all must match
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// Print the names of the cells instead of running them
    #[arg(long)]
    list: bool,
    /// Number of cells that run at once
    #[arg(long, value_name = "N", default_value_t = DEFAULT_JOBS)]
    jobs: usize,
    /// Write the results to this file as `isolane/interop/1`; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Run this `isolane` instead of building it
    #[arg(long, value_name = "FILE")]
    isolane: Option<PathBuf>,
    /// Capture the traffic of each cell on both hosts, and keep that of failed cells as DIR/CELL.pcapng (read by
    /// `isolane spy DIR/CELL.pcapng`)
    #[arg(long, value_name = "DIR")]
    capture: Option<PathBuf>,
}

/// Builds isolane, runs the cells and writes the results. Returns true when none failed.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let wanted = Wanted::chosen(arguments.all, &arguments.only);
    if arguments.list {
        wanted.names().for_each(|name| println!("{name}"));
        return Ok(true);
    }
    if wanted.names().next().is_none() {
        return Err("no cell has such a name: `cargo xtask interop --all --list` shows all".into());
    }
    packages::require_root("interop")?;
    let metadata = Metadata::read()?;
    if arguments.isolane.is_none() {
        command::run(&mut build_commands())?;
    }
    let isolane = arguments.isolane.clone();
    let isolane = isolane.unwrap_or_else(|| metadata.isolane());
    let report = run_cells(
        &metadata,
        &isolane,
        &wanted,
        arguments.jobs,
        arguments.capture.as_deref(),
    )?;
    if let Some(file) = &arguments.json {
        report.write(file)?;
    }
    let failed = report.count(Verdict::Fail);
    let skipped = match report.count(Verdict::Skip) {
        0 => String::new(),
        some => format!("{some} left out for what a peer lacks, "),
    };
    let passed = report.count(Verdict::Pass);
    eprintln!("{passed} passed, {skipped}{failed} failed");
    Ok(failed == 0)
}

/// Step of `cargo xtask test --system`, which has built isolane. Each cell counts as a test.
pub fn step(metadata: &Metadata) -> Result<Outcome> {
    let wanted = Wanted::chosen(false, &[]);
    let report = run_cells(metadata, &metadata.isolane(), &wanted, DEFAULT_JOBS, None)?;
    report.write(&metadata.target_directory.join("interop/cells.json"))?;
    Ok(Outcome::Counted {
        passed: report.count(Verdict::Pass),
        failed: report.count(Verdict::Fail),
    })
}

/// Cells and other runs that are selected.
struct Wanted {
    cells: Vec<Cell>,
    policies: Vec<PolicyCell>,
    extra_runs: Vec<ExtraRun>,
}

impl Wanted {
    /// Selects the CI cover, the full product, or the part of the product whose names contain every pattern.
    fn chosen(all: bool, patterns: &[String]) -> Self {
        let is_wanted = |name: String| patterns.iter().all(|pattern| name.contains(pattern));
        let (cells, policies) = match all || !patterns.is_empty() {
            true => (
                covering_array::product(AXES),
                covering_array::product(policies::AXES),
            ),
            false => (
                covering_array::cover(AXES, CI_STRENGTH, CI_CELLS),
                covering_array::cover(policies::AXES, CI_POLICY_STRENGTH, 0),
            ),
        };
        let cells = cells.into_iter().map(Cell::choose);
        let policies = policies.into_iter().map(PolicyCell::choose);
        Self {
            cells: cells.filter(|cell| is_wanted(cell.name())).collect(),
            policies: policies.filter(|cell| is_wanted(cell.name())).collect(),
            extra_runs: ExtraRun::chosen(patterns),
        }
    }

    fn names(&self) -> impl Iterator<Item = String> {
        let cells = self.cells.iter().map(|cell| cell.name());
        let policies = self.policies.iter().map(|cell| cell.name());
        let extra_runs = self.extra_runs.iter().map(|run| run.name());
        cells.chain(policies).chain(extra_runs)
    }
}

/// Runs the cells, `jobs` at once, then the policy cells and the other runs; prints each result as it arrives, and the
/// table.
fn run_cells(
    metadata: &Metadata,
    isolane: &Path,
    wanted: &Wanted,
    jobs: usize,
    captures: Option<&Path>,
) -> Result<Report> {
    let cells = &wanted.cells[..];
    let peers = Peer::ALL
        .iter()
        .map(|peer| peer.install(metadata))
        .collect::<Vec<_>>();
    let folder = metadata.target_directory.join("interop/cells");
    // Output of an earlier run, if any.
    let _ = fs::remove_dir_all(&folder);
    let run_one = |cell: &Cell| {
        let installed = peers.iter().find(|installed| installed.peer == cell.peer);
        let installed = installed.expect("all peers were looked for");
        run_cell(*cell, installed, isolane, &folder, captures)
    };
    let show = |done, report: &CellReport| {
        let account = match report.result {
            Verdict::Pass | Verdict::Skip => "",
            Verdict::Fail => &report.account,
        };
        eprint!("[{done}/{}] {}\n{account}", cells.len(), line(report));
    };
    let cells = at_once(cells, jobs, run_one, show);
    let policy_jobs = jobs * POLICY_JOBS / DEFAULT_JOBS;
    let policies = policies::run(&wanted.policies, &peers, metadata, policy_jobs, captures)?;
    let extra_runs = wanted.extra_runs.iter();
    let extra_runs = extra_runs.map(|run| run.run(&peers, isolane, &folder));
    let report = Report::new(cells, policies, extra_runs.collect());
    if !report.cells.is_empty() {
        eprintln!("\n{}", report::table(&report.cells));
    }
    for failed in &report.cells {
        if failed.result == Verdict::Fail {
            eprintln!("{}", line(failed));
        }
    }
    for failed in &report.policies {
        if failed.result == Verdict::Fail {
            eprintln!("{failed}");
        }
    }
    for run in &report.extra_runs {
        eprint!("{run}");
    }
    Ok(report)
}

/// Runs one cell. If it fails, its output stays in its folder, and its capture, if requested, among the captures.
fn run_cell(
    cell: Cell,
    peer: &Installed,
    isolane: &Path,
    cells_folder: &Path,
    captures: Option<&Path>,
) -> CellReport {
    let start = Instant::now();
    let folder = cells_folder.join(cell.name());
    let ended = peer.program.clone().and_then(|program| {
        let programs = Programs {
            peer: &program,
            isolane,
        };
        let capture = captures.map(|captures| captures.join(format!("{}.pcapng", cell.name())));
        run::run(cell, programs, &folder, capture.as_deref()).map_err(|error| error.to_string())
    });
    let (verdict, account) = match ended {
        Ok(ended) => (ended.verdict, ended.account),
        Err(error) => (Err(error), String::new()),
    };
    let seconds = peer.program.is_ok().then(|| start.elapsed().as_secs_f64());
    let (result, detail) = match verdict {
        Ok(detail) => {
            let _ = fs::remove_dir_all(&folder);
            (Verdict::Pass, detail)
        }
        Err(detail) => (Verdict::Fail, detail),
    };
    CellReport {
        cell,
        peer: peer.identity.clone(),
        peer_role: cell.peer_role.word(),
        case: cell.case(),
        datapath: cell.datapath.word(),
        result,
        detail,
        seconds,
        account,
    }
}

/// One line about a result.
fn line(report: &CellReport) -> String {
    let word = report.result.word();
    let seconds = report.seconds.unwrap_or(0.0);
    let name = report.cell.name();
    format!(
        "{word} {seconds:4.1} s {name}: {}",
        report.detail.trim_end()
    )
}

/// Runs the work for each item in `jobs` threads; returns the results in the items' order. Prints each result as it
/// arrives, with the number done. A run mostly waits for its programs.
fn at_once<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    work: impl Fn(&T) -> R + Sync,
    show: impl Fn(usize, &R) + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    // PR_SET_PDEATHSIG kills a program when the thread that started it ends, so a thread finishes its work.
    let work_on = || loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(item) = items.get(index) else { return };
        let result = work(item);
        let mut results = results.lock().expect("nothing panics while it holds this");
        show(results.len() + 1, &result);
        results.push((index, result));
    };
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(work_on);
        }
    });
    let mut results = results.into_inner().expect("all threads have ended");
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ci_runs_few_cells_and_every_pair_of_values_of_every_two_axes() {
        let cells = Wanted::chosen(false, &[]).cells;
        assert_eq!(cells.len(), CI_CELLS);
        let mut pairs = std::collections::BTreeSet::new();
        let mut all = 0;
        for first in 0..AXES.len() {
            for second in 0..first {
                all += AXES[first] * AXES[second];
                for cell in &cells {
                    let words = cell.words();
                    pairs.insert((first, second, words[first], words[second]));
                }
            }
        }
        assert_eq!(pairs.len(), all);
    }

    #[test]
    fn all_is_the_product_and_only_chooses_among_it() {
        let all = AXES.iter().product::<usize>();
        assert_eq!(Wanted::chosen(true, &[]).cells.len(), all);
        let only = |patterns: &[&str]| {
            let patterns = patterns.iter().copied().map(String::from);
            let patterns = patterns.collect::<Vec<_>>();
            Wanted::chosen(false, &patterns).cells.len()
        };
        assert_eq!(only(&["loss-10"]), all / 3);
        assert_eq!(only(&["fastdds-publisher", "dispose"]), all / 2 / 2 / 3);
        assert_eq!(only(&["no-such-cell"]), 0);
    }

    #[test]
    fn every_item_is_worked_on_once_and_results_are_in_their_order() {
        let items: Vec<u64> = (0..100).collect();
        let shown = Mutex::new(Vec::new());
        let show = |done, _: &u64| shown.lock().unwrap().push(done);
        let doubled = at_once(&items, 4, |item| item * 2, show);
        assert!(doubled.into_iter().eq((0..100).map(|item| item * 2)));
        assert!(shown.into_inner().unwrap().into_iter().eq(1..=100));
    }
}
