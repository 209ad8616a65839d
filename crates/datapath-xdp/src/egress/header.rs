//! Headers, made once for a flow and copied in front of each payload.
//!
//! Of the 42 bytes (46 with a tag) in front of a payload, only two lengths and two checksums
//! differ from one datagram of a flow to the next. A [`Template`] holds the rest, and the sums of
//! what does not differ: emitting is a copy, four stores, and one pass over the payload for the
//! UDP checksum.

use std::ops::Range;

use isolane_wire::checksum::{Sum, udp_pseudo_header};
use isolane_wire::ethernet::{self, EtherType};
use isolane_wire::level::Level;
use isolane_wire::vlan::{CUSTOMER_TAG, TAG_BYTES, VlanTag};
use isolane_wire::{ipv4, udp};

use super::way::Device;

/// Bytes in front of a payload without a tag.
const PLAIN_BYTES: usize = ethernet::HEADER_BYTES + ipv4::HEADER_BYTES + udp::HEADER_BYTES;

/// Bytes in front of a payload with a tag: the head room that transmit frames need at least.
pub const MAX_HEADER_BYTES: usize = PLAIN_BYTES + TAG_BYTES;

/// Where, in headers without a tag, the IPv4 header's total length stands.
const TOTAL_LENGTH: usize = ethernet::HEADER_BYTES + 2;
/// The IPv4 header's checksum, likewise.
const IPV4_CHECKSUM: usize = ethernet::HEADER_BYTES + 10;
/// The UDP length, likewise.
const UDP_LENGTH: usize = PLAIN_BYTES - udp::HEADER_BYTES + 4;
/// The UDP checksum, likewise.
const UDP_CHECKSUM: usize = PLAIN_BYTES - udp::HEADER_BYTES + udp::CHECKSUM_OFFSET;

/// How many routers a datagram may pass: the kernel's own default.
const UNICAST_TIME_TO_LIVE: u8 = 64;
/// Groups stay on the link (RTPS 2.5 says nothing; the kernel's sockets send so).
const MULTICAST_TIME_TO_LIVE: u8 = 1;

/// What tells datagrams of one destination apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Where to.
    pub destination: [u8; 4],
    /// The receiver's port.
    pub destination_port: u16,
    /// The sender's port.
    pub source_port: u16,
    /// Its level: class selector in the IPv4 header, priority code point in a tag.
    pub level: Level,
}

/// Whether a datagram gets a UDP checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UdpChecksum {
    /// Over the whole datagram.
    #[default]
    Made,
    /// 0, "there is none": the Ethernet check sequence has to do.
    None,
}

/// The headers of one flow to one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    /// Headers for an empty payload; they stand at the end, so that a tag makes them begin earlier.
    bytes: [u8; MAX_HEADER_BYTES],
    is_tagged: bool,
    /// The most that fits behind them.
    max_payload_bytes: usize,
    /// The sum of the IPv4 header but for its total length and checksum.
    ipv4_sum: Sum,
    /// The sum of addresses, protocol and ports: all that the UDP checksum covers but for lengths
    /// and payload.
    udp_sum: Sum,
}

impl Template {
    /// The headers for a flow that takes this way.
    #[must_use]
    pub fn new(device: &Device, flow: &Flow) -> Template {
        let mut ethernet = ethernet::Repr {
            destination: device.destination_mac,
            source: device.source_mac,
            tags: Default::default(),
            ether_type: EtherType::IPV4,
        };
        if let Some(id) = device.vlan {
            // There is room for two.
            let _ = ethernet.tags.push(VlanTag {
                kind: CUSTOMER_TAG,
                pcp: flow.level.pcp(),
                drop_eligible: false,
                id,
            });
        }
        let ipv4 = ipv4::Repr {
            source: device.source,
            destination: device.destination,
            protocol: ipv4::PROTOCOL_UDP,
            dscp: flow.level.dscp(),
            time_to_live: match is_multicast(device.destination) {
                true => MULTICAST_TIME_TO_LIVE,
                false => UNICAST_TIME_TO_LIVE,
            },
            dont_fragment: true,
            // A packet that may not be cut needs none (RFC 6864 §4.1).
            identification: 0,
            payload_len: udp::HEADER_BYTES,
        };
        let udp = udp::Repr {
            source_port: flow.source_port,
            destination_port: flow.destination_port,
            payload_len: 0,
        };
        let is_tagged = device.vlan.is_some();
        let mut bytes = [0; MAX_HEADER_BYTES];
        let start = if is_tagged { 0 } else { TAG_BYTES };
        let ipv4_start = start + ethernet.emit(&mut bytes[start..]);
        let udp_start = ipv4_start + ipv4.emit(&mut bytes[ipv4_start..]);
        udp.emit(&mut bytes[udp_start..]);
        let header = &mut bytes[ipv4_start..udp_start];
        header[2..4].fill(0);
        header[10..12].fill(0);
        let ipv4_sum = Sum::default().with(header);
        let udp_sum = udp_pseudo_header(device.source, device.destination, 0)
            .with_u16(flow.source_port)
            .with_u16(flow.destination_port);
        let overhead = ipv4::HEADER_BYTES + udp::HEADER_BYTES;
        Template {
            bytes,
            is_tagged,
            max_payload_bytes: device
                .mtu_bytes
                .saturating_sub(overhead)
                .min(udp::Repr::MAX_PAYLOAD_BYTES),
            ipv4_sum,
            udp_sum,
        }
    }

    /// Bytes it writes in front of a payload.
    #[inline]
    #[must_use]
    pub const fn header_bytes(&self) -> usize {
        if self.is_tagged {
            MAX_HEADER_BYTES
        } else {
            PLAIN_BYTES
        }
    }

    /// Bytes of the longest payload that leaves in one packet.
    #[inline]
    #[must_use]
    pub const fn max_payload_bytes(&self) -> usize {
        self.max_payload_bytes
    }

    /// Writes the headers in front of the payload that is in place at `frame[payload]`; returns
    /// where the frame begins now.
    ///
    /// # Panics
    /// If there is less room than [`header_bytes`](Self::header_bytes) in front of the payload, if
    /// it ends behind the frame, or if it is longer than any UDP datagram.
    #[inline]
    pub fn emit(&self, frame: &mut [u8], payload: Range<usize>, checksum: UdpChecksum) -> usize {
        let (front, behind) = frame.split_at_mut(payload.start);
        let payload = &behind[..payload.end - payload.start];
        assert!(
            payload.len() <= udp::Repr::MAX_PAYLOAD_BYTES,
            "the payload does not fit into a UDP datagram"
        );
        let start = match self.is_tagged {
            true => copy_to_end::<MAX_HEADER_BYTES>(front, &self.bytes),
            false => copy_to_end::<PLAIN_BYTES>(front, &self.bytes),
        };
        let udp_length = (udp::HEADER_BYTES + payload.len()) as u16;
        let total_length = udp_length + ipv4::HEADER_BYTES as u16;
        let ipv4_checksum = self.ipv4_sum.with_u16(total_length).complement();
        let udp_checksum = match checksum {
            UdpChecksum::None => 0,
            UdpChecksum::Made => self.udp_checksum(udp_length, payload),
        };
        let Some(header) = front.last_chunk_mut::<PLAIN_BYTES>() else {
            unreachable!("they were just copied there")
        };
        let mut put =
            |at: usize, word: u16| header[at..at + 2].copy_from_slice(&word.to_be_bytes());
        put(TOTAL_LENGTH, total_length);
        put(IPV4_CHECKSUM, ipv4_checksum);
        put(UDP_LENGTH, udp_length);
        put(UDP_CHECKSUM, udp_checksum);
        start
    }

    /// The length counts twice: in the pseudo header and in the header.
    #[inline]
    fn udp_checksum(&self, length: u16, payload: &[u8]) -> u16 {
        let lengths = self.udp_sum.with_u16(length).with_u16(length);
        match lengths.with(payload).complement() {
            0 => 0xffff,
            checksum => checksum,
        }
    }
}

/// Whether an address names a group (RFC 5771).
#[inline]
pub(super) const fn is_multicast(address: [u8; 4]) -> bool {
    address[0] & 0xf0 == 0xe0
}

/// Copies the last `N` bytes of a template to the end of `front`: a copy of constant length.
#[inline]
fn copy_to_end<const N: usize>(front: &mut [u8], bytes: &[u8; MAX_HEADER_BYTES]) -> usize {
    let start = front
        .len()
        .checked_sub(N)
        .expect("a payload has head room for its headers");
    front[start..].copy_from_slice(&bytes[MAX_HEADER_BYTES - N..]);
    start
}

#[cfg(test)]
mod tests;
