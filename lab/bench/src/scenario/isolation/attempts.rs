//! Execution of a trial, repeated when the machine spoilt it.

use super::{Trial, Verdict};
use crate::child::Program;
use crate::namespace::Testbed;
use crate::report::Run;
use crate::scenario::rtt;

/// Maximum number of attempts when the machine spoils a trial or it cannot be run.
pub const TRIES: u32 = 3;

/// Completed trial.
pub struct Made {
    /// Verdict of the last attempt.
    pub verdict: Verdict,
    /// Measurements of the last attempt; `None` if it could not be run.
    pub run: Option<Run>,
}

impl Trial {
    /// Runs the trial between two hosts, up to [`TRIES`] times, until an attempt is not spoilt by the machine. Calls
    /// `thrown_away` with the number and verdict of each discarded attempt.
    pub fn make(
        &self,
        testbed: &Testbed,
        program: &Program,
        mut thrown_away: impl FnMut(u32, &Verdict),
    ) -> Made {
        let mut attempt = 1;
        loop {
            let outcome = rtt::run_between_hosts(testbed, program, &self.config);
            let made = match outcome {
                Ok(outcome) => Made {
                    verdict: self.judge(&outcome.run),
                    run: Some(outcome.run),
                },
                Err(error) => Made {
                    verdict: self.not_made(&error),
                    run: None,
                },
            };
            let counts = made.run.as_ref().is_some_and(|run| !self.is_spoilt(run));
            if counts || attempt == TRIES {
                return made;
            }
            thrown_away(attempt, &made.verdict);
            attempt += 1;
        }
    }
}
