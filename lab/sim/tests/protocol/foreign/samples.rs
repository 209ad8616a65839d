//! Datagrams of other implementations: several samples, ends of instances, keys, time stamps, and their own forms of
//! submessages and payloads.

use isolane_rtps::{ChangeKind, InstanceState};
use isolane_sim::{NodeConfig, Sample, Topic, World, key_of};
use isolane_wire::{
    guid::{EntityId, EntityKind, GuidPrefix},
    message::{DataPrefix, HEADER_BYTES, PayloadKind, StatusInfo},
    qos::{DurabilityKind, QosPolicies},
    sequence::SequenceNumber,
    time::Timestamp,
};

use super::{a_keyed_reader, a_reader};
use crate::{
    peer::{KEYED_WRITER, Peer, WRITER, head},
    submessages::{gap, set},
};

#[test]
fn a_sample_behind_a_vendors_own_submessage_is_found() {
    let (mut world, peer, reader) = a_reader(DurabilityKind::Volatile);
    let payload = Sample::value(1).payload();
    let plain = peer.datagram(|message| message.data(&head(WRITER, 1), &payload).map(drop));
    // Unknown submessage 0x80, little-endian, with 8 arbitrary bytes, between header and DATA.
    let (header, data) = plain.split_at(HEADER_BYTES);
    let own = [0x80, 1, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    peer.say_bytes(&mut world, &[header, &own, data].concat());
    assert_eq!(world.values(reader), [1]);
}

#[test]
fn several_samples_in_one_datagram_reach_every_view_reader_in_order() {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let topic = Topic::new("Foreign");
    let readers = [
        world.create_view_reader(node, &topic),
        world.create_reader(node, &topic.clone().keep_all(8)),
        world.create_view_reader(node, &topic),
    ];
    let mut peer = Peer::of(&mut world, node);
    peer.announce(&mut world, WRITER, QosPolicies::default());
    peer.say(&mut world, |message| {
        for number in [1, 2, 4] {
            let payload = Sample::value(number as u64).payload();
            message.data(&head(WRITER, number), &payload)?;
        }
        Ok(())
    });
    for reader in readers {
        assert_eq!(world.values(reader), [1, 2, 4]);
        assert_eq!(world.reader_ledger(reader).lost, 1);
    }
}

#[test]
fn what_is_for_another_participant_is_left_alone() {
    let (mut world, peer, reader) = a_reader(DurabilityKind::Volatile);
    let payload = Sample::value(1).payload();
    let (other, own) = (GuidPrefix([7; 12]), world.reader_guid(reader).prefix);
    for (prefix, expected) in [(other, vec![]), (own, vec![1])] {
        peer.say(&mut world, |message| {
            message
                .info_destination(prefix)?
                .data(&head(WRITER, 1), &payload)?;
            Ok(())
        });
        assert_eq!(world.values(reader), expected);
    }
    assert_eq!(world.protocol(peer.target).counters().for_others, 1);
}

/// Change kind and instance state after a peer ends an instance in the given form.
fn an_end(status: StatusInfo, has_key: bool, has_hash: bool) -> (ChangeKind, InstanceState, bool) {
    let (mut world, peer, reader) = a_keyed_reader();
    let alive = Sample::keyed(7, 1).payload();
    let head = head(KEYED_WRITER, 1);
    peer.say(&mut world, |message| message.data(&head, &alive).map(drop));
    let key = Sample::dispose(7).payload();
    let end = DataPrefix {
        sequence: SequenceNumber(2),
        key_hash: has_hash.then(|| key_of(&key, true).expect("a key")),
        status: Some(status),
        payload: if has_key {
            PayloadKind::Key
        } else {
            PayloadKind::None
        },
        ..head
    };
    let payload = if has_key { &key[..] } else { &[] };
    peer.say(&mut world, |message| message.data(&end, payload).map(drop));
    let last = world
        .last_of_instance(reader, 7)
        .expect("the instance is known");
    let (kind, state) = last.states();
    (kind, state, world.received(reader).len() == 2)
}

#[test]
fn the_end_of_an_instance_is_understood_by_its_key_or_by_its_hash() {
    let dispose = StatusInfo {
        disposed: true,
        unregistered: false,
    };
    let unregister = StatusInfo {
        disposed: false,
        unregistered: true,
    };
    // Cyclone DDS sends the key, Fast DDS the hash.
    for (has_key, has_hash) in [(true, false), (false, true), (true, true)] {
        assert_eq!(
            an_end(dispose, has_key, has_hash),
            (ChangeKind::Dispose, InstanceState::NotAliveDisposed, true)
        );
        assert_eq!(
            an_end(unregister, has_key, has_hash),
            (
                ChangeKind::Unregister,
                InstanceState::NotAliveNoWriters,
                true
            )
        );
    }
}

#[test]
fn the_key_in_the_payload_is_believed_and_not_a_vendors_hash_of_it() {
    let (mut world, peer, reader) = a_keyed_reader();
    let payload = Sample::keyed(7, 1).payload();
    let head = DataPrefix {
        key_hash: Some([0xee; 16]),
        ..head(KEYED_WRITER, 1)
    };
    peer.say(&mut world, |message| {
        message.data(&head, &payload).map(drop)
    });
    assert!(world.last_of_instance(reader, 7).is_some());
}

#[test]
fn jumps_to_the_last_number_and_beyond_the_ledgers_range_do_no_harm() {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let topic = Topic::new("Foreign").keep_all(64);
    let reader = world.create_reader(node, &topic);
    let mut peer = Peer::of(&mut world, node);
    // Each writer appears to have lost almost 2^63 samples, so the third one makes the count exceed 2^64.
    for number in 1..=3 {
        let writer = EntityId::user(number, EntityKind::WRITER_NO_KEY);
        peer.announce(&mut world, writer, QosPolicies::default());
        let last = if number == 3 { 10 } else { i64::MAX - 1 };
        for sequence in (1..=8).chain([last]) {
            let payload = Sample::value(1).payload();
            let head = head(writer, sequence);
            peer.say(&mut world, |message| {
                message.data(&head, &payload).map(drop)
            });
        }
    }
    assert_eq!(world.reader_ledger(reader).delivered, 27);
    assert_eq!(world.imbalance(), None);
}

#[test]
fn another_source_ends_the_time_stamp_of_the_one_before() {
    let (mut world, peer, reader) = a_reader(DurabilityKind::Volatile);
    let payload = Sample::value(1).payload();
    let mut before = 0;
    let plain = peer.datagram(|message| {
        message.info_timestamp(Timestamp::from_nanos(1_000_000_000))?;
        before = message.len();
        message.data(&head(WRITER, 1), &payload).map(drop)
    });
    // INFO_SRC, little-endian: unused field, version, vendor, GUID prefix of the peer itself.
    let (first, second) = plain.split_at(before);
    let source = [0x0c, 1, 20, 0, 0, 0, 0, 0, 2, 3, 1, 15];
    let datagram = [first, &source, &peer.prefix.0, second].concat();
    peer.say_bytes(&mut world, &datagram);
    let [received] = world.received(reader) else {
        panic!("one sample came");
    };
    assert_eq!(received.info.source_timestamp, None);
}

#[test]
fn a_payload_in_a_vendors_own_form_is_rejected_and_not_read() {
    let (mut world, peer, reader) = a_reader(DurabilityKind::Volatile);
    let payload = Sample::value(1).payload();
    let mut datagram = peer.datagram(|message| {
        let data = head(WRITER, 1);
        message.data(&data, &payload).map(drop)
    });
    // Flag N of DATA (RTPS 2.5 §9.4.5.3.1).
    datagram[HEADER_BYTES + 1] |= 0x10;
    peer.say_bytes(&mut world, &datagram);
    peer.value(&mut world, 2);
    assert_eq!(world.reader_ledger(reader).rejected, 1);
    assert_eq!(world.values(reader), [2]);
}

#[test]
fn a_gap_passes_over_what_has_not_come_and_over_nothing_else_however_long_it_is() {
    let (mut world, peer, reader) = a_reader(DurabilityKind::Volatile);
    let gap = |world: &mut World, start: i64, end: i64| {
        let gap = gap(WRITER, start, set(end, []));
        peer.say(world, |message| message.gap(&gap).map(drop));
    };
    for number in [1, 5, 64, 65, 130] {
        peer.value(&mut world, number);
    }
    gap(&mut world, 2, 66);
    assert_eq!(world.values(reader), [1, 5, 64, 65]);
    assert_eq!(world.reader_ledger(reader).irrelevant, 61);
    gap(&mut world, 70, 1 << 50);
    peer.heartbeat(&mut world, (1, 1 << 50), 1);
    let (base, asked) = peer.last_acknack(&world).expect("it asks");
    assert_eq!((base, asked), (66, vec![66, 67, 68, 69]));
    gap(&mut world, 66, 1 << 50);
    peer.value(&mut world, 1 << 50);
    assert_eq!(world.values(reader), [1, 5, 64, 65, 130, 1 << 50]);
    let ledger = world.reader_ledger(reader);
    assert_eq!((ledger.irrelevant, ledger.lost), ((1 << 50) - 1 - 5, 0));
}
