//! End-to-end check of `isolane demo`: the JSON of a short run must be complete and valid.

use std::fs;
use std::path::Path;
use std::process::Command;

use isolane_support::steps::Outcome;
use isolane_support::workspace::Metadata;
use isolane_support::{Result, command};
use serde_json::Value;

/// Keys of a run in `isolane/rtt/1` on which its readers rely.
const RUN_KEYS: &[&str] = &[
    "/datapath",
    "/stages",
    "/receive_work",
    "/publisher",
    "/order",
    "/disturbance",
    "/interference",
    "/payload_bytes",
    "/rate_hz",
    "/samples",
    "/lost",
    "/late_sends",
    "/rtt_us",
    "/owd_us",
    "/one_way",
    "/host_us",
    "/cable_us",
    "/rtt_us/min",
    "/rtt_us/median",
    "/rtt_us/p99",
    "/rtt_us/p99_9",
    "/rtt_us/max",
    "/rtt_us/mean",
    "/rtt_us/variance",
    "/window_p99_median_us",
    "/sender_late_max_us",
    "/cable_late_max_us",
    "/bound_us",
    "/flows",
    "/cable",
    "/cores",
    "/inversions/ping",
    "/inversions/pong",
    "/inversions/total",
    "/inversions/all_levels",
    "/kernel_late/total",
    "/disturbed",
    "/storm",
    "/lanes",
    "/policing",
    "/distribution/rtt_us",
    "/invalid",
];

/// Disturbances from inside the participants. Each runs in both job orders.
const INSIDE: [&str; 3] = ["joining", "bulk", "repair"];
/// Job orders of the executor.
const ORDERS: [&str; 2] = ["fifo", "priority"];
/// Number of runs: payload sizes, undisturbed and with the flood; the flood with both arbiters; receive work with one
/// remedy at a time; each job order, undisturbed and with each disturbance from inside.
const RUNS: usize = 12 + 6 + 11 + 2 + INSIDE.len() * ORDERS.len();
/// Number of these runs that are skipped without AF_XDP.
const LANE_RUNS: usize = 7;

/// Number of attempts. An attempt is invalid if the machine stalls so long that the kernel drops frames before the
/// cable. The check fails only if every attempt is invalid.
const TRIES: u32 = 3;

/// Runs one second of every part of the demo and checks what it wrote.
pub fn check(metadata: &Metadata) -> Result<Outcome> {
    let file = metadata.target_directory.join("demo.json");
    let page = metadata.target_directory.join("demo.html");
    for attempt in 1.. {
        // Remove the report of an earlier run, so that it is not taken for the report of this run.
        if file.exists() {
            fs::remove_file(&file)?;
        }
        let ran = command::run(
            Command::new(metadata.isolane())
                .args(["demo", "--full", "--seconds", "1"])
                .args([Path::new("--json"), &file, Path::new("--page"), &page]),
        );
        if !file.exists() {
            return ran.and(Err("the demo wrote no report".into()));
        }
        let report = serde_json::from_slice(&fs::read(&file)?)?;
        match fault(&report) {
            Some(Fault::Stalled(why)) if attempt < TRIES => {
                eprintln!("attempt {attempt} of {TRIES} is no result: {why}");
            }
            Some(Fault::Stalled(why) | Fault::Wrong(why)) => {
                return Ok(Outcome::Failed(format!("{}: {why}", file.display())));
            }
            None => {
                ran?;
                return Ok(Outcome::Passed);
            }
        }
    }
    unreachable!("the last attempt returns")
}

/// Fault of a report.
#[derive(Debug, PartialEq)]
enum Fault {
    /// The machine stalled.
    Stalled(String),
    /// The report is wrong.
    Wrong(String),
}

/// Returns the fault of a report, if any.
fn fault(report: &Value) -> Option<Fault> {
    let runs = report["runs"].as_array().map_or(&[][..], Vec::as_slice);
    if let Some(wrong) = wrong(report, runs) {
        return Some(Fault::Wrong(wrong));
    }
    // On a stalled machine, a disturbance may have been too small.
    let weak = runs.iter().find(|run| run["disturbed"]["enough"] == false);
    if let Some(weak) = weak {
        return Some(Fault::Stalled(format!("a run says {}", weak["invalid"])));
    }
    // Frames that the kernel drops before the cable are dropped without regard to their priority.
    let drops = &report["cable"]["ingress_drops"];
    if *drops != 0 {
        return Some(Fault::Stalled(format!("cable.ingress_drops is {drops}")));
    }
    let why = runs.iter().find_map(|run| run["invalid"].as_str())?;
    Some(match why.starts_with("the flood reached") {
        true => Fault::Stalled(why.to_owned()),
        false => Fault::Wrong(format!("a run is invalid: {why}")),
    })
}

/// Returns the fault of a report that no stall of the machine explains, except a run that says it is invalid.
fn wrong(report: &Value, runs: &[Value]) -> Option<String> {
    if report["schema"] != "isolane/rtt/1" {
        return Some(format!("schema is {}", report["schema"]));
    }
    let left_out = &report["left_out"];
    let has_lanes = left_out.as_array().is_none_or(Vec::is_empty);
    if !has_lanes && std::env::var_os("CI").is_some() {
        return Some(format!("left out where CI is set: {left_out}"));
    }
    let expected = RUNS - if has_lanes { 0 } else { LANE_RUNS };
    if runs.len() != expected {
        return Some(format!("{} runs instead of {expected}", runs.len()));
    }
    let mut numbered = runs.iter().enumerate();
    numbered
        .find_map(|(at, run)| run_fault(run).map(|fault| format!("runs[{at}]: {fault}")))
        .or_else(|| comparison_fault(runs))
}

/// Checks the comparison of job orders: less urgent work precedes the critical sample in FIFO order, but never in the
/// order of priorities.
fn comparison_fault(runs: &[Value]) -> Option<String> {
    let count = |run: &Value, name: &str| run["inversions"][name].as_u64();
    for disturbance in INSIDE {
        for order in ORDERS {
            let is_row = |run: &&Value| run["disturbance"] == disturbance && run["order"] == order;
            let Some(run) = runs.iter().find(is_row) else {
                return Some(format!("no run with {disturbance} in {order} order"));
            };
            // A disturbance that is too small need not cause priority inversions.
            let disturbed = run["disturbed"]["enough"] != false;
            let suffered = count(run, "total").is_some_and(|count| count > 0);
            if order == "fifo" && disturbed && !suffered {
                return Some(format!(
                    "no priority inversion with {disturbance} in FIFO order"
                ));
            }
        }
    }
    let is_strict = |run: &&Value| run["cable"]["arbiter"] == "strict";
    if !runs.iter().any(|run| is_strict(&run)) {
        return Some("no run through a strict arbiter".to_owned());
    }
    let mut by_priority = runs.iter().filter(|run| run["order"] == "priority");
    let inverted = by_priority.find(|run| count(run, "all_levels") != Some(0));
    inverted.map(|run| {
        format!(
            "priority inversions in the order of priority, disturbance {}: {}",
            run["disturbance"], run["inversions"]
        )
    })
}

/// Checks that a run with bulk samples has delivered and acknowledged all of them.
fn bulk_fault(run: &Value) -> Option<String> {
    if run["disturbance"] != "bulk" && run["disturbance"] != "repair" {
        return None;
    }
    let disturbed = &run["disturbed"];
    let written = disturbed["bulk_written"].as_u64();
    let is_whole = written.is_some_and(|written| written > 0)
        && disturbed["bulk_delivered"].as_u64() == written
        && disturbed["bulk_acknowledged"] == true;
    (!is_whole).then(|| format!("bulk samples are missing: {disturbed}"))
}

/// Checks that both topics have counts, because the check of `flow_fault` cannot fail without counts.
fn topics_fault(flows: &[Value]) -> Option<String> {
    let topics = flows.iter().map(|flow| &flow["topic"]);
    let is_complete = topics.eq(["RTTPing", "RTTPong"]);
    (!is_complete).then(|| format!("the flows are not those of RTTPing and RTTPong: {flows:?}"))
}

/// Checks the samples of a topic hop by hop: the number that a hop took equals the number that it passed on, plus its
/// named drops.
fn flow_fault(flow: &Value) -> Option<String> {
    let count = |name: &str| flow.pointer(name).and_then(Value::as_u64);
    let hops = [
        ("/offered", ["/refused", "/written"].as_slice()),
        ("/written", &["/unsent", "/send_refused", "/sent"]),
        ("/sent", &["/cable/arrived"]),
        (
            "/cable/arrived",
            &["/cable/dropped", "/receive_dropped", "/received"],
        ),
        ("/received", &["/duplicates", "/rejected", "/delivered"]),
    ];
    hops.iter().find_map(|(whole, parts)| {
        let sum: Option<u64> = parts.iter().map(|part| count(part)).sum();
        let balances = sum.is_some() && sum == count(whole);
        (!balances).then(|| {
            format!(
                "{}: {whole} is not the sum of {parts:?}: {flow}",
                flow["topic"]
            )
        })
    })
}

fn run_fault(run: &Value) -> Option<String> {
    if let Some(key) = RUN_KEYS.iter().find(|key| run.pointer(key).is_none()) {
        return Some(format!("{key} is missing"));
    }
    let (samples, lost) = (run["samples"].as_u64().unwrap_or(0), run["lost"].as_u64());
    if samples == 0 || lost.is_none_or(|lost| lost > samples) {
        return Some(format!(
            "samples is {}, lost is {}",
            run["samples"], run["lost"]
        ));
    }
    let flows = run["flows"].as_array().map_or(&[][..], Vec::as_slice);
    if run["invalid"].is_null()
        && let Some(fault) = topics_fault(flows)
            .or_else(|| flows.iter().find_map(flow_fault))
            .or_else(|| bulk_fault(run))
    {
        return Some(fault);
    }
    // A disturbance may cause the loss of every sample; without a disturbance there must be round trips.
    let median = run["rtt_us"]["median"].as_f64().unwrap_or(0.0);
    if run["disturbance"].is_null() && median <= 0.0 {
        return Some(format!(
            "undisturbed, and rtt_us.median is {}",
            run["rtt_us"]["median"]
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::mem::discriminant;

    /// A valid report: the runs with disturbances from inside have their positions, and all other runs are equal.
    fn report() -> Value {
        let times = json!({
            "min": 40.0, "median": 80.5, "p99": 100.0, "p99_9": null, "max": 120.0, "mean": 81.0,
            "variance": 2.0,
        });
        let flow = |topic: &str| {
            json!({
                "topic": topic, "offered": 2000, "refused": 0, "written": 2000,
                "unsent": 0, "send_refused": 0, "sent": 2000,
                "cable": { "arrived": 2000, "dropped": 3 }, "receive_dropped": 0,
                "received": 1997, "duplicates": 0, "rejected": 0, "delivered": 1997,
            })
        };
        let run = json!({
            "datapath": "udp", "stages": ["executor"], "receive_work": "softirq", "publisher": "job", "order": "priority",
            "disturbance": null, "interference": false, "payload_bytes": 64, "rate_hz": 2000,
            "samples": 2000, "lost": 0, "late_sends": 0, "rtt_us": times, "owd_us": times, "one_way": null,
            "host_us": times, "cable_us": times, "window_p99_median_us": 99.0,
            "sender_late_max_us": 3.0, "cable_late_max_us": 3.0, "bound_us": null,
            "invalid": null, "cable": { "arbiter": "strict" }, "cores": null, "disturbed": null,
            "storm": null, "lanes": null, "policing": { "others": null, "bulk": null },
            "inversions": { "ping": 0, "pong": 0, "total": 0, "all_levels": 0 },
            "kernel_late": { "total": 2 }, "distribution": { "rtt_us": null },
            "flows": [flow("RTTPing"), flow("RTTPong")],
        });
        let mut runs = vec![run; RUNS];
        let inside = INSIDE
            .iter()
            .flat_map(|word| ORDERS.map(|order| (word, order)));
        for (run, (disturbance, order)) in runs.iter_mut().zip(inside) {
            run["disturbance"] = json!(disturbance);
            run["order"] = json!(order);
            run["disturbed"] = json!({
                "bulk_written": 9, "bulk_delivered": 9, "bulk_acknowledged": true, "enough": true,
            });
            if order == "fifo" {
                run["inversions"]["total"] = json!(5);
            }
        }
        json!({
            "schema": "isolane/rtt/1",
            "cable": { "ingress_drops": 0 },
            "runs": runs,
        })
    }

    /// Index of an undisturbed run.
    const QUIET: usize = RUNS - 1;

    fn of<'a>(report: &'a mut Value, disturbance: &str, order: &str) -> &'a mut Value {
        let runs = report["runs"].as_array_mut().unwrap();
        let is_row = |run: &&mut Value| run["disturbance"] == disturbance && run["order"] == order;
        runs.iter_mut().find(is_row).unwrap()
    }

    /// Change of a report, with its description.
    type Change = (&'static str, fn(&mut Value));

    /// Checks that the report has a fault of this kind after each change.
    #[track_caller]
    fn faulty<const N: usize>(kind: fn(String) -> Fault, changes: [Change; N]) {
        for (what, change) in changes {
            let mut report = report();
            change(&mut report);
            let fault = fault(&report).unwrap_or_else(|| panic!("{what}: no fault"));
            let (found, expected) = (discriminant(&fault), discriminant(&kind(String::new())));
            assert_eq!(found, expected, "{what}: {fault:?}");
        }
    }

    #[test]
    fn a_complete_report_has_no_fault() {
        assert_eq!(fault(&report()), None);
    }

    #[test]
    fn a_report_that_is_wrong_is_a_fault() {
        faulty(
            Fault::Wrong,
            [
                ("an inversion in the order of priority", |report| {
                    of(report, "bulk", "priority")["inversions"]["all_levels"] = json!(1);
                }),
                ("no inversion in FIFO order", |report| {
                    of(report, "repair", "fifo")["inversions"]["total"] = json!(0);
                }),
                ("an unknown number of inversions in FIFO order", |report| {
                    of(report, "bulk", "fifo")["inversions"]["total"] = json!(null);
                }),
                ("an unknown number of inversions by priority", |report| {
                    of(report, "bulk", "priority")["inversions"]["all_levels"] = json!(null);
                }),
                ("a bulk sample that never came", |report| {
                    of(report, "bulk", "fifo")["disturbed"]["bulk_delivered"] = json!(8);
                }),
                ("uncounted bulk samples", |report| {
                    let disturbed = &mut of(report, "repair", "priority")["disturbed"];
                    disturbed["bulk_written"] = json!(null);
                    disturbed["bulk_delivered"] = json!(null);
                }),
                ("no bulk sample", |report| {
                    let disturbed = &mut of(report, "repair", "priority")["disturbed"];
                    disturbed["bulk_written"] = json!(0);
                    disturbed["bulk_delivered"] = json!(0);
                }),
                ("a run without ledgers", |report| {
                    report["runs"][QUIET]["flows"] = json!([]);
                }),
                ("a run with the ledger of one topic", |report| {
                    let flows = &mut report["runs"][QUIET]["flows"];
                    flows.as_array_mut().unwrap().pop();
                }),
                ("a row that is not there", |report| {
                    of(report, "repair", "priority")["disturbance"] = json!("flood");
                }),
                ("no runs", |report| report["runs"] = json!([])),
                ("a sample that no hop accounts for", |report| {
                    report["runs"][0]["flows"][0]["delivered"] = json!(1996);
                }),
                ("an undisturbed run without a round trip", |report| {
                    report["runs"][QUIET]["rtt_us"]["median"] = json!(null);
                }),
                ("a run without one of its keys", |report| {
                    let run = report["runs"][0].as_object_mut().unwrap();
                    run.remove("rate_hz");
                }),
            ],
        );
    }

    #[test]
    fn what_a_stalled_machine_explains_is_tried_again() {
        faulty(
            Fault::Stalled,
            [
                ("a disturbance that did too little", |report| {
                    let row = of(report, "joining", "fifo");
                    row["disturbed"]["enough"] = json!(false);
                    row["inversions"]["total"] = json!(0);
                }),
                ("frames dropped before the cable", |report| {
                    report["cable"]["ingress_drops"] = json!(3);
                }),
            ],
        );
    }

    #[test]
    fn a_disturbed_run_may_lose_every_round_trip() {
        let mut silent = report();
        silent["runs"][QUIET]["rtt_us"]["median"] = json!(null);
        silent["runs"][QUIET]["disturbance"] = json!("flood");
        assert_eq!(fault(&silent), None);
    }
}
