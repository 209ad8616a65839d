//! Static discovery: participants and endpoints that are described on all sides match without being discovered.

use std::{rc::Rc, time::Duration};

use isolane_rtps::{Announces, CreateError, DeliveryMode, SetQosError, StaticPeerState};
use isolane_sim::{
    Description, LinkConfig, NodeConfig, NodeId, Partition, ReaderHandle, Sample, Topic, World,
    WriterHandle, seeds,
};
use isolane_wire::{guid::EntityId, message::Submessage};

use crate::{
    peer::for_each_submessage,
    support::{PATIENCE, SECOND, matched, ms, until_taken, values},
};

pub(crate) const A: NodeId = NodeId(0);
pub(crate) const B: NodeId = NodeId(1);

/// Longer than the default lease of 10 s and one announcement period.
const LEASE_OVER: Duration = Duration::from_secs(13);

fn brake() -> Topic {
    Topic::new("Brake").level(7)
}

pub(crate) fn report() -> Topic {
    Topic::new("Report").level(3).reliable().keep_all(64)
}

/// Description in which node 0 writes topics to node 1.
pub(crate) fn one_way(announces: Announces, topics: &[Topic]) -> Description {
    let described = Description::new().with(A, announces, topics, &[]);
    described.with(B, announces, &[], topics)
}

/// Creates two nodes with the same description.
pub(crate) fn two_described(world: &mut World, described: Description) {
    world.nodes(2, &with_description(described));
}

fn with_description(described: Description) -> NodeConfig {
    NodeConfig {
        described: Some(Rc::new(described)),
        ..NodeConfig::default()
    }
}

/// Returns a matched writer on node 0 and reader on node 1, which are described.
fn described_pair(
    world: &mut World,
    announces: Announces,
    topic: &Topic,
) -> (WriterHandle, ReaderHandle) {
    two_described(world, one_way(announces, std::slice::from_ref(topic)));
    let writer = world.create_writer(A, topic);
    let reader = world.create_reader(B, topic);
    world.until_matched(&[writer], &[reader]);
    (writer, reader)
}

/// Numbers of SPDP and SEDP submessages since the tap was opened.
fn of_discovery(world: &World) -> (u64, u64) {
    let (mut spdp, mut sedp) = (0, 0);
    for_each_submessage(world, |submessage| {
        let writer = match &submessage {
            Submessage::Data(data) => data.writer,
            Submessage::Heartbeat(heartbeat) => heartbeat.writer,
            Submessage::AckNack(acknack) => acknack.writer,
            Submessage::Gap(gap) => gap.writer,
            _ => return,
        };
        spdp += u64::from(writer == EntityId::SPDP_WRITER);
        sedp += u64::from(
            writer == EntityId::SEDP_PUBLICATIONS_WRITER
                || writer == EntityId::SEDP_SUBSCRIPTIONS_WRITER,
        );
    });
    (spdp, sedp)
}

/// State of a node's only static peer.
pub(crate) fn peer_of(world: &World, node: NodeId) -> StaticPeerState<'_> {
    let mut peers = world.protocol(node).static_peers();
    peers.next().expect("one is described")
}

pub(crate) fn peers(world: &World, node: NodeId) -> usize {
    world.protocol(node).remote_participants().count()
}

#[test]
fn described_endpoints_match_when_they_are_created() {
    for announces in [Announces::All, Announces::Itself, Announces::Nothing] {
        let mut world = World::new(1);
        two_described(&mut world, one_way(announces, &[brake()]));
        let writer = world.create_writer(A, &brake());
        let reader = world.create_view_reader(B, &brake());
        // No time has passed.
        assert_eq!(world.elapsed(), Duration::ZERO);
        assert_eq!(world.matched_readers(writer), 1);
        assert_eq!(world.matched_writers(reader), 1);
        world.enqueue(writer, values(3));
        world.run_for(ms(1));
        assert_eq!(world.values(reader), [1, 2, 3], "the first one, too");
    }
}

#[test]
fn no_word_of_sedp_is_said_where_all_endpoints_are_described() {
    for (announces, says_spdp) in [(Announces::Itself, true), (Announces::Nothing, false)] {
        seeds::for_each(0..10, |seed| {
            let mut world = World::new(seed).link(LinkConfig::lossy(0.2));
            world.tap();
            two_described(&mut world, one_way(announces, &[brake(), report()]));
            let writer = world.create_writer(A, &report());
            let reader = world.create_reader(B, &report());
            world.until_matched(&[writer], &[reader]);
            world.enqueue(writer, values(200));
            until_taken(&mut world, "all came", reader, 200);
            world.run_for(30 * SECOND);
            assert_eq!(world.values(reader), (1..=200).collect::<Vec<_>>());
            let (spdp, sedp) = of_discovery(&world);
            assert_eq!((spdp > 0, sedp), (says_spdp, 0));
        });
    }
}

#[test]
fn undescribed_endpoints_of_a_static_peer_are_discovered() {
    let mut world = World::new(1);
    two_described(&mut world, one_way(Announces::All, &[brake()]));
    let other = Topic::new("Other").reliable().keep_all(8);
    let described = (
        world.create_writer(A, &brake()),
        world.create_reader(B, &brake()),
    );
    let found = (
        world.create_writer(A, &other),
        world.create_reader(B, &other),
    );
    for (writer, reader) in [described, found] {
        world.until_matched(&[writer], &[reader]);
    }
    world.run_for(20 * SECOND);
    for (writer, reader) in [described, found] {
        world.enqueue(writer, values(5));
        world.run_for(SECOND);
        assert_eq!(world.values(reader), [1, 2, 3, 4, 5]);
        assert_eq!(world.matches_of_reader(reader).len(), 1, "once");
    }
    for node in [A, B] {
        assert_eq!(peers(&world, node), 1);
        // The described endpoint, and the discovered one.
        assert_eq!(world.protocol(node).remote_endpoints().count(), 2);
        assert_eq!(world.protocol(node).counters().static_disagreements, 0);
    }
}

#[test]
fn one_that_starts_again_is_met_at_once_and_nothing_of_before_is_left() {
    for announces in [Announces::All, Announces::Itself, Announces::Nothing] {
        for restarted in [A, B] {
            seeds::for_each(0..20, |seed| {
                let mut world = World::new(seed).link(LinkConfig::lossy(0.1));
                let (mut writer, mut reader) = described_pair(&mut world, announces, &report());
                world.publish(writer, ms(1), values(50));
                until_taken(&mut world, "all came", reader, 50);
                world.run_for(ms(200));
                world.restart(restarted);
                let before = world.elapsed();
                match restarted {
                    A => writer = world.create_writer(A, &report()),
                    _ => reader = world.create_reader(B, &report()),
                }
                world.run_until("both know", PATIENCE, |world| {
                    let stays = if restarted == A { B } else { A };
                    peer_of(world, stays).restarts == 1
                        && world.matched_readers(writer) == 1
                        && world.matched_writers(reader) == 1
                });
                assert!(world.elapsed() < before + 3 * SECOND, "without a lease");
                world.enqueue(writer, (101..=150).map(Sample::value));
                let last: Vec<_> = (101..=150).collect();
                world.run_until("what is written now comes", PATIENCE, |world| {
                    world.values(reader).ends_with(&last)
                });
                let all = match restarted {
                    A => (1..=50).chain(101..=150).collect(),
                    _ => last,
                };
                assert_eq!(world.values(reader), all, "each once, in order");
            });
        }
    }
}

#[test]
fn a_late_datagram_of_an_earlier_start_brings_it_not_back() {
    let mut world = World::new(1);
    world.tap();
    let (first, reader) = described_pair(&mut world, Announces::Nothing, &report());
    world.enqueue(first, values(3));
    world.run_for(SECOND);
    let of_first: Vec<Vec<u8>> = world.tapped().to_vec();
    world.restart(A);
    let writer = world.create_writer(A, &report());
    world.run_until("it is met again", SECOND, |world| {
        peer_of(world, B).restarts == 1
    });
    // Longer than the minimum interval between two starts, and shorter than any datagram waits in a queue.
    world.run_for(ms(150));
    for datagram in &of_first {
        for to in [B.discovery_locator(), B.level_locator(report_level())] {
            world.inject(to, A.discovery_locator(), datagram);
        }
    }
    world.run_for(ms(500));
    assert_eq!(peer_of(&world, B).restarts, 1);
    world.enqueue(writer, values(5));
    world.run_for(SECOND);
    assert_eq!(world.values(reader), [1, 2, 3, 1, 2, 3, 4, 5]);
}

fn report_level() -> isolane_wire::level::Level {
    isolane_wire::level::Level::clamp(3)
}

#[test]
fn one_that_announces_itself_is_gone_with_its_lease_and_back_with_its_first_word() {
    let mut world = World::new(1);
    two_described(&mut world, one_way(Announces::Itself, &[brake()]));
    let writer = world.create_writer(A, &brake());
    world.create_reader(B, &brake());
    world.run_for(SECOND);
    world.crash(B);
    world.run_for(LEASE_OVER);
    assert_eq!((peers(&world, A), world.matched_readers(writer)), (0, 0));
    assert!(!peer_of(&world, A).is_present);
    world.restart(B);
    let reader = world.create_reader(B, &brake());
    world.run_for(ms(5));
    assert_eq!(world.matched_readers(writer), 1);
    world.enqueue(writer, values(3));
    world.run_for(ms(5));
    assert_eq!(world.values(reader), [1, 2, 3]);
}

#[test]
fn samples_of_one_that_announces_itself_do_not_renew_its_lease() {
    let mut world = World::new(1);
    let (writer, reader) = described_pair(&mut world, Announces::Itself, &report());
    world.tap();
    world.enqueue(writer, values(3));
    world.run_for(ms(50));
    let said: Vec<Vec<u8>> = world.tapped().to_vec();
    world.crash(A);
    // An attacker that forges the peer's address repeats its datagrams.
    for _ in 0..26 {
        for datagram in &said {
            world.inject(
                B.level_locator(report_level()),
                A.discovery_locator(),
                datagram,
            );
        }
        world.run_for(ms(500));
    }
    assert_eq!(world.protocol(B).counters().leases_expired, 1);
    // As after any first datagram, the peer is present for one lease.
    assert!(peer_of(&world, B).is_present);
    world.run_for(LEASE_OVER);
    assert!(!peer_of(&world, B).is_present);
    assert_eq!(world.matched_writers(reader), 0);
}

#[test]
fn one_that_never_comes_is_believed_for_one_lease_and_for_ever_where_it_announces_nothing() {
    for (announces, matched) in [(Announces::Itself, 0), (Announces::Nothing, 1)] {
        let mut world = World::new(1);
        let config = with_description(one_way(announces, &[brake()]));
        world.node(config.clone());
        world.node_down(config);
        let writer = world.create_writer(A, &brake());
        assert_eq!(world.matched_readers(writer), 1);
        world.run_for(400 * SECOND);
        assert_eq!(world.matched_readers(writer), matched);
    }
}

#[test]
fn a_good_bye_parts_at_once_and_what_is_late_does_not_bring_it_back() {
    let mut world = World::new(1);
    world.tap();
    let (writer, reader) = described_pair(&mut world, Announces::Itself, &report());
    world.enqueue(writer, values(3));
    world.run_for(SECOND);
    let said: Vec<Vec<u8>> = world.tapped().to_vec();
    world.leave(A);
    world.run_for(ms(1));
    assert_eq!(world.matched_writers(reader), 0);
    for datagram in said.iter().rev().take(20) {
        let is_spdp = datagram
            .windows(4)
            .any(|entity| entity == EntityId::SPDP_WRITER.0);
        if !is_spdp {
            world.inject(B.discovery_locator(), A.discovery_locator(), datagram);
        }
    }
    world.run_for(SECOND);
    assert_eq!(world.matched_writers(reader), 0);
}

#[test]
fn a_partition_longer_than_the_lease_heals() {
    seeds::for_each(0..20, |seed| {
        let mut world = World::new(seed).link(LinkConfig::lossy(0.1));
        let (writer, reader) = described_pair(&mut world, Announces::Itself, &report());
        world.enqueue(writer, values(10));
        world.run_for(SECOND);
        world.partition(Partition::between(&[A], &[B]));
        world.run_for(LEASE_OVER);
        assert_eq!((peers(&world, A), peers(&world, B)), (0, 0));
        world.heal();
        world.until_matched(&[writer], &[reader]);
        world.enqueue(writer, (11..=20).map(Sample::value));
        world.run_until("the rest came", PATIENCE, |world| {
            world.values(reader) == (1..=20).collect::<Vec<_>>()
        });
        assert_eq!(peer_of(&world, B).restarts, 0, "it is the one it was");
    });
}

#[test]
fn descriptions_that_disagree_are_counted_and_connect_nothing_wrongly() {
    let others = [
        // Another type, another level, another reliability, and one additional topic.
        vec![brake().type_name("sim::Other")],
        vec![brake().level(6)],
        vec![brake().reliable()],
        vec![brake(), report()],
    ];
    for other in others {
        let mut world = World::new(1);
        let described = [
            one_way(Announces::Itself, &[brake()]),
            one_way(Announces::Itself, &other),
        ];
        for described in described {
            world.node(with_description(described));
        }
        let writer = world.create_writer(A, &brake());
        let reader = world.create_reader(B, &other[0]);
        world.run_for(SECOND);
        for node in [A, B] {
            assert!(peer_of(&world, node).disagrees, "{other:?}");
            assert_eq!(world.protocol(node).counters().static_disagreements, 1);
        }
        world.enqueue(writer, values(3));
        world.run_for(SECOND);
        // An endpoint with the same entity id on both sides has the same topic and type, so its samples may arrive.
        let received = world.values(reader);
        assert!([1, 2, 3].starts_with(&received), "{other:?}");
        let is_of_one_type = other[0].config_on(B).type_name == "sim::Sample";
        assert!(is_of_one_type || received.is_empty(), "{other:?}");
    }
}

#[test]
fn one_that_has_no_description_is_seen_to_have_none() {
    let mut world = World::new(1);
    world.node(with_description(one_way(Announces::All, &[brake()])));
    // Another participant uses the described address.
    world.node(NodeConfig::default());
    world.run_for(SECOND);
    assert_eq!(
        peers(&world, A),
        2,
        "the described one, and the one that came"
    );
    world.run_for(LEASE_OVER);
    assert_eq!(peers(&world, A), 1);
    assert!(!peer_of(&world, A).is_present);
}

#[test]
fn places_of_described_peers_are_kept_for_them() {
    let mut world = World::new(1);
    let mut config = with_description(one_way(Announces::Itself, &[brake()]));
    config.limits.participants = 3;
    config.limits.remote_endpoints = 3;
    world.node(config.clone());
    world.node_down(config);
    let writer = world.create_writer(A, &brake());
    // The peer is removed, and then more unknown participants arrive than the table holds.
    world.run_for(LEASE_OVER);
    assert_eq!(peers(&world, A), 0);
    let strangers = world.nodes(5, &NodeConfig::default());
    for &node in &strangers {
        world.create_writer(node, &report());
    }
    world.run_for(5 * SECOND);
    assert_eq!(peers(&world, A), 2);
    world.restart(B);
    let reader = world.create_reader(B, &brake());
    world.run_for(ms(200));
    assert_eq!(world.matched_readers(writer), 1);
    world.enqueue(writer, values(2));
    world.run_for(ms(5));
    assert_eq!(world.values(reader), [1, 2]);
}

#[test]
fn a_described_endpoint_meets_the_described_deadline() {
    let mut world = World::new(1);
    let within = |millis| brake().qos(|qos| qos.deadline = Duration::from_millis(millis).into());
    let described = within(10);
    two_described(
        &mut world,
        one_way(Announces::Itself, std::slice::from_ref(&described)),
    );
    let refused = CreateError::NotAsDescribed("DEADLINE");
    let create_writer = |world: &mut World, topic: &Topic| {
        world.with_protocol(A, |protocol, now| {
            protocol.create_writer(now, &topic.config_on(A)).err()
        })
    };
    let create_reader = |world: &mut World, topic: &Topic| {
        world.with_protocol(B, |protocol, now| {
            let config = topic.config_on(B);
            protocol
                .create_reader(now, &config, DeliveryMode::Cache)
                .err()
        })
    };
    // A writer may not offer less than the reader's participant knows, and a reader may not request more.
    let (shorter, longer) = (within(9), within(11));
    assert_eq!(create_writer(&mut world, &longer), Some(refused));
    assert_eq!(create_writer(&mut world, &brake()), Some(refused));
    assert_eq!(create_reader(&mut world, &shorter), Some(refused));
    let writer = world.create_writer(A, &shorter);
    let reader = world.create_reader(B, &longer);
    assert_eq!(matched(&world, writer, reader), (1, 1));
}

#[test]
fn an_endpoint_is_created_as_it_is_described_or_not_at_all() {
    let mut world = World::new(1);
    two_described(&mut world, one_way(Announces::Itself, &[report()]));
    let refused = |world: &mut World, topic: &Topic| {
        world.with_protocol(A, |protocol, now| {
            protocol
                .create_writer(now, &topic.config_on(A))
                .unwrap_err()
        })
    };
    for (topic, what) in [
        (report().type_name("sim::Other"), "its type"),
        (report().keyed(), "whether it has a key"),
        (report().level(4), "its level"),
        (report().transient_local(), "DURABILITY"),
    ] {
        let why = refused(&mut world, &topic);
        assert_eq!(why, CreateError::NotAsDescribed(what));
    }
    assert_eq!(refused(&mut world, &brake()), CreateError::NotDescribed);
    let writer = world.create_writer(A, &report());
    assert_eq!(refused(&mut world, &report()), CreateError::DescribedOnce);
    let changed = world.set_writer_qos(writer, |qos| {
        qos.partition = Default::default();
        qos.latency_budget = Duration::from_millis(1).into();
    });
    assert_eq!(changed, Err(SetQosError::Described));
    // The topic's reader is not described either.
    let reader = world.with_protocol(A, |protocol, now| {
        protocol.create_reader(now, &report().config_on(A), DeliveryMode::Cache)
    });
    assert_eq!(reader, Err(CreateError::NotDescribed));
    // A deleted writer can be created again.
    world.delete_writer(writer);
    world.create_writer(A, &report());
}
