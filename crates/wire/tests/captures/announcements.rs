//! Tests of the announcements of participants and endpoints of other implementations.

use core::time::Duration;

use isolane_wire::{
    builtin_data::{BuiltinEndpoints, EndpointData, ParticipantData, parse_key_guid},
    guid::EntityId,
    locator::Locator,
    message::{Header, PayloadKind},
    qos::{DataRepresentationId, DurabilityKind, QosPolicies, ReliabilityKind},
};

use crate::pcap::{CAPTURES, Message, data_of, messages};

const CYCLONE: [u8; 2] = [0x01, 0x10];
const FAST: [u8; 2] = [0x01, 0x0f];
const DUST: [u8; 2] = [0x01, 0x14];

/// Expected version, vendor and lease of each vendor.
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
                // With and without multicast, a unicast address of the sender is announced for both purposes.
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

/// Expected endpoints of a capture.
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

/// Announcements of a capture by one of the SEDP writers, without those of vendor-specific topics.
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
    // Dust DDS sends only the parameters 0005, 0007, 0050, 005a and 0073.
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
