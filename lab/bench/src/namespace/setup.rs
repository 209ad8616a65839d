//! Creation of a testbed: namespaces, devices, addresses and neighbours, each configured through a netlink socket
//! opened inside the namespace.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};

use isolane_hostnet::ethtool::Ethtool;
use isolane_hostnet::link::VethEnd;
use isolane_hostnet::netlink::{NetlinkError, Rtnetlink};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::error::{CONFIGURE_RIGHT, ENTER_RIGHT, TestbedError, step};
use super::place::Host;
use super::{TestbedConfig, on_own_thread, sysfs};
use crate::process::Note;

/// Offloads that cut or merge segments. The kernel ignores those that a device cannot switch.
const OFFLOADS: [&str; 6] = [
    "tx-tcp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp6-segmentation",
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
    pub(super) fn new() -> Result<Namespace, TestbedError> {
        on_own_thread(|| {
            // SAFETY: only the calling thread changes its network namespace; no memory and no
            // descriptor table is involved, and the thread ends here.
            let unshared = unsafe { unshare_unsafe(UnshareFlags::NEWNET) };
            step("make a network namespace", ENTER_RIGHT, unshared)?;
            let mut notes = Vec::new();
            if let Err(error) = sysfs::disable_ipv6() {
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
                    descriptor: std::fs::File::open("/proc/thread-self/ns/net")?.into(),
                    netlink,
                    ethtool: Ethtool::open()?,
                    notes,
                })
            };
            step("open a network namespace", CONFIGURE_RIGHT, open())
        })
    }
}

/// Connects a host to the cable.
pub(super) fn connect(
    host: &mut Namespace,
    cable: &mut Namespace,
    name: Host,
    config: &TestbedConfig,
) -> Result<(), TestbedError> {
    let ends = [name.interface(), name.cable_interface()];
    join([host, cable], ends, config)
}

/// Connects two namespaces by a veth pair with these names, both ends up.
pub(super) fn join(
    [first, second]: [&mut Namespace; 2],
    interfaces: [&str; 2],
    config: &TestbedConfig,
) -> Result<(), TestbedError> {
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
            // Without segmentation and GRO, each frame on the link is one frame of the wire.
            namespace
                .ethtool
                .set_features(interface, &OFFLOADS, false)?;
            namespace.netlink.set_up(index)?;
        }
        Ok(())
    };
    step("make a veth pair", CONFIGURE_RIGHT, join())
}

/// Moves a device of the calling thread's namespace to a host, renames it and sets it up. Its offloads and queues stay
/// unchanged, because they are part of the measurement.
pub(super) fn plug_in(host: &mut Namespace, name: Host, device: &str) -> Result<(), TestbedError> {
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
pub(super) fn make_bridge(namespace: &mut Namespace, name: &str) -> Result<(), TestbedError> {
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
) -> Result<(), TestbedError> {
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
) -> Result<Vec<u8>, TestbedError> {
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
) -> Result<(), TestbedError> {
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
