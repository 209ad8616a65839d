//! UDP datagrams from frames: decodes link header, VLAN tags, IPv4 and UDP, and reassembles IPv4 fragments.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddrV4;

use isolane_wire::ethernet::{self, EtherType};
use isolane_wire::ipv4::{PROTOCOL_UDP, Packet};
use isolane_wire::linux_sll::{SllPacket, SllVersion};
use isolane_wire::udp::{self, HEADER_BYTES};
use isolane_wire::vlan::VlanTag;
use pcap_parser::Linktype;

use super::capture::Frame;
use crate::limits::{FRAGMENTED_PACKETS, PACKET_BYTES};

/// UDP datagram.
#[derive(Debug)]
pub(super) struct Datagram {
    pub(super) source: SocketAddrV4,
    pub(super) destination: SocketAddrV4,
    pub(super) dscp: u8,
    /// Innermost VLAN tag.
    pub(super) vlan: Option<VlanTag>,
    /// Number of IP packets that carried the datagram; more than one if it was fragmented.
    pub(super) packets: usize,
    /// Captured part of the payload.
    pub(super) payload: Vec<u8>,
    /// Payload size in bytes, from the UDP header.
    pub(super) payload_len: usize,
}

impl Datagram {
    /// Returns whether the capture contains only a part of the payload.
    pub(super) fn is_cut(&self) -> bool {
        self.payload.len() < self.payload_len
    }
}

/// Reason why a frame yields no UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    UnknownLink(Linktype),
    Ipv6,
    NotUdp,
    /// IP fragment of a packet that is still incomplete, or cannot be completed.
    Fragment,
    Malformed,
}

/// Decoder of frames to datagrams, with the IP fragments received so far.
#[derive(Default)]
pub(super) struct Network {
    fragments: Fragments,
}

impl Network {
    /// Returns the datagram in a frame, or the datagram whose last missing fragment is in the frame.
    ///
    /// # Errors
    /// The frame yields no datagram.
    pub(super) fn read(&mut self, frame: &Frame<'_>) -> Result<Datagram, Other> {
        let (vlan, ether_type, bytes) = unwrap_link(frame)?;
        match ether_type {
            EtherType::IPV4 => {}
            EtherType::IPV6 => return Err(Other::Ipv6),
            _ => return Err(Other::NotUdp),
        }
        // The headers state the lengths of the whole packet, so zeros replace the bytes that were not captured.
        let missing = frame.original_len.saturating_sub(frame.bytes.len());
        let mut whole = bytes.to_vec();
        whole.resize(bytes.len() + missing.min(PACKET_BYTES), 0);
        let packet = Packet::new_checked(&whole[..]).map_err(|_| Other::Malformed)?;
        if packet.protocol() != PROTOCOL_UDP {
            return Err(Other::NotUdp);
        }
        let mut captured = bytes.len().saturating_sub(packet.header_len());
        let (udp, packets) = match packet.is_fragment() {
            false => (packet.payload().to_vec(), 1),
            true => {
                captured = PACKET_BYTES;
                self.fragments.add(&packet, missing > 0)?
            }
        };
        let udp = udp::Datagram::new_checked(&udp[..]).map_err(|_| Other::Malformed)?;
        let mut payload = udp.payload().to_vec();
        payload.truncate(captured.saturating_sub(HEADER_BYTES));
        Ok(Datagram {
            source: SocketAddrV4::new(packet.source().into(), udp.source_port()),
            destination: SocketAddrV4::new(packet.destination().into(), udp.destination_port()),
            dscp: packet.dscp(),
            vlan,
            packets,
            payload,
            payload_len: udp.payload().len(),
        })
    }

    /// Number of fragmented packets that were never completed.
    pub(super) fn incomplete_packets(&self) -> u64 {
        self.fragments.given_up + self.fragments.packets.len() as u64
    }
}

/// Returns the innermost VLAN tag, the EtherType and the bytes after the link header.
fn unwrap_link<'a>(frame: &Frame<'a>) -> Result<(Option<VlanTag>, u16, &'a [u8]), Other> {
    let version = match frame.link {
        Linktype::ETHERNET => {
            let frame = ethernet::Frame::new_checked(frame.bytes).map_err(|_| Other::Malformed)?;
            return Ok((frame.tags().last(), frame.ether_type(), frame.payload()));
        }
        Linktype::LINUX_SLL => SllVersion::One,
        Linktype::LINUX_SLL2 => SllVersion::Two,
        Linktype::RAW | Linktype::IPV4 => return ip(frame.bytes),
        // The first four bytes are the address family. Its values and byte order depend on the capturing host.
        Linktype::NULL | Linktype::LOOP => return ip(frame.bytes.get(4..).unwrap_or_default()),
        other => return Err(Other::UnknownLink(other)),
    };
    let packet = SllPacket::parse(version, frame.bytes).map_err(|_| Other::Malformed)?;
    let tag = packet.tags.last().copied();
    Ok((tag, packet.ether_type, packet.payload))
}

fn ip(bytes: &[u8]) -> Result<(Option<VlanTag>, u16, &[u8]), Other> {
    match bytes.first().map(|byte| byte >> 4) {
        Some(4) => Ok((None, EtherType::IPV4, bytes)),
        Some(6) => Ok((None, EtherType::IPV6, bytes)),
        Some(_) => Err(Other::NotUdp),
        None => Err(Other::Malformed),
    }
}

/// Reassembly of IP packets (RFC 791 3.2). A sample larger than the MTU may be sent in one fragmented datagram.
#[derive(Default)]
struct Fragments {
    /// Incomplete packets, the oldest first, at most `FRAGMENTED_PACKETS`.
    packets: VecDeque<Fragmented>,
    /// Number of packets that were dropped incomplete, and of fragments that cannot be used.
    given_up: u64,
}

struct Fragmented {
    /// Source, destination and identification.
    key: ([u8; 4], [u8; 4], u16),
    /// Received parts of the payload by offset, without overlaps.
    parts: BTreeMap<usize, Vec<u8>>,
    /// Length of the payload; `None` until the last fragment has arrived.
    length: Option<usize>,
}

impl Fragments {
    /// Adds a fragment. If the packet is complete, returns its payload and the number of its fragments.
    fn add(&mut self, packet: &Packet<&[u8]>, is_cut: bool) -> Result<(Vec<u8>, usize), Other> {
        let bytes = packet.payload();
        let start = packet.fragment_offset();
        let end = start + bytes.len();
        if is_cut || bytes.is_empty() || end > PACKET_BYTES {
            self.given_up += 1;
            return Err(Other::Fragment);
        }
        let key = (
            packet.source(),
            packet.destination(),
            packet.identification(),
        );
        let index = self.index_of(key);
        let Fragmented { parts, length, .. } = &mut self.packets[index];
        // A fragment that overlaps with an earlier one is ignored, whether it repeats or contradicts that one.
        if parts
            .iter()
            .any(|(offset, part)| *offset < end && start < offset + part.len())
        {
            return Err(Other::Fragment);
        }
        parts.insert(start, bytes.to_vec());
        if !packet.more_fragments() {
            *length = Some(end);
        }
        if *length != Some(parts.values().map(Vec::len).sum()) {
            return Err(Other::Fragment);
        }
        let number = parts.len();
        let payload = std::mem::take(parts).into_values().flatten().collect();
        self.packets.remove(index);
        Ok((payload, number))
    }

    fn index_of(&mut self, key: ([u8; 4], [u8; 4], u16)) -> usize {
        if let Some(index) = self.packets.iter().position(|packet| packet.key == key) {
            return index;
        }
        if self.packets.len() == FRAGMENTED_PACKETS {
            self.packets.pop_front();
            self.given_up += 1;
        }
        self.packets.push_back(Fragmented {
            key,
            parts: BTreeMap::new(),
            length: None,
        });
        self.packets.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use isolane_wire::ipv4::Repr;

    use super::*;

    /// IPv4 packet that is a fragment at `offset`.
    fn fragment(identification: u16, offset: usize, is_last: bool, bytes: &[u8]) -> Vec<u8> {
        let header = Repr {
            source: [10, 0, 0, 1],
            destination: [10, 0, 0, 2],
            protocol: PROTOCOL_UDP,
            dscp: 0,
            time_to_live: 1,
            dont_fragment: false,
            identification,
            payload_len: bytes.len(),
        };
        let mut packet = vec![0; header.buffer_len()];
        header.emit(&mut packet);
        let flags = if is_last { 0 } else { 0x2000 };
        packet[6..8].copy_from_slice(&(flags | (offset as u16 / 8)).to_be_bytes());
        [&packet, bytes].concat()
    }

    fn add(fragments: &mut Fragments, packet: &[u8]) -> Result<(Vec<u8>, usize), Other> {
        fragments.add(&Packet::new_checked(packet).expect("a packet"), false)
    }

    #[test]
    fn parts_in_any_order_make_a_whole() {
        let mut fragments = Fragments::default();
        let mut add = |packet: Vec<u8>| add(&mut fragments, &packet).ok();
        assert_eq!(add(fragment(1, 16, true, b"end")), None);
        assert_eq!(add(fragment(2, 0, false, b"01234567")), None);
        assert_eq!(add(fragment(1, 0, false, b"01234567")), None);
        assert_eq!(add(fragment(1, 0, false, b"01234567")), None, "again");
        let (payload, number) = add(fragment(1, 8, false, b"89abcdef")).expect("whole");
        assert_eq!((&payload[..], number), (&b"0123456789abcdefend"[..], 3));
        assert_eq!((fragments.packets.len(), fragments.given_up), (1, 0));
    }

    #[test]
    fn packets_that_never_become_whole_are_given_up_when_others_need_the_room() {
        let mut fragments = Fragments::default();
        for identification in 0..=FRAGMENTED_PACKETS as u16 {
            let packet = fragment(identification, 0, false, b"01234567");
            assert_eq!(add(&mut fragments, &packet), Err(Other::Fragment));
        }
        assert_eq!(fragments.given_up, 1);
        assert_eq!(fragments.packets.len(), FRAGMENTED_PACKETS);
    }

    #[test]
    fn a_fragment_beyond_the_largest_packet_is_not_reassembled() {
        let mut fragments = Fragments::default();
        let packet = fragment(1, PACKET_BYTES / 8 * 8, true, b"01234567");
        assert_eq!(add(&mut fragments, &packet), Err(Other::Fragment));
        assert_eq!((fragments.packets.len(), fragments.given_up), (0, 1));
    }
}
