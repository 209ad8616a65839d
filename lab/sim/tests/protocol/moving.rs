//! Change of a host's address while its participant runs.

use isolane_rtps::Network;
use isolane_sim::{LinkConfig, NodeConfig, NodeId, Topic, World, seeds};
use isolane_wire::{builtin_data::LocatorList, locator::Locator};

use crate::{
    peer::{Peer, READER},
    support::{PATIENCE, SECOND, a_pair_in, ms, values},
};

/// Number of samples: more than the history holds, so that the writer waits for acknowledgements.
const SAMPLES: u64 = 200;

/// A node gets another address in the middle of a KEEP_ALL flow, and detects it `outage_ms` later. No match ends.
fn flows_on(mut world: World, moves: NodeId, outage_ms: u64, topic: &Topic) {
    let (writer, reader);
    (world, _, writer, reader) = a_pair_in(world, topic);
    world.enqueue(writer, values(SAMPLES / 2));
    world.run_for(ms(5));
    world.move_node(moves);
    world.enqueue(writer, values(SAMPLES).skip(SAMPLES as usize / 2));
    world.run_for(ms(outage_ms));
    world.note_address(moves);
    world.run_until("all samples came", PATIENCE, |world| {
        world.values(reader).len() == SAMPLES as usize
    });
    assert!(world.values(reader).iter().copied().eq(1..=SAMPLES));
    assert_eq!(world.matches_of_writer(writer).len(), 1, "the match stays");
    assert_eq!(world.matches_of_reader(reader).len(), 1, "the match stays");
    assert!(world.elapsed() < ms(outage_ms) + 10 * SECOND);
}

#[test]
fn nothing_is_lost_where_an_address_changes_for_less_than_a_lease() {
    let plain = Topic::new("Moving").reliable().keep_all(16);
    let topics = [plain.clone(), plain.multicast()];
    seeds::for_each(0..20, |seed| {
        for (moves, topic) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let world = World::new(seed).link(LinkConfig::lossy(0.05));
            flows_on(world, NodeId(moves), 1_000, &topics[topic]);
        }
        let world = World::new(seed);
        flows_on(world, NodeId(1), 8_000, &topics[0]);
    });
}

#[test]
fn a_best_effort_reader_that_moves_gets_what_is_written_then() {
    for multicast in [false, true] {
        let topic = Topic::new("Moving").keep_last(16);
        let topic = if multicast { topic.multicast() } else { topic };
        let (mut world, (_, b), writer, reader) = a_pair_in(World::new(1), &topic);
        world.move_node(b);
        world.note_address(b);
        world.run_for(SECOND);
        world.enqueue(writer, values(3));
        world.run_for(SECOND);
        assert_eq!(world.values(reader), [1, 2, 3]);
    }
}

#[test]
fn endpoints_of_one_participant_follow_its_address() {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let topic = Topic::new("Moving").reliable().keep_all(16);
    let writer = world.create_writer(node, &topic);
    let reader = world.create_reader(node, &topic);
    world.until_matched(&[writer], &[reader]);
    world.move_node(node);
    world.note_address(node);
    world.enqueue(writer, values(30));
    world.run_for(SECOND);
    assert_eq!(world.values(reader).len(), 30);
}

#[test]
fn a_new_endpoint_is_found_by_a_peer_after_the_address_has_changed() {
    let mut world = World::new(1);
    let nodes = world.nodes(2, &NodeConfig::default());
    world.run_for(SECOND);
    world.move_node(nodes[1]);
    world.note_address(nodes[1]);
    let topic = Topic::new("Late").reliable().keep_all(16);
    let writer = world.create_writer(nodes[0], &topic);
    world.enqueue(writer, values(3));
    world.run_for(SECOND);
    world.move_node(nodes[0]);
    world.note_address(nodes[0]);
    let reader = world.create_reader(nodes[0], &topic);
    world.until_matched(&[writer], &[reader]);
}

/// Moves a node to another network (/24), in which it has the first address.
fn roam(world: &mut World, node: NodeId, network: u8) {
    world.with_protocol(node, |protocol, now| {
        let address = [10, network, 0, 1];
        let networks = vec![Network {
            address,
            prefix_bits: 24,
        }];
        protocol.set_networks(now, networks);
    });
    world.run_for(SECOND);
}

#[test]
fn of_a_peers_addresses_the_one_in_the_network_that_the_host_has_moved_to_is_used() {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let writer = world.create_writer(node, &Topic::new("Foreign"));
    roam(&mut world, node, 0);
    let at = |network| Locator::udpv4([10, network, 0, 9], 7420);
    let both = LocatorList::from_iter([at(0), at(1)]);
    let mut peer = Peer::announced(&mut world, node, |data| {
        data.default_unicast = both.clone();
    });
    peer.announce_with(&mut world, READER, |data| data.unicast.clear());
    for network in [0, 1] {
        peer.answer_discovery_from(&mut world, [10, network, 0, 9]);
    }
    // A participant that leaves while its addresses have yet to be chosen again.
    let other = Peer::at(peer.node, node, 10);
    other.announce_itself(&mut world, |data| data.default_unicast = both.clone());
    for network in [1, 0, 1] {
        roam(&mut world, node, network);
        let writer = world.writer_id(writer);
        let reached = world.protocol(node).destinations(writer);
        assert_eq!(reached, [at(network)]);
    }
}
