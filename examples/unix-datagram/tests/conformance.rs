//! Tests of the datapath: its conformance, and `pub` and `sub` over it in two processes.
//!
//! The program runs itself again in a network namespace, which has its own abstract sockets and queue length. Without
//! the right to do so it prints a message, and fails in CI.

use std::panic::catch_unwind;
use std::process::{Command, ExitCode, Stdio};

use isolane_datapath::NetworkConfig;
use isolane_testkit::conformance::{Fixture, Options, unicast_cases};
use isolane_unix_datagram::{Unix, UnixOptions};

/// Longer than a burst, and shorter than the number of datagrams that the case of an undrained lane sends.
const QUEUE_LENGTH: &str = "64";
const INSIDE: &str = "ISOLANE_INSIDE_NAMESPACE";
const ISOLANE: &str = env!("CARGO_BIN_EXE_isolane-unix");

/// Sockets of this process.
struct UnixSockets;

impl Fixture for UnixSockets {
    type Datapath = Unix;

    const PUSHES_BACK: bool = true;

    fn new() -> Self {
        Self
    }

    fn attach(&mut self, options: &Options) -> Unix {
        let network = NetworkConfig {
            pool: options.pool,
            ..NetworkConfig::new(97)
        };
        Unix::new(UnixOptions::default(), network).expect("domain 97 has ports")
    }
}

fn main() -> ExitCode {
    if std::env::var_os(INSIDE).is_none() {
        return run_in_namespace();
    }
    std::fs::write("/proc/sys/net/unix/max_dgram_qlen", QUEUE_LENGTH)
        .expect("a sysctl of the namespace");
    let mut cases = unicast_cases::<UnixSockets>();
    cases.push(("pub_and_sub_exchange_samples", pub_and_sub_exchange_samples));
    cases.push((
        "an_option_of_the_command_line_is_checked",
        an_option_of_the_command_line_is_checked,
    ));
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
        return ExitCode::from(u8::from(std::env::var_os("CI").is_some()));
    }
    let program = std::env::current_exe().expect("this program");
    let mut inside = Command::new("unshare");
    let status = inside.arg("--net").arg(program).env(INSIDE, "1").status();
    match status.expect("unshare, of util-linux").success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn isolane(arguments: &str) -> Command {
    let mut command = Command::new(ISOLANE);
    command
        .args(arguments.split(' '))
        .current_dir(std::env::temp_dir())
        .env_remove("ISOLANE_CONFIG")
        .env_remove("ISOLANE_DOMAIN");
    command
}

fn pub_and_sub_exchange_samples() {
    let common = "Square --datapath unix --peer 127.0.0.1 --reliable";
    let mut publisher = isolane(&format!("pub {common} --seconds 30"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let subscriber = isolane(&format!("sub {common} --count 5 --seconds 25")).output();
    publisher.kill().expect("it runs");
    publisher.wait().expect("it has ended");
    let subscriber = subscriber.expect("the command runs");
    let text = String::from_utf8_lossy(&subscriber.stdout);
    assert!(
        subscriber.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&subscriber.stderr)
    );
    assert_eq!(
        text.lines().filter(|line| line.contains("BLUE")).count(),
        5,
        "{text}"
    );
}

fn an_option_of_the_command_line_is_checked() {
    let listed = isolane("datapaths").output().expect("the command runs");
    assert!(
        String::from_utf8_lossy(&listed.stdout).contains("send_buffer_bytes (default: 262144)")
    );
    let refused = isolane("sub Square --datapath unix:send_buffer_bytes=1").output();
    let refused = refused.expect("the command runs");
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(
        text.contains("a whole number from 65536 to 16777216"),
        "{text}"
    );
}
