//! `cargo xtask interop`: isolane against other DDS implementations, one cell at a time.
//!
//! A cell is one value from every axis (`combination.rs`); `covering_array.rs` chooses the cells that run. Each cell
//! has its own network (`network.rs`). The peer's program runs on one host, `isolane pub` or `isolane sub` on the other
//! (`side.rs`, `program.rs`, `run.rs`). The subscriber's output decides (`printed.rs`, `verdict.rs`); no verdict reads
//! packets or isolane's internals. The DDS policies have their own axes (`policies.rs`), and `extra_runs.rs` has the
//! runs outside the axes. `recording.rs` captures the network's traffic to diagnose a failure. `runner.rs` executes
//! the runs of all these kinds and of `cargo xtask shapes`, and `report.rs` has their results.

mod coexistence;
mod combination;
mod covering_array;
mod exchange;
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
mod runner;
pub mod shapes;
mod side;
pub mod types;
mod verdict;

use std::path::{Path, PathBuf};

use isolane_support::steps::Outcome;
use isolane_support::workspace::{Metadata, build_commands};
use isolane_support::{Result, command, json, packages};

use combination::{AXES, Axis, Cell};
use extra_runs::ExtraRun;
use policies::PolicyCell;
use report::{Counts, Report, RunReport, Verdict};
use runner::Runner;
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
    /// Capture the traffic of each cell on both hosts, and keep that of failed cells as DIR/CELL.host-a.pcap and
    /// DIR/CELL.host-b.pcap (read by `isolane spy FILE`)
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
        json::write(&report, file)?;
    }
    let counts = Counts::of(report.all());
    eprintln!("{counts}");
    Ok(counts.failed == 0)
}

/// Step of `cargo xtask test --system`, which has built isolane. Each cell counts as a test.
pub fn step(metadata: &Metadata) -> Result<Outcome> {
    let wanted = Wanted::chosen(false, &[]);
    let report = run_cells(metadata, &metadata.isolane(), &wanted, DEFAULT_JOBS, None)?;
    let file = metadata.target_directory.join("interop/cells.json");
    json::write(&report, &file)?;
    Ok(Counts::of(report.all()).outcome())
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
        let extra_runs = ExtraRun::ALL.into_iter();
        Self {
            cells: cells.filter(|it| is_wanted(it.to_string())).collect(),
            policies: policies.filter(|it| is_wanted(it.to_string())).collect(),
            extra_runs: extra_runs.filter(|it| is_wanted(it.to_string())).collect(),
        }
    }

    fn names(&self) -> impl Iterator<Item = String> {
        let cells = self.cells.iter().map(Cell::to_string);
        let policies = self.policies.iter().map(PolicyCell::to_string);
        let extra_runs = self.extra_runs.iter().map(ExtraRun::to_string);
        cells.chain(policies).chain(extra_runs)
    }
}

/// Runs the cells, `jobs` at once, then the policy cells and the other runs; prints the failures again at the end.
fn run_cells(
    metadata: &Metadata,
    isolane: &Path,
    wanted: &Wanted,
    jobs: usize,
    captures: Option<&Path>,
) -> Result<Report> {
    let peers = Peer::ALL.iter().map(|peer| peer.install(metadata));
    let peers = peers.collect::<Vec<_>>();
    let installed = |peer: Peer| -> &Installed {
        let mut peers = peers.iter();
        let installed = peers.find(|installed| installed.peer == peer);
        installed.expect("all peers were looked for")
    };
    let identity = |peer| installed(peer).identity.clone();
    let programs = |peer| -> Result<Programs<'_>> {
        let peer = installed(peer).program.as_deref().map_err(Clone::clone)?;
        Ok(Programs { peer, isolane })
    };
    let runner = Runner::new(metadata.target_directory.join("interop/cells"), captures);

    let mut cells = runner.run(&wanted.cells, jobs, |cell, folder, capture| {
        run::run(*cell, programs(cell.peer)?, folder, capture)
    });
    for (cell, report) in wanted.cells.iter().zip(&mut cells) {
        report.labels = Some(cell.labels(identity(cell.peer)));
    }

    let policy_jobs = jobs * POLICY_JOBS / DEFAULT_JOBS;
    let mut policies = policies::run(&wanted.policies, metadata, &runner, policy_jobs)?;
    for (cell, report) in wanted.policies.iter().zip(&mut policies) {
        report.labels = Some(cell.labels(identity(cell.peer)));
    }

    let mut extra_runs = runner.run(&wanted.extra_runs, 1, |run, folder, _| {
        run.run(programs(run.peer())?, folder)
    });
    for (run, report) in wanted.extra_runs.iter().zip(&mut extra_runs) {
        report.labels = Some(run.labels(identity(run.peer())));
    }

    let report = Report {
        schema: "isolane/interop/1",
        cells,
        policies,
        extra_runs,
    };
    let has_failed = |report: &&RunReport| report.result == Verdict::Fail;
    for failed in report.all().filter(has_failed) {
        eprintln!("{failed}");
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ci_runs_few_cells() {
        assert_eq!(Wanted::chosen(false, &[]).cells.len(), CI_CELLS);
    }

    fn only(patterns: &[&str]) -> Wanted {
        let patterns = patterns.iter().copied().map(String::from);
        Wanted::chosen(false, &patterns.collect::<Vec<_>>())
    }

    #[test]
    fn all_is_the_product_of_cells_with_their_own_names_and_only_chooses_among_it() {
        let all = AXES.iter().product::<usize>();
        let wanted = Wanted::chosen(true, &[]);
        assert_eq!(wanted.cells.len(), all);
        let policies = policies::AXES.iter().product::<usize>();
        let names = wanted.names().collect::<BTreeSet<_>>();
        assert_eq!(names.len(), all + policies + ExtraRun::ALL.len());
        assert_eq!(only(&["loss-10"]).cells.len(), all / 3);
        let disposed = only(&["fastdds-publisher", "dispose"]).cells.len();
        assert_eq!(disposed, all / 2 / 2 / 3);
        assert_eq!(only(&["no-such-cell"]).cells.len(), 0);
    }

    #[test]
    fn an_extra_run_is_chosen_by_its_name() {
        let extra_runs = |patterns: &[&str]| only(patterns).extra_runs;
        assert_eq!(extra_runs(&[]), ExtraRun::ALL);
        assert_eq!(
            extra_runs(&["coexistence"]),
            [ExtraRun::Coexistence(Peer::CycloneDds)]
        );
        let of_fastdds = [
            ExtraRun::Large(Peer::FastDds),
            ExtraRun::TwoInterfaces(Peer::FastDds),
        ];
        assert_eq!(extra_runs(&["fastdds-"]), of_fastdds);
        assert_eq!(extra_runs(&["loss-10"]), []);
    }
}
