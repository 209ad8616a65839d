//! The demo from end to end: a short run of `isolane demo`, whose JSON must be complete and sound.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use isolane_support::steps::Outcome;
use isolane_support::workspace::Metadata;
use isolane_support::{Result, command};

/// The keys of a run that every reader of `isolane/rtt/1` relies on, and the ledgers.
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

/// What disturbs from inside the participants, each in both orders of jobs.
const INSIDE: [&str; 3] = ["joining", "bulk", "repair"];
/// The orders of jobs.
const ORDERS: [&str; 2] = ["fifo", "priority"];
/// Three payloads, from a thread and from a job, undisturbed and with the flood; the flood by a thread
/// once more through the other arbiter; receive work, one remedy at a time; undisturbed and disturbed
/// from inside, in both orders.
const RUNS: usize = 12 + 3 + 11 + 2 + INSIDE.len() * ORDERS.len();
/// Of these, runs that are left out where AF_XDP is not possible.
const LANE_RUNS: usize = 7;

/// How often the demo is run. A run in which the machine stood still long enough for the kernel to
/// drop frames before the cable is invalid, and says so: that is no fault of the code, unless it
/// happens every time.
const TRIES: u32 = 3;

/// Runs one second of every part of the demo and checks what it wrote.
pub fn check(metadata: &Metadata) -> Result<Outcome> {
    let file = metadata.target_directory.join("demo.json");
    let page = metadata.target_directory.join("demo.html");
    for attempt in 1.. {
        // A file left by an earlier run must not stand in for this one's.
        if file.exists() {
            fs::remove_file(&file)?;
        }
        let ran = command::run(
            Command::new(metadata.isolane())
                .args(["demo", "--seconds", "1"])
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

/// Why a report does not do.
#[derive(Debug, PartialEq)]
enum Fault {
    /// The machine was too slow for a moment.
    Stalled(String),
    /// What was written is not what it should be.
    Wrong(String),
}

/// What is wrong with a report, if anything.
fn fault(report: &Value) -> Option<Fault> {
    if report["schema"] != "isolane/rtt/1" {
        return Some(Fault::Wrong(format!("schema is {}", report["schema"])));
    }
    let runs = report["runs"].as_array().map_or(&[][..], Vec::as_slice);
    let has_lanes = report["left_out"].as_array().is_none_or(Vec::is_empty);
    if !has_lanes && std::env::var_os("CI").is_some() {
        let left_out = &report["left_out"];
        return Some(Fault::Wrong(format!(
            "left out where CI is set: {left_out}"
        )));
    }
    let expected = RUNS - if has_lanes { 0 } else { LANE_RUNS };
    if runs.len() != expected {
        return Some(Fault::Wrong(format!(
            "{} runs instead of {expected}",
            runs.len()
        )));
    }
    let wrong = runs
        .iter()
        .enumerate()
        .find_map(|(at, run)| run_fault(run).map(|fault| format!("runs[{at}]: {fault}")));
    if let Some(wrong) = wrong {
        return Some(Fault::Wrong(wrong));
    }
    if let Some(wrong) = comparison_fault(runs) {
        return Some(Fault::Wrong(wrong));
    }
    // On a machine that stood still, a disturbance may have done too little to be one.
    let weak = runs.iter().find(|run| run["disturbed"]["enough"] == false);
    if let Some(weak) = weak {
        return Some(Fault::Stalled(format!("a run says {}", weak["invalid"])));
    }
    // The cable treats all frames alike only while it keeps up with what arrives.
    let drops = &report["cable"]["ingress_drops"];
    if *drops != 0 {
        return Some(Fault::Stalled(format!("cable.ingress_drops is {drops}")));
    }
    let invalid = runs.iter().find(|run| !run["invalid"].is_null());
    invalid.map(|run| Fault::Wrong(format!("a run is invalid: {}", run["invalid"])))
}

/// What the rows are there to show: without priorities less urgent work comes before the critical
/// sample, with them it never does.
fn comparison_fault(runs: &[Value]) -> Option<String> {
    let count = |run: &Value, name: &str| run["inversions"][name].as_u64();
    for disturbance in INSIDE {
        for order in ORDERS {
            let is_row = |run: &&Value| run["disturbance"] == disturbance && run["order"] == order;
            let Some(run) = runs.iter().find(is_row) else {
                return Some(format!("no run with {disturbance} in {order} order"));
            };
            // One that hardly disturbed cannot be expected to: it is no result.
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

/// Every bulk sample that was written reliably was delivered and acknowledged, where there is to be bulk.
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

/// Both topics have a ledger: what is not there balances always.
fn topics_fault(flows: &[Value]) -> Option<String> {
    let topics = flows.iter().map(|flow| &flow["topic"]);
    let is_complete = topics.eq(["RTTPing", "RTTPong"]);
    (!is_complete).then(|| format!("the flows are not those of RTTPing and RTTPong: {flows:?}"))
}

/// Each topic's samples, hop by hop, from the report alone: what a hop took over is what it handed
/// on and what it dropped by name.
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
    // A disturbance may take every sample of a baseline; without one there is a round trip.
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
mod tests;
