//! Tests of hostile files, hostile peers, and outputs that accept nothing.

mod command;
#[path = "../../../tests/support/own_namespace.rs"]
mod own_namespace;

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use isolane::types::BoundedString;
use isolane::{Interfaces, Participant, Qos, TopicType};

use command::{Folder, PATIENCE, Running, isolane, run};
use own_namespace::in_namespace;

/// Clears the screen, sets the window title (C0 and C1 forms), and reverses the direction of text.
const ESCAPES: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}";

/// `ESCAPES` as JSON writes it.
const ESCAPES_OF_JSON: &str = "\\u001b[2J\\u001b]0;owned\\u0007\u{9b}31m\u{202e}";

fn assert_harmless(what: &str, text: &str) {
    let is_harmful = |c: char| (c.is_control() && !['\n', '\t'].contains(&c)) || c == '\u{202e}';
    assert!(!text.contains(is_harmful), "{what}: {text:?}");
}

/// Facts of a machine, with another name.
fn facts_of(folder: &Folder, hostname: &str) -> String {
    let (code, facts, err) = run(&mut isolane(&["doctor", "--facts"]));
    assert_eq!(code, 0, "{err}");
    let line = facts.lines().find(|line| line.contains("\"hostname\":"));
    let own = line.expect("facts name the machine");
    let other = format!("  \"hostname\": \"{hostname}\",");
    folder.write("facts.json", &facts.replace(own, &other));
    folder.file("facts.json")
}

#[test]
fn escapes_of_files_do_not_reach_the_terminal() {
    let folder = Folder::new("escapes");
    let facts = facts_of(&folder, ESCAPES_OF_JSON);
    let json = folder.file("findings.json");
    let plan = format!("{{\"schema\":\"{ESCAPES_OF_JSON}\"}}");
    folder.write("plan.json", &plan);
    folder.write("bad.toml", &format!("domain = 1\nx{ESCAPES} = 3\n"));
    let (plan, toml) = (folder.file("plan.json"), folder.file("bad.toml"));
    let named = folder.file(ESCAPES);
    for arguments in [
        &["doctor", "--from", &facts][..],
        &["doctor", "--from", &facts, "--json", "-"],
        &["doctor", "--from", &facts, "--json", &json],
        &["tune", "plan", "--facts", &facts],
        &["tune", "apply", &plan, "--state", &folder.file("state")],
        &["config", "--config", &toml],
        &["config", "--config", &named],
        &["spy", &named],
        &["sub", ESCAPES],
    ] {
        let (_, out, err) = run(&mut isolane(arguments));
        assert_harmless(&format!("{arguments:?}, output"), &out);
        assert_harmless(&format!("{arguments:?}, errors"), &err);
        assert!(out.len() + err.len() > 0, "{arguments:?}");
    }
    let json = std::fs::read_to_string(json).expect("findings");
    assert_harmless("findings", &json);
    let findings: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(findings["hostname"], ESCAPES, "JSON says what was there");
}

#[test]
fn what_is_no_regular_file_or_too_long_is_refused_at_once() {
    let folder = Folder::new("no-files");
    let fifo = folder.file("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo exists").success());
    let long = folder.file("long");
    let file = File::create(&long).expect("a file");
    file.set_len(1 << 30).expect("a sparse file");
    for (path, why) in [
        (fifo.as_str(), "a FIFO"),
        ("/dev/zero", "a device"),
        ("/", "a directory"),
        (&long, "longer than"),
    ] {
        for command in [
            &["config", "--config"][..],
            &["sub", "T", "--config"],
            &["doctor", "--from"],
            &["tune", "plan", "--facts"],
            &["spy"],
        ] {
            if why == "longer than" && command == ["spy"] {
                // Captures are read as a stream, and may have any length.
                continue;
            }
            let begun = Instant::now();
            let arguments = [command, &[path]].concat();
            let mut call = Command::new("timeout");
            call.arg("20")
                .arg(env!("CARGO_BIN_EXE_isolane"))
                .args(&arguments);
            let (code, out, err) = run(&mut call);
            assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
            assert!(err.contains(why), "{arguments:?}: {err}");
            assert!(begun.elapsed() < Duration::from_secs(20), "{arguments:?}");
        }
    }
}

#[test]
fn long_lines_are_not_drawn_and_many_errors_are_counted() {
    let folder = Folder::new("long-lines");
    let file = folder.file("isolane.toml");
    let names: Vec<String> = (0..9_000).map(|n| format!("\"h{n:05}\"")).collect();
    let dots = vec!["a"; 100_000].join(".");
    for (text, place) in [
        (
            format!("x = \"{}\" y\n", "a".repeat(65_529)),
            "isolane.toml:1:65537:",
        ),
        (
            format!(
                "[topic.A]\ntype = \"T\"\nfrom = [{}, 3]\n",
                names.join(", ")
            ),
            "isolane.toml:3:",
        ),
        (
            format!("[host.{}]\ninterface = 3\n", "n".repeat(100_000)),
            "isolane.toml:1:7:",
        ),
        (format!("domain = 3\n{dots} = 1\n"), "isolane.toml:2:1"),
        (
            (0..5_000).map(|n| format!("key{n} = 1\n")).collect(),
            "and 4980 further problems",
        ),
    ] {
        std::fs::write(&file, text).expect("a description");
        let (code, _, err) = run(&mut isolane(&["config", "--config", &file]));
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(place), "no {place} in {err}");
        assert!(err.len() < 20_000, "{place}: {} bytes", err.len());
    }
}

#[test]
fn help_that_cannot_be_written_is_a_failure_as_any_result() {
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["sub", "--help"],
        &["help", "pub"],
    ] {
        let full = File::options().write(true).open("/dev/full");
        let full = full.expect("this kernel has it");
        let ended = isolane(arguments).stdout(Stdio::from(full)).status();
        let code = ended.expect("the command starts").code();
        assert_eq!(code, Some(3), "{arguments:?}");
    }
}

#[test]
fn a_signal_ends_a_command_that_waits_for_a_reader_of_its_result() {
    let folder = Folder::new("no-reader");
    let fifo = folder.file("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo exists").success());
    for command in [
        &["top", "--json"][..],
        &["sub", "T", "--interface", "lo", "--json"],
        &["ls", "--interface", "lo", "--seconds", "1", "--json"],
        &["doctor", "--json"],
        &["spy", "--interface", "lo", "--json"],
    ] {
        let mut call = isolane(&[command, &[&fifo]].concat());
        let call = call.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut running = Running(call.expect("the command starts"));
        // Without a reader, the command waits in open(2) or before it, whether or not it has installed its signal
        // handlers.
        thread::sleep(Duration::from_millis(2_500));
        if let Ok(Some(code)) = running.0.try_wait() {
            // Capturing needs a capability.
            assert_eq!((command[0], code.code()), ("spy", Some(3)));
            continue;
        }
        let process = running.pid().to_string();
        let kill = Command::new("kill").args(["-INT", &process]).status();
        assert!(kill.expect("kill exists").success());
        let begun = Instant::now();
        let ended = loop {
            if let Some(ended) = running.0.try_wait().expect("ours") {
                break ended;
            }
            assert!(begun.elapsed() < PATIENCE, "{command:?} goes on");
            thread::sleep(Duration::from_millis(20));
        };
        // Without an exit code, the signal arrived before the command had installed its handler.
        assert!(
            matches!(ended.code(), None | Some(130)),
            "{command:?} {ended}"
        );
    }
}

#[test]
fn results_go_through_links_and_to_standard_output_under_each_of_its_names() {
    let folder = Folder::new("result-links");
    for (link, target) in [("link", "older.json"), ("dangling", "new.json")] {
        symlink(target, folder.0.join(link)).expect("a link");
    }
    folder.write("older.json", "older");
    for (link, target) in [("link", "older.json"), ("dangling", "new.json")] {
        let (code, _, err) = run(&mut isolane(&["doctor", "--json", &folder.file(link)]));
        assert!(code < 2, "{err}");
        let linked = std::fs::read_link(folder.0.join(link)).expect("still a link");
        assert_eq!(linked.to_str(), Some(target));
        let written = std::fs::read(folder.0.join(target)).expect("the result");
        let result: serde_json::Value = serde_json::from_slice(&written).expect("JSON");
        assert_eq!(result["schema"], "isolane/doctor/1");
    }
    let before = std::fs::read_link("/dev/stdout").expect("a link");
    for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let (code, out, err) = run(&mut isolane(&["doctor", "--json", name]));
        assert!(code < 2, "{err}");
        let result: serde_json::Value = serde_json::from_str(&out).expect("JSON alone");
        assert_eq!(result["schema"], "isolane/doctor/1", "{name}");
    }
    assert_eq!(std::fs::read_link("/dev/stdout").expect("a link"), before);
}

#[test]
fn a_result_that_cannot_be_written_leaves_links_and_files_as_they_are() {
    let folder = Folder::new("no-result");
    let link = folder.0.join("dangling");
    symlink(folder.0.join("no folder/new.json"), &link).expect("a link");
    folder.write("older.json", "older");
    // The command fails after it has checked its output.
    for json in [folder.file("dangling"), folder.file("older.json")] {
        let missing = folder.file("missing.json");
        let (code, out, err) = run(&mut isolane(&[
            "doctor", "--from", &missing, "--json", &json,
        ]));
        assert!(code > 1 && out.is_empty(), "{code}: {err}");
    }
    assert!(link.is_symlink());
    let older = std::fs::read_to_string(folder.file("older.json"));
    assert_eq!(older.expect("a file"), "older");
    assert_eq!(std::fs::read_dir(&folder.0).expect("a folder").count(), 2);
}

#[derive(TopicType, Debug, Clone, PartialEq, Default)]
#[topic(appendable)]
struct ShapeType {
    #[topic(key)]
    color: BoundedString<128>,
    x: i32,
    y: i32,
    shapesize: i32,
    #[topic(bound = 16)]
    additional_payload_size: Vec<u8>,
}

/// Participant on the loopback interface whose name, topic and colours are [`ESCAPES`] and line breaks.
struct HostilePeer {
    is_over: Arc<AtomicBool>,
    /// Number of participants that it knows.
    known: Arc<AtomicUsize>,
    /// Number of participants whose lease expired.
    expired: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl HostilePeer {
    fn start() -> Self {
        let mut peer = Self {
            is_over: Arc::default(),
            known: Arc::default(),
            expired: Arc::default(),
            thread: None,
        };
        let is_over = Arc::clone(&peer.is_over);
        let (known, expired) = (Arc::clone(&peer.known), Arc::clone(&peer.expired));
        peer.thread = Some(thread::spawn(move || {
            let text = format!("Square\nSquare{ESCAPES}");
            let participant = Participant::builder(0)
                .name(&text)
                .observable(true)
                .interfaces(Interfaces::Named(vec![String::from("lo")]))
                .peer(Ipv4Addr::LOCALHOST)
                .build()
                .expect("a participant");
            let qos = Qos::reliable().transient_local();
            let writer = participant.create_writer::<ShapeType>("Square", &qos);
            let writer = writer.expect("a writer");
            let reader = participant.create_reader::<ShapeType>("Square", &qos);
            let _reader = reader.expect("a reader");
            let other = participant.create_writer::<ShapeType>(&text, &qos);
            let _other = other.expect("a writer");
            let shape = ShapeType {
                color: text.as_str().try_into().expect("it is short"),
                ..ShapeType::default()
            };
            writer.write(&shape).expect("room");
            while !is_over.load(Ordering::Relaxed) {
                participant.run_for(Duration::from_millis(10));
                known.store(participant.participants().len(), Ordering::Relaxed);
                let counters = participant.counters();
                expired.store(counters.leases_expired, Ordering::Relaxed);
            }
        }));
        peer
    }
}

impl Drop for HostilePeer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the peer has failed");
        }
    }
}

#[test]
fn escapes_of_peers_do_not_reach_the_terminal() {
    in_namespace("escapes_of_peers_do_not_reach_the_terminal", || {
        let peer = HostilePeer::start();
        let on_loopback = ["--interface", "lo", "--peer", "127.0.0.1"];
        for (command, is_endpoint) in [
            (
                &[
                    "sub",
                    "Square",
                    "--durability",
                    "transient-local",
                    "--count",
                    "1",
                ][..],
                true,
            ),
            (&["-vv", "ls", "--seconds", "2"], true),
            (&["-v", "why", "Square", "--seconds", "2"], true),
            (&["top", "--once"], false),
            (
                &[
                    "-v",
                    "spy",
                    "--interface",
                    "lo",
                    "--count",
                    "40",
                    "--seconds",
                    "20",
                ],
                false,
            ),
        ] {
            let mut call = isolane(command);
            if is_endpoint {
                call.args(on_loopback);
            }
            let (_, out, err) = run(&mut call);
            assert_harmless(&format!("{command:?}, output"), &out);
            assert_harmless(&format!("{command:?}, errors"), &err);
            let said = out.clone() + &err;
            assert!(
                said.contains("u{1b}") || said.contains("\\u001b"),
                "{command:?}: {said}"
            );
            let forged = out
                .lines()
                .filter(|line| line.starts_with("Square"))
                .count();
            assert!(forged <= 1, "{command:?}: {out}");
        }
        drop(peer);
    });
}

#[test]
fn a_spy_that_joined_a_domain_leaves_it() {
    in_namespace("a_spy_that_joined_a_domain_leaves_it", || {
        let peer = HostilePeer::start();
        let arguments = ["spy", "--topic", "Square", "--interface", "lo"];
        let mut spy = isolane(&arguments);
        let quiet = spy.stdout(Stdio::null()).stderr(Stdio::null());
        let mut spy = Running(quiet.spawn().expect("the command starts"));
        let eventually = |what: &str, known: usize| {
            let begun = Instant::now();
            while peer.known.load(Ordering::Relaxed) != known {
                assert!(begun.elapsed() < PATIENCE, "never {what}");
                thread::sleep(Duration::from_millis(10));
            }
        };
        eventually("joined", 1);
        let process = spy.pid().to_string();
        let kill = Command::new("kill").args(["-INT", &process]).status();
        assert!(kill.expect("kill exists").success());
        assert_eq!(spy.0.wait().expect("it ends").code(), Some(130));
        eventually("left", 0);
        assert_eq!(peer.expired.load(Ordering::Relaxed), 0, "with a farewell");
    });
}
