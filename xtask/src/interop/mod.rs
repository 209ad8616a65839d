//! `cargo xtask interop`: isolane against other DDS implementations, a cell at a time.
//!
//! A cell is a choice of one value from every axis (`cell.rs`). Each gets a network of its own
//! (`network.rs`), runs the peer's program on one host and `isolane pub` or `isolane sub` on the
//! other (`side.rs`, `program.rs`, `run.rs`), and passes or fails by what the subscriber printed
//! (`verdict.rs`). Nothing here looks at packets or into isolane: the commands are the interface.

mod cell;
mod cover;
mod network;
mod peer;
mod program;
mod report;
mod run;
mod side;
mod verdict;

use std::path::Path;
use std::time::Instant;

use cell::{AXES, Cell};
use peer::{Installed, Peer};
use report::{CellReport, Report, Verdict};
use side::Programs;

use crate::steps::Outcome;
use crate::workspace::{Metadata, cargo};
use crate::{Result, command, packages};

/// The command: builds isolane, runs the cells, writes the results, says whether none failed.
pub(crate) fn run(all: bool, json: Option<&Path>) -> Result<bool> {
    if !packages::is_root() {
        return Err("interop needs root: it makes network namespaces".into());
    }
    let metadata = Metadata::read()?;
    command::run(cargo().args(["build", "--release", "--package", "isolane-cli"]))?;
    let report = run_cells(&metadata, &chosen(all));
    if let Some(file) = json {
        report.write(file)?;
    }
    let (passed, failed) = (report.count(Verdict::Pass), report.count(Verdict::Fail));
    eprintln!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}

/// The same as a step of `cargo xtask test`, which has built isolane; each cell counts.
pub(crate) fn step(metadata: &Metadata) -> Result<Outcome> {
    let report = run_cells(metadata, &chosen(false));
    report.write(&metadata.target_directory.join("interop/cells.json"))?;
    Ok(Outcome::Counted {
        passed: report.count(Verdict::Pass),
        failed: report.count(Verdict::Fail),
    })
}

/// The cells to run. With so few axes the full product (`--all`) is also the cover that CI runs.
fn chosen(_all: bool) -> Vec<Cell> {
    cover::product(AXES).into_iter().map(Cell::choose).collect()
}

fn run_cells(metadata: &Metadata, cells: &[Cell]) -> Report {
    let peers = Peer::ALL.map(|peer| peer.install(metadata));
    let reports = cells.iter().flat_map(|cell| {
        peers
            .iter()
            .filter(|installed| installed.peer == cell.peer)
            .map(|peer| run_cell(metadata, *cell, peer))
    });
    Report::new(reports.collect())
}

fn run_cell(metadata: &Metadata, cell: Cell, peer: &Installed) -> CellReport {
    let start = Instant::now();
    let folder = metadata
        .target_directory
        .join("interop/cells")
        .join(cell.name());
    let verdict = peer.program.clone().and_then(|program| {
        let programs = Programs {
            peer: &program,
            isolane: &metadata.isolane(),
        };
        run::run(cell, programs, &folder).unwrap_or_else(|error| Err(error.to_string()))
    });
    let seconds = peer.program.is_ok().then(|| start.elapsed().as_secs_f64());
    let (result, detail) = match verdict {
        Ok(detail) => (Verdict::Pass, detail),
        Err(detail) => (Verdict::Fail, detail),
    };
    let word = if result == Verdict::Pass {
        "pass"
    } else {
        "FAIL"
    };
    eprintln!(
        "{word} {}: {detail} ({:.1} s)",
        cell.name(),
        seconds.unwrap_or(0.0)
    );
    CellReport {
        peer: peer.identity.clone(),
        peer_role: cell.peer_role.name(),
        case: cell.case(),
        datapath: "udp",
        result,
        detail,
        seconds,
    }
}
