//! LIFESPAN: stale samples are not delivered and take no room (DDS 1.4 §2.2.3.16).

use std::time::Duration;

use isolane_rtps::{ChangeKind, ReaderStatus};
use isolane_sim::{
    LinkConfig, NodeConfig, Partition, Sample, Take, Topic, World, WriterHandle, seeds,
};
use isolane_wire::{
    qos::{DurabilityKind, QosPolicies},
    time::Timestamp,
};

use crate::{
    peer::{Peer, WRITER, head},
    support::{PATIENCE, SECOND, a_pair, a_pair_in, a_pair_of, ahead, ms, two_nodes, values},
};

const LIFESPAN: Duration = ms(100);

fn reliable() -> Topic {
    Topic::new("Fresh").reliable().keep_all(8)
}

fn mortal(topic: Topic) -> Topic {
    topic.qos(|qos| qos.lifespan = LIFESPAN.into())
}

fn cut_off(world: &mut World, nodes: (isolane_sim::NodeId, isolane_sim::NodeId)) {
    world.partition(Partition::between(&[nodes.0], &[nodes.1]));
}

#[test]
fn a_sample_that_is_not_taken_in_time_is_not_delivered_and_gives_its_room_back() {
    let (mut world, _, writer, reader) = a_pair(&mortal(reliable()));
    world.set_take(reader, Take::OnRequest);
    world.enqueue(writer, values(8));
    world.run_for(ms(50));
    assert_eq!(world.reader_ledger(reader).available, 8);
    assert_eq!(world.take(reader, 3), 3);
    world.run_for(ms(60));
    assert_eq!(
        world.reader_ledger(reader).expired,
        5,
        "though no user looked"
    );
    assert_eq!(world.take(reader, 8), 0);
    world.enqueue(writer, (9..17).map(Sample::value));
    world.run_for(ms(50));
    assert_eq!(world.take(reader, 8), 8);
    assert_eq!(
        world.values(reader),
        [1, 2, 3, 9, 10, 11, 12, 13, 14, 15, 16]
    );
}

#[test]
fn a_reader_that_was_full_of_stale_samples_asks_for_fresh_ones_again() {
    let (mut world, _, writer, reader) = a_pair(&mortal(reliable()));
    world.set_take(reader, Take::OnRequest);
    world.publish(writer, ms(10), values(40));
    world.run_for(SECOND);
    assert_eq!(
        world.unwritten(writer),
        0,
        "the writer was not held up for good"
    );
    let ledger = world.reader_ledger(reader);
    assert!(
        ledger.expired + ledger.lost >= 40 && ledger.available == 0,
        "{ledger:?}"
    );
}

#[test]
fn what_has_expired_is_neither_repaired_nor_waited_for() {
    let (mut world, nodes, writer, reader) = a_pair(&mortal(reliable()));
    cut_off(&mut world, nodes);
    world.enqueue(writer, values(5));
    world.run_for(3 * LIFESPAN);
    let ledger = world.writer_ledger(writer);
    assert_eq!((ledger.sent, ledger.expired), (5, 5));
    world.heal();
    world.enqueue(writer, [Sample::value(6)]);
    world.run_for(50 * ms(1));
    assert_eq!(world.values(reader), [6]);
    world.run_for(2 * SECOND);
    let ledger = world.writer_ledger(writer);
    assert_eq!(ledger.repaired, 0, "{ledger:?}");
    let node = world.protocol(nodes.0);
    assert!(node.all_acknowledged(world.writer_id(writer)));
    assert_eq!(world.values(reader), [6]);
}

#[test]
fn what_expires_before_it_is_sent_is_not_sent() {
    let (mut world, (a, _), writer, reader) = a_pair(&mortal(reliable()));
    world.enqueue(writer, values(4));
    world.stop_for(a, 2 * LIFESPAN);
    world.run_for(3 * LIFESPAN);
    let ledger = world.writer_ledger(writer);
    assert!(
        ledger.expired_unsent >= 3 && ledger.pending == 0,
        "{ledger:?}"
    );
    world.enqueue(writer, [Sample::value(5)]);
    world.run_for(ms(50));
    assert_eq!(world.values(reader).last(), Some(&5));
}

#[test]
fn stale_samples_make_room_in_a_full_history_whether_or_not_they_are_acknowledged() {
    let (mut world, nodes, writer, reader) = a_pair(&mortal(reliable()));
    cut_off(&mut world, nodes);
    world.enqueue(writer, values(20));
    world.run_for(ms(50));
    assert_eq!(
        (world.written(writer).len(), world.unwritten(writer)),
        (8, 12)
    );
    world.run_for(4 * LIFESPAN);
    assert_eq!(world.unwritten(writer), 0);
    world.heal();
    world.run_for(2 * SECOND);
    assert!(world.values(reader).is_empty());
}

#[test]
fn a_late_joiner_gets_what_is_fresh_and_nothing_stale() {
    let topic = mortal(reliable().transient_local());
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    let writer = world.create_writer(a, &topic);
    world.enqueue(writer, values(3));
    world.run_for(2 * LIFESPAN);
    let early = world.create_reader(b, &topic);
    world.until_matched(&[writer], &[early]);
    world.enqueue(writer, [Sample::value(4), Sample::value(5)]);
    world.run_for(ms(20));
    let late = world.create_reader(b, &topic);
    world.until_matched(&[writer], &[early, late]);
    world.run_for(ms(40));
    assert_eq!(world.values(early), [4, 5]);
    assert_eq!(world.values(late), [4, 5]);
}

#[test]
fn the_end_of_an_instance_is_delivered_also_when_it_is_old() {
    let topic = mortal(reliable().keyed());
    let (mut world, nodes, writer, reader) = a_pair(&topic);
    world.enqueue(writer, [Sample::keyed(7, 1)]);
    world.run_for(ms(20));
    cut_off(&mut world, nodes);
    let after = [Sample::keyed(7, 2), Sample::dispose(7), Sample::keyed(8, 3)];
    world.enqueue(writer, after);
    world.run_for(3 * LIFESPAN);
    world.heal();
    world.run_for(2 * SECOND);
    assert_eq!(world.values(reader), [1]);
    let last = world.last_of_instance(reader, 7).expect("it came");
    assert_eq!(last.info.kind, ChangeKind::Dispose);
}

#[test]
fn a_writer_without_lifespan_and_a_reader_with_one_let_nothing_expire() {
    let (mut world, _, writer, reader) = a_pair_of(World::new(1), &reliable(), &mortal(reliable()));
    world.set_take(reader, Take::OnRequest);
    world.enqueue(writer, values(3));
    world.run_for(SECOND);
    assert_eq!(world.take(reader, 8), 3);
}

#[test]
fn a_writer_and_a_reader_with_nothing_left_that_could_expire_rest() {
    for topic in [reliable(), Topic::new("Fresh"), Topic::new("Fresh").keyed()] {
        let (mut world, (a, b), writer, reader) = a_pair(&mortal(topic));
        world.set_take(reader, Take::OnRequest);
        world.enqueue(writer, values(1));
        world.run_for(3 * LIFESPAN);
        world.run_for(ms(1));
        assert_eq!(
            (world.protocol(a).ready(), world.protocol(b).ready()),
            (0, 0)
        );
    }
}

/// The time stamps come from a peer, whose clock may differ.
fn a_peer_writes(age: i64, expected: usize) -> (usize, u64) {
    a_peer_writes_to(NodeConfig::default(), age, expected)
}

fn a_peer_writes_to(config: NodeConfig, age: i64, expected: usize) -> (usize, u64) {
    let mut world = World::new(1);
    let node = world.node(config);
    let reader = world.create_reader(node, &Topic::new("Foreign").keep_last(4));
    world.set_take(reader, Take::OnRequest);
    let mut peer = Peer::of(&mut world, node);
    let qos = QosPolicies {
        lifespan: LIFESPAN.into(),
        durability: DurabilityKind::Volatile,
        ..QosPolicies::writer_default()
    };
    peer.announce(&mut world, WRITER, qos);
    let wall = world.protocol(node).timestamp(world.now()).to_nanos();
    let stamp = Timestamp::from_nanos(wall.wrapping_add_signed(-age * 1_000_000));
    let payload = Sample::value(1).payload();
    peer.say(&mut world, |message| {
        message.info_timestamp(stamp)?;
        message.data(&head(WRITER, 1), &payload).map(drop)
    });
    assert_eq!(world.reader_ledger(reader).available, expected as u64);
    world.run_for(ms(50));
    let taken_later = world.take(reader, 4);
    (taken_later, world.reader_ledger(reader).expired)
}

#[test]
fn a_sample_counts_from_its_time_stamp_and_from_its_reception_where_that_lies_ahead() {
    assert_eq!(a_peer_writes(20, 1), (1, 0));
    assert_eq!(a_peer_writes(80, 1), (0, 1), "it expired in the cache");
    assert_eq!(a_peer_writes(150, 0), (0, 1), "it was stale when it came");
    assert_eq!(a_peer_writes(-3_600_000, 1), (1, 0), "clocks differ");
    assert_eq!(a_peer_writes(86_400_000, 1), (1, 0), "clocks differ");
}

#[test]
fn the_time_that_a_sample_waits_in_the_socket_counts_once() {
    let waits = |milliseconds| NodeConfig {
        socket_wait: ms(milliseconds),
        ..NodeConfig::default()
    };
    assert_eq!(a_peer_writes_to(waits(60), 60, 1), (0, 1), "40 ms are left");
    assert_eq!(a_peer_writes_to(waits(40), 40, 1), (1, 0), "60 ms are left");
}

#[test]
fn a_reader_whose_clock_is_ahead_gets_what_is_fresh_and_nothing_that_is_repaired_too_late() {
    for seconds in [2, 86_400] {
        let (mut world, nodes, writer, reader) = a_pair(&mortal(reliable()));
        set_wall_clock(&mut world, nodes.1, seconds);
        world.publish(writer, ms(10), values(120));
        world.run_for(2 * SECOND);
        assert_eq!(world.values(reader).len(), 120, "{seconds} s");
        let expired = world.protocol(nodes.1).counters().expired_on_arrival;
        assert_eq!(expired, 0, "{seconds} s");
    }
}

#[test]
fn a_clock_that_is_ahead_by_little_more_than_samples_live_shows_after_a_few_of_them() {
    let (mut world, nodes, writer, reader) = a_pair(&mortal(reliable()));
    set_wall_clock_ms(&mut world, nodes.1, 150);
    world.publish(writer, ms(10), values(120));
    world.run_for(2 * SECOND);
    let expired = world.protocol(nodes.1).counters().expired_on_arrival;
    assert!((1..10).contains(&expired), "{expired}");
    assert_eq!(world.values(reader).len() as u64, 120 - expired);
}

/// Checks that all received samples were fresh, came once, and in order.
fn assert_fresh(world: &World, writer: WriterHandle, reader: isolane_sim::ReaderHandle) {
    let mut before = 0;
    for received in world.received_from(reader, writer) {
        let number = received.info.sequence.get();
        assert!(number > before, "seed {}", world.seed());
        before = number;
        let written = &world.written(writer)[number as usize - 1];
        let age = received.at.saturating_since(written.at);
        assert!(age < LIFESPAN, "seed {}: {age:?} old", world.seed());
    }
}

#[test]
fn over_bad_links_whatever_comes_is_fresh_once_and_in_order() {
    seeds::for_each(0..60, |seed| {
        let link = LinkConfig {
            jitter: ms(20),
            ..LinkConfig::lossy(0.3)
        };
        let topic = match seed % 3 {
            0 => mortal(reliable()),
            1 => mortal(Topic::new("Last").reliable().keep_last(4)),
            _ => mortal(reliable().transient_local()),
        };
        let (mut world, _, writer, reader) = a_pair_in(World::new(seed).link(link), &topic);
        world.set_take(reader, Take::OneEvery(ms(5 + seed % 20)));
        world.publish(writer, ms(4), values(200));
        world.run_for(2 * SECOND);
        world.run_until("the writer rests", PATIENCE, |world| {
            world.unwritten(writer) == 0 && world.reader_ledger(reader).available == 0
        });
        assert_fresh(&world, writer, reader);
        assert!(world.received(reader).len() > 20, "seed {seed}");
        assert!(
            world
                .reader_statuses(reader)
                .contains(ReaderStatus::DATA_AVAILABLE),
            "seed {seed}"
        );
    });
}

#[test]
fn a_first_lifespan_holds_for_what_the_history_already_has() {
    let (mut world, nodes, writer, _) = a_pair(&reliable());
    cut_off(&mut world, nodes);
    world.enqueue(writer, values(10));
    world.run_for(SECOND);
    assert_eq!(world.unwritten(writer), 2, "the history is full");
    let change = |qos: &mut QosPolicies| qos.lifespan = LIFESPAN.into();
    world.set_writer_qos(writer, change).unwrap();
    world.run_for(ms(10));
    assert_eq!(world.unwritten(writer), 0, "it was written long ago");
}

/// Sets the wall clock of a node forward or back.
fn set_wall_clock(world: &mut World, node: isolane_sim::NodeId, seconds: i64) {
    set_wall_clock_ms(world, node, seconds * 1_000);
}

fn set_wall_clock_ms(world: &mut World, node: isolane_sim::NodeId, milliseconds: i64) {
    let offset_ns = world.with_protocol(node, |protocol, now| {
        protocol.timestamp(now).to_nanos() - now.as_nanos()
    });
    let offset_ns = offset_ns.saturating_add_signed(milliseconds * 1_000_000);
    world.with_protocol(node, |protocol, _| protocol.set_wall_offset(offset_ns));
}

#[test]
fn a_wall_clock_that_is_set_neither_expires_what_is_fresh_nor_keeps_what_is_stale() {
    for seconds in [3_600, -3_600] {
        let topic = mortal(reliable().transient_local());
        let mut world = World::new(1);
        let (a, _) = two_nodes(&mut world);
        let writer = world.create_writer(a, &topic);
        world.run_for(ms(10));
        world.enqueue(writer, values(4));
        world.run_for(ms(20));
        set_wall_clock(&mut world, a, seconds);
        world.run_for(ms(70));
        assert_eq!(world.writer_ledger(writer).expired, 0, "{seconds} s");
        world.run_for(ms(20));
        let ledger = world.writer_ledger(writer);
        assert_eq!(ledger.expired + ledger.expired_unsent, 4, "{seconds} s");
    }
}

#[test]
fn a_time_stamp_far_ahead_keeps_a_sample_no_longer_than_the_clock_can_be_wrong() {
    let mut world = World::new(1);
    let config = ahead(3_600 * SECOND);
    let a = world.node(config);
    let writer = world.create_writer(a, &mortal(reliable().transient_local()));
    world.enqueue(writer, values(4));
    world.run_for(10 * SECOND);
    assert_eq!(world.writer_ledger(writer).expired, 4);
}

#[test]
fn what_is_longer_than_what_has_expired_before_it_is_sent_whole() {
    // The frame is chosen for the short sample, which expires before the frame is filled.
    let topic = mortal(reliable())
        .max_payload_bytes(20_020)
        .max_datagram_bytes(21_000);
    let (mut world, (a, _), writer, reader) = a_pair(&topic);
    world.stop_for(a, ms(120));
    world.enqueue(writer, [Sample::value(1)]);
    world.run_for(ms(60));
    let long = Sample::value(2).padded(20_000);
    world.enqueue(writer, [long]);
    world.run_for(SECOND);
    assert_eq!(world.protocol(a).counters().buffer_too_small, 0);
    assert_eq!(world.writer_ledger(writer).expired_unsent, 1);
    assert_eq!(world.values(reader), [2]);
}

#[test]
fn a_cache_full_of_samples_that_expire_at_once_is_emptied_step_by_step() {
    let topic = mortal(Topic::new("Fresh").reliable().keep_all(1_000));
    let (mut world, (_, b), writer, reader) = a_pair(&topic);
    world.set_take(reader, Take::OnRequest);
    world.enqueue(writer, values(1_000));
    world.run_for(ms(50));
    assert_eq!(world.reader_ledger(reader).available, 1_000);
    // All samples have expired when the process continues, and each step may check only its share of them.
    world.stop_for(b, ms(100));
    let expired = |world: &World| world.reader_ledger(reader).expired;
    let mut most = 0;
    let mut before = 0;
    world.run_until("all have expired", SECOND, |world| {
        most = most.max(expired(world) - before);
        before = expired(world);
        before == 1_000
    });
    assert!((1..=64).contains(&most), "{most} in a step");
}
