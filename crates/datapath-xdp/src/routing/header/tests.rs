use isolane_wire::ethernet::{Frame, MacAddress};
use isolane_wire::ipv4::Packet;
use isolane_wire::udp::Datagram;

use super::*;

fn device(destination: [u8; 4], vlan: Option<u16>) -> Device {
    Device {
        destination_mac: match is_multicast(destination) {
            true => MacAddress::of_ipv4_group(destination),
            false => MacAddress([2, 0, 0, 0, 0, 2]),
        },
        source_mac: MacAddress([2, 0, 0, 0, 0, 1]),
        source: [10, 0, 0, 1],
        destination,
        vlan,
        mtu_bytes: 1500,
    }
}

fn flow(destination: [u8; 4], level: u8) -> Flow {
    Flow {
        destination,
        destination_port: 7411,
        source_port: 45_000,
        level: Level::new(level).expect("a level"),
    }
}

/// Frame produced by a template.
fn emitted(device: &Device, flow: &Flow, payload: &[u8], checksum: UdpChecksum) -> Vec<u8> {
    const HEAD_ROOM: usize = 48;
    let mut frame = vec![0xee; HEAD_ROOM];
    frame.extend_from_slice(payload);
    let end = frame.len();
    let start = Template::new(device, flow).emit(&mut frame, HEAD_ROOM..end, checksum);
    assert!(
        frame[..start].iter().all(|byte| *byte == 0xee),
        "nothing is written in front of the headers"
    );
    frame.split_off(start)
}

/// Frame produced by the emitters of `isolane-wire`.
fn expected(device: &Device, flow: &Flow, payload: &[u8]) -> Vec<u8> {
    let mut ethernet = ethernet::Repr {
        destination: device.destination_mac,
        source: device.source_mac,
        tags: Default::default(),
        ether_type: EtherType::IPV4,
    };
    if let Some(id) = device.vlan {
        let tag = VlanTag {
            kind: CUSTOMER_TAG,
            pcp: flow.level.pcp(),
            drop_eligible: false,
            id,
        };
        ethernet.tags.push(tag).expect("room for a tag");
    }
    let udp = udp::Repr {
        source_port: flow.source_port,
        destination_port: flow.destination_port,
        payload_len: payload.len(),
    };
    let ipv4 = ipv4::Repr {
        source: device.source,
        destination: device.destination,
        protocol: ipv4::PROTOCOL_UDP,
        dscp: flow.level.dscp(),
        time_to_live: if is_multicast(device.destination) {
            1
        } else {
            64
        },
        dont_fragment: true,
        identification: 0,
        payload_len: udp::HEADER_BYTES + payload.len(),
    };
    let mut frame = vec![0; ethernet.buffer_len() + PLAIN_BYTES - ethernet::HEADER_BYTES];
    let ipv4_start = ethernet.emit(&mut frame);
    let udp_start = ipv4_start + ipv4.emit(&mut frame[ipv4_start..]);
    udp.emit(&mut frame[udp_start..]);
    frame.extend_from_slice(payload);
    let sum = udp_pseudo_header(device.source, device.destination, udp_length(payload))
        .with(&frame[udp_start..])
        .complement();
    let sum = if sum == 0 { 0xffff } else { sum };
    let at = udp_start + udp::CHECKSUM_OFFSET;
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    frame
}

fn udp_length(payload: &[u8]) -> u16 {
    (udp::HEADER_BYTES + payload.len()) as u16
}

#[test]
fn a_template_makes_what_the_emitters_make() {
    let payload: Vec<u8> = (0..1472_u32).map(|number| (number * 7) as u8).collect();
    for destination in [[10, 0, 0, 2], [239, 255, 23, 0]] {
        for vlan in [None, Some(0), Some(5)] {
            for level in [0, 3, 7] {
                let device = device(destination, vlan);
                let flow = flow(destination, level);
                for length in [0, 1, 2, 3, 63, 64, 65, 1471, 1472] {
                    let payload = &payload[..length];
                    assert_eq!(
                        emitted(&device, &flow, payload, UdpChecksum::Made),
                        expected(&device, &flow, payload),
                        "to {destination:?}, VLAN {vlan:?}, level {level}, {length} bytes"
                    );
                }
            }
        }
    }
}

#[test]
fn a_receiver_reads_back_what_was_meant() {
    let (device, flow) = (device([10, 0, 0, 2], Some(9)), flow([10, 0, 0, 2], 6));
    let bytes = emitted(&device, &flow, b"RTPS and so on", UdpChecksum::Made);
    let frame = Frame::new_checked(&bytes[..]).expect("a frame");
    assert_eq!(frame.pcp(), Some(6));
    let packet = Packet::new_checked(frame.payload()).expect("a packet");
    assert!(packet.has_valid_checksum());
    assert_eq!(packet.class_selector(), 6);
    let datagram = Datagram::new_checked(packet.payload()).expect("a datagram");
    assert!(datagram.has_valid_checksum(packet.source(), packet.destination()));
    assert_eq!(datagram.payload(), b"RTPS and so on");
}

#[test]
fn a_checksum_that_comes_out_as_none_is_sent_as_all_ones() {
    let (device, flow) = (device([10, 0, 0, 2], None), flow([10, 0, 0, 2], 0));
    // This payload makes the sum 0xffff.
    let bare = emitted(&device, &flow, &[0, 0], UdpChecksum::Made);
    let word = [bare[40], bare[41]];
    let bytes = emitted(&device, &flow, &word, UdpChecksum::Made);
    assert_eq!(bytes[40..42], [0xff, 0xff]);
}

#[test]
fn without_a_checksum_the_field_is_zero_and_the_rest_is_as_ever() {
    let (device, flow) = (device([10, 0, 0, 2], None), flow([10, 0, 0, 2], 2));
    let bytes = emitted(&device, &flow, b"payload", UdpChecksum::None);
    let mut with = emitted(&device, &flow, b"payload", UdpChecksum::Made);
    with[40..42].fill(0);
    assert_eq!(bytes, with);
}

#[test]
fn the_longest_payload_follows_from_the_mtu() {
    let (device, flow) = (device([10, 0, 0, 2], None), flow([10, 0, 0, 2], 2));
    assert_eq!(Template::new(&device, &flow).max_payload_bytes(), 1472);
    let tiny = Device {
        mtu_bytes: 20,
        ..device
    };
    assert_eq!(Template::new(&tiny, &flow).max_payload_bytes(), 0);
}

#[test]
#[should_panic(expected = "head room")]
fn a_payload_without_head_room_is_a_fault_of_ours() {
    let template = Template::new(&device([10, 0, 0, 2], None), &flow([10, 0, 0, 2], 0));
    template.emit(&mut [0; 100], 41..100, UdpChecksum::Made);
}
