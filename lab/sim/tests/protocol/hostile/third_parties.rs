//! Addresses and names of third parties: what a peer can have sent to another host, and what it can announce about
//! endpoints and participants of others.

use isolane_rtps::limits::{AMPLIFICATION_FACTOR, MAX_DESTINATIONS, UNVALIDATED_BYTES_PER_S};
use isolane_sim::{NodeConfig, NodeId, Sample, Take, Topic, World, WriterHandle};
use isolane_wire::{
    builtin_data::{EndpointData, LocatorList, ParticipantData},
    guid::{EntityId, EntityKind, Guid, GuidPrefix},
    locator::Locator,
    message::AckNack,
    qos::{DurabilityKind, ReliabilityKind},
};

use crate::{
    peer::{KEYED_WRITER, Peer, READER, WRITER, head},
    submessages::{acknack, set},
    support::{SECOND, ms, values},
};

const PERIOD_MS: u64 = 2;

const SECOND_READER: EntityId = EntityId::user(7, EntityKind::READER_NO_KEY);

/// A node with a best-effort writer of 500 samples a second, and a third host without a participant.
fn a_target_and_a_third_host() -> (World, NodeId, NodeId, WriterHandle) {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let writer = world.create_writer(node, &Topic::new("Foreign"));
    world.publish(writer, ms(PERIOD_MS), values(100_000));
    world.tap();
    let victim = world.node_down(NodeConfig::default());
    (world, node, victim, writer)
}

/// Announces fifteen best-effort readers at ports of an address.
fn announces_readers_at(world: &mut World, peer: &mut Peer, address: [u8; 4]) {
    for number in 0..15 {
        let entity = EntityId::user(number, EntityKind::READER_NO_KEY);
        peer.announce_with(world, entity, |data| {
            data.unicast =
                LocatorList::from_iter([Locator::udpv4(address, 20_000 + number as u16)]);
        });
    }
}

/// Checks that the third host receives in a minute at most three bytes for each that the attacker sent.
fn is_spared(world: &mut World, victim: NodeId, peer: &Peer) {
    world.run_for(60 * SECOND);
    let (drawn, said) = (world.bytes_sent_to(victim), peer.said_bytes.get());
    assert!(
        drawn <= u64::from(AMPLIFICATION_FACTOR) * said,
        "{drawn} bytes for {said}"
    );
}

#[test]
fn an_answer_from_another_address_than_the_announced_one_draws_no_samples() {
    let (mut world, node, victim, writer) = a_target_and_a_third_host();
    // All locators of the peer are those of the third host, and three ACKNACKs come from the peer's own address.
    let mut peer = Peer::at(victim, node, 9);
    peer.from = Some(Locator::udpv4([10, 0, 200, 1], 50_000));
    let lease = |data: &mut ParticipantData| data.lease = 300 * SECOND;
    peer.announce_itself(&mut world, lease);
    for _ in 0..3 {
        peer.answer_discovery(&mut world);
    }
    announces_readers_at(&mut world, &mut peer, victim.address());
    is_spared(&mut world, victim, &peer);
    assert_eq!(world.matched_readers(writer), 0);
    assert!(world.protocol(node).counters().answers_elsewhere > 0);
}

#[test]
fn readers_at_an_address_from_which_their_participant_does_not_answer_draw_no_samples() {
    let (mut world, node, victim, writer) = a_target_and_a_third_host();
    let mut peer = Peer::of(&mut world, node);
    announces_readers_at(&mut world, &mut peer, victim.address());
    is_spared(&mut world, victim, &peer);
    assert_eq!(world.matched_readers(writer), 0);
    assert_eq!(world.protocol(node).counters().readers_unvalidated, 15);
}

#[test]
fn a_reliable_reader_at_the_address_of_another_draws_three_bytes_for_one_by_its_requests() {
    let (mut world, node, victim, _) = a_target_and_a_third_host();
    let topic = Topic::new("Kept").reliable().transient_local();
    let kept = world.create_writer(node, &topic.keep_all(200).max_payload_bytes(2_000));
    world.enqueue(
        kept,
        (1..=200).map(|value| Sample::value(value).padded(1_000)),
    );
    let mut peer = Peer::of(&mut world, node);
    peer.announce_with(&mut world, READER, |data| {
        data.topic_name = "Kept".try_into().expect("it fits");
        data.qos.reliability.kind = ReliabilityKind::Reliable;
        data.qos.durability = DurabilityKind::TransientLocal;
        data.unicast = LocatorList::from_iter([victim.discovery_locator()]);
    });
    for count in 1..=200 {
        let pair = (READER, world.writer_guid(kept).entity);
        let acknack = AckNack {
            is_final: false,
            ..acknack(pair, set(1, 1..=200), count)
        };
        peer.say(&mut world, |message| message.acknack(&acknack).map(drop));
    }
    is_spared(&mut world, victim, &peer);
    assert!(world.bytes_sent_to(victim) > 0, "it is answered");
    assert!(world.protocol(node).counters().answers_withheld > 0);
}

#[test]
fn many_participants_at_the_address_of_another_draw_no_more_than_a_rate_for_all() {
    let mut world = World::new(1);
    let mut config = NodeConfig::default();
    config.limits.participants = 2_000;
    config.limits.matches = 8_000;
    let node = world.node(config);
    let victim = world.node_down(NodeConfig::default());
    let mut said_bytes = 0;
    for number in 1..=1_000 {
        let peer = Peer::at(victim, node, number);
        for _ in 0..4 {
            peer.announce_itself(&mut world, |_| {});
        }
        said_bytes += peer.said_bytes.get();
    }
    let seconds = world.elapsed().as_secs() + 1;
    let drawn = world.bytes_sent_to(victim);
    let rate = u64::from(UNVALIDATED_BYTES_PER_S);
    assert!(said_bytes > rate * (1 + seconds), "it says enough");
    assert!(
        drawn <= rate * (1 + seconds),
        "{drawn} bytes in {seconds} s"
    );
    assert!(world.protocol(node).counters().unvalidated_limited > 0);
}

#[test]
fn a_best_effort_participant_with_two_interfaces_is_sent_to_where_it_answers_from() {
    let near = [10, 0, 0, 7];
    for (answering, other) in [
        ([10, 0, 0, 8], near),
        (near, [10, 0, 0, 8]),
        (near, [192, 168, 1, 8]),
    ] {
        let (mut world, node, _, writer) = a_target_and_a_third_host();
        let mut peer = Peer::at(NodeId(6), node, 9);
        peer.from = Some(Locator::udpv4(answering, 50_000));
        // The interface that is named first is the one from which nothing is sent.
        let both = |port| [other, answering].map(|at| Locator::udpv4(at, port));
        peer.announce_itself(&mut world, |data| {
            data.metatraffic_unicast = both(7410).into_iter().collect();
            data.default_unicast = both(7411).into_iter().collect();
        });
        peer.announce_with(&mut world, READER, |data| data.unicast.clear());
        assert_eq!(world.matched_readers(writer), 0, "nothing is validated");
        peer.answer_discovery(&mut world);
        world.run_for(ms(10));
        assert_eq!(world.matched_readers(writer), 1);
        let destinations = world.protocol(node).destinations(world.writer_id(writer));
        assert_eq!(destinations, [Locator::udpv4(answering, 7411)]);
        // A reader that announces both addresses gets the same samples.
        peer.announce_with(&mut world, SECOND_READER, |data| {
            data.unicast = both(7412).into_iter().collect();
        });
        let destinations = world.protocol(node).destinations(world.writer_id(writer));
        let expected = [7411, 7412].map(|port| Locator::udpv4(answering, port));
        assert_eq!(destinations, expected);
    }
}

#[test]
fn a_participant_that_sends_each_answer_from_an_address_it_does_not_announce_too_is_sent_to() {
    let (mut world, node, _, writer) = a_target_and_a_third_host();
    let mut peer = Peer::at(NodeId(6), node, 9);
    let announced = peer.node.discovery_locator();
    peer.announce_itself(&mut world, |_| {});
    peer.announce(&mut world, READER, Default::default());
    for from in [Locator::udpv4([10, 0, 0, 8], 50_000), announced] {
        peer.from = Some(from);
        // The same datagrams, with the same counts.
        peer.answer_discovery(&mut world);
    }
    world.run_for(ms(10));
    assert_eq!(world.matched_readers(writer), 1);
    let destinations = world.protocol(node).destinations(world.writer_id(writer));
    assert_eq!(destinations, [announced]);
}

#[test]
fn a_participant_of_this_host_is_sent_to_where_it_says() {
    // Between two interfaces of one host, Linux uses the destination address as the source address.
    for is_loopback in [true, false] {
        let (mut world, node, _, writer) = a_target_and_a_third_host();
        let mut peer = Peer::at(NodeId(6), node, 9);
        let address = if is_loopback {
            [127, 0, 0, 1]
        } else {
            node.address()
        };
        peer.from = Some(Locator::udpv4(address, 50_000));
        peer.announce_itself(&mut world, |_| {});
        peer.announce(&mut world, READER, Default::default());
        peer.answer_discovery(&mut world);
        world.run_for(ms(10));
        assert_eq!(world.matched_readers(writer), 1);
    }
}

#[test]
fn a_reliable_reader_gets_its_history_when_its_address_is_validated_later() {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let topic = Topic::new("Foreign").reliable().transient_local();
    let writer = world.create_writer(node, &topic.keep_all(20));
    world.enqueue(writer, values(20));
    let mut peer = Peer::unproven(&mut world, node);
    peer.announce_with(&mut world, READER, |data| {
        data.qos.reliability.kind = ReliabilityKind::Reliable;
        data.qos.durability = DurabilityKind::TransientLocal;
    });
    let pair = (READER, world.writer_guid(writer).entity);
    peer.from = Some(Locator::udpv4([10, 0, 200, 1], 50_000));
    peer.acknack(&mut world, pair, set(1, []), 1);
    world.run_for(ms(10));
    assert_eq!(world.writer_ledger(writer).history, 0);
    peer.from = None;
    peer.answer_discovery(&mut world);
    world.run_for(ms(10));
    assert_eq!(world.writer_ledger(writer).history, 20);
}

#[test]
fn a_participant_with_more_addresses_than_are_sent_to_is_counted() {
    let (mut world, node, _, writer) = a_target_and_a_third_host();
    let mut peer = Peer::announced(&mut world, node, |data| data.lease = 3 * SECOND);
    let own = peer.node.address();
    for number in 0..40 {
        let entity = EntityId::user(number, EntityKind::READER_NO_KEY);
        peer.announce_with(&mut world, entity, |data| {
            let locator = Locator::udpv4(own, 20_000 + number as u16);
            data.unicast = LocatorList::from_iter([locator]);
        });
    }
    let destinations = world.protocol(node).destinations(world.writer_id(writer));
    assert_eq!(destinations.len(), MAX_DESTINATIONS);
    assert!(world.protocol(node).counters().destinations_full > 0);
    world.run_for(4 * SECOND);
    let destinations = world.protocol(node).destinations(world.writer_id(writer));
    assert!(destinations.is_empty(), "its lease is over");
}

#[test]
fn who_announces_endpoints_or_participants_of_others_is_not_believed() {
    let mut world = World::new(1);
    let topic = Topic::new("Foreign");
    let node = world.node(NodeConfig::default());
    let reader = world.create_reader(node, &topic);
    let victim = Peer::of(&mut world, node);
    let attacker_node = world.node_down(NodeConfig::default());
    let mut attacker = Peer::at(attacker_node, node, 77);
    attacker.announce_itself(&mut world, |_| {});
    attacker.answer_discovery(&mut world);
    let counted = |world: &World| world.protocol(node).counters().malformed_announcements;
    let before = counted(&world);
    let of_victim = |data: &mut EndpointData| {
        data.guid = Guid {
            prefix: victim.prefix,
            entity: WRITER,
        };
    };
    attacker.announce_with(&mut world, WRITER, of_victim);
    let as_victim = |data: &mut ParticipantData| data.guid.prefix = victim.prefix;
    attacker.announce_itself(&mut world, as_victim);
    world.run_for(SECOND);
    assert_eq!(counted(&world), before + 2);
    assert_eq!(world.matched_writers(reader), 0);
    assert_eq!(world.protocol(node).remote_participants().count(), 2);
}

#[test]
fn a_participant_with_our_own_name_changes_nothing_here() {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let other = world.node(NodeConfig::default());
    let topic = Topic::new("Foreign").reliable().keep_all(8);
    let (writer, reader) = (
        world.create_writer(node, &topic),
        world.create_reader(other, &topic),
    );
    world.until_matched(&[writer], &[reader]);
    let impostor = world.node_down(NodeConfig::default());
    let mut peer = Peer::at(impostor, node, 1);
    peer.prefix = world.protocol(node).guid_prefix();
    peer.announce_itself(&mut world, |_| {});
    peer.announce(&mut world, READER, Default::default());
    peer.leave(&mut world);
    world.enqueue(writer, values(20));
    world.run_for(SECOND);
    assert_eq!(world.protocol(node).remote_participants().count(), 1);
    assert_eq!(world.values(reader), (1..=20).collect::<Vec<_>>());
    assert_eq!(world.bytes_sent_to(impostor), 0);
}

#[test]
fn instances_without_end_find_the_cache_full_and_each_is_counted() {
    const INSTANCES: u16 = 16;
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let topic = Topic::new("Foreign").keyed().max_instances(INSTANCES);
    let reader = world.create_reader(node, &topic);
    world.set_take(reader, Take::OnRequest);
    let mut peer = Peer::of(&mut world, node);
    peer.announce(&mut world, KEYED_WRITER, Default::default());
    assert_eq!(world.matched_writers(reader), 1);
    for number in 1..=1_000 {
        let payload = Sample::keyed(number as u32, 7).payload();
        let head = head(KEYED_WRITER, number);
        peer.say(&mut world, |message| {
            message.data(&head, &payload).map(drop)
        });
    }
    let ledger = world.reader_ledger(reader);
    assert_eq!(ledger.available, u64::from(INSTANCES));
    assert_eq!(ledger.rejected + ledger.available, 1_000);
    assert_eq!(world.take(reader, 100), usize::from(INSTANCES));
}

#[test]
fn a_stranger_who_was_never_announced_is_answered_nothing() {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let topic = Topic::new("Foreign").reliable().transient_local();
    let writer = world.create_writer(node, &topic.keep_all(64));
    world.enqueue(writer, values(64));
    world.run_for(10 * SECOND);
    let stranger_node = world.node_down(NodeConfig::default());
    let mut stranger = Peer::at(stranger_node, node, 5);
    stranger.prefix = GuidPrefix([0x5a; 12]);
    let acknack = AckNack {
        is_final: false,
        ..acknack((READER, world.writer_guid(writer).entity), set(1, []), 1)
    };
    for _ in 0..50 {
        stranger.say(&mut world, |message| message.acknack(&acknack).map(drop));
        stranger.value(&mut world, 1);
        stranger.heartbeat(&mut world, (1, 100), 1);
    }
    assert_eq!(world.bytes_sent_to(stranger_node), 0);
    let counters = world.protocol(node).counters();
    assert_eq!(
        (counters.unmatched_acknacks, counters.unmatched_data),
        (50, 50)
    );
}
