//! Tests of times, levels, GUIDs and locators.

use core::{net::SocketAddrV4, time::Duration as CoreDuration};

use isolane_wire::{
    cdr::Char8,
    ethernet::MacAddress,
    guid::{EntityId, EntityKind, Guid, GuidPrefix},
    level::Level,
    locator::{Locator, NotUdpV4},
    sequence::{SequenceNumber, SequenceNumberSet},
    time::{Duration, Instant, Timestamp},
};
use proptest::prelude::*;

#[test]
fn the_time_since_a_later_instant_is_zero() {
    let (early, late) = (Instant::new(100), Instant::new(350));
    assert_eq!(late.saturating_since(early), CoreDuration::from_nanos(250));
    assert_eq!(early.saturating_since(late), CoreDuration::ZERO);
}

#[test]
fn an_instant_stops_at_the_end_of_its_range() {
    let instant = Instant::new(5) + CoreDuration::from_nanos(7);
    assert_eq!(instant.as_nanos(), 12);
    assert_eq!(instant + CoreDuration::MAX, Instant::new(u64::MAX));
}

#[test]
fn a_timestamp_counts_in_fractions_of_two_to_the_32() {
    let half = Timestamp::from_nanos(1_500_000_000);
    assert_eq!((half.seconds, half.fraction), (1, 1 << 31));
    assert_eq!(half.to_nanos(), 1_500_000_000);
}

#[test]
fn a_timestamp_beyond_its_range_is_the_latest_that_is_a_time() {
    let latest = Timestamp::from_nanos(u64::MAX);
    assert!(latest < Timestamp::INFINITE && latest < Timestamp::INVALID);
    assert_eq!(latest.seconds, u32::MAX - 1);
}

#[test]
fn an_infinite_duration_is_longer_than_any_other_and_has_no_length() {
    assert_eq!(Duration::INFINITE.to_core(), None);
    assert_eq!(Duration::from(CoreDuration::MAX), Duration::INFINITE);
    assert!(Duration::from(CoreDuration::from_secs(1 << 30)) < Duration::INFINITE);
    assert_eq!(
        Option::<CoreDuration>::from(Duration::ZERO),
        Some(CoreDuration::ZERO)
    );
    assert_eq!(
        Duration::from_millis(1250).to_core(),
        Some(CoreDuration::from_millis(1250))
    );
    assert_eq!(Duration::INFINITE.to_string(), "infinite");
    assert_eq!(Duration::from_millis(1250).to_string(), "1.25s");
}

#[test]
fn a_negative_duration_counts_as_zero() {
    let negative = Duration {
        seconds: -1,
        fraction: 0,
    };
    assert_eq!(negative.to_core(), Some(CoreDuration::ZERO));
}

proptest! {
    #[test]
    fn nanoseconds_survive_the_way_into_fractions_and_back(nanos in 0..u64::from(u32::MAX) * 1_000_000_000) {
        prop_assert_eq!(Timestamp::from_nanos(nanos).to_nanos(), nanos);
        let duration = CoreDuration::from_nanos(nanos % (1 << 60));
        prop_assert_eq!(Duration::from(duration).to_core(), Some(duration));
    }

    #[test]
    fn later_times_are_later_timestamps(a in 0..1_u64 << 61, b in 0..1_u64 << 61) {
        prop_assert_eq!(a.cmp(&b), Timestamp::from_nanos(a).cmp(&Timestamp::from_nanos(b)));
    }
}

#[test]
fn there_are_eight_levels_and_priorities_outside_are_clamped() {
    assert_eq!(Level::ALL.map(Level::get), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(Level::new(7), Some(Level::MAX));
    assert_eq!(Level::new(8), None);
    assert_eq!(Level::clamp(i32::MIN), Level::MIN);
    assert_eq!(Level::clamp(3).get(), 3);
    assert_eq!(Level::clamp(i32::MAX), Level::MAX);
    assert_eq!(Level::MAX.to_string(), "7");
}

#[test]
fn a_level_is_a_class_selector_and_a_priority_code_point() {
    assert_eq!(Level::ALL.map(Level::dscp), [0, 8, 16, 24, 32, 40, 48, 56]);
    assert_eq!(Level::ALL.map(Level::pcp), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn sequence_numbers_follow_one_another_up_to_the_last() {
    assert_eq!(SequenceNumber(7).next(), SequenceNumber(8));
    let last = SequenceNumber(i64::MAX);
    assert_eq!(last.next(), last);
    assert_eq!(SequenceNumber(-3).to_string(), "-3");
    let mut set = SequenceNumberSet::new(SequenceNumber(5));
    set.insert(SequenceNumber(6));
    for member in &set {
        assert_eq!(member.get(), 6);
    }
}

#[test]
fn a_character_of_latin_1_is_one_of_dds_and_others_are_none() {
    let letter = Char8::try_from('\u{e9}').unwrap();
    assert_eq!((letter, char::from(letter)), (Char8(0xe9), '\u{e9}'));
    assert!(Char8::try_from('\u{20ac}').is_err());
}

#[test]
fn an_ethernet_address_is_shown_in_hexadecimal() {
    let address = MacAddress([2, 0, 0, 0xab, 0, 1]);
    assert_eq!(address.to_string(), "02:00:00:ab:00:01");
    assert_eq!(format!("{address:?}"), address.to_string());
}

#[test]
fn an_entity_id_tells_what_it_names() {
    let facts = |id: EntityId| {
        (
            id.is_builtin(),
            id.is_writer(),
            id.is_reader(),
            id.is_keyed(),
        )
    };
    assert_eq!(facts(EntityId::SPDP_WRITER), (true, true, false, true));
    assert_eq!(
        facts(EntityId::SEDP_PUBLICATIONS_READER),
        (true, false, true, true)
    );
    assert_eq!(facts(EntityId::PARTICIPANT), (true, false, false, false));
    assert_eq!(facts(EntityId::UNKNOWN), (false, false, false, false));
    let user = |kind| facts(EntityId::user(5, kind));
    assert_eq!(
        user(EntityKind::WRITER_WITH_KEY),
        (false, true, false, true)
    );
    assert_eq!(user(EntityKind::WRITER_NO_KEY), (false, true, false, false));
    assert_eq!(
        user(EntityKind::READER_WITH_KEY),
        (false, false, true, true)
    );
    assert_eq!(user(EntityKind::READER_NO_KEY), (false, false, true, false));
    // A vendor's own writer is a writer, but not a built-in one.
    assert_eq!(facts(EntityId([0, 2, 0, 0x42])), (false, true, false, true));
}

#[test]
fn a_guid_is_its_sixteen_bytes_and_shown_in_hexadecimal() {
    let bytes = *b"0123456789ab\x00\x00\x01\xc1";
    let guid = Guid::from_bytes(bytes);
    assert_eq!(guid.to_bytes(), bytes);
    assert_eq!(guid.prefix, GuidPrefix(*b"0123456789ab"));
    assert_eq!(guid.entity, EntityId::PARTICIPANT);
    assert_eq!(guid.to_string(), "303132333435363738396162:000001c1");
    assert_eq!(format!("{:?}", guid.entity), "000001c1");
    assert_eq!(format!("{guid:?}"), guid.to_string());
    assert_eq!(format!("{:?}", guid.prefix), "303132333435363738396162");
    assert_eq!(
        EntityId::user(0x00ab_cdef, 3),
        EntityId([0xab, 0xcd, 0xef, 3])
    );
}

#[test]
fn a_locator_of_udp_is_a_socket_address_and_back() {
    let address: SocketAddrV4 = "10.78.0.1:7410".parse().unwrap();
    let locator = Locator::from(address);
    assert_eq!(locator, Locator::udpv4([10, 78, 0, 1], 7410));
    assert_eq!(locator.ipv4(), Some([10, 78, 0, 1]));
    assert_eq!(SocketAddrV4::try_from(locator), Ok(address));
    assert_eq!(locator.to_string(), "udp/10.78.0.1:7410");
}

#[test]
fn a_locator_of_another_kind_or_with_an_impossible_port_is_no_socket_address() {
    assert_eq!(SocketAddrV4::try_from(Locator::INVALID), Err(NotUdpV4));
    let mut locator = Locator::udpv4([10, 0, 0, 1], 1);
    locator.port = 0x1_0000;
    assert_eq!(SocketAddrV4::try_from(locator), Err(NotUdpV4));
    assert_eq!(Locator::INVALID.ipv4(), None);
    assert_eq!(Locator::INVALID.to_string(), "kind -1, port 0");
}

#[test]
fn groups_differ_from_hosts() {
    assert!(Locator::udpv4([224, 0, 0, 1], 1).is_multicast());
    assert!(Locator::udpv4([239, 255, 255, 255], 1).is_multicast());
    assert!(!Locator::udpv4([223, 255, 255, 255], 1).is_multicast());
    assert!(!Locator::udpv4([240, 0, 0, 1], 1).is_multicast());
    let mut address = [0; 16];
    address[0] = 0xff;
    address[15] = 1;
    let group = Locator {
        kind: Locator::KIND_UDPV6,
        port: 7401,
        address,
    };
    assert!(group.is_multicast());
    assert_eq!(group.to_string(), "udp/[ff00::1]:7401");
    assert!(!Locator::INVALID.is_multicast());
}
