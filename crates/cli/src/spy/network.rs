//! From a frame to a UDP datagram: link header, VLAN tags, IPv4, fragments, UDP, checksums.

use std::borrow::Cow;
use std::net::{Ipv4Addr, SocketAddrV4};

use isolane_wire::{
    Error,
    checksum::udp_pseudo_header,
    cooked, ethernet,
    ethernet::EtherType,
    ipv4::{PROTOCOL_UDP, Packet},
    udp::Datagram as Udp,
    vlan::VlanTag,
};

use super::fragments::{Fragment, Fragments, Key};
use super::frame::{Frame, Link};
use crate::limits::PACKET_BYTES;

/// A UDP datagram.
#[derive(Debug)]
pub(crate) struct Datagram<'a> {
    pub(crate) source: SocketAddrV4,
    pub(crate) destination: SocketAddrV4,
    pub(crate) dscp: u8,
    pub(crate) vlan: Option<VlanTag>,
    /// IP packets it came in.
    pub(crate) packets: usize,
    pub(crate) checksum: Checksum,
    /// What was captured of its payload.
    pub(crate) payload: Cow<'a, [u8]>,
    /// Bytes its payload had.
    pub(crate) payload_len: usize,
}

/// What a UDP checksum says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksum {
    Right,
    /// Left to hardware that comes later, as it is on veth pairs and on the sending host.
    Partial,
    /// There is none.
    Absent,
    Wrong,
    /// Not all of the datagram was captured.
    Unknown,
}

impl Checksum {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Partial => "partial",
            Self::Absent => "absent",
            Self::Wrong => "wrong",
            Self::Unknown => "unknown",
        }
    }
}

/// What a frame was, if no datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    /// Of a link that is not decoded.
    Link(i32),
    /// IPv6, which isolane does not speak yet.
    Ipv6,
    /// ARP and the like, or IPv4 that carries no UDP.
    NotUdp,
    /// A part of a packet whose other parts are still missing.
    Fragment,
    /// Headers that contradict themselves or are cut off.
    Malformed(Error),
}

/// What has to be remembered from frame to frame.
#[derive(Default)]
pub(crate) struct Network {
    fragments: Fragments,
}

impl Network {
    /// Takes a frame to the datagram in it.
    ///
    /// # Errors
    /// What else it was.
    pub(crate) fn read<'a>(&mut self, frame: &Frame<'a>) -> Result<Datagram<'a>, Other> {
        let (vlan, ether_type, packet) = unwrap_link(frame)?;
        match ether_type {
            EtherType::IPV4 => {}
            EtherType::IPV6 => return Err(Other::Ipv6),
            _ => return Err(Other::NotUdp),
        }
        let missing = frame.original_len.saturating_sub(frame.bytes.len());
        self.read_packet(vlan, packet, missing)
    }

    /// Fragments whose packet never became whole, or is not yet.
    pub(crate) fn incomplete_packets(&self) -> u64 {
        self.fragments.given_up + self.fragments.pending()
    }

    fn read_packet<'a>(
        &mut self,
        vlan: Option<VlanTag>,
        bytes: &'a [u8],
        missing: usize,
    ) -> Result<Datagram<'a>, Other> {
        // Headers are checked against the packet's length: what the capture left out is filled with
        // zeros, which nobody looks at.
        let filled: Cow<'a, [u8]> = if missing > 0 {
            let mut filled = bytes.to_vec();
            filled.resize(bytes.len() + missing.min(PACKET_BYTES), 0);
            filled.into()
        } else {
            bytes.into()
        };
        let packet = Packet::new_checked(&*filled).map_err(Other::Malformed)?;
        if packet.protocol() != PROTOCOL_UDP {
            return Err(Other::NotUdp);
        }
        if bytes.len() >= packet.header_len() && !packet.has_valid_checksum() {
            return Err(Other::Malformed(Error::Checksum));
        }
        let (source, destination) = (packet.source(), packet.destination());
        let (start, end) = (packet.header_len(), packet.total_len());
        let (payload, packets): (Cow<'a, [u8]>, usize) = if packet.is_fragment() {
            if missing > 0 {
                self.fragments.given_up += 1;
                return Err(Other::Fragment);
            }
            let fragment = Fragment {
                key: Key {
                    source,
                    destination,
                    identification: packet.identification(),
                },
                offset: packet.fragment_offset(),
                is_last: !packet.more_fragments(),
                bytes: packet.payload(),
            };
            let whole = self.fragments.add(fragment).ok_or(Other::Fragment)?;
            (whole.bytes.into(), whole.fragments)
        } else {
            (slice(&filled, start, end), 1)
        };
        let captured = if packets == 1 {
            bytes.len().saturating_sub(start)
        } else {
            payload.len()
        };
        let udp = Udp::new_checked(&*payload).map_err(Other::Malformed)?;
        let length = udp.total_len();
        Ok(Datagram {
            source: address(source, udp.source_port()),
            destination: address(destination, udp.destination_port()),
            dscp: packet.dscp(),
            vlan,
            packets,
            checksum: checksum(&udp, source, destination, captured >= length),
            payload_len: length - HEADER,
            payload: slice(&payload, HEADER.min(captured), length.min(captured)),
        })
    }
}

const HEADER: usize = isolane_wire::udp::HEADER_BYTES;

/// A part of bytes that may be somebody's or our own.
fn slice<'a>(bytes: &Cow<'a, [u8]>, start: usize, end: usize) -> Cow<'a, [u8]> {
    match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[start..end.max(start)]),
        Cow::Owned(bytes) => Cow::Owned(bytes[start..end.max(start)].to_vec()),
    }
}

fn address(address: [u8; 4], port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from(address), port)
}

/// The innermost VLAN tag, the ethertype, and the packet behind the link's header.
fn unwrap_link<'a>(frame: &Frame<'a>) -> Result<(Option<VlanTag>, u16, &'a [u8]), Other> {
    let of_ip = |bytes: &'a [u8]| match bytes.first().map(|byte| byte >> 4) {
        Some(4) => Ok((None, EtherType::IPV4, bytes)),
        Some(6) => Ok((None, EtherType::IPV6, bytes)),
        Some(_) => Err(Other::NotUdp),
        None => Err(Other::Malformed(Error::Truncated)),
    };
    match frame.link {
        Link::Ethernet => {
            let frame = ethernet::Frame::new_checked(frame.bytes).map_err(Other::Malformed)?;
            Ok((frame.tags().last(), frame.ether_type(), frame.payload()))
        }
        Link::Cooked(version) => {
            let packet = cooked::Packet::parse(version, frame.bytes).map_err(Other::Malformed)?;
            Ok((
                packet.tags.last().copied(),
                packet.ether_type,
                packet.payload,
            ))
        }
        Link::Ip => of_ip(frame.bytes),
        // The family's number and byte order are the capturing host's; the packet says it too.
        Link::Loopback => of_ip(frame.bytes.get(4..).unwrap_or_default()),
        Link::Unknown(number) => Err(Other::Link(number)),
    }
}

fn checksum(udp: &Udp<&[u8]>, source: [u8; 4], destination: [u8; 4], whole: bool) -> Checksum {
    let length = udp.total_len() as u16;
    if !whole {
        Checksum::Unknown
    } else if udp.checksum() == 0 {
        Checksum::Absent
    } else if udp.has_valid_checksum(source, destination) {
        Checksum::Right
    } else if udp.checksum() == udp_pseudo_header(source, destination, length).fold() {
        Checksum::Partial
    } else {
        Checksum::Wrong
    }
}
