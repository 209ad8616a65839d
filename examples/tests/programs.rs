//! Tests that the examples do what their comments say, each in a network namespace, because discovery multicasts.

#[path = "../../tests/support/own_namespace.rs"]
mod own_namespace;

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use isolane::{Participant, Qos, TopicType};
use own_namespace::ip;

const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the body of a test in a namespace with a multicast interface.
fn in_namespace(test: &str, inside: impl FnOnce()) {
    own_namespace::in_namespace(test, || {
        ip("link add v0 type veth peer name v1");
        ip("address add 10.91.0.1/24 dev v0");
        ip("link set v0 up");
        ip("link set v1 up");
        inside();
    });
}

/// Example that runs until this is dropped.
struct Program {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Program {
    fn start(path: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(path)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the example is built");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let mut lines = output.lines().map_while(Result::ok);
            lines.try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// Waits for a line that contains this text.
    fn expect(&self, text: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(text) => return,
                Ok(_) => {}
                Err(error) => panic!("no line with {text:?}: {error}"),
            }
        }
    }

    fn succeeds(mut self) {
        assert!(self.child.wait().expect("it was started").success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // An example that has ended by itself is not killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn hello() {
    in_namespace("hello", || {
        let _publisher = Program::start(env!("CARGO_BIN_EXE_hello_publisher"), &[]);
        let subscriber = Program::start(env!("CARGO_BIN_EXE_hello_subscriber"), &[]);
        subscriber.expect(": hello");
    });
}

/// A type with the name of the examples' type, and other members.
#[derive(TopicType)]
#[topic(name = "Greeting")]
struct Other {
    number: u16,
}

#[test]
fn other_type() {
    in_namespace("other_type", || {
        let subscriber = Program::start(env!("CARGO_BIN_EXE_hello_subscriber"), &[]);
        let participant = Participant::builder(0).build().expect("a participant");
        let writer = participant.create_writer::<Other>("Greetings", &Qos::reliable());
        let writer = writer.expect("a writer");
        assert!(participant.run_until(PATIENCE, || writer.matched_readers() > 0));
        writer.write(&Other { number: 1 }).expect("written");
        assert!(writer.wait_for_acknowledgments(PATIENCE));
        let _publisher = Program::start(env!("CARGO_BIN_EXE_hello_publisher"), &[]);
        subscriber.expect(": hello");
    });
}

#[test]
fn threads() {
    in_namespace("threads", || {
        let program = Program::start(env!("CARGO_BIN_EXE_threads"), &[]);
        program.expect("0.5");
        program.expect("2.5");
        program.succeeds();
    });
}

#[test]
fn request_reply() {
    in_namespace("request_reply", || {
        let path = env!("CARGO_BIN_EXE_request_reply");
        let _server = Program::start(path, &["serve"]);
        let client = Program::start(path, &["6", "7"]);
        client.expect("42");
        client.succeeds();
    });
}

#[test]
fn keyed_lamps() {
    in_namespace("keyed_lamps", || {
        let program = Program::start(env!("CARGO_BIN_EXE_keyed_lamps"), &[]);
        program.expect("kitchen: on");
        program.expect("a lamp was removed");
        program.succeeds();
    });
}

#[test]
fn critical_lane() {
    in_namespace("critical_lane", || {
        let program = Program::start(env!("CARGO_BIN_EXE_critical_lane"), &["v0"]);
        // A user namespace, which maps some users only, has no right to lanes.
        let users = fs::read_to_string("/proc/self/uid_map").expect("a map of users");
        let has_all = users.contains("4294967295");
        program.expect(if has_all {
            "datapath: xdp"
        } else {
            "datapath: "
        });
        program.expect("100000");
    });
}

#[test]
fn own_loops() {
    in_namespace("own_loops", || {
        let _publisher = Program::start(env!("CARGO_BIN_EXE_hello_publisher"), &[]);
        for path in [
            env!("CARGO_BIN_EXE_mio_loop"),
            env!("CARGO_BIN_EXE_tokio_loop"),
        ] {
            Program::start(path, &[]).expect(": hello");
        }
    });
}

#[test]
fn chatter() {
    in_namespace("chatter", || {
        let path = env!("CARGO_BIN_EXE_chatter");
        let _talker = Program::start(path, &["talk"]);
        Program::start(path, &["listen"]).expect("Hello World");
    });
}
