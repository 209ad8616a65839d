//! Tests of the page.

use super::*;
use crate::experiment::Load;
use crate::report::tests::{ORDERS, report};

#[test]
fn a_block_has_a_figure_for_each_pair_and_each_run_a_row() {
    let report = report(ORDERS, |cell| match cell.disturbance {
        Load::None => 300,
        _ => 9_000,
    });
    let html = page(&report);
    assert_eq!(
        html.matches("<svg").count(),
        8,
        "four pictures each: {html}"
    );
    assert!(html.contains("fifo order") && html.contains("priority order"));
    let (_, table) = html.split_once("<pre").expect("a table");
    let (table, _) = table.split_once("</pre>").expect("its end");
    let is_row = |line: &&str| {
        ["undisturbed", "bulk"]
            .iter()
            .any(|word| line.starts_with(word))
    };
    assert_eq!(
        table.lines().filter(is_row).count(),
        report.runs.len(),
        "{table}"
    );
}

#[test]
fn one_way_delays_stand_there_or_why_they_do_not() {
    // These ends do not report their clocks.
    let mut report = report(ORDERS, |_| 300);
    let unknown = page(&report);
    assert!(unknown.contains("the boot id of an end is unknown"));
    assert!(!unknown.contains("One way ("));
    let known = &mut report.runs[0];
    known.one_way.refused = None;
    known.one_way.clock = Some("the <clock>".into());
    known.one_way.back_us.median = Some(123.25);
    let html = page(&report);
    assert!(
        html.contains("One way (") && html.contains(" 123 "),
        "{html}"
    );
    assert!(html.contains("the &lt;clock&gt;"), "escaped");
    assert!(
        html.contains("they add up with any clocks"),
        "no proof of it"
    );
}

#[test]
fn the_page_loads_nothing_and_runs_nothing() {
    let html = page(&report(ORDERS, |_| 300));
    for outside in ["<script", "<link", "<img", "@import", "url(", "src="] {
        assert!(!html.contains(outside), "{outside}");
    }
    let addresses = html.matches("http").count();
    assert_eq!(
        addresses,
        html.matches("http://www.w3.org/2000/svg").count()
    );
}

#[test]
fn what_is_no_result_is_said_with_its_reason() {
    let mut report = report(ORDERS, |_| 300);
    report.runs[2].invalid = Some("3 frames before the <cable>".into());
    report.is_complete = false;
    let html = page(&report);
    assert!(html.contains("No results") && html.contains("bulk, fifo order: "));
    assert!(
        html.contains("3 frames before the &lt;cable&gt;"),
        "escaped"
    );
    assert!(html.contains("This result is incomplete"));
}

#[test]
fn a_report_without_runs_is_a_page_without_pictures() {
    let mut report = report(ORDERS, |_| 300);
    report.runs.clear();
    let html = page(&report);
    assert!(!html.contains("<svg") && html.contains("Where and how"));
}
