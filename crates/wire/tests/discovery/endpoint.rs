//! Tests of the announcements of writers and readers, and of all announcements.

use isolane_wire::{
    BufferTooSmall, Error,
    builtin_data::{EndpointData, KeyKind, ParticipantData, emit_key_guid, parse_key_guid},
    guid::{EntityId, EntityKind, GuidPrefix},
    limits::MAX_NAME_BYTES,
    parameter::pid,
};

use crate::support::{PREFIX, READER, WRITER, participant_with, payload, writer_with};

#[test]
fn unknown_parameters_are_skipped_unless_they_must_be_understood() {
    let with = |id: u16| {
        participant_with(|list| {
            list.put_u32(id, 1);
        })
    };
    for id in [0x0fff, 0x8007, 0x3f03] {
        assert_eq!(with(id), Ok(ParticipantData::new(PREFIX)), "{id:#06x}");
        assert_eq!(with(0x4000 | id), Err(Error::MustUnderstand(id)));
    }
    let endpoint = writer_with(|list| {
        list.put_u32(0x4fff, 1);
    });
    assert_eq!(endpoint, Err(Error::MustUnderstand(0x0fff)));
    // A known parameter may have the must-understand flag.
    assert_eq!(with(0x4000 | pid::DOMAIN_ID).unwrap().domain_id, Some(1));
}

#[test]
fn values_that_are_too_short_are_refused_by_name() {
    for id in [
        pid::PARTICIPANT_LEASE_DURATION,
        pid::METATRAFFIC_UNICAST_LOCATOR,
        pid::DEFAULT_MULTICAST_LOCATOR,
        pid::BUILTIN_ENDPOINT_SET,
        pid::DOMAIN_ID,
        pid::PROTOCOL_VERSION,
        pid::VENDOR_ID,
        pid::ENTITY_NAME,
    ] {
        let parsed = participant_with(|list| {
            list.put(id, &[]);
        });
        assert_eq!(parsed, Err(Error::InvalidParameter(id)), "{id:#06x}");
    }
    for id in [
        pid::RELIABILITY,
        pid::DURABILITY,
        pid::DURABILITY_SERVICE,
        pid::HISTORY,
        pid::RESOURCE_LIMITS,
        pid::DEADLINE,
        pid::LATENCY_BUDGET,
        pid::LIVELINESS,
        pid::OWNERSHIP,
        pid::OWNERSHIP_STRENGTH,
        pid::DESTINATION_ORDER,
        pid::PRESENTATION,
        pid::PARTITION,
        pid::LIFESPAN,
        pid::TIME_BASED_FILTER,
        pid::DATA_REPRESENTATION,
        pid::TRANSPORT_PRIORITY,
        pid::UNICAST_LOCATOR,
        pid::MULTICAST_LOCATOR,
        pid::EXPECTS_INLINE_QOS,
        pid::PARTICIPANT_GUID,
    ] {
        let parsed = writer_with(|list| {
            list.put(id, &[]);
        });
        assert_eq!(parsed, Err(Error::InvalidParameter(id)), "{id:#06x}");
    }
}

#[test]
fn other_encapsulations_than_parameter_lists_are_refused() {
    for identifier in [0x0000, 0x0001, 0x0007, 0x0009, 0x000b, 0xffff_u16] {
        let [a, b] = identifier.to_be_bytes();
        let bytes = [a, b, 0, 0, 1, 0, 0, 0];
        let refused = Error::UnknownEncapsulation(identifier);
        assert_eq!(ParticipantData::parse(&bytes), Err(refused));
        assert_eq!(EndpointData::parse_reader(&bytes), Err(refused));
        assert_eq!(parse_key_guid(&bytes), None);
    }
    assert_eq!(ParticipantData::parse(&[0, 3, 0]), Err(Error::Truncated));
}

#[test]
fn an_announcement_leaves_out_what_has_its_default() {
    let sent = EndpointData {
        topic_name: "T".try_into().unwrap(),
        type_name: "T".try_into().unwrap(),
        ..EndpointData::new(READER)
    };
    let mut buffer = [0; 128];
    // Two GUIDs, two names, RELIABILITY, sentinel.
    assert_eq!(sent.emit(&mut buffer), Ok(4 + 2 * 20 + 2 * 12 + 16 + 4));
}

#[test]
fn the_group_of_an_endpoint_is_announced_if_it_has_one() {
    for group in [None, Some(EntityId::user(7, EntityKind::WRITER_GROUP))] {
        let sent = EndpointData {
            topic_name: "T".try_into().unwrap(),
            type_name: "T".try_into().unwrap(),
            group,
            ..EndpointData::new(WRITER)
        };
        let mut buffer = [0; 128];
        let length = sent.emit(&mut buffer).unwrap();
        assert_eq!(EndpointData::parse_writer(&buffer[..length]), Ok(sent));
    }
}

#[test]
fn an_endpoint_without_guid_topic_or_type_is_refused() {
    let without = |absent: u16| {
        EndpointData::parse_writer(&payload(|list| {
            for (id, value) in [
                (pid::ENDPOINT_GUID, &WRITER.to_bytes()[..]),
                (pid::TOPIC_NAME, b"\x02\0\0\0T\0"),
                (pid::TYPE_NAME, b"\x02\0\0\0T\0"),
            ] {
                if id != absent {
                    list.put(id, value);
                }
            }
        }))
    };
    assert!(without(pid::SENTINEL).is_ok());
    for id in [pid::ENDPOINT_GUID, pid::TOPIC_NAME, pid::TYPE_NAME] {
        assert_eq!(without(id), Err(Error::MissingParameter(id)));
    }
}

#[test]
fn an_endpoint_belongs_to_the_participant_that_its_guid_says() {
    let of = |prefix| {
        writer_with(|list| {
            let participant = ParticipantData::new(prefix).guid;
            list.put(pid::PARTICIPANT_GUID, &participant.to_bytes());
        })
    };
    assert_eq!(
        of(PREFIX).unwrap().participant(),
        ParticipantData::new(PREFIX).guid
    );
    assert_eq!(
        of(GuidPrefix([1; 12])),
        Err(Error::InvalidParameter(pid::PARTICIPANT_GUID))
    );
}

#[test]
fn names_may_be_as_long_as_their_bound_and_no_longer() {
    let named = |length| {
        let data = writer_with(|list| {
            list.put_str(pid::TOPIC_NAME, &"n".repeat(length));
        });
        data.map(|data| data.topic_name.len())
    };
    assert_eq!(named(MAX_NAME_BYTES), Ok(MAX_NAME_BYTES));
    assert_eq!(
        named(MAX_NAME_BYTES + 1),
        Err(Error::BoundExceeded(pid::TOPIC_NAME))
    );
}

#[test]
fn names_that_are_no_strings_are_refused() {
    for (what, value) in [
        ("no NUL", &b"\x04\0\0\0name"[..]),
        ("a NUL inside", b"\x05\0\0\0n\0me\0"),
        ("not UTF-8", b"\x03\0\0\0\xff\xfe\0"),
        ("longer than its parameter", b"\x40\0\0\0name\0"),
        ("a length near 4 GiB", b"\xff\xff\xff\xffname\0"),
    ] {
        let parsed = writer_with(|list| {
            list.put(pid::TOPIC_NAME, value);
        });
        assert_eq!(
            parsed,
            Err(Error::InvalidParameter(pid::TOPIC_NAME)),
            "{what}"
        );
    }
}

#[test]
fn the_end_of_an_entity_is_announced_by_its_guid_alone() {
    for (key, guid) in [
        (KeyKind::Participant, ParticipantData::new(PREFIX).guid),
        (KeyKind::Endpoint, WRITER),
    ] {
        let mut buffer = [0; 28];
        assert_eq!(emit_key_guid(key, guid, &mut buffer), Ok(28));
        assert_eq!(parse_key_guid(&buffer), Some(guid));
        assert_eq!(
            emit_key_guid(key, guid, &mut buffer[..27]),
            Err(BufferTooSmall)
        );
    }
    assert_eq!(parse_key_guid(&[]), None);
    assert_eq!(parse_key_guid(&payload(|_| ())), None);
}
