//! `cargo xtask types`: one type in each extensibility and representation, with other implementations, both ways.
//!
//! The type is nested and keyed, with strings, sequences and members of 8 bytes (`lab/interop/programs/Reading.idl`). A cell
//! (`cell.rs`) is isolane's extensibility and representation, the peer's, and who writes. All cells of a peer run at
//! once, each with its own topic, in one network (`Network`): isolane's program is the example `typed` of the package
//! `isolane`, the peers' are `lab/interop/programs/*/typed.*` (`peer.rs`). Both sides print what happens to each endpoint, and
//! what came of a cell is decided by that (`seen.rs`). Where no sample is taken, `isolane why` must say the reason.
//! `docs/types.md` has the results of all peers.

mod cell;
mod peer;
mod seen;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use isolane_bench::namespace::Host;
use serde_json::Value;

use cell::{Cell, Direction, Extensibility, Outcome, Side};
use peer::{Installed, Peer};
use seen::{Lines, Seen};

use super::cell::Loss;
use super::network::Network;
use super::program::Program;
use isolane_support::steps;
use isolane_support::workspace::{Metadata, cargo};
use isolane_support::{Result, command, packages};

/// What all cells of a peer may take together.
const LONGEST_RUN: Duration = Duration::from_secs(25);
/// How long nothing may come of it where nothing must, once everything else is there.
const SILENCE: Duration = Duration::from_millis(1_500);
const LOOK: Duration = Duration::from_millis(100);

/// What `cargo xtask types` takes.
#[derive(clap::Args)]
pub struct Arguments {
    /// Also the peers that `cargo xtask test` does not install: Cyclone DDS 11 (from PyPI) and Dust DDS (from
    /// crates.io), which are downloaded
    #[arg(long)]
    all: bool,
}

/// The command: builds the programs, runs the cells, prints the tables, says whether none failed.
pub fn run(arguments: &Arguments) -> Result<bool> {
    if !packages::is_root() {
        return Err("types needs root: it makes network namespaces".into());
    }
    let peers = match arguments.all {
        true => &Peer::ALL[..],
        false => &Peer::CI[..],
    };
    let (passed, failed) = run_peers(&Metadata::read()?, peers)?;
    eprintln!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}

/// The same as a step of `cargo xtask test`; each cell counts.
pub fn step(metadata: &Metadata) -> Result<steps::Outcome> {
    let (passed, failed) = run_peers(metadata, &Peer::CI)?;
    Ok(steps::Outcome::Counted { passed, failed })
}

/// How many cells passed and failed.
fn run_peers(metadata: &Metadata, peers: &[Peer]) -> Result<(usize, usize)> {
    // The tests have built both, with the same features.
    let mut build = cargo();
    build.args([
        "build",
        "--workspace",
        "--bin",
        "isolane",
        "--example",
        "typed",
    ]);
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

/// What there is to say against what came of a cell.
fn failure(peer: Peer, cell: Cell, seen: &Seen) -> Option<String> {
    let expected = cell.expected(peer);
    let error = seen.is(cell, expected).err()?;
    let word = expected.word();
    Some(format!("{}: not {word}, but {error}", cell.topic()))
}

/// What `isolane why` must say of a cell, asked on isolane's host; an error is what it says instead.
type Answer = std::result::Result<(), String>;

/// Asks `isolane why` about a topic of which no sample is taken.
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

/// Runs all cells of a peer, until all is as it must be, or for as long as that may take; what the programs printed,
/// what `isolane why` says, and how the programs were called.
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
        Program::start(network.command(host, command), &folder.join(name))
    };
    let mut theirs = Vec::new();
    for extensibility in Extensibility::ALL {
        let mut cells = Cell::all();
        cells.retain(|cell| cell.theirs.extensibility == extensibility);
        let command = installed.command(extensibility);
        theirs.push(start(Host::B, command, &cells, extensibility.word())?);
    }
    let typed = Command::new(programs.join("examples/typed"));
    let mut ours = start(Host::A, typed, &Cell::all(), "isolane")?;

    let look = |ours: &Program, theirs: &[Program]| -> Result<Seen> {
        let mut seen = Seen {
            ours: Lines::default(),
            theirs: Lines::default(),
        };
        seen.ours.add(&ours.printed()?);
        for program in theirs {
            seen.theirs.add(&program.printed()?);
        }
        Ok(seen)
    };
    let is_done = |seen: &Seen| {
        let cells = Cell::all();
        cells
            .into_iter()
            .all(|cell| failure(peer, cell, seen).is_none())
    };
    let begin = Instant::now();
    while !is_done(&look(&ours, &theirs)?) && begin.elapsed() < LONGEST_RUN {
        thread::sleep(LOOK);
    }
    thread::sleep(SILENCE);
    let seen = look(&ours, &theirs)?;
    // One of each way to which nothing is delivered: a final type here, an appendable one there.
    let is_asked = |cell: &Cell| {
        cell.ours.extensibility == Extensibility::Final && cell.expected(peer) == Outcome::Refused
    };
    let mut answers = Vec::new();
    for direction in [Direction::FromIsolane, Direction::ToIsolane] {
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
    network.finish()?;
    Ok((seen, answers, account))
}

/// What came of all cells, a table for each direction.
fn tables(peer: Peer, identity: &str, seen: &Seen) -> String {
    let mut text = String::new();
    for direction in [Direction::FromIsolane, Direction::ToIsolane] {
        let (is_ours, way) = match direction {
            Direction::FromIsolane => (true, "isolane writes, the peer reads"),
            Direction::ToIsolane => (false, "the peer writes, isolane reads"),
        };
        let (rows, columns) = (Side::all(is_ours), Side::all(!is_ours));
        // Writing to a string does not fail.
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
                let word = seen
                    .outcome(cell, cell.expected(peer))
                    .map_or("other", Outcome::word);
                let _ = write!(text, " {word} |");
            }
            text.push('\n');
        }
    }
    text
}
