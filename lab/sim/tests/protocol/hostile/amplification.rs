//! Anti-amplification: one forged datagram does not make a participant flood the address that it names.
//!
//! Only the bytes of the datagrams count, without UDP, IP and Ethernet headers, in both directions.

use std::time::Duration;

use isolane_rtps::LocalParticipant;
use isolane_rtps::limits::{AMPLIFICATION_FACTOR, MAX_UNANSWERED_HEARTBEATS};
use isolane_sim::{NodeConfig, Sample, Topic, World, WriterHandle, seeds};
use isolane_wire::{
    builtin_data::EndpointData,
    guid::{EntityId, EntityKind, Guid},
    message::AckNack,
    qos::DurabilityKind,
};

use crate::{
    peer::{Peer, READER},
    submessages::{SEDP_READERS, acknack, late_joiner, set},
    support::{SECOND, a_pair, ms, values},
};

/// Reader of the topic "Effort".
const EFFORT_READER: EntityId = EntityId::user(3, EntityKind::READER_NO_KEY);

/// Longer than the longest accepted lease.
const LONG: Duration = Duration::from_secs(400);

fn name(data: &mut EndpointData, topic: &str) {
    data.topic_name = topic.try_into().expect("it fits");
}

/// A node with much to send: a history for late joiners, and a best-effort topic that is written all the time.
fn a_talker(seed: u64, config: NodeConfig) -> (World, isolane_sim::NodeId, WriterHandle) {
    let mut world = World::new(seed);
    let node = world.node(config);
    let history = Topic::new("Foreign").reliable().transient_local();
    let writer = world.create_writer(node, &history.keep_all(200));
    world.enqueue(writer, values(200));
    world.run_for(ms(10));
    let effort = world.create_writer(node, &Topic::new("Effort"));
    world.publish(effort, ms(2), values(200_000));
    (world, node, writer)
}

/// Announces readers of all topics of the node.
fn announces_readers(world: &mut World, peer: &mut Peer) {
    peer.announce(world, READER, late_joiner());
    peer.announce_with(world, EFFORT_READER, |data| name(data, "Effort"));
}

fn ratio(world: &World, peer: &Peer) -> f64 {
    world.bytes_sent_to(peer.node) as f64 / peer.said_bytes.get() as f64
}

#[test]
fn until_it_answers_a_peer_is_sent_at_most_three_bytes_for_one() {
    seeds::for_each(0..5, |seed| {
        let (mut world, node, _) = a_talker(seed, NodeConfig::default());
        let mut peer = Peer::unproven(&mut world, node);
        announces_readers(&mut world, &mut peer);
        world.run_for(LONG);
        let ratio = ratio(&world, &peer);
        assert!(ratio > 0.5, "it is answered: {ratio}");
        assert!(
            ratio <= f64::from(AMPLIFICATION_FACTOR),
            "{ratio} bytes for one"
        );
        assert_eq!(world.protocol(node).remote_participants().count(), 0);
    });
}

#[test]
fn a_peer_that_answers_is_sent_what_it_requested() {
    let (mut world, node, writer) = a_talker(1, NodeConfig::default());
    let mut peer = Peer::unproven(&mut world, node);
    announces_readers(&mut world, &mut peer);
    world.run_for(SECOND);
    assert_eq!(world.writer_ledger(writer).history, 0);
    peer.answer_discovery(&mut world);
    world.run_for(SECOND);
    // The peer gets about 500 samples of the best-effort topic. The history is not sent before its reader answers.
    assert!(ratio(&world, &peer) > 10.0);
    assert_eq!(world.writer_ledger(writer).history, 0);
    let acknack = AckNack {
        is_final: false,
        ..acknack((READER, world.writer_guid(writer).entity), set(1, []), 1)
    };
    peer.say(&mut world, |message| message.acknack(&acknack).map(drop));
    world.run_for(SECOND);
    assert_eq!(world.writer_ledger(writer).history, 200);
}

#[test]
fn announcements_by_the_clock_to_one_that_is_on_no_list_stop_when_it_is_not_heard_again() {
    let (mut world, node, _) = a_talker(1, NodeConfig::with_peers(&[]));
    let peer = Peer::unproven(&mut world, node);
    let endless =
        |data: &mut isolane_wire::builtin_data::ParticipantData| data.lease = Duration::MAX;
    peer.announce_itself(&mut world, endless);
    world.run_for(10 * SECOND);
    let (early, withheld) = (
        world.bytes_sent_to(peer.node),
        world.protocol(node).counters().answers_withheld,
    );
    world.run_for(200 * SECOND);
    assert_eq!(world.bytes_sent_to(peer.node), early);
    assert!(world.protocol(node).counters().answers_withheld > withheld);
    assert!(ratio(&world, &peer) <= f64::from(AMPLIFICATION_FACTOR));
}

#[test]
fn endpoints_without_end_draw_no_more_than_they_cost() {
    let (mut world, node, _) = a_talker(1, NodeConfig::default());
    for _ in 0..40 {
        // The node has forty readers of one topic, so it would query each announced writer forty times.
        world.create_reader(node, &Topic::new("Foreign").reliable().keep_all(1).keyed());
        if world.protocol(node).local_readers().count() == 14 {
            break;
        }
    }
    let mut peer = Peer::unproven(&mut world, node);
    for number in 0..150 {
        let entity = EntityId::user(number, EntityKind::WRITER_WITH_KEY);
        peer.announce(&mut world, entity, late_joiner());
        peer.announce_itself(&mut world, |_| {});
    }
    world.run_for(60 * SECOND);
    let ratio = ratio(&world, &peer);
    assert!(
        ratio <= f64::from(AMPLIFICATION_FACTOR),
        "{ratio} bytes for one"
    );
    assert!(world.protocol(node).counters().answers_withheld > 0);
}

/// A KEEP_ALL writer with one reader that takes all samples, and one that was announced and never answers.
fn a_silent_reader() -> (World, Peer, WriterHandle, isolane_sim::ReaderHandle) {
    let topic = Topic::new("Foreign").reliable().keep_all(8);
    let (mut world, (a, _), writer, reader) = a_pair(&topic);
    let mut peer = Peer::of(&mut world, a);
    let mut qos = late_joiner();
    qos.durability = DurabilityKind::Volatile;
    peer.announce(&mut world, READER, qos);
    (world, peer, writer, reader)
}

#[test]
fn a_reader_that_never_answers_holds_a_writer_up_for_a_few_heartbeats_only() {
    let (mut world, peer, writer, reader) = a_silent_reader();
    let id = world.writer_id(writer);
    let silent = Guid {
        prefix: peer.prefix,
        entity: READER,
    };
    let take = |protocol: &mut LocalParticipant, _| protocol.take_publication_matched(id);
    let matched = world.with_protocol(peer.target, take).expect("two readers");
    assert_eq!(matched.current, 2, "a reader counts from the match on");
    assert_eq!(matched.last, silent);
    assert_eq!(world.matched_readers(writer), 1, "one has answered");
    world.enqueue(writer, values(100));
    world.run_for(ms(10));
    assert!(world.unwritten(writer) > 0, "it may be on its way yet");
    world.run_for(5 * SECOND);
    assert_eq!(world.unwritten(writer), 0);
    assert_eq!(world.values(reader), (1..=100).collect::<Vec<_>>());
    let protocol = world.protocol(peer.target);
    assert_eq!(protocol.counters().readers_silent, 1);
    assert_eq!(protocol.silent_readers(id), 1);
    let named = protocol.last_silent_reader();
    assert_eq!(named, Some(("Foreign", silent)));
    let ledger = world.writer_ledger(writer);
    // The writer queries the silent reader no more, although it stays matched until its lease ends.
    world.run_for(20 * SECOND);
    let later = world.writer_ledger(writer);
    assert_eq!(later.heartbeats, ledger.heartbeats);
    assert!(ledger.heartbeats < 100 + 4 * u64::from(MAX_UNANSWERED_HEARTBEATS));
    // The writer sends it no samples either.
    let before = world.bytes_sent_to(peer.node);
    world.enqueue(writer, values(100));
    world.run_for(SECOND);
    assert!(
        world.bytes_sent_to(peer.node) - before < 1_000,
        "a few announcements at most"
    );
}

#[test]
fn a_silent_reader_that_answers_at_last_gets_what_is_written_from_then_on() {
    let (mut world, peer, writer, reader) = a_silent_reader();
    world.enqueue(writer, values(20));
    world.run_for(10 * SECOND);
    assert_eq!(world.matched_readers(writer), 1);
    let pair = (READER, world.writer_guid(writer).entity);
    peer.acknack(&mut world, pair, set(1, []), 1);
    assert_eq!(world.matched_readers(writer), 2);
    // The reader has acknowledged nothing, and the writer waits for it now.
    world.enqueue(writer, (21..=40).map(Sample::value));
    world.run_for(10 * SECOND);
    assert!(world.unwritten(writer) > 0);
    for _ in 0..10 {
        peer.acknack(&mut world, pair, set(41, []), 2);
        world.run_for(2 * SECOND);
    }
    assert_eq!(world.unwritten(writer), 0);
    assert_eq!(world.received(reader).len(), 40);
}

#[test]
fn questions_to_discovery_without_end_are_answered_at_its_rate() {
    let mut world = World::new(1);
    let node = world.node(NodeConfig {
        discovery_bytes_per_s: 8_192,
        ..NodeConfig::default()
    });
    for number in 0..10 {
        world.create_writer(node, &Topic::new(&format!("topic {number}")));
    }
    let peer = Peer::of(&mut world, node);
    world.run_for(2 * SECOND);
    let before = world.bytes_sent_to(peer.node);
    for count in 2..=2_000 {
        let acknack = AckNack {
            is_final: false,
            ..acknack(SEDP_READERS[0], set(1, 1..=10), count)
        };
        peer.say(&mut world, |message| message.acknack(&acknack).map(drop));
    }
    // Two seconds at the rate limit, a burst of one second, and an announcement.
    let drawn = world.bytes_sent_to(peer.node) - before;
    assert!((8_192..4 * 8_192).contains(&drawn), "{drawn} bytes");
    assert!(world.protocol(node).counters().discovery_limited > 0);
}
