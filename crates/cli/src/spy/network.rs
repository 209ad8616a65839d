//! UDP datagrams in frames: link header, VLAN tags, IPv4, fragments, UDP.

use std::borrow::Cow;
use std::net::{Ipv4Addr, SocketAddrV4};

use isolane_wire::{
    Error, cooked, ethernet,
    ethernet::EtherType,
    ipv4::{PROTOCOL_UDP, Packet},
    udp::HEADER_BYTES,
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
    /// Number of IP packets it came in.
    pub(crate) packets: usize,
    /// The captured part of its payload.
    pub(crate) payload: Cow<'a, [u8]>,
    /// Payload size in bytes, as the UDP header tells it.
    pub(crate) payload_len: usize,
}

impl Datagram<'_> {
    /// Whether the capture left out a part of the payload.
    pub(crate) fn is_cut(&self) -> bool {
        self.payload.len() < self.payload_len
    }
}

/// A frame that does not complete a UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    /// Frame of a link type that is not decoded.
    Link(i32),
    /// IPv6, which isolane does not speak yet.
    Ipv6,
    /// ARP and the like, or IPv4 that carries no UDP.
    NotUdp,
    /// An IP fragment of a packet whose other fragments are missing so far.
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
    /// [`Other`]: the frame completes no datagram.
    pub(crate) fn read<'a>(&mut self, frame: &Frame<'a>) -> Result<Datagram<'a>, Other> {
        let (vlan, ether_type, bytes) = unwrap_link(frame)?;
        match ether_type {
            EtherType::IPV4 => {}
            EtherType::IPV6 => return Err(Other::Ipv6),
            _ => return Err(Other::NotUdp),
        }
        let missing = frame.original_len.saturating_sub(frame.bytes.len());
        // The header's lengths are checked against the whole packet: zeros stand for what the capture left out.
        let mut whole = Cow::Borrowed(bytes);
        if missing > 0 {
            whole
                .to_mut()
                .resize(bytes.len() + missing.min(PACKET_BYTES), 0);
        }
        let packet = Packet::new_checked(&*whole).map_err(Other::Malformed)?;
        if packet.protocol() != PROTOCOL_UDP {
            return Err(Other::NotUdp);
        }
        let (start, end) = (packet.header_len(), packet.total_len().min(bytes.len()));
        if end >= start && !packet.has_valid_checksum() {
            return Err(Other::Malformed(Error::Checksum));
        }
        let behind = bytes.get(start..end).unwrap_or_default();
        let (udp, packets): (Cow<'a, [u8]>, usize) = match packet.is_fragment() {
            false => (behind.into(), 1),
            true => self.whole(&packet, behind, missing > 0)?,
        };
        let Some((header, _)) = udp.split_first_chunk::<HEADER_BYTES>() else {
            return Err(Other::Malformed(Error::Truncated));
        };
        let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let Some(payload_len) = usize::from(number(4)).checked_sub(HEADER_BYTES) else {
            return Err(Other::Malformed(Error::MalformedHeader));
        };
        let end = udp.len().min(HEADER_BYTES + payload_len);
        if missing == 0 && end < HEADER_BYTES + payload_len {
            return Err(Other::Malformed(Error::Truncated));
        }
        let address = |host: [u8; 4], port| SocketAddrV4::new(Ipv4Addr::from(host), port);
        Ok(Datagram {
            source: address(packet.source(), number(0)),
            destination: address(packet.destination(), number(2)),
            dscp: packet.dscp(),
            vlan,
            packets,
            payload: match &udp {
                Cow::Borrowed(udp) => udp[HEADER_BYTES..end].into(),
                Cow::Owned(udp) => udp[HEADER_BYTES..end].to_vec().into(),
            },
            payload_len,
        })
    }

    /// The payload of a packet in fragments and their number, once this one completes it.
    fn whole(
        &mut self,
        packet: &Packet<&[u8]>,
        bytes: &[u8],
        is_cut: bool,
    ) -> Result<(Cow<'static, [u8]>, usize), Other> {
        if is_cut {
            self.fragments.given_up += 1;
            return Err(Other::Fragment);
        }
        let fragment = Fragment {
            key: Key {
                source: packet.source(),
                destination: packet.destination(),
                identification: packet.identification(),
            },
            offset: packet.fragment_offset(),
            is_last: !packet.more_fragments(),
            bytes,
        };
        let whole = self.fragments.add(fragment).ok_or(Other::Fragment)?;
        Ok((whole.bytes.into(), whole.fragments))
    }

    /// Packets in fragments that are not whole, or never became it.
    pub(crate) fn incomplete_packets(&self) -> u64 {
        self.fragments.given_up + self.fragments.pending()
    }
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
