//! Repair with other implementations: HEARTBEATs, GAPs and ACKNACKs, which they send in an order of their own.

use isolane_rtps::limits::MAX_PREEMPTIVE_ACKNACKS;
use isolane_sim::{Sample, Take, Topic, World, WriterHandle};
use isolane_wire::{
    guid::{EntityId, EntityKind},
    locator::Locator,
    message::{AckNack, Submessage},
    qos::DurabilityKind,
};

use super::{a_reader, a_reader_of, a_writer, reliable};
use crate::{
    peer::{READER, WRITER, for_each_submessage, head},
    submessages::{acknack, gap, set},
    support::{SECOND, ms, values},
};

#[test]
fn an_endpoint_announced_without_key_hash_is_found() {
    let (world, peer, reader) = a_reader(DurabilityKind::Volatile);
    let found = world
        .protocol(peer.target)
        .remote_endpoints()
        .next()
        .expect("one");
    assert_eq!(found.data.guid.prefix, peer.prefix);
    assert_eq!(
        world
            .protocol(peer.target)
            .counters()
            .malformed_announcements,
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
    // The peer has written all its samples before it received the reader's announcement. Fast DDS regards the reader as
    // matched.
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
fn what_comes_before_the_first_heartbeat_is_kept_also_if_the_writer_no_longer_has_it() {
    let (mut world, peer, reader) = a_reader(DurabilityKind::Volatile);
    peer.value(&mut world, 3);
    peer.value(&mut world, 4);
    assert!(world.values(reader).is_empty(), "1 and 2 may still come");
    peer.heartbeat(&mut world, (4, 5), 1);
    assert_eq!(world.values(reader), [3, 4]);
    assert_eq!(peer.last_acknack(&world), Some((5, vec![5])));
    assert_eq!(world.reader_ledger(reader).skipped, 2);
}

/// Number of ACKNACKs sent to the peer's writer.
fn asked(world: &World) -> usize {
    let mut asked = 0;
    for_each_submessage(world, |submessage| {
        let is_its = matches!(submessage, Submessage::AckNack(it) if it.writer == WRITER);
        asked += usize::from(is_its);
    });
    asked
}

/// The peer answers each ACKNACK for a second, but its answers confirm nothing.
#[test]
fn a_writer_at_an_unannounced_address_is_asked_to_confirm_a_jump_at_a_bounded_rate() {
    for by_gap in [false, true] {
        let (mut world, mut peer, _) = a_reader(DurabilityKind::Volatile);
        peer.value(&mut world, 1);
        peer.heartbeat(&mut world, (1, 2_000), 1);
        let before = asked(&world);
        peer.from = Some(Locator::udpv4([10, 0, 200, 1], 50_000));
        let gap = gap(WRITER, 1, set(1_000, []));
        // One message in each millisecond.
        for count in 2..900 {
            match by_gap {
                false => peer.heartbeat(&mut world, (1_000, 2_000), count),
                true => peer.say(&mut world, |message| message.gap(&gap).map(drop)),
            }
        }
        let asked = asked(&world) - before;
        assert!(
            (100..=180).contains(&asked),
            "{by_gap}: asked {asked} times"
        );
        world.run_for(ms(200));
        match by_gap {
            false => peer.heartbeat(&mut world, (1_000, 2_000), 1_000),
            true => peer.say(&mut world, |message| message.gap(&gap).map(drop)),
        }
        let acknack = peer.last_acknack(&world).map(|(base, _)| base);
        assert_eq!(acknack, Some(1_000), "{by_gap}");
    }
}

#[test]
fn a_sample_that_comes_unrequested_and_finds_no_room_is_requested_again() {
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
    // The cache is full. This reader begins with sample 10, but has no room for it yet.
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
    let gap = gap(WRITER, 7, set(8, [9]));
    peer.say(&mut world, |message| message.gap(&gap).map(drop));
    peer.heartbeat(&mut world, (6, 10), 2);
    assert_eq!(peer.last_acknack(&world), Some((8, vec![8])));
    peer.value(&mut world, 8);
    assert_eq!(world.values(reader), [6, 8, 10]);
    let ledger = world.reader_ledger(reader);
    assert_eq!(
        (ledger.lost, ledger.irrelevant, ledger.skipped),
        (0, 2, 5),
        "the GAP does not say why they are not for the reader"
    );
    // A number that the writer no longer has, and that no GAP covered, is lost.
    peer.heartbeat(&mut world, (13, 13), 3);
    let ledger = world.reader_ledger(reader);
    assert_eq!((ledger.lost, ledger.irrelevant), (2, 2));
    assert!(ledger.balances());
}

#[test]
fn a_preemptive_acknack_of_either_kind_is_answered_with_a_heartbeat() {
    // First ACKNACK of Cyclone DDS: base 1, count 0. Of Fast DDS: base 0.
    for base in [0, 1] {
        let (mut world, peer, writer) = a_writer();
        let acknack = acknack_of(&world, writer, base, false);
        world.enqueue(writer, values(2));
        world.run_for(SECOND);
        assert_eq!(world.matched_readers(writer), 0, "it has not answered yet");
        for _ in 0..3 {
            // The peer may repeat the same count, for example after it lost its state.
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
    // A VOLATILE reader of Cyclone DDS begins after the last number of the first HEARTBEAT that it receives. It would
    // lose samples written after the match and before that HEARTBEAT.
    let (mut world, peer, writer) = a_writer();
    let question = acknack_of(&world, writer, 1, false);
    peer.say(&mut world, |message| message.acknack(&question).map(drop));
    assert_eq!(world.matched_readers(writer), 0);
    // isolane sends a further HEARTBEAT, because the first one may have been lost.
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

/// ACKNACK of the peer's reader for a writer: it has all samples below `base`.
fn acknack_of(world: &World, writer: WriterHandle, base: i64, is_final: bool) -> AckNack {
    let pair = (READER, world.writer_guid(writer).entity);
    AckNack {
        is_final,
        ..acknack(pair, set(base, []), i32::from(is_final))
    }
}
