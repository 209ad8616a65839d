//! Tests of saved plans: which steps are saved, and with which interrupt and NAPI numbers they are applied at boot.

use std::collections::BTreeMap;

use super::*;
use crate::facts::Queues;
use crate::plan::{Identity, Precondition};
use crate::setting::{ThreadClass, Value};

fn attribute(path: &str) -> Setting {
    Setting::Attribute { path: path.into() }
}

fn thread(name: &str) -> Setting {
    Setting::Thread { name: name.into() }
}

fn channels() -> Setting {
    Setting::Channels {
        interface: "eth0".into(),
    }
}

fn step(setting: Setting, from: Value, to: Value) -> Step {
    Step {
        id: setting.to_string(),
        setting,
        from,
        to,
        why: String::new(),
        topics: Vec::new(),
        costs: String::new(),
        undo: String::new(),
        when: When::Now,
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn fifo(priority: u8) -> Value {
    Value::Thread(ThreadClass {
        fifo: Some(priority),
        cores: Vec::new(),
    })
}

fn plan(steps: Vec<Step>) -> Plan {
    Plan {
        schema: crate::plan::SCHEMA.into(),
        machine: Identity::default(),
        origin: String::from("test"),
        profile: String::from("test"),
        boot_id: None,
        steps,
        not_planned: Vec::new(),
        preconditions: Vec::new(),
    }
}

fn precondition() -> Precondition {
    Precondition {
        setting: Setting::UdpHash {
            interface: "eth0".into(),
        },
        value: Value::Switch(true),
    }
}

/// Numbers of a device with one queue, which has this interrupt and this NAPI instance.
fn numbers(interrupt: u32, instance: u32) -> BootNumbers {
    BootNumbers {
        interrupts: BTreeMap::from([(interrupt, "eth0-TxRx-1".into())]),
        devices: BTreeMap::from([("eth0".into(), vec![interrupt])]),
        instances: BTreeMap::from([("eth0".into(), BTreeMap::from([(1, instance)]))]),
    }
}

fn affinity(interrupt: u32) -> Step {
    let path = format!("/proc/irq/{interrupt}/smp_affinity_list");
    step(attribute(&path), text("0-3"), text("1"))
}

fn settings(plan: &Plan) -> Vec<String> {
    plan.steps
        .iter()
        .map(|step| step.setting.to_string())
        .collect()
}

#[test]
fn numbers_are_looked_up_behind_the_steps_that_give_new_ones() {
    let queues = |combined| {
        Value::Queues(Queues {
            combined,
            ..Queues::default()
        })
    };
    let threaded = attribute("/sys/class/net/eth0/threaded");
    let mut whole = plan(vec![
        step(channels(), queues(4), queues(2)),
        affinity(24),
        affinity(25),
        step(threaded, text("0"), text("1")),
        step(thread("napi/eth0-8193"), fifo(50), fifo(75)),
        step(
            attribute("/proc/sys/vm/stat_interval"),
            text("1"),
            text("10"),
        ),
    ]);
    whole.preconditions = vec![precondition()];
    let saved = SavedPlan::new(whole, numbers(24, 8_193));
    assert_eq!(saved.interfaces(), ["eth0"]);
    let first = saved.first_part();
    assert_eq!(
        settings(&first),
        ["queues of eth0", "/proc/sys/vm/stat_interval"]
    );
    assert!(first.preconditions.is_empty());
    // The first part has given the device new queues, and so new numbers.
    let (second, lost) = saved.second_part(&numbers(57, 8_201));
    assert_eq!(
        settings(&second),
        [
            "/proc/irq/57/smp_affinity_list",
            "/sys/class/net/eth0/threaded",
            "thread napi/eth0-8201"
        ]
    );
    assert_eq!(second.preconditions, [precondition()]);
    // The name of interrupt 25 is unknown: its step is reported, and no other interrupt is set.
    let lost: Vec<String> = lost
        .iter()
        .map(|lost| format!("{}: {}", lost.id, lost.why))
        .collect();
    assert_eq!(
        lost,
        ["/proc/irq/25/smp_affinity_list: the name of interrupt 25 is not recorded"]
    );
}

#[test]
fn an_interface_is_waited_for_though_only_its_interrupts_are_set() {
    let saved = SavedPlan::new(plan(vec![affinity(24)]), numbers(24, 8_193));
    assert_eq!(saved.carriers(), ["eth0"]);
}

#[test]
fn a_device_whose_interrupts_are_moved_out_of_the_way_is_not_waited_for() {
    let mut other = affinity(24);
    other.id = String::from("cores.interrupt-24");
    let saved = SavedPlan::new(plan(vec![other]), numbers(24, 8_193));
    assert!(saved.carriers().is_empty());
    assert_eq!(saved.interfaces(), ["eth0"], "its numbers are looked up");
}

#[test]
fn what_was_saved_in_an_earlier_boot_is_renumbered_before_more_is_saved() {
    let earlier = SavedPlan::new(plan(vec![affinity(24)]), numbers(24, 8_193));
    let steps = vec![step(
        attribute("/proc/sys/vm/stat_interval"),
        text("1"),
        text("10"),
    )];
    let saved = SavedPlan::merged(&plan(steps), Some(earlier), numbers(57, 8_201));
    let now = numbers(57, 8_201);
    assert_eq!(
        settings(&saved.second_part(&now).0),
        ["/proc/irq/57/smp_affinity_list"]
    );
}

#[test]
fn what_is_put_back_is_not_set_again_after_a_boot() {
    let statistics = attribute("/proc/sys/vm/stat_interval");
    let set = step(statistics.clone(), text("1"), text("10"));
    let earlier = SavedPlan::new(plan(vec![set, affinity(24)]), numbers(24, 8_193));
    // Values that differ only in white space are equal.
    let mut back = step(statistics, text("10"), text("1 "));
    back.id = String::from("restore.statistics");
    let saved = SavedPlan::merged(&plan(vec![back]), Some(earlier), numbers(24, 8_193));
    assert_eq!(settings(&saved.plan), ["/proc/irq/24/smp_affinity_list"]);
}

#[test]
fn what_holds_for_this_boot_is_not_saved_and_nothing_relies_on_it() {
    let mut of_this_boot = affinity(24);
    of_this_boot.when = When::ThisBoot;
    // The second step keeps interrupt 25 off a core, which does not depend on receive queues.
    let mut plan = plan(vec![of_this_boot, affinity(25)]);
    plan.preconditions = vec![precondition()];
    let saved = SavedPlan::merged(&plan, None, BootNumbers::default());
    assert_eq!(settings(&saved.plan), ["/proc/irq/25/smp_affinity_list"]);
    assert!(saved.plan.preconditions.is_empty());
}

#[test]
fn what_rests_on_rules_is_saved_with_what_it_relies_on() {
    let mut by_rules = plan(vec![affinity(24)]);
    by_rules.preconditions = vec![precondition()];
    let saved = SavedPlan::merged(&by_rules, None, numbers(24, 8_193));
    assert_eq!(
        saved.plan.preconditions,
        [precondition()],
        "an interrupt alone"
    );
    by_rules.steps = vec![step(channels(), Value::Absent, Value::Absent)];
    let saved = SavedPlan::merged(&by_rules, None, BootNumbers::default());
    assert!(saved.plan.preconditions.is_empty(), "nothing does harm");
}

#[test]
fn a_saved_plan_is_read_again_and_one_of_another_version_is_reported_as_such() {
    let saved = SavedPlan::new(plan(vec![affinity(24)]), numbers(24, 8_193));
    let text = serde_json::to_string(&saved).expect("JSON");
    assert_eq!(SavedPlan::from_json(&text).expect("ours"), saved);
    let newer = text.replace(SCHEMA, "isolane/saved-plan/9");
    let error = SavedPlan::from_json(&newer).expect_err("of another version");
    let said = "the saved plan has the format isolane/saved-plan/9, and this isolane reads isolane/saved-plan/3";
    assert_eq!(error.to_string(), said);
    for length in 0..text.len() {
        SavedPlan::from_json(&text[..length]).expect_err("a part of it");
    }
}
