//! Frame fields the cable needs: offloaded checksum, traffic class and UDP destination port.

use isolane_wire::checksum;
use isolane_wire::ethernet::{EtherType, Frame};
use isolane_wire::ipv4::{PROTOCOL_UDP, Packet};
use isolane_wire::udp::Datagram;

/// Completes a checksum that the sender offloaded to its device. `position` holds the sum over the pseudo-header; the
/// bytes from `start` on are still to be added (virtio 1.2 §5.1.6.2). Returns false, without a change, if a position
/// lies outside the frame.
pub(super) fn complete_checksum(frame: &mut [u8], start: usize, position: usize) -> bool {
    let offset = position.checked_sub(start);
    offset.is_some_and(|offset| checksum::complete(frame, start, offset).is_ok())
}

/// Traffic class for a strict arbiter, 0 to 7 (most urgent): the priority code point of the outermost tag, else the
/// class selector of an IPv4 packet or fragment, else 0.
pub(super) fn class(frame: &[u8]) -> u8 {
    let Ok(frame) = Frame::new_checked(frame) else {
        return 0;
    };
    let class = frame.pcp().or_else(|| Some(ipv4(&frame)?.class_selector()));
    class.unwrap_or(0)
}

/// Destination port and payload of a frame that carries a whole UDP datagram in IPv4, behind at most two VLAN tags.
/// Returns `None` for fragments.
pub(super) fn udp(frame: &[u8]) -> Option<(u16, &[u8])> {
    let packet = ipv4(&Frame::new_checked(frame).ok()?)?;
    if packet.protocol() != PROTOCOL_UDP || packet.is_fragment() {
        return None;
    }
    // Short frames may be padded behind the packet; the payload excludes the padding.
    let datagram = Datagram::new_checked(packet.payload()).ok()?;
    Some((datagram.destination_port(), datagram.payload()))
}

fn ipv4<'a>(frame: &Frame<&'a [u8]>) -> Option<Packet<&'a [u8]>> {
    if frame.ether_type() != EtherType::IPV4 {
        return None;
    }
    Packet::new_checked(frame.payload()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Frame from 10.78.0.1:4000 to 10.78.0.2:7401 with payload "abc". Its UDP checksum field holds the sum over the
    /// pseudo-header only (checksum offload).
    fn datagram() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
        frame.extend([0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0, 0]);
        frame.extend([10, 78, 0, 1, 10, 78, 0, 2]);
        // 0a4e + 0001 + 0a4e + 0002 + 0011 + 000b
        frame.extend([0x0f, 0xa0, 0x1c, 0xe9, 0, 11, 0x14, 0xbb]);
        frame.extend(b"abc");
        frame
    }

    /// Sum over pseudo-header and datagram; 0xffff means a valid checksum.
    fn verify(frame: &[u8]) -> u16 {
        let mut covered = frame[26..34].to_vec();
        covered.extend([0, 17]);
        covered.extend(&frame[38..40]);
        covered.extend(&frame[34..]);
        let mut sum: u32 = 0;
        for word in covered.chunks(2) {
            sum += u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0));
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn an_unfinished_checksum_is_finished() {
        let mut frame = datagram();
        assert_ne!(verify(&frame), 0xffff);
        assert!(complete_checksum(&mut frame, 34, 40));
        assert_eq!(verify(&frame), 0xffff);
    }

    #[test]
    fn a_checksum_outside_the_frame_changes_nothing() {
        let mut frame = datagram();
        assert!(!complete_checksum(&mut frame, 34, 44));
        assert!(!complete_checksum(&mut frame, 46, 40));
        assert_eq!(frame, datagram());
    }

    #[test]
    fn the_port_is_found_with_and_without_tags() {
        let plain = datagram();
        assert_eq!(udp(&plain), Some((7401, &b"abc"[..])));
        let mut tagged = plain.clone();
        tagged.splice(12..12, [0x88, 0xa8, 0, 5, 0x81, 0x00, 0xe0, 7]);
        assert_eq!(udp(&tagged), Some((7401, &b"abc"[..])));
    }

    #[test]
    fn padding_behind_a_short_datagram_is_no_payload() {
        let mut padded = datagram();
        padded.resize(60, 0xff);
        assert_eq!(udp(&padded), Some((7401, &b"abc"[..])));
    }

    #[test]
    fn the_class_is_the_outer_tags_else_the_code_points_else_the_lowest() {
        let mut plain = datagram();
        assert_eq!(class(&plain), 0);
        // DSCP 46 (expedited forwarding) belongs to class 5.
        plain[15] = 46 << 2;
        assert_eq!(class(&plain), 5);
        let mut fragment = plain.clone();
        fragment[20] = 0x20;
        assert_eq!(class(&fragment), 5);
        let mut tagged = plain.clone();
        tagged.splice(12..12, [0x88, 0xa8, 0x60, 5, 0x81, 0x00, 0xe0, 7]);
        assert_eq!(class(&tagged), 3);
        // An ARP request, a truncated packet, half a header.
        plain[12..14].copy_from_slice(&[0x08, 0x06]);
        assert_eq!(class(&plain), 0);
        assert_eq!(class(&datagram()[..30]), 0);
        assert_eq!(class(&[0; 13]), 0);
    }

    #[test]
    fn a_fragment_has_no_port() {
        let mut frame = datagram();
        frame[20] = 0x20;
        assert_eq!(udp(&frame), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(frame in prop::collection::vec(any::<u8>(), 0..80), start: u16, position: u16) {
            let _ = udp(&frame);
            assert!(class(&frame) < 8);
            complete_checksum(&mut frame.clone(), start.into(), position.into());
        }
    }
}
