//! Header parsing through the checked views of `isolane-wire`: an RTPS message, or the reason that it is none.

use isolane_wire::{ethernet, ipv4, udp};

use crate::classifier::OthersReason;

/// Protocol id at the start of every RTPS message (RTPS 2.5 §9.4.4).
const RTPS: &[u8] = b"RTPS";

/// Fields of an RTPS message's headers that select its flow.
pub(super) struct Message {
    pub(super) source: [u8; 4],
    pub(super) destination: [u8; 4],
    pub(super) port: u16,
}

impl Message {
    /// Parses a frame's headers.
    ///
    /// # Errors
    /// The reason that the frame holds no RTPS message.
    pub(super) fn read(bytes: &[u8]) -> Result<Message, OthersReason> {
        let frame = ethernet::Frame::new_checked(bytes).map_err(|_| OthersReason::Runt)?;
        match frame.ether_type() {
            ethernet::EtherType::IPV4 => {}
            ethernet::EtherType::IPV6 => return Err(OthersReason::Ipv6),
            ethernet::EtherType::ARP => return Err(OthersReason::Arp),
            _ => return Err(OthersReason::OtherEtherType),
        }
        let packet = ipv4::Packet::new_checked(frame.payload());
        let packet = packet.map_err(|_| OthersReason::MalformedIpv4)?;
        if packet.is_fragment() {
            return Err(OthersReason::Fragment);
        }
        if packet.protocol() != ipv4::PROTOCOL_UDP {
            return Err(OthersReason::OtherProtocol);
        }
        let datagram = udp::Datagram::new_checked(packet.payload());
        let datagram = datagram.map_err(|_| OthersReason::MalformedUdp)?;
        if !datagram.payload().starts_with(RTPS) {
            return Err(OthersReason::NotRtps);
        }
        Ok(Message {
            source: packet.source(),
            destination: packet.destination(),
            port: datagram.destination_port(),
        })
    }
}
