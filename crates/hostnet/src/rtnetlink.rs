//! Requests to the kernel's network configuration, one at a time, each answered before the next.
//!
//! A netlink socket belongs to the network namespace it was opened in, whichever thread uses it
//! later: one socket a namespace configures all three from one thread.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoBridge, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
    Stats64,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// A connection to the network configuration of one namespace.
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

/// What is asked about a device.
pub struct Link {
    pub index: u32,
    pub address: Vec<u8>,
    pub counters: Stats64,
}

/// One end of a veth pair to be made.
pub struct VethEnd<'a> {
    pub name: &'a str,
    pub mtu: u32,
    pub queues: u32,
}

impl Netlink {
    /// Opens it in the calling thread's network namespace.
    pub fn open() -> io::Result<Netlink> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink {
            socket,
            sequence: 0,
        })
    }

    /// Makes a veth pair: `here` in this socket's namespace, `there` in the other.
    pub fn create_veth(
        &mut self,
        here: &VethEnd<'_>,
        there: &VethEnd<'_>,
        other_namespace: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let mut peer = end_message(there);
        let namespace = other_namespace.as_raw_fd();
        peer.attributes.push(LinkAttribute::NetNsFd(namespace));
        let mut message = end_message(here);
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.change(
            RouteNetlinkMessage::NewLink(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Makes a bridge without IGMP snooping.
    pub fn create_bridge(&mut self, name: &str) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(name.into()),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Bridge),
                LinkInfo::Data(InfoData::Bridge(vec![InfoBridge::MulticastSnooping(false)])),
            ]),
        ];
        self.change(
            RouteNetlinkMessage::NewLink(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Makes a device a port of the bridge with the index `controller`.
    pub fn set_controller(&mut self, index: u32, controller: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes = vec![LinkAttribute::Controller(controller)];
        self.change(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Moves a device of this socket's namespace into another one, under that name.
    pub fn move_into(
        &mut self,
        index: u32,
        namespace: BorrowedFd<'_>,
        name: &str,
    ) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes = vec![
            LinkAttribute::NetNsFd(namespace.as_raw_fd()),
            LinkAttribute::IfName(name.into()),
        ];
        self.change(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Sets a device up.
    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.change(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives a device an IPv4 address, and with it the route to its subnet.
    pub fn add_address(
        &mut self,
        index: u32,
        address: Ipv4Addr,
        prefix_length: u8,
    ) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = prefix_length;
        message.header.index = index;
        message.attributes = vec![
            AddressAttribute::Local(address.into()),
            AddressAttribute::Address(address.into()),
        ];
        self.change(
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Says for good which hardware address an IPv4 neighbour has, so that nothing is asked.
    pub fn add_permanent_neighbour(
        &mut self,
        index: u32,
        neighbour: Ipv4Addr,
        hardware_address: &[u8],
    ) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            NeighbourAttribute::Destination(NeighbourAddress::Inet(neighbour)),
            NeighbourAttribute::LinkLayerAddress(hardware_address.to_vec()),
        ];
        self.change(
            RouteNetlinkMessage::NewNeighbour(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
    }

    /// Sends a destination out of a device, without a gateway.
    pub fn add_route(
        &mut self,
        index: u32,
        destination: Ipv4Addr,
        prefix_length: u8,
    ) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        message.header.destination_prefix_length = prefix_length;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Link;
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            RouteAttribute::Destination(RouteAddress::Inet(destination)),
            RouteAttribute::Oif(index),
        ];
        self.change(
            RouteNetlinkMessage::NewRoute(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Asks about a device by its name.
    pub fn link(&mut self, name: &str) -> io::Result<Link> {
        let mut question = LinkMessage::default();
        question.attributes.push(LinkAttribute::IfName(name.into()));
        let mut found = None;
        self.request(RouteNetlinkMessage::GetLink(question), 0, |answer| {
            if let RouteNetlinkMessage::NewLink(message) = answer {
                found = Some(message);
            }
        })?;
        let message = found.ok_or(io::ErrorKind::NotFound)?;
        let mut link = Link {
            index: message.header.index,
            address: Vec::new(),
            counters: Stats64::default(),
        };
        for attribute in message.attributes {
            match attribute {
                LinkAttribute::Address(address) => link.address = address,
                LinkAttribute::Stats64(counters) => link.counters = counters,
                _ => {}
            }
        }
        Ok(link)
    }

    /// A request whose only answer is yes or no.
    fn change(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.request(message, flags, |_| {})
    }

    /// Sends one request and gives every answer to `answered`, until the kernel's yes or no.
    fn request(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        mut answered: impl FnMut(RouteNetlinkMessage),
    ) -> io::Result<()> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        header.sequence_number = self.sequence;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
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
                if answer.header.sequence_number != self.sequence {
                    continue;
                }
                match answer.payload {
                    NetlinkPayload::Error(error) if error.code.is_none() => return Ok(()),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    NetlinkPayload::InnerMessage(inner) => answered(inner),
                    _ => {}
                }
            }
        }
    }
}

fn end_message(end: &VethEnd<'_>) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(end.name.into()),
        LinkAttribute::Mtu(end.mtu),
        LinkAttribute::NumTxQueues(end.queues),
        LinkAttribute::NumRxQueues(end.queues),
    ];
    message
}
