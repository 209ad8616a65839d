//! Pairs of the program in a network namespace of their own.

#[path = "../../../tests/support/own_namespace.rs"]
mod own_namespace;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use own_namespace::ip;

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts the program; its standard output goes where it is told, errors to the test's.
    fn start(arguments: &str, out: impl Into<Stdio>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isolane-shape-main"));
        command.args(arguments.split_whitespace()).stdout(out);
        Self(command.spawn().expect("the program starts"))
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

        let full = File::create("/dev/full").expect("/dev/full");
        assert_eq!(Running::start("-S -t T", full).code(), Some(3), "full");
    });
}

/// Runs a test's inside in a namespace with an interface that multicasts.
fn in_namespace(test: &str, inside: impl FnOnce()) {
    own_namespace::in_namespace(test, || {
        ip("link add shape0 type veth peer name shape1");
        ip("address add 10.9.0.1/24 dev shape0");
        ip("link set shape0 up");
        ip("link set shape1 up");
        inside();
    });
}

/// The distinct words at a place of a reader's lines of samples, until there are `enough`.
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
