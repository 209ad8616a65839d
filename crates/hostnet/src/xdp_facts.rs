//! Kernel, rights and interface, as far as lanes depend on them. What cannot be known is `None`.

use std::fs;
use std::io;

use netlink_packet_route::link::{LinkAttribute, LinkFlags};
use serde::{Deserialize, Serialize};

use crate::capabilities;
use crate::ethtool::ioctl;
use crate::ethtool::legacy::{self, Channels};
use crate::link::{self, index_of};
use crate::netdev::Netdev;

/// Whether AF_XDP sockets can be opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sockets {
    /// Yes.
    #[default]
    Granted,
    /// The kernel has them, and this process may not.
    Refused,
    /// The kernel has none, or something forbids the family.
    Absent,
}

/// What the kernel says of a driver and XDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Features {
    /// It runs programs itself.
    pub runs_programs: bool,
    /// These can redirect, as to an AF_XDP socket.
    pub redirects: bool,
    /// The device reads and writes frames itself.
    pub has_zero_copy: bool,
}

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Device {
    /// Its index.
    pub index: u32,
    /// It was switched on.
    pub is_up: bool,
    /// It has a carrier.
    pub has_carrier: bool,
    /// It has an IPv4 address.
    pub has_address: bool,
    /// Bytes of its largest packet.
    pub mtu_bytes: Option<u32>,
    /// Its driver.
    pub driver: Option<String>,
    /// What the driver does with XDP, where the kernel says so (Linux 6.7).
    pub features: Option<Features>,
    /// Who is on its XDP hook.
    pub program: Option<String>,
    /// Receive queues it was made with.
    pub made_receive_queues: Option<u32>,
    /// Queues in use, where the driver counts them.
    pub channels: Option<Channels>,
    /// Queues that AF_XDP sockets of somebody are bound to, where the kernel says so (Linux 6.14).
    pub taken_queues: Vec<u32>,
    /// Whether it takes VLAN tags off received frames.
    pub strips_vlan_tags: Option<bool>,
}

impl Device {
    /// Receive queues in use.
    #[must_use]
    pub fn receive_queues(&self) -> Option<u32> {
        let counted = self.channels.map(|channels| channels.receiving());
        counted
            .filter(|count| *count > 0)
            .or(self.made_receive_queues)
    }
}

/// What lanes would stand on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct XdpFacts {
    /// The kernel's release, `6.12.5`.
    pub kernel_release: String,
    /// Names of capabilities that loading the classifier takes and this process lacks.
    pub missing_capabilities: Vec<String>,
    /// Its capabilities are those of a user namespace.
    pub is_in_user_namespace: bool,
    /// Who may use bpf(2) without rights: 0 everybody, 1 and 2 nobody.
    pub unprivileged_bpf_disabled: Option<u8>,
    /// What is locked: "none", "integrity", "confidentiality".
    pub lockdown: Option<String>,
    /// Whether AF_XDP sockets can be opened.
    pub sockets: Sockets,
    /// Bytes of memory that may be registered; `None`: any.
    pub lockable_bytes: Option<u64>,
    /// The interface's name.
    pub interface: String,
    /// The interface, if it is there.
    pub device: Option<Device>,
}

impl XdpFacts {
    /// Looks at the machine, and at an interface of the calling thread's network namespace.
    #[must_use]
    pub fn look(interface: &str) -> XdpFacts {
        let setting = |path: &str| fs::read_to_string(path).ok();
        XdpFacts {
            kernel_release: capabilities::kernel_release(),
            missing_capabilities: capabilities::missing()
                .0
                .into_iter()
                .map(String::from)
                .collect(),
            is_in_user_namespace: capabilities::in_user_namespace(),
            unprivileged_bpf_disabled: setting("/proc/sys/kernel/unprivileged_bpf_disabled")
                .and_then(|text| text.trim().parse().ok()),
            lockdown: setting("/sys/kernel/security/lockdown").and_then(|text| chosen(&text)),
            sockets: sockets(),
            lockable_bytes: lockable_bytes(),
            interface: interface.to_owned(),
            device: index_of(interface).and_then(|index| device(interface, index)),
        }
    }

    /// Whether the kernel is at least this release.
    #[must_use]
    pub fn is_kernel_since(&self, major: u32, minor: u32) -> bool {
        capabilities::is_since(&self.kernel_release, major, minor)
    }
}

/// The word in brackets: "none [integrity] confidentiality".
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// Opens a socket of the family and closes it again: nothing is bound, nothing else is touched.
fn sockets() -> Sockets {
    // SAFETY: no memory is involved.
    let descriptor = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if descriptor < 0 {
        return match io::Error::last_os_error().raw_os_error() {
            Some(libc::EAFNOSUPPORT) => Sockets::Absent,
            _ => Sockets::Refused,
        };
    }
    // SAFETY: the descriptor was just made, and is nobody else's.
    unsafe { libc::close(descriptor) };
    Sockets::Granted
}

/// Memory registered with a device counts as locked, unless the process has CAP_IPC_LOCK.
fn lockable_bytes() -> Option<u64> {
    const CAP_IPC_LOCK: u32 = 14;
    if capabilities::has(CAP_IPC_LOCK) {
        return None;
    }
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes into a limit that is alive during the call.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    (result == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

fn device(name: &str, index: u32) -> Option<Device> {
    let link = link::describe(index).ok()?;
    let mut device = Device {
        index,
        driver: ioctl::driver(name),
        channels: legacy::channels(name),
        strips_vlan_tags: legacy::strips_vlan_tags(name),
        ..Device::default()
    };
    device.is_up = link.header.flags.contains(LinkFlags::Up);
    device.has_carrier = link.header.flags.contains(LinkFlags::LowerUp);
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::Mtu(bytes) => device.mtu_bytes = Some(*bytes),
            LinkAttribute::NumRxQueues(queues) => device.made_receive_queues = Some(*queues),
            _ => {}
        }
    }
    device.has_address = link::has_ipv4_address(index).unwrap_or(false);
    if let Ok(mut netdev) = Netdev::open() {
        let features = netdev.xdp_features(index).ok().flatten();
        device.features = features.map(|known| Features {
            runs_programs: known.runs_programs(),
            redirects: known.redirects(),
            has_zero_copy: known.has_zero_copy(),
        });
        let queues = netdev.receive_queues(index).unwrap_or_default();
        let taken = queues.iter().filter(|queue| queue.is_taken);
        device.taken_queues = taken.map(|queue| queue.number).collect();
    }
    Some(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_brackets_is_the_chosen_one() {
        let text = "none [integrity] confidentiality\n";
        assert_eq!(chosen(text).as_deref(), Some("integrity"));
        assert_eq!(chosen("none"), None);
    }

    #[test]
    fn queues_in_use_count_before_those_that_were_made() {
        let mut device = Device {
            made_receive_queues: Some(64),
            ..Device::default()
        };
        assert_eq!(device.receive_queues(), Some(64));
        device.channels = Some(Channels {
            receive: 0,
            transmit: 0,
            combined: 4,
        });
        assert_eq!(device.receive_queues(), Some(4));
    }
}
