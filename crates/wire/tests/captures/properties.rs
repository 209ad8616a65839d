//! Property tests: reading any bytes returns, and any value survives writing and reading.

use crate::pcap::{CAPTURES, messages};
use isolane_wire::{
    ByteOrder,
    builtin_data::{EndpointData, ParticipantData, parse_key_guid},
    guid::{EntityId, GuidPrefix},
    locator::Locator,
    message::{
        AckNack, DataPrefix, Gap, GapGroup, HEADER_BYTES, Header, Heartbeat, HeartbeatFrag,
        HeartbeatGroup, InfoReplyIp4, NackFrag, PayloadKind, StatusInfo, Submessage, Submessages,
    },
    parameter::ParameterList,
    sequence::{FragmentNumberSet, SequenceNumber, SequenceNumberSet},
};
use proptest::{collection::vec, option, prelude::*, sample::Index};

/// Messages of all captures; only one of each length and sequence of submessage ids.
fn captured() -> &'static [Vec<u8>] {
    thread_local!(static CAPTURED: &'static [Vec<u8>] = Vec::leak(read_captures()));
    CAPTURED.with(|captured| *captured)
}

fn read_captures() -> Vec<Vec<u8>> {
    let of = |name| messages(name).into_iter().map(|message| message.bytes);
    let mut all: Vec<_> = CAPTURES.into_iter().flat_map(of).collect();
    let kinds = |bytes: &[u8]| -> Vec<u8> {
        Submessages::new(bytes, HEADER_BYTES)
            .filter_map(|submessage| match submessage {
                Ok(Submessage::Data(data)) => Some(data.writer.0[2]),
                Ok(_) => Some(0),
                Err(_) => None,
            })
            .collect()
    };
    all.sort_by_cached_key(|bytes| (bytes.len(), kinds(bytes)));
    all.dedup_by_key(|bytes| (bytes.len(), kinds(bytes)));
    all
}

/// Reads every part of a message, both as discovery and as user data.
fn read_all(message: &[u8]) {
    let _ = Header::parse(message);
    let mut submessages = Submessages::new(message, HEADER_BYTES);
    let mut steps = 0;
    while let Some(submessage) = submessages.next() {
        // Each submessage takes at least its header, so reading ends after a number of steps that the length bounds.
        steps += 4;
        assert!(steps <= message.len() + 4);
        assert!(submessages.offset() <= message.len());
        match submessage {
            Ok(Submessage::Data(data)) => {
                let in_place = message.get(data.payload_offset..).unwrap();
                assert!(in_place.starts_with(data.bytes));
                let _ = (data.status_info(), data.key_hash());
                read_payload(data.bytes);
            }
            Ok(Submessage::DataFrag(data)) => {
                let in_place = message.get(data.payload_offset..).unwrap();
                assert!(in_place.starts_with(data.bytes));
                let end = data.sample_offset() + data.bytes.len();
                assert!(!data.bytes.is_empty() && end <= data.sample_size as usize);
            }
            Ok(Submessage::AckNack(acknack)) => {
                assert!(acknack.state.iter().count() <= 256);
            }
            Ok(Submessage::Gap(gap)) => assert!(gap.list.iter().count() <= 256),
            Ok(Submessage::NackFrag(nack)) => assert!(nack.state.iter().count() <= 256),
            Ok(Submessage::InfoReply(reply)) => {
                assert!(reply.unicast.iter().count() * 24 <= message.len());
            }
            _ => {}
        }
    }
}

fn read_payload(payload: &[u8]) {
    let _ = ParticipantData::parse(payload);
    let _ = EndpointData::parse_writer(payload);
    let _ = EndpointData::parse_reader(payload);
    let _ = parse_key_guid(payload);
}

#[test]
fn captured_messages_cut_anywhere_are_read_without_panic() {
    for message in captured() {
        // For the few messages longer than a frame, not every length is tried.
        let step = message.len().div_ceil(2000);
        for length in (0..message.len()).step_by(step) {
            read_all(&message[..length]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn captured_messages_with_one_byte_changed_are_read_without_panic(
        which: Index,
        position: Index,
        value: u8,
    ) {
        let mut message = which.get(captured()).clone();
        // Only in the first 2,000 bytes, because the rest is payload.
        let position = position.index(message.len().min(2000));
        message[position] = value;
        read_all(&message);
    }

    #[test]
    fn any_bytes_behind_a_header_are_read_without_panic(bytes in vec(any::<u8>(), 0..300)) {
        let mut message = vec![0; HEADER_BYTES];
        Header::new(GuidPrefix([1; 12])).emit(&mut message);
        message.extend_from_slice(&bytes);
        read_all(&message);
        read_all(&bytes);
    }

    #[test]
    fn any_body_of_any_submessage_is_read_without_panic(
        id: u8,
        flags: u8,
        body in vec(prop_oneof![Just(0), Just(1), Just(4), any::<u8>()], 0..200),
    ) {
        let mut message = vec![0; HEADER_BYTES];
        message.extend_from_slice(&[id, flags, 0, 0]);
        message.extend_from_slice(&body);
        read_all(&message);
    }

    #[test]
    fn any_parameter_list_is_read_without_panic(
        big: bool,
        bytes in vec(prop_oneof![4 => Just(0), 1 => any::<u8>()], 0..300),
    ) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        if let Ok((list, length)) = ParameterList::parse(&bytes, order) {
            prop_assert!(length <= bytes.len());
            prop_assert!(list.iter().map(|parameter| 4 + parameter.value.len()).sum::<usize>() < length);
        }
        read_payload(&[&[0, if big { 2 } else { 3 }, 0, 0], &bytes[..]].concat());
    }

    #[test]
    fn any_parameter_with_any_value_is_read_without_panic(
        id in 0_u16..0x80,
        value in vec(any::<u8>(), 0..64),
    ) {
        let padded = value.len().next_multiple_of(4);
        let mut payload = vec![0, 3, 0, 0];
        payload.extend_from_slice(&id.to_le_bytes());
        payload.extend_from_slice(&(padded as u16).to_le_bytes());
        payload.extend_from_slice(&value);
        payload.resize(8 + padded, 0);
        payload.extend_from_slice(&[1, 0, 0, 0]);
        read_payload(&payload);
    }
}

fn entity() -> impl Strategy<Value = EntityId> {
    any::<[u8; 4]>().prop_map(EntityId)
}

fn sequence() -> impl Strategy<Value = SequenceNumber> {
    prop_oneof![1..1000_i64, 1..i64::MAX - 256].prop_map(SequenceNumber)
}

fn sequence_set() -> impl Strategy<Value = SequenceNumberSet> {
    (sequence(), vec(0..256_i64, 0..20)).prop_map(|(base, offsets)| {
        let mut set = SequenceNumberSet::new(base);
        for offset in offsets {
            assert!(set.insert(SequenceNumber(base.get() + offset)));
        }
        set
    })
}

fn fragment_set() -> impl Strategy<Value = FragmentNumberSet> {
    (1..u32::MAX - 256, vec(0..256_u32, 0..20)).prop_map(|(base, offsets)| {
        let mut set = FragmentNumberSet::new(base);
        for offset in offsets {
            assert!(set.insert(base + offset));
        }
        set
    })
}

/// Parses the only submessage in a buffer.
fn reread(bytes: &[u8]) -> Submessage<'_> {
    let mut submessages = Submessages::new(bytes, 0);
    let submessage = submessages.next().unwrap().unwrap();
    assert_eq!(submessages.offset(), bytes.len());
    submessage
}

proptest! {
    #[test]
    fn acknacks_survive(
        reader in entity(), writer in entity(), state in sequence_set(), count: i32, is_final: bool,
    ) {
        let sent = AckNack { reader, writer, state, count, is_final };
        let mut buffer = vec![0xaa; sent.buffer_len()];
        prop_assert_eq!(sent.emit(&mut buffer), buffer.len());
        prop_assert_eq!(reread(&buffer), Submessage::AckNack(sent));
    }

    #[test]
    fn heartbeats_survive(
        reader in entity(), writer in entity(), first in sequence(), more in 0..1000_i64,
        count: i32, is_final: bool, liveliness: bool,
    ) {
        let last = SequenceNumber((first.get() - 1).saturating_add(more));
        let sent = Heartbeat { reader, writer, first, last, count, is_final, liveliness, group: None };
        let mut buffer = vec![0xaa; sent.buffer_len()];
        prop_assert_eq!(sent.emit(&mut buffer), buffer.len());
        prop_assert_eq!(reread(&buffer), Submessage::Heartbeat(sent));
    }

    #[test]
    fn heartbeats_with_group_information_survive(
        first in 1..1000_i64, more in 0..1000_i64, beyond in 0..1000_i64,
        writers: [u8; 4], secure_writers: [u8; 4],
    ) {
        let last = SequenceNumber(first - 1 + more);
        let group = HeartbeatGroup {
            current: SequenceNumber(last.get().max(first) + beyond),
            first: SequenceNumber(first),
            last,
            writers,
            secure_writers,
        };
        let sent = Heartbeat {
            reader: EntityId::UNKNOWN,
            writer: EntityId::SPDP_WRITER,
            first: SequenceNumber(first),
            last,
            count: 1,
            is_final: false,
            liveliness: false,
            group: Some(group),
        };
        let mut buffer = vec![0xaa; sent.buffer_len()];
        prop_assert_eq!(sent.emit(&mut buffer), buffer.len());
        prop_assert_eq!(reread(&buffer), Submessage::Heartbeat(sent));
    }

    #[test]
    fn gaps_survive(
        reader in entity(), writer in entity(), start in sequence(), list in sequence_set(),
        group in option::of((sequence(), 0..1000_i64)), filtered: Option<i64>,
    ) {
        let group = group.map(|(start, more)| GapGroup {
            start,
            end: SequenceNumber((start.get() - 1).saturating_add(more).max(1)),
        });
        let sent = Gap { reader, writer, start, list, group, filtered };
        let mut buffer = vec![0xaa; sent.buffer_len()];
        prop_assert_eq!(sent.emit(&mut buffer), buffer.len());
        prop_assert_eq!(reread(&buffer), Submessage::Gap(sent));
    }

    #[test]
    fn short_replies_survive(address: [u8; 4], port: u32, group: Option<[u8; 4]>) {
        let place = |address| Locator { port, ..Locator::udpv4(address, 0) };
        let sent = InfoReplyIp4 { unicast: place(address), multicast: group.map(place) };
        let mut buffer = vec![0xaa; sent.buffer_len()];
        prop_assert_eq!(sent.emit(&mut buffer), buffer.len());
        prop_assert_eq!(reread(&buffer), Submessage::InfoReplyIp4(sent));
    }

    #[test]
    fn fragments_heartbeats_and_nacks_survive(
        reader in entity(), writer in entity(), sequence in sequence(), last_fragment in 1..u32::MAX,
        state in fragment_set(), count: i32,
    ) {
        let sent = HeartbeatFrag { reader, writer, sequence, last_fragment, count };
        let mut buffer = vec![0xaa; sent.buffer_len()];
        prop_assert_eq!(sent.emit(&mut buffer), buffer.len());
        prop_assert_eq!(reread(&buffer), Submessage::HeartbeatFrag(sent));

        let sent = NackFrag { reader, writer, sequence, state, count };
        let mut buffer = vec![0xaa; sent.buffer_len()];
        prop_assert_eq!(sent.emit(&mut buffer), buffer.len());
        prop_assert_eq!(reread(&buffer), Submessage::NackFrag(sent));
    }

    #[test]
    fn data_survives_in_front_of_any_payload(
        reader in entity(),
        writer in entity(),
        sequence in sequence(),
        key_hash: Option<[u8; 16]>,
        status: Option<(bool, bool)>,
        is_key: bool,
        mut payload in vec(any::<u8>(), 1..200),
    ) {
        payload.resize(payload.len().next_multiple_of(4), 0);
        let status = status.map(|(disposed, unregistered)| StatusInfo { disposed, unregistered });
        let kind = if is_key { PayloadKind::Key } else { PayloadKind::Data };
        let head = DataPrefix { reader, writer, sequence, key_hash, status, payload: kind };
        let mut message = vec![0xaa; head.buffer_len()];
        head.emit(&mut message, payload.len());
        message.extend_from_slice(&payload);
        let Submessage::Data(data) = reread(&message) else {
            panic!("not DATA: {message:02x?}");
        };
        prop_assert_eq!((data.reader, data.writer, data.sequence), (reader, writer, sequence));
        prop_assert_eq!((data.payload, data.bytes), (kind, &payload[..]));
        prop_assert_eq!(data.key_hash(), key_hash);
        prop_assert_eq!(data.status_info(), status.unwrap_or_default());
    }
}
