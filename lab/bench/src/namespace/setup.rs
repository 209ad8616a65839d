//! Creation of test hosts: namespaces, devices, addresses and neighbours. A netlink socket opened inside each namespace
//! configures most of them. Some settings exist only as files in /proc and /sys.
//!
//! `/proc/sys/net` shows the namespace of the thread that opens it. `/sys/class/net` shows the namespace of the process
//! that mounted it. To see another namespace's devices there, a thread enters that namespace, unshares its own mount
//! namespace and mounts sysfs. The mount vanishes with the thread.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;
use std::{fs, io};

use isolane_hostnet::ethtool::Ethtool;
use isolane_hostnet::link::VethEnd;
use isolane_hostnet::netlink::{NetlinkError, Rtnetlink};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::{
    CONFIGURE_RIGHT, ENTER_RIGHT, Host, TestHostsConfig, TestHostsError, command_inside,
    on_own_thread, step,
};
use crate::process::Note;

/// Offloads that cut or merge segments. The kernel ignores those that a device cannot switch.
const OFFLOADS: [&str; 7] = [
    "tx-tcp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp6-segmentation",
    "tx-udp-segmentation",
    "tx-generic-segmentation",
    GENERIC_RECEIVE_OFFLOAD,
];

/// Offload that merges received segments.
pub(super) const GENERIC_RECEIVE_OFFLOAD: &str = "rx-gro";

/// Namespace under configuration.
pub(super) struct Namespace {
    pub(super) descriptor: OwnedFd,
    netlink: Rtnetlink,
    ethtool: Ethtool,
    pub(super) notes: Vec<Note>,
}

impl Namespace {
    /// Makes a namespace on a new thread, which leaves only descriptors behind.
    pub(super) fn new() -> Result<Namespace, TestHostsError> {
        on_own_thread(|| {
            // SAFETY: only the calling thread changes its network namespace; no memory and no
            // descriptor table is involved, and the thread ends here.
            let unshared = unsafe { unshare_unsafe(UnshareFlags::NEWNET) };
            step("make a network namespace", ENTER_RIGHT, unshared)?;
            let mut notes = Vec::new();
            if let Err(error) = disable_ipv6() {
                notes.push(Note::new(
                    "disable IPv6",
                    error,
                    "a few neighbour discovery frames cross the cable",
                ));
            }
            let open = || -> io::Result<Namespace> {
                let mut netlink = Rtnetlink::open()?;
                let loopback = netlink.link_by_name("lo")?.index;
                netlink.set_up(loopback)?;
                Ok(Namespace {
                    descriptor: fs::File::open("/proc/thread-self/ns/net")?.into(),
                    netlink,
                    ethtool: Ethtool::open()?,
                    notes,
                })
            };
            step("open a network namespace", CONFIGURE_RIGHT, open())
        })
    }
}

/// Connects two namespaces by a veth pair with these names, both ends up. Offloads are switched off for a cable, which
/// takes each frame that the device sends for one frame on the wire.
pub(super) fn join(
    [first, second]: [&mut Namespace; 2],
    interfaces: [&str; 2],
    config: &TestHostsConfig,
    has_offloads: bool,
) -> Result<(), TestHostsError> {
    let end = |name| VethEnd {
        name,
        mtu: config.mtu,
        queues: config.queues,
    };
    let mut join = || -> io::Result<()> {
        first.netlink.create_veth(
            &end(interfaces[0]),
            &end(interfaces[1]),
            second.descriptor.as_fd(),
        )?;
        for (namespace, interface) in [(&mut *first, interfaces[0]), (&mut *second, interfaces[1])]
        {
            let index = namespace.netlink.link_by_name(interface)?.index;
            if !has_offloads {
                namespace
                    .ethtool
                    .set_features(interface, &OFFLOADS, false)?;
            }
            namespace.netlink.set_up(index)?;
        }
        Ok(())
    };
    step("make a veth pair", CONFIGURE_RIGHT, join())
}

/// Moves a device of the calling thread's namespace to a host, renames it and sets it up. Its offloads and queues stay
/// unchanged, because they are part of the measurement.
pub(super) fn plug_in(
    host: &mut Namespace,
    name: Host,
    device: &str,
) -> Result<(), TestHostsError> {
    let mut plug_in = || -> Result<(), NetlinkError> {
        let mut here = Rtnetlink::open()?;
        let index = here.link_by_name(device)?.index;
        here.move_into(index, host.descriptor.as_fd(), name.interface())?;
        let index = host.netlink.link_by_name(name.interface())?.index;
        host.netlink.set_up(index)
    };
    step("move a device to a test host", CONFIGURE_RIGHT, plug_in())
}

/// Makes a bridge that forwards every group to every port, as a switch without IGMP snooping does.
pub(super) fn make_bridge(namespace: &mut Namespace, name: &str) -> Result<(), TestHostsError> {
    let mut make = || -> Result<(), NetlinkError> {
        namespace.netlink.create_bridge(name)?;
        let index = namespace.netlink.link_by_name(name)?.index;
        namespace.netlink.set_up(index)
    };
    step("make a bridge", CONFIGURE_RIGHT, make())
}

/// Makes a device a port of a bridge in the same namespace.
pub(super) fn add_port(
    namespace: &mut Namespace,
    bridge: &str,
    port: &str,
) -> Result<(), TestHostsError> {
    let mut add = || -> Result<(), NetlinkError> {
        let bridge = namespace.netlink.link_by_name(bridge)?.index;
        let port = namespace.netlink.link_by_name(port)?.index;
        namespace.netlink.set_controller(port, bridge)
    };
    step("add a port to a bridge", CONFIGURE_RIGHT, add())
}

/// Gives a host its address and a multicast route; returns its hardware address.
pub(super) fn configure_host(
    namespace: &mut Namespace,
    interface: &str,
    address: Ipv4Addr,
) -> Result<Vec<u8>, TestHostsError> {
    let mut configure = || -> io::Result<Vec<u8>> {
        let link = namespace.netlink.link_by_name(interface)?;
        namespace.netlink.add_address(link.index, address, 24)?;
        // Route for senders that name no interface; without it multicast is unreachable.
        namespace
            .netlink
            .add_route(link.index, Ipv4Addr::new(224, 0, 0, 0), 4)?;
        Ok(link.address)
    };
    step("configure a test host", CONFIGURE_RIGHT, configure())
}

/// Adds a permanent neighbour entry for the other host, so that ARP never disturbs a measurement.
pub(super) fn introduce(
    namespace: &mut Namespace,
    host: Host,
    other_hardware_address: &[u8],
) -> Result<(), TestHostsError> {
    let mut introduce = || -> Result<(), NetlinkError> {
        let index = namespace.netlink.link_by_name(host.interface())?.index;
        namespace.netlink.add_permanent_neighbour(
            index,
            host.other().address(),
            other_hardware_address,
        )
    };
    step("name a test host's neighbour", CONFIGURE_RIGHT, introduce())
}

/// Disables IPv6 for devices created later in the calling thread's network namespace. IPv6's router solicitations and
/// duplicate address detection would add frames to the cable.
pub(super) fn disable_ipv6() -> io::Result<()> {
    match fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1") {
        // The kernel has no IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Mounts the sysfs of the calling thread's network namespace on `/sys`, for that thread only. Call it on a thread made
/// for it.
pub(super) fn show_own_devices() -> io::Result<()> {
    // SAFETY: only the calling thread's view of mounts changes; no memory or descriptor is involved. The thread was
    // made for this and shares its view with no other afterwards.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    // Without this change, the mount would propagate back to the original namespace.
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None)?;
    Ok(())
}

/// Steers the receive work of a device to `core` (receive packet steering); `None` disables steering.
pub(super) fn steer_receive_work(interface: &str, core: Option<usize>) -> io::Result<()> {
    let mask = core.map_or_else(|| "0".to_owned(), core_mask);
    for entry in fs::read_dir(format!("/sys/class/net/{interface}/queues"))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("rx-") {
            fs::write(entry.path().join("rps_cpus"), &mask)?;
        }
    }
    Ok(())
}

/// CPU mask with one core in the kernel's format: groups of 32 bits in hexadecimal, most significant first.
fn core_mask(core: usize) -> String {
    let mut mask = format!("{:x}", 1_u32 << (core % 32));
    for _ in 0..core / 32 {
        mask.push_str(",00000000");
    }
    mask
}

/// Name of the bridge device.
const BRIDGE: &str = "bridge";

/// Test hosts in separate network namespaces, joined by a bridge in another namespace.
///
/// ```text
///   host 0           host 1           host 2
///   10.79.0.1        10.79.0.2        10.79.0.3
///   host ==veth==.   host ==veth==.   host ==veth==.
///             port-0           port-1           port-2
///            `------------- bridge -------------------'
/// ```
///
/// As with a [`TestHosts`](super::TestHosts), the namespaces are anonymous. The kernel removes them when this process
/// and all processes inside have ended.
#[derive(Debug)]
pub struct BridgedHosts {
    hosts: Vec<Arc<OwnedFd>>,
    _bridge: OwnedFd,
}

impl BridgedHosts {
    /// Name of each host's network device.
    pub const INTERFACE: &str = "host";

    /// Makes `count` hosts and the bridge. The calling thread stays in its namespace.
    pub fn new(count: u8) -> Result<BridgedHosts, TestHostsError> {
        let config = TestHostsConfig {
            queues: 1,
            ..TestHostsConfig::default()
        };
        let mut bridge = Namespace::new()?;
        make_bridge(&mut bridge, BRIDGE)?;
        let mut hosts = Vec::new();
        for number in 0..count {
            let mut host = Namespace::new()?;
            let port = format!("port-{number}");
            join(
                [&mut host, &mut bridge],
                [Self::INTERFACE, &port],
                &config,
                false,
            )?;
            add_port(&mut bridge, BRIDGE, &port)?;
            configure_host(&mut host, Self::INTERFACE, Self::address(number))?;
            hosts.push(Arc::new(host.descriptor));
        }
        Ok(BridgedHosts {
            hosts,
            _bridge: bridge.descriptor,
        })
    }

    /// IPv4 address of a host, counted from 0.
    pub const fn address(host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 79, 0, host + 1)
    }

    /// Makes `command` start its program on a host, counted from 0, and die with the thread that spawns it.
    ///
    /// # Panics
    /// If the host does not exist.
    pub fn command(&self, host: usize, command: Command) -> Command {
        command_inside(&self.hosts[host], command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_one_bit_in_groups_of_32() {
        assert_eq!(core_mask(0), "1");
        assert_eq!(core_mask(1), "2");
        assert_eq!(core_mask(31), "80000000");
        assert_eq!(core_mask(33), "2,00000000");
        assert_eq!(core_mask(64), "1,00000000,00000000");
    }
}
