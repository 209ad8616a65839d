//! Results as `isolane/interop/1`, and the final table: passed cells for each value of each axis, a column for each
//! peer and role.

use std::fmt::{self, Write as _};
use std::path::Path;

use isolane_support::{Result, json};
use serde::Serialize;

use super::combination::{AXES, Axis, Cell, Role};
use super::side::Peer;

/// JSON of `--json`.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) schema: &'static str,
    pub(super) cells: Vec<CellReport>,
    /// Cells of the policies' axes.
    pub(super) policies: Vec<PolicyReport>,
    /// Runs outside the axes.
    pub(super) extra_runs: Vec<ExtraReport>,
}

/// Result of a run outside the axes.
#[derive(Serialize)]
pub(super) struct ExtraReport {
    pub(super) name: String,
    /// Name and version.
    pub(super) peer: String,
    pub(super) datapath: &'static str,
    pub(super) result: Verdict,
    /// Description of what arrived, or of the failure.
    pub(super) detail: String,
    /// Counts of samples; `null` when it did not run.
    pub(super) counts: serde_json::Value,
}

/// Result of one cell.
#[derive(Serialize)]
pub(super) struct CellReport {
    #[serde(skip)]
    pub(super) cell: Cell,
    /// Name and version: "cyclonedds 0.10.2".
    pub(super) peer: String,
    pub(super) peer_role: &'static str,
    pub(super) case: String,
    pub(super) datapath: &'static str,
    pub(super) result: Verdict,
    /// Description of what arrived, or of the failure.
    pub(super) detail: String,
    /// Duration of the cell in seconds; `null` when it did not run.
    pub(super) seconds: Option<f64>,
    /// Last lines of its programs' output.
    #[serde(skip)]
    pub(super) account: String,
}

/// Result of one cell of the policies' axes.
#[derive(Serialize)]
pub(super) struct PolicyReport {
    pub(super) name: String,
    /// Name and version.
    pub(super) peer: String,
    pub(super) peer_role: &'static str,
    /// Policy name of DDS 1.4.
    pub(super) policy: &'static str,
    pub(super) case: String,
    pub(super) result: Verdict,
    /// Description of the failure, or of the missing feature and its vendor.
    pub(super) detail: String,
    pub(super) seconds: f64,
}

/// Prints the result as one line.
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

/// Prints the result as one line.
impl fmt::Display for ExtraReport {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Pass,
    Fail,
    /// The peer lacks the feature, or is known to deviate.
    Skip,
}

impl Verdict {
    /// First word of the printed line.
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
        extra_runs: Vec<ExtraReport>,
    ) -> Self {
        Self {
            schema: "isolane/interop/1",
            cells,
            policies,
            extra_runs,
        }
    }

    pub(super) fn count(&self, verdict: Verdict) -> usize {
        let cells = self.cells.iter().map(|cell| cell.result);
        let extra_runs = self.extra_runs.iter().map(|run| run.result);
        let policies = self.policies.iter().map(|cell| cell.result);
        let all = cells.chain(policies).chain(extra_runs);
        all.filter(|result| *result == verdict).count()
    }

    /// Writes the JSON to `file`; `-` is standard output.
    pub(super) fn write(&self, file: &Path) -> Result<()> {
        json::write(self, file)
    }
}

/// The first axes, peer and role, are the columns.
const COLUMN_AXES: usize = 2;
const LABEL_WIDTH: usize = 18;
const WIDTH: usize = 12;

pub(super) fn table(reports: &[CellReport]) -> String {
    let columns = Peer::ALL
        .iter()
        .flat_map(|&peer| Role::ALL.iter().map(move |&role| (peer, role)))
        .collect::<Vec<_>>();
    let mut text = String::new();
    let _ = write!(text, "{:LABEL_WIDTH$}", "");
    for (peer, _) in &columns {
        let _ = write!(text, "{:>WIDTH$}", peer.word());
    }
    let _ = write!(text, "\n{:LABEL_WIDTH$}", "");
    for (_, role) in &columns {
        let _ = write!(text, "{:>WIDTH$}", role.word());
    }
    text.push('\n');
    for (axis, label) in rows(reports) {
        let _ = write!(text, "{label:LABEL_WIDTH$}");
        for &(peer, role) in &columns {
            let cells = reports.iter().filter(|report| {
                let cell = report.cell;
                let is_in_row = axis.is_none_or(|axis| cell.words()[axis] == label);
                cell.peer == peer && cell.peer_role == role && is_in_row
            });
            let _ = write!(text, "{:>WIDTH$}", share(cells));
        }
        text.push('\n');
    }
    text
}

/// Rows: an axis and one of its values that ran; the first row counts all cells.
fn rows(reports: &[CellReport]) -> Vec<(Option<usize>, &'static str)> {
    let mut rows = vec![(None, "all")];
    for axis in COLUMN_AXES..AXES.len() {
        for report in reports {
            let row = (Some(axis), report.cell.words()[axis]);
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
    }
    rows
}

/// "passed/run", or a dash where none ran.
fn share<'a>(cells: impl Iterator<Item = &'a CellReport>) -> String {
    let (mut passed, mut all) = (0, 0);
    for cell in cells {
        all += 1;
        passed += usize::from(cell.result == Verdict::Pass);
    }
    match all {
        0 => "-".into(),
        _ => format!("{passed}/{all}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::combination::{AXES, Axis, Cell};
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

    fn report(cell: Cell, result: Verdict) -> CellReport {
        CellReport {
            cell,
            peer: cell.peer.word().into(),
            peer_role: cell.peer_role.word(),
            case: cell.case(),
            datapath: cell.datapath.word(),
            result,
            detail: String::new(),
            seconds: None,
            account: String::new(),
        }
    }

    #[test]
    fn each_value_of_each_axis_has_its_count_in_each_column() {
        let cell = Cell::choose([0; AXES.len()]);
        let mut other = [0; AXES.len()];
        other[3] = 1;
        let other = Cell::choose(other);
        let table = table(&[report(cell, Verdict::Pass), report(other, Verdict::Fail)]);
        let row = |label: &str| {
            let line = table.lines().find(|line| line.starts_with(label));
            line.map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>())
        };
        assert_eq!(row("all"), Some(vec!["1/2", "-", "-", "-"]));
        assert_eq!(row("udp"), Some(vec!["1/2", "-", "-", "-"]));
        assert_eq!(row("best-effort"), Some(vec!["1/1", "-", "-", "-"]));
        assert_eq!(row("reliable"), Some(vec!["0/1", "-", "-", "-"]));
        assert_eq!(row("volatile"), Some(vec!["1/2", "-", "-", "-"]));
        assert_eq!(row("transient-local"), None);
    }
}
