//! Reader of the pcap files next to this folder, and selection of their RTPS messages.

use std::{collections::HashMap, fs, path::PathBuf};

use isolane_wire::{
    ethernet::{EtherType, Frame},
    guid::EntityId,
    ipv4::{PROTOCOL_UDP, Packet},
    message::{Data, HEADER_BYTES, Header, Submessage, Submessages},
    udp::Datagram,
};

/// Names of all captures.
pub(crate) const CAPTURES: [&str; 13] = [
    "big-cyc",
    "big-fast",
    "cyc-cyc",
    "cyc-fast",
    "dust-cyc",
    "fast-cyc",
    "fast-fast-typeinfo",
    "fin-c-d",
    "fin-c-u",
    "fin-d-d",
    "fin-d-u",
    "fin-f-d",
    "fin-f-u",
];

/// Ethernet frames of a capture.
pub(crate) fn frames(name: &str) -> Vec<Vec<u8>> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "captures", name]
        .iter()
        .collect();
    let file = fs::read(path.with_extension("pcap")).unwrap_or_else(|error| {
        panic!("{}: {error}", path.display());
    });
    // pcap 2.4, microseconds, little-endian; link type Ethernet.
    assert_eq!(
        file[..4],
        0xa1b2_c3d4_u32.to_le_bytes(),
        "{name}: not a pcap file"
    );
    assert_eq!(file[20..24], 1_u32.to_le_bytes(), "{name}: not Ethernet");
    let mut rest = &file[24..];
    let mut frames = Vec::new();
    while let Some((head, behind)) = rest.split_first_chunk::<16>() {
        let captured = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
        let on_wire = u32::from_le_bytes([head[12], head[13], head[14], head[15]]) as usize;
        assert_eq!(captured, on_wire, "{name}: a frame was cut");
        frames.push(behind[..captured].to_vec());
        rest = &behind[captured..];
    }
    assert!(
        rest.is_empty() && !frames.is_empty(),
        "{name}: the file is cut"
    );
    frames
}

/// RTPS message and its source address.
pub(crate) struct Message {
    pub(crate) source: [u8; 4],
    pub(crate) bytes: Vec<u8>,
}

/// RTPS messages of a capture. IP fragments are reassembled as the kernel would; incomplete packets are skipped.
pub(crate) fn messages(name: &str) -> Vec<Message> {
    let mut partial: HashMap<([u8; 4], u16), Vec<u8>> = HashMap::new();
    let mut messages = Vec::new();
    for frame in frames(name) {
        let frame = Frame::new_checked(&frame[..]).unwrap();
        if frame.ether_type() != EtherType::IPV4 {
            continue;
        }
        let packet = Packet::new_checked(frame.payload()).unwrap();
        if packet.protocol() != PROTOCOL_UDP {
            continue;
        }
        let mut payload = packet.payload().to_vec();
        if packet.is_fragment() {
            // The captures have fragments in order.
            let key = (packet.source(), packet.identification());
            let parts = partial.entry(key).or_default();
            assert_eq!(
                parts.len(),
                packet.fragment_offset(),
                "{name}: out of order"
            );
            parts.append(&mut payload);
            let more_follow = frame.payload()[6] & 0x20 != 0;
            if more_follow {
                continue;
            }
            payload = partial.remove(&key).unwrap_or_default();
        }
        let datagram = Datagram::new_checked(&payload[..]).unwrap();
        if datagram.payload().starts_with(b"RTPS") {
            messages.push(Message {
                source: packet.source(),
                bytes: datagram.payload().to_vec(),
            });
        }
    }
    messages
}

/// Submessages of a message; panics if one is not understood.
pub(crate) fn submessages(message: &Message) -> impl Iterator<Item = Submessage<'_>> {
    Submessages::new(&message.bytes, HEADER_BYTES).map(|submessage| {
        submessage.unwrap_or_else(|error| panic!("{error} in {:02x?}", message.bytes))
    })
}

/// All DATA that one writer entity wrote in a capture, each with the header of its message.
pub(crate) fn data_of(messages: &[Message], writer: EntityId) -> Vec<(Header, Data<'_>)> {
    let mut found = Vec::new();
    for message in messages {
        let header = Header::parse(&message.bytes).unwrap();
        for submessage in submessages(message) {
            match submessage {
                Submessage::Data(data) if data.writer == writer => found.push((header, data)),
                _ => {}
            }
        }
    }
    found
}
