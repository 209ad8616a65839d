//! Target `frames`: Ethernet frames, IPv4 packets and UDP datagrams. A payload must be inside its packet. A parsed
//! header that is written and read again must be unchanged.

use isolane_wire::{
    ethernet::{self, EtherType},
    ipv4::{self, PROTOCOL_UDP},
    udp,
};

/// Runs the target on a frame.
pub fn frames(bytes: &[u8]) {
    if let Ok(frame) = ethernet::Frame::new_checked(bytes) {
        let header = ethernet::Repr::parse(&frame);
        let mut written = vec![0; header.buffer_len()];
        header.emit(&mut written);
        assert_eq!(written, bytes[..frame.header_len()]);
        assert_eq!(frame.header_len() + frame.payload().len(), bytes.len());
        if frame.ether_type() == EtherType::IPV4 {
            packet(frame.payload());
        }
    }
    // Random outer headers are seldom valid, so the bytes are also parsed without outer headers.
    packet(bytes);
    datagram(bytes, [10, 0, 0, 1], [10, 0, 0, 2]);
}

fn packet(bytes: &[u8]) {
    let Ok(packet) = ipv4::Packet::new_checked(bytes) else {
        return;
    };
    assert!(packet.header_len() + packet.payload().len() == packet.total_len());
    assert!(packet.total_len() <= bytes.len());
    if let Ok(header) = ipv4::Repr::parse(&packet) {
        assert!(packet.has_valid_checksum() && !packet.is_fragment());
        let mut written = [0; ipv4::HEADER_BYTES];
        header.emit(&mut written);
        let again = ipv4::Packet::new_checked(&written[..]);
        // The header alone is a complete packet only without a payload.
        assert_eq!(again.is_ok(), header.payload_len == 0);
    }
    if packet.protocol() == PROTOCOL_UDP && !packet.is_fragment() {
        datagram(packet.payload(), packet.source(), packet.destination());
    }
}

fn datagram(bytes: &[u8], source: [u8; 4], destination: [u8; 4]) {
    let Ok(datagram) = udp::Datagram::new_checked(bytes) else {
        return;
    };
    assert_eq!(
        udp::HEADER_BYTES + datagram.payload().len(),
        datagram.total_len()
    );
    assert!(datagram.total_len() <= bytes.len());
    let _ = datagram.has_valid_checksum(source, destination);
    let header = udp::Repr::parse(&datagram);
    let mut written = vec![0; header.buffer_len()];
    header.emit(&mut written);
    assert_eq!(written[..4], bytes[..4], "the ports");
}
