//! The two sides of a cell: the program of each, its arguments, and the build of a peer's program.
//!
//! Every program runs until SIGINT. The publisher then ends the instance as its cell says, stays briefly, and leaves.
//! The peers' programs are in `lab/interop/programs/NAME/shape.*` and have a common command line (`peer.h` there).

use std::path::{Path, PathBuf};
use std::process::Command;

use isolane_support::workspace::Metadata;
use strum::{IntoStaticStr, VariantArray};

use super::combination::{Axis, Cell, Datapath, Durability, End, Life, Reliability, Role};
use crate::foreign;

/// Topic of all cells; each cell has its own network.
pub(super) const TOPIC: &str = "Square";
/// The only instance.
pub(super) const COLOR: &str = "BLUE";
/// Time between two samples, in milliseconds: short, so that losses are a small share.
const PERIOD_MS: u32 = 5;
/// Longest run of a program without an interrupt, in seconds.
const SECONDS: u32 = 20;
/// History depth of a publisher for late joiners: all it can write in a cell's ten seconds.
const HISTORY: u32 = 2000;
/// Lease that a peer announces when it will be killed, in milliseconds. The peers' defaults (10 s, 20 s) are longer
/// than a cell, in which the dead participant must expire.
const LEASE_MS: u32 = 1500;
/// Running number of a restarted publisher's first sample, beyond all numbers of its earlier life.
pub(super) const RESTARTED_FROM: u32 = 100_000;

/// First start of a side, or a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    First,
    Again,
}

/// Programs of a cell's sides.
#[derive(Clone, Copy)]
pub(super) struct Programs<'a> {
    pub(super) peer: &'a Path,
    pub(super) isolane: &'a Path,
}

/// Command of a cell's side in this role.
pub(super) fn command(cell: Cell, role: Role, start: Start, programs: Programs<'_>) -> Command {
    if role == cell.peer_role {
        peer(cell, start, programs.peer)
    } else {
        isolane(cell, role, programs.isolane)
    }
}

/// Exit status of a side after SIGINT.
pub(super) fn status_when_stopped(cell: Cell, role: Role) -> i32 {
    const INTERRUPTED: i32 = 130;
    if role == cell.peer_role {
        0
    } else {
        INTERRUPTED
    }
}

/// Options of a peer's program: `lab/interop/programs/peer.h`.
fn peer(cell: Cell, start: Start, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args([role_command(cell.peer_role), "--topic", TOPIC]);
    command.args(["--seconds", &SECONDS.to_string()]);
    match cell.reliability {
        Reliability::BestEffort => command.arg("--best-effort"),
        // KEEP_LAST may replace samples that a slow reader has not acknowledged, or that a late joiner needs.
        Reliability::Reliable => command.args(["--reliable", "--keep-all"]),
    };
    if cell.durability == Durability::TransientLocal {
        command.arg("--transient-local");
    }
    if cell.life == Life::Restarted {
        command.args(["--lease-ms", &LEASE_MS.to_string()]);
    }
    if cell.peer_role == Role::Publisher {
        command.args(["--color", COLOR, "--period-ms", &PERIOD_MS.to_string()]);
        match cell.end {
            End::None => {}
            end => {
                command.args(["--end", end.word()]);
            }
        }
        if start == Start::Again {
            command.args(["--first", &RESTARTED_FROM.to_string()]);
        }
    }
    command
}

fn isolane(cell: Cell, role: Role, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args([role_command(role), TOPIC]);
    command.args(["--seconds", &SECONDS.to_string()]);
    match cell.reliability {
        Reliability::BestEffort => command.arg("--best-effort"),
        Reliability::Reliable => command.arg("--reliable"),
    };
    command.args(["--durability", cell.durability.word()]);
    command.args(["--datapath", cell.datapath.word()]);
    if cell.datapath == Datapath::Xdp {
        // Print the lane's counters at the end.
        command.arg("-vv");
    }
    if let Some(history) = isolane_history(cell, role) {
        command.args(["--history", &history]);
    }
    if role == Role::Publisher {
        command.args(["--color", COLOR, "--period", &format!("{PERIOD_MS}ms")]);
        match cell.end {
            End::None => {}
            End::Dispose => {
                command.arg("--dispose-at-end");
            }
            End::Unregister => {
                command.arg("--unregister-at-end");
            }
        }
    }
    command
}

/// History option of isolane: KEEP_ALL where nothing may be replaced, except for a TRANSIENT_LOCAL publisher. A full
/// KEEP_ALL history would drop samples that a late joiner needs, so that publisher has [`HISTORY`].
fn isolane_history(cell: Cell, role: Role) -> Option<String> {
    match (cell.reliability, cell.durability, role) {
        (Reliability::BestEffort, ..) => None,
        (Reliability::Reliable, Durability::TransientLocal, Role::Publisher) => {
            Some(HISTORY.to_string())
        }
        (Reliability::Reliable, ..) => Some("all".into()),
    }
}

pub(super) fn role_command(role: Role) -> &'static str {
    match role {
        Role::Publisher => "pub",
        Role::Subscriber => "sub",
    }
}

/// Another implementation of DDS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Peer {
    CycloneDds,
    FastDds,
}

/// A peer, with its program if it is installed on this machine.
pub(super) struct Installed {
    pub(super) peer: Peer,
    /// Name and version as in the JSON: "cyclonedds 0.10.2".
    pub(super) identity: String,
    /// Path of its program, or the reason for its absence.
    pub(super) program: Result<PathBuf, String>,
}

impl Peer {
    /// Debian package of the peer, whose version is reported.
    fn package(self) -> &'static str {
        match self {
            Self::CycloneDds => foreign::CYCLONEDDS,
            Self::FastDds => foreign::FASTDDS,
        }
    }

    /// Finds the peer and builds its program under `target/interop/NAME`. A missing peer or failed build is recorded in
    /// its cells, and no error here.
    pub(super) fn install(self, metadata: &Metadata) -> Installed {
        let name = self.word();
        let (identity, program) = match foreign::identity(name, self.package()) {
            Ok(identity) => (identity, self.build(metadata)),
            Err(error) => (format!("{name} (absent)"), Err(error)),
        };
        Installed {
            peer: self,
            identity,
            program: program.map_err(|error| error.to_string()),
        }
    }

    fn build(self, metadata: &Metadata) -> isolane_support::Result<PathBuf> {
        let sources = metadata.workspace_root.join("lab/interop/programs");
        let folder = metadata.target_directory.join("interop").join(self.word());
        match self {
            Self::CycloneDds => foreign::build_cyclonedds(
                &sources.join("cyclonedds/shape.c"),
                &sources.join("ShapeType.idl"),
                &["-D", "PLAIN"],
                &folder,
            ),
            Self::FastDds => foreign::build_fastdds(&sources.join("fastdds/shape.cpp"), &folder),
        }
    }
}
