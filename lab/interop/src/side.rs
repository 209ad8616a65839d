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
/// Longest run of a program without an interrupt, in seconds: longer than any run.
const SECONDS: u32 = 60;
/// Exit status of isolane after SIGINT; that of a peer's program is 0.
pub(super) const INTERRUPTED: i32 = 130;
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
    let is_peer = role == cell.peer_role;
    let mut command = plain_command(programs, is_peer, role, TOPIC, PERIOD_MS);
    match is_peer {
        true => add_peer_options(&mut command, cell, start),
        false => add_isolane_options(&mut command, cell, role),
    }
    command
}

/// Command of a side without its policies; a publisher writes samples of [`COLOR`].
pub(super) fn plain_command(
    programs: Programs<'_>,
    is_peer: bool,
    role: Role,
    topic: &str,
    period_ms: u32,
) -> Command {
    let mut command = Command::new(match is_peer {
        true => programs.peer,
        false => programs.isolane,
    });
    command.arg(match role {
        Role::Publisher => "pub",
        Role::Subscriber => "sub",
    });
    if is_peer {
        command.arg("--topic");
    }
    command.args([topic, "--seconds", &SECONDS.to_string()]);
    if role == Role::Publisher {
        command.args(["--color", COLOR]);
        match is_peer {
            true => command.args(["--period-ms", &period_ms.to_string()]),
            false => command.args(["--period", &format!("{period_ms}ms")]),
        };
    }
    command
}

/// Exit status of a side after SIGINT.
pub(super) fn status_when_stopped(peer_role: Role, role: Role) -> i32 {
    match role == peer_role {
        true => 0,
        false => INTERRUPTED,
    }
}

/// Adds the options of a peer's program (`lab/interop/programs/peer.h`) for a cell.
fn add_peer_options(command: &mut Command, cell: Cell, start: Start) {
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
        if cell.end != End::None {
            command.args(["--end", cell.end.word()]);
        }
        if start == Start::Again {
            command.args(["--first", &RESTARTED_FROM.to_string()]);
        }
    }
}

/// Adds the options of isolane for a cell.
fn add_isolane_options(command: &mut Command, cell: Cell, role: Role) {
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
    if role == Role::Publisher && cell.end != End::None {
        command.arg(format!("--{}-at-end", cell.end.word()));
    }
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
