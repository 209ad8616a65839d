//! `boot`: a guest boots with the kernel and devices that the other scenarios need, and isolane's doctor runs there.

use std::fs;
use std::path::Path;
use std::time::Duration;

use isolane_datapath_xdp::classifier::{Classifier, ClassifierConfig};
use isolane_support::Result;
use serde_json::{Value, json};

use super::{Scenario, report_faults};
use crate::Bench;
use crate::guest::{Guest, Network, Time};
use crate::inside::{appeared, tools};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "boot",
    shows: "a guest has an RT kernel and two igb devices, and `isolane doctor` runs there",
    run,
    inside,
};

/// Driver of the devices.
const DRIVER: &str = "igb";

fn run(bench: &Bench) -> Result<bool> {
    let guest = Guest {
        name: "boot".into(),
        task: vec![SCENARIO.name.into()],
        time: Time::Counted {
            seed: bench.first_seed,
        },
        network: Network::Hub { devices: 2 },
        processors: 1,
        patience: Duration::from_secs(120),
    };
    let state = guest.run(&bench.machine)?;
    eprintln!("kernel    {}", state["kernel"].as_str().unwrap_or("-"));
    for device in state["devices"].as_array().into_iter().flatten() {
        eprintln!("device    {}", device.as_str().unwrap_or("-"));
    }
    eprintln!("up after  {} s", state["up_s"]);
    eprintln!(
        "lanes     {}",
        state["classifier"]
            .as_str()
            .unwrap_or("the classifier is taken")
    );
    let findings = state["doctor"]["findings"].as_array().map_or(0, Vec::len);
    eprintln!("doctor    {findings} findings");
    bench.report(&state)?;
    Ok(report_faults(faults(&state)))
}

/// Missing prerequisites of the other scenarios.
fn faults(state: &Value) -> Vec<&'static str> {
    let mut faults = Vec::new();
    if state["is_realtime"] != true {
        faults.push("the kernel has no PREEMPT_RT");
    }
    let devices = state["devices"].as_array().map_or(&[][..], Vec::as_slice);
    let is_igb = |device: &Value| device.as_str().is_some_and(|text| text.contains(DRIVER));
    if devices.len() != 2 || !devices.iter().all(is_igb) {
        faults.push("there are not two devices of the driver igb");
    }
    if state["doctor"]["schema"] != "isolane/doctor/1" {
        faults.push("isolane's doctor has no result");
    }
    if !state["classifier"].is_null() {
        faults.push("the kernel refuses the classifier of lanes");
    }
    faults
}

fn inside(_: &[String]) -> Result<Value> {
    let mut devices = Vec::new();
    for device in ["eth0", "eth1"] {
        appeared(&Path::new("/sys/class/net").join(device))?;
        let driver = tools::run("ethtool", &format!("--driver {device}"))?;
        let driver = driver.lines().next().unwrap_or_default().to_owned();
        let channels = tools::run("ethtool", &format!("--show-channels {device}"))?;
        let most = channels
            .lines()
            .find_map(|line| line.strip_prefix("Combined:"))
            .unwrap_or_default()
            .trim();
        devices.push(format!("{device}, {driver}, up to {most} channels"));
    }
    // The exit code says whether topics would flow; here the findings count.
    let mut doctor = tools::program("isolane");
    doctor.args(["doctor", "--json", "-"]);
    let doctor = doctor.output()?;
    let uptime = fs::read_to_string("/proc/uptime")?;
    Ok(json!({
        "kernel": fs::read_to_string("/proc/version")?.trim(),
        "is_realtime": fs::read_to_string("/sys/kernel/realtime").is_ok_and(|text| text.trim() == "1"),
        "devices": devices,
        // Reason for which the kernel rejects the classifier.
        "classifier": Classifier::load(&ClassifierConfig::default()).err().map(|error| error.to_string()),
        "up_s": uptime.split(' ').next(),
        "doctor": serde_json::from_slice::<Value>(&doctor.stdout)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_without_what_others_need_has_faults() {
        let state = json!({
            "is_realtime": true,
            "devices": ["eth0, driver: igb, up to 8 channels", "eth1, driver: igb, up to 8 channels"],
            "doctor": {"schema": "isolane/doctor/1"},
            "classifier": null,
        });
        assert!(faults(&state).is_empty());
        let with = |key: &str, value: Value| {
            let mut state = state.clone();
            state[key] = value;
            faults(&state).len()
        };
        assert_eq!(with("is_realtime", json!(false)), 1);
        assert_eq!(with("devices", json!(["eth0, driver: igb"])), 1);
        assert_eq!(
            with(
                "devices",
                json!(["eth0, driver: e1000e", "eth1, driver: igb"])
            ),
            1
        );
        assert_eq!(with("doctor", json!(null)), 1);
        assert_eq!(with("classifier", json!("Invalid argument")), 1);
    }
}
