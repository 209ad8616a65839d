//! Interfaces and their addresses, from netlink: as this thread's network namespace has them. What
//! netlink does not say (driver, speed) comes from sysfs, which shows them only where it was mounted
//! for this namespace.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, LinkXdp, XdpAttached,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use super::files::{text, value};
use crate::facts::Interface;
use crate::limits::MAX_INTERFACES;

/// The interfaces of the calling thread's network namespace, in the kernel's order.
///
/// # Errors
/// What the system said.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut netlink = Netlink::open()?;
    let mut found: Vec<(u32, Interface)> = Vec::new();
    let links = RouteNetlinkMessage::GetLink(LinkMessage::default());
    netlink.dump(links, |message| {
        if let RouteNetlinkMessage::NewLink(link) = message
            && found.len() < MAX_INTERFACES
        {
            found.push((link.header.index, interface(&link)));
        }
    })?;
    let mut question = AddressMessage::default();
    question.header.family = AddressFamily::Inet;
    netlink.dump(RouteNetlinkMessage::GetAddress(question), |message| {
        let RouteNetlinkMessage::NewAddress(message) = message else {
            return;
        };
        let index = message.header.index;
        let address = message
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                AddressAttribute::Local(IpAddr::V4(address)) => Some(*address),
                _ => None,
            });
        let of = found.iter_mut().find(|(known, _)| *known == index);
        if let (Some(address), Some((_, interface))) = (address, of) {
            interface
                .addresses
                .push((address, message.header.prefix_len));
        }
    })?;
    Ok(found.into_iter().map(|(_, interface)| interface).collect())
}

fn interface(link: &LinkMessage) -> Interface {
    let flags = link.header.flags;
    let mut interface = Interface {
        is_up: flags.contains(LinkFlags::Up),
        has_carrier: flags.contains(LinkFlags::LowerUp),
        is_multicast: flags.contains(LinkFlags::Multicast),
        is_loopback: flags.contains(LinkFlags::Loopback),
        ..Interface::default()
    };
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => interface.name.clone_from(name),
            LinkAttribute::Mtu(bytes) => interface.mtu = Some(*bytes),
            LinkAttribute::NumTxQueues(queues) => interface.tx_queues = Some(*queues),
            LinkAttribute::NumRxQueues(queues) => interface.rx_queues = Some(*queues),
            LinkAttribute::Qdisc(name) => interface.qdisc = Some(name.clone()),
            LinkAttribute::Stats64(counters) => interface.rx_dropped = Some(counters.rx_dropped),
            LinkAttribute::Xdp(xdp) => interface.has_xdp_program = has_program(xdp),
            LinkAttribute::LinkInfo(infos) => take_infos(&mut interface, infos),
            _ => {}
        }
    }
    let folder = format!("/sys/class/net/{}", interface.name);
    interface.driver = std::fs::read_link(format!("{folder}/device/driver"))
        .ok()
        .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    interface.speed_mbps = value(format!("{folder}/speed"));
    interface.is_wireless = text(format!("{folder}/uevent"))
        .is_some_and(|uevent| uevent.lines().any(|line| line == "DEVTYPE=wlan"));
    interface
}

fn take_infos(interface: &mut Interface, infos: &[LinkInfo]) {
    for info in infos {
        match info {
            LinkInfo::Kind(kind) => interface.kind = Some(kind.to_string()),
            LinkInfo::Data(InfoData::Vlan(vlan)) => {
                interface.vlan = vlan.iter().find_map(|attribute| match attribute {
                    InfoVlan::Id(id) => Some(*id),
                    _ => None,
                });
            }
            _ => {}
        }
    }
}

fn has_program(xdp: &[LinkXdp]) -> bool {
    xdp.iter().any(|attribute| {
        matches!(attribute, LinkXdp::Attached(attached) if *attached != XdpAttached::None)
    })
}

/// A connection to the network configuration of the calling thread's namespace.
struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Asks for all there is of a kind, and gives each to `found`.
    fn dump(
        &mut self,
        question: RouteNetlinkMessage,
        mut found: impl FnMut(RouteNetlinkMessage),
    ) -> io::Result<()> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        header.sequence_number = self.sequence;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(question));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = datagram.as_slice();
            while !rest.is_empty() {
                let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                // Messages are padded to four bytes; a length of zero would never end.
                let length = (answer.header.length as usize).next_multiple_of(4).max(4);
                rest = rest.get(length..).unwrap_or_default();
                match answer.payload {
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    NetlinkPayload::InnerMessage(message) => found(message),
                    _ => {}
                }
            }
        }
    }
}
