//! Tests of completion scripts, manual pages and help, for every command that is not hidden.

use std::io::Write;
use std::process::{Command, Stdio};

/// Every command, with its subcommands.
const COMMANDS: [&str; 30] = [
    "demo",
    "pub",
    "sub",
    "ls",
    "why",
    "spy",
    "top",
    "config",
    "datapaths",
    "doctor",
    "tune",
    "tune-plan",
    "tune-apply",
    "tune-status",
    "tune-verify",
    "tune-ports",
    "tune-learn",
    "tune-answer",
    "tune-export",
    "tune-rollback",
    "bench",
    "bench-compare",
    "bench-list",
    "bench-report",
    "bench-rtt",
    "bench-run",
    "bench-show",
    "bench-throughput",
    "completions",
    "man",
];

fn isolane(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_isolane"))
        .args(arguments)
        .output()
        .expect("the command starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn completions_know_every_command_and_nothing_that_is_not_for_people() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = isolane(&["completions", shell]);
        for command in COMMANDS {
            let name = command.rsplit('-').next().expect("a name");
            assert!(script.contains(name), "{shell} does not know {command}");
        }
        assert!(script.contains("kind"), "{shell} does not know options");
        assert!(!script.contains("child"), "{shell}");
    }
}

#[test]
fn bash_accepts_its_script_and_completes_with_it() {
    let script = isolane(&["completions", "bash"]);
    let mut bash = Command::new("bash")
        .arg("-n")
        .stdin(Stdio::piped())
        .spawn()
        .expect("bash");
    let mut input = bash.stdin.take().expect("piped");
    input.write_all(script.as_bytes()).expect("it reads");
    drop(input);
    assert!(bash.wait().expect("it ends").success());

    // Typed words, and the completion of the last one.
    let completed = [
        (["isolane", "do"].as_slice(), "doctor"),
        (&["isolane", "pub", "--durability", "tr"], "transient-local"),
        (&["isolane", "spy", "--kind", "sp"], "spdp"),
    ];
    for (words, expected) in completed {
        let [.., before, last] = words else {
            panic!("two words at least")
        };
        let ask = format!(
            "COMP_WORDS=({}); COMP_CWORD={}; _isolane isolane {last} {before}; \
             echo \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words.len() - 1
        );
        let output = Command::new("bash")
            .args(["--norc", "-c", &format!("{script}\n{ask}")])
            .output()
            .expect("bash");
        let becomes = String::from_utf8_lossy(&output.stdout);
        assert_eq!(becomes.trim(), expected, "{words:?}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = std::env::temp_dir().join(format!("isolane-man-{}", std::process::id()));
    isolane(&["man", folder.to_str().expect("UTF-8")]);
    let mut pages: Vec<String> = std::fs::read_dir(&folder)
        .expect("the directory is made")
        .map(|entry| {
            let name = entry.expect("an entry").file_name();
            name.into_string().expect("UTF-8")
        })
        .collect();
    pages.sort();
    let mut expected: Vec<String> = COMMANDS
        .iter()
        .map(|command| format!("isolane-{command}.1"))
        .collect();
    expected.push(String::from("isolane.1"));
    expected.sort();
    assert_eq!(pages, expected);
    for page in pages {
        let text = std::fs::read_to_string(folder.join(&page)).expect("a page");
        assert!(
            text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"),
            "{page}"
        );
        for section in ["EXAMPLES", "\"SEE ALSO\"", "\"EXIT STATUS\""] {
            let begins = format!("\n.SH {section}\n");
            assert!(text.contains(&begins), "{page} has no {section}: {text}");
        }
        assert!(!text.contains("EXTRA"), "{page}: {text}");
        assert!(
            text.contains("130 interrupted"),
            "{page} has the exit codes"
        );
    }
    let _ = std::fs::remove_dir_all(&folder);
    assert!(isolane(&["man"]).contains(".TH isolane 1"));
}

#[test]
fn a_directory_that_cannot_be_made_is_said() {
    let output = Command::new(env!("CARGO_BIN_EXE_isolane"))
        .args(["man", "/proc/nowhere"])
        .output()
        .expect("the command starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("/proc/nowhere") && said.contains("to do:"),
        "{said}"
    );
}

#[test]
fn the_help_of_every_command_has_examples_and_what_else_there_is() {
    for command in COMMANDS {
        // `bench-rtt` is the name of a page; the command is `bench rtt`.
        let mut words: Vec<&str> = command.split('-').collect();
        words.push("--help");
        let help = isolane(&words);
        for said in ["Examples:", "See also:", "Exit codes:", "isolane "] {
            assert!(help.contains(said), "{command}: no {said} in\n{help}");
        }
    }
    let help = isolane(&["--help"]);
    assert!(help.contains("isolane demo") && help.contains("isolane sub Square"));
}

#[test]
fn every_help_fits_one_screen() {
    const LINES: usize = 50;
    const COLUMNS: usize = 100;
    let mut too_long = Vec::new();
    for command in std::iter::once("").chain(COMMANDS) {
        let words = command.split('-').filter(|word| !word.is_empty());
        let words: Vec<&str> = words.chain(["--help"]).collect();
        let help = isolane(&words);
        let lines = help.lines().count();
        let columns = help.lines().map(|line| line.chars().count()).max();
        if lines > LINES || columns > Some(COLUMNS) {
            too_long.push(format!("{command}: {lines} lines, {columns:?} columns"));
        }
    }
    assert!(too_long.is_empty(), "{too_long:#?}");
}

#[test]
fn the_first_help_has_the_ten_commands_of_a_beginner_before_the_others() {
    let help = isolane(&["--help"]);
    let place = |word: &str| {
        help.find(&format!("\n  {word} "))
            .unwrap_or_else(|| panic!("no {word} in\n{help}"))
    };
    let more = help.find("\nMore:\n").expect("a heading");
    let first = [
        "demo", "pub", "sub", "ls", "why", "spy", "top", "doctor", "config", "tune",
    ];
    assert!(first.iter().all(|word| place(word) < more), "{help}");
    let others = ["bench", "datapaths", "completions", "man"];
    assert!(others.iter().all(|word| place(word) > more), "{help}");
    assert!(!help.contains("\n  child"), "{help}");
}

#[test]
fn the_page_of_a_command_explains_more_than_its_help() {
    let (help, page) = (isolane(&["ls", "--help"]), isolane(&["man", "ls"]));
    let said = "announcements go to the ports of participants 1 to 10";
    assert!(!help.contains(said), "{help}");
    assert!(page.replace('\n', " ").contains(said), "{page}");
    assert!(isolane(&["man", "tune-plan"]).contains("tune plan"));
}

#[test]
fn no_help_names_an_option_that_the_command_refuses() {
    let takes = |words: &[&str], option: &str| {
        let words: Vec<&str> = words.iter().copied().chain(["--help"]).collect();
        isolane(&words).contains(option)
    };
    for words in [
        &["demo"][..],
        &["bench", "rtt"],
        &["completions"],
        &["man"],
        &["tune", "apply"],
        &["tune", "rollback"],
    ] {
        for option in ["--domain", "--interface <", "--config"] {
            assert!(!takes(words, option), "{words:?} names {option}");
        }
        assert!(takes(words, "--verbose"), "{words:?}");
    }
    for words in [&["config"][..], &["doctor"], &["tune", "plan"], &["top"]] {
        assert!(takes(words, "--domain") && !takes(words, "--interface <"));
    }
    assert!(!takes(&["top"], "--config"));
    assert!(takes(&["tune", "ports"], "--interface <") && !takes(&["tune", "ports"], "--config"));
    assert!(takes(&["ls"], "--interface <"));
    // These options are known, and refused with a reason (command_line.rs).
}

#[test]
fn help_is_a_command_too() {
    assert_eq!(isolane(&["help", "spy"]), isolane(&["spy", "--help"]));
    assert_eq!(isolane(&["help"]), isolane(&["--help"]));
}
