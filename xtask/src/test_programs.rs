//! Test programs of the workspace: their need of root, and the results of their tests.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use isolane_support::steps::Outcome;
use isolane_support::workspace::{cargo, cargo_metadata};
use isolane_support::{Result, command};
use serde::Deserialize;

/// Test targets in which some tests need root and others do not. They run with and without `--system`.
const PARTLY_AS_ROOT: &[&str] = &["broken_input", "console_blocks", "observe", "spy", "top"];

/// Environment variables that choose or reduce the seeds of simulations.
const SEED_CHOICES: [&str; 3] = ["ISOLANE_SEED", "ISOLANE_SEED_COUNT", "ISOLANE_SEED_LIMIT"];

/// Test targets that need root. They use AF_XDP, change devices, set real-time priorities, or can test nothing without
/// root.
const AS_ROOT: &[&str] = &[
    "bad_days",
    "budgets_on_xdp",
    "cable",
    "classifier_attach",
    "demo",
    "interface_gone",
    "lane",
    "lanes",
    "lanes_no_allocation",
    "programs",
    "reference_model",
    "routing",
    "scenario",
    "socket",
    "streams",
    "tune",
    "tune_ports",
    "xdp",
    "xdp_no_allocation",
];

/// Module of tests inside a library that need root: its package and path.
const MODULE_AS_ROOT: (&str, &str) = ("isolane-datapath-xdp", "xdp::send::tests::");

/// Maximum number of seeds of a simulation without root; `--all` runs every seed.
const SEEDS: &str = "32";

/// Runs all tests that need no root, with at most `SEEDS` seeds of a simulation, and documentation tests.
pub(crate) fn run_default() -> Result<Outcome> {
    let mut programs = tests();
    programs.args(["--lib", "--bins"]);
    for name in targets()?
        .iter()
        .filter(|name| !AS_ROOT.contains(&name.as_str()))
    {
        programs.args(["--test", name]);
    }
    programs.args(["--", "--skip", MODULE_AS_ROOT.1]);
    programs.env("ISOLANE_SEED_LIMIT", SEEDS);
    let mut documentation = tests();
    documentation.arg("--doc");
    counted(&mut [programs, documentation])
}

/// Runs the tests that need root.
pub(crate) fn run_as_root() -> Result<Outcome> {
    let mut programs = tests();
    let targets = AS_ROOT.iter().chain(PARTLY_AS_ROOT);
    programs.args(targets.flat_map(|name| ["--test", name]));
    let (package, module) = MODULE_AS_ROOT;
    let mut library = cargo();
    library.args(["test", "--package", package, "--lib", module]);
    counted(&mut [programs, library])
}

/// Runs all tests of all packages, including documentation tests.
pub(crate) fn run_all() -> Result<Outcome> {
    counted(&mut [tests()])
}

fn tests() -> Command {
    let mut tests = cargo();
    tests.args(["test", "--workspace", "--no-fail-fast"]);
    for variable in SEED_CHOICES {
        tests.env_remove(variable);
    }
    tests
}

/// Part of `cargo metadata` that names test targets.
#[derive(Deserialize)]
struct Metadata {
    workspace_members: Vec<String>,
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// Returns the names of the test targets of the workspace. Targets of two packages may have the same name.
fn targets() -> Result<BTreeSet<String>> {
    let metadata: Metadata = cargo_metadata()?;
    let own = metadata.packages.into_iter();
    let own = own.filter(|package| metadata.workspace_members.contains(&package.id));
    let targets = own.flat_map(|package| package.targets);
    let tests = targets.filter(|target| target.kind.iter().any(|kind| kind == "test"));
    Ok(tests.map(|target| target.name).collect())
}

/// Runs commands that run test programs, and counts their tests one by one.
pub(crate) fn counted(commands: &mut [Command]) -> Result<Outcome> {
    let mut totals = Totals::default();
    let mut is_success = true;
    for command in commands {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| command::cannot_start(command, &error))?;
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).lines() {
                let line = line?;
                eprintln!("{line}");
                totals.add_line(&line);
            }
        }
        is_success &= child.wait()?.success();
    }
    Ok(totals.outcome(is_success))
}

/// Maximum number of lines of failed tests that the summary repeats.
const MOST_FAILURE_LINES: usize = 60;

/// Sums over test programs. A test program ends with a line `test result: ok. 12 passed; 0 failed; 0 ignored; ...`.
#[derive(Default)]
struct Totals {
    passed: usize,
    failed: usize,
    /// Output of failed tests: the lines between the two headings `failures:` of each test program.
    failures: Vec<String>,
    is_in_failures: bool,
}

impl Totals {
    fn add_line(&mut self, line: &str) {
        if line.starts_with("running ") {
            // The previous program may have ended between its headings.
            self.is_in_failures = false;
        } else if line == "failures:" {
            self.is_in_failures = !self.is_in_failures;
        } else if self.is_in_failures && self.failures.len() < MOST_FAILURE_LINES {
            self.failures.push(line.to_owned());
        }
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let words = result
            .split([' ', ';', '.'])
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>();
        for pair in words.windows(2) {
            match (pair[0].parse::<usize>(), pair[1]) {
                (Ok(count), "passed") => self.passed += count,
                (Ok(count), "failed") => self.failed += count,
                _ => {}
            }
        }
    }

    /// If the run failed without a failed test (it did not compile, or a test program died), it counts as one failure.
    /// So a run without a report never looks like a pass.
    fn outcome(self, success: bool) -> Outcome {
        if success && (self.passed, self.failed) == (0, 0) {
            return Outcome::Failed("no test ran".into());
        }
        let has_died = !success && self.failed == 0;
        Outcome::Tests {
            passed: self.passed,
            failed: self.failed + usize::from(has_died),
            failures: self.failures,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(lines: &[&str]) -> Totals {
        let mut totals = Totals::default();
        lines.iter().for_each(|line| totals.add_line(line));
        totals
    }

    #[test]
    fn each_program_that_needs_root_is_there() {
        let targets = targets().expect("cargo metadata");
        let is_missing = |name: &&&str| !targets.contains(**name);
        let missing: Vec<_> = AS_ROOT.iter().filter(is_missing).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn the_results_of_all_test_programs_are_added() {
        let totals = totals(&[
            "running 12 tests",
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s",
            "failures:",
            "---- one stdout ----",
            "thread 'one' panicked",
            "failures:",
            "    one",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s",
        ]);
        assert_eq!((totals.passed, totals.failed), (15, 2));
        let failures = ["---- one stdout ----", "thread 'one' panicked"];
        assert_eq!(totals.failures, failures);
    }

    #[test]
    fn a_run_that_died_without_a_failing_test_is_a_failure() {
        let died = totals(&["test result: ok. 12 passed; 0 failed; 0 ignored"]).outcome(false);
        assert!(matches!(
            died,
            Outcome::Tests {
                passed: 12,
                failed: 1,
                ..
            }
        ));
    }

    #[test]
    fn a_run_without_any_test_is_a_failure() {
        assert!(matches!(totals(&[]).outcome(true), Outcome::Failed(_)));
    }
}
