//! The little the cable must know of a frame: its unfinished checksum, its UDP destination port.

/// Ethernet header without tags.
const ETHERNET_BYTES: usize = 14;
const TYPE_IPV4: u16 = 0x0800;
/// 802.1Q and 802.1ad.
const TYPES_VLAN: [u16; 2] = [0x8100, 0x88a8];
const PROTOCOL_UDP: u8 = 17;
const UDP_BYTES: usize = 8;

/// Finishes a checksum that the sender left to its device: `position` holds the sum over the
/// pseudo-header, the bytes from `start` on are still to be added (virtio 1.2 §5.1.6.2). Returns
/// false, and leaves the frame alone, if the positions lie outside of it.
pub(super) fn complete_checksum(frame: &mut [u8], start: usize, position: usize) -> bool {
    if start > frame.len() || position + 2 > frame.len() {
        return false;
    }
    let mut sum: u32 = 0;
    for word in frame[start..].chunks(2) {
        let low = word.get(1).copied().unwrap_or(0);
        sum += u32::from(u16::from_be_bytes([word[0], low]));
        // Folding each time keeps the sum of any length within its type.
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // In UDP, zero means that there is no checksum; for TCP the two are equal (RFC 768, RFC 1624).
    let checksum = match !(sum as u16) {
        0 => 0xffff,
        sum => sum,
    };
    frame[position..position + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// The (destination port, payload) of a frame that carries a whole UDP datagram in IPv4, behind at
/// most two VLAN tags. Fragments have no port of their own and are none.
pub(super) fn udp(frame: &[u8]) -> Option<(u16, &[u8])> {
    let mut at = ETHERNET_BYTES - 2;
    let mut ethertype = u16_at(frame, at)?;
    for _ in 0..2 {
        if TYPES_VLAN.contains(&ethertype) {
            at += 4;
            ethertype = u16_at(frame, at)?;
        }
    }
    if ethertype != TYPE_IPV4 {
        return None;
    }
    let packet = frame.get(at + 2..)?;
    let (version, header_bytes) = (packet.first()? >> 4, usize::from(packet[0] & 0x0f) * 4);
    const MORE_FRAGMENTS_OR_OFFSET: u16 = 0x3fff;
    if version != 4
        || *packet.get(9)? != PROTOCOL_UDP
        || u16_at(packet, 6)? & MORE_FRAGMENTS_OR_OFFSET != 0
    {
        return None;
    }
    let datagram = packet.get(header_bytes..)?;
    let length = usize::from(u16_at(datagram, 4)?);
    // Behind the datagram there may be padding of short frames.
    let payload = datagram.get(UDP_BYTES..length)?;
    Some((u16_at(datagram, 2)?, payload))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let word = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([word[0], word[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 10.78.0.1:4000 to 10.78.0.2:7401, payload "abc", UDP checksum left to the device: the field
    /// holds the sum over the pseudo-header.
    fn datagram() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
        frame.extend([0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0, 0]);
        frame.extend([10, 78, 0, 1, 10, 78, 0, 2]);
        // 0a4e + 0001 + 0a4e + 0002 + 0011 + 000b
        frame.extend([0x0f, 0xa0, 0x1c, 0xe9, 0, 11, 0x14, 0xbb]);
        frame.extend(b"abc");
        frame
    }

    /// The sum over pseudo-header and datagram; 0xffff means that the checksum is right.
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
    fn a_fragment_has_no_port() {
        let mut frame = datagram();
        frame[20] = 0x20;
        assert_eq!(udp(&frame), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(frame in prop::collection::vec(any::<u8>(), 0..80), start: u16, position: u16) {
            let _ = udp(&frame);
            complete_checksum(&mut frame.clone(), start.into(), position.into());
        }
    }
}
