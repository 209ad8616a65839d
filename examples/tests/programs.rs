//! Tests that the examples do what their comments say.
//!
//! The program runs itself again in a network namespace with a veth pair, because discovery multicasts. Without the
//! right to do so it prints a message, and fails in CI.

use std::{
    env,
    io::{BufRead, BufReader},
    panic::catch_unwind,
    process::{Child, Command, ExitCode, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

const INSIDE: &str = "ISOLANE_INSIDE_NAMESPACE";
const INTERFACE: &str = "ip link add v0 type veth peer name v1 && ip address add 10.91.0.1/24 dev v0 \
                         && ip link set v0 up && ip link set v1 up && ip link set lo up && exec \"$0\"";
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    if env::var_os(INSIDE).is_none() {
        return run_in_namespace();
    }
    let cases: [(&str, fn()); 7] = [
        ("hello", hello),
        ("threads", threads),
        ("request_reply", request_reply),
        ("keyed_lamps", keyed_lamps),
        ("critical_lane", critical_lane),
        ("own_loops", own_loops),
        ("chatter", chatter),
    ];
    let mut failed = 0;
    for (name, case) in cases {
        let is_passed = catch_unwind(case).is_ok();
        failed += usize::from(!is_passed);
        println!(
            "test {name} ... {}",
            if is_passed { "ok" } else { "FAILED" }
        );
    }
    ExitCode::from(u8::from(failed > 0))
}

fn run_in_namespace() -> ExitCode {
    let is_allowed = Command::new("unshare").args(["--net", "true"]).status();
    if !is_allowed.is_ok_and(|status| status.success()) {
        println!("this takes root, for a network namespace: nothing was tried");
        return ExitCode::from(u8::from(env::var_os("CI").is_some()));
    }
    let status = Command::new("unshare")
        .args(["--net", "sh", "-c", INTERFACE])
        .arg(env::current_exe().expect("this program"))
        .env(INSIDE, "1")
        .status();
    match status.expect("unshare, of util-linux").success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
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

fn hello() {
    let _publisher = Program::start(env!("CARGO_BIN_EXE_hello_publisher"), &[]);
    let subscriber = Program::start(env!("CARGO_BIN_EXE_hello_subscriber"), &[]);
    subscriber.expect(": hello");
}

fn threads() {
    let program = Program::start(env!("CARGO_BIN_EXE_threads"), &[]);
    program.expect("0.5");
    program.expect("2.5");
    program.succeeds();
}

fn request_reply() {
    let path = env!("CARGO_BIN_EXE_request_reply");
    let _server = Program::start(path, &["serve"]);
    let client = Program::start(path, &["6", "7"]);
    client.expect("42");
    client.succeeds();
}

fn keyed_lamps() {
    let program = Program::start(env!("CARGO_BIN_EXE_keyed_lamps"), &[]);
    program.expect("kitchen: on");
    program.expect("a lamp was removed");
    program.succeeds();
}

fn critical_lane() {
    let program = Program::start(env!("CARGO_BIN_EXE_critical_lane"), &["v0"]);
    program.expect("datapath: xdp");
    program.expect("100000");
}

fn own_loops() {
    let _publisher = Program::start(env!("CARGO_BIN_EXE_hello_publisher"), &[]);
    for path in [
        env!("CARGO_BIN_EXE_mio_loop"),
        env!("CARGO_BIN_EXE_tokio_loop"),
    ] {
        Program::start(path, &[]).expect(": hello");
    }
}

fn chatter() {
    let path = env!("CARGO_BIN_EXE_chatter");
    let _talker = Program::start(path, &["talk"]);
    Program::start(path, &["listen"]).expect("Hello World");
}
