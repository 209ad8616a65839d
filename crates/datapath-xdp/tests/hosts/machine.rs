//! Queries of the machine that a test runs on, in the calling thread's namespace, and time limits.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// What `ip` says.
///
/// # Panics
/// If it refuses, or is not there.
pub(crate) fn ip(arguments: &str) -> String {
    output(Command::new("ip").args(arguments.split_whitespace()))
}

/// What a program says.
///
/// # Panics
/// If it fails.
pub(crate) fn output(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} (packages iproute2, ethtool): {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Sets a value below `/proc/sys`.
pub(crate) fn set(name: &str, value: &str) {
    std::fs::write(format!("/proc/sys/{name}"), value)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
}

/// Returns the index of an interface.
pub(crate) fn index_of(interface: &str) -> u32 {
    let shown = ip(&format!("-o link show dev {interface}"));
    let (index, _) = shown.split_once(':').expect("an index in front");
    index.trim().parse().expect("a number")
}

/// Returns the hardware address of an interface.
pub(crate) fn mac_of(interface: &str) -> [u8; 6] {
    let shown = ip(&format!("-o link show dev {interface}"));
    let mut words = shown.split_whitespace();
    words.find(|word| *word == "link/ether");
    let mac = words.next().expect("a hardware address");
    let mut bytes = mac.split(':').map(|byte| u8::from_str_radix(byte, 16));
    std::array::from_fn(|_| bytes.next().expect("six bytes").expect("a byte"))
}

/// Repeats an attempt until it succeeds, for at most half a minute.
pub(crate) fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
