//! Tests that messages of Cyclone DDS, Fast DDS and Dust DDS are read completely, with the meaning that the sender gave
//! them.
//!
//! The expected numbers were counted with another dissector; see `README.md`.

use core::str;
use std::collections::BTreeMap;

use isolane_wire::{
    ByteOrder,
    message::{Header, PayloadKind, Submessage, SubmessageId},
    time::Timestamp,
};

use crate::pcap::{CAPTURES, messages, submessages};

fn id_of(submessage: &Submessage<'_>) -> u8 {
    match submessage {
        Submessage::Pad => SubmessageId::PAD,
        Submessage::AckNack(_) => SubmessageId::ACKNACK,
        Submessage::Heartbeat(_) => SubmessageId::HEARTBEAT,
        Submessage::Gap(_) => SubmessageId::GAP,
        Submessage::InfoTimestamp(_) => SubmessageId::INFO_TS,
        Submessage::InfoSource(_) => SubmessageId::INFO_SRC,
        Submessage::InfoDestination(_) => SubmessageId::INFO_DST,
        Submessage::InfoReply(_) => SubmessageId::INFO_REPLY,
        Submessage::InfoReplyIp4(_) => SubmessageId::INFO_REPLY_IP4,
        Submessage::HeaderExtension(_) => SubmessageId::HEADER_EXTENSION,
        Submessage::NackFrag(_) => SubmessageId::NACK_FRAG,
        Submessage::HeartbeatFrag(_) => SubmessageId::HEARTBEAT_FRAG,
        Submessage::Data(_) => SubmessageId::DATA,
        Submessage::DataFrag(_) => SubmessageId::DATA_FRAG,
        Submessage::Other { id, .. } => *id,
    }
}

/// Name, number of messages, and number of submessages with each id.
type Expected = (&'static str, usize, &'static [(u8, usize)]);

#[rustfmt::skip]
const EXPECTED: [Expected; 13] = [
    ("big-cyc", 3, &[(0x06, 1), (0x07, 1), (0x09, 1), (0x0e, 1), (0x13, 1), (0x16, 2)]),
    ("big-fast", 5, &[(0x06, 2), (0x07, 2), (0x09, 2), (0x0e, 5), (0x15, 1), (0x16, 1), (0x80, 2)]),
    ("cyc-cyc", 66, &[(0x06, 35), (0x07, 43), (0x09, 36), (0x0e, 36), (0x15, 36)]),
    ("cyc-fast", 87, &[(0x06, 31), (0x07, 38), (0x09, 47), (0x0e, 44), (0x15, 47), (0x80, 47)]),
    ("dust-cyc", 76, &[(0x06, 33), (0x07, 30), (0x08, 4), (0x09, 36), (0x0e, 71), (0x15, 36)]),
    ("fast-cyc", 69, &[(0x06, 24), (0x07, 13), (0x09, 44), (0x0e, 57), (0x15, 44), (0x80, 49)]),
    ("fast-fast-typeinfo", 60,
        &[(0x06, 12), (0x07, 12), (0x09, 36), (0x0e, 34), (0x15, 36), (0x80, 60)]),
    ("fin-c-d", 45, &[(0x06, 25), (0x07, 29), (0x09, 26), (0x0e, 26), (0x15, 26)]),
    ("fin-c-u", 43, &[(0x06, 23), (0x07, 27), (0x09, 28), (0x0e, 25), (0x15, 28)]),
    ("fin-d-d", 53, &[(0x06, 24), (0x07, 19), (0x08, 1), (0x09, 26), (0x0e, 48), (0x15, 26)]),
    ("fin-d-u", 48, &[(0x06, 19), (0x07, 19), (0x08, 1), (0x09, 23), (0x0e, 43), (0x15, 23)]),
    ("fin-f-d", 53, &[(0x06, 13), (0x07, 16), (0x09, 36), (0x0e, 40), (0x15, 36), (0x80, 38)]),
    ("fin-f-u", 59, &[(0x06, 17), (0x07, 18), (0x09, 38), (0x0e, 42), (0x15, 38), (0x80, 41)]),
];

#[test]
fn every_submessage_is_read_and_there_are_as_many_as_another_dissector_counts() {
    assert_eq!(EXPECTED.map(|(name, ..)| name), CAPTURES);
    for (name, message_count, expected) in EXPECTED {
        let messages = messages(name);
        let mut counted = BTreeMap::new();
        for message in &messages {
            Header::parse(&message.bytes).unwrap();
            for submessage in submessages(message) {
                *counted.entry(id_of(&submessage)).or_insert(0) += 1;
                if let Submessage::Other { id, .. } = submessage {
                    assert_eq!(id, 0x80, "{name}: only the vendor's own is not decoded");
                }
            }
        }
        assert_eq!(messages.len(), message_count, "{name}");
        let counted: Vec<_> = counted.into_iter().collect();
        assert_eq!(counted, expected, "{name}");
    }
}

#[test]
fn timestamps_lie_within_the_day_of_the_captures() {
    let day = 86_400 * 1_000_000_000;
    let mut seen: Vec<Timestamp> = Vec::new();
    for name in CAPTURES {
        for message in messages(name) {
            seen.extend(
                submessages(&message).filter_map(|submessage| match submessage {
                    Submessage::InfoTimestamp(timestamp) => timestamp,
                    _ => None,
                }),
            );
        }
    }
    let earliest = seen.iter().min().unwrap().to_nanos();
    let latest = seen.iter().max().unwrap().to_nanos();
    assert!(latest - earliest < day, "{earliest} to {latest}");
}

/// Changes of a capture that end an instance: sequence number, dispose, unregister, payload, and whether there is a key
/// hash.
fn ends_of_instances(name: &str) -> Vec<(i64, bool, bool, PayloadKind, bool)> {
    let messages = messages(name);
    let mut found = Vec::new();
    for submessage in messages.iter().flat_map(submessages) {
        let Submessage::Data(data) = submessage else {
            continue;
        };
        let status = data.status_info();
        if !data.writer.is_builtin() && (status.disposed || status.unregistered) {
            let has_hash = data.key_hash().is_some();
            let number = data.sequence.get();
            found.push((
                number,
                status.disposed,
                status.unregistered,
                data.payload,
                has_hash,
            ));
        }
    }
    found
}

#[test]
fn instances_are_disposed_or_unregistered_as_each_vendor_does_it() {
    // Cyclone DDS sends the key without a hash, Fast DDS the hash without a key. The captures of Dust DDS contain
    // neither.
    for (name, is_dispose, payload) in [
        ("fin-c-d", true, PayloadKind::Key),
        ("fin-c-u", false, PayloadKind::Key),
        ("fin-f-d", true, PayloadKind::None),
        ("fin-f-u", false, PayloadKind::None),
    ] {
        let has_hash = payload == PayloadKind::None;
        let expected = [15, 16].map(|number| (number, is_dispose, !is_dispose, payload, has_hash));
        assert_eq!(ends_of_instances(name), expected, "{name}");
    }
}

#[test]
fn fragments_of_large_samples_agree_with_what_the_vendors_do() {
    let mut found = BTreeMap::new();
    for name in ["big-cyc", "big-fast"] {
        for message in messages(name) {
            for submessage in submessages(&message) {
                let Submessage::DataFrag(data) = submessage else {
                    continue;
                };
                assert_eq!(
                    &message.bytes[data.payload_offset..][..data.bytes.len()],
                    data.bytes
                );
                let last = data.first_fragment - 1 + u32::from(data.fragments);
                assert!(last <= data.total_fragments(), "{name}");
                let end = data.sample_offset() + data.bytes.len();
                assert_eq!(
                    last == data.total_fragments(),
                    end == data.sample_size as usize
                );
                found.entry(name).or_insert_with(Vec::new).push((
                    data.fragment_size,
                    data.fragments,
                    data.first_fragment,
                ));
            }
        }
    }
    // Cyclone DDS: 1,344 bytes, ten in a submessage; 75 make 100,036 bytes. Fast DDS: 65,324 bytes.
    assert_eq!(found["big-cyc"], [(1344, 10, 1), (1344, 5, 71)]);
    assert_eq!(found["big-fast"], [(65_324, 1, 2)]);
}

#[test]
fn payloads_begin_with_an_encapsulation_header_and_shapes_with_their_colour() {
    let mut colours = BTreeMap::new();
    for name in ["cyc-fast", "fast-cyc", "dust-cyc"] {
        for message in messages(name) {
            for submessage in submessages(&message) {
                match submessage {
                    Submessage::Data(data)
                        if !data.writer.is_builtin() && data.payload == PayloadKind::Data =>
                    {
                        assert!(data.little_endian, "{name}");
                        let payload = data.bytes;
                        // D_CDR2_LE: DHEADER, then the colour's length and text.
                        assert_eq!(payload[..2], [0, 9], "{name}");
                        let colour = payload[12..].split(|byte| *byte == 0).next().unwrap();
                        let colour = str::from_utf8(colour).unwrap().to_owned();
                        *colours.entry((name, colour)).or_insert(0) += 1;
                    }
                    _ => {}
                }
            }
        }
    }
    assert_eq!(colours.len(), 3, "{colours:?}");
    assert!(
        colours.keys().all(|(_, colour)| colour == "BLUE"),
        "{colours:?}"
    );
}

#[test]
fn inline_qos_has_the_byte_order_of_its_submessage() {
    for name in CAPTURES {
        for message in messages(name) {
            for submessage in submessages(&message) {
                if let Submessage::Data(data) = submessage {
                    let order = data
                        .inline_qos
                        .map_or(ByteOrder::Little, |list| list.order());
                    assert_eq!(order == ByteOrder::Little, data.little_endian);
                }
            }
        }
    }
}
