//! Full tables: an entity that finds no room is refused and counted, and accepted when there is room.

use isolane_rtps::Limits;
use isolane_sim::{NodeConfig, NodeId, ReaderHandle, Topic, World};
use isolane_wire::{
    builtin_data::ParticipantData,
    guid::EntityId,
    message::{AckNack, Submessage, VENDOR_ID},
    qos::{Octets, QosPolicies},
};

use crate::{
    peer::{Peer, for_each_submessage},
    support::{SECOND, endpoints, ms, values},
};

fn topic(name: &str) -> Topic {
    Topic::new(name).reliable().keep_all(16)
}

/// A node with small tables, and one with large ones.
fn a_small_node(world: &mut World, change: impl FnOnce(&mut Limits)) -> (NodeId, NodeId) {
    let mut config = NodeConfig::default();
    change(&mut config.limits);
    let small = world.node(config);
    (small, world.node(NodeConfig::default()))
}

#[test]
fn an_endpoint_that_found_no_place_is_found_when_another_has_gone() {
    let mut world = World::new(1);
    let (small, large) = a_small_node(&mut world, |limits| limits.remote_endpoints = 2);
    let others = [
        world.create_reader(large, &topic("One")),
        world.create_reader(large, &topic("Two")),
    ];
    world.run_for(SECOND);
    let writer = world.create_writer(small, &topic("Three"));
    let reader = world.create_reader(large, &topic("Three"));
    world.run_for(10 * SECOND);
    assert_eq!(world.matched_readers(writer), 0);
    let refused = world.protocol(small).counters().endpoints_refused;
    assert_eq!(refused, 1, "once, though it announces itself all the time");
    world.delete_reader(others[0]);
    // The participant's next announcement is at most two seconds away.
    world.run_for(3 * SECOND);
    assert_eq!(world.matched_readers(writer), 1);
    world.enqueue(writer, values(3));
    world.run_for(SECOND);
    assert_eq!(world.values(reader), [1, 2, 3]);
    assert_eq!(world.protocol(small).remote_endpoints().count(), 2);
}

#[test]
fn an_announcement_that_is_too_long_for_the_free_space_is_requested_when_there_is_room() {
    let mut world = World::new(1);
    // Room for announcements of 504 bytes on average.
    let (small, large) = a_small_node(&mut world, |limits| limits.remote_endpoints = 3);
    let octets = || Octets::of(&[1; 256]).expect("they fit");
    let some = |name| topic(name).qos(|qos| qos.user_data = octets());
    let others = ["One", "Two"].map(|name| world.create_reader(large, &some(name)));
    world.run_for(SECOND);
    assert_eq!(endpoints(&world, small), 2);
    let long = topic("Long").qos(|qos| {
        (qos.user_data, qos.topic_data) = (octets(), octets());
        qos.group_data = octets();
    });
    world.create_reader(large, &long);
    world.run_for(10 * SECOND);
    assert_eq!(endpoints(&world, small), 2);
    let refused = world.protocol(small).counters().endpoints_refused;
    assert_eq!(refused, 1, "it is not requested in vain");
    for other in others {
        world.delete_reader(other);
    }
    // The participant's next announcement is at most two seconds away.
    world.run_for(3 * SECOND);
    assert_eq!(endpoints(&world, small), 1);
}

#[test]
fn a_change_that_found_no_room_is_requested_when_there_is_some_though_no_endpoint_is_free() {
    let mut world = World::new(1);
    let (small, large) = a_small_node(&mut world, |limits| limits.remote_endpoints = 3);
    let octets = || Octets::of(&[1; 256]).expect("they fit");
    let long = topic("Long").qos(|qos| (qos.user_data, qos.topic_data) = (octets(), octets()));
    let other = world.node(NodeConfig::default());
    let long = world.create_reader(other, &long);
    world.create_reader(large, &topic("Short"));
    let changed = world.create_reader(large, &topic("Changed"));
    world.run_for(SECOND);
    assert_eq!(endpoints(&world, small), 3);
    let guid = world.reader_guid(changed);
    let is_known = |world: &World| {
        let mut known = world.protocol(small).remote_endpoints();
        let known = known.find(|endpoint| endpoint.data.guid == guid);
        known.is_some_and(|endpoint| endpoint.data.qos.user_data == octets())
    };
    let change = |qos: &mut QosPolicies| (qos.user_data, qos.group_data) = (octets(), octets());
    world
        .set_reader_qos(changed, change)
        .expect("it may change");
    world.run_for(10 * SECOND);
    assert!(!is_known(&world));
    let refused = world.protocol(small).counters().endpoints_refused;
    assert_eq!(refused, 1, "it is not requested in vain");
    let shorten = |qos: &mut QosPolicies| qos.user_data = Octets::default();
    world.set_reader_qos(long, shorten).expect("it may change");
    // The participant's next announcement is at most two seconds away.
    world.run_for(3 * SECOND);
    assert!(is_known(&world));
    assert_eq!(endpoints(&world, small), 3);
}

#[test]
fn a_participant_that_starts_again_takes_the_place_of_its_silent_former_start() {
    let mut world = World::new(1);
    world.tap();
    let mut config = NodeConfig::default();
    config.limits.participants = 2;
    let node = world.node(config);
    let hosts = [(); 2].map(|()| world.node_down(NodeConfig::default()));
    let lease = |data: &mut ParticipantData| {
        (data.lease, data.vendor) = (10 * SECOND, VENDOR_ID);
    };
    let known = |world: &World| {
        let known = world.protocol(node).remote_participants();
        let mut known: Vec<_> = known.map(|peer| peer.data.guid.prefix).collect();
        known.sort_unstable();
        known
    };
    let peers = [(0, 1), (1, 2)].map(|(host, number)| Peer::at(hosts[host], node, number));
    for peer in &peers {
        peer.announce_itself(&mut world, lease);
        peer.answer_discovery(&mut world);
    }
    let [former, other] = peers;
    let again = Peer::at(hosts[0], node, 3);
    // Another host announces the address of the silent participant.
    let mut forger = Peer::at(hosts[0], node, 4);
    forger.from = Some(hosts[1].discovery_locator());
    // The other participant is received every two seconds.
    let second_start_of_other = Peer::at(hosts[1], node, 5);
    for _ in 0..2 {
        again.announce_itself(&mut world, lease);
        assert_eq!(known(&world), [former.prefix, other.prefix]);
        world.run_for(2 * SECOND);
        other.announce_itself(&mut world, lease);
    }
    world.run_for(2 * SECOND);
    forger.announce_itself(&mut world, lease);
    second_start_of_other.announce_itself(&mut world, lease);
    // With another vendor, all participants of a process may have one address.
    again.announce_itself(&mut world, |data| {
        lease(data);
        data.vendor = [1, 16];
    });
    again.announce_itself(&mut world, |data| {
        lease(data);
        data.domain_id = Some(99);
    });
    assert_eq!(known(&world), [former.prefix, other.prefix]);
    again.announce_itself(&mut world, lease);
    world.run_for(ms(50));
    assert_eq!(known(&world), [other.prefix, again.prefix]);
    assert_eq!(world.protocol(node).counters().participants_displaced, 1);
}

#[test]
fn a_match_that_found_no_place_is_made_when_another_has_gone() {
    // Two entries of each kind belong to discovery.
    for gone in 0..2 {
        let mut world = World::new(1);
        let (small, large) = a_small_node(&mut world, |limits| limits.matches = 4);
        let writer = world.create_writer(small, &topic("Few"));
        let readers = [(); 3].map(|()| world.create_reader(large, &topic("Few")));
        world.run_for(10 * SECOND);
        assert_eq!(world.matched_readers(writer), 2);
        assert_eq!(world.protocol(small).counters().matches_refused, 1);
        world.delete_reader(readers[gone]);
        world.run_for(ms(50));
        assert_eq!(world.matched_readers(writer), 2);
        world.enqueue(writer, values(3));
        world.run_for(SECOND);
        assert_eq!(world.values(readers[2]), [1, 2, 3]);
    }
}

#[test]
fn one_that_is_tried_again_is_not_counted_as_incompatible_twice() {
    let mut world = World::new(1);
    let (small, large) = a_small_node(&mut world, |limits| limits.matches = 3);
    let writer = world.create_writer(small, &topic("Same"));
    let effort = world.create_writer(small, &Topic::new("Same"));
    let readers = [(); 2].map(|()| world.create_reader(large, &topic("Same")));
    world.run_for(SECOND);
    let total = |world: &World| {
        let found = world
            .protocol(small)
            .offered_incompatible(world.writer_id(effort));
        found.map(|found| found.total)
    };
    assert_eq!((world.matched_readers(writer), total(&world)), (1, Some(2)));
    world.delete_reader(readers[0]);
    world.run_for(SECOND);
    assert_eq!((world.matched_readers(writer), total(&world)), (1, Some(2)));
    world.enqueue(writer, values(1));
    world.run_for(SECOND);
    assert_eq!(world.values(readers[1]), [1]);
}

#[test]
fn endpoints_of_one_participant_that_found_no_place_are_matched_when_there_is_one() {
    let mut world = World::new(1);
    let (small, _) = a_small_node(&mut world, |limits| limits.matches = 3);
    world.run_for(SECOND);
    let writer = world.create_writer(small, &topic("Own"));
    let readers = [(); 2].map(|()| world.create_reader(small, &topic("Own")));
    world.run_for(SECOND);
    assert_eq!(world.matched_readers(writer), 1);
    world.delete_reader(readers[0]);
    world.run_for(SECOND);
    assert_eq!(world.matched_readers(writer), 1);
    world.enqueue(writer, values(2));
    world.run_for(SECOND);
    assert_eq!(world.values(readers[1]), [1, 2]);
}

#[test]
fn discovery_that_found_no_place_goes_on_when_there_is_one() {
    let mut world = World::new(1);
    let (small, large) = a_small_node(&mut world, |limits| limits.matches = 3);
    let topics = ["One", "Two"].map(topic);
    let own: Vec<_> = topics
        .iter()
        .map(|topic| {
            let writer = world.create_writer(small, topic);
            (writer, world.create_reader(small, topic))
        })
        .collect();
    let other = world.create_reader(large, &Topic::new("Other"));
    world.run_for(5 * SECOND);
    let found = |world: &World| {
        let protocol = world.protocol(small);
        (
            protocol.remote_endpoints().count(),
            protocol.remote_participants().count(),
        )
    };
    assert_eq!(
        world.protocol(small).counters().matches_refused,
        2,
        "of both kinds one"
    );
    assert_eq!(found(&world), (0, 1), "its readers are not announced");
    world.delete_reader(own[0].1);
    world.run_for(SECOND);
    assert_eq!(found(&world), (1, 1));
    world.delete_reader(other);
    world.run_for(SECOND);
    assert_eq!(found(&world), (0, 1));
}

#[test]
fn a_participant_that_leaves_is_parted_from_one_match_a_step() {
    let mut world = World::new(1);
    let a = world.node(NodeConfig {
        step: ms(1),
        ..NodeConfig::default()
    });
    let b = world.node(NodeConfig::default());
    let writers = [(); 8].map(|()| world.create_writer(a, &topic("Left")));
    let readers = [(); 5].map(|()| world.create_reader(b, &topic("Left")));
    world.until_matched(&writers, &readers);
    world.run_for(SECOND);
    let matches = |world: &World| {
        writers
            .iter()
            .map(|&writer| world.matched_readers(writer))
            .sum::<usize>()
    };
    world.leave(b);
    let mut before = matches(&world);
    assert_eq!(before, 40);
    let mut steps = 0;
    while before > 0 {
        world.run_for(ms(1));
        let now = matches(&world);
        assert!(before - now <= 1, "{before} matches, then {now}");
        // The removed participant is not listed from the first step on.
        assert!(now == 40 || world.protocol(a).remote_endpoints().count() == 0);
        before = now;
        steps += 1;
        assert!(steps < 200);
    }
    assert!(steps >= 40);
    world.run_for(SECOND);
    assert_eq!(world.protocol(a).remote_participants().count(), 0);
}

/// A participant with room for two user matches, both taken, and its peer. The writer of the last match has a lease.
/// Returns the reader of that writer, and the reader that may be deleted.
fn full_with_a_lease(is_full_at_writer: bool) -> (World, NodeId, [ReaderHandle; 2]) {
    let mut world = World::new(1);
    world.tap();
    let (small, large) = a_small_node(&mut world, |limits| limits.matches = 4);
    let (a, b) = match is_full_at_writer {
        true => (small, large),
        false => (large, small),
    };
    let writer = world.create_writer(a, &topic("Other"));
    let other = world.create_reader(b, &topic("Other"));
    world.until_matched(&[writer], &[other]);
    let lively = topic("Lively").qos(|qos| qos.liveliness.lease = ms(200).into());
    let writer = world.create_writer(a, &lively);
    let reader = world.create_reader(b, &topic("Lively"));
    world.until_matched(&[writer], &[reader]);
    world.run_for(SECOND);
    assert_eq!(world.protocol(small).counters().matches_refused, 1);
    (world, small, [reader, other])
}

#[test]
fn messages_of_liveliness_that_found_no_place_are_sent_when_there_is_one() {
    let (mut world, small, [reader, other]) = full_with_a_lease(true);
    let alive = |world: &mut World| {
        let changed = world.take_liveliness_changed(reader);
        changed.map(|changed| (changed.alive, changed.not_alive))
    };
    assert_eq!(
        alive(&mut world),
        Some((0, 1)),
        "the reader was not notified"
    );
    world.delete_reader(other);
    world.run_for(SECOND);
    assert_eq!(alive(&mut world), Some((1, 0)));
    world.run_for(5 * SECOND);
    assert_eq!(alive(&mut world), None);
    assert_eq!(world.protocol(small).counters().matches_refused, 1);
}

#[test]
fn messages_of_liveliness_that_found_no_place_are_acknowledged_when_there_is_one() {
    let (mut world, _, [_, other]) = full_with_a_lease(false);
    let acknowledged = |world: &World| {
        let mut count = 0;
        for_each_submessage(world, |submessage| {
            let of_messages = |acknack: AckNack| acknack.writer == EntityId::P2P_MESSAGE_WRITER;
            count += usize::from(matches!(submessage, Submessage::AckNack(it) if of_messages(it)));
        });
        count
    };
    assert_eq!(acknowledged(&world), 0);
    world.delete_reader(other);
    world.run_for(SECOND);
    assert!(acknowledged(&world) > 0);
}
