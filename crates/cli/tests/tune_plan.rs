//! Tests of the commands `isolane tune plan` and `export`. Tests of isolane-tune check the plans themselves, with
//! recorded machines.

mod command;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use command::{Folder, isolane, run};

/// Two hosts with an urgent topic in each direction, and described participants.
const DESCRIPTION: &str = r#"
[host.left]
interface = "eth0"
core = 7
xdp.queues = { 7 = 3 }
[host.right]
interface = "eth0"
core = 1
[topic.Reply]
type = "T"
level = 7
max_bytes = 64
from = ["right"]
to = ["left"]
[participant.a]
host = "left"
address = "10.0.0.1"
port = 7000
reads = ["Reply"]
[participant.b]
host = "right"
address = "10.0.0.2"
port = 7000
writes = ["Reply"]
[tune]
profile = "latency"
coalescing_us = 12
"#;

/// A command for a recorded machine, in a folder with a description.
fn tune(folder: &Folder, arguments: &[&str]) -> Command {
    let machine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tune/tests/machines/igc.json");
    let mut command = isolane(&["tune"]);
    command
        .args(arguments)
        .args(["--facts", machine.to_str().expect("UTF-8")])
        .current_dir(folder.write("isolane.toml", DESCRIPTION));
    command
}

#[test]
fn a_plan_says_what_changes_why_and_what_is_not_done() {
    let folder = Folder::new("tune-plan");
    let (code, out, err) = run(&mut tune(&folder, &["plan"]));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for said in [
        "left: profile latency with 1 changed switch",
        "not recorded from a machine",
        "rx-usecs 3 -> rx-usecs 12",
        "for:   Reply",
        "undo:  ethtool -C eth0 rx-usecs 3",
        "Not planned:",
        "[interface.receive-threads.eth0]",
    ] {
        assert!(out.contains(said), "no {said} in\n{out}");
    }
}

#[test]
fn a_plan_is_a_difference_for_people_and_json_for_programs() {
    let folder = Folder::new("tune-forms");
    let (code, out, _) = run(&mut tune(
        &folder,
        &["plan", "--diff", "--profile", "balanced"],
    ));
    assert_eq!(code, 0);
    assert!(out.starts_with("--- left at present"), "{out}");
    assert!(out.contains("\n-rx-usecs 3\n+rx-usecs 12\n"), "{out}");
    let (code, out, _) = run(&mut tune(&folder, &["plan", "--json", "-"]));
    assert_eq!(code, 0);
    let json: Value = serde_json::from_str(&out).expect("JSON and nothing else");
    assert_eq!(json["schema"], "isolane/plan/3");
    assert_eq!(json["machine"]["hostname"], "left");
    assert!(!json["steps"].as_array().expect("a list").is_empty());
    let (code, out, _) = run(&mut tune(&folder, &["plan", "kept.json"]));
    assert_eq!(code, 0);
    assert!(out.contains("steps"), "text is printed, too: {out}");
    let kept = std::fs::read_to_string(folder.file("kept.json")).expect("the plan");
    let kept: Value = serde_json::from_str(&kept).expect("JSON");
    assert_eq!(kept, json);
}

#[test]
fn a_profile_of_ones_own_is_a_file_and_what_is_wrong_in_it_is_drawn() {
    let folder = Folder::new("tune-profile");
    folder.write("own.toml", "profile = \"balanced\"\ncoalescing_us = 11\n");
    let (code, out, _) = run(&mut tune(&folder, &["plan", "--profile", "own.toml"]));
    assert_eq!(code, 0);
    assert!(out.contains("rx-usecs 3 -> rx-usecs 11"), "{out}");
    folder.write("wrong.toml", "moderation = 9\n");
    let (code, _, err) = run(&mut tune(&folder, &["plan", "--profile", "wrong.toml"]));
    assert_eq!(code, 2);
    assert!(err.contains("unknown key `moderation`"), "{err}");
    let (code, _, err) = run(&mut tune(&folder, &["plan", "--profile", "fastest"]));
    assert_eq!(code, 2);
    assert!(err.contains("profiles are latency, balanced"), "{err}");
}

#[test]
fn what_was_measured_is_read_from_a_file() {
    let folder = Folder::new("tune-placement");
    let placement = |queue: u32| {
        let flow = |from: &str, to: &str, queue: u32| {
            format!(
                r#"{{"tuple": {{"source": "{from}", "destination": "{to}", "source_port": 7007,
                "destination_port": 7007}}, "queue": {{"source": "measured", "queue": {queue}}}}}"#
            )
        };
        let there = flow("10.0.0.2", "10.0.0.1", queue);
        let back = flow("10.0.0.1", "10.0.0.2", 0);
        format!(r#"{{"flows": [{there}, {back}]}}"#)
    };
    // Other programs do the steering. Then a plan changes nothing about it, and measured receive queues remain valid.
    folder.write("own.toml", "profile = \"latency\"\nsteering = \"none\"\n");
    let plan = [
        "plan",
        "--receive-queues",
        "placement.json",
        "--profile",
        "own.toml",
    ];
    for (queue, is_planned) in [(3, true), (2, false)] {
        folder.write("placement.json", &placement(queue));
        let (code, out, err) = run(&mut tune(&folder, &plan));
        assert_eq!(code, 0, "{err}");
        let has_priority = out.contains("FIFO 50 -> FIFO 75");
        assert_eq!(has_priority, is_planned, "queue {queue}: {out}");
        assert_eq!(
            out.contains("valid only with these settings"),
            is_planned,
            "queue {queue}: {out}"
        );
    }
    folder.write("placement.json", "[]");
    let (code, _, err) = run(&mut tune(&folder, &plan));
    assert_eq!(code, 2);
    assert!(err.contains("cannot read the receive queues"), "{err}");
}

#[test]
fn what_was_measured_before_a_boot_is_refused() {
    let folder = Folder::new("tune-boots");
    folder.write("isolane.toml", DESCRIPTION);
    let machine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tune/tests/machines/igc.json");
    let facts = std::fs::read_to_string(machine).expect("a recording");
    let mut facts: Value = serde_json::from_str(&facts).expect("JSON");
    for (boot_id, expected) in [("first", 0), ("second", 1)] {
        facts["boot_id"] = boot_id.into();
        folder.write("facts.json", &facts.to_string());
        folder.write("placement.json", r#"{"boot_id": "first", "flows": []}"#);
        let mut command = isolane(&["tune", "plan", "--facts", "facts.json"]);
        command.args(["--receive-queues", "placement.json", "--json", "-"]);
        let (code, out, err) = run(command.current_dir(folder.file("")));
        assert_eq!(code, expected, "{err}");
        if code == 0 {
            let plan: Value = serde_json::from_str(&out).expect("a plan");
            assert_eq!(plan["boot_id"], "first");
        } else {
            assert!(err.contains("from another boot than the facts"), "{err}");
            assert!(err.contains("isolane tune learn PEER"), "{err}");
        }
    }
}

#[test]
fn a_plan_is_exported_for_other_tools() {
    let folder = Folder::new("tune-export");
    let (code, out, _) = run(&mut tune(&folder, &["export", "--format", "sh"]));
    assert_eq!(code, 0);
    assert!(
        out.starts_with("#!/bin/sh\n") && out.contains("ethtool -C eth0 "),
        "{out}"
    );
    let root = folder.file("root");
    let export = ["export", "--format", "systemd", "--to", &root];
    let (code, out, err) = run(&mut tune(&folder, &export));
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    let unit = folder
        .0
        .join("root/etc/systemd/system/isolane-tune.service");
    let unit = std::fs::read_to_string(unit).expect("a unit");
    assert!(
        unit.contains("ExecStart=/usr/local/lib/isolane/tune.sh apply"),
        "{unit}"
    );
    assert!(folder.0.join("root/usr/local/lib/isolane/tune.sh").exists());
    let (code, _, err) = run(&mut tune(&folder, &["export", "--format", "ansible"]));
    assert_eq!(code, 2);
    assert!(err.contains("tuned"), "{err}");
}

#[test]
fn this_machine_can_be_planned_for_and_nothing_is_touched_without_a_description() {
    let folder = Folder::new("tune-here");
    let mut command = isolane(&["tune", "plan", "--json", "-"]);
    let (code, out, err) = run(command.current_dir(&folder.0));
    assert_eq!(code, 0, "{err}");
    let json: Value = serde_json::from_str(&out).expect("JSON");
    let ids = json["steps"].as_array().expect("a list").iter();
    let mut ids = ids.filter_map(|step| step["id"].as_str());
    assert!(!ids.any(|id| id.starts_with("interface.")), "{out}");
}

#[test]
fn what_it_cannot_use_is_refused() {
    let folder = Folder::new("tune-refused");
    for (arguments, why) in [
        (&["plan", "--interface", "lo"][..], "takes no --interface"),
        (&["plan", "--host", "middle"], "its hosts are left, right"),
        (&["plan", "--json", "-", "kept.json"], "cannot be used with"),
        (&["export"], "--format"),
    ] {
        let (code, out, err) = run(&mut tune(&folder, arguments));
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.contains(why), "{arguments:?}: {err}");
    }
    let mut command = isolane(&["tune", "plan", "--facts", "/nowhere.json"]);
    let (code, _, err) = run(command.current_dir(&folder.0));
    assert_eq!(code, 2);
    assert!(err.contains("No such file"), "{err}");
}
