//! Test that the path of a sample takes no lock: a hundred thousand samples pass from a publisher's thread to a
//! callback on another thread, without one futex call.
//!
//! The program is `examples/hundred_thousand.rs`, run under strace. The test counts the system calls between its two
//! marks, and prints them.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::Command,
};

const SAMPLES: u64 = 100_000;

/// Path of the example, which is built if cargo has not built it, as when the test is chosen by name.
fn example() -> PathBuf {
    let this = std::env::current_exe().expect("this program");
    let profile = this
        .parent()
        .and_then(Path::parent)
        .expect("target/PROFILE/deps");
    let mut build = Command::new(env!("CARGO"));
    build.args([
        "build",
        "--quiet",
        "--package",
        "isolane",
        "--example",
        "hundred_thousand",
    ]);
    build
        .arg("--target-dir")
        .arg(profile.parent().expect("target/PROFILE"));
    if profile.ends_with("release") {
        build.arg("--release");
    }
    let built = build.current_dir(env!("CARGO_MANIFEST_DIR")).status();
    assert!(
        built.expect("cargo runs").success(),
        "the example does not build"
    );
    profile.join("examples/hundred_thousand")
}

/// Runs a program under strace with all its threads, and returns the trace.
fn trace(program: &Path) -> PathBuf {
    let trace = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hundred_thousand.strace");
    // Arguments as numbers suffice, except for `write`, whose texts are the marks.
    let run = Command::new("strace")
        .args(["-f", "-q", "-e", "raw=!write", "-o"])
        .arg(&trace)
        .arg(program)
        .status();
    let status = run.unwrap_or_else(|error| {
        panic!("strace does not run ({error}): install it with `apt-get install strace`")
    });
    assert!(status.success(), "{} says {status}", program.display());
    trace
}

/// Returns the system call that a line of a trace begins; `None` for the end of a call, a signal or an exit.
fn call(line: &str) -> Option<&str> {
    let (_thread, rest) = line.split_once(' ')?;
    let (name, _) = rest.trim_start().split_once('(')?;
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.bytes().all(is_name).then_some(name)
}

/// Number of calls of each system call.
type Calls = BTreeMap<String, u64>;

/// Returns the calls between the marks, and the other ones.
fn count(lines: impl Iterator<Item = String>) -> (Calls, Calls) {
    let (mut between, mut outside) = (Calls::new(), Calls::new());
    let (mut has_begun, mut has_ended) = (false, false);
    for line in lines {
        has_begun |= line.contains("the samples begin");
        has_ended |= line.contains("the samples end");
        let calls = if has_begun && !has_ended {
            &mut between
        } else {
            &mut outside
        };
        if let Some(name) = call(&line) {
            *calls.entry(name.to_owned()).or_insert(0) += 1;
        }
    }
    assert!(has_begun && has_ended, "the program wrote no marks");
    (between, outside)
}

#[test]
fn a_hundred_thousand_samples_take_no_futex_call() {
    let trace = trace(&example());
    let lines = BufReader::new(File::open(&trace).expect("the trace")).lines();
    let (calls, others) = count(lines.map(|line| line.expect("a line of text")));
    println!("system calls a sample, publisher, sender and receiver together:");
    for (name, count) in &calls {
        println!("{name:>20} {:>9.4}", *count as f64 / SAMPLES as f64);
    }
    assert!(
        calls.get("sendmmsg").is_some_and(|&count| count >= SAMPLES),
        "{calls:?}"
    );
    assert_eq!(calls.get("futex"), None, "{calls:?}");
    // The trace would show futex calls: starts and ends of threads make some.
    assert!(
        others.get("futex").is_some_and(|&count| count > 0),
        "{others:?}"
    );
    std::fs::remove_file(trace).expect("the trace is removed");
}

#[test]
fn a_trace_is_counted_between_its_marks_each_call_once() {
    let trace = "\
7 futex(0x7f, 0x80, 0, 0, 0, 0) = 0
7 write(2, \"the samples begin\\n\", 18) = 18
8 futex(0x7f, 0x80, 0, 0, 0, 0 <unfinished ...>
9 sendmmsg(0x5, 0x7f, 0x1, 0x40) = 0x1
8 <... futex resumed>) = 0
8 --- SIGCHLD {si_signo=SIGCHLD} ---
7 write(2, \"the samples end\\n\", 16) = 16
9 futex(0x7f, 0x81, 0x1, 0, 0, 0) = 0
9 +++ exited with 0 +++";
    let (between, outside) = count(trace.lines().map(str::to_owned));
    assert_eq!(between["futex"], 1);
    assert_eq!(between["sendmmsg"], 1);
    assert_eq!(outside["futex"], 2);
}
