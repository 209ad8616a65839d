//! Tests of exported plans, as files, and of scripts that a shell accepts.

mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use isolane_model::ProfileName;
use isolane_tune::{FlowQueues, Format, Plan, export, plan};

use support::{MACHINES, golden, learnt, machine, needs, profile, verified};

const FORMATS: [(Format, &str); 3] = [
    (Format::Shell, "sh"),
    (Format::Systemd, "systemd"),
    (Format::Tuned, "tuned"),
];

/// What is carried out on a machine one after the other, as one.
fn planned(name: &str, queue: u32) -> Plan {
    let mut facts = machine(name);
    let needs = needs(&facts, queue);
    let latency = profile(ProfileName::Latency);
    let first = plan(&facts, &needs, &latency, &learnt(&needs));
    for step in &first.steps {
        facts.simulate(&step.setting, &step.to);
    }
    plan(&facts, &needs, &latency, &verified(&needs)).merge(&first)
}

#[test]
fn where_no_tool_steers_no_thread_gets_a_priority() {
    // The table of an igc has single entries, which ethtool cannot set; an ice has rules, and a table in turn, and on
    // PREEMPT_RT its threads have names; an mlx5 has rules, too, and threads in the order of its queues.
    for (name, queue, can) in [("igc", 3, false), ("ice", 7, true), ("mlx5", 7, true)] {
        let plan = planned(name, queue);
        let script = &export(&plan, Format::Shell).files[0].text;
        let lines = script.lines().filter(|line| line.contains("chrt "));
        assert_eq!(lines.count() > 0, can, "{name}: {script}");
        let mut steps = plan.steps.iter();
        assert!(
            steps.any(|step| step.id.starts_with("interface.thread")),
            "{name}"
        );
    }
}

/// All files of a form, one after the other.
fn whole(plan: &Plan, format: Format) -> String {
    let exported = export(plan, format);
    let file = |file: &isolane_tune::ExportedFile| format!("==== {}\n{}", file.path, file.text);
    let mut text: String = exported.files.iter().map(file).collect();
    for (id, omission) in exported.missing {
        text.push_str(&format!("==== missing: {id}: {}\n", omission.reason()));
    }
    text
}

#[test]
fn each_form_is_as_in_its_file() {
    for (name, queue) in [("igc", 3), ("mlx5", 7), ("r8169", 0)] {
        let plan = planned(name, queue);
        for (format, word) in FORMATS {
            golden(
                &format!("plans/{name}.export.{word}"),
                &whole(&plan, format),
            );
        }
    }
}

#[test]
fn every_script_is_one_that_a_shell_takes() {
    for (name, queue) in MACHINES {
        let plan = planned(name, queue);
        for (format, word) in FORMATS {
            for file in export(&plan, format)
                .files
                .iter()
                .filter(|file| file.is_executable)
            {
                let mut shell = Command::new("sh")
                    .arg("-n")
                    .stdin(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .expect("a shell");
                let mut input = shell.stdin.take().expect("its input");
                input.write_all(file.text.as_bytes()).expect("a script");
                drop(input);
                let output = shell.wait_with_output().expect("its end");
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(
                    output.status.success(),
                    "{name} {word}: {said}\n{}",
                    file.text
                );
            }
        }
    }
}

#[test]
fn a_script_writes_and_takes_back_what_the_plan_says() {
    // A plan whose steps are about files of a folder of ours can be carried out by anybody.
    let folder = std::env::temp_dir().join(format!("isolane-export-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let attribute = folder.join("attribute");
    let document = folder.join("new folder/it's a file");
    std::fs::write(&attribute, "before\n").expect("a file");
    let mut plan = planned("r8169", 0);
    plan.steps.truncate(2);
    let path = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
    plan.steps[0].setting = isolane_tune::Setting::Attribute {
        path: path(&attribute),
    };
    plan.steps[0].from = isolane_tune::Value::Text(String::from("before"));
    plan.steps[0].to = isolane_tune::Value::Text(String::from("$(after) `x`"));
    plan.steps[1].setting = isolane_tune::Setting::Document {
        path: path(&document),
    };
    plan.steps[1].from = isolane_tune::Value::Absent;
    plan.steps[1].to = isolane_tune::Value::Text(String::from("two\nlines 'quoted'\n"));
    let script = folder.join("script");
    std::fs::write(&script, &export(&plan, Format::Shell).files[0].text).expect("a script");
    let run = |word: &str| {
        let status = Command::new("sh")
            .arg(&script)
            .arg(word)
            .status()
            .expect("a shell");
        assert!(status.success(), "{word}");
    };
    let read = |path| std::fs::read_to_string(path).expect("a file");
    run("apply");
    assert_eq!(read(&attribute), "$(after) `x`\n");
    assert_eq!(read(&document), "two\nlines 'quoted'\n");
    run("undo");
    assert_eq!(read(&attribute), "before\n");
    assert!(!document.exists());
    let wrong = Command::new("sh")
        .arg(&script)
        .stderr(Stdio::null())
        .status();
    assert_eq!(wrong.expect("a shell").code(), Some(2));
    std::fs::remove_dir_all(&folder).expect("ours");
}

#[test]
fn interrupts_are_found_by_their_names() {
    let whole = &export(&planned("ice", 7), Format::Shell).files[0].text;
    assert!(whole.contains("irq/[0-9]+-ice-eth0-TxRx-7"), "{whole}");
    let facts = machine("ice");
    let needs = needs(&facts, 7);
    let latency = profile(ProfileName::Latency);
    let plan = plan(&facts, &needs, &latency, &FlowQueues::default());
    let script = &export(&plan, Format::Shell).files[0].text;
    assert!(
        script.contains("/proc/irq/$(interrupt ice-eth0-TxRx-7)/"),
        "{script}"
    );
    let (lines, _) = script.split_once("apply() {").expect("functions before it");
    assert!(
        !script.contains("/proc/irq/8"),
        "numbers of this boot: {script}"
    );
    let folder = std::env::temp_dir().join(format!("isolane-interrupts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let table = folder.join("interrupts");
    let text = "            CPU0       CPU1\n  \
                7:    0    0  IR-PCI-MSI 1-edge      ice-eth0-TxRx-70\n \
                130:    1    0  IR-PCI-MSI 2-edge      ice-eth0-TxRx-7\n \
                NMI:    0    0  Non-maskable interrupts\n";
    std::fs::write(&table, text).expect("a table");
    let number = |name: &str| {
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(format!("{lines}\ninterrupt {name}"))
            .env("INTERRUPTS", &table);
        let said = shell.output().expect("a shell").stdout;
        String::from_utf8(said).expect("a number").trim().to_owned()
    };
    assert_eq!(number("ice-eth0-TxRx-7"), "130");
    assert_eq!(number("ice-eth0-TxRx-8"), "");
    std::fs::remove_dir_all(&folder).expect("to clear");
}

#[test]
fn napi_threads_are_found_by_the_order_of_their_queues() {
    let plan = planned("mlx5", 7);
    for (format, _) in FORMATS {
        let exported = export(&plan, format);
        let is_thread = |(id, _): &(String, _)| id.starts_with("interface.thread");
        assert!(
            !exported.missing.iter().any(is_thread),
            "{:?}",
            exported.missing
        );
    }
    let script = &export(&plan, Format::Shell).files[0].text;
    assert!(
        script.contains("chrt -f -p 75 \"$(napi eth0 7)\""),
        "{script}"
    );
    assert!(
        script.contains("chrt -f -p 60 \"$(napi eth0 15)\""),
        "{script}"
    );
    assert!(
        !script.contains("napi/eth0-8"),
        "numbers of this boot: {script}"
    );
    // Another driver may make one that only transmits between two that receive: then nothing tells which is which.
    let with = |instances: &[(u32, u32)]| {
        let mut plan = plan.clone();
        plan.steps
            .retain(|step| !step.id.starts_with("interface.thread-"));
        let like = planned("mlx5", 7);
        let like = like
            .steps
            .iter()
            .find(|it| it.id == "interface.thread-7.eth0");
        for (queue, instance) in instances {
            let mut step = like.expect("a step").clone();
            step.id = format!("interface.thread-{queue}.eth0");
            let name = format!("napi/eth0-{instance}");
            step.setting = isolane_tune::Setting::Thread { name };
            plan.steps.push(step);
        }
        let missing = export(&plan, Format::Shell).missing;
        missing
            .iter()
            .any(|(id, _)| id.starts_with("interface.thread-"))
    };
    assert!(!with(&[(0, 90), (1, 91), (2, 92)]));
    assert!(with(&[(0, 90), (1, 92), (2, 94)]), "others between them");
    assert!(with(&[(0, 91), (1, 90)]), "the other way round");
    assert!(with(&[(1, 91), (2, 92)]), "which is the first is not known");
}

#[test]
fn the_thread_of_a_queue_is_the_one_at_its_place_by_number() {
    let script = &export(&planned("mlx5", 7), Format::Shell).files[0].text;
    let (functions, _) = script.split_once("apply() {").expect("functions before it");
    let number = |listed: &str, queue: u32| {
        // What `pgrep -l` tells, in the order of processes.
        let pgrep = format!("pgrep() {{ printf '{listed}'; }}\n");
        let said = Command::new("sh")
            .args(["-c", &format!("{functions}\n{pgrep}napi eth0 {queue}")])
            .output()
            .expect("a shell");
        let said = String::from_utf8(said.stdout).expect("a number");
        said.trim().to_owned()
    };
    let listed = "70 napi/eth0-10001\\n71 napi/eth0-9999\\n72 napi/eth0-10000\\n";
    assert_eq!(number(listed, 0), "71");
    assert_eq!(number(listed, 1), "72");
    assert_eq!(number(listed, 2), "70");
    assert_eq!(number(listed, 3), "", "there is none");
    // An interface of another network namespace has the same name.
    let several = "70 napi/eth0-8193\\n71 napi/eth0-8194\\n72 napi/eth0-8200\\n";
    assert_eq!(number(several, 0), "", "which are meant is not known");
}

#[test]
fn a_script_that_leaves_steps_out_says_so_and_does_not_fail() {
    let mut plan = planned("igc", 3);
    plan.preconditions.clear();
    plan.steps.retain(|step| {
        step.id.starts_with("interface.receive-table") || step.id.starts_with("interface.thread")
    });
    let script = &export(&plan, Format::Shell).files[0].text;
    let output = Command::new("sh")
        .args(["-c", script, "tune.sh", "apply"])
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(
        said.lines()
            .filter(|line| line.ends_with("this boot's measurement"))
            .count(),
        5,
        "{said}"
    );
}

#[test]
fn the_unit_runs_when_interfaces_are_up_and_before_services_that_need_the_network() {
    let exported = export(&planned("igc", 3), Format::Systemd);
    let (unit, script) = (&exported.files[0].text, &exported.files[1].text);
    for line in [
        "After=sys-subsystem-net-devices-eth0.device",
        "After=network.target systemd-sysctl.service irqbalance.service tuned.service",
        "Before=network-online.target",
    ] {
        assert!(
            unit.lines().any(|known| known == line),
            "no {line} in {unit}"
        );
    }
    assert!(script.contains("    up eth0 || exit 1\n"), "{script}");
}
