//! `isolane why` with programs whose endpoints do not communicate, in a separate network namespace, by unicast on
//! 127.0.0.1.

mod command;
#[path = "../../../tests/support/own_namespace.rs"]
mod own_namespace;

use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use isolane::{Interfaces, Participant, Qos, TopicType};
use serde_json::{Value, json};

use command::{Folder, PATIENCE, Running, isolane, run};
use own_namespace::in_namespace;

const LOOPBACK: [&str; 4] = ["--interface", "lo", "--peer", "127.0.0.1"];

fn start(arguments: &[&str]) -> Running {
    let mut command = isolane(arguments);
    command.args(LOOPBACK);
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    Running(quiet.spawn().expect("the command starts"))
}

/// Call of `why` for a topic.
fn why(topic: &str) -> Command {
    let mut command = isolane(&["why", topic, "--json", "-", "--seconds", "2"]);
    command.args(LOOPBACK);
    command
}

/// Exit code and JSON of a call.
fn answer(command: &mut Command) -> (i32, Value) {
    let (code, out, err) = run(command);
    let answer: Value =
        serde_json::from_str(&out).unwrap_or_else(|why| panic!("{why}: {out}{err}"));
    assert_eq!(answer["schema"], "isolane/why/2");
    (code, answer)
}

/// Repeats `why` until both sides are discovered, which may take a while on a busy machine; returns the last answer.
fn answer_about_a_pair(topic: &str) -> (i32, Value) {
    for _ in 0..20 {
        let (code, answer) = answer(why(topic).arg("--no-other-domains"));
        if answer["writers"] == 1 && answer["readers"] == 1 {
            return (code, answer);
        }
    }
    panic!("the pair was never heard")
}

#[test]
fn a_policy_that_keeps_two_apart_is_named_with_both_values() {
    in_namespace(
        "a_policy_that_keeps_two_apart_is_named_with_both_values",
        || {
            let _writer = start(&["pub", "Square", "--best-effort"]);
            let _reader = start(&["sub", "Square", "--reliable"]);
            let (code, answer) = answer_about_a_pair("Square");
            assert_eq!(code, 1);
            assert_eq!(answer["communicates"], false);
            let reason = &answer["reasons"][0];
            assert_eq!(reason["id"], "policy");
            assert_eq!(reason["verdict"], "no");
            let difference = &reason["differences"][0];
            assert_eq!(difference["name"], "RELIABILITY");
            assert_eq!(difference["offered"], "BEST_EFFORT");
            assert_eq!(difference["requested"], "RELIABLE");
            let sentence = reason["sentence"].as_str().expect("a sentence");
            assert!(sentence.contains("isolane pub") && sentence.contains("isolane sub"));
        },
    );
}

#[test]
fn two_that_match_are_said_to() {
    in_namespace("two_that_match_are_said_to", || {
        let _writer = start(&["pub", "Square"]);
        let _reader = start(&["sub", "Square"]);
        let (code, answer) = answer_about_a_pair("Square");
        assert_eq!(
            (code, &answer["communicates"]),
            (0, &Value::Bool(true)),
            "{answer:#}"
        );
        let text = isolane(&["why", "Square", "--no-other-domains"])
            .args(LOOPBACK)
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&text.stdout);
        assert!(said.contains("yes: the writer"), "{said}");
    });
}

#[test]
fn the_other_side_is_found_in_another_domain_and_under_another_name() {
    in_namespace(
        "the_other_side_is_found_in_another_domain_and_under_another_name",
        || {
            let _writer = start(&["pub", "Square"]);
            let _other = start(&["sub", "Square", "--domain", "3"]);
            let _near = start(&["sub", "Squares"]);
            let found = |answer: &Value, id: &str| {
                let reasons = answer["reasons"].as_array().expect("a list");
                reasons.iter().any(|reason| reason["id"] == id)
            };
            let mut last = Value::Null;
            let both = (0..20).any(|_| {
                let (code, answer) = answer(why("Square").args(["--other-domains", "2,3"]));
                assert_eq!(code, 1);
                last = answer;
                found(&last, "other-domain") && found(&last, "topic-name")
            });
            assert!(both, "{last:#}");
            assert_eq!(last["other_domains"], serde_json::json!([2, 3]));
        },
    );
}

#[test]
fn without_participants_nothing_is_announced() {
    in_namespace("without_participants_nothing_is_announced", || {
        let (code, answer) = answer(why("Square").arg("--no-other-domains"));
        assert_eq!(code, 1);
        assert_eq!(answer["reasons"][0]["id"], "nothing-announced");
        assert_eq!(answer["participants"], 0);
    });
}

#[derive(TopicType)]
struct Reading {
    celsius: f32,
}

#[test]
fn a_participant_that_ignores_the_topic_is_named() {
    in_namespace("a_participant_that_ignores_the_topic_is_named", || {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let program = thread::spawn(move || {
            let builder = || {
                Participant::builder(0)
                    .interfaces(Interfaces::Named(vec!["lo".into()]))
                    .peer(Ipv4Addr::LOCALHOST)
                    .observable(true)
            };
            let here = builder().name("deaf").build().expect("a participant");
            let there = builder().name("heard").build().expect("a participant");
            here.ignore_topic("Readings").expect("room");
            let qos = Qos::reliable();
            let _reader = here
                .create_reader::<Reading>("Readings", &qos)
                .expect("a reader");
            let _writer = there
                .create_writer::<Reading>("Readings", &qos)
                .expect("a writer");
            while !stopped.load(Ordering::Relaxed) {
                here.run_for(Duration::from_millis(2));
                there.run_for(Duration::from_millis(2));
            }
        });
        let mut last = Value::Null;
        let is_named = (0..20).any(|_| {
            last = answer(why("Readings").arg("--no-other-domains")).1;
            last["reasons"][0]["id"] == "ignored"
        });
        stop.store(true, Ordering::Relaxed);
        program.join().expect("it ends");
        assert!(is_named, "{last:#}");
        let sentence = last["reasons"][0]["sentence"].as_str().expect("a sentence");
        assert!(
            sentence.contains("ignores the topic \"Readings\""),
            "{sentence}"
        );
    });
}

#[test]
fn rules_of_a_packet_filter_that_drop_the_ports_are_named() {
    in_namespace(
        "rules_of_a_packet_filter_that_drop_the_ports_are_named",
        || {
            // Output of `nft --json list ruleset`. The tool itself need not be installed.
            let rules = r#"{"nftables": [{"chain": {"family": "inet", "table": "filter", "name": "input",
                "hook": "input", "policy": "accept"}}, {"rule": {"family": "inet", "table": "filter",
                "chain": "input", "handle": 9, "expr": [{"match": {"op": "==", "left": {"payload":
                {"protocol": "udp", "field": "dport"}}, "right": {"range": [7400, 7500]}}},
                {"drop": null}]}}]}"#;
            let folder = Folder::new("why-nft");
            let tool = folder.file("nft");
            std::fs::write(&tool, format!("#!/bin/sh\ncat <<'END'\n{rules}\nEND\n"))
                .expect("a file");
            let executable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&tool, executable).expect("it is ours");
            let path = std::env::var("PATH").unwrap_or_default();
            let mut command = why("Square");
            command.arg("--no-other-domains");
            command.env("PATH", format!("{}:{path}", folder.0.display()));
            let (code, answer) = answer(&mut command);
            assert_eq!(code, 1);
            assert_eq!(answer["firewall"]["read_by"], json!(["nft"]));
            let reasons = answer["reasons"].as_array().expect("a list");
            let dropped = reasons.iter().find(|reason| reason["id"] == "firewall");
            let sentence = dropped.and_then(|reason| reason["sentence"].as_str());
            let sentence = sentence.unwrap_or_else(|| panic!("{answer:#}"));
            assert!(
                sentence.contains("drops datagrams to it by UDP port 7400"),
                "{sentence}"
            );
            assert!(
                sentence.contains("nft: inet filter input: rule with handle 9"),
                "{sentence}"
            );

            command.env("PATH", folder.0.join("nowhere"));
            let (_, answer) = self::answer(&mut command);
            assert_eq!(answer["firewall"]["read_by"], json!([]));
            let unreadable = answer["firewall"]["unreadable"].as_str().expect("why");
            assert!(
                unreadable.contains("command `nft` is not installed"),
                "{unreadable}"
            );
        },
    );
}

#[test]
fn it_is_ended_by_a_signal_while_a_tool_of_the_system_does_not_answer() {
    in_namespace(
        "it_is_ended_by_a_signal_while_a_tool_of_the_system_does_not_answer",
        || {
            let folder = Folder::new("why-signal");
            let (tool, asked) = (folder.file("nft"), folder.file("asked"));
            let script = format!("#!/bin/sh\necho >'{asked}'\nexec sleep 1000\n");
            std::fs::write(&tool, script).expect("a file");
            let executable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&tool, executable).expect("it is ours");
            let path = std::env::var("PATH").unwrap_or_default();
            let mut command = isolane(&["why", "Square", "--seconds", "1", "--no-other-domains"]);
            command.args(LOOPBACK);
            command.env("PATH", format!("{}:{path}", folder.0.display()));
            let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut running = Running(quiet.spawn().expect("the command starts"));
            let begin = Instant::now();
            while !std::fs::exists(&asked).expect("a folder of ours") {
                assert!(begin.elapsed() < PATIENCE, "the tool was not asked");
                thread::sleep(Duration::from_millis(5));
            }
            let signalled = Instant::now();
            let process = running.0.id().to_string();
            let kill = Command::new("kill").args(["-TERM", &process]).status();
            assert!(kill.expect("kill exists").success());
            let status = running.0.wait().expect("it ends");
            assert_eq!(status.code(), Some(130));
            // `why` waits for the tool for five seconds.
            assert!(
                signalled.elapsed() < Duration::from_secs(3),
                "{:?}",
                signalled.elapsed()
            );
        },
    );
}
