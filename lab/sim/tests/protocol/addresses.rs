//! Tests of the selection among a peer's addresses.

use isolane_sim::{NodeConfig, NodeId, ReaderHandle, Topic, World, WriterHandle};
use isolane_wire::{
    builtin_data::LocatorList,
    guid::{EntityId, EntityKind},
    level::Level,
    locator::Locator,
};

use crate::{
    peer::{Peer, READER},
    support::{SECOND, values},
};

/// A writer on its own node, and three readers elsewhere that share a group.
fn a_group(world: &mut World, multicast: bool) -> (WriterHandle, Vec<ReaderHandle>) {
    let config = NodeConfig {
        multicast,
        ..NodeConfig::with_peers(&[NodeId(1), NodeId(2), NodeId(3)])
    };
    let node = world.node(config);
    let others = world.nodes(3, &NodeConfig::with_peers(&[NodeId(0)]));
    let topic = Topic::new("Group").multicast().keep_last(16);
    let writer = world.create_writer(node, &topic);
    let readers = others
        .iter()
        .map(|&other| world.create_reader(other, &topic))
        .collect::<Vec<_>>();
    world.until_matched(&[writer], &readers);
    (writer, readers)
}

fn destinations(world: &World, node: NodeId, writer: WriterHandle) -> Vec<Locator> {
    let writer = world.writer_id(writer);
    world.protocol(node).destinations(writer).to_vec()
}

#[test]
fn readers_that_share_a_group_are_reached_by_one_datagram() {
    let mut world = World::new(1);
    let (writer, readers) = a_group(&mut world, true);
    let group = NodeId::level_group(Level::clamp(0));
    assert_eq!(destinations(&world, NodeId(0), writer), [group]);
    world.enqueue(writer, values(3));
    world.run_for(SECOND);
    for reader in readers {
        assert_eq!(world.values(reader), [1, 2, 3]);
    }
}

#[test]
fn a_writer_that_cannot_send_to_groups_reaches_each_reader_at_its_own_address() {
    let mut world = World::new(1);
    let (writer, readers) = a_group(&mut world, false);
    world.enqueue(writer, values(3));
    world.run_for(SECOND);
    for reader in readers {
        assert_eq!(world.values(reader), [1, 2, 3]);
    }
}

/// Returns the destinations of a writer for two readers of a peer, each with its own address and groups.
fn destinations_of(readers: [(Locator, &[Locator]); 2]) -> Vec<Locator> {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let writer = world.create_writer(node, &Topic::new("Foreign"));
    // The readers use the peer's default addresses, and the peer answers from there.
    let mut peer = Peer::announced(&mut world, node, |data| {
        data.default_unicast = readers.iter().map(|&(address, _)| address).collect();
    });
    for (address, _) in readers {
        let address = address.ipv4().expect("of IPv4");
        peer.answer_discovery_from(&mut world, address);
    }
    for (number, (address, groups)) in (2..).zip(readers) {
        let entity = EntityId::user(number, EntityKind::READER_NO_KEY);
        peer.announce_with(&mut world, entity, |data| {
            data.unicast = LocatorList::from_iter([address]);
            data.multicast = groups.iter().copied().collect();
        });
    }
    assert_eq!(world.matched_readers(writer), 2);
    destinations(&world, node, writer)
}

const GROUP: Locator = Locator::udpv4([239, 255, 16, 0], 7401);

fn ipv6_group() -> Locator {
    let mut address = [0; 16];
    (address[0], address[1], address[15]) = (0xff, 2, 1);
    Locator {
        kind: Locator::KIND_UDPV6,
        port: 7401,
        address,
    }
}

#[test]
fn a_group_is_not_used_for_readers_on_a_network_that_is_not_ours() {
    let near = [
        Locator::udpv4([10, 0, 0, 7], 7420),
        Locator::udpv4([10, 0, 0, 8], 7420),
    ];
    let far = [
        Locator::udpv4([192, 168, 1, 7], 7420),
        Locator::udpv4([192, 168, 1, 8], 7420),
    ];
    let groups = &[GROUP][..];
    assert_eq!(destinations_of(near.map(|at| (at, groups))), [GROUP]);
    assert_eq!(destinations_of(far.map(|at| (at, groups))), far);
}

#[test]
fn of_the_groups_of_a_dual_stack_peer_one_of_ipv4_is_used() {
    let near = [
        Locator::udpv4([10, 0, 0, 7], 7420),
        Locator::udpv4([10, 0, 0, 8], 7420),
    ];
    let groups = &[ipv6_group(), GROUP][..];
    assert_eq!(destinations_of(near.map(|at| (at, groups))), [GROUP]);
    let only = &[ipv6_group()][..];
    assert_eq!(destinations_of(near.map(|at| (at, only))), near);
}

/// The reader moves to another partition, and back.
#[test]
fn a_reader_that_leaves_the_writers_partition_is_parted_and_joined_when_it_is_back() {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let topic = Topic::new("Foreign").qos(|qos| {
        let name = "here".try_into().expect("it fits");
        qos.partition.push(name).expect("it fits");
    });
    let writer = world.create_writer(node, &topic);
    let reader = world.create_reader(node, &topic);
    let mut peer = Peer::of(&mut world, node);
    let writers = EntityId::user(3, EntityKind::WRITER_NO_KEY);
    for (partition, matched) in [("here", 2), ("there", 1), ("here", 2)] {
        for entity in [READER, writers] {
            peer.announce_with(&mut world, entity, |data| {
                let name = partition.try_into().expect("it fits");
                data.qos.partition.push(name).expect("it fits");
            });
        }
        assert_eq!(world.matched_readers(writer), matched, "{partition}");
        assert_eq!(world.matched_writers(reader), matched, "{partition}");
    }
    assert_eq!(world.protocol(node).remote_endpoints().count(), 2);
}

#[test]
fn a_peer_that_moves_is_followed_and_its_endpoints_too() {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let writer = world.create_writer(node, &Topic::new("Foreign"));
    let mut peer = Peer::of(&mut world, node);
    let at = |last| Locator::udpv4([10, 0, 0, last], 7420);
    let own = EntityId::user(3, EntityKind::READER_NO_KEY);
    peer.announce_with(&mut world, READER, |data| data.unicast.clear());
    peer.announce_with(&mut world, own, |data| {
        data.unicast = LocatorList::from_iter([at(77)]);
    });
    for last in [7, 8] {
        // These addresses are used for endpoints that announce none.
        peer.announce_itself(&mut world, |data| {
            data.default_unicast = LocatorList::from_iter([at(last), at(77), at(78)]);
        });
        for answers in [last, 77, 78] {
            peer.answer_discovery_from(&mut world, [10, 0, 0, answers]);
        }
        world.run_for(SECOND);
        assert_eq!(destinations(&world, node, writer), [at(last), at(77)]);
    }
    peer.announce_with(&mut world, own, |data| {
        data.unicast = LocatorList::from_iter([at(78)]);
    });
    assert_eq!(destinations(&world, node, writer), [at(8), at(78)]);
}
