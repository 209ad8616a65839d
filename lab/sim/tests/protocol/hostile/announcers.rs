//! Peers that announce themselves or their endpoints endlessly, whether known or invented: announcements of others are
//! still processed.

use std::time::Duration;

use isolane_rtps::Timing;
use isolane_sim::{NodeConfig, Topic, World};
use isolane_wire::{
    guid::EntityId,
    message::{HEADER_BYTES, Submessage, Submessages},
};

use crate::{
    peer::{Peer, READER},
    support::{SECOND, ms, two_nodes},
};

#[test]
fn a_peer_that_announces_as_fast_as_it_can_does_not_prevent_discovery_of_others() {
    let mut world = World::new(1);
    let (a, _) = two_nodes(&mut world);
    let attacker = world.node_down(NodeConfig::default());
    let peer = Peer::at(attacker, a, 1);
    peer.announce_itself(&mut world, |_| {});
    let topic = Topic::new("Found").reliable().keep_all(8);
    let writer = world.create_writer(a, &topic);
    let late = world.node(NodeConfig::default());
    let reader = world.create_reader(late, &topic);
    // One announcement in every second step: the node has time only to receive and process it.
    for _ in 0..30_000 {
        peer.announce_itself_at_once(&mut world, |_| {});
        world.run_for(Duration::from_micros(10));
    }
    assert!(world.protocol(a).counters().announcements_replaced > 0);
    assert_eq!(world.matched_readers(writer), 1);
    world.run_for(SECOND);
    assert_eq!(world.matched_writers(reader), 1);
}

#[test]
fn strangers_without_end_keep_no_known_participant_from_renewing_its_lease() {
    let mut world = World::new(1);
    let topic = Topic::new("Known").reliable().keep_all(8);
    let timing = Timing {
        announce_period: ms(100),
        lease: ms(500),
        ..Timing::default()
    };
    let config = NodeConfig {
        timing,
        ..NodeConfig::default()
    };
    let nodes = world.nodes(2, &config);
    let (a, b) = (nodes[0], nodes[1]);
    let (writer, reader) = (
        world.create_writer(a, &topic),
        world.create_reader(b, &topic),
    );
    world.until_matched(&[writer], &[reader]);
    let attacker = world.node_down(NodeConfig::default());
    // Each announcement has another GUID prefix. They arrive three times as fast as they can be processed, for longer
    // than two leases.
    for number in 0..150_000 {
        Peer::at(attacker, a, number).announce_itself_at_once(&mut world, |_| {});
        world.run_for(Duration::from_micros(8));
    }
    let counters = world.protocol(a).counters();
    assert!(counters.announcements_dropped > 10_000, "{counters:?}");
    assert_eq!(
        (world.matched_readers(writer), counters.leases_expired),
        (1, 0)
    );
}

#[test]
fn a_peer_that_changes_its_endpoints_as_fast_as_it_can_does_not_prevent_discovery_of_others() {
    let mut world = World::new(1);
    let (a, _) = two_nodes(&mut world);
    let mut peer = Peer::of(&mut world, a);
    // The work of a level comes before discovery.
    let topic = Topic::new("Foreign").reliable().keep_all(8).level(1);
    let writer = world.create_writer(a, &topic);
    let late = world.node(NodeConfig::default());
    let readers = [(); 8].map(|()| world.create_reader(late, &topic));
    // Each announcement is compared with the writer, and creates or ends a match. Reading takes most of the time.
    // Announcements that find no room are sent again, from the position that the node requests.
    let (mut acknowledged, mut said, mut heard) = (0, 0, 0);
    for number in 0..60_000_u64 {
        let asked = last_asked(&world.tapped()[heard..]);
        heard = world.tapped().len();
        if let Some(base) = asked.filter(|&base| base > acknowledged) {
            acknowledged = base - 1;
        }
        if asked.is_some() || said >= acknowledged + 64 {
            said = acknowledged;
        }
        peer.announced[1] = said;
        said += 1;
        peer.announce_at_once(&mut world, READER, |data| {
            let name = ["", "elsewhere"][(number % 2) as usize].try_into();
            data.qos.partition.push(name.unwrap()).unwrap();
        });
        world.run_for(Duration::from_nanos(5_600));
    }
    let of_late = |world: &World| {
        let known = world.protocol(a).remote_endpoints();
        let prefix = world.protocol(late).guid_prefix();
        known.filter(|it| it.data.guid.prefix == prefix).count()
    };
    assert_eq!(of_late(&world), readers.len());
    assert!(world.matched_readers(writer) >= readers.len());
    world.run_for(SECOND);
    assert_eq!(world.imbalance(), None);
}

/// Returns the base of the node's last ACKNACK for the announcements of readers, if it sent one.
fn last_asked(tapped: &[Vec<u8>]) -> Option<i64> {
    let submessages = tapped
        .iter()
        .flat_map(|datagram| Submessages::new(datagram, HEADER_BYTES).flatten());
    let bases = submessages.filter_map(|submessage| match submessage {
        Submessage::AckNack(acknack) if acknack.writer == EntityId::SEDP_SUBSCRIPTIONS_WRITER => {
            Some(acknack.state.base().get())
        }
        _ => None,
    });
    bases.last()
}
