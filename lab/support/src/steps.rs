//! Steps of a test run. Each step is announced, timed and recorded. A failed step does not stop the others.

use std::fmt::{self, Display, Write as _};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::Result;

/// Outcome of a step.
pub enum Outcome {
    /// A single check that holds.
    Passed,
    /// Several checks, which are counted one by one.
    Counted {
        /// Number of checks that hold.
        passed: usize,
        /// Number of checks that do not hold.
        failed: usize,
    },
    /// Tests.
    Tests {
        /// Number of tests that passed.
        passed: usize,
        /// Number of tests that failed, and of test programs that died.
        failed: usize,
        /// Output of failed tests.
        failures: Vec<String>,
    },
    /// Failure, with its reason.
    Failed(String),
    /// The step could not run here, for this reason. It counts neither as passed nor as failed.
    LeftOut(String),
}

/// Check of a run, and whether it holds.
#[derive(Debug, Serialize)]
pub struct Check {
    /// Counted or measured quantity, with its value and limit.
    pub what: String,
    /// True if the value is within the limit.
    pub holds: bool,
}

impl Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.holds { "holds" } else { "FAILS" };
        write!(f, "{word}: {}", self.what)
    }
}

impl Outcome {
    /// Counts checks.
    pub fn of<'a>(checks: impl IntoIterator<Item = &'a Check>) -> Outcome {
        let (passed, failed): (Vec<_>, Vec<_>) = checks.into_iter().partition(|check| check.holds);
        Outcome::Counted {
            passed: passed.len(),
            failed: failed.len(),
        }
    }
}

struct Step {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

/// Steps that ran so far.
#[derive(Default)]
pub struct Steps {
    done: Vec<Step>,
}

impl Steps {
    /// Runs one step. Returns true if nothing in it failed, so that steps that depend on it can run.
    pub fn run(&mut self, name: &'static str, step: impl FnOnce() -> Result<Outcome>) -> bool {
        eprintln!("\n=== {name}");
        let start = Instant::now();
        let outcome = step().unwrap_or_else(|error| Outcome::Failed(error.to_string()));
        let step = Step {
            name,
            outcome,
            took: start.elapsed(),
        };
        eprintln!("=== {name}: {} ({} min)", step.result(), minutes(step.took));
        self.done.push(step);
        self.done.last().is_some_and(|step| step.counts().1 == 0)
    }

    /// Records a step that is skipped, and prints the reason.
    pub fn leave_out(&mut self, name: &'static str, reason: &str) {
        self.run(name, || Ok(Outcome::LeftOut(reason.into())));
    }

    /// Returns true if some step could not run here.
    pub fn has_left_out(&self) -> bool {
        let mut outcomes = self.done.iter().map(|step| &step.outcome);
        outcomes.any(|outcome| matches!(outcome, Outcome::LeftOut(_)))
    }

    /// Numbers of checks that passed and failed.
    pub fn counts(&self) -> (usize, usize) {
        self.done
            .iter()
            .map(Step::counts)
            .fold((0, 0), |sum, step| (sum.0 + step.0, sum.1 + step.1))
    }

    /// Formats the output of failed tests, the table of all steps with their durations, and a note. CI reads the last
    /// line, `N passed, N failed`.
    pub fn summary(&self, note: &str) -> String {
        let width = self
            .done
            .iter()
            .map(|step| step.name.len())
            .max()
            .unwrap_or(0);
        let mut text = String::new();
        for step in &self.done {
            if let Outcome::Tests { failures, .. } = &step.outcome {
                text.extend(failures.iter().flat_map(|line| [line, "\n"]));
            }
        }
        for step in &self.done {
            let _ = writeln!(
                text,
                "{:width$}  {:>6} min  {}",
                step.name,
                minutes(step.took),
                step.result()
            );
        }
        let left_out = self
            .done
            .iter()
            .filter(|step| matches!(step.outcome, Outcome::LeftOut(_)))
            .count();
        if left_out > 0 {
            let _ = writeln!(
                text,
                "{left_out} steps were left out: not everything is tested"
            );
        }
        let all = self.done.iter().map(|step| step.took).sum();
        let _ = writeln!(text, "{:width$}  {:>6} min", "", minutes(all));
        text += note;
        let (passed, failed) = self.counts();
        let _ = writeln!(text, "{passed} passed, {failed} failed");
        text
    }
}

/// Formats a duration in minutes and seconds.
fn minutes(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

impl Step {
    fn counts(&self) -> (usize, usize) {
        match self.outcome {
            Outcome::Passed => (1, 0),
            Outcome::Counted { passed, failed } | Outcome::Tests { passed, failed, .. } => {
                (passed, failed)
            }
            Outcome::Failed(_) => (0, 1),
            Outcome::LeftOut(_) => (0, 0),
        }
    }

    fn result(&self) -> String {
        match &self.outcome {
            Outcome::Passed => "pass".into(),
            Outcome::Counted { passed, failed } | Outcome::Tests { passed, failed, .. } => {
                match failed {
                    0 => format!("pass: {passed}"),
                    _ => format!("FAIL: {failed} of {}", passed + failed),
                }
            }
            Outcome::Failed(reason) => format!("FAIL: {reason}"),
            Outcome::LeftOut(reason) => format!("left out: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_step_stops_no_other_and_is_counted() {
        let mut steps = Steps::default();
        assert!(steps.run("one", || Ok(Outcome::Passed)));
        assert!(!steps.run("two", || Err("broken".into())));
        assert!(!steps.run("three", || Ok(Outcome::Counted {
            passed: 40,
            failed: 2
        })));
        assert!(steps.run("four", || Ok(Outcome::Counted {
            passed: 8,
            failed: 0
        })));
        assert_eq!(steps.counts(), (49, 3));
    }

    #[test]
    fn a_time_is_minutes_and_seconds() {
        assert_eq!(minutes(Duration::from_secs(59)), "0:59");
        assert_eq!(minutes(Duration::from_secs(754)), "12:34");
    }

    #[test]
    fn the_summary_ends_with_the_counts_alone_on_a_line() {
        let mut steps = Steps::default();
        steps.run("one", || Ok(Outcome::Passed));
        steps.leave_out("two", "needs root");
        let summary = steps.summary("more is elsewhere\n");
        assert!(summary.contains("left out: needs root"), "{summary}");
        assert!(summary.contains("more is elsewhere\n"), "{summary}");
        assert_eq!(summary.lines().last(), Some("1 passed, 0 failed"));
    }
}
