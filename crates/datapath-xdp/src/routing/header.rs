//! Header templates: made once per flow, copied before each payload.
//!
//! Of the 42 bytes (46 with a VLAN tag) before a payload, only two lengths and two checksums differ between datagrams
//! of a flow. A [`Template`] holds the rest and the partial checksums over it. Emitting is a copy, four stores, and one
//! pass over the payload for the UDP checksum.

use std::ops::Range;

use isolane_wire::checksum::{Sum, udp_pseudo_header};
use isolane_wire::ethernet::{self, EtherType};
use isolane_wire::level::Level;
use isolane_wire::vlan::{CUSTOMER_TAG, TAG_BYTES, VlanTag};
use isolane_wire::{ipv4, udp};

use super::decision::Device;

/// Header bytes without a VLAN tag.
const PLAIN_BYTES: usize = ethernet::HEADER_BYTES + ipv4::HEADER_BYTES + udp::HEADER_BYTES;

/// Header bytes with a VLAN tag: the minimum head room of transmit frames.
pub const MAX_HEADER_BYTES: usize = PLAIN_BYTES + TAG_BYTES;

/// Offset of the IPv4 total length, in headers without a tag.
const TOTAL_LENGTH: usize = ethernet::HEADER_BYTES + 2;
/// Offset of the IPv4 checksum, in headers without a tag.
const IPV4_CHECKSUM: usize = ethernet::HEADER_BYTES + 10;
/// Offset of the UDP length, in headers without a tag.
const UDP_LENGTH: usize = PLAIN_BYTES - udp::HEADER_BYTES + 4;
/// Offset of the UDP checksum, in headers without a tag.
const UDP_CHECKSUM: usize = PLAIN_BYTES - udp::HEADER_BYTES + udp::CHECKSUM_OFFSET;

/// Unicast TTL: the kernel's default.
const UNICAST_TIME_TO_LIVE: u8 = 64;
/// Multicast TTL: groups stay on the link. RTPS 2.5 does not specify it; kernel sockets default to 1.
const MULTICAST_TIME_TO_LIVE: u8 = 1;

/// Key of datagrams that share a header template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Destination address.
    pub destination: [u8; 4],
    /// Destination port.
    pub destination_port: u16,
    /// Source port.
    pub source_port: u16,
    /// Level: sets the DSCP class selector and the tag's priority code point.
    pub level: Level,
}

/// UDP checksum policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UdpChecksum {
    /// Computed over the whole datagram.
    #[default]
    Made,
    /// Sent as 0, meaning none: only the Ethernet frame check sequence protects the datagram.
    None,
}

/// Headers of one flow to one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    /// Headers for an empty payload, aligned to the end of the array: with a tag they start earlier.
    bytes: [u8; MAX_HEADER_BYTES],
    is_tagged: bool,
    /// Largest payload in bytes.
    max_payload_bytes: usize,
    /// Sum of the IPv4 header without total length and checksum.
    ipv4_sum: Sum,
    /// Sum of addresses, protocol and ports: the UDP checksum's input except lengths and payload.
    udp_sum: Sum,
}

impl Template {
    /// Builds the headers of a flow for a resolved path.
    #[must_use]
    pub fn new(device: &Device, flow: &Flow) -> Template {
        let mut ethernet = ethernet::Repr {
            destination: device.destination_mac,
            source: device.source_mac,
            tags: Default::default(),
            ether_type: EtherType::IPV4,
        };
        if let Some(id) = device.vlan {
            // Cannot fail: the header has room for two tags.
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
            // Atomic datagrams need no unique identification (RFC 6864 §4.1).
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

    /// Number of header bytes written before a payload.
    #[inline]
    #[must_use]
    pub const fn header_bytes(&self) -> usize {
        if self.is_tagged {
            MAX_HEADER_BYTES
        } else {
            PLAIN_BYTES
        }
    }

    /// Largest payload in bytes that fits one packet.
    #[inline]
    #[must_use]
    pub const fn max_payload_bytes(&self) -> usize {
        self.max_payload_bytes
    }

    /// Writes the headers directly before the payload at `frame[payload]`; returns the new start of the frame.
    ///
    /// # Panics
    /// If there are fewer than [`header_bytes`](Self::header_bytes) before the payload, if the payload ends beyond the
    /// frame, or if it exceeds the largest UDP payload.
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

    /// The length counts twice: in the pseudo header and in the UDP header.
    #[inline]
    fn udp_checksum(&self, length: u16, payload: &[u8]) -> u16 {
        let lengths = self.udp_sum.with_u16(length).with_u16(length);
        match lengths.with(payload).complement() {
            0 => 0xffff,
            checksum => checksum,
        }
    }
}

/// Returns whether an address is a multicast group (RFC 5771).
#[inline]
pub(super) const fn is_multicast(address: [u8; 4]) -> bool {
    address[0] & 0xf0 == 0xe0
}

/// Copies the last `N` bytes of a template to the end of `front`. The constant length lets the compiler inline the
/// copy.
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
