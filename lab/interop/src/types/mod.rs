//! `cargo xtask types`: one type in each extensibility and representation, exchanged with other implementations in both
//! directions.
//!
//! The type is nested and keyed, with strings, sequences and members of 8 bytes (`lab/interop/programs/Reading.idl`). A
//! cell (`cell.rs`) is isolane's extensibility and representation, the peer's, and the direction. All cells of a peer
//! run at once, each with its own topic, in one network (`Network`). isolane's program is the example `typed` of the
//! package `isolane`; the peers' are `lab/interop/programs/*/typed.*` (`Peer`). Both sides print the events of each
//! endpoint, which decide the outcome (`Seen`). Where no sample is taken, `isolane why` must name the reason.
//! `docs/results/types.md` has the results of all peers.

mod cell;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use isolane_bench::namespace::Host;
use isolane_support::workspace::{Metadata, cargo};
use isolane_support::{Result, command, packages, steps};
use serde_json::Value;
use strum::VariantArray;

use super::combination::{Axis, Loss};
use super::network::Network;
use super::program::{Program, wait_until};
use crate::foreign;
use cell::{Cell, Direction, Extensibility, Outcome, Representation, Seen, Side};

/// Timeout of all cells of a peer together.
const LONGEST_RUN: Duration = Duration::from_secs(25);
/// Time to wait, once all other output has arrived, before a cell in which no sample may arrive is confirmed.
const SILENCE: Duration = Duration::from_millis(1_500);

/// Arguments of `cargo xtask types`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Also run the peers that `cargo xtask test --system` does not install: download Cyclone DDS 11 (from PyPI) and
    /// Dust DDS (from crates.io)
    #[arg(long)]
    all: bool,
}

/// Builds the programs, runs the cells and prints the tables. Returns true when none failed.
pub fn run(arguments: &Arguments) -> Result<bool> {
    packages::require_root("types")?;
    let peers = match arguments.all {
        true => Peer::VARIANTS,
        false => &Peer::CI[..],
    };
    let (passed, failed) = run_peers(&Metadata::read()?, peers)?;
    eprintln!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}

/// Step of `cargo xtask test --all`. Each cell counts as a test.
pub fn step(metadata: &Metadata) -> Result<steps::Outcome> {
    let (passed, failed) = run_peers(metadata, &Peer::CI)?;
    Ok(steps::Outcome::Counted { passed, failed })
}

/// Runs the peers; returns the numbers of passed and failed cells.
fn run_peers(metadata: &Metadata, peers: &[Peer]) -> Result<(usize, usize)> {
    // The tests have already built both programs with the same features.
    let mut build = cargo();
    build.args(["build", "--workspace"]);
    build.args(["--bin", "isolane", "--example", "typed"]);
    command::run(&mut build)?;
    let programs = metadata.target_directory.join("debug");
    let (mut passed, mut failed) = (0, 0);
    for &peer in peers {
        let installed = peer
            .install(metadata)
            .map_err(|error| format!("{peer:?} cannot be had: {error}"))?;
        let folder = metadata.target_directory.join("interop/types/output");
        let (seen, answers, account) = run_all(peer, &installed, &programs, &folder)?;
        eprint!("{}", tables(peer, &installed.identity, &seen));
        let failures: Vec<String> = Cell::all()
            .into_iter()
            .filter_map(|cell| failure(peer, cell, &seen))
            .chain(answers.iter().filter_map(|answer| answer.clone().err()))
            .collect();
        for failure in &failures {
            eprintln!("FAIL {}: {failure}", installed.identity);
        }
        if !failures.is_empty() {
            eprint!("{account}");
        }
        passed += Cell::all().len() + answers.len() - failures.len();
        failed += failures.len();
    }
    Ok((passed, failed))
}

/// Objection to a cell's outcome, if any.
fn failure(peer: Peer, cell: Cell, seen: &Seen) -> Option<String> {
    let expected = cell.expected(peer);
    let error = seen.is(cell, expected).err()?;
    Some(format!("{}: not {expected}, but {error}", cell.topic()))
}

/// Ok when `isolane why`, run on isolane's host, gave the expected reason; the error is its output.
type Answer = std::result::Result<(), String>;

/// Runs `isolane why` for a topic of which no sample is taken.
fn ask_why(network: &Network, isolane: &Path, cell: Cell) -> Result<Answer> {
    let mut why = Command::new(isolane);
    why.args(["why", &cell.topic(), "--json", "-", "--seconds", "1"]);
    why.arg("--no-other-domains");
    let output = network.command(Host::A, why).output()?;
    let answer = serde_json::from_slice::<Value>(&output.stdout)
        .map_err(|error| format!("isolane why: {error}"))?;
    let said = answer["reasons"].to_string();
    let words = match cell.direction {
        Direction::ToIsolane => ["\"encapsulation\"", "D_CDR2_LE"],
        Direction::FromIsolane => ["\"match\"", "final or appendable is unknown"],
    };
    Ok(match words.iter().all(|word| said.contains(word)) {
        true => Ok(()),
        false => Err(format!("isolane why {}: {said}", cell.topic())),
    })
}

/// Runs all cells of a peer until every outcome is as expected, or until the timeout. Returns the programs' output,
/// that of `isolane why`, and the command lines.
fn run_all(
    peer: Peer,
    installed: &Installed,
    programs: &Path,
    folder: &Path,
) -> Result<(Seen, Vec<Answer>, String)> {
    fs::create_dir_all(folder)?;
    let network = Network::new(Loss::None)?;
    let start = |host, mut command: Command, cells: &[Cell], name: &str| {
        command.args(cells.iter().map(|cell| cell.argument(host == Host::A)));
        network.start(host, command, &folder.join(name))
    };
    let mut theirs = Vec::new();
    for &extensibility in Extensibility::ALL {
        let mut cells = Cell::all();
        cells.retain(|cell| cell.theirs.extensibility == extensibility);
        let command = installed.command(extensibility);
        theirs.push(start(Host::B, command, &cells, extensibility.word())?);
    }
    let typed = Command::new(programs.join("examples/typed"));
    let mut ours = start(Host::A, typed, &Cell::all(), "isolane")?;

    let look = |ours: &Program, theirs: &[Program]| -> Result<Seen> {
        let mut seen = Seen::default();
        seen.ours.add(&ours.printed()?);
        for program in theirs {
            seen.theirs.add(&program.printed()?);
        }
        Ok(seen)
    };
    let is_done = |seen: &Seen| {
        let mut cells = Cell::all().into_iter();
        cells.all(|cell| failure(peer, cell, seen).is_none())
    };
    wait_until(LONGEST_RUN, || Ok(is_done(&look(&ours, &theirs)?)))?;
    thread::sleep(SILENCE);
    let seen = look(&ours, &theirs)?;
    // One undelivered cell of each direction: isolane's type final, the peer's appendable.
    let is_asked = |cell: &Cell| {
        cell.ours.extensibility == Extensibility::Final && cell.expected(peer) == Outcome::Refused
    };
    let mut answers = Vec::new();
    for &direction in Direction::ALL {
        let refused = Cell::of(direction).into_iter().find(is_asked);
        if let Some(cell) = refused {
            answers.push(ask_why(&network, &programs.join("isolane"), cell)?);
        }
    }
    let mut account = String::new();
    for program in theirs.iter_mut().chain([&mut ours]) {
        program.stop()?;
        account += &program.account();
    }
    network.finish(false)?;
    Ok((seen, answers, account))
}

/// Outcomes of all cells, a table for each direction.
fn tables(peer: Peer, identity: &str, seen: &Seen) -> String {
    let mut text = String::new();
    for &direction in Direction::ALL {
        let (is_ours, way) = match direction {
            Direction::FromIsolane => (true, "isolane writes, the peer reads"),
            Direction::ToIsolane => (false, "the peer writes, isolane reads"),
        };
        let (rows, columns) = (Side::all(is_ours), Side::all(!is_ours));
        let _ = write!(text, "\n{identity}, {way}\n\n| isolane \\ peer |");
        for column in &columns {
            let _ = write!(text, " {column} |");
        }
        let _ = writeln!(text, "\n|{}", " --- |".repeat(columns.len() + 1));
        for ours in rows {
            let _ = write!(text, "| {ours} |");
            for &theirs in &columns {
                let cell = Cell {
                    direction,
                    ours,
                    theirs,
                };
                let outcome = seen.outcome(cell, cell.expected(peer));
                let word = outcome.map_or("other".into(), |outcome| outcome.to_string());
                let _ = write!(text, " {word} |");
            }
            text.push('\n');
        }
    }
    text
}

/// Version of Cyclone DDS from its Python package.
const CYCLONEDDS_PYTHON: &str = "11.0.1";
/// Version in the manifest of the program for Dust DDS.
const DUSTDDS: &str = "0.16.0";

/// An implementation of DDS in one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
enum Peer {
    CycloneDds,
    FastDds,
    CycloneDdsPython,
    DustDds,
}

/// A peer installed on this machine.
struct Installed {
    /// Name and version.
    identity: String,
    programs: [Vec<PathBuf>; 2],
}

impl Installed {
    /// Command of the program that has a type of this extensibility, without endpoints.
    fn command(&self, extensibility: Extensibility) -> Command {
        let [program, arguments @ ..] = &self.programs[extensibility as usize][..] else {
            unreachable!("each has a program");
        };
        let mut command = Command::new(program);
        command.args(arguments);
        command
    }
}

impl Peer {
    /// Peers that `cargo xtask test --system` installs for other steps, too.
    const CI: [Self; 2] = [Self::CycloneDds, Self::FastDds];

    /// Known deviation of a cell's outcome from the standards.
    fn known(self, cell: Cell) -> Option<Outcome> {
        let theirs = cell.theirs;
        let is_appendable = theirs.extensibility == Extensibility::Appendable;
        let has_xcdr1 = theirs.representation != Representation::Xcdr2;
        let is_read = cell.direction == Direction::FromIsolane;
        let by_the_standards = cell.by_the_standards();
        match self {
            Self::CycloneDds if is_appendable && has_xcdr1 => Some(Outcome::Impossible(
                "appendable types are in XCDR2 only: dds_create_topic, Bad Parameter",
            )),
            // Cyclone DDS reads and writes the key of an appendable type without DHEADERs.
            Self::CycloneDds
                if is_read && is_appendable && by_the_standards == Outcome::Delivered =>
            {
                Some(Outcome::EndUnread)
            }
            Self::FastDds if theirs.representation != Representation::Xcdr1 => {
                Some(Outcome::Impossible("Fast CDR 1.0 has no XCDR2"))
            }
            Self::FastDds if by_the_standards == Outcome::NotMatched => Some(Outcome::OneSided),
            // The endpoints are created and match, but XCDR1 of an appendable type is neither written nor read.
            Self::CycloneDdsPython
                if is_appendable && has_xcdr1 && by_the_standards == Outcome::Delivered =>
            {
                let sends_xcdr2 = cell.ours.representation == Representation::Xcdr2;
                match is_read {
                    true if sends_xcdr2 => None,
                    true => Some(Outcome::Silent),
                    false => Some(Outcome::Impossible(
                        "appendable types are in XCDR2 only: dds_write, Bad Parameter",
                    )),
                }
            }
            _ => None,
        }
    }

    /// Installs the peer and builds its programs under `target/interop/types`.
    fn install(self, metadata: &Metadata) -> Result<Installed> {
        let sources = metadata.workspace_root.join("lab/interop/programs");
        let folder = metadata.target_directory.join("interop/types");
        match self {
            Self::CycloneDds => {
                let build = |option: &str, name: &str| {
                    foreign::build_cyclonedds(
                        &sources.join("cyclonedds/typed.c"),
                        &sources.join("Reading.idl"),
                        &["-D", option],
                        &folder.join("cyclonedds").join(name),
                    )
                };
                Ok(Installed {
                    identity: foreign::identity("cyclonedds", foreign::CYCLONEDDS)?,
                    programs: [
                        vec![build("FINAL", "final")?],
                        vec![build("APPENDABLE", "appendable")?],
                    ],
                })
            }
            Self::FastDds => {
                let source = sources.join("fastdds/typed.cpp");
                let program = foreign::build_fastdds(&source, &folder.join("fastdds"))?;
                Ok(Installed {
                    identity: foreign::identity("fastdds", foreign::FASTDDS)?,
                    programs: [vec![program.clone()], vec![program]],
                })
            }
            Self::CycloneDdsPython => {
                let python = virtual_environment(&folder.join("python"))?;
                let script = sources.join("cyclonedds/typed.py");
                let of = |word: &str| vec![python.clone(), script.clone(), word.into()];
                Ok(Installed {
                    identity: format!("cyclonedds {CYCLONEDDS_PYTHON}"),
                    programs: [of("final"), of("appendable")],
                })
            }
            Self::DustDds => {
                let target = folder.join("dustdds");
                let mut build = cargo();
                build.args(["build", "--locked", "--manifest-path"]);
                build.arg(sources.join("dustdds/Cargo.toml"));
                build.arg("--target-dir").arg(&target);
                command::run(&mut build)?;
                let of = |word: &str| vec![target.join("debug/typed"), word.into()];
                Ok(Installed {
                    identity: format!("dustdds {DUSTDDS}"),
                    programs: [of("final"), of("appendable")],
                })
            }
        }
    }
}

/// Creates a Python environment with Cyclone DDS, unless it exists; returns its interpreter.
fn virtual_environment(folder: &Path) -> Result<PathBuf> {
    let python = folder.join("bin/python");
    let requirement = format!("cyclonedds=={CYCLONEDDS_PYTHON}");
    let marker = folder.join(&requirement);
    if !marker.exists() {
        command::run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", &requirement]);
        command::run(&mut pip)?;
        fs::write(marker, "")?;
    }
    Ok(python)
}
