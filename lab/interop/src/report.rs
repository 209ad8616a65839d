//! Verdicts and results of runs, and their JSON, `isolane/interop/1`.

use std::fmt;

use isolane_support::steps::Outcome;
use serde::Serialize;
use strum::Display;

/// JSON of `--json`.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) schema: &'static str,
    pub(super) cells: Vec<RunReport>,
    /// Cells of the policies' axes.
    pub(super) policies: Vec<RunReport>,
    /// Runs outside the axes.
    pub(super) extra_runs: Vec<RunReport>,
}

/// Result of one run.
#[derive(Serialize)]
pub(super) struct RunReport {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) labels: Option<Labels>,
    pub(super) result: Verdict,
    /// Description of what arrived, of the failure, or of the missing feature and its vendor.
    pub(super) detail: String,
    pub(super) seconds: f64,
    /// Command lines and last lines of output of its programs.
    #[serde(skip)]
    pub(super) account: String,
}

/// Properties of a run by which programs choose results; `null` where the run has none.
#[derive(Default, Serialize)]
pub(super) struct Labels {
    /// Name and version: "cyclonedds 0.10.2".
    pub(super) peer: String,
    pub(super) peer_role: Option<&'static str>,
    /// isolane's datapath.
    pub(super) datapath: Option<&'static str>,
    /// Policy name of DDS 1.4.
    pub(super) policy: Option<&'static str>,
    pub(super) case: Option<String>,
}

#[derive(Clone, Copy, Debug, Display, PartialEq, Eq, Serialize)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Pass,
    #[strum(serialize = "FAIL")]
    Fail,
    /// The peer lacks the feature, or is known to deviate.
    Skip,
}

/// Verdict on a run, with the programs' output.
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    /// Description of what arrived, of the failure, or of the reason to skip the run.
    pub(super) detail: String,
    /// Command lines and last lines of output of the programs.
    pub(super) account: String,
}

impl Judged {
    /// Passed run with a description of what arrived, or failed run with the reason.
    pub(super) fn new(judged: Result<String, String>, account: String) -> Self {
        let (verdict, detail) = match judged {
            Ok(detail) => (Verdict::Pass, detail),
            Err(detail) => (Verdict::Fail, detail),
        };
        Self {
            verdict,
            detail,
            account,
        }
    }
}

/// Prints the result as one line.
impl fmt::Display for RunReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            result,
            detail,
            seconds,
            ..
        } = self;
        let detail = detail.trim_end();
        write!(formatter, "{result} {seconds:4.1} s {name}: {detail}")
    }
}

impl Report {
    pub(super) fn all(&self) -> impl Iterator<Item = &RunReport> {
        let reports = self.cells.iter().chain(&self.policies);
        reports.chain(&self.extra_runs)
    }
}

/// Number of passed, skipped and failed runs.
pub(super) struct Counts {
    pub(super) passed: usize,
    pub(super) skipped: usize,
    pub(super) failed: usize,
}

impl Counts {
    pub(super) fn of<'a>(reports: impl IntoIterator<Item = &'a RunReport>) -> Self {
        let results = reports.into_iter().map(|report| report.result);
        let results = results.collect::<Vec<_>>();
        let count = |verdict| results.iter().filter(|result| **result == verdict).count();
        Self {
            passed: count(Verdict::Pass),
            skipped: count(Verdict::Skip),
            failed: count(Verdict::Fail),
        }
    }

    /// Outcome of a step whose runs count as tests.
    pub(super) fn outcome(&self) -> Outcome {
        Outcome::Counted {
            passed: self.passed,
            failed: self.failed,
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} passed, ", self.passed)?;
        if self.skipped > 0 {
            let skipped = self.skipped;
            write!(formatter, "{skipped} left out for what a peer lacks, ")?;
        }
        write!(formatter, "{} failed", self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::combination::{AXES, Cell};
    use super::*;

    fn report(labels: Labels, result: Verdict) -> RunReport {
        RunReport {
            name: "fastdds-publisher-xcdr2-64B-loss-0".into(),
            labels: Some(labels),
            result,
            detail: "3 of 4 samples".into(),
            seconds: 0.5,
            account: String::new(),
        }
    }

    #[test]
    fn a_cell_has_the_keys_that_programs_rely_on() {
        let cell = Cell::choose([0; AXES.len()]);
        let policy = Labels {
            peer: "fastdds 2.9.1".into(),
            peer_role: Some("publisher"),
            policy: Some("DATA_REPRESENTATION"),
            case: Some("xcdr2-64B-loss-0".into()),
            datapath: None,
        };
        let report = Report {
            schema: "isolane/interop/1",
            cells: vec![report(
                cell.labels("cyclonedds 0.10.2".into()),
                Verdict::Fail,
            )],
            policies: vec![report(policy, Verdict::Skip)],
            extra_runs: Vec::new(),
        };
        let value = serde_json::to_value(&report).unwrap();
        assert_eq!(value["schema"], "isolane/interop/1");
        let cell = &value["cells"][0];
        for key in ["peer", "peer_role", "case", "datapath", "result", "detail"] {
            assert!(cell[key].is_string(), "{key}");
        }
        assert_eq!(cell["result"], "fail");
        assert!(cell["seconds"].is_number());
        let policy = &value["policies"][0];
        for key in ["name", "peer", "peer_role", "policy", "case", "detail"] {
            assert!(policy[key].is_string(), "{key}");
        }
        assert_eq!(policy["result"], "skip");
        let counts = Counts::of(report.all()).to_string();
        assert_eq!(
            counts,
            "0 passed, 1 left out for what a peer lacks, 1 failed"
        );
    }
}
