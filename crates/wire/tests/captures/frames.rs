//! Comparison of Ethernet, VLAN tags, IPv4, UDP and checksums with another decoder (etherparse), and with captured
//! frames.

use crate::pcap::{CAPTURES, frames};
use etherparse::{
    EtherType as OtherEtherType, Ethernet2Header, IpFragOffset, IpNumber, Ipv4Header, UdpHeader,
    VlanHeader, VlanPcp,
};
use isolane_wire::{
    Error,
    checksum::{self, udp_pseudo_header},
    ethernet::{self, EtherType, Frame, MacAddress},
    ipv4::{self, PROTOCOL_UDP, Packet},
    level::Level,
    udp::{self, Datagram},
    vlan::{CUSTOMER_TAG, SERVICE_TAG, VlanTag},
};
use proptest::prelude::*;

const SOURCE: [u8; 4] = [10, 0, 0, 1];
const DESTINATION: [u8; 4] = [239, 255, 23, 0];

const INNER: VlanTag = VlanTag {
    kind: CUSTOMER_TAG,
    pcp: 7,
    drop_eligible: false,
    id: 5,
};

const OUTER: VlanTag = VlanTag {
    kind: SERVICE_TAG,
    pcp: 2,
    drop_eligible: true,
    id: 4095,
};

fn ethernet_header(tags: &[VlanTag]) -> ethernet::Repr {
    ethernet::Repr {
        destination: MacAddress::of_ipv4_group(DESTINATION),
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        tags: tags.iter().copied().collect(),
        ether_type: EtherType::IPV4,
    }
}

fn ipv4_header(payload_len: usize) -> ipv4::Repr {
    ipv4::Repr {
        source: SOURCE,
        destination: DESTINATION,
        protocol: PROTOCOL_UDP,
        dscp: Level::MAX.dscp(),
        time_to_live: 1,
        dont_fragment: true,
        identification: 0x1234,
        payload_len,
    }
}

/// Whole frame around a payload, with all checksums.
fn frame(tags: &[VlanTag], payload: &[u8]) -> Vec<u8> {
    let ethernet = ethernet_header(tags);
    let udp = udp::Repr {
        source_port: 7411,
        destination_port: 7401,
        payload_len: payload.len(),
    };
    let ip = ipv4_header(udp.buffer_len() + payload.len());
    let mut bytes = vec![0xaa; ethernet.buffer_len() + ip.buffer_len() + udp.buffer_len()];
    bytes.extend_from_slice(payload);
    let ip_start = ethernet.emit(&mut bytes);
    let udp_start = ip_start + ip.emit(&mut bytes[ip_start..]);
    udp.emit_with_checksum(&mut bytes[udp_start..], SOURCE, DESTINATION);
    bytes
}

#[test]
fn another_decoder_reads_the_frames_we_write_and_finds_their_checksums_right() {
    for tags in [&[][..], &[INNER], &[OUTER, INNER]] {
        for payload in [&b""[..], b"odd", b"RTPS and so on"] {
            let bytes = frame(tags, payload);
            let packet = etherparse::SlicedPacket::from_ethernet(&bytes).unwrap();
            assert_eq!(packet.vlan_ids().len(), tags.len());
            let Some(etherparse::NetSlice::Ipv4(ip)) = packet.net else {
                panic!("not IPv4");
            };
            let header = ip.header().to_header();
            assert_eq!(header.calc_header_checksum(), header.header_checksum);
            assert_eq!(header.dscp.value(), 56);
            let Some(etherparse::TransportSlice::Udp(datagram)) = packet.transport else {
                panic!("not UDP");
            };
            assert_eq!(datagram.payload(), payload);
            let other = datagram
                .to_header()
                .calc_checksum_ipv4(&header, payload)
                .unwrap();
            assert_eq!(datagram.checksum(), other);
            assert_eq!(
                (datagram.source_port(), datagram.destination_port()),
                (7411, 7401)
            );
        }
    }
}

#[test]
fn our_own_frames_read_back() {
    for tags in [&[][..], &[INNER], &[OUTER, INNER]] {
        let bytes = frame(tags, b"payload");
        let frame = Frame::new_checked(&bytes[..]).unwrap();
        assert_eq!(ethernet::Repr::parse(&frame), ethernet_header(tags));
        let packet = Packet::new_checked(frame.payload()).unwrap();
        assert_eq!(ipv4::Repr::parse(&packet), Ok(ipv4_header(15)));
        let datagram = Datagram::new_checked(packet.payload()).unwrap();
        assert!(datagram.has_valid_checksum(SOURCE, DESTINATION));
        assert_eq!(datagram.payload(), b"payload");
    }
}

#[test]
fn a_third_tag_is_what_the_frame_carries() {
    let mut header = ethernet_header(&[OUTER, INNER]);
    header.ether_type = CUSTOMER_TAG;
    let mut bytes = [0; 60];
    header.emit(&mut bytes);
    let frame = Frame::new_checked(&bytes[..]).unwrap();
    assert_eq!(frame.tags().count(), 2);
    assert_eq!(frame.ether_type(), CUSTOMER_TAG);
    assert_eq!(frame.header_len(), 22);
}

#[test]
fn frames_cut_off_in_the_header_are_truncated() {
    for tags in [&[][..], &[INNER], &[OUTER, INNER]] {
        let bytes = frame(tags, b"");
        let header_len = ethernet_header(tags).buffer_len();
        for length in 0..header_len {
            let cut = Frame::new_checked(&bytes[..length]).map(|_| ());
            assert_eq!(cut, Err(Error::Truncated), "{length} of {header_len}");
        }
        assert!(
            Frame::new_checked(&bytes[..header_len])
                .unwrap()
                .payload()
                .is_empty()
        );
    }
}

#[test]
fn a_multicast_group_has_its_own_ethernet_address() {
    let address = MacAddress::of_ipv4_group([239, 255, 23, 5]);
    assert_eq!(address.to_string(), "01:00:5e:7f:17:05");
    assert!(address.is_multicast() && MacAddress::BROADCAST.is_multicast());
    assert!(!MacAddress([2, 0, 0, 0, 0, 1]).is_multicast());
}

/// Modified packet of 28 bytes.
fn changed_packet(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = vec![0; 28];
    ipv4_header(8).emit(&mut bytes);
    change(&mut bytes);
    bytes
}

fn checked(packet: &[u8]) -> Result<(), Error> {
    Packet::new_checked(packet).map(|_| ())
}

#[test]
fn packets_whose_header_contradicts_itself_are_refused() {
    assert_eq!(checked(&changed_packet(|_| ())), Ok(()));
    let malformed = Err(Error::MalformedHeader);
    assert_eq!(checked(&changed_packet(|bytes| bytes[0] = 0x65)), malformed);
    assert_eq!(checked(&changed_packet(|bytes| bytes[0] = 0x44)), malformed);
    assert_eq!(checked(&changed_packet(|bytes| bytes[3] = 19)), malformed);
    assert_eq!(checked(&changed_packet(|bytes| bytes[0] = 0x4f)), malformed);
    let truncated = Err(Error::Truncated);
    assert_eq!(checked(&changed_packet(|bytes| bytes[3] = 29)), truncated);
    assert_eq!(
        checked(&changed_packet(|bytes| bytes.truncate(19))),
        truncated
    );
}

#[test]
fn what_follows_a_packet_is_ignored() {
    let bytes = changed_packet(|bytes| bytes.extend_from_slice(b"padding"));
    assert_eq!(Packet::new_checked(&bytes[..]).unwrap().payload(), [0; 8]);
}

#[test]
fn a_header_that_changed_on_the_way_has_a_wrong_checksum() {
    for position in 12..20 {
        let bytes = changed_packet(|bytes| bytes[position] ^= 0x10);
        let packet = Packet::new_checked(&bytes[..]).unwrap();
        assert!(!packet.has_valid_checksum());
        assert_eq!(ipv4::Repr::parse(&packet), Err(Error::Checksum));
    }
}

#[test]
fn any_fragment_is_flagged_and_never_taken_for_a_whole_packet() {
    for (offset, more, is_fragment) in [
        (0, false, false),
        (0, true, true),
        (185, true, true),
        (8191, false, true),
    ] {
        let mut header = Ipv4Header::new(8, 1, IpNumber::UDP, SOURCE, DESTINATION).unwrap();
        header.fragment_offset = IpFragOffset::try_new(offset).unwrap();
        header.more_fragments = more;
        header.header_checksum = header.calc_header_checksum();
        let bytes = [&header.to_bytes()[..], &[0; 8]].concat();
        let packet = Packet::new_checked(&bytes[..]).unwrap();
        assert_eq!(packet.is_fragment(), is_fragment);
        assert_eq!(packet.fragment_offset(), usize::from(offset) * 8);
        let parsed = ipv4::Repr::parse(&packet).map(|_| ());
        let expected = if is_fragment {
            Err(Error::Fragment)
        } else {
            Ok(())
        };
        assert_eq!(parsed, expected, "offset {offset}, more {more}");
    }
}

#[test]
fn datagrams_whose_length_is_wrong_are_refused() {
    let check =
        |bytes: &[u8]| Datagram::new_checked(bytes).map(|datagram| datagram.payload().len());
    assert_eq!(check(&[0, 1, 0, 2, 0, 8, 0, 0]), Ok(0));
    assert_eq!(
        check(&[0, 1, 0, 2, 0, 7, 0, 0]),
        Err(Error::MalformedHeader)
    );
    assert_eq!(
        check(&[0, 1, 0, 2, 0, 0, 0, 0]),
        Err(Error::MalformedHeader)
    );
    assert_eq!(check(&[0, 1, 0, 2, 0, 9, 0, 0]), Err(Error::Truncated));
    assert_eq!(check(&[0, 1, 0, 2, 0, 9, 0]), Err(Error::Truncated));
    assert_eq!(check(&[0, 1, 0, 2, 0, 9, 0, 0, 7, 7]), Ok(1));
}

#[test]
fn a_datagram_without_a_checksum_is_valid() {
    let bytes = [0, 1, 0, 2, 0, 9, 0, 0, 7];
    let datagram = Datagram::new_checked(&bytes[..]).unwrap();
    assert!(datagram.has_valid_checksum(SOURCE, DESTINATION));
}

#[test]
fn a_checksum_that_comes_out_as_zero_is_sent_as_ones() {
    // The only payload word with which the sum is all ones.
    let repr = udp::Repr {
        source_port: 1,
        destination_port: 2,
        payload_len: 2,
    };
    let mut bytes = [0; 10];
    repr.emit(&mut bytes);
    let word = udp_pseudo_header(SOURCE, DESTINATION, 10)
        .with(&bytes)
        .complement();
    bytes[8..].copy_from_slice(&word.to_be_bytes());
    repr.emit_with_checksum(&mut bytes, SOURCE, DESTINATION);
    assert_eq!(bytes[6..8], [0xff, 0xff]);
    let datagram = Datagram::new_checked(&bytes[..]).unwrap();
    assert!(datagram.has_valid_checksum(SOURCE, DESTINATION));
}

#[test]
fn a_partial_checksum_is_completed_to_the_whole_one() {
    let whole = frame(&[INNER], b"some payload");
    let start = 18 + ipv4::HEADER_BYTES;
    let field = start + udp::CHECKSUM_OFFSET;
    let mut partial = whole.clone();
    let length = (partial.len() - start) as u16;
    let pseudo = udp_pseudo_header(SOURCE, DESTINATION, length).fold();
    partial[field..field + 2].copy_from_slice(&pseudo.to_be_bytes());
    checksum::complete(&mut partial, start, udp::CHECKSUM_OFFSET).unwrap();
    assert_eq!(partial, whole);
}

#[test]
fn captured_frames_have_valid_checksums_or_the_partial_ones_of_virtual_interfaces() {
    let (mut finished, mut partial) = (0, 0);
    for name in CAPTURES {
        for bytes in frames(name) {
            let frame = Frame::new_checked(&bytes[..]).unwrap();
            if frame.ether_type() != EtherType::IPV4 {
                continue;
            }
            let packet = Packet::new_checked(frame.payload()).unwrap();
            assert!(packet.has_valid_checksum(), "{name}");
            if packet.is_fragment() || packet.protocol() != PROTOCOL_UDP {
                continue;
            }
            let (source, destination) = (packet.source(), packet.destination());
            let datagram = Datagram::new_checked(packet.payload()).unwrap();
            if datagram.has_valid_checksum(source, destination) {
                finished += 1;
                continue;
            }
            // The kernel has left only the sum of the pseudo header. Completing it makes the datagram valid.
            let length = datagram.total_len() as u16;
            let pseudo = udp_pseudo_header(source, destination, length);
            assert_eq!(datagram.checksum(), pseudo.fold(), "{name}");
            let mut bytes = packet.payload().to_vec();
            checksum::complete(&mut bytes, 0, udp::CHECKSUM_OFFSET).unwrap();
            let datagram = Datagram::new_checked(&bytes[..]).unwrap();
            assert!(datagram.has_valid_checksum(source, destination), "{name}");
            partial += 1;
        }
    }
    assert!(
        finished + partial > 500,
        "{finished} finished, {partial} partial"
    );
    assert!(partial > 0, "the captures were made on virtual interfaces");
}

proptest! {
    #[test]
    fn the_other_decoder_and_ours_agree_on_tags(pcp in 0_u8..8, dei: bool, id in 0_u16..4096) {
        let tag = VlanTag { kind: CUSTOMER_TAG, pcp, drop_eligible: dei, id };
        let mut bytes = vec![0; 18];
        ethernet_header(&[tag]).emit(&mut bytes);
        let other = etherparse::SlicedPacket::from_ethernet(&bytes);
        // Nothing follows the header, so only the link layer can be read.
        prop_assert!(other.is_err());
        let (link, rest) = Ethernet2Header::from_slice(&bytes).unwrap();
        prop_assert_eq!(link.ether_type, OtherEtherType(CUSTOMER_TAG));
        let (other, _) = etherparse::SingleVlanHeader::from_slice(rest).unwrap();
        prop_assert_eq!(other.pcp, VlanPcp::try_new(pcp).unwrap());
        prop_assert_eq!(other.drop_eligible_indicator, dei);
        prop_assert_eq!(other.vlan_id.value(), id);
        let frame = Frame::new_checked(&bytes[..]).unwrap();
        prop_assert_eq!(frame.tags().next(), Some(tag));
        prop_assert_eq!(frame.pcp(), Some(pcp));
    }

    #[test]
    fn the_other_decoder_and_ours_agree_on_ipv4_headers_with_options(
        source: [u8; 4],
        destination: [u8; 4],
        protocol: u8,
        time_to_live: u8,
        dscp in 0_u8..64,
        ecn in 0_u8..4,
        identification: u16,
        dont_fragment: bool,
        option_words in 0_usize..=10,
        payload in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut other = Ipv4Header::new(
            payload.len() as u16, time_to_live, IpNumber(protocol), source, destination,
        ).unwrap();
        other.dscp = dscp.try_into().unwrap();
        other.ecn = ecn.try_into().unwrap();
        other.identification = identification;
        other.dont_fragment = dont_fragment;
        other.options = vec![1; option_words * 4][..].try_into().unwrap();
        other.set_payload_len(payload.len()).unwrap();
        other.header_checksum = other.calc_header_checksum();
        let bytes = [&other.to_bytes()[..], &payload].concat();

        let packet = Packet::new_checked(&bytes[..]).unwrap();
        prop_assert_eq!(packet.header_len(), 20 + option_words * 4);
        prop_assert_eq!(packet.ecn(), ecn);
        prop_assert_eq!(packet.class_selector(), dscp >> 3);
        prop_assert_eq!(packet.payload(), &payload[..]);
        let parsed = ipv4::Repr::parse(&packet).unwrap();
        let expected = ipv4::Repr {
            source, destination, protocol, dscp, time_to_live, dont_fragment, identification,
            payload_len: payload.len(),
        };
        prop_assert_eq!(parsed, expected);
    }

    #[test]
    fn the_other_decoder_and_ours_agree_on_udp_checksums(
        source: [u8; 4],
        destination: [u8; 4],
        source_port: u16,
        destination_port: u16,
        payload in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let repr = udp::Repr { source_port, destination_port, payload_len: payload.len() };
        let mut bytes = [&[0; 8][..], &payload].concat();
        repr.emit_with_checksum(&mut bytes, source, destination);
        let other = UdpHeader::with_ipv4_checksum(
            source_port,
            destination_port,
            &Ipv4Header::new(bytes.len() as u16, 1, IpNumber::UDP, source, destination).unwrap(),
            &payload,
        ).unwrap();
        prop_assert_eq!(&bytes[..8], &other.to_bytes()[..]);
        let datagram = Datagram::new_checked(&bytes[..]).unwrap();
        prop_assert_eq!(udp::Repr::parse(&datagram), repr);
        prop_assert!(datagram.has_valid_checksum(source, destination));
    }

    #[test]
    fn no_bytes_make_the_checks_or_the_accessors_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        if let Ok(frame) = Frame::new_checked(&bytes[..]) {
            let _ = (ethernet::Repr::parse(&frame), frame.payload());
        }
        if let Ok(packet) = Packet::new_checked(&bytes[..]) {
            let _ = (ipv4::Repr::parse(&packet), packet.payload(), packet.ecn());
        }
        if let Ok(datagram) = Datagram::new_checked(&bytes[..]) {
            let _ = (udp::Repr::parse(&datagram), datagram.payload());
            let _ = datagram.has_valid_checksum(SOURCE, DESTINATION);
        }
    }
}

#[test]
fn the_two_tags_of_a_frame_are_read_in_order_by_both() {
    let bytes = frame(&[OUTER, INNER], b"x");
    let packet = etherparse::PacketHeaders::from_ethernet_slice(&bytes).unwrap();
    let Some(VlanHeader::Double(other)) = packet.vlan() else {
        panic!("not two tags");
    };
    let ours: Vec<_> = Frame::new_checked(&bytes[..]).unwrap().tags().collect();
    assert_eq!(ours, [OUTER, INNER]);
    assert_eq!(other.outer.vlan_id.value(), OUTER.id);
    assert_eq!(other.inner.vlan_id.value(), INNER.id);
    assert_eq!(other.inner.pcp.value(), INNER.pcp);
}
