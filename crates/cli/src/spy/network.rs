//! From a frame to a UDP datagram: link header, VLAN tags, IPv4, UDP.
//!
//! IP fragments are not put together: of a datagram in fragments the first one is read as far as it goes.

use std::borrow::Cow;
use std::net::{Ipv4Addr, SocketAddrV4};

use isolane_wire::{
    Error, cooked, ethernet,
    ethernet::EtherType,
    ipv4::{PROTOCOL_UDP, Packet},
    udp::HEADER_BYTES,
    vlan::VlanTag,
};

use super::frame::{Frame, Link};
use crate::limits::PACKET_BYTES;

/// A UDP datagram.
#[derive(Debug)]
pub(crate) struct Datagram<'a> {
    pub(crate) source: SocketAddrV4,
    pub(crate) destination: SocketAddrV4,
    pub(crate) dscp: u8,
    pub(crate) vlan: Option<VlanTag>,
    /// The captured part of its payload.
    pub(crate) payload: &'a [u8],
    /// Payload size in bytes, as the UDP header tells it.
    pub(crate) payload_len: usize,
}

impl<'a> Datagram<'a> {
    /// Whether a part of the payload is not there: the capture left it out, or other IP fragments carry it.
    pub(crate) fn is_cut(&self) -> bool {
        self.payload.len() < self.payload_len
    }

    /// The payload at its full size: zeros stand for what is not there.
    pub(crate) fn filled_payload(&self) -> Cow<'a, [u8]> {
        filled(self.payload, self.payload_len)
    }
}

/// A frame without the beginning of a UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    /// Of a link type that is not decoded.
    Link(i32),
    /// IPv6, which isolane does not speak yet.
    Ipv6,
    /// ARP and the like, or IPv4 that carries no UDP.
    NotUdp,
    /// An IP fragment other than the first.
    Fragment,
    /// Headers that contradict themselves or are cut off.
    Malformed(Error),
}

/// Takes a frame to the datagram in it.
///
/// # Errors
/// What else the frame holds.
pub(crate) fn read<'a>(frame: &Frame<'a>) -> Result<Datagram<'a>, Other> {
    let (vlan, ether_type, bytes) = unwrap_link(frame)?;
    match ether_type {
        EtherType::IPV4 => {}
        EtherType::IPV6 => return Err(Other::Ipv6),
        _ => return Err(Other::NotUdp),
    }
    let missing = frame.original_len.saturating_sub(frame.bytes.len());
    // The header's lengths are checked against the whole packet.
    let whole = filled(bytes, bytes.len() + missing.min(PACKET_BYTES));
    let packet = Packet::new_checked(&*whole).map_err(Other::Malformed)?;
    if packet.protocol() != PROTOCOL_UDP {
        return Err(Other::NotUdp);
    }
    let (start, end) = (packet.header_len(), packet.total_len().min(bytes.len()));
    if end >= start && !packet.has_valid_checksum() {
        return Err(Other::Malformed(Error::Checksum));
    }
    if packet.fragment_offset() > 0 {
        return Err(Other::Fragment);
    }
    let udp = bytes.get(start..end).unwrap_or_default();
    let Some((header, behind)) = udp.split_first_chunk::<HEADER_BYTES>() else {
        return Err(Other::Malformed(Error::Truncated));
    };
    let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let Some(payload_len) = usize::from(number(4)).checked_sub(HEADER_BYTES) else {
        return Err(Other::Malformed(Error::MalformedHeader));
    };
    let is_whole = missing == 0 && !packet.is_fragment();
    if is_whole && behind.len() < payload_len {
        return Err(Other::Malformed(Error::Truncated));
    }
    let address = |host: [u8; 4], port| SocketAddrV4::new(Ipv4Addr::from(host), port);
    Ok(Datagram {
        source: address(packet.source(), number(0)),
        destination: address(packet.destination(), number(2)),
        dscp: packet.dscp(),
        vlan,
        payload: &behind[..payload_len.min(behind.len())],
        payload_len,
    })
}

/// Bytes, with zeros behind them up to a length.
fn filled(bytes: &[u8], length: usize) -> Cow<'_, [u8]> {
    if bytes.len() >= length {
        return bytes.into();
    }
    let mut filled = bytes.to_vec();
    filled.resize(length, 0);
    filled.into()
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
            let tag = packet.tags.last().copied();
            Ok((tag, packet.ether_type, packet.payload))
        }
        Link::Ip => of_ip(frame.bytes),
        // The family's number and byte order are the capturing host's; the packet tells the version, too.
        Link::Loopback => of_ip(frame.bytes.get(4..).unwrap_or_default()),
        Link::Unknown(number) => Err(Other::Link(number)),
    }
}
