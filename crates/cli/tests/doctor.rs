//! Tests of output and exit code of `isolane doctor`. Tests of isolane-tune check its findings, with recorded machines.

mod command;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use command::{Folder, isolane, run};

fn doctor(arguments: &[&str]) -> Command {
    let mut command = isolane(&["doctor"]);
    command
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

/// Path of a recorded machine.
fn machine(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tune/tests/machines")
        .join(name)
        .with_extension("json")
}

#[test]
fn a_broken_machine_is_exit_code_1_and_each_finding_has_cost_and_remedy() {
    let machine = machine("broken-laptop");
    let machine = machine.to_str().expect("UTF-8");
    let (code, out, err) = run(&mut doctor(&["--from", machine]));
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    for said in [
        "ERROR  all 120 participant ports of domain 0 are taken  [ports.taken]",
        "WARN   two hardware threads share a core  [cores.smt]",
        "cost: ",
        "to do: cpupower frequency-set --governor performance",
        "1 error, 14 warnings",
    ] {
        assert!(out.contains(said), "no {said} in\n{out}");
    }
    assert!(!out.contains("  ok  "), "only what matters: {out}");
    let (_, all, _) = run(&mut doctor(&["--from", machine, "--all"]));
    assert!(
        all.contains("  ok     no port") || all.contains("  ok     the kernel"),
        "{all}"
    );
}

#[test]
fn findings_are_for_programs_too() {
    let machine = machine("tuned-board");
    let machine = machine.to_str().expect("UTF-8");
    let (code, out, err) = run(&mut doctor(&["--from", machine, "--json", "-"]));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let json: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(json["schema"], "isolane/doctor/1");
    for finding in json["findings"].as_array().expect("a list") {
        for member in ["id", "severity", "what", "cost", "remedy"] {
            assert!(finding[member].is_string(), "{finding}");
        }
        let severity = finding["severity"].as_str();
        assert!(matches!(severity, Some("ok" | "info")), "{finding}");
    }
}

#[test]
fn this_machine_is_looked_at_and_can_be_recorded() {
    let (code, facts, err) = run(&mut doctor(&["--facts"]));
    assert_eq!((code, err.as_str()), (0, ""));
    let json: Value = serde_json::from_str(&facts).expect("JSON");
    assert!(json["kernel"]["release"].is_string());
    let file = std::env::temp_dir().join(format!("isolane-facts-{}", std::process::id()));
    std::fs::write(&file, &facts).expect("a temporary file");
    let from = doctor(&["--json", "-", "--from", file.to_str().expect("UTF-8")]).output();
    let _ = std::fs::remove_file(&file);
    let json: Value = serde_json::from_slice(&from.expect("it starts").stdout).expect("JSON");
    assert!(
        json["findings"]
            .as_array()
            .is_some_and(|list| list.len() > 5)
    );
}

#[test]
fn a_description_is_compared_with_the_host_it_names() {
    let (_, example, _) = run(&mut isolane(&["config", "--example"]));
    let folder = Folder::new("doctor");
    // One of the machine's participants is described at the machine's address.
    let here = example.replace("10.0.0.1", "192.0.2.2");
    let at_home = folder.write("isolane.toml", &here);
    let machine = machine("untuned-vm");
    let machine = machine.to_str().expect("UTF-8");
    let of = |arguments: &[&str]| {
        let mut command = doctor(&["--from", machine]);
        run(command.args(arguments).current_dir(at_home))
    };
    let (code, out, err) = of(&["--host", "zone-left"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(
        out.contains("as host zone-left of the description"),
        "{out}"
    );
    let (_, out, _) = of(&[]);
    assert!(out.contains("--host zone-left | zone-right"), "{out}");
    let (code, _, err) = of(&["--host", "zone-middle"]);
    assert_eq!(code, 2);
    assert!(err.contains("zone-left, zone-right"), "{err}");

    folder.write("isolane.toml", &example);
    let (code, out, _) = of(&["--host", "zone-left"]);
    assert_eq!(code, 1);
    let absent = "participant brake-pedal is described at 10.0.0.1, which eth0 does not have";
    assert!(out.contains(absent), "{out}");

    // Each finding has a group, so each counted finding is shown.
    let (_, all, _) = of(&["--host", "zone-left", "--all"]);
    let marks = ["  ok ", "  info ", "  WARN ", "  ERROR "];
    let shown = all
        .lines()
        .filter(|line| marks.iter().any(|mark| line.starts_with(mark)));
    let counts = all.lines().last().unwrap_or_default().split(' ');
    let counted: usize = counts.filter_map(|word| word.parse::<usize>().ok()).sum();
    assert_eq!(shown.count(), counted, "{all}");
}

#[test]
fn verbose_names_the_description_and_who_named_it() {
    let example = std::env::temp_dir().join(format!("isolane-doctor-{}.toml", std::process::id()));
    std::fs::write(&example, isolane_model::example()).expect("a temporary file");
    let path = example.to_str().expect("UTF-8");
    let machine = machine("broken-laptop");
    let from = ["-v", "--from", machine.to_str().expect("UTF-8")];
    let line = |command: &mut Command| {
        let (_, _, err) = run(command);
        let line = err.lines().find(|line| line.starts_with("description"));
        line.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let named = line(doctor(&from).args(["--config", path]));
    let expected = format!("description = {path} # command line --config");
    assert_eq!(named.as_deref(), Some(expected.as_str()));
    let named = line(doctor(&from).env("ISOLANE_CONFIG", path));
    let expected = format!("description = {path} # environment ISOLANE_CONFIG");
    assert_eq!(named.as_deref(), Some(expected.as_str()));
    let none = line(&mut doctor(&from));
    assert_eq!(none.as_deref(), Some("description = none # default"));
    let _ = std::fs::remove_file(&example);
}

#[test]
fn what_it_cannot_use_is_refused() {
    for (arguments, why) in [
        (&["--host", "a"][..], "no isolane.toml"),
        (&["--interface", "lo"], "takes no --interface"),
        (&["--from", "/nowhere.json"], "No such file"),
        (&["--from", "Cargo.toml"], "--facts"),
        (&["--facts", "--all"], "cannot be used with"),
    ] {
        let (code, out, err) = run(&mut doctor(arguments));
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.contains(why), "{arguments:?}: {err}");
    }
}
