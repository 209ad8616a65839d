//! Peers that are not isolane: what they send by hand, and how they are answered.

use isolane_engine::{ChangeKind, InstanceState, limits::MAX_PREEMPTIVE_ACKNACKS};
use isolane_sim::{NodeConfig, ReaderHandle, Sample, Take, Topic, World, WriterHandle, key_of};
use isolane_wire::{
    guid::{EntityId, EntityKind, GuidPrefix},
    qos::{DurabilityKind, QosPolicies, ReliabilityKind},
    rtps::{AckNack, DataHead, Gap, HEADER_BYTES, PayloadKind, StatusInfo, Submessage},
    sequence::{SequenceNumber, SequenceNumberSet},
    time::Timestamp,
};

use crate::{
    peer::{KEYED_WRITER, Peer, READER, WRITER, for_each_submessage, head},
    support::{SECOND, values},
};

fn reliable(durability: DurabilityKind) -> QosPolicies {
    let mut qos = QosPolicies::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.durability = durability;
    qos
}

/// A VOLATILE reliable reader, matched with a writer of a peer.
fn a_reader(durability: DurabilityKind) -> (World, Peer, ReaderHandle) {
    let topic = Topic::new("Foreign").reliable().keep_all(64);
    a_reader_of(&topic, WRITER, durability)
}

/// A best-effort reader of a topic with a key, matched with a writer of a peer.
fn a_keyed_reader() -> (World, Peer, ReaderHandle) {
    let topic = Topic::new("Foreign").keyed().keep_all(8);
    a_reader_of(&topic, KEYED_WRITER, DurabilityKind::Volatile)
}

fn a_reader_of(
    topic: &Topic,
    writer: EntityId,
    durability: DurabilityKind,
) -> (World, Peer, ReaderHandle) {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let reader = world.create_reader(node, topic);
    let mut peer = Peer::of(&mut world, node);
    peer.announce(&mut world, writer, reliable(durability));
    assert_eq!(world.matched_writers(reader), 1);
    (world, peer, reader)
}

/// A reliable writer, and a peer that has announced a reader of it.
fn a_writer() -> (World, Peer, WriterHandle) {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let topic = Topic::new("Foreign")
        .reliable()
        .keep_all(64)
        .transient_local();
    let writer = world.create_writer(node, &topic);
    let mut peer = Peer::of(&mut world, node);
    peer.announce(&mut world, READER, reliable(DurabilityKind::Volatile));
    (world, peer, writer)
}

#[test]
fn an_endpoint_announced_without_key_hash_is_found() {
    let (world, peer, reader) = a_reader(DurabilityKind::Volatile);
    let found = world
        .engine(peer.target)
        .remote_endpoints()
        .next()
        .expect("one");
    assert_eq!(found.data.guid.prefix, peer.prefix);
    assert_eq!(
        world.engine(peer.target).counters().malformed_announcements,
        0
    );
    assert_eq!(world.matched_writers(reader), 1);
}

#[test]
fn a_reader_asks_a_new_writer_for_a_heartbeat() {
    let (world, peer, _) = a_reader(DurabilityKind::Volatile);
    assert_eq!(peer.last_acknack(&world), Some((1, vec![])));
}

#[test]
fn a_volatile_reader_asks_for_all_that_the_first_heartbeat_of_a_volatile_writer_announces() {
    let (mut world, peer, reader) = a_reader(DurabilityKind::Volatile);
    // All that is ever written was written before the reader could hear it: Fast DDS believes the
    // reader matched.
    peer.heartbeat(&mut world, (1, 3), 1);
    assert_eq!(peer.last_acknack(&world), Some((1, vec![1, 2, 3])));
    for number in [2, 3, 1] {
        peer.value(&mut world, number);
    }
    assert_eq!(world.values(reader), [1, 2, 3]);
    peer.heartbeat(&mut world, (1, 3), 2);
    assert_eq!(peer.last_acknack(&world), Some((4, vec![])));
}

#[test]
fn a_volatile_reader_of_a_foreign_transient_local_writer_asks_for_no_history() {
    let (mut world, peer, reader) = a_reader(DurabilityKind::TransientLocal);
    peer.heartbeat(&mut world, (1, 3), 1);
    assert_eq!(peer.last_acknack(&world), Some((4, vec![])));
    peer.value(&mut world, 2);
    peer.value(&mut world, 4);
    assert_eq!(world.values(reader), [4]);
}

#[test]
fn what_a_foreign_writer_sends_unasked_before_its_first_heartbeat_is_taken() {
    let (mut world, peer, reader) = a_reader(DurabilityKind::TransientLocal);
    peer.value(&mut world, 3);
    peer.heartbeat(&mut world, (1, 5), 1);
    assert_eq!(peer.last_acknack(&world), Some((4, vec![4, 5])));
    assert_eq!(world.values(reader), [3]);
}

#[test]
fn what_comes_unasked_and_finds_no_room_is_asked_for_again() {
    let topic = Topic::new("Foreign").reliable().keep_all(1);
    let (mut world, mut peer, reader) = a_reader_of(&topic, WRITER, DurabilityKind::TransientLocal);
    world.set_take(reader, Take::OnRequest);
    let other = EntityId::user(7, EntityKind::WRITER_NO_KEY);
    peer.announce(&mut world, other, reliable(DurabilityKind::Volatile));
    let payload = Sample::value(100).payload();
    let head = head(other, 1);
    peer.say(&mut world, |message| {
        message.data(&head, &payload).map(drop)
    });
    // The cache is full: this reader begins with 10, but cannot keep it yet.
    peer.value(&mut world, 10);
    peer.value(&mut world, 11);
    assert_eq!(world.take(reader, 1), 1);
    peer.heartbeat(&mut world, (1, 11), 1);
    let (base, asked) = peer.last_acknack(&world).expect("one");
    assert_eq!((base, asked.first()), (10, Some(&10)));
    for number in [10, 11] {
        peer.value(&mut world, number);
        assert_eq!(world.take(reader, 1), 1);
    }
    assert_eq!(world.values(reader), [100, 10, 11]);
}

#[test]
fn an_empty_writers_heartbeat_and_a_gap_are_understood() {
    let (mut world, peer, reader) = a_reader(DurabilityKind::Volatile);
    peer.heartbeat(&mut world, (6, 5), 1);
    assert_eq!(peer.last_acknack(&world), Some((6, vec![])));
    peer.value(&mut world, 6);
    peer.value(&mut world, 10);
    let mut list = SequenceNumberSet::new(SequenceNumber(8));
    list.insert(SequenceNumber(9));
    let gap = Gap {
        reader: EntityId::UNKNOWN,
        writer: WRITER,
        start: SequenceNumber(7),
        list,
    };
    peer.say(&mut world, |message| message.gap(&gap).map(drop));
    peer.heartbeat(&mut world, (6, 10), 2);
    assert_eq!(peer.last_acknack(&world), Some((8, vec![8])));
    peer.value(&mut world, 8);
    assert_eq!(world.values(reader), [6, 8, 10]);
    let ledger = world.reader_ledger(reader);
    assert_eq!((ledger.lost, ledger.skipped), (2, 5));
}

#[test]
fn a_preemptive_acknack_of_either_kind_is_answered_with_a_heartbeat() {
    // Cyclone DDS: base 1, count 0. Fast DDS: base 0.
    for base in [0, 1] {
        let (mut world, peer, writer) = a_writer();
        let acknack = acknack_of(&world, writer, base, false);
        world.enqueue(writer, values(2));
        world.run_for(SECOND);
        assert_eq!(world.matched_readers(writer), 0, "it has not answered yet");
        for _ in 0..3 {
            // Again and again, with the same count: it may have forgotten.
            let before = world.writer_ledger(writer).heartbeats;
            peer.say(&mut world, |message| message.acknack(&acknack).map(drop));
            assert!(world.writer_ledger(writer).heartbeats > before);
        }
        let mut heard = None;
        for_each_submessage(&world, |submessage| {
            if let Submessage::Heartbeat(heartbeat) = submessage
                && heartbeat.writer == acknack.writer
            {
                heard = Some((heartbeat.first.get(), heartbeat.last.get()));
            }
        });
        assert_eq!(heard, Some((1, 2)));
    }
}

#[test]
fn a_reader_that_asks_for_its_first_heartbeat_is_matched_when_it_has_answered_one() {
    // A VOLATILE reader of Cyclone DDS begins behind the last number of the first one it hears: what is
    // written before, because the reader is matched, would be lost with that.
    let (mut world, peer, writer) = a_writer();
    let question = acknack_of(&world, writer, 1, false);
    peer.say(&mut world, |message| message.acknack(&question).map(drop));
    assert_eq!(world.matched_readers(writer), 0);
    // It is asked again, since that first one may have been lost.
    let before = world.writer_ledger(writer).heartbeats;
    world.run_for(SECOND);
    assert!(world.writer_ledger(writer).heartbeats > before);
    let answer = acknack_of(&world, writer, 1, true);
    peer.say(&mut world, |message| message.acknack(&answer).map(drop));
    assert_eq!(world.matched_readers(writer), 1);
    let before = world.writer_ledger(writer).heartbeats;
    world.run_for(10 * SECOND);
    assert_eq!(world.writer_ledger(writer).heartbeats, before, "enough");
}

#[test]
fn a_reader_whose_answers_all_look_like_questions_is_matched_at_last() {
    let (mut world, peer, writer) = a_writer();
    for said in 1..=MAX_PREEMPTIVE_ACKNACKS {
        let acknack = AckNack {
            count: i32::from(said),
            ..acknack_of(&world, writer, 1, false)
        };
        assert_eq!(world.matched_readers(writer), 0);
        peer.say(&mut world, |message| message.acknack(&acknack).map(drop));
    }
    assert_eq!(world.matched_readers(writer), 1);
}

/// What the peer's reader says of a writer: that it has all below `base`.
fn acknack_of(world: &World, writer: WriterHandle, base: i64, is_final: bool) -> AckNack {
    AckNack {
        reader: READER,
        writer: world.writer_guid(writer).entity,
        state: SequenceNumberSet::new(SequenceNumber(base)),
        count: i32::from(is_final),
        is_final,
    }
}

#[test]
fn a_sample_behind_a_vendors_own_submessage_is_found() {
    let (mut world, peer, reader) = a_reader(DurabilityKind::Volatile);
    let payload = Sample::value(1).payload();
    let plain = peer.datagram(|message| message.data(&head(WRITER, 1), &payload).map(drop));
    // 0x80, little-endian, 8 bytes of something, between header and DATA.
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
    assert_eq!(world.engine(peer.target).counters().for_others, 1);
}

/// How a peer tells the end of an instance.
fn an_end(status: StatusInfo, has_key: bool, has_hash: bool) -> (ChangeKind, InstanceState, bool) {
    let (mut world, peer, reader) = a_keyed_reader();
    let alive = Sample::keyed(7, 1).payload();
    let head = head(KEYED_WRITER, 1);
    peer.say(&mut world, |message| message.data(&head, &alive).map(drop));
    let key = Sample::dispose(7).payload();
    let end = DataHead {
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
    let head = DataHead {
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
    // Each writer is believed to have lost almost 2^63 samples: the third counts past 2^64.
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
    // INFO_SRC, little-endian: unused, version, vendor, the peer itself.
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
        let gap = Gap {
            reader: EntityId::UNKNOWN,
            writer: WRITER,
            start: SequenceNumber(start),
            list: SequenceNumberSet::new(SequenceNumber(end)),
        };
        peer.say(world, |message| message.gap(&gap).map(drop));
    };
    for number in [1, 5, 64, 65, 130] {
        peer.value(&mut world, number);
    }
    gap(&mut world, 2, 66);
    assert_eq!(world.values(reader), [1, 5, 64, 65]);
    assert_eq!(world.reader_ledger(reader).lost, 61);
    gap(&mut world, 70, 1 << 50);
    peer.heartbeat(&mut world, (1, 1 << 50), 1);
    let (base, asked) = peer.last_acknack(&world).expect("it asks");
    assert_eq!((base, asked), (66, vec![66, 67, 68, 69]));
    gap(&mut world, 66, 1 << 50);
    peer.value(&mut world, 1 << 50);
    assert_eq!(world.values(reader), [1, 5, 64, 65, 130, 1 << 50]);
    assert_eq!(world.reader_ledger(reader).lost, (1 << 50) - 1 - 5);
}
