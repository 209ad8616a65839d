//! Addresses and names of others: what a peer can have sent to somebody else, and what it can say of endpoints and
//! participants that are not its own.

use isolane_engine::limits::MAX_DESTINATIONS;
use isolane_sim::{NodeConfig, NodeId, Sample, Take, Topic, World};
use isolane_wire::{
    discovery::{EndpointData, LocatorList, ParticipantData},
    guid::{EntityId, EntityKind, Guid, GuidPrefix},
    rtps::PayloadKind,
    sequence::SequenceNumber,
};

use crate::{
    peer::{KEYED_WRITER, Peer, READER, WRITER, head},
    support::{SECOND, ms, values},
};

const PERIOD_MS: u64 = 2;

/// Addresses of nobody who takes part.
fn third_parties(world: &mut World, count: usize) -> Vec<NodeId> {
    let node = |_| world.node_down(NodeConfig::default());
    (0..count).map(node).collect()
}

#[test]
fn readers_at_the_addresses_of_others_draw_each_sample_once_to_a_few_of_them_until_the_lease_ends()
{
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let writer = world.create_writer(node, &Topic::new("Foreign"));
    // It has shown that it hears us: what it announces from here on is believed.
    let lease = |data: &mut ParticipantData| data.lease = 3 * SECOND;
    let mut peer = Peer::announced(&mut world, node, lease);
    let others = third_parties(&mut world, 40);
    for (number, of_four) in (1..).zip(others.chunks(4)) {
        let locators = of_four.iter().map(|other| other.discovery_locator());
        let entity = EntityId::user(number, EntityKind::READER_NO_KEY);
        peer.announce_with(&mut world, entity, |data| {
            data.unicast = LocatorList::from_iter(locators);
        });
    }
    for (number, &other) in (100..).zip(&others) {
        let entity = EntityId::user(number, EntityKind::READER_NO_KEY);
        peer.announce_with(&mut world, entity, |data| {
            data.unicast = LocatorList::from_iter([other.discovery_locator()]);
        });
    }
    world.publish(writer, ms(PERIOD_MS), values(10_000));
    world.run_for(SECOND);
    let sent = |world: &World, other: &NodeId| world.bytes_sent_to(*other);
    let drawn: Vec<u64> = others.iter().map(|other| sent(&world, other)).collect();
    let reached = drawn.iter().filter(|&&bytes| bytes > 0).count();
    assert!(
        (1..=MAX_DESTINATIONS).contains(&reached),
        "{reached} of them"
    );
    assert!(world.engine(node).counters().destinations_full > 0);
    // A datagram of a sample has a hundred bytes, and none comes twice.
    let written = world.written(writer).len() as u64;
    let most = drawn.iter().max().copied().unwrap_or_default();
    assert!(most <= 100 * written, "{most} bytes of {written} samples");
    world.run_for(4 * SECOND);
    let later: Vec<u64> = others.iter().map(|other| sent(&world, other)).collect();
    world.run_for(SECOND);
    let last: Vec<u64> = others.iter().map(|other| sent(&world, other)).collect();
    assert_eq!(later, last, "its lease is over");
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
    let counted = |world: &World| world.engine(node).counters().malformed_announcements;
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
    assert_eq!(world.engine(node).remote_participants().count(), 2);
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
    peer.prefix = world.engine(node).guid_prefix();
    peer.announce_itself(&mut world, |_| {});
    peer.announce(&mut world, READER, Default::default());
    peer.leave(&mut world);
    world.enqueue(writer, values(20));
    world.run_for(SECOND);
    assert_eq!(world.engine(node).remote_participants().count(), 1);
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
        let head = isolane_wire::rtps::DataHead {
            payload: PayloadKind::Data,
            sequence: SequenceNumber(number),
            ..head(KEYED_WRITER, number)
        };
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
    let acknack = isolane_wire::rtps::AckNack {
        reader: READER,
        writer: world.writer_guid(writer).entity,
        state: isolane_wire::sequence::SequenceNumberSet::new(SequenceNumber(1)),
        count: 1,
        is_final: false,
    };
    for _ in 0..50 {
        stranger.say(&mut world, |message| message.acknack(&acknack).map(drop));
        stranger.value(&mut world, 1);
        stranger.heartbeat(&mut world, (1, 100), 1);
    }
    assert_eq!(world.bytes_sent_to(stranger_node), 0);
    let counters = world.engine(node).counters();
    assert_eq!(
        (counters.unmatched_acknacks, counters.unmatched_data),
        (50, 50)
    );
}
