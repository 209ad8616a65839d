//! Frames of all kinds. Most are RTPS messages to ports and addresses from small sets, so that they match flows. The
//! others are malformed in each layer.

use fastrand::Rng;
use isolane_wire::ethernet::{EtherType, MacAddress};
use isolane_wire::vlan::{CUSTOMER_TAG, SERVICE_TAG};
use isolane_wire::{ipv4, udp};

/// Ports with registered flows, and two that never have one.
pub(crate) const PORTS: [u16; 6] = [7_401, 7_411, 7_651, 40_000, 1, 65_535];
const OTHER_PORTS: [u16; 2] = [7_400, 53];

/// Addresses with registered flows, and one that never has one.
pub(crate) const ADDRESSES: [[u8; 4]; 4] = [
    [10, 0, 0, 1],
    [239, 255, 23, 0],
    [239, 255, 16, 0],
    [239, 255, 17, 7],
];
const OTHER_ADDRESS: [u8; 4] = [10, 0, 0, 2];

/// Source addresses of frames.
pub(crate) const SOURCES: [[u8; 4]; 4] = [[10, 0, 0, 7], [10, 0, 0, 8], [192, 168, 1, 1], [0; 4]];

/// Length of the shortest frame that the kernel accepts for a test run.
const SHORTEST_BYTES: usize = 14;

/// Random element of `of`.
pub(crate) fn one_of<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(..of.len())]
}

/// True in the given percentage of calls.
pub(crate) fn happens(rng: &mut Rng, percent: u8) -> bool {
    rng.u8(..100) < percent
}

/// Random frame.
pub(crate) fn frame(rng: &mut Rng) -> Vec<u8> {
    let mut frame = match rng.u8(..100) {
        0..90 => ethernet(rng, EtherType::IPV4, packet),
        90..93 => ethernet(rng, EtherType::IPV6, bytes),
        93..96 => ethernet(rng, EtherType::ARP, bytes),
        _ => {
            let ether_type = rng.u16(..);
            ethernet(rng, ether_type, bytes)
        }
    };
    if happens(rng, 4) {
        frame.truncate(rng.usize(SHORTEST_BYTES..=frame.len().max(SHORTEST_BYTES)));
    }
    if happens(rng, 4) {
        for _ in 0..rng.usize(1..4) {
            // Mostly within the headers.
            let at = rng.usize(..frame.len().min(70));
            frame[at] ^= 1 << rng.u8(..8);
        }
    }
    let shortest = frame.len().max(SHORTEST_BYTES);
    frame.resize(shortest, 0);
    frame
}

fn ethernet(rng: &mut Rng, ether_type: u16, inside: impl Fn(&mut Rng, &mut Vec<u8>)) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(MacAddress::BROADCAST.0);
    frame.extend(MacAddress([2, 0, 0, 0, 0, 1]).0);
    let tags = match rng.u8(..100) {
        0..70 => 0,
        70..83 => 1,
        83..95 => 2,
        _ => 3,
    };
    for _ in 0..tags {
        let kind = one_of(rng, &[CUSTOMER_TAG, SERVICE_TAG]);
        frame.extend(kind.to_be_bytes());
        frame.extend(rng.u16(..).to_be_bytes());
    }
    frame.extend(ether_type.to_be_bytes());
    inside(rng, &mut frame);
    if happens(rng, 20) {
        // Ethernet padding after the packet's end.
        bytes(rng, &mut frame);
    }
    frame
}

fn bytes(rng: &mut Rng, frame: &mut Vec<u8>) {
    let count = rng.usize(..50);
    frame.extend(std::iter::repeat_with(|| rng.u8(..)).take(count));
}

fn packet(rng: &mut Rng, frame: &mut Vec<u8>) {
    let payload = datagram(rng);
    let repr = ipv4::Repr {
        source: one_of(rng, &SOURCES),
        destination: if happens(rng, 3) {
            OTHER_ADDRESS
        } else {
            one_of(rng, &ADDRESSES)
        },
        protocol: if happens(rng, 3) {
            rng.u8(..)
        } else {
            ipv4::PROTOCOL_UDP
        },
        dscp: rng.u8(..64),
        time_to_live: rng.u8(..),
        dont_fragment: rng.bool(),
        identification: rng.u16(..),
        payload_len: payload.len(),
    };
    let mut header = vec![0; repr.buffer_len()];
    repr.emit(&mut header);
    if happens(rng, 10) {
        options(rng, &mut header, payload.len());
    }
    if happens(rng, 4) {
        // The first fragment, a middle one, and the last one.
        let fragment: u16 = one_of(rng, &[0x2000, 0x2000 | 185, 185, 1, 0x1fff]);
        header[6..8].copy_from_slice(&fragment.to_be_bytes());
    }
    if happens(rng, 3) {
        // Wrong lengths.
        let at = one_of(rng, &[0, 2, 3]);
        header[at] = one_of(rng, &[0, 0x40, 0x44, 0x46, 0x4f, 0x65, 0xff]);
    }
    frame.extend(header);
    frame.extend(payload);
}

/// Adds up to ten words of options.
fn options(rng: &mut Rng, header: &mut Vec<u8>, payload_bytes: usize) {
    let words = rng.u8(1..=10);
    header[0] += words;
    header.extend(std::iter::repeat_with(|| rng.u8(..)).take(usize::from(words) * 4));
    let total = (header.len() + payload_bytes) as u16;
    header[2..4].copy_from_slice(&total.to_be_bytes());
}

fn datagram(rng: &mut Rng) -> Vec<u8> {
    let mut payload = match rng.u8(..100) {
        0..94 => b"RTPS".to_vec(),
        94..96 => b"RTPX".to_vec(),
        96..98 => b"RTP".to_vec(),
        98 => b"RTPS"[..rng.usize(..4)].to_vec(),
        _ => b"rtps".to_vec(),
    };
    if payload == b"RTPS" {
        let count = if happens(rng, 2) {
            1_400
        } else {
            rng.usize(..60)
        };
        payload.resize(4 + count, 0);
    }
    let repr = udp::Repr {
        source_port: rng.u16(..),
        destination_port: if happens(rng, 5) {
            one_of(rng, &OTHER_PORTS)
        } else {
            one_of(rng, &PORTS)
        },
        payload_len: payload.len(),
    };
    let mut datagram = vec![0; repr.buffer_len()];
    repr.emit(&mut datagram);
    datagram.extend(payload);
    if happens(rng, 2) {
        let length: u16 = one_of(rng, &[0, 7, 8, 9, 11, 12, 2_000, 65_535]);
        datagram[4..6].copy_from_slice(&length.to_be_bytes());
    }
    datagram
}
