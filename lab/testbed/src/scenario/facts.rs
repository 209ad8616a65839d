//! `facts`: host facts of a guest, recorded as an input for tests of plans.

use std::path::Path;
use std::time::Duration;

use isolane_support::Result;
use serde_json::{Value, json};

use super::{Scenario, report_faults};
use crate::Bench;
use crate::guest::{Guest, Network, Time};
use crate::inside::{appeared, tools, wait_until};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "facts",
    shows: "records the facts of a guest with two processors and an igb device with two queues",
    run,
    inside,
};

/// Origin in the recording, which appears in the head of every plan made from it.
const ORIGIN: &str = "recorded: an emulated machine of the testbed (cargo xtask testbed facts), an Intel 82576 as QEMU models \
                      it, and PREEMPT_RT";
const INTERFACE: &str = "eth0";
/// Number of the device's interrupts: one for each direction of each of two queues, and its own.
const INTERRUPTS: usize = 5;
/// Timeout until the link is up.
const PATIENCE: Duration = Duration::from_secs(20);

fn run(bench: &Bench) -> Result<bool> {
    let guest = Guest {
        name: SCENARIO.name.into(),
        task: vec![SCENARIO.name.into()],
        time: Time::Real {
            seed: bench.first_seed,
        },
        // The other device is at the far end of the link.
        network: Network::Hub { devices: 2 },
        processors: 2,
        patience: Duration::from_secs(240),
    };
    let facts = recorded(guest.run(&bench.machine)?);
    bench.report(&facts)?;
    Ok(report_faults(faults(&facts)))
}

/// The facts with their origin.
fn recorded(mut facts: Value) -> Value {
    facts["origin"] = json!(ORIGIN);
    facts["hostname"] = json!("left");
    // The boot id is valid for this boot only, while the plans are for any boot.
    facts["boot_id"] = Value::Null;
    facts
}

/// Facts that a recording lacks for tests of plans.
fn faults(facts: &Value) -> Vec<&'static str> {
    let mut faults = Vec::new();
    let devices = facts["devices"].as_array().map_or(&[][..], Vec::as_slice);
    let device = devices.iter().find(|it| it["interface"] == INTERFACE);
    let Some(device) = device.filter(|device| device["driver"] == "igb") else {
        return vec!["there is no device of the driver igb"];
    };
    let interrupts = device["interrupts"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    if interrupts.len() != INTERRUPTS {
        faults.push("its interrupts are not those of two queues each way");
    }
    if interrupts.iter().any(|it| it["thread"].is_null()) {
        faults.push("an interrupt has no thread: is this a kernel with PREEMPT_RT?");
    }
    if facts["cores"]["online"] != json!([0, 1]) {
        faults.push("there are not two processors");
    }
    faults
}

fn inside(_: &[String]) -> Result<Value> {
    appeared(&Path::new("/sys/class/net").join(INTERFACE))?;
    for line in [
        format!("address add 10.0.0.1/24 dev {INTERFACE}"),
        format!("link set {INTERFACE} up"),
        "link set eth1 up".to_owned(),
    ] {
        tools::run("ip", &line)?;
    }
    let line = format!("link show {INTERFACE}");
    wait_until("the link does not come up", PATIENCE, || {
        Ok(tools::run("ip", &line)?.contains("LOWER_UP"))
    })?;
    let mut doctor = tools::program("isolane");
    doctor.args(["doctor", "--facts", "--json", "-"]);
    Ok(serde_json::from_slice(&doctor.output()?.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_says_what_it_is_and_lacks_nothing_that_plans_are_tested_with() {
        let interrupt = json!({"name": "eth0-rx-0", "thread": ["irq/27-eth0-rx-0", 50]});
        let probed = json!({
            "origin": "probed",
            "boot_id": "0123",
            "cores": {"online": [0, 1]},
            "devices": [{"interface": "eth0", "driver": "igb", "interrupts": vec![interrupt; 5]}],
        });
        let facts = recorded(probed);
        assert!(
            facts["origin"]
                .as_str()
                .is_some_and(|it| it.contains("emulated"))
        );
        assert!(facts["boot_id"].is_null());
        assert!(faults(&facts).is_empty());
        let with = |place: &str, value: Value| {
            let mut facts = facts.clone();
            *facts.pointer_mut(place).expect("a place") = value;
            faults(&facts).len()
        };
        assert_eq!(with("/devices/0/driver", json!("e1000e")), 1);
        assert_eq!(with("/devices/0/interrupts/4/thread", Value::Null), 1);
        assert_eq!(with("/devices/0/interrupts", json!([])), 1);
        assert_eq!(with("/cores/online", json!([0])), 1);
    }
}
