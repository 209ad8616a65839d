//! Tests of the announcements of participants.

use core::time::Duration;

use isolane_wire::{
    BufferTooSmall, Error,
    builtin_data::{LocatorList, ParticipantData},
    limits::MAX_LOCATORS,
    locator::Locator,
    parameter::pid,
    qos::Octets,
};

use crate::support::{PREFIX, locator_bytes, participant_with, payload};

#[test]
fn a_participant_that_says_only_its_name_has_the_defaults() {
    assert_eq!(participant_with(|_| ()), Ok(ParticipantData::new(PREFIX)));
    let lease = ParticipantData::new(PREFIX).lease;
    assert_eq!(lease, Duration::from_secs(100));
}

#[test]
fn a_participant_without_a_guid_is_refused() {
    let nothing = payload(|_| ());
    assert_eq!(
        ParticipantData::parse(&nothing),
        Err(Error::MissingParameter(pid::PARTICIPANT_GUID))
    );
}

#[test]
fn a_participant_is_read_in_big_endian_too() {
    let mut bytes = vec![0, 2, 0, 0];
    for (id, value) in [
        (
            pid::PARTICIPANT_GUID,
            &ParticipantData::new(PREFIX).guid.to_bytes()[..],
        ),
        (
            pid::PARTICIPANT_LEASE_DURATION,
            &[0, 0, 0, 7, 0x80, 0, 0, 0],
        ),
        (pid::DOMAIN_ID, &[0, 0, 0, 9]),
        (pid::ENTITY_NAME, b"\0\0\0\x05name\0\0\0\0"),
        (
            pid::DEFAULT_UNICAST_LOCATOR,
            b"\0\0\0\x01\0\0\x1c\xf3\0\0\0\0\0\0\0\0\0\0\0\0\x0a\0\0\x01",
        ),
        (pid::SENTINEL, &[]),
    ] {
        bytes.extend_from_slice(&id.to_be_bytes());
        bytes.extend_from_slice(&(value.len() as u16).to_be_bytes());
        bytes.extend_from_slice(value);
    }
    let participant = ParticipantData::parse(&bytes).unwrap();
    assert_eq!(participant.lease, Duration::from_millis(7500));
    assert_eq!(participant.domain_id, Some(9));
    assert_eq!(participant.entity_name, "name");
    assert_eq!(
        participant.default_unicast,
        [Locator::udpv4([10, 0, 0, 1], 7411)]
    );
}

#[test]
fn an_infinite_lease_never_ends() {
    let participant = participant_with(|list| {
        // The fraction differs between implementations.
        list.put(
            pid::PARTICIPANT_LEASE_DURATION,
            &[0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f],
        );
    });
    assert_eq!(participant.unwrap().lease, Duration::MAX);
}

#[test]
fn a_name_longer_than_its_bound_is_cut_in_whole_characters() {
    let participant = participant_with(|list| {
        list.put_str(pid::ENTITY_NAME, &"ä".repeat(100));
    });
    assert_eq!(participant.unwrap().entity_name.as_str(), "ä".repeat(32));
}

#[test]
fn locators_of_unknown_kinds_and_beyond_the_bound_are_skipped() {
    let shared_memory = Locator {
        kind: 16,
        port: 7413,
        address: [1; 16],
    };
    let udp: Vec<_> = (0..12)
        .map(|host| Locator::udpv4([10, 0, 0, host], 7410))
        .collect();
    let participant = participant_with(|list| {
        list.put(
            pid::METATRAFFIC_UNICAST_LOCATOR,
            &locator_bytes(shared_memory),
        );
        for locator in &udp {
            list.put(pid::METATRAFFIC_UNICAST_LOCATOR, &locator_bytes(*locator));
        }
    });
    assert_eq!(
        participant.unwrap().metatraffic_unicast,
        udp[..MAX_LOCATORS]
    );
}

#[test]
fn a_participant_survives_the_way_there_and_back() {
    let locators: LocatorList = (0..8)
        .map(|host| Locator::udpv4([10, 0, 0, host], 7410))
        .collect();
    let sent = ParticipantData {
        version: [2, 5],
        vendor: [1, 0xee],
        lease: Duration::new(3, 999_999_999),
        builtin_endpoints: 0xc3f,
        domain_id: Some(232),
        metatraffic_unicast: locators.clone(),
        metatraffic_multicast: locators.clone(),
        default_unicast: locators.clone(),
        default_multicast: locators,
        entity_name: "zone-left".try_into().unwrap(),
        user_data: Octets::of(b"left of the seat").unwrap(),
        static_digest: Some(0x0102_0304_0506_0708),
        ..ParticipantData::new(PREFIX)
    };
    let mut buffer = [0; 2048];
    let length = sent.emit(&mut buffer).unwrap();
    assert_eq!(ParticipantData::parse(&buffer[..length]), Ok(sent.clone()));
    for room in 0..length {
        assert_eq!(
            sent.emit(&mut buffer[..room]),
            Err(BufferTooSmall),
            "{room} bytes"
        );
    }
}
