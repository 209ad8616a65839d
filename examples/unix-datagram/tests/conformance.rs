//! Tests of the datapath: its conformance, and `pub` and `sub` over it in two processes.

#[path = "../../../tests/support/own_namespace.rs"]
mod own_namespace;

use std::panic::catch_unwind;
use std::process::{Command, Stdio};

use isolane_datapath::NetworkConfig;
use isolane_testkit::conformance::{Fixture, Options, unicast_cases};
use isolane_unix_datagram::{Unix, UnixOptions};

/// Longer than a burst, and shorter than the number of datagrams that the case of an undrained lane sends.
const QUEUE_LENGTH: &str = "64";
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

/// Runs the body of a test in a namespace, which has its own abstract sockets and queue length.
fn in_namespace(test: &str, inside: impl FnOnce()) {
    own_namespace::in_namespace(test, || {
        std::fs::write("/proc/sys/net/unix/max_dgram_qlen", QUEUE_LENGTH)
            .expect("a sysctl of the namespace");
        inside();
    });
}

#[test]
fn the_datapath_conforms() {
    in_namespace("the_datapath_conforms", || {
        let cases = unicast_cases::<UnixSockets>().into_iter();
        let failed: Vec<_> = cases
            .filter(|(_, case)| catch_unwind(case).is_err())
            .map(|(name, _)| name)
            .collect();
        assert!(failed.is_empty(), "{failed:?}");
    });
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

#[test]
fn pub_and_sub_exchange_samples() {
    in_namespace("pub_and_sub_exchange_samples", || {
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
    });
}

#[test]
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
