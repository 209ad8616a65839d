//! Counting tools, and the parsers of their output.
//!
//! Instructions: callgrind emulates the program and counts the instructions inside one function.
//!
//! Copies: dhat in its copy mode sees each call of `memcpy`, `memmove` and the like, with size and callers. It does not
//! see inlined copies, which are small and of a constant size. Copies of a payload of 1 KiB are not inlined.
//!
//! System calls: strace writes a line for each call.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use isolane_support::{Result, command};
use serde::{Deserialize, Serialize};

use super::Programs;
use super::paths::{FUNCTIONS, HALVES, Half, Side};

/// Number of rounds under a tool that emulates or stops the program. The counts hardly vary, so few rounds suffice.
const ROUNDS: u32 = 1_000;
/// Number of rounds in which no futex may be called.
const ROUNDS_WITHOUT_FUTEX: u32 = 100_000;

/// Counts of one path.
pub(super) struct Walk {
    /// Counts of each of [`FUNCTIONS`].
    halves: [Counts; 2],
    /// Futex calls in [`ROUNDS_WITHOUT_FUTEX`] rounds.
    pub(super) locks: u64,
}

/// Costs of one half of a round.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Counts {
    pub(super) instructions: f64,
    pub(super) allocations: f64,
    /// Payload copies; `None` if the payload is too small to distinguish from other copied data.
    pub(super) payload_copies: Option<f64>,
    pub(super) system_calls: f64,
    /// System calls by name.
    pub(super) by_call: BTreeMap<String, f64>,
}

impl Walk {
    /// Counts all costs of one path.
    pub(super) fn of(programs: &Programs, path: &str) -> Result<Self> {
        eprintln!("{path} ...");
        let (program, folder) = (&programs.budget, &programs.folder);
        let allocations = allocations(program, path)?;
        let calls = calls_by_side(program, path, folder)?;
        let copies = match path.ends_with("-1024") {
            true => Some(copies_by_side(program, path, folder)?),
            false => None,
        };
        let mut halves = [Counts::default(), Counts::default()];
        for (side, counts) in halves.iter_mut().enumerate() {
            // Skip a half that is in no row of the report.
            let is_reported = |half: &&Half| half.path == path && half.side.has(side);
            if !HALVES.iter().any(|half| is_reported(&half)) {
                continue;
            }
            let function = FUNCTIONS[side];
            *counts = Counts {
                instructions: instructions(program, path, function, folder)?,
                allocations: allocations[side],
                payload_copies: copies.map(|copies| copies[side]),
                system_calls: calls[side].values().sum(),
                by_call: calls[side].clone(),
            };
        }
        let locks = match path.starts_with("handle") {
            // `WriterHandle` is meant for other threads, so it is counted in a separate thread.
            true => futexes(Command::new(&programs.hundred_thousand), path, folder)?,
            false => futexes(example(program, path, ROUNDS_WITHOUT_FUTEX), path, folder)?,
        };
        Ok(Self { halves, locks })
    }

    /// Returns the costs of a part of the round.
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

/// Counts the instructions of a round trip over bare AF_XDP, both ends together.
pub(super) fn bare_round_trip(program: &Path) -> Result<f64> {
    eprintln!("bare AF_XDP ...");
    let mut bare = Command::new(program);
    bare.args(["--one-thread", "--rounds", &ROUNDS.to_string()]);
    Ok(instructions_inside("*in_turn*", &bare)? as f64 / f64::from(ROUNDS))
}

/// Checks the copy counter: for the same path with an intentional copy, it must count one copy more.
pub(super) fn check_the_copy_counter(program: &Path, folder: &Path) -> Result<()> {
    let count = |path| copies_by_side(program, path, folder);
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

/// Returns the allocations per round, by half, as the example's counting allocator reports them.
fn allocations(program: &Path, path: &str) -> Result<[f64; 2]> {
    let rounds = 10 * ROUNDS;
    let printed = command::quiet_output(&mut example(program, path, rounds))?;
    let of = |name| -> Result<f64> { Ok(number::<f64>(&printed, name)? / f64::from(rounds)) };
    Ok([of("allocations_of_give")?, of("allocations_of_get")?])
}

/// Returns the resident memory of the process with ten topics, including frames and program.
pub(super) fn resident_bytes(program: &Path) -> Result<u64> {
    let printed = command::quiet_output(&mut Command::new(program))?;
    number(&printed, "resident_bytes")
}

/// Size of the command without symbols.
pub(super) fn stripped_bytes(binary: &Path, folder: &Path) -> Result<u64> {
    let stripped = folder.join("isolane.stripped");
    command::run(Command::new("strip").arg("-o").arg(&stripped).arg(binary))?;
    Ok(fs::metadata(stripped)?.len())
}

/// Returns the number of the line `NAME NUMBER` with this name.
pub(crate) fn number<T: FromStr<Err: Error + 'static>>(printed: &str, name: &str) -> Result<T> {
    let mut lines = printed.lines().filter_map(|line| line.split_once(' '));
    let value = lines.find(|(of, _)| *of == name).map(|(_, value)| value);
    let value = value.ok_or_else(|| format!("there is no line `{name}` in: {printed}"))?;
    Ok(value.parse()?)
}

/// Returns the command of the example on one path.
fn example(program: &Path, path: &str, rounds: u32) -> Command {
    let mut example = Command::new(program);
    example.args([path, &rounds.to_string()]);
    example
}

/// Returns the command of a tool that runs a program.
fn tool(name: &str, arguments: &[&str], program: &Command) -> Command {
    let mut tool = Command::new(name);
    tool.args(arguments).arg(program.get_program());
    tool.args(program.get_args());
    tool
}

/// Counts the instructions per round inside a function. The kernel's instructions are not counted.
fn instructions(program: &Path, path: &str, function: &str, folder: &Path) -> Result<f64> {
    let profile = folder.join(format!("callgrind.{path}.{function}"));
    let arguments = [
        "--tool=callgrind",
        &format!("--toggle-collect=*::{function}"),
        &format!("--callgrind-out-file={}", profile.display()),
    ];
    let mut callgrind = tool("valgrind", &arguments, &example(program, path, ROUNDS));
    Ok(collected_instructions(&mut callgrind)? as f64 / f64::from(ROUNDS))
}

/// Counts the instructions of a program inside the functions of this pattern.
pub(crate) fn instructions_inside(pattern: &str, program: &Command) -> Result<u64> {
    let arguments = [
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        &format!("--toggle-collect={pattern}"),
    ];
    collected_instructions(&mut tool("valgrind", &arguments, program))
}

/// Runs callgrind, and returns the number of instructions that it counted.
fn collected_instructions(callgrind: &mut Command) -> Result<u64> {
    let output = command::captured(callgrind)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = collected(&said).filter(|&count| count > 0 && output.status.success());
    collected.ok_or_else(|| {
        let command = command::displayed(callgrind);
        format!("`{command}` collected nothing ({}): {said}", output.status).into()
    })
}

/// Returns the number of the line `==PID== Collected : 1705000`.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Minimum size in bytes of a copy that counts as a payload copy.
const PAYLOAD_BYTES: f64 = 1_024.0;

/// Names of the functions that receive announcements and that run once a second.
const NOT_OF_SAMPLES: [&str; 2] = ["take_in_announcement", "State::housekeeping"];

/// Parts of dhat's file (version 2) that are used here.
#[derive(Deserialize)]
struct Profile {
    mode: String,
    /// Program points.
    pps: Vec<Point>,
    /// Frames, by index.
    ftbl: Vec<String>,
}

/// All copies with the same call stack.
#[derive(Deserialize)]
struct Point {
    /// Number of bytes in all these copies; `tbk` is the number of copies.
    tb: u64,
    tbk: u64,
    /// Call stack, as indexes into `ftbl`.
    fs: Vec<usize>,
}

/// Counts the payload copies per round, by half.
fn copies_by_side(program: &Path, path: &str, folder: &Path) -> Result<[f64; 2]> {
    let file = folder.join(format!("dhat.{path}.json"));
    let arguments = [
        "--quiet",
        "--tool=dhat",
        "--mode=copy",
        // The functions of the halves are near the outer end of the stack, so the whole stack is recorded.
        "--num-callers=64",
        &format!("--dhat-out-file={}", file.display()),
    ];
    let example = example(program, path, ROUNDS);
    command::quiet_output(&mut tool("valgrind", &arguments, &example))?;
    let profile = serde_json::from_slice::<Profile>(&fs::read(&file)?)?;
    if profile.mode != "copy" {
        return Err(format!("{}: the mode is {}", file.display(), profile.mode).into());
    }
    Ok(FUNCTIONS.map(|function| profile.payload_copies(function) as f64 / f64::from(ROUNDS)))
}

impl Profile {
    /// Returns the number of payload copies inside a function, without those of [`NOT_OF_SAMPLES`]. They are as large as
    /// a payload, and occur in random rounds: housekeeping copies the ledger of the datapath.
    fn payload_copies(&self, function: &str) -> u64 {
        let is_inside = |point: &&Point| {
            let frames = || point.fs.iter().filter_map(|&frame| self.ftbl.get(frame));
            frames().any(|frame| frame.contains(function))
                && !frames().any(|frame| NOT_OF_SAMPLES.iter().any(|name| frame.contains(name)))
        };
        let is_payload = |point: &&Point| point.tb as f64 / point.tbk as f64 >= PAYLOAD_BYTES;
        let points = self.pps.iter().filter(is_inside).filter(is_payload);
        points.map(|point| point.tbk).sum()
    }
}

/// System call with which the example `budget` marks the start of each half of a round, and the end of the second.
const MARK: &str = "getppid";
/// Line that the examples print before the first counted sample.
const BEGIN: &str = "the samples begin";
const END: &str = "the samples end";

/// Counts the system calls per round, by half and name.
fn calls_by_side(program: &Path, path: &str, folder: &Path) -> Result<[BTreeMap<String, f64>; 2]> {
    let trace = folder.join(format!("strace.{path}"));
    let arguments = ["-q", "-o", &trace.display().to_string()];
    let example = example(program, path, ROUNDS);
    command::quiet_output(&mut tool("strace", &arguments, &example))?;
    let lines = BufReader::new(File::open(&trace)?).lines();
    let mut counts = [BTreeMap::new(), BTreeMap::new()];
    let marks = count_between_marks(lines.map_while(std::io::Result::ok), &mut counts);
    fs::remove_file(&trace)?;
    if marks != 3 * u64::from(ROUNDS) {
        return Err(
            format!("strace saw {marks} marks of {ROUNDS} rounds on the path {path}").into(),
        );
    }
    let a_round = |count: u64| count as f64 / f64::from(ROUNDS);
    Ok(counts.map(|counts| {
        let counts = counts.into_iter();
        counts.map(|(name, count)| (name, a_round(count))).collect()
    }))
}

/// Counts the system calls of both halves. Each round has three marks: the first half is between the first two, the
/// second half between the last two. Returns the number of marks.
fn count_between_marks(
    lines: impl Iterator<Item = String>,
    counts: &mut [BTreeMap<String, u64>; 2],
) -> u64 {
    let mut marks = 0;
    for name in lines.filter_map(|line| call(&line).map(str::to_owned)) {
        if name == MARK {
            marks += 1;
        } else if let Some(side) = (marks % 3_u64).checked_sub(1) {
            *counts[side as usize].entry(name).or_insert(0) += 1;
        }
    }
    marks
}

/// Returns the name of the call at the beginning of a line; `None` if the line is about a signal or an exit.
fn call(line: &str) -> Option<&str> {
    let (name, _) = line.split_once('(')?;
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.bytes().all(is_name).then_some(name)
}

/// Counts the futex calls of a program between its lines `BEGIN` and `END`. Those of start and exit vary. strace stops
/// all threads only at futexes and writes, which keeps the run short.
fn futexes(program: Command, path: &str, folder: &Path) -> Result<u64> {
    let trace = folder.join(format!("futexes.{path}"));
    let file = trace.display().to_string();
    let arguments = [
        "-f",
        "--seccomp-bpf",
        "-q",
        "-e",
        "trace=futex,write",
        "-o",
        &file,
    ];
    command::quiet_output(&mut tool("strace", &arguments, &program))?;
    let lines = fs::read_to_string(&trace)?;
    fs::remove_file(trace)?;
    let begin = lines.find(BEGIN).ok_or("no mark of the first sample")?;
    let end = lines.find(END).ok_or("no mark of the last sample")?;
    Ok(lines[begin..end].matches("futex(").count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_callgrind_collected_stands_behind_the_last_blank() {
        let said = "==7== Events    : Ir\n==7== Collected : 1705000\n==7== \n";
        assert_eq!(collected(said), Some(1_705_000));
        assert_eq!(collected("==7== error"), None);
    }

    #[test]
    fn large_copies_are_counted_where_they_were_made() {
        let profile: Profile = serde_json::from_str(
            r#"{
                "dhatFileVersion": 2, "mode": "copy", "te": 1,
                "pps": [
                    { "tb": 1028000, "tbk": 1000, "fs": [1, 3] },
                    { "tb": 1020000, "tbk": 1000, "fs": [1, 3] },
                    { "tb": 4096, "tbk": 1, "fs": [1, 2] },
                    { "tb": 1192, "tbk": 1, "fs": [1, 4, 3] },
                    { "tb": 5768, "tbk": 1, "fs": [1, 5, 3] },
                    { "tb": 2056000, "tbk": 2000, "fs": [2] }
                ],
                "ftbl": ["[root]", "0x1: memcpy", "0x2: budget::main", "0x3: budget::measured_get (main.rs:82)",
                    "0x4: take_in_announcement (mod.rs:140)",
                    "0x5: isolane::participant::state::State::housekeeping (state.rs:211)"]
            }"#,
        )
        .unwrap();
        assert_eq!(profile.payload_copies("measured_get"), 1000);
        assert_eq!(profile.payload_copies("measured_give"), 0);
    }

    #[test]
    fn calls_are_counted_in_the_half_they_were_made_in() {
        let trace = "\
execve(\"budget\") = 0
getppid() = 1
sendmmsg(5, 0x7f, 1, 64) = 1
getppid() = 1
epoll_pwait2(4, 0x7f, 9) = 1
--- SIGCHLD {si_signo=SIGCHLD} ---
recvmmsg(6, 0x7f, 16) = 1
getppid() = 1
write(1, \"rounds 1\", 8) = 8
+++ exited with 0 +++";
        let mut counts = [BTreeMap::new(), BTreeMap::new()];
        assert_eq!(
            count_between_marks(trace.lines().map(str::to_owned), &mut counts),
            3
        );
        assert_eq!(counts[0], [("sendmmsg".to_owned(), 1)].into());
        let received = [("epoll_pwait2".to_owned(), 1), ("recvmmsg".to_owned(), 1)];
        assert_eq!(counts[1], received.into());
    }
}
