//! The table at the end: how many cells of each value of each axis passed, a column for each peer and
//! role.

use std::fmt::Write as _;

use super::cell::{AXES, Axis, Role};
use super::peer::Peer;
use super::report::{CellReport, Verdict};

/// The first axes, peer and role, are the columns.
const COLUMN_AXES: usize = 2;
const LABEL_WIDTH: usize = 18;
const WIDTH: usize = 12;

/// The table of these results.
pub(super) fn table(reports: &[CellReport]) -> String {
    let columns = Peer::ALL
        .iter()
        .flat_map(|&peer| Role::ALL.iter().map(move |&role| (peer, role)))
        .collect::<Vec<_>>();
    let mut text = String::new();
    // Writing to a String cannot fail.
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

/// The rows: an axis and one of its values that ran; first of all, all cells.
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

/// Passed of run; a dash where none ran.
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
    use super::super::cell::Cell;
    use super::*;

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
