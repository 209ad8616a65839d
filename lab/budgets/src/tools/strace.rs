//! System calls: strace writes a line for each.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;

use isolane_support::Result;

/// What the example `budget` calls before each half of a round and behind the second.
const MARK: &str = "getppid";
/// What the examples write.
const BEGIN: &str = "the samples begin";
const END: &str = "the samples end";

/// System calls a round, by side and name.
pub(super) fn calls_by_side(
    program: &Path,
    way: &str,
    rounds: u32,
    folder: &Path,
) -> Result<[BTreeMap<String, f64>; 2]> {
    let trace = folder.join(format!("strace.{way}"));
    let arguments = ["-q", "-o", &trace.display().to_string()];
    super::quietly(&mut super::tool("strace", &arguments, program, way, rounds))?;
    let lines = BufReader::new(File::open(&trace)?).lines();
    let mut counts = [BTreeMap::new(), BTreeMap::new()];
    let marks = count_between_marks(lines.map_while(std::io::Result::ok), &mut counts);
    fs::remove_file(&trace)?;
    if marks != 3 * u64::from(rounds) {
        return Err(format!("strace saw {marks} marks of {rounds} rounds on the way {way}").into());
    }
    let a_round = |count: u64| count as f64 / f64::from(rounds);
    Ok(counts.map(|counts| {
        let counts = counts.into_iter();
        counts.map(|(name, count)| (name, a_round(count))).collect()
    }))
}

/// Counts what lies between the first and the second, and the second and the third of each three
/// marks; returns how many marks there were.
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

/// The name of the call that a line begins; `None` where it tells of a signal or an exit.
fn call(line: &str) -> Option<&str> {
    let (name, _) = line.split_once('(')?;
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.bytes().all(is_name).then_some(name)
}

/// Futex calls of all rounds together. Only futexes stop the program, so many rounds take no time.
pub(super) fn futexes(program: &Path, way: &str, rounds: u32, folder: &Path) -> Result<u64> {
    let mut example = super::example(program, way, rounds);
    let trace = folder.join(format!("futexes.{way}"));
    between_marks(&mut example, &trace)
}

/// Futex calls of the example `hundred_thousand` while samples flow between its threads.
pub(super) fn futexes_between_marks(program: &Path, folder: &Path) -> Result<u64> {
    let trace = folder.join("futexes.hundred_thousand");
    between_marks(&mut Command::new(program), &trace)
}

/// Futex calls of a program between its marks: starting and ending may take some, and not always as
/// many.
fn between_marks(program: &mut Command, trace: &Path) -> Result<u64> {
    let mut strace = Command::new("strace");
    strace.args(watching("trace=futex,write", trace));
    strace.arg(program.get_program()).args(program.get_args());
    super::quietly(&mut strace)?;
    let lines = fs::read_to_string(trace)?;
    fs::remove_file(trace)?;
    let begin = lines.find(BEGIN).ok_or("no mark of the first sample")?;
    let end = lines.find(END).ok_or("no mark of the last sample")?;
    Ok(lines[begin..end].matches("futex(").count() as u64)
}

/// Arguments by which all threads are stopped at these calls only.
fn watching(calls: &str, trace: &Path) -> [String; 7] {
    [
        "-f",
        "--seccomp-bpf",
        "-q",
        "-e",
        calls,
        "-o",
        &trace.display().to_string(),
    ]
    .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

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
