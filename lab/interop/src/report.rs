//! The results as `isolane/interop/1`.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::cell::Cell;
use isolane_support::{Result, json};

/// What `--json` writes.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) schema: &'static str,
    pub(super) cells: Vec<CellReport>,
    /// Cells of the policies' axes.
    pub(super) policies: Vec<PolicyReport>,
    /// What is no choice of axes.
    pub(super) besides: Vec<BesideReport>,
}

/// The result of what runs besides the cells.
#[derive(Serialize)]
pub(super) struct BesideReport {
    pub(super) name: String,
    /// Name and version.
    pub(super) peer: String,
    pub(super) datapath: &'static str,
    pub(super) result: Verdict,
    /// What arrived, or what went wrong.
    pub(super) detail: String,
    /// What was counted; `null` when it did not run.
    pub(super) counts: serde_json::Value,
}

/// One cell's result.
#[derive(Serialize)]
pub(super) struct CellReport {
    /// What was tried, for the table.
    #[serde(skip)]
    pub(super) cell: Cell,
    /// Name and version: "cyclonedds 0.10.2".
    pub(super) peer: String,
    pub(super) peer_role: &'static str,
    pub(super) case: String,
    pub(super) datapath: &'static str,
    pub(super) result: Verdict,
    /// What arrived, or what went wrong.
    pub(super) detail: String,
    /// How long the cell ran, in seconds; `null` when it did not.
    pub(super) seconds: Option<f64>,
    /// What its programs said, for people.
    #[serde(skip)]
    pub(super) account: String,
}

/// One cell of the policies' axes.
#[derive(Serialize)]
pub(super) struct PolicyReport {
    pub(super) name: String,
    /// Name and version.
    pub(super) peer: String,
    pub(super) peer_role: &'static str,
    /// As DDS 1.4 calls it.
    pub(super) policy: &'static str,
    pub(super) case: String,
    pub(super) result: Verdict,
    /// What went wrong, or who lacks what.
    pub(super) detail: String,
    pub(super) seconds: f64,
}

/// A line for people.
impl fmt::Display for PolicyReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            result,
            detail,
            seconds,
            ..
        } = self;
        let detail = detail.trim_end();
        write!(
            formatter,
            "{} {seconds:4.1} s {name}: {detail}",
            result.word()
        )
    }
}

/// A line for people.
impl fmt::Display for BesideReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{} {}: {}",
            self.result.word(),
            self.name,
            self.detail.trim_end()
        )
    }
}

/// What came of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Pass,
    Fail,
    /// The peer lacks what was asked for, or is known to do it otherwise.
    Skip,
}

impl Verdict {
    /// As lines for people begin.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::Skip => "skip",
        }
    }
}

impl Report {
    pub(super) fn new(
        cells: Vec<CellReport>,
        policies: Vec<PolicyReport>,
        besides: Vec<BesideReport>,
    ) -> Self {
        Self {
            schema: "isolane/interop/1",
            cells,
            policies,
            besides,
        }
    }

    pub(super) fn count(&self, verdict: Verdict) -> usize {
        let cells = self.cells.iter().map(|cell| cell.result);
        let besides = self.besides.iter().map(|beside| beside.result);
        let policies = self.policies.iter().map(|cell| cell.result);
        let all = cells.chain(policies).chain(besides);
        all.filter(|result| *result == verdict).count()
    }

    /// Writes it to a file, or to standard output for `-`.
    pub(super) fn write(&self, file: &Path) -> Result<()> {
        json::write(self, file)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::{AXES, Axis};
    use super::*;

    #[test]
    fn a_cell_has_the_keys_that_programs_rely_on() {
        let cell = Cell::choose([0; AXES.len()]);
        let report = Report::new(
            vec![CellReport {
                cell,
                peer: "cyclonedds 0.10.2".into(),
                peer_role: cell.peer_role.word(),
                case: cell.case(),
                datapath: cell.datapath.word(),
                result: Verdict::Fail,
                detail: "3 of 4 samples".into(),
                seconds: None,
                account: String::new(),
            }],
            vec![PolicyReport {
                name: "fastdds-publisher-xcdr2-64B-loss-0".into(),
                peer: "fastdds 2.9.1".into(),
                peer_role: "publisher",
                policy: "DATA_REPRESENTATION",
                case: "xcdr2-64B-loss-0".into(),
                result: Verdict::Skip,
                detail: "fastdds does not have it".into(),
                seconds: 0.5,
            }],
            Vec::new(),
        );
        let value = serde_json::to_value(&report).unwrap();
        assert_eq!(value["schema"], "isolane/interop/1");
        let cell = &value["cells"][0];
        for key in ["peer", "peer_role", "case", "datapath", "result", "detail"] {
            assert!(cell[key].is_string(), "{key}");
        }
        assert_eq!(cell["result"], "fail");
        assert!(cell["seconds"].is_null());
        let policy = &value["policies"][0];
        for key in ["peer", "peer_role", "policy", "case", "detail"] {
            assert!(policy[key].is_string(), "{key}");
        }
        assert_eq!(policy["result"], "skip");
        assert_eq!(report.count(Verdict::Skip), 1);
    }
}
