//! Header parsing of received frames: payload range and sender.
//!
//! The classifier has parsed the same headers, but its result is not trusted: the frame has since been in memory that
//! others can write.
//!
//! Nearly all frames have no VLAN tag and no IPv4 options. Their fields are at fixed offsets, so a few comparisons
//! accept them. All others are parsed step by step, which also determines the fault.

use std::ops::Range;

use isolane_datapath::ReceiveDrop;
use isolane_wire::checksum::Sum;
use isolane_wire::ethernet::{self, EtherType, Frame};
use isolane_wire::ipv4::{self, PROTOCOL_UDP, Packet};
use isolane_wire::locator::Locator;
use isolane_wire::udp::{Datagram, HEADER_BYTES};

use super::martian::MartianFilter;
use crate::routing::{ChecksumState, Partial, verify};
use crate::xdp::counters;

/// Offset of the IPv4 header in a frame without tags.
const IPV4_AT: usize = ethernet::HEADER_BYTES;
/// Offset of the UDP header in a frame without tags and options.
const UDP_AT: usize = IPV4_AT + ipv4::HEADER_BYTES;
/// Header bytes of a frame without tags and options.
const PLAIN_BYTES: usize = UDP_AT + HEADER_BYTES;
/// EtherType IPv4, then version 4 and a header length of five words (no options).
const KIND: u32 = (EtherType::IPV4 as u32) << 16 | 0x4500;
/// Excludes the type of service in the last byte.
const KIND_MASK: u32 = 0xffff_ff00;
/// Not a fragment; protocol UDP.
const WAY: u32 = PROTOCOL_UDP as u32;
/// Selects the fragment flag and offset, and the protocol; excludes the TTL between them.
const WAY_MASK: u32 = 0x3fff_00ff;

/// Datagram found in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Payload, as a range of the frame.
    pub(super) payload: Range<usize>,
    /// Source address as an integer, so that it is moved as a whole.
    source: u32,
    source_port: u16,
    pub(super) checksum: ChecksumState,
}

impl Found {
    /// Payload size in bytes.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.payload.end - self.payload.start
    }

    /// Locator of the sender.
    #[inline]
    pub(super) fn from(&self) -> Locator {
        Locator::udpv4(self.source.to_be_bytes(), self.source_port)
    }
}

/// Finds the datagram in a frame. Verifies its checksums unless `partial` is `None`.
#[inline]
pub(super) fn find(
    bytes: &[u8],
    partial: Option<Partial>,
    martians: &MartianFilter,
) -> Result<Found, ReceiveDrop> {
    let Some((header, datagram)) = plain(bytes) else {
        return find_any(bytes, partial, martians);
    };
    let source = bytes_at(header, IPV4_AT + 12);
    if martians.refuses(u32::from_be_bytes(source)) {
        return Err(counters::MARTIAN_SOURCE);
    }
    let checksum = match partial {
        None => ChecksumState::None,
        Some(partial) => {
            let ipv4_header: [u8; ipv4::HEADER_BYTES] = bytes_at(header, IPV4_AT);
            if Sum::default().with(&ipv4_header).complement() != 0 {
                return Err(counters::CHECKSUM);
            }
            verify(source, bytes_at(header, IPV4_AT + 16), datagram, partial)
        }
    };
    if checksum == ChecksumState::Wrong {
        return Err(counters::CHECKSUM);
    }
    Ok(Found {
        payload: PLAIN_BYTES..UDP_AT + datagram.len(),
        source: u32::from_be_bytes(source),
        source_port: u16_at(header, UDP_AT),
        checksum,
    })
}

/// Headers and datagram of a well-formed frame without tags and options.
#[inline]
fn plain(bytes: &[u8]) -> Option<(&[u8; PLAIN_BYTES], &[u8])> {
    let header = bytes.first_chunk::<PLAIN_BYTES>()?;
    let kind = u32::from_be_bytes(bytes_at(header, IPV4_AT - 2));
    let way = u32::from_be_bytes(bytes_at(header, IPV4_AT + 6));
    if kind & KIND_MASK != KIND || way & WAY_MASK != WAY {
        return None;
    }
    let packet_bytes = usize::from(u16_at(header, IPV4_AT + 2));
    let datagram_bytes = usize::from(u16_at(header, UDP_AT + 4));
    let packet = bytes[IPV4_AT..].get(..packet_bytes)?;
    let datagram = packet.get(ipv4::HEADER_BYTES..)?.get(..datagram_bytes)?;
    (datagram_bytes >= HEADER_BYTES).then_some((header, datagram))
}

#[inline]
fn u16_at(header: &[u8; PLAIN_BYTES], position: usize) -> u16 {
    u16::from_be_bytes(bytes_at(header, position))
}

/// Field at an offset: one load, if the offset is constant.
#[inline]
fn bytes_at<const COUNT: usize>(header: &[u8; PLAIN_BYTES], position: usize) -> [u8; COUNT] {
    let field = header[position..].first_chunk();
    *field.expect("every field lies in the headers")
}

/// Finds the datagram in any frame, parsing step by step.
#[inline(never)]
fn find_any(
    bytes: &[u8],
    partial: Option<Partial>,
    martians: &MartianFilter,
) -> Result<Found, ReceiveDrop> {
    let malformed = |_| counters::MALFORMED;
    let frame = Frame::new_checked(bytes).map_err(malformed)?;
    if frame.ether_type() != EtherType::IPV4 {
        return Err(counters::MALFORMED);
    }
    let ip_at = frame.header_len();
    let packet = Packet::new_checked(frame.payload()).map_err(malformed)?;
    if packet.protocol() != PROTOCOL_UDP || packet.is_fragment() {
        return Err(counters::MALFORMED);
    }
    let datagram_bytes = packet.payload();
    let datagram = Datagram::new_checked(datagram_bytes).map_err(malformed)?;
    let (source, destination) = (packet.source(), packet.destination());
    if martians.refuses_exactly(u32::from_be_bytes(source)) {
        return Err(counters::MARTIAN_SOURCE);
    }
    let checksum = match partial {
        None => ChecksumState::None,
        Some(_) if !packet.has_valid_checksum() => ChecksumState::Wrong,
        Some(partial) => {
            let whole = &datagram_bytes[..datagram.total_len()];
            verify(source, destination, whole, partial)
        }
    };
    if checksum == ChecksumState::Wrong {
        return Err(counters::CHECKSUM);
    }
    let start = ip_at + packet.header_len() + HEADER_BYTES;
    Ok(Found {
        payload: start..start + datagram.payload().len(),
        source: u32::from_be_bytes(source),
        source_port: datagram.source_port(),
        checksum,
    })
}

#[cfg(test)]
mod tests {
    use isolane_wire::ethernet::MacAddress;
    use isolane_wire::level::Level;
    use proptest::prelude::*;

    use super::*;
    use crate::routing::{Device, Flow, Template, UdpChecksum};
    use crate::xdp::martian::tests::filter;

    const LOOK: Option<Partial> = Some(Partial::Unexpected);

    /// Filter of the receiving host.
    fn host() -> MartianFilter {
        filter(&[([10, 0, 0, 2], 32)])
    }

    /// Frame as sent by a lane.
    fn frame(vlan: Option<u16>, payload: &[u8], checksum: UdpChecksum) -> Vec<u8> {
        frame_from([10, 0, 0, 1], vlan, payload, checksum)
    }

    fn frame_from(
        source: [u8; 4],
        vlan: Option<u16>,
        payload: &[u8],
        checksum: UdpChecksum,
    ) -> Vec<u8> {
        let device = Device {
            destination_mac: MacAddress([2, 0, 0, 0, 0, 2]),
            source_mac: MacAddress([2, 0, 0, 0, 0, 1]),
            source,
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
                let found = find(&frame(vlan, payload, UdpChecksum::Made), LOOK, &host()).unwrap();
                assert_eq!(found.payload, header_bytes..header_bytes + payload.len());
                assert_eq!(found.from(), Locator::udpv4([10, 0, 0, 1], 40_000));
                assert_eq!(found.checksum, ChecksumState::Valid);
            }
        }
        let without = frame(None, b"payload", UdpChecksum::None);
        assert_eq!(
            find(&without, LOOK, &host()).unwrap().checksum,
            ChecksumState::None
        );
    }

    #[test]
    fn padding_behind_a_short_datagram_is_not_part_of_it() {
        let mut padded = frame(None, b"abc", UdpChecksum::Made);
        padded.resize(60, 0xff);
        assert_eq!(find(&padded, LOOK, &host()).unwrap().payload, 42..45);
    }

    #[test]
    fn a_changed_byte_anywhere_is_found() {
        let whole = frame(None, &[0x5a; 100], UdpChecksum::Made);
        for place in 14..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 0x10;
            let dropped = find(&changed, LOOK, &host()).unwrap_err();
            let named = [
                counters::CHECKSUM,
                counters::MALFORMED,
                counters::MARTIAN_SOURCE,
            ];
            assert!(named.contains(&dropped), "byte {place}: {dropped:?}");
        }
    }

    #[test]
    fn a_frame_from_this_host_or_from_no_host_is_dropped() {
        // Tagged frames take the step-by-step path.
        for vlan in [None, Some(5)] {
            for source in [[10, 0, 0, 2], [127, 0, 0, 1], [239, 255, 0, 1], [0; 4]] {
                let frame = frame_from(source, vlan, b"payload", UdpChecksum::Made);
                let dropped = find(&frame, LOOK, &host());
                assert_eq!(dropped, Err(counters::MARTIAN_SOURCE), "{source:?}");
            }
            let neighbour = frame_from([10, 0, 0, 66], vlan, b"payload", UdpChecksum::Made);
            assert!(find(&neighbour, LOOK, &host()).is_ok(), "same last bits");
        }
    }

    #[test]
    fn what_is_found_at_known_places_is_what_is_found_step_by_step() {
        let host = host();
        for vlan in [None, Some(5)] {
            let mut whole = frame(vlan, &[0x5a; 30], UdpChecksum::Made);
            whole.extend([0; 6]);
            for place in 0..whole.len() {
                for bits in 0..=u8::MAX {
                    let mut changed = whole.clone();
                    changed[place] ^= bits;
                    for partial in [None, LOOK, Some(Partial::Expected)] {
                        let found = find(&changed, partial, &host);
                        assert_eq!(found, find_any(&changed, partial, &host), "{place} {bits}");
                    }
                }
            }
            for length in 0..whole.len() {
                let cut = &whole[..length];
                assert_eq!(
                    find(cut, LOOK, &host),
                    find_any(cut, LOOK, &host),
                    "{length} bytes"
                );
            }
        }
    }

    #[test]
    fn no_length_is_believed() {
        let whole = frame(Some(0), &[1; 40], UdpChecksum::Made);
        for length in 0..whole.len() {
            let dropped = find(&whole[..length], LOOK, &host()).unwrap_err();
            assert_eq!(dropped, counters::MALFORMED, "{length} bytes");
        }
    }

    /// Positions and bit masks of changes to a frame: mostly in the headers, mostly one.
    fn changes() -> impl Strategy<Value = Vec<(usize, u8)>> {
        let place = prop_oneof![4 => 12..42_usize, 1 => 0..200_usize];
        let bits = prop_oneof![2 => (0..8).prop_map(|bit| 1_u8 << bit), 1 => any::<u8>()];
        prop::collection::vec((place, bits), 0..4)
    }

    /// Recomputes the IPv4 header checksum after a change, so that parsing continues behind it.
    fn mend(frame: &mut [u8]) {
        let Some(header) = frame.get_mut(IPV4_AT..UDP_AT) else {
            return;
        };
        header[10..12].fill(0);
        let checksum = Sum::default().with(header).complement();
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    fn expect_the_same(bytes: &[u8]) -> Result<(), TestCaseError> {
        let host = host();
        for partial in [None, LOOK, Some(Partial::Expected)] {
            prop_assert_eq!(find(bytes, partial, &host), find_any(bytes, partial, &host));
        }
        Ok(())
    }

    proptest! {
        // Enough cases that each header bit is likely to be changed.
        #![proptest_config(ProptestConfig::with_cases(4_096))]

        #[test]
        fn in_any_bytes_the_same_is_found(
            mut bytes in prop::collection::vec(any::<u8>(), 0..200),
            is_plain in any::<bool>(),
            lengths in prop::option::of(any::<(u8, u8)>()),
        ) {
            // Otherwise few cases would pass the first comparison.
            if is_plain && let Some(header) = bytes.first_chunk_mut::<PLAIN_BYTES>() {
                header[IPV4_AT - 2..=IPV4_AT].copy_from_slice(&[0x08, 0x00, 0x45]);
                header[IPV4_AT + 6..IPV4_AT + 8].fill(0);
                header[IPV4_AT + 9] = PROTOCOL_UDP;
                if let Some((packet, datagram)) = lengths {
                    header[IPV4_AT + 2..IPV4_AT + 4].copy_from_slice(&[0, packet]);
                    header[UDP_AT + 4..UDP_AT + 6].copy_from_slice(&[0, datagram]);
                }
            }
            expect_the_same(&bytes)?;
        }

        #[test]
        fn in_any_changed_frame_the_same_is_found(
            vlan in prop::option::of(0..4_096_u16),
            payload in prop::collection::vec(any::<u8>(), 0..100),
            has_checksum in any::<bool>(),
            padding in prop::collection::vec(any::<u8>(), 0..20),
            changes in changes(),
            is_mended in any::<bool>(),
            left in 0..400_usize,
        ) {
            let checksum = match has_checksum {
                true => UdpChecksum::Made,
                false => UdpChecksum::None,
            };
            let mut frame = frame(vlan, &payload, checksum);
            frame.extend(padding);
            for (place, bits) in changes {
                let bytes = frame.len();
                frame[place % bytes] ^= bits;
            }
            if is_mended {
                mend(&mut frame);
            }
            expect_the_same(&frame)?;
            frame.truncate(left);
            expect_the_same(&frame)?;
        }
    }
}
