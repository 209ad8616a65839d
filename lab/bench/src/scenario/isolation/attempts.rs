//! Making a trial, again where the machine has spoilt it: that is no fault of the code.

use super::{Trial, Verdict};
use crate::child::Program;
use crate::namespace::Testbed;
use crate::report::Run;
use crate::scenario::rtt;

/// How often a trial is made that the machine spoils, or that cannot be made.
pub const TRIES: u32 = 3;

/// A trial that was made.
pub struct Made {
    /// What came of the last attempt.
    pub verdict: Verdict,
    /// All that was measured in it; `None` if it could not be made.
    pub run: Option<Run>,
}

impl Trial {
    /// Makes it between two hosts, up to [`TRIES`] times: until it could be made and the machine has not
    /// spoilt it. Each attempt that does not count is told, with its number.
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
