//! `cargo xtask test`: every check, in the order in which a developer wants to hear of trouble.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use isolane_budgets as budgets;
use isolane_checks::{demo, domain_size, isolation, page};
use isolane_hostile as hostile;
use isolane_interop::{self as interop, peers, shapes, types};
use isolane_support::packages::is_root;
use isolane_support::steps::{Outcome, Steps};
use isolane_support::workspace::{Metadata, build_commands, cargo};
use isolane_support::{Result, command, packages};
use isolane_testbed as testbed;

use crate::{classifier, conformance, dependencies, fuzz};

/// Runs all steps, prints the summary, and says whether nothing failed.
pub(crate) fn run() -> Result<bool> {
    let metadata = Metadata::read()?;
    let mut steps = Steps::default();

    steps.run("packages", packages::install_missing);
    steps.run("format", || {
        passes(cargo().args(["fmt", "--all", "--check"]))?;
        // A workspace of its own.
        let fuzz = metadata.workspace_root.join("lab/fuzz/Cargo.toml");
        passes(
            cargo()
                .args(["fmt", "--check", "--manifest-path"])
                .arg(fuzz),
        )
    });
    steps.run("lints", || {
        passes(cargo().args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]))
    });
    steps.run("dependencies", dependencies::check);
    steps.run("classifier", || classifier::step(&metadata));
    steps.run("tests", cargo_test);
    // Some of these have just run, among thousands: seconds, for one table of all datapaths.
    steps.run("conformance", || conformance::step(&metadata));
    steps.run("fuzz", || fuzz::step(&metadata));
    steps.run("documentation", || {
        passes(
            cargo()
                .args(["doc", "--workspace", "--no-deps"])
                .env("RUSTDOCFLAGS", "-Dwarnings"),
        )
    });

    // What follows runs the command itself, between hosts in namespaces.
    let built = steps.run("build", || passes(&mut build_commands()));
    if built {
        steps.run("budgets", || budgets::step(&metadata));
        steps.run("testbed", || testbed::step(&metadata));
    } else {
        steps.leave_out("budgets", "the build failed");
        steps.leave_out("testbed", "the build failed");
    }
    let obstacle = match (built, is_root()) {
        (false, _) => Some("the build failed"),
        (true, false) => Some("network namespaces need root"),
        (true, true) => None,
    };
    match obstacle {
        None => {
            steps.run("interop", || interop::step(&metadata));
            steps.run("shapes", || shapes::step(&metadata));
            steps.run("types", || types::step(&metadata));
            steps.run("peers", || peers::step(&metadata));
            if steps.run("demo", || demo::check(&metadata)) {
                steps.run("page", || page::check(&metadata));
            } else {
                steps.leave_out("page", "the demo failed");
            }
            steps.run("isolation", || isolation::step(&metadata));
            steps.run("hostile", || hostile::step(&metadata));
            steps.run("domain size", || domain_size::step(&metadata));
        }
        Some(reason) => {
            steps.leave_out("interop", reason);
            steps.leave_out("shapes", reason);
            steps.leave_out("types", reason);
            steps.leave_out("peers", reason);
            steps.leave_out("demo", reason);
            steps.leave_out("page", reason);
            steps.leave_out("isolation", reason);
            steps.leave_out("hostile", reason);
            steps.leave_out("domain size", reason);
        }
    }

    let may_leave_out = std::env::var_os("CI").is_none();
    if !may_leave_out && steps.has_left_out() {
        eprintln!("\nsteps were left out, which they may not be where CI is set");
    }
    print!("\n{}", steps.summary());
    Ok(steps.counts().1 == 0 && (may_leave_out || !steps.has_left_out()))
}

fn passes(command: &mut Command) -> Result<Outcome> {
    command::run(command).map(|()| Outcome::Passed)
}

/// All tests of all packages, documentation tests included, counted one by one.
fn cargo_test() -> Result<Outcome> {
    counted(cargo().args(["test", "--workspace", "--no-fail-fast"]))
}

/// Runs test programs and counts their tests one by one.
pub(crate) fn counted(command: &mut Command) -> Result<Outcome> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| command::cannot_start(command, &error))?;
    let mut totals = Totals::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            eprintln!("{line}");
            totals.add_line(&line);
        }
    }
    Ok(totals.outcome(child.wait()?.success()))
}

/// Lines of what failed tests printed that the summary repeats.
const MOST_FAILURE_LINES: usize = 60;

/// Sums over the test programs, each of which ends with a line
/// `test result: ok. 12 passed; 0 failed; 0 ignored; ...`.
#[derive(Default)]
struct Totals {
    passed: usize,
    failed: usize,
    /// What failed tests printed: the lines between the two headings `failures:` of each test program.
    failures: Vec<String>,
    is_in_failures: bool,
}

impl Totals {
    fn add_line(&mut self, line: &str) {
        if line.starts_with("running ") {
            // The program before may have ended between its headings.
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

    /// A run that failed although no test did (it did not compile, or a test program died) is one
    /// failure more: nothing may look like a pass because it never reported.
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
