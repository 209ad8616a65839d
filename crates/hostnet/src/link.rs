//! Links of the calling thread's network namespace: names, indexes and attributes, the requests that create and change
//! links, and the state of a monitored one.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use isolane_wire::ethernet::MacAddress;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoBridge, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
    LinkXdp, Stats64,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::netdevice::{index_to_name, name_to_index};
use rustix::net::{SocketFlags, SocketType, socket_with};

use crate::limits::MAX_ADDRESSES;
use crate::netlink::{NetlinkError, Rtnetlink};

/// Name of a link.
#[must_use]
pub fn name_of(index: u32) -> Option<String> {
    index_to_name(any_socket().ok()?, index).ok()
}

/// Index of a link.
///
/// # Errors
/// The system's error; `ENODEV` if there is no link of that name.
pub fn index_of(name: &str) -> io::Result<u32> {
    Ok(name_to_index(any_socket()?, name)?)
}

/// Socket for ioctls on links. Any socket of the namespace serves.
pub(crate) fn any_socket() -> io::Result<OwnedFd> {
    let (family, kind) = (rustix::net::AddressFamily::INET, SocketType::DGRAM);
    Ok(socket_with(family, kind, SocketFlags::CLOEXEC, None)?)
}

/// Describes a link.
///
/// # Errors
/// [`NetlinkError`]; `ENODEV` if there is no link of that index.
pub fn describe(index: u32) -> Result<LinkMessage, NetlinkError> {
    let mut question = LinkMessage::default();
    question.header.index = index;
    Rtnetlink::open()?.link(question)
}

/// Id of the XDP program on a link, in any mode.
#[must_use]
pub fn xdp_program(link: &LinkMessage) -> Option<u32> {
    let mut attributes = link.attributes.iter();
    let xdp = attributes.find_map(|attribute| match attribute {
        LinkAttribute::Xdp(xdp) => Some(xdp),
        _ => None,
    })?;
    // With programs in several modes, the kernel lists each by its mode, and omits IFLA_XDP_PROG_ID.
    xdp.iter().find_map(|attribute| match attribute {
        LinkXdp::ProgId(id) | LinkXdp::DrvProgId(id) | LinkXdp::SkbProgId(id) => Some(*id),
        _ => None,
    })
}

/// Local IPv4 address in an address message.
#[must_use]
pub fn ipv4_address(message: &AddressMessage) -> Option<Ipv4Addr> {
    let mut attributes = message.attributes.iter();
    attributes.find_map(|attribute| match attribute {
        AddressAttribute::Local(IpAddr::V4(address)) => Some(*address),
        _ => None,
    })
}

/// Link attributes for test hosts.
pub struct Link {
    /// Interface index.
    pub index: u32,
    /// Hardware address.
    pub address: Vec<u8>,
    /// Counters.
    pub counters: Stats64,
}

/// Parameters of one end of a veth pair.
pub struct VethEnd<'a> {
    /// Name of the link.
    pub name: &'a str,
    /// Size of the largest IP packet in bytes.
    pub mtu: u32,
    /// Number of receive queues, and equally of transmit queues.
    pub queues: u32,
}

impl Rtnetlink {
    fn link(&mut self, question: LinkMessage) -> Result<LinkMessage, NetlinkError> {
        let answers = self.request(&RouteNetlinkMessage::GetLink(question), 0)?;
        let found = answers.into_iter().find_map(|answer| match answer {
            RouteNetlinkMessage::NewLink(link) => Some(link),
            _ => None,
        });
        Ok(found.ok_or(io::Error::from(io::ErrorKind::NotFound))?)
    }

    /// Reads a link by its name.
    pub fn link_by_name(&mut self, name: &str) -> Result<Link, NetlinkError> {
        let mut question = LinkMessage::default();
        question.attributes.push(LinkAttribute::IfName(name.into()));
        let message = self.link(question)?;
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

    /// Lists the links, in the kernel's order.
    pub fn links(&mut self) -> Result<Vec<LinkMessage>, NetlinkError> {
        let links = self.dump(&RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
        let link = |message| match message {
            RouteNetlinkMessage::NewLink(link) => Some(link),
            _ => None,
        };
        Ok(links.into_iter().filter_map(link).collect())
    }

    /// Lists the IPv4 addresses of all links, in the kernel's order.
    pub fn ipv4_addresses(&mut self) -> Result<Vec<AddressMessage>, NetlinkError> {
        let mut question = AddressMessage::default();
        question.header.family = AddressFamily::Inet;
        let addresses = self.dump(&RouteNetlinkMessage::GetAddress(question))?;
        let address = |message| match message {
            RouteNetlinkMessage::NewAddress(address) => Some(address),
            _ => None,
        };
        Ok(addresses.into_iter().filter_map(address).collect())
    }

    /// Creates a veth pair: `here` in this connection's namespace, `there` in the other.
    pub fn create_veth(
        &mut self,
        here: &VethEnd<'_>,
        there: &VethEnd<'_>,
        other_namespace: BorrowedFd<'_>,
    ) -> Result<(), NetlinkError> {
        let end = |end: &VethEnd<'_>| {
            vec![
                LinkAttribute::IfName(end.name.into()),
                LinkAttribute::Mtu(end.mtu),
                LinkAttribute::NumTxQueues(end.queues),
                LinkAttribute::NumRxQueues(end.queues),
            ]
        };
        let mut peer = LinkMessage::default();
        peer.attributes = end(there);
        peer.attributes
            .push(LinkAttribute::NetNsFd(other_namespace.as_raw_fd()));
        let mut attributes = end(here);
        attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.create_link(attributes)
    }

    /// Creates a bridge without IGMP snooping.
    pub fn create_bridge(&mut self, name: &str) -> Result<(), NetlinkError> {
        self.create_link(vec![
            LinkAttribute::IfName(name.into()),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Bridge),
                LinkInfo::Data(InfoData::Bridge(vec![InfoBridge::MulticastSnooping(false)])),
            ]),
        ])
    }

    fn create_link(&mut self, attributes: Vec<LinkAttribute>) -> Result<(), NetlinkError> {
        let mut message = LinkMessage::default();
        message.attributes = attributes;
        let message = RouteNetlinkMessage::NewLink(message);
        self.request(&message, NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }

    fn set_link(
        &mut self,
        index: u32,
        flags: LinkFlags,
        attributes: Vec<LinkAttribute>,
    ) -> Result<(), NetlinkError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = flags;
        message.header.change_mask = flags;
        message.attributes = attributes;
        self.request(&RouteNetlinkMessage::SetLink(message), 0)
            .map(drop)
    }

    /// Makes a link a port of the bridge with the index `controller`.
    pub fn set_controller(&mut self, index: u32, controller: u32) -> Result<(), NetlinkError> {
        let attributes = vec![LinkAttribute::Controller(controller)];
        self.set_link(index, LinkFlags::empty(), attributes)
    }

    /// Moves a link into another namespace, under that name.
    pub fn move_into(
        &mut self,
        index: u32,
        namespace: BorrowedFd<'_>,
        name: &str,
    ) -> Result<(), NetlinkError> {
        let attributes = vec![
            LinkAttribute::NetNsFd(namespace.as_raw_fd()),
            LinkAttribute::IfName(name.into()),
        ];
        self.set_link(index, LinkFlags::empty(), attributes)
    }

    /// Sets a link up.
    pub fn set_up(&mut self, index: u32) -> Result<(), NetlinkError> {
        self.set_link(index, LinkFlags::Up, Vec::new())
    }

    /// Adds an IPv4 address to a link, and with it the route to its subnet.
    pub fn add_address(
        &mut self,
        index: u32,
        address: Ipv4Addr,
        prefix_length: u8,
    ) -> Result<(), NetlinkError> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = prefix_length;
        message.header.index = index;
        message.attributes = vec![
            AddressAttribute::Local(address.into()),
            AddressAttribute::Address(address.into()),
        ];
        let message = RouteNetlinkMessage::NewAddress(message);
        self.request(&message, NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }
}

/// IPv4 address of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// IPv4 address.
    pub address: [u8; 4],
    /// Prefix length of its network.
    pub prefix_bits: u8,
    /// True for a secondary address, after another of the same network: used as source only if a route names it.
    pub is_secondary: bool,
    /// Number of the last dump that contained the address.
    pub round: u32,
}

impl Address {
    fn shares_network_with(&self, other: [u8; 4]) -> bool {
        let ignored = 32 - u32::from(self.prefix_bits.min(32));
        let difference = u32::from_be_bytes(self.address) ^ u32::from_be_bytes(other);
        // Rust has no shift by all 32 bits.
        difference.checked_shr(ignored).unwrap_or(0) == 0
    }
}

/// Last known state of the link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceState {
    /// Index in this network namespace.
    pub index: u32,
    /// Name, which an administrator may change at any time.
    pub name: String,
    /// True if administratively up (IFF_UP).
    pub is_up: bool,
    /// True if it has a carrier (IFF_LOWER_UP).
    pub has_carrier: bool,
    /// True if it can multicast.
    pub is_multicast: bool,
    /// True if deleted, or moved to another network namespace. Final, because the link's AF_XDP sockets are dead.
    pub is_gone: bool,
    /// Size of the largest IP packet in bytes.
    pub mtu_bytes: usize,
    /// Ethernet address; `None` if the link is not Ethernet with neighbours.
    pub mac: Option<MacAddress>,
    addresses: Vec<Address>,
}

impl DeviceState {
    pub(crate) fn new(index: u32) -> DeviceState {
        DeviceState {
            index,
            addresses: Vec::with_capacity(MAX_ADDRESSES),
            ..DeviceState::default()
        }
    }

    /// IPv4 addresses, in the kernel's order.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Returns whether frames can be sent.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.is_up && self.has_carrier && !self.is_gone
    }

    /// Source address that the kernel would choose towards `neighbour`: the first in its network, else the first.
    #[must_use]
    pub fn source_for(&self, neighbour: Option<[u8; 4]>) -> Option<[u8; 4]> {
        let mut primary = self.addresses.iter().filter(|known| !known.is_secondary);
        let near = neighbour.and_then(|neighbour| {
            let mut primary = primary.clone();
            primary.find(|known| known.shares_network_with(neighbour))
        });
        near.or_else(|| primary.next())
            .map(|address| address.address)
    }

    /// Adds or updates an address; returns whether anything changed.
    pub fn insert(&mut self, address: Address) -> bool {
        let is_same = |known: &&mut Address| {
            known.address == address.address && known.prefix_bits == address.prefix_bits
        };
        if let Some(known) = self.addresses.iter_mut().find(is_same) {
            let has_changed = known.is_secondary != address.is_secondary;
            *known = address;
            return has_changed;
        }
        let has_room = self.addresses.len() < MAX_ADDRESSES;
        if has_room {
            self.addresses.push(address);
        }
        has_room
    }

    /// Removes an address; returns whether it was known.
    pub fn remove(&mut self, address: [u8; 4], prefix_bits: u8) -> bool {
        let before = self.addresses.len();
        self.addresses
            .retain(|known| known.address != address || known.prefix_bits != prefix_bits);
        self.addresses.len() != before
    }

    /// Ends a dump: removes addresses that the dump did not contain; returns whether there were any.
    pub(crate) fn end_dump(&mut self, round: u32) -> bool {
        let before = self.addresses.len();
        self.addresses.retain(|known| known.round == round);
        self.addresses.len() != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_belong_together() {
        let index = index_of("lo").expect("every namespace has it");
        assert_eq!(name_of(index).as_deref(), Some("lo"));
        assert!(index_of("no such interface").is_err());
        assert!(index_of("a\0b").is_err());
        assert_eq!(name_of(u32::MAX), None);
    }

    #[test]
    fn an_interface_is_described_if_it_is_there() {
        let index = index_of("lo").expect("every namespace has it");
        assert_eq!(describe(index).unwrap().header.index, index);
        let absent = describe(i32::MAX as u32).unwrap_err();
        assert_eq!(absent.error.raw_os_error(), Some(libc::ENODEV));
    }

    fn address(address: [u8; 4], prefix_bits: u8) -> Address {
        Address {
            address,
            prefix_bits,
            is_secondary: false,
            round: 1,
        }
    }

    #[test]
    fn the_source_is_of_the_neighbours_network_if_there_is_one() {
        let mut device = DeviceState::new(1);
        assert_eq!(device.source_for(None), None);
        device.insert(address([10, 0, 0, 1], 24));
        device.insert(address([192, 0, 2, 1], 24));
        assert_eq!(
            device.source_for(Some([192, 0, 2, 9])),
            Some([192, 0, 2, 1])
        );
        assert_eq!(
            device.source_for(Some([172, 16, 0, 1])),
            Some([10, 0, 0, 1])
        );
        assert_eq!(device.source_for(None), Some([10, 0, 0, 1]));
    }

    #[test]
    fn nothing_is_sent_from_a_secondary_address() {
        let mut device = DeviceState::new(1);
        device.insert(Address {
            is_secondary: true,
            ..address([10, 0, 0, 7], 24)
        });
        assert_eq!(device.source_for(None), None);
        device.insert(address([10, 0, 0, 1], 24));
        assert_eq!(device.source_for(Some([10, 0, 0, 2])), Some([10, 0, 0, 1]));
    }

    #[test]
    fn addresses_come_go_and_are_bounded() {
        let mut device = DeviceState::new(1);
        assert!(device.insert(address([10, 0, 0, 1], 24)));
        assert!(!device.insert(address([10, 0, 0, 1], 24)), "known");
        assert!(device.remove([10, 0, 0, 1], 24));
        for number in 0..MAX_ADDRESSES as u8 {
            assert!(device.insert(address([10, 0, number, 1], 24)));
        }
        assert!(!device.insert(address([10, 1, 0, 1], 24)));
        assert!(device.end_dump(2), "none was seen in the second reading");
        assert!(device.addresses().is_empty());
    }
}
