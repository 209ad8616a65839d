//! The tools that count, and how what they print is read.

mod callgrind;
mod dhat;
mod strace;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

pub(crate) use callgrind::collect as collected_instructions;

use super::Programs;
use super::ways::{FUNCTIONS, HALVES, Side};
use isolane_support::{Result, command};

/// Rounds under a tool that emulates or stops the program: the counts of a round are nearly all
/// the same, so a few tell.
const ROUNDS: u32 = 1_000;
/// Rounds in which no futex may be called.
const ROUNDS_WITHOUT_FUTEX: u32 = 100_000;

/// What was counted of one way.
pub(super) struct Walk {
    /// By [`FUNCTIONS`].
    halves: [Counts; 2],
    /// Futex calls in [`ROUNDS_WITHOUT_FUTEX`].
    pub(super) locks: u64,
}

/// What one half of a round costs.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) instructions: f64,
    pub(super) allocations: f64,
    pub(super) payload_copies: Option<f64>,
    pub(super) system_calls: f64,
    /// The same by the name of the call.
    pub(super) by_call: BTreeMap<String, f64>,
}

impl Walk {
    /// Counts all of it.
    pub(super) fn of(programs: &Programs, way: &str) -> Result<Self> {
        eprintln!("{way} ...");
        let (program, folder) = (&programs.budget, &programs.folder);
        let allocations = allocations(program, way)?;
        let calls = strace::calls_by_side(program, way, ROUNDS, folder)?;
        let copies = match way.ends_with("-1024") {
            true => Some(dhat::copies_by_side(program, way, ROUNDS, folder)?),
            false => None,
        };
        let mut halves = [Counts::default(), Counts::default()];
        for (side, counts) in halves.iter_mut().enumerate() {
            // What nobody reports is not counted.
            let is_reported = |half: &&super::Half| half.way == way && half.side.has(side);
            if !HALVES.iter().any(|half| is_reported(&half)) {
                continue;
            }
            let function = FUNCTIONS[side];
            *counts = Counts {
                instructions: callgrind::instructions(program, way, ROUNDS, function, folder)?,
                allocations: allocations[side],
                payload_copies: copies.map(|copies| copies[side]),
                system_calls: calls[side].values().sum(),
                by_call: calls[side].clone(),
            };
        }
        let locks = match way.starts_with("remote") {
            // With a thread of its own, as `RemoteWriter` is meant.
            true => strace::futexes_between_marks(&programs.hundred_thousand, folder)?,
            false => strace::futexes(program, way, ROUNDS_WITHOUT_FUTEX, folder)?,
        };
        Ok(Self { halves, locks })
    }

    /// What a side costs.
    pub(super) fn counts(&self, side: Side) -> Counts {
        let sides = self.halves.iter().enumerate();
        let mut sum = Counts::default();
        for (_, counts) in sides.filter(|(function, _)| side.has(*function)) {
            sum.instructions += counts.instructions;
            sum.allocations += counts.allocations;
            sum.system_calls += counts.system_calls;
            sum.payload_copies = match (sum.payload_copies, counts.payload_copies) {
                (Some(copies), Some(more)) => Some(copies + more),
                (copies, more) => copies.or(more),
            };
            for (name, calls) in &counts.by_call {
                *sum.by_call.entry(name.clone()).or_insert(0.0) += calls;
            }
        }
        sum
    }
}

/// Instructions of a round trip over bare AF_XDP, both ends.
pub(super) fn bare_round_trip(program: &Path) -> Result<f64> {
    eprintln!("bare AF_XDP ...");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg("--toggle-collect=*in_turn*").arg(program);
    valgrind.args(["--one-thread", "--rounds", &ROUNDS.to_string()]);
    let collected = callgrind::collect(&mut valgrind)?;
    // A tenth of the rounds goes before those that count, and is collected too.
    Ok(collected as f64 / (1.1 * f64::from(ROUNDS)))
}

/// A counter that finds no copy proves nothing until it has found one: the same way with a copy on
/// purpose must have one more.
pub(super) fn check_the_copy_counter(program: &Path, folder: &Path) -> Result<()> {
    let count = |way| dhat::copies_by_side(program, way, ROUNDS, folder);
    let (plain, copied) = (count("best-effort-1024")?, count("copied-1024")?);
    let side = Side::Give as usize;
    if copied[side] == plain[side] + 1.0 {
        return Ok(());
    }
    Err(format!(
        "copies are not counted right: {} a sample, and {} with one more on purpose",
        plain[side], copied[side]
    )
    .into())
}

/// What the example's own allocator counted, a round, by side.
fn allocations(program: &Path, way: &str) -> Result<[f64; 2]> {
    let rounds = 10 * ROUNDS;
    let mut example = example(program, way, rounds);
    let printed = quietly(&mut example)?;
    let of =
        |name| Ok::<f64, Box<dyn std::error::Error>>(number(&printed, name)? / f64::from(rounds));
    Ok([of("allocations_of_give")?, of("allocations_of_get")?])
}

/// Resident memory of the process with ten topics, frames and program included.
pub(super) fn resident_bytes(program: &Path) -> Result<u64> {
    let printed = quietly(&mut Command::new(program))?;
    Ok(number(&printed, "resident_bytes")? as u64)
}

/// The size of the command without what only debuggers and profilers read.
pub(super) fn stripped_bytes(binary: &Path, folder: &Path) -> Result<u64> {
    let stripped = folder.join("isolane.stripped");
    command::run(Command::new("strip").arg("-o").arg(&stripped).arg(binary))?;
    Ok(fs::metadata(stripped)?.len())
}

/// Runs it and returns its standard output. What it says beside that is shown only if it fails:
/// valgrind warns of system calls that it does not know, and the example does without.
fn quietly(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .map_err(|error| command::cannot_start(command, &error))?;
    if !output.status.success() {
        let (command, said) = (
            command::displayed(command),
            String::from_utf8_lossy(&output.stderr),
        );
        return Err(format!("`{command}`: {}: {said}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// A line `NAME NUMBER`.
fn number(printed: &str, name: &str) -> Result<f64> {
    let mut lines = printed.lines().filter_map(|line| line.split_once(' '));
    let value = lines.find(|(of, _)| *of == name).map(|(_, value)| value);
    let value = value.ok_or_else(|| format!("there is no line `{name}` in: {printed}"))?;
    Ok(value.parse()?)
}

/// The example on a way.
fn example(program: &Path, way: &str, rounds: u32) -> Command {
    let mut example = Command::new(program);
    example.args([way, &rounds.to_string()]);
    example
}

/// A tool that runs the example on a way.
fn tool(name: &str, arguments: &[&str], program: &Path, way: &str, rounds: u32) -> Command {
    let mut tool = Command::new(name);
    tool.args(arguments).arg(program);
    tool.args([way, &rounds.to_string()]);
    tool
}
