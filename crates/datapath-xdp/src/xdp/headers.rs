//! Where the payload of a received frame lies, and who sent it.
//!
//! The classifier has looked at the same headers, and is not believed: between its look and this one
//! lies memory that others write to.
//!
//! Nearly all frames have no tag and no options. Where each field of theirs lies is known before they
//! are looked at, so they are judged by a few comparisons at fixed places; all others, and those that
//! do not pass, are read step by step, which also finds out what is wrong with them.

use std::ops::Range;

use isolane_datapath::ReceiveDrop;
use isolane_wire::checksum::Sum;
use isolane_wire::ethernet::{self, EtherType, Frame};
use isolane_wire::ipv4::{self, PROTOCOL_UDP, Packet};
use isolane_wire::locator::Locator;
use isolane_wire::udp::{Datagram, HEADER_BYTES};

use crate::egress::{Judgement, Partial, judge};

/// Where the IPv4 header of a frame without tags begins.
const IPV4_AT: usize = ethernet::HEADER_BYTES;
/// Where the UDP header of a frame without tags and options begins.
const UDP_AT: usize = IPV4_AT + ipv4::HEADER_BYTES;
/// Bytes of its headers.
const PLAIN_BYTES: usize = UDP_AT + HEADER_BYTES;
/// Version 4 and five words: an IPv4 header without options.
const NO_OPTIONS: u8 = 0x45;
/// Of the IPv4 header's flags and offset, those that make a fragment.
const FRAGMENT: u16 = 0x3fff;

/// A datagram in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Its payload, as a range of the frame.
    pub(super) payload: Range<usize>,
    pub(super) from: Locator,
    pub(super) checksum: Judgement,
}

/// Finds the datagram in a frame, its checksum judged unless `partial` is `None`.
#[inline]
pub(super) fn find(bytes: &[u8], partial: Option<Partial>) -> Result<Found, ReceiveDrop> {
    let Some((header, datagram)) = plain(bytes) else {
        return find_any(bytes, partial);
    };
    let source = four_at(header, IPV4_AT + 12);
    let checksum = match partial {
        None => Judgement::None,
        Some(partial) => {
            let (_, ipv4_header) = header[..UDP_AT].split_at(IPV4_AT);
            if Sum::default().with(ipv4_header).complement() != 0 {
                return Err(ReceiveDrop::Checksum);
            }
            judge(source, four_at(header, IPV4_AT + 16), datagram, partial)
        }
    };
    if checksum == Judgement::Wrong {
        return Err(ReceiveDrop::Checksum);
    }
    Ok(Found {
        payload: PLAIN_BYTES..UDP_AT + datagram.len(),
        from: Locator::udpv4(source, u16_at(header, UDP_AT)),
        checksum,
    })
}

/// The headers and the datagram of a frame without tags, options and mistakes.
#[inline]
fn plain(bytes: &[u8]) -> Option<(&[u8; PLAIN_BYTES], &[u8])> {
    let header = bytes.first_chunk::<PLAIN_BYTES>()?;
    let is_plain = u16_at(header, IPV4_AT - 2) == EtherType::IPV4
        && header[IPV4_AT] == NO_OPTIONS
        && u16_at(header, IPV4_AT + 6) & FRAGMENT == 0
        && header[IPV4_AT + 9] == PROTOCOL_UDP;
    let packet_bytes = usize::from(u16_at(header, IPV4_AT + 2));
    let datagram_bytes = usize::from(u16_at(header, UDP_AT + 4));
    let fits = datagram_bytes >= HEADER_BYTES
        && ipv4::HEADER_BYTES + datagram_bytes <= packet_bytes
        && IPV4_AT + packet_bytes <= bytes.len();
    let datagram = bytes.get(UDP_AT..UDP_AT + datagram_bytes)?;
    (is_plain && fits).then_some((header, datagram))
}

#[inline]
fn u16_at(header: &[u8; PLAIN_BYTES], position: usize) -> u16 {
    u16::from_be_bytes([header[position], header[position + 1]])
}

#[inline]
fn four_at(header: &[u8; PLAIN_BYTES], position: usize) -> [u8; 4] {
    // Written out it is one load; mapped over positions it is a call.
    let [a, b, c, d] = [position, position + 1, position + 2, position + 3];
    [header[a], header[b], header[c], header[d]]
}

/// The same, read step by step.
#[inline(never)]
fn find_any(bytes: &[u8], partial: Option<Partial>) -> Result<Found, ReceiveDrop> {
    let malformed = |_| ReceiveDrop::Malformed;
    let frame = Frame::new_checked(bytes).map_err(malformed)?;
    if frame.ether_type() != EtherType::IPV4 {
        return Err(ReceiveDrop::Malformed);
    }
    let ip_at = frame.header_len();
    let packet = Packet::new_checked(frame.payload()).map_err(malformed)?;
    if packet.protocol() != PROTOCOL_UDP || packet.is_fragment() {
        return Err(ReceiveDrop::Malformed);
    }
    let datagram_bytes = packet.payload();
    let datagram = Datagram::new_checked(datagram_bytes).map_err(malformed)?;
    let (source, destination) = (packet.source(), packet.destination());
    let checksum = match partial {
        None => Judgement::None,
        Some(_) if !packet.has_valid_checksum() => Judgement::Wrong,
        Some(partial) => {
            let whole = &datagram_bytes[..datagram.total_len()];
            judge(source, destination, whole, partial)
        }
    };
    if checksum == Judgement::Wrong {
        return Err(ReceiveDrop::Checksum);
    }
    let start = ip_at + packet.header_len() + HEADER_BYTES;
    Ok(Found {
        payload: start..start + datagram.payload().len(),
        from: Locator::udpv4(source, datagram.source_port()),
        checksum,
    })
}

#[cfg(test)]
mod tests {
    use isolane_wire::ethernet::MacAddress;
    use isolane_wire::level::Level;

    use super::*;
    use crate::egress::{Device, Flow, Template, UdpChecksum};

    const LOOK: Option<Partial> = Some(Partial::Unexpected);

    /// A frame as a lane sends it.
    fn frame(vlan: Option<u16>, payload: &[u8], checksum: UdpChecksum) -> Vec<u8> {
        let device = Device {
            destination_mac: MacAddress([2, 0, 0, 0, 0, 2]),
            source_mac: MacAddress([2, 0, 0, 0, 0, 1]),
            source: [10, 0, 0, 1],
            destination: [10, 0, 0, 2],
            vlan,
            mtu_bytes: 1_500,
        };
        let flow = Flow {
            destination: [10, 0, 0, 2],
            destination_port: 7_411,
            source_port: 40_000,
            level: Level::ALL[7],
        };
        let mut buffer = [&[0; 64], payload].concat();
        let end = buffer.len();
        let start = Template::new(&device, &flow).emit(&mut buffer, 64..end, checksum);
        buffer.split_off(start)
    }

    #[test]
    fn what_a_lane_sends_a_lane_finds_again() {
        for (vlan, header_bytes) in [(None, 42), (Some(5), 46)] {
            for payload in [&b""[..], b"x", &[7; 1_400]] {
                let found = find(&frame(vlan, payload, UdpChecksum::Made), LOOK).unwrap();
                assert_eq!(found.payload, header_bytes..header_bytes + payload.len());
                assert_eq!(found.from, Locator::udpv4([10, 0, 0, 1], 40_000));
                assert_eq!(found.checksum, Judgement::Valid);
            }
        }
        let without = frame(None, b"payload", UdpChecksum::None);
        assert_eq!(find(&without, LOOK).unwrap().checksum, Judgement::None);
    }

    #[test]
    fn padding_behind_a_short_datagram_is_not_part_of_it() {
        let mut padded = frame(None, b"abc", UdpChecksum::Made);
        padded.resize(60, 0xff);
        assert_eq!(find(&padded, LOOK).unwrap().payload, 42..45);
    }

    #[test]
    fn a_changed_byte_anywhere_is_found() {
        let whole = frame(None, &[0x5a; 100], UdpChecksum::Made);
        for place in 14..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 0x10;
            let dropped = find(&changed, LOOK).unwrap_err();
            let named = [ReceiveDrop::Checksum, ReceiveDrop::Malformed];
            assert!(named.contains(&dropped), "byte {place}: {dropped:?}");
        }
    }

    #[test]
    fn what_is_found_at_known_places_is_what_is_found_step_by_step() {
        for vlan in [None, Some(5)] {
            let mut whole = frame(vlan, &[0x5a; 30], UdpChecksum::Made);
            whole.extend([0; 6]);
            for place in 0..whole.len() {
                for bits in 0..=u8::MAX {
                    let mut changed = whole.clone();
                    changed[place] ^= bits;
                    for partial in [None, LOOK, Some(Partial::Expected)] {
                        let found = find(&changed, partial);
                        assert_eq!(found, find_any(&changed, partial), "{place} {bits}");
                    }
                }
            }
            for length in 0..whole.len() {
                let cut = &whole[..length];
                assert_eq!(find(cut, LOOK), find_any(cut, LOOK), "{length} bytes");
            }
        }
    }

    #[test]
    fn no_length_is_believed() {
        let whole = frame(Some(0), &[1; 40], UdpChecksum::Made);
        for length in 0..whole.len() {
            let dropped = find(&whole[..length], LOOK).unwrap_err();
            assert_eq!(dropped, ReceiveDrop::Malformed, "{length} bytes");
        }
    }
}
