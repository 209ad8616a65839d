//! Prerequisites of AF_XDP and native XDP: facts about kernel, process and interface. Unknown facts of
//! type `Option` are `None`, except where noted.

use std::fs;

use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};

use crate::ethtool::{self, Ethtool, Queues};
use crate::kernel;
use crate::link::{self, index_of};
use crate::netdev::{Netdev, XdpFeatures};
use crate::netlink::Rtnetlink;

/// Availability of AF_XDP sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sockets {
    /// Permitted to the process.
    #[default]
    Granted,
    /// socket(2) failed with an error other than EAFNOSUPPORT, usually EPERM.
    Refused,
    /// socket(2) returned EAFNOSUPPORT: not in the kernel, or forbidden (RestrictAddressFamilies= of systemd).
    Absent,
}

/// Queue counts of a device, in the form that is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Channels {
    /// Receive-only queues.
    pub receive: u32,
    /// Transmit-only queues.
    pub transmit: u32,
    /// Queue pairs, for reception and transmission.
    pub combined: u32,
}

impl Channels {
    /// Number of queues that receive.
    #[must_use]
    pub fn receiving(&self) -> u32 {
        self.receive + self.combined
    }
}

impl From<Queues> for Channels {
    fn from(queues: Queues) -> Self {
        Channels {
            receive: queues.rx,
            transmit: queues.tx,
            combined: queues.combined,
        }
    }
}

/// Facts of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Device {
    /// Interface index.
    pub index: u32,
    /// True if administratively up.
    pub is_up: bool,
    /// True if it has a carrier.
    pub has_carrier: bool,
    /// True if it has an IPv4 address.
    pub has_address: bool,
    /// Size of the largest packet in bytes.
    pub mtu_bytes: Option<u32>,
    /// Name of the driver.
    pub driver: Option<String>,
    /// XDP features of the driver, where the kernel reports them (Linux 6.7).
    pub features: Option<XdpFeatures>,
    /// Program on its XDP hook. [`XdpFacts::look`] does not fill it in; the crate that loads programs can name them.
    pub program: Option<String>,
    /// Receive queues at the device's creation.
    pub made_receive_queues: Option<u32>,
    /// Queues in use, if the driver reports them.
    pub channels: Option<Channels>,
    /// Queues with bound AF_XDP sockets, if the kernel reports them (Linux 6.14).
    pub taken_queues: Vec<u32>,
    /// True if the device removes VLAN tags of received frames.
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

/// Facts of kernel, process and one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct XdpFacts {
    /// Kernel release, `6.12.5`.
    pub kernel_release: String,
    /// Capabilities for loading and attaching XDP programs that the process lacks.
    pub missing_capabilities: Vec<String>,
    /// True if the process is outside the initial user namespace, whose capabilities do not permit bpf(2).
    pub is_in_user_namespace: bool,
    /// `kernel.unprivileged_bpf_disabled`: 0 allows bpf(2) to all users.
    pub unprivileged_bpf_disabled: Option<u8>,
    /// Lockdown mode: "none", "integrity", "confidentiality".
    pub lockdown: Option<String>,
    /// Availability of AF_XDP sockets.
    pub sockets: Sockets,
    /// Lockable memory in bytes; `None` for unlimited.
    pub lockable_bytes: Option<u64>,
    /// Name of the interface.
    pub interface: String,
    /// Facts of the interface, if it exists.
    pub device: Option<Device>,
}

impl XdpFacts {
    /// Reads the facts of an interface of the calling thread's network namespace; changes nothing.
    #[must_use]
    pub fn look(interface: &str) -> XdpFacts {
        let setting = |path: &str| fs::read_to_string(path).ok();
        XdpFacts {
            kernel_release: kernel::release(),
            missing_capabilities: kernel::missing_capabilities()
                .0
                .into_iter()
                .map(String::from)
                .collect(),
            is_in_user_namespace: kernel::in_user_namespace(),
            unprivileged_bpf_disabled: setting("/proc/sys/kernel/unprivileged_bpf_disabled")
                .and_then(|text| text.trim().parse().ok()),
            lockdown: setting("/sys/kernel/security/lockdown")
                .and_then(|text| kernel::chosen_word(&text).map(String::from)),
            sockets: sockets(),
            lockable_bytes: lockable_bytes(),
            interface: interface.to_owned(),
            device: index_of(interface)
                .ok()
                .and_then(|index| device(interface, index)),
        }
    }

    /// Returns whether the kernel is at least this release.
    #[must_use]
    pub fn is_kernel_since(&self, major: u32, minor: u32) -> bool {
        kernel::is_since(&self.kernel_release, major, minor)
    }
}

/// Opens an unbound AF_XDP socket, and closes it again.
fn sockets() -> Sockets {
    match socket_with(
        AddressFamily::XDP,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    ) {
        Ok(_) => Sockets::Granted,
        Err(Errno::AFNOSUPPORT) => Sockets::Absent,
        Err(_) => Sockets::Refused,
    }
}

/// Limit of memory registered with a device, which counts as locked without CAP_IPC_LOCK.
fn lockable_bytes() -> Option<u64> {
    const CAP_IPC_LOCK: u32 = 14;
    let capabilities = kernel::effective_capabilities().unwrap_or(0);
    match capabilities >> CAP_IPC_LOCK & 1 {
        0 => getrlimit(Resource::Memlock).current,
        _ => None,
    }
}

fn device(name: &str, index: u32) -> Option<Device> {
    let link = link::describe(index).ok()?;
    let mut device = Device {
        index,
        driver: ethtool::driver(name),
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
    if let Ok(mut ethtool) = Ethtool::open() {
        let channels = ethtool.queues(name).ok().flatten();
        device.channels = channels.map(|(now, _)| now.into());
        let features = ethtool.features(name).ok();
        device.strips_vlan_tags = features.map(|features| {
            let strips = features.get("rx-vlan-hw-parse");
            strips.is_some_and(|feature| feature.is_on)
        });
    }
    let addresses = Rtnetlink::open()
        .ok()
        .and_then(|mut it| it.ipv4_addresses().ok());
    let of_device = |address: &AddressMessage| address.header.index == index;
    device.has_address = addresses.unwrap_or_default().iter().any(of_device);
    if let Ok(mut netdev) = Netdev::open() {
        device.features = netdev.xdp_features(index).ok().flatten();
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
