//! The demo from end to end: a short run of `isolane demo`, whose JSON must be complete and sound.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::steps::Outcome;
use crate::workspace::Metadata;
use crate::{Result, command};

/// The keys of a run that every reader of `isolane/rtt/1` relies on.
const RUN_KEYS: &[&str] = &[
    "datapath",
    "order",
    "disturbance",
    "payload_bytes",
    "rate_hz",
    "samples",
    "lost",
    "rtt_us",
];

/// Runs one second of every part of the demo and checks what it wrote.
pub(crate) fn check(metadata: &Metadata) -> Result<Outcome> {
    let file = metadata.target_directory.join("demo.json");
    // A file left by an earlier run must not stand in for this one's.
    if file.exists() {
        fs::remove_file(&file)?;
    }
    command::run(
        Command::new(metadata.isolane())
            .args(["demo", "--seconds", "1", "--json"])
            .arg(&file),
    )?;
    let report = serde_json::from_slice(&fs::read(&file)?)?;
    Ok(match fault(&report) {
        None => Outcome::Passed,
        Some(fault) => Outcome::Failed(format!("{}: {fault}", file.display())),
    })
}

/// What is wrong with a report, if anything.
fn fault(report: &Value) -> Option<String> {
    if report["schema"] != "isolane/rtt/1" {
        return Some(format!("schema is {}", report["schema"]));
    }
    // The cable treats all frames alike only while it keeps up with what arrives.
    if report["cable"]["ingress_drops"] != 0 {
        return Some(format!(
            "cable.ingress_drops is {}",
            report["cable"]["ingress_drops"]
        ));
    }
    let runs = report["runs"].as_array().map_or(&[][..], Vec::as_slice);
    if runs.is_empty() {
        return Some("runs is empty".into());
    }
    runs.iter()
        .enumerate()
        .find_map(|(at, run)| run_fault(run).map(|fault| format!("runs[{at}]: {fault}")))
}

fn run_fault(run: &Value) -> Option<String> {
    if let Some(key) = RUN_KEYS.iter().find(|key| run.get(**key).is_none()) {
        return Some(format!("{key} is missing"));
    }
    let (samples, lost) = (run["samples"].as_u64().unwrap_or(0), run["lost"].as_u64());
    if samples == 0 || lost.is_none_or(|lost| lost > samples) {
        return Some(format!(
            "samples is {}, lost is {}",
            run["samples"], run["lost"]
        ));
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
mod tests {
    use super::*;
    use serde_json::json;

    fn report() -> Value {
        json!({
            "schema": "isolane/rtt/1",
            "cable": { "ingress_drops": 0 },
            "runs": [{
                "datapath": "udp", "order": "priority", "disturbance": null, "payload_bytes": 64,
                "rate_hz": 2000, "samples": 2000, "lost": 0, "rtt_us": { "median": 80.5 },
            }],
        })
    }

    #[test]
    fn a_complete_report_has_no_fault() {
        assert_eq!(fault(&report()), None);
    }

    #[test]
    fn a_report_is_faulty_without_runs_or_when_the_cable_dropped() {
        let mut without_runs = report();
        without_runs["runs"] = json!([]);
        assert!(fault(&without_runs).is_some());
        let mut dropped = report();
        dropped["cable"]["ingress_drops"] = json!(3);
        assert!(fault(&dropped).is_some());
    }

    #[test]
    fn an_undisturbed_run_has_a_round_trip_and_every_run_its_keys() {
        let mut silent = report();
        silent["runs"][0]["rtt_us"]["median"] = json!(null);
        assert!(fault(&silent).is_some());
        silent["runs"][0]["disturbance"] = json!("flood");
        assert_eq!(fault(&silent), None);
        let mut incomplete = report();
        incomplete["runs"][0]
            .as_object_mut()
            .unwrap()
            .remove("rate_hz");
        assert!(fault(&incomplete).is_some());
    }
}
