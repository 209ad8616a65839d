//! Ethernet frame of a UDP datagram, with all its headers.

use isolane_wire::ethernet::{self, EtherType, MacAddress};
use isolane_wire::{ipv4, udp};

/// Maximum length of the headers: Ethernet, IPv4, UDP.
const HEADERS_BYTES: usize = 14 + 20 + 8;

/// Frame from some port of `source` to `port` of `destination`, whose device is `device`.
pub(crate) fn udp_frame(
    source: [u8; 4],
    device: MacAddress,
    destination: [u8; 4],
    port: u16,
    payload: &[u8],
) -> Vec<u8> {
    let datagram = udp::Repr {
        source_port: 4_000,
        destination_port: port,
        payload_len: payload.len(),
    };
    let packet = ipv4::Repr {
        source,
        destination,
        protocol: ipv4::PROTOCOL_UDP,
        dscp: 0,
        time_to_live: 1,
        dont_fragment: true,
        identification: 0,
        payload_len: datagram.buffer_len() + payload.len(),
    };
    let header = ethernet::Repr {
        destination: device,
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        tags: Default::default(),
        ether_type: EtherType::IPV4,
    };
    let mut bytes = [0; HEADERS_BYTES];
    let at = header.emit(&mut bytes);
    let at = at + packet.emit(&mut bytes[at..]);
    let at = at + datagram.emit(&mut bytes[at..]);
    [&bytes[..at], payload].concat()
}
