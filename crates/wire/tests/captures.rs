//! What Cyclone DDS, Fast DDS and Dust DDS send is read whole, and means what they meant.
//!
//! The expected numbers were counted with another dissector; see `captures/README.md`.

mod support;

use core::{str, time::Duration};
use std::collections::BTreeMap;

use isolane_wire::{
    ByteOrder,
    discovery::{BuiltinEndpoints, EndpointData, ParticipantData, parse_key_guid},
    guid::EntityId,
    locator::Locator,
    qos::{DataRepresentationId, DurabilityKind, QosPolicies, ReliabilityKind},
    rtps::{Data, HEADER_BYTES, Header, PayloadKind, Submessage, SubmessageId, Submessages},
    time::Timestamp,
};
use support::{CAPTURES, Message, messages};

const CYCLONE: [u8; 2] = [0x01, 0x10];
const FAST: [u8; 2] = [0x01, 0x0f];
const DUST: [u8; 2] = [0x01, 0x14];

/// The submessages of a message; panics if one is not understood.
fn submessages(message: &Message) -> impl Iterator<Item = Submessage<'_>> {
    Submessages::new(&message.bytes, HEADER_BYTES).map(|submessage| {
        submessage.unwrap_or_else(|error| panic!("{error} in {:02x?}", message.bytes))
    })
}

/// All DATA of a capture that one writer entity wrote, with the header of their message.
fn data_of(messages: &[Message], writer: EntityId) -> Vec<(Header, Data<'_>)> {
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
        Submessage::NackFrag(_) => SubmessageId::NACK_FRAG,
        Submessage::HeartbeatFrag(_) => SubmessageId::HEARTBEAT_FRAG,
        Submessage::Data(_) => SubmessageId::DATA,
        Submessage::DataFrag(_) => SubmessageId::DATA_FRAG,
        Submessage::Other { id, .. } => *id,
    }
}

/// Name, messages, and how many submessages there are of each identifier.
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

/// Version, vendor and lease that each vendor announces.
fn expected_of(vendor: [u8; 2]) -> ([u8; 2], Duration) {
    match vendor {
        CYCLONE => ([2, 5], Duration::from_secs(10)),
        FAST => ([2, 3], Duration::from_secs(20)),
        DUST => ([2, 4], Duration::from_secs(100)),
        other => panic!("no capture is of vendor {other:02x?}"),
    }
}

#[test]
fn participants_announce_who_they_are_and_where_they_are_reached() {
    let mut announcements = 0;
    for name in CAPTURES {
        for message in messages(name) {
            let messages = [message];
            for (header, data) in data_of(&messages, EntityId::SPDP_WRITER) {
                if data.payload != PayloadKind::Data {
                    continue;
                }
                let participant = ParticipantData::parse(data.bytes)
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
                let (version, lease) = expected_of(header.vendor);
                assert_eq!(participant.guid.prefix, header.prefix, "{name}");
                assert_eq!(participant.guid.entity, EntityId::PARTICIPANT, "{name}");
                assert_eq!(participant.vendor, header.vendor, "{name}");
                assert_eq!(participant.version, version, "{name}");
                assert_eq!(participant.lease, lease, "{name}");
                assert!(
                    participant.domain_id.is_none_or(|domain| domain == 0),
                    "{name}"
                );
                // Multicast or not, an address of the sender's is announced for both purposes.
                let source = Some(messages[0].source);
                for list in [
                    &participant.metatraffic_unicast,
                    &participant.default_unicast,
                ] {
                    assert!(
                        list.iter().any(|locator| locator.ipv4() == source),
                        "{name}: {list:?}"
                    );
                    assert!(list.iter().all(Locator::is_udp), "{name}: {list:?}");
                }
                for bit in [
                    BuiltinEndpoints::PARTICIPANT_ANNOUNCER,
                    BuiltinEndpoints::PARTICIPANT_DETECTOR,
                    BuiltinEndpoints::PUBLICATIONS_ANNOUNCER,
                    BuiltinEndpoints::PUBLICATIONS_DETECTOR,
                    BuiltinEndpoints::SUBSCRIPTIONS_ANNOUNCER,
                    BuiltinEndpoints::SUBSCRIPTIONS_DETECTOR,
                ] {
                    let endpoints = participant.builtin_endpoints;
                    assert_ne!(endpoints & bit, 0, "{name}: {endpoints:#x} lacks {bit:#x}");
                }
                announcements += 1;
            }
        }
    }
    assert!(announcements > 100, "{announcements}");
}

/// What the endpoints that a capture announces should be.
struct Endpoints {
    name: &'static str,
    publisher: [u8; 2],
    subscriber: [u8; 2],
    topic: &'static str,
    type_name: &'static str,
    writer_durability: DurabilityKind,
    representation: &'static [DataRepresentationId],
    keyed: bool,
}

const SQUARE: Endpoints = Endpoints {
    name: "",
    publisher: CYCLONE,
    subscriber: CYCLONE,
    topic: "Square",
    type_name: "ShapeType",
    writer_durability: DurabilityKind::Volatile,
    representation: &[DataRepresentationId::XCDR2],
    keyed: true,
};

const ENDPOINTS: [Endpoints; 11] = [
    Endpoints {
        name: "cyc-cyc",
        ..SQUARE
    },
    Endpoints {
        name: "cyc-fast",
        subscriber: FAST,
        ..SQUARE
    },
    Endpoints {
        name: "dust-cyc",
        publisher: DUST,
        ..SQUARE
    },
    Endpoints {
        name: "fast-cyc",
        publisher: FAST,
        ..SQUARE
    },
    Endpoints {
        name: "fast-fast-typeinfo",
        publisher: FAST,
        subscriber: FAST,
        topic: "A",
        type_name: "PP",
        writer_durability: DurabilityKind::TransientLocal,
        representation: &[],
        keyed: false,
    },
    Endpoints {
        name: "fin-c-d",
        ..SQUARE
    },
    Endpoints {
        name: "fin-c-u",
        ..SQUARE
    },
    Endpoints {
        name: "fin-d-d",
        publisher: DUST,
        ..SQUARE
    },
    Endpoints {
        name: "fin-d-u",
        publisher: DUST,
        ..SQUARE
    },
    Endpoints {
        name: "fin-f-d",
        publisher: FAST,
        ..SQUARE
    },
    Endpoints {
        name: "fin-f-u",
        publisher: FAST,
        ..SQUARE
    },
];

/// The announcements of a capture by one of the SEDP writers that are not of vendors' own topics.
fn announced(
    messages: &[Message],
    writer: EntityId,
    parse: fn(&[u8]) -> Result<EndpointData, isolane_wire::Error>,
) -> Vec<(Header, EndpointData)> {
    data_of(messages, writer)
        .into_iter()
        .filter(|(_, data)| data.payload == PayloadKind::Data)
        .map(|(header, data)| (header, parse(data.bytes).unwrap()))
        .collect()
}

#[test]
fn writers_announce_their_topic_and_qos() {
    for expected in ENDPOINTS {
        let name = expected.name;
        let messages = messages(name);
        let found = announced(
            &messages,
            EntityId::SEDP_PUBLICATIONS_WRITER,
            EndpointData::parse_writer,
        );
        assert!(!found.is_empty(), "{name}");
        for (header, writer) in found {
            assert_eq!(header.vendor, expected.publisher, "{name}");
            assert_eq!(writer.guid.prefix, header.prefix, "{name}");
            assert!(writer.guid.entity.is_writer(), "{name}: {}", writer.guid);
            assert_eq!(writer.is_keyed(), expected.keyed, "{name}");
            assert_eq!(writer.topic_name, expected.topic, "{name}");
            assert_eq!(writer.type_name, expected.type_name, "{name}");
            assert_eq!(
                writer.qos.reliability.kind,
                ReliabilityKind::Reliable,
                "{name}"
            );
            assert_eq!(writer.qos.durability, expected.writer_durability, "{name}");
            assert_eq!(
                writer.qos.data_representation, expected.representation,
                "{name}"
            );
        }
    }
}

#[test]
fn readers_announce_their_topic_and_qos() {
    for expected in ENDPOINTS {
        let name = expected.name;
        let messages = messages(name);
        let found = announced(
            &messages,
            EntityId::SEDP_SUBSCRIPTIONS_WRITER,
            EndpointData::parse_reader,
        );
        assert!(!found.is_empty(), "{name}");
        for (header, reader) in found {
            assert_eq!(header.vendor, expected.subscriber, "{name}");
            assert_eq!(reader.guid.prefix, header.prefix, "{name}");
            assert!(reader.guid.entity.is_reader(), "{name}: {}", reader.guid);
            assert_eq!(reader.is_keyed(), expected.keyed, "{name}");
            assert_eq!(reader.topic_name, expected.topic, "{name}");
            assert_eq!(reader.type_name, expected.type_name, "{name}");
            assert_eq!(
                reader.qos.reliability.kind,
                ReliabilityKind::Reliable,
                "{name}"
            );
            assert_eq!(reader.qos.durability, DurabilityKind::Volatile, "{name}");
            assert_eq!(
                reader.qos.data_representation, expected.representation,
                "{name}"
            );
        }
    }
}

#[test]
fn a_writer_that_announces_hardly_anything_has_the_defaults_of_writers() {
    // Dust DDS sends 0005 0007 0050 005a 0073, and nothing else.
    let messages = messages("dust-cyc");
    let found = announced(
        &messages,
        EntityId::SEDP_PUBLICATIONS_WRITER,
        EndpointData::parse_writer,
    );
    let mut expected = QosPolicies::writer_default();
    expected
        .data_representation
        .push(DataRepresentationId::XCDR2)
        .unwrap();
    for (_, writer) in found {
        assert_eq!(writer.qos, expected);
    }
}

#[test]
fn announcements_read_and_written_again_read_the_same() {
    let mut buffer = [0; 2048];
    for name in CAPTURES {
        let messages = messages(name);
        for (_, data) in data_of(&messages, EntityId::SPDP_WRITER) {
            if data.payload == PayloadKind::Data {
                let participant = ParticipantData::parse(data.bytes).unwrap();
                let length = participant.emit(&mut buffer).unwrap();
                assert_eq!(
                    ParticipantData::parse(&buffer[..length]),
                    Ok(participant),
                    "{name}"
                );
            }
        }
        let publications = EntityId::SEDP_PUBLICATIONS_WRITER;
        for (_, writer) in announced(&messages, publications, EndpointData::parse_writer) {
            let length = writer.emit(&mut buffer).unwrap();
            assert_eq!(
                EndpointData::parse_writer(&buffer[..length]),
                Ok(writer),
                "{name}"
            );
        }
        let subscriptions = EntityId::SEDP_SUBSCRIPTIONS_WRITER;
        for (_, reader) in announced(&messages, subscriptions, EndpointData::parse_reader) {
            let length = reader.emit(&mut buffer).unwrap();
            assert_eq!(
                EndpointData::parse_reader(&buffer[..length]),
                Ok(reader),
                "{name}"
            );
        }
    }
}

#[test]
fn the_end_of_an_endpoint_names_it_in_the_payload_or_in_the_key_hash() {
    let mut ends = 0;
    for name in CAPTURES {
        let messages = messages(name);
        for builtin in [
            EntityId::SPDP_WRITER,
            EntityId::SEDP_PUBLICATIONS_WRITER,
            EntityId::SEDP_SUBSCRIPTIONS_WRITER,
        ] {
            for (header, data) in data_of(&messages, builtin) {
                if data.payload == PayloadKind::Data {
                    continue;
                }
                let status = data.status_info();
                assert!(status.disposed || status.unregistered, "{name}");
                let guid = parse_key_guid(data.bytes)
                    .or(data.key_hash().map(isolane_wire::guid::Guid::from_bytes));
                assert_eq!(guid.map(|guid| guid.prefix), Some(header.prefix), "{name}");
                ends += 1;
            }
        }
    }
    assert!(ends > 0);
}

/// Whether the user's DATA of a capture end with one that does this to the instance.
fn last_status(name: &str) -> (bool, bool, PayloadKind, bool) {
    let messages = messages(name);
    let last = messages
        .iter()
        .flat_map(submessages)
        .filter_map(|submessage| match submessage {
            Submessage::Data(data) if !data.writer.is_builtin() => Some(data),
            _ => None,
        })
        .filter(|data| data.status_info() != Default::default())
        .last()
        .unwrap_or_else(|| panic!("{name}: nothing is disposed or unregistered"));
    let status = last.status_info();
    (
        status.disposed,
        status.unregistered,
        last.payload,
        last.key_hash().is_some(),
    )
}

#[test]
fn instances_are_disposed_or_unregistered_as_each_vendor_does_it() {
    let mut of_vendors = Vec::new();
    for name in ["fin-c-d", "fin-d-d", "fin-f-d"] {
        let (disposed, _, payload, has_hash) = last_status(name);
        assert!(disposed || payload != PayloadKind::Data, "{name}");
        of_vendors.push((payload, has_hash));
    }
    // Cyclone DDS sends the key and no hash, Fast DDS the hash and no key.
    assert_eq!(of_vendors[0], (PayloadKind::Key, false));
    assert_eq!(of_vendors[2], (PayloadKind::None, true));
    for name in ["fin-c-u", "fin-d-u", "fin-f-u"] {
        let (_, unregistered, payload, _) = last_status(name);
        assert!(unregistered, "{name}");
        assert_ne!(payload, PayloadKind::Data, "{name}");
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
    // Cyclone DDS: 1,344 bytes, ten a submessage; 75 make 100,036 bytes. Fast DDS: 65,324 bytes.
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
