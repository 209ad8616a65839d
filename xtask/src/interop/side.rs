//! The two sides of a cell: which program runs, with which arguments.

use std::path::Path;
use std::process::Command;

use super::cell::{Cell, Reliability, Role};

/// The topic of all cells; each has a network of its own.
pub(super) const TOPIC: &str = "Square";
/// The only instance.
pub(super) const COLOR: &str = "BLUE";
/// Between two samples.
const PERIOD_MS: u32 = 10;
/// What one side may take; the run as a whole has a little more, for starting and stopping.
pub(super) const SECONDS: u32 = 10;

/// The command of the side of a cell that has this role.
pub(super) fn command(cell: Cell, role: Role, programs: Programs<'_>) -> Command {
    if role == cell.peer_role {
        peer(cell, role, programs.peer)
    } else {
        isolane(cell, role, programs.isolane)
    }
}

/// What a cell's sides run.
#[derive(Clone, Copy)]
pub(super) struct Programs<'a> {
    pub(super) peer: &'a Path,
    pub(super) isolane: &'a Path,
}

/// Its options: `tests/interop/peer.h`.
fn peer(cell: Cell, role: Role, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args([role_command(role), "--topic", TOPIC]);
    match cell.reliability {
        Reliability::BestEffort => command.arg("--best-effort"),
        // KEEP_LAST may replace what a slow reader has not acknowledged.
        Reliability::Reliable => command.args(["--reliable", "--keep-all"]),
    };
    command.args([
        "--count",
        &cell.samples().to_string(),
        "--seconds",
        &SECONDS.to_string(),
    ]);
    if role == Role::Publisher {
        command.args(["--color", COLOR, "--period-ms", &PERIOD_MS.to_string()]);
    }
    command
}

fn isolane(cell: Cell, role: Role, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args([role_command(role), TOPIC]);
    match cell.reliability {
        Reliability::BestEffort => command.arg("--best-effort"),
        Reliability::Reliable => command.args(["--reliable", "--history", "all"]),
    };
    command.args([
        "--count",
        &cell.samples().to_string(),
        "--seconds",
        &SECONDS.to_string(),
    ]);
    if role == Role::Publisher {
        command.args(["--color", COLOR, "--period", &format!("{PERIOD_MS}ms")]);
    }
    command
}

fn role_command(role: Role) -> &'static str {
    match role {
        Role::Publisher => "pub",
        Role::Subscriber => "sub",
    }
}
