//! Two hosts in network namespaces of their own, joined by a veth pair:
//!
//! ```text
//!   here (the calling thread)                    there
//!   host-a 10.78.0.1/24  ======veth======  host-b 10.78.0.2/24
//! ```
//!
//! Only descriptors of this process hold the namespaces: when the test ends, by whatever end, the
//! kernel takes them down with all that is in them.

#![allow(
    dead_code,
    reason = "each test and example uses a part of what is here"
)]

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Where the test runs.
pub(crate) const HERE: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
/// The other host.
pub(crate) const THERE: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);

/// The other host's namespace.
pub(crate) struct Hosts {
    there: File,
}

impl Hosts {
    /// Moves the calling thread, a test's own, into a new namespace, and joins it with another.
    pub(crate) fn new() -> Hosts {
        Hosts::with_queues(1)
    }

    /// The same, with so many queues at both ends.
    pub(crate) fn with_queues(queues: u32) -> Hosts {
        enter_new_namespace();
        let there = thread::spawn(enter_new_namespace)
            .join()
            .expect("a namespace for the other host");
        let hosts = Hosts { there };
        let queues = format!("numtxqueues {queues} numrxqueues {queues}");
        ip(&format!(
            "link add host-a {queues} type veth peer name host-b {queues}"
        ));
        ip(&format!("link set host-b netns {}", hosts.path()));
        for host in ["a", "b"] {
            let set_up = || {
                set("net/ipv6/conf/all/disable_ipv6", "1");
                ip("link set lo up");
                ip(&format!("link set host-{host} up"));
            };
            match host {
                "a" => set_up(),
                _ => hosts.there(set_up),
            }
        }
        ip(&format!("address add {HERE}/24 dev host-a"));
        hosts.there(|| ip(&format!("address add {THERE}/24 dev host-b")));
        hosts
    }

    /// A name for the other namespace that `ip` understands.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.there.as_raw_fd())
    }

    /// Runs something on this thread, in the other host's namespace: what is opened there stays there.
    pub(crate) fn visit<T>(&self, work: impl FnOnce() -> T) -> T {
        let network = Some(LinkNameSpaceType::Network);
        let here = File::open("/proc/thread-self/ns/net").expect("this thread's namespace");
        move_into_link_name_space(self.there.as_fd(), network).expect("the way there");
        let value = work();
        move_into_link_name_space(here.as_fd(), network).expect("the way back");
        value
    }

    /// Runs something on the other host.
    pub(crate) fn there<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let enter_and_work = || {
            move_into_link_name_space(self.there.as_fd(), Some(LinkNameSpaceType::Network))
                .expect("to enter a namespace, which needs root");
            work()
        };
        thread::scope(|scope| scope.spawn(enter_and_work).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// The calling thread gets a namespace of its own.
fn enter_new_namespace() -> File {
    // SAFETY: only the calling thread changes its network namespace; no memory and no descriptor
    // table is involved.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("a network namespace, which needs root");
    File::open("/proc/thread-self/ns/net").expect("the namespace that was just made")
}

/// What `ip` says, in the calling thread's namespace.
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

/// The index of an interface.
pub(crate) fn index_of(interface: &str) -> u32 {
    let shown = ip(&format!("-o link show dev {interface}"));
    let (index, _) = shown.split_once(':').expect("an index in front");
    index.trim().parse().expect("a number")
}

/// The hardware address of an interface.
pub(crate) fn mac_of(interface: &str) -> [u8; 6] {
    let shown = ip(&format!("-o link show dev {interface}"));
    let mut words = shown.split_whitespace();
    words.find(|word| *word == "link/ether");
    let mac = words.next().expect("a hardware address");
    let mut bytes = mac.split(':').map(|byte| u8::from_str_radix(byte, 16));
    std::array::from_fn(|_| bytes.next().expect("six bytes").expect("a byte"))
}

/// Tries until it succeeds, for at most half a minute.
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
