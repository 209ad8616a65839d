//! Discovery of participants, and detection of their departure.

use std::time::Duration;

use isolane_rtps::limits::{LEASE_GRACE, MAX_ANSWERS_AGAIN};
use isolane_sim::{LinkConfig, NodeConfig, NodeId, Partition, Sample, Topic, World, seeds};

use isolane_wire::{guid::EntityId, message::Submessage};

use crate::{
    peer::{Peer, for_each_submessage},
    support::{PATIENCE, SECOND, a_pair, a_pair_in, endpoints, ms, two_nodes, until_taken, values},
};

/// Longer than the default lease of 10 s and one announcement period.
const LEASE_OVER: Duration = Duration::from_secs(13);

fn topic() -> Topic {
    Topic::new("Found").reliable().keep_all(64)
}

fn peers(world: &World, node: NodeId) -> usize {
    world.protocol(node).remote_participants().count()
}

/// Number of SPDP announcements since the tap was opened.
fn announcements(world: &World) -> u32 {
    let mut count = 0;
    for_each_submessage(world, |submessage| {
        if let Submessage::Data(data) = submessage {
            count += u32::from(data.writer == EntityId::SPDP_WRITER);
        }
    });
    count
}

#[test]
fn participants_find_each_other_by_multicast() {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    world.run_for(ms(10));
    assert_eq!((peers(&world, a), peers(&world, b)), (1, 1));
    let found = world.protocol(a).remote_participants().next().expect("one");
    assert_eq!(found.data.guid.prefix, world.protocol(b).guid_prefix());
}

#[test]
fn participants_find_each_other_by_a_peer_list_of_one_of_them() {
    let mut world = World::new(1);
    let a = world.node(NodeConfig::with_peers(&[NodeId(1)]));
    let b = world.node(NodeConfig::with_peers(&[]));
    let (writer, reader) = (
        world.create_writer(a, &topic()),
        world.create_reader(b, &topic()),
    );
    world.until_matched(&[writer], &[reader]);
    assert_eq!((peers(&world, a), peers(&world, b)), (1, 1));
    // They also stay discovered, although only one sends periodic announcements to the other.
    world.run_for(60 * SECOND);
    assert_eq!((peers(&world, a), peers(&world, b)), (1, 1));
    // The farewell of the participant that has no peer list arrives too.
    world.leave(b);
    world.run_for(ms(1));
    assert_eq!(peers(&world, a), 0);
}

#[test]
fn a_late_joiner_gets_announcements_at_once_and_not_after_the_next_period() {
    let mut world = World::new(1);
    let early = world.node(NodeConfig::default());
    world.run_for(10 * SECOND + ms(300));
    let late = world.node(NodeConfig::default());
    world.run_for(ms(5));
    assert_eq!((peers(&world, early), peers(&world, late)), (1, 1));
}

#[test]
fn a_lost_answer_to_one_that_comes_later_is_repeated_when_that_announces_itself_again() {
    let mut world = World::new(1);
    let early = world.node(NodeConfig::default());
    world.run_for(10 * SECOND + ms(300));
    let late = world.node(NodeConfig::default());
    let now = world.elapsed();
    world.partition(Partition::one_way(&[early], &[late]).during(now..now + ms(50)));
    world.run_for(ms(90));
    assert_eq!((peers(&world, early), peers(&world, late)), (1, 0));
    world.run_for(ms(20));
    assert_eq!((peers(&world, early), peers(&world, late)), (1, 1));
}

#[test]
fn one_that_announces_itself_and_nothing_else_is_answered_a_few_times_only() {
    let mut world = World::new(1);
    let mut config = NodeConfig::default();
    // No periodic announcement is sent during the test.
    config.timing.announce_period = LEASE_OVER * 10;
    let node = world.node(config);
    world.run_for(SECOND);
    let peer = Peer::unproven(&mut world, node);
    for _ in 0..50 {
        peer.announce_itself(&mut world, |_| {});
    }
    assert_eq!(announcements(&world), 1, "they come too fast");
    for _ in 0..1_000 {
        peer.announce_itself(&mut world, |_| {});
        world.run_for(ms(10));
    }
    assert_eq!(announcements(&world), 1 + u32::from(MAX_ANSWERS_AGAIN));
}

#[test]
fn a_participant_that_crashes_is_gone_when_its_lease_has_run_out() {
    let (mut world, (a, b), writer, _) = a_pair(&topic());
    world.crash(b);
    world.run_for(7 * SECOND);
    assert_eq!(peers(&world, a), 1, "its last word is still good");
    world.run_for(4 * SECOND);
    assert_eq!((peers(&world, a), endpoints(&world, a)), (0, 0));
    assert_eq!(world.matched_readers(writer), 0);
    assert_eq!(world.protocol(a).counters().leases_expired, 1);
}

#[test]
fn a_process_that_was_stopped_for_longer_than_the_lease_keeps_its_matches() {
    let mut world = World::new(1);
    let nodes = world.nodes(4, &NodeConfig::default());
    let topic = topic();
    let reader = world.create_reader(nodes[0], &topic);
    let writers: Vec<_> = nodes
        .iter()
        .map(|&node| world.create_writer(node, &topic))
        .collect();
    world.until_matched(&writers, &[reader]);
    for time in [ms(10_500), 60 * SECOND] {
        world.run_for(5 * SECOND);
        world.stop_for(nodes[0], time);
        world.run_for(time + SECOND);
        assert_eq!(peers(&world, nodes[0]), 3);
        assert_eq!(world.matched_writers(reader), 4);
        assert_eq!(world.protocol(nodes[0]).counters().leases_expired, 0);
        // The other nodes did lose it.
        assert!(world.protocol(nodes[1]).counters().leases_expired > 0);
    }
    world.crash(nodes[1]);
    world.run_for(LEASE_OVER);
    assert_eq!(peers(&world, nodes[0]), 2);
}

#[test]
fn a_participant_whose_announcements_are_lost_stays_as_long_as_its_endpoints_are_heard() {
    // Lease renewal by best-effort samples, by reliable samples, and by ACKNACKs of a reliable reader.
    for (topic, silent) in [(topic(), 0), (Topic::new("Found"), 0), (topic(), 1)] {
        let mut world = World::new(1);
        let mut configs = [NodeConfig::default(), NodeConfig::default()];
        // No further announcements, as if a flood hid them.
        configs[silent].timing.announce_period = Duration::from_secs(1_000);
        let nodes = configs.map(|config| world.node(config));
        let writer = world.create_writer(nodes[0], &topic);
        let reader = world.create_reader(nodes[1], &topic);
        world.until_matched(&[writer], &[reader]);
        world.publish(writer, SECOND, values(40));
        world.run_for(39 * SECOND);
        let other = nodes[1 - silent];
        assert_eq!(world.protocol(other).counters().leases_expired, 0);
        world.run_for(LEASE_OVER);
        assert_eq!(peers(&world, other), 0, "it has said its last word");
    }
}

#[test]
fn a_malformed_announcement_that_waits_when_a_lease_ends_does_not_renew_it() {
    // At the end of the lease, and at the end of the grace after it.
    let lease = 3 * SECOND;
    for end in [lease, lease + LEASE_GRACE] {
        for early in (0..60).map(Duration::from_micros) {
            let mut world = World::new(1);
            let node = world.node(NodeConfig::default());
            let peer = Peer::of(&mut world, node);
            let others = [2, 3, 4].map(|number| Peer::at(peer.node, node, number));
            for other in &others {
                other.announce_itself(&mut world, |_| {});
            }
            peer.announce_itself(&mut world, |data| data.lease = lease);
            world.run_for(end - early - ms(1));
            for other in &others {
                other.announce_itself_at_once(&mut world, |_| {});
            }
            peer.announce_itself_at_once(&mut world, |data| data.guid.prefix = others[0].prefix);
            world.run_for(SECOND);
            let protocol = world.protocol(node);
            assert_eq!(protocol.counters().malformed_announcements, 1);
            assert_eq!(
                protocol.counters().leases_expired,
                1,
                "{early:?} before {end:?}"
            );
        }
    }
}

#[test]
fn a_crashed_reader_blocks_a_full_writer_until_its_lease_has_run_out() {
    let small = Topic::new("Blocked").reliable().keep_all(4);
    let (mut world, (_, b), writer, _) = a_pair(&small);
    world.crash(b);
    world.enqueue(writer, values(20));
    world.run_for(5 * SECOND);
    assert_eq!(world.unwritten(writer), 16);
    world.run_for(6 * SECOND);
    assert_eq!(world.unwritten(writer), 0, "the rest had no reader");
}

#[test]
fn a_participant_that_leaves_is_gone_at_once() {
    let (mut world, (a, b), _, reader) = a_pair(&topic());
    world.leave(a);
    world.run_for(ms(1));
    assert_eq!((peers(&world, b), endpoints(&world, b)), (0, 0));
    assert_eq!(world.matched_writers(reader), 0);
    assert_eq!(world.protocol(b).counters().leases_expired, 0);
}

#[test]
fn one_that_restarts_at_the_same_address_is_another_participant() {
    let (mut world, (a, b), writer, reader) = a_pair(&topic());
    let before = world.writer_guid(writer);
    world.restart(a);
    let writer = world.create_writer(a, &topic());
    assert_ne!(world.writer_guid(writer).prefix, before.prefix);
    world.run_until("the new one is matched", SECOND, |world| {
        world.matched_writers(reader) == 2 && world.matched_readers(writer) == 1
    });
    world.enqueue(writer, values(3));
    world.run_for(LEASE_OVER);
    assert_eq!(world.values(reader), [1, 2, 3]);
    assert_eq!((peers(&world, b), world.matched_writers(reader)), (1, 1));
}

#[test]
fn one_that_restarts_under_its_old_name_when_it_is_forgotten_is_another_participant_too() {
    seeds::for_each(0..20, |seed| {
        let topic = topic().transient_local();
        let (mut world, (a, b), writer, reader) =
            a_pair_in(World::new(seed).link(LinkConfig::lossy(0.1)), &topic);
        world.enqueue(writer, values(20));
        world.run_for(SECOND);
        let before = world.writer_guid(writer);
        world.crash(a);
        world.run_for(LEASE_OVER);
        assert_eq!(peers(&world, b), 0);
        world.restart_as_before(a);
        let writer = world.create_writer(a, &topic);
        assert_eq!(world.writer_guid(writer), before);
        world.until_matched(&[writer], &[reader]);
        // Another writer sends the same sequence numbers.
        world.enqueue(writer, (101..=120).map(Sample::value));
        let both: Vec<_> = (1..=20).chain(101..=120).collect();
        world.run_until("what is written now comes", PATIENCE, |world| {
            world.values(reader) == both
        });
    });
}

#[test]
fn a_short_partition_ends_no_match_and_loses_nothing() {
    seeds::for_each(0..20, |seed| {
        let (mut world, (a, b), writer, reader) =
            a_pair_in(World::new(seed).link(LinkConfig::lossy(0.1)), &topic());
        let from = world.elapsed() + ms(100);
        world.partition(Partition::between(&[a], &[b]).during(from..from + 4 * SECOND));
        world.publish(writer, ms(50), values(100));
        until_taken(&mut world, "all came", reader, 100);
        assert!(world.link_ledger().partitioned > 0);
        assert_eq!(world.protocol(b).counters().leases_expired, 0);
        assert_eq!(world.values(reader), (1..=100).collect::<Vec<_>>());
    });
}

#[test]
fn a_long_partition_parts_both_sides_and_heals() {
    let (mut world, (a, b), writer, reader) = a_pair(&topic());
    world.partition(Partition::between(&[a], &[b]));
    world.run_for(LEASE_OVER);
    assert_eq!((peers(&world, a), peers(&world, b)), (0, 0));
    world.heal();
    world.until_matched(&[writer], &[reader]);
    world.enqueue(writer, values(10));
    world.run_for(SECOND);
    assert_eq!(world.values(reader), (1..=10).collect::<Vec<_>>());
}

#[test]
fn a_partition_that_only_one_side_notices_heals_too() {
    // The participant that receives nothing forgets the other one and starts anew. The other one keeps its state,
    // including counts and acknowledgements.
    for cut in [0, 1] {
        seeds::for_each(0..30, |seed| {
            let mut world = World::new(seed).link(LinkConfig::lossy(0.2));
            let (a, b) = two_nodes(&mut world);
            let topics = [
                topic(),
                Topic::new("Back").reliable().keep_all(64).transient_local(),
            ];
            let writers = [
                world.create_writer(a, &topics[0]),
                world.create_writer(b, &topics[1]),
            ];
            let readers = [
                world.create_reader(b, &topics[0]),
                world.create_reader(a, &topics[1]),
            ];
            let until_matched = |world: &mut World| {
                for pair in 0..2 {
                    world.until_matched(&writers[pair..=pair], &readers[pair..=pair]);
                }
            };
            until_matched(&mut world);
            for writer in writers {
                world.publish(writer, ms(1), values(20));
            }
            world.run_for(5 * SECOND);
            let (from, to) = [(a, b), (b, a)][cut];
            // Without loss, the other participant's lease does not expire by chance.
            world.set_link(LinkConfig::default());
            world.partition(Partition::one_way(&[from], &[to]));
            world.run_for(LEASE_OVER);
            world.set_link(LinkConfig::lossy(0.2));
            assert_eq!(peers(&world, to), 0);
            assert_eq!(peers(&world, from), 1);
            world.heal();
            world.run_until("they know each other again", PATIENCE, |world| {
                peers(world, to) == 1 && endpoints(world, to) == 2
            });
            until_matched(&mut world);
            world.run_for(5 * SECOND);
            for writer in writers {
                world.enqueue(writer, (100..120).map(Sample::value));
            }
            let last = (100..120).collect::<Vec<_>>();
            world.run_until("what is written now comes", PATIENCE, |world| {
                readers
                    .iter()
                    .all(|&reader| world.values(reader).ends_with(&last))
            });
        });
    }
}

#[test]
fn endpoints_come_and_go_while_a_peer_acknowledges_nothing() {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    Peer::of(&mut world, node);
    for _ in 0..100 {
        let writer = world.create_writer(node, &topic());
        let reader = world.create_reader(node, &topic());
        world.run_for(ms(1));
        world.delete_writer(writer);
        world.delete_reader(reader);
    }
}

#[test]
fn an_endless_lease_is_believed_for_five_minutes() {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    Peer::announced(&mut world, node, |data| data.lease = Duration::MAX);
    world.run_for(290 * SECOND);
    assert_eq!(peers(&world, node), 1);
    world.run_for(20 * SECOND);
    assert_eq!(peers(&world, node), 0);
    assert_eq!(world.protocol(node).counters().leases_shortened, 1);
}

#[test]
fn a_participant_that_finds_the_table_full_is_refused_and_counted() {
    let mut config = NodeConfig::default();
    config.limits.participants = 2;
    let mut world = World::new(1);
    let small = world.node(config);
    world.nodes(4, &NodeConfig::default());
    world.run_for(SECOND);
    assert_eq!(peers(&world, small), 2);
    assert!(world.protocol(small).counters().participants_refused > 0);
}

#[test]
fn participants_that_start_in_one_instant_come_to_announce_themselves_one_after_the_other() {
    const COUNT: u16 = 100;
    seeds::for_each(0..3, |seed| {
        let mut world = World::new(seed);
        let mut config = NodeConfig::default();
        config.limits.participants = COUNT;
        config.limits.matches = 4 * COUNT;
        let nodes = world.nodes(COUNT.into(), &config);
        let dropped = |world: &World| -> u64 {
            let of_one = |&node: &NodeId| world.protocol(node).counters().announcements_dropped;
            nodes.iter().map(of_one).sum()
        };
        world.run_for(5 * SECOND);
        let at_first = dropped(&world);
        assert!(at_first > 0, "the first announcements come together");
        for &node in &nodes {
            assert_eq!(peers(&world, node), usize::from(COUNT) - 1);
        }
        world.run_for(30 * SECOND);
        assert_eq!(dropped(&world), at_first, "the later ones do not");
    });
}

#[test]
fn announcements_come_no_later_than_by_the_period() {
    seeds::for_each(0..20, |seed| {
        let mut world = World::new(seed);
        for _ in 0..seed % 5 {
            world.node_down(NodeConfig::default());
        }
        world.tap();
        let config = NodeConfig::default();
        let timing = config.timing;
        world.node(config);
        let mut last = announcements(&world);
        // The initial announcements come at their own interval, then at least one in each period.
        for _ in 0..timing.announce_initial_count {
            world.run_for(timing.announce_initial_period);
            let so_far = announcements(&world);
            assert!(so_far > last);
            last = so_far;
        }
        for _ in 0..20 {
            world.run_for(timing.announce_period);
            let so_far = announcements(&world);
            assert!((1..=2).contains(&(so_far - last)), "{}", so_far - last);
            last = so_far;
        }
    });
}
