//! Files that were made to harm whoever reads them, and outputs that take nothing.

mod command;

use std::fs::File;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use command::{Folder, PATIENCE, Running, isolane, run};

/// Clears the screen and sets the window's title, in C0 and C1 form, and turns the text around.
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
        // Without a reader it waits in open(2) or for one, whether or not it has taken the signals over.
        thread::sleep(Duration::from_millis(2_500));
        if let Ok(Some(code)) = running.0.try_wait() {
            // Capturing takes a right.
            assert_eq!((command[0], code.code()), ("spy", Some(3)));
            continue;
        }
        let process = running.pid().to_string();
        let told = Command::new("kill").args(["-INT", &process]).status();
        assert!(told.expect("kill exists").success());
        let begun = Instant::now();
        while running.0.try_wait().expect("ours").is_none() {
            assert!(begun.elapsed() < PATIENCE, "{command:?} goes on");
            thread::sleep(Duration::from_millis(20));
        }
    }
}
