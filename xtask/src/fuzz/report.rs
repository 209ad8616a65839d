//! What fuzzing did, for people and for programs.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::libfuzzer::Ran;
use isolane_support::{Result, json};

/// The schema of the JSON.
const SCHEMA: &str = "isolane/fuzz/1";

/// All runs.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) targets: Vec<TargetReport>,
    /// Bugs put in on purpose; empty where none were.
    pub(super) seeded: Vec<SeededReport>,
}

/// The runs of one target.
#[derive(Debug, Default, Serialize)]
pub(super) struct TargetReport {
    pub(super) target: String,
    pub(super) inputs: u64,
    pub(super) seconds: f64,
    pub(super) coverage: u64,
    pub(super) corpus: u64,
    pub(super) findings: Vec<FindingReport>,
}

/// An input that failed.
#[derive(Debug, Serialize)]
pub(super) struct FindingReport {
    pub(super) input: String,
    pub(super) message: Option<String>,
}

/// A bug put in on purpose.
#[derive(Debug, Serialize)]
pub(super) struct SeededReport {
    pub(super) bug: String,
    pub(super) what: String,
    /// The target that found it; `None`: none did.
    pub(super) found_by: Option<String>,
    pub(super) inputs: u64,
    pub(super) seconds: f64,
    pub(super) message: Option<String>,
}

impl Report {
    pub(super) fn add(&mut self, target: &str, ran: Ran) {
        let place = self.targets.iter().position(|row| row.target == target);
        let place = place.unwrap_or_else(|| {
            self.targets.push(TargetReport {
                target: target.into(),
                ..TargetReport::default()
            });
            self.targets.len() - 1
        });
        let row = &mut self.targets[place];
        row.inputs += ran.inputs;
        row.seconds += ran.seconds;
        row.coverage = row.coverage.max(ran.coverage);
        row.corpus = row.corpus.max(ran.corpus);
        row.findings.extend(ran.finding.map(|input| FindingReport {
            input,
            message: ran.message,
        }));
    }

    pub(super) fn findings_of(&self, target: &str) -> usize {
        let row = self.targets.iter().find(|row| row.target == target);
        row.map_or(0, |row| row.findings.len())
    }

    /// Whether nothing failed, and everything that was put in was found.
    pub(super) fn passed(&self) -> bool {
        self.targets.iter().all(|row| row.findings.is_empty())
            && self.seeded.iter().all(|bug| bug.found_by.is_some())
    }

    pub(super) fn write(&self, file: &Path) -> Result<()> {
        let value = serde_json::json!({
            "schema": SCHEMA,
            "targets": self.targets,
            "seeded": self.seeded,
        });
        json::write(&value, file)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.targets.is_empty() {
            writeln!(
                f,
                "{:<12} {:>12} {:>8} {:>8} {:>8} findings",
                "target", "inputs", "seconds", "covered", "corpus"
            )?;
        }
        for row in &self.targets {
            writeln!(
                f,
                "{:<12} {:>12} {:>8.0} {:>8} {:>8} {}",
                row.target,
                row.inputs,
                row.seconds,
                row.coverage,
                row.corpus,
                row.findings.len()
            )?;
            for finding in &row.findings {
                let message = finding.message.as_deref().unwrap_or("");
                writeln!(f, "  {message}")?;
                writeln!(
                    f,
                    "  again: cargo xtask fuzz {} --input {}",
                    row.target, finding.input
                )?;
            }
        }
        for bug in &self.seeded {
            let found = match &bug.found_by {
                Some(target) => format!(
                    "found by {target} after {} inputs, {:.1} s",
                    bug.inputs, bug.seconds
                ),
                None => format!("NOT FOUND in {} inputs, {:.0} s", bug.inputs, bug.seconds),
            };
            writeln!(f, "{:<20} {found}\n{:<20} {}", bug.bug, "", bug.what)?;
        }
        Ok(())
    }
}
