//! Tests of pairs of the program, each in a separate network namespace.

#[path = "../../../tests/support/own_namespace.rs"]
mod own_namespace;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use own_namespace::ip;

/// Program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts the program with `out` as its standard output, and the test's standard error.
    fn start(arguments: &str, out: impl Into<Stdio>) -> Self {
        let mut command = Self::command(arguments);
        Self(command.stdout(out).spawn().expect("the program starts"))
    }

    fn command(arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isolane-shape-main"));
        command.args(arguments.split_whitespace());
        command
    }

    fn output(&mut self) -> BufReader<ChildStdout> {
        BufReader::new(self.0.stdout.take().expect("piped"))
    }

    /// The exit code, within ten seconds.
    fn code(&mut self) -> Option<i32> {
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end {
            if let Some(status) = self.0.try_wait().expect("a child") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

#[test]
fn an_output_that_is_closed_or_full_ends_the_program_without_a_panic() {
    let name = "an_output_that_is_closed_or_full_ends_the_program_without_a_panic";
    in_namespace(name, || {
        let mut closed = Running::start("-S -t T", Stdio::piped());
        let _publisher = Running::start("-P -t T -c RED", Stdio::null());
        let mut line = String::new();
        closed.output().read_line(&mut line).expect("a line");
        assert_eq!(closed.code(), Some(0), "closed pipe");

        for arguments in ["-S -t T", "--help"] {
            let full = File::create("/dev/full").expect("/dev/full");
            let code = Running::start(arguments, full).code();
            assert_eq!(code, Some(3), "{arguments}: full");
        }
    });
}

#[test]
fn memory_that_cannot_be_had_ends_the_program_with_the_exit_code_of_the_machine() {
    let name = "memory_that_cannot_be_had_ends_the_program_with_the_exit_code_of_the_machine";
    in_namespace(name, || {
        let mut shell = Command::new("sh");
        // Limit in KiB; the history of samples of 1 MB takes more.
        shell.args(["-c", "ulimit -v 60000; exec \"$0\" \"$@\""]);
        shell.arg(env!("CARGO_BIN_EXE_isolane-shape-main"));
        shell.args("-P -t T -r -k 0 --additional-payload-size 1000000".split(' '));
        let ended = shell.output().expect("sh");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(3), "{said}");
        assert!(
            said.contains("bytes of memory are left for samples"),
            "{said}"
        );
    });
}

#[test]
fn a_full_standard_error_ends_nothing() {
    in_namespace("a_full_standard_error_ends_nothing", || {
        // Without -c the program prints a warning.
        let mut publisher = Running::command("-P -t T --num-iterations 2");
        let full = File::create("/dev/full").expect("/dev/full");
        let publisher = publisher.stdout(Stdio::null()).stderr(full).spawn();
        let mut publisher = Running(publisher.expect("the program starts"));
        assert_eq!(publisher.code(), Some(0));
    });
}

#[test]
fn core_and_priority_are_those_of_the_thread_that_runs_the_loop() {
    let name = "core_and_priority_are_those_of_the_thread_that_runs_the_loop";
    in_namespace(name, || {
        let reader = Running::start("-S -t T --core 0 --priority 5", Stdio::null());
        let end = Instant::now() + Duration::from_secs(10);
        let is_placed = || {
            let of =
                |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", reader.0.id()));
            let (status, stat) = (of("status").expect("it runs"), of("stat").expect("it runs"));
            // proc_pid_stat(5): fields 40 and 41 are priority and policy; the command's name is the second.
            let (_, fields) = stat.rsplit_once(") ").expect("a name");
            let class: Vec<&str> = fields.split(' ').skip(37).take(2).collect();
            status.contains("Cpus_allowed_list:\t0\n") && class == ["5", "1"]
        };
        while !is_placed() {
            assert!(
                Instant::now() < end,
                "neither core nor class are as requested"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        let refused = Running::command("-S -t T --core 1000").output();
        let refused = refused.expect("the program starts");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(3), "{said}");
        assert!(said.contains("core 1000"), "{said}");
    });
}

#[test]
fn a_closed_terminal_ends_the_program_with_a_farewell() {
    in_namespace("a_closed_terminal_ends_the_program_with_a_farewell", || {
        let mut reader = Running::start("-S -t T", Stdio::piped());
        let mut publisher = Running::start("-P -t T -c RED", Stdio::null());
        let mut lines = reader.output().lines();
        let mut until = |words: &str| {
            let mut lines = lines.by_ref().map(|line| line.expect("text"));
            assert!(lines.any(|line| line.contains(words)), "never {words}");
        };
        until("matched writers 1 (change = 1)");
        let killed = Command::new("kill")
            .args(["-HUP", &publisher.0.id().to_string()])
            .status();
        assert!(killed.expect("kill exists").success());
        assert_eq!(publisher.code(), Some(0));
        until("matched writers 0 (change = -1)");
    });
}

#[test]
fn an_ignored_hangup_stays_ignored() {
    in_namespace("an_ignored_hangup_stays_ignored", || {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]);
        shell.arg(env!("CARGO_BIN_EXE_isolane-shape-main"));
        let started = shell.args(["-S", "-t", "T"]).stdout(Stdio::piped()).spawn();
        let mut reader = Running(started.expect("sh"));
        let mut output = reader.output();
        let mut lines = String::new();
        while !lines.contains("Create reader") {
            assert_ne!(output.read_line(&mut lines).expect("text"), 0, "{lines}");
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", reader.0.id()));
        let status = status.expect("it runs");
        let mask = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            u64::from_str_radix(line.expect("a mask").trim(), 16).expect("hexadecimal")
        };
        const HANGUP: u64 = 1;
        assert_eq!((mask("SigIgn:") & HANGUP, mask("SigCgt:") & HANGUP), (1, 0));
    });
}

#[test]
fn colours_of_peers_stay_in_their_line_and_do_not_reach_the_terminal() {
    let name = "colours_of_peers_stay_in_their_line_and_do_not_reach_the_terminal";
    in_namespace(name, || {
        let mut reader = Running::start("-S -t T --num-iterations 600", Stdio::piped());
        let mut writer = Running::command("-P -t T");
        let writer = writer.args(["-c", "\u{1b}[2J\nT\u{202e}"]);
        let _writer = Running(writer.stdout(Stdio::null()).spawn().expect("it starts"));
        let lines = reader.output().lines().map(|line| line.expect("text"));
        let of_topic = |line: &String| line.starts_with('T');
        let line = lines.into_iter().find(of_topic).expect("a sample");
        let expected = "T          \\u001b[2J\\u000aT\\u202e ";
        assert!(line.starts_with(expected), "{line:?}");
    });
}

/// Runs the body of a test in a namespace with a multicast interface.
fn in_namespace(test: &str, inside: impl FnOnce()) {
    own_namespace::in_namespace(test, || {
        ip("link add shape0 type veth peer name shape1");
        ip("address add 10.9.0.1/24 dev shape0");
        ip("link set shape0 up");
        ip("link set shape1 up");
        inside();
    });
}

/// Distinct words at a position of a reader's sample lines, until there are `enough`.
fn seen(reader: &mut Running, place: usize, enough: usize) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for line in reader.output().lines() {
        let line = line.expect("text");
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "T" && words.len() > 3 {
            seen.insert(words[place].to_owned());
        }
        if seen.len() == enough {
            break;
        }
    }
    seen
}

#[test]
fn a_reader_takes_samples_of_a_mebibyte() {
    in_namespace("a_reader_takes_samples_of_a_mebibyte", || {
        let mut reader = Running::start("-S -t T --num-iterations 100", Stdio::piped());
        let payload = "--additional-payload-size 1048576";
        let writer = format!("-P -t T -c RED --write-period 200 {payload}");
        let _writer = Running::start(&writer, Stdio::null());
        assert_eq!(seen(&mut reader, 1, 1).len(), 1);
    });
}

#[test]
fn a_reader_sees_three_hundred_instances() {
    in_namespace("a_reader_sees_three_hundred_instances", || {
        let mut reader = Running::start("-S -t T -k 1 --num-iterations 100", Stdio::piped());
        let writer = "-P -t T -c RED -k 1 --num-instances 300 --write-period 100";
        let _writer = Running::start(writer, Stdio::null());
        assert_eq!(seen(&mut reader, 1, 300).len(), 300);
    });
}

#[test]
fn warnings_of_the_library_are_printed_by_default() {
    let name = "warnings_of_the_library_are_printed_by_default";
    in_namespace(name, || {
        let mut reader = Command::new(env!("CARGO_BIN_EXE_isolane-shape-main"));
        reader.args(["-S", "-t", "T", "-r"]);
        reader.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut reader = Running(reader.spawn().expect("the program starts"));
        let _writer = Running::start("-P -t T -c RED -b", Stdio::null());
        let errors = reader.0.stderr.take().expect("piped");
        let mut lines = BufReader::new(errors).lines();
        let line = lines.find(|line| {
            let line = line.as_ref().expect("text");
            line.starts_with("WARN") && line.contains("they do not match")
        });
        assert!(line.is_some());
    });
}
