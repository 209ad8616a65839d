//! `spy` with a publisher and a subscriber, in a separate network namespace; and without the right to listen.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

use isolane_bench::namespace::{Host, TestHosts, TestHostsConfig, TestHostsError};
use serde_json::Value;

use crate::command::{PATIENCE, Running, isolane};
use crate::support::{run, spy};

/// User id without rights, by convention.
const UNPRIVILEGED: u32 = 65_534;

#[test]
fn samples_are_seen_as_they_pass_with_topic_and_level() {
    let testbed = match TestHosts::new(&TestHostsConfig::default()) {
        Ok(testbed) => testbed,
        Err(TestHostsError::NotPermitted { .. }) => {
            // Without a namespace, only the error of listening is tested.
            return listening_takes_a_right();
        }
        Err(error) => panic!("{error}"),
    };
    let start = |mut command: Command| Running(command.spawn().expect("the command starts"));
    let mut listening = testbed.command(Host::A, spy(&["--json", "-", "--topic", "Square"]));
    listening.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut listening = start(listening);
    let end = ["Square", "--interface", "host-a", "--level", "6"];
    let quiet = |what: &str| {
        let mut command = isolane(&[what]);
        command
            .args(end)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        testbed.command(Host::A, command)
    };
    let _subscriber = start(quiet("sub"));
    let _publisher = start(quiet("pub"));

    let out = listening.0.stdout.take().expect("piped");
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(out).lines() {
            let _ = sender.send(line.expect("UTF-8"));
        }
    });
    // Waits for an announcement of the topic and a sample of it.
    let (mut announced, mut sample) = (None, None);
    while announced.is_none() || sample.is_none() {
        let line = lines.recv_timeout(PATIENCE).expect("it was seen");
        let record: Value = serde_json::from_str(&line).expect("JSON");
        for submessage in record["submessages"].as_array().into_iter().flatten() {
            if submessage["announcement"]["kind"] == "writer" {
                announced = Some(record.clone());
            } else if submessage["kind"] == "DATA" && submessage["announcement"].is_null() {
                sample = Some((record.clone(), submessage.clone()));
            }
        }
    }
    let (record, submessage) = sample.expect("the loop has found it");
    assert_eq!(record["level"], 6, "{record}");
    assert_eq!(record["vendor"], "isolane");
    assert_eq!(submessage["topic"], "Square");
    assert!(submessage["key_hash"].is_string(), "{submessage}");
    assert_eq!(announced.expect("the loop has found it")["discovery"], true);
}

#[test]
fn samples_of_a_running_system_are_shown_by_topic() {
    let testbed = match TestHosts::new(&TestHostsConfig::default()) {
        Ok(testbed) => testbed,
        Err(TestHostsError::NotPermitted { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    let start = |what: &str, out: Stdio| {
        let mut command = isolane(&[what, "Square", "--interface", "host-a"]);
        command.stdout(out).stderr(Stdio::null());
        let child = testbed.command(Host::A, command).spawn();
        Running(child.expect("the command starts"))
    };
    let mut subscriber = start("sub", Stdio::piped());
    let _publisher = start("pub", Stdio::null());
    let mut out = BufReader::new(subscriber.0.stdout.take().expect("piped"));
    // The participants know each other, and send no more announcements of endpoints.
    for _ in 0..3 {
        out.read_line(&mut String::new()).expect("a sample");
    }
    thread::spawn(move || out.lines().count());
    let arguments = [
        "--topic",
        "Square",
        "--kind",
        "data",
        "--count",
        "3",
        "--seconds",
        "60",
    ];
    let said = run(&mut testbed.command(Host::A, spy(&arguments)));
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("shown 3"), "{}", said.err);
    assert_eq!(said.out.matches("DATA").count(), 3, "{}", said.out);
    // In a domain in which nobody announces the topic, the samples are skipped, and `spy` says so while it runs.
    let arguments = ["--topic", "Square", "--domain", "3", "--seconds", "7"];
    let said = run(&mut testbed.command(Host::A, spy(&arguments)));
    for words in ["no sample is shown yet", "samples skipped", "--domain N"] {
        assert!(said.err.contains(words), "no {words} in {}", said.err);
    }
}

#[test]
fn an_interface_that_is_not_there_cannot_be_listened_to() {
    let said = run(&mut spy(&["--interface", "nowhere0", "--seconds", "1"]));
    assert_eq!((said.code, said.out.as_str()), (3, ""), "{}", said.err);
    assert!(said.err.contains("nowhere0"), "{}", said.err);
    assert!(said.err.contains("to do:"), "{}", said.err);
}

#[test]
fn listening_takes_a_right() {
    // All users may run the copy, wherever the command was built.
    let copy = std::env::temp_dir().join(format!("isolane-spy-copy-{}", std::process::id()));
    // Another process makes the copy. Otherwise a child process that another test forks may still have the file open
    // for writing, and the copy could not be started.
    let mut install = Command::new("install");
    install.args(["-m", "755", env!("CARGO_BIN_EXE_isolane")]);
    let copied = install.arg(&copy).status().expect("install exists");
    assert!(copied.success());
    let mut command = Command::new(&copy);
    command.args(["spy", "--seconds", "1"]).current_dir("/");
    if is_root() {
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    }
    let said = run(&mut command);
    let _ = std::fs::remove_file(&copy);
    assert_eq!((said.code, said.out.as_str()), (3, ""), "{}", said.err);
    assert!(said.err.contains("CAP_NET_RAW"), "{}", said.err);
    assert!(said.err.contains("sudo"), "{}", said.err);
}

/// Returns whether this test runs as root, because only root has capabilities to drop.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}
