//! Matching: which endpoints match, and why others do not.

use isolane_rtps::EndpointKind;
use isolane_sim::{LinkConfig, NodeConfig, NodeId, Topic, World, WriterHandle};
use isolane_wire::{
    qos::{
        DataRepresentationId, DestinationOrderKind, DurabilityKind, LivelinessKind, OwnershipKind,
        PolicyId, PresentationAccessScope, QosPolicies,
    },
    time,
};

use crate::support::{PATIENCE, SECOND, assert_notified, endpoints, ms, two_nodes, values};

fn topic() -> Topic {
    Topic::new("Found").reliable().keep_all(64)
}

#[test]
fn endpoints_have_the_guid_of_their_participant_and_the_kind_of_their_topic() {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    let writers = [
        world.create_writer(a, &topic()),
        world.create_writer(a, &Topic::new("Keyed").keyed()),
    ];
    let reader = world.create_reader(a, &topic());
    world.run_for(SECOND);
    let mut found: Vec<_> = world
        .protocol(b)
        .remote_endpoints()
        .map(|found| (found.data.guid, found.kind, found.data.topic_name))
        .collect();
    found.sort_by_key(|&(guid, ..)| guid);
    let mut expected = [
        (world.writer_guid(writers[0]), EndpointKind::Writer, "Found"),
        (world.writer_guid(writers[1]), EndpointKind::Writer, "Keyed"),
        (world.reader_guid(reader), EndpointKind::Reader, "Found"),
    ];
    expected.sort_by_key(|&(guid, ..)| guid);
    let found = found
        .iter()
        .map(|(guid, kind, name)| (*guid, *kind, name.as_str()));
    assert_eq!(found.collect::<Vec<_>>(), expected);
    for (guid, kind, name) in expected {
        assert_eq!(guid.prefix, world.protocol(a).guid_prefix());
        assert_eq!(guid.entity.is_writer(), kind == EndpointKind::Writer);
        assert_eq!(guid.entity.is_keyed(), name == "Keyed");
        assert!(!guid.entity.is_builtin());
    }
}

#[test]
fn endpoints_created_late_are_matched_and_deleted_ones_parted() {
    let mut world = World::new(1).link(LinkConfig::lossy(0.2));
    let (a, b) = two_nodes(&mut world);
    let writer = world.create_writer(a, &topic());
    world.run_for(5 * SECOND);
    let reader = world.create_reader(b, &topic());
    world.until_matched(&[writer], &[reader]);
    world.delete_reader(reader);
    world.run_until("the reader is gone", PATIENCE, |world| {
        world.matched_readers(writer) == 0 && endpoints(world, a) == 0
    });
    let reader = world.create_reader(b, &topic());
    world.until_matched(&[writer], &[reader]);
    world.delete_writer(writer);
    world.run_until("the writer is gone", PATIENCE, |world| {
        world.matched_writers(reader) == 0 && endpoints(world, b) == 0
    });
}

#[test]
fn endpoints_may_come_and_go_for_ever() {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    let writer = world.create_writer(a, &topic());
    for _ in 0..300 {
        let readers: Vec<_> = (0..3).map(|_| world.create_reader(b, &topic())).collect();
        world.run_until("all are found", SECOND, |world| {
            world.matched_readers(writer) == readers.len()
        });
        for reader in readers {
            world.delete_reader(reader);
        }
        world.run_until("all are gone", SECOND, |world| {
            world.matched_readers(writer) == 0
        });
    }
    let late = world.node(NodeConfig::default());
    world.run_for(SECOND);
    assert_eq!(
        endpoints(&world, late),
        1,
        "of those that were there is no trace"
    );
}

/// Difference in one policy: offer of the writer, request of the reader.
type Difference = (PolicyId, fn(&mut QosPolicies), fn(&mut QosPolicies));

#[test]
fn a_mismatch_names_the_policy_on_both_sides() {
    let short = time::Duration::from_millis(10);
    assert!(short < time::Duration::INFINITE);
    let differences: [Difference; 9] = [
        (
            PolicyId::RELIABILITY,
            |_| {},
            |reader| {
                reader.reliability.kind = isolane_wire::qos::ReliabilityKind::Reliable;
            },
        ),
        (
            PolicyId::DURABILITY,
            |_| {},
            |reader| {
                reader.durability = DurabilityKind::TransientLocal;
            },
        ),
        (
            PolicyId::DEADLINE,
            |_| {},
            |reader| {
                reader.deadline = time::Duration::from_millis(10);
            },
        ),
        (
            PolicyId::LATENCY_BUDGET,
            |writer| writer.latency_budget = time::Duration::from_millis(10),
            |_| {},
        ),
        (
            PolicyId::OWNERSHIP,
            |writer| writer.ownership = OwnershipKind::Exclusive,
            |_| {},
        ),
        (
            PolicyId::LIVELINESS,
            |_| {},
            |reader| {
                reader.liveliness.kind = LivelinessKind::ManualByTopic;
            },
        ),
        (
            PolicyId::DESTINATION_ORDER,
            |_| {},
            |reader| {
                reader.destination_order = DestinationOrderKind::BySourceTimestamp;
            },
        ),
        (
            PolicyId::PRESENTATION,
            |_| {},
            |reader| {
                reader.presentation.access_scope = PresentationAccessScope::Group;
            },
        ),
        (
            PolicyId::DATA_REPRESENTATION,
            |writer| {
                writer
                    .data_representation
                    .extend([DataRepresentationId::XCDR2]);
            },
            |_| {},
        ),
    ];
    for (policy, offers, requests) in differences {
        let mut world = World::new(1);
        let (a, b) = two_nodes(&mut world);
        // Reader on another host, and on the writer's host.
        for reader_node in [b, a] {
            let name = format!("{policy} {reader_node:?}");
            let writer = world.create_writer(a, &Topic::new(&name).qos(offers));
            let reader = world.create_reader(reader_node, &Topic::new(&name).qos(requests));
            world.run_for(SECOND);
            assert_eq!(world.matched_readers(writer), 0);
            assert_eq!(world.matched_writers(reader), 0);
            let offered = world
                .protocol(a)
                .offered_incompatible(world.writer_id(writer));
            let offered = offered.expect("the writer is notified");
            assert_eq!((offered.policy, offered.total), (policy, 1));
            assert_eq!(offered.other, world.reader_guid(reader));
            let requested = world
                .protocol(reader_node)
                .requested_incompatible(world.reader_id(reader));
            let requested = requested.expect("the reader is notified");
            assert_eq!((requested.policy, requested.total), (policy, 1));
            assert_eq!(requested.other, world.writer_guid(writer));
            assert_notified(&world, writer, reader);
        }
    }
}

#[test]
fn endpoints_of_another_topic_type_or_key_are_no_match_and_no_mismatch() {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    let writer = world.create_writer(a, &topic());
    let others = [
        world.create_reader(b, &Topic::new("Other").reliable()),
        world.create_reader(b, &topic().type_name("Other")),
        world.create_reader(b, &topic().keyed()),
    ];
    world.run_for(SECOND);
    assert_eq!(world.matched_readers(writer), 0);
    for reader in others {
        assert_eq!(world.matched_writers(reader), 0);
        let mismatch = world
            .protocol(b)
            .requested_incompatible(world.reader_id(reader));
        assert_eq!(mismatch, None);
    }
}

#[test]
fn twenty_participants_all_match() {
    for loss in [0.0, 0.2] {
        let mut world = World::new(20).link(LinkConfig::lossy(loss));
        let nodes = world.nodes(20, &NodeConfig::default());
        all_match(&mut world, &nodes, &topic().multicast());
    }
}

#[test]
fn twenty_participants_with_peer_lists_all_match() {
    // The peers are listed by address, for discovery and for data.
    let mut world = World::new(20).link(LinkConfig::lossy(0.1));
    let everyone: Vec<_> = (0..20).map(NodeId).collect();
    let nodes = world.nodes(20, &NodeConfig::with_peers(&everyone));
    all_match(&mut world, &nodes, &topic());
    assert_eq!(world.protocol(nodes[0]).counters().destinations_full, 0);
}

#[test]
fn a_best_effort_writer_sends_to_each_of_thirty_readers_that_share_no_group() {
    let mut world = World::new(30);
    let everyone: Vec<_> = (0..31).map(NodeId).collect();
    let nodes = world.nodes(31, &NodeConfig::with_peers(&everyone));
    let topic = Topic::new("Many");
    let writer = world.create_writer(nodes[0], &topic);
    let readers: Vec<_> = nodes[1..]
        .iter()
        .map(|&node| world.create_reader(node, &topic))
        .collect();
    world.until_matched(&[writer], &readers);
    world.publish(writer, ms(10), values(5));
    world.run_for(SECOND);
    for reader in readers {
        assert_eq!(world.values(reader), [1, 2, 3, 4, 5]);
    }
}

/// Creates a writer and a reader of one topic on each node, and checks that each reader gets all samples.
fn all_match(world: &mut World, nodes: &[NodeId], topic: &Topic) {
    let writers: Vec<WriterHandle> = nodes
        .iter()
        .map(|&node| world.create_writer(node, topic))
        .collect();
    let readers: Vec<_> = nodes
        .iter()
        .map(|&node| world.create_reader(node, topic))
        .collect();
    world.until_matched(&writers, &readers);
    for &writer in &writers {
        world.enqueue(writer, values(2));
    }
    world.run_until("everyone has heard everyone", PATIENCE, |world| {
        readers
            .iter()
            .all(|&reader| world.received(reader).len() == 2 * nodes.len())
    });
}
