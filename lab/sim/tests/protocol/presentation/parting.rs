//! Writers and readers that are deleted while a set of their group is not visible yet.

use isolane_rtps::{ChangeKind, InstanceState};
use isolane_sim::{LinkConfig, NodeConfig, Sample, World, seeds};
use isolane_wire::qos::LivelinessKind;

use super::{BOTH_OF_GROUP, COHERENT_GROUP, Groups, alike, groups, reliable};
use crate::support::{PATIENCE, SECOND, ms};

fn three_topics(world: World) -> Groups {
    let topics = ["Left", "Right", "Middle"].map(|name| alike(reliable(name).keep_all(64)));
    groups(world, COHERENT_GROUP, &topics)
}

#[test]
fn a_set_is_dropped_whole_whose_writer_goes_before_its_part_has_come() {
    for ends_before in [false, true] {
        let mut group = three_topics(World::new(1));
        let (a, b) = group.nodes;
        group.begin_set();
        group.enqueue(0, [Sample::value(1)]);
        group.world.run_for(ms(20));
        group.world.set_link_between(a, b, LinkConfig::losing(1.0));
        group.enqueue(1, [Sample::value(2)]);
        if ends_before {
            group.end_set();
        }
        group.world.delete_writer(group.writers[1]);
        if !ends_before {
            group.end_set();
        }
        group.world.run_for(ms(20));
        group.world.set_link_between(a, b, LinkConfig::default());
        group.world.run_for(5 * SECOND);
        assert_eq!(group.values(), [[]; 3], "a part of it was seen");
        let ledger = group.ledger(0);
        assert_eq!((ledger.incomplete, ledger.in_sets), (1, 0));
        group.write_set([(0, Sample::value(3)), (2, Sample::value(4))]);
        group.world.run_for(SECOND);
        assert_eq!(group.values(), [vec![3], vec![], vec![4]]);
    }
}

#[test]
fn whatever_is_lost_when_writers_go_or_die_no_set_is_seen_in_part() {
    let seen = seeds::for_each(0..120, |seed| {
        let mut group = three_topics(World::new(seed));
        let mut sets = Vec::new();
        group.world.set_link(LinkConfig::losing(0.4));
        for set in 0..6 {
            let samples: Vec<_> = (0..3).map(|nth| (nth, 3 * set + nth as u64)).collect();
            group.write_set(
                samples
                    .iter()
                    .map(|&(at, value)| (at, Sample::value(value))),
            );
            sets.push(samples);
            group.world.run_for(ms(1));
        }
        let (node, is_crash) = (group.nodes.0, seed % 2 == 0);
        group.world.run_for(ms(seed / 2 % 8));
        match is_crash {
            true => group.world.crash(node),
            false => {
                let writer = group.writers[seed as usize % 3];
                group.world.delete_writer(writer);
            }
        }
        group.world.run_for(30 * SECOND);
        let whole = group.whole_sets(&sets);
        for &reader in &group.readers {
            let ledger = group.world.reader_ledger(reader);
            assert_eq!(ledger.in_sets, 0, "seed {seed}: {ledger:?}");
            assert_eq!(ledger.delivered, whole as u64, "seed {seed}");
        }
        whole
    });
    assert!(seen.iter().any(|&whole| whole < 6), "all came: {seen:?}");
    assert!(seen.iter().any(|&whole| whole > 0), "none came: {seen:?}");
}

#[test]
fn a_set_that_is_shown_when_its_writer_is_not_alive_any_more_leaves_its_instance_without_writers() {
    let topic = reliable("Sets").keyed().keep_all(8).qos(|qos| {
        qos.liveliness.kind = LivelinessKind::Automatic;
        qos.liveliness.lease = ms(200).into();
    });
    let mut group = groups(World::new(1), COHERENT_GROUP, &[alike(topic)]);
    let reader = group.readers[0];
    let last = |group: &Groups| {
        let last = group.world.last_of_instance(reader, 7);
        last.expect("it came").states()
    };
    group.write_set([(0, Sample::keyed(7, 1))]);
    group.world.run_for(ms(20));
    assert_eq!(last(&group), (ChangeKind::Alive, InstanceState::Alive));
    group.world.begin_access(group.subscriber);
    group.write_set([(0, Sample::keyed(7, 2)), (0, Sample::keyed(7, 3))]);
    group.world.run_for(ms(20));
    group.world.crash(group.nodes.0);
    group.world.run_for(SECOND);
    assert_eq!(group.values(), [[1]], "the user has not looked yet");
    let ended = (ChangeKind::Unregister, InstanceState::NotAliveNoWriters);
    assert_eq!(last(&group), ended);
    group.world.end_access(group.subscriber);
    group.world.run_for(ms(20));
    assert_eq!(group.values(), [[1, 2, 3]]);
    assert_eq!(last(&group), ended);
}

#[test]
fn a_reader_that_is_deleted_takes_no_set_of_the_others_along() {
    let mut group = three_topics(World::new(1));
    group.begin_set();
    for (nth, value) in [(0, 1), (1, 2), (2, 3)] {
        group.enqueue(nth, [Sample::value(value)]);
    }
    group.world.run_for(ms(20));
    group.world.delete_reader(group.readers[1]);
    group.end_set();
    group.world.run_for(SECOND);
    assert_eq!(group.values(), [vec![1], vec![], vec![3]]);
}

#[test]
fn who_waits_for_a_writer_goes_on_when_it_goes() {
    let topics = ["Left", "Right"].map(|name| alike(reliable(name).keep_all(64)));
    let mut group = groups(World::new(1), BOTH_OF_GROUP, &topics);
    let (a, b) = group.nodes;
    group.enqueue(0, [Sample::value(1)]);
    group.world.run_for(SECOND);
    assert_eq!(group.values()[0], [1]);
    // The reader's requests are lost.
    group.world.set_link_between(b, a, LinkConfig::losing(1.0));
    group.enqueue(0, [Sample::value(2)]);
    group.world.run_for(SECOND);
    assert_eq!(group.values()[0], [1]);
    group.world.delete_writer(group.writers[1]);
    let reader = group.readers[0];
    group.world.run_until("it was seen", PATIENCE, |world| {
        world.values(reader) == [1, 2]
    });
}

#[test]
fn a_writer_without_a_part_that_is_deleted_within_a_set_takes_nothing_along() {
    let mut group = three_topics(World::new(1));
    group.write_set([(0, Sample::value(1)), (1, Sample::value(2))]);
    group.world.run_for(SECOND);
    group.begin_set();
    group.enqueue(0, [Sample::value(3)]);
    group.world.run_for(ms(20));
    group.world.delete_writer(group.writers[2]);
    group.world.run_for(SECOND);
    group.enqueue(1, [Sample::value(4)]);
    group.end_set();
    group.world.run_for(SECOND);
    assert_eq!(group.values(), [vec![1, 3], vec![2, 4], vec![]]);
    let ledger = group.ledger(0);
    assert_eq!((ledger.incomplete, ledger.in_sets), (0, 0));
}

#[test]
fn sets_of_a_group_go_on_within_one_participant_when_a_writer_of_it_is_deleted() {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let publisher = world.create_publisher(node, COHERENT_GROUP);
    let subscriber = world.create_subscriber(node, COHERENT_GROUP);
    let topics = ["Left", "Right"].map(|name| reliable(name).keep_all(16));
    let writers = [0, 1].map(|nth: usize| world.create_writer_in(publisher, &topics[nth]));
    let readers = [0, 1].map(|nth: usize| world.create_reader_in(subscriber, &topics[nth]));
    for nth in 0..2 {
        world.until_matched(&[writers[nth]], &[readers[nth]]);
    }
    world.begin_set(publisher);
    world.enqueue(writers[0], [Sample::value(1)]);
    world.run_for(ms(20));
    world.delete_writer(writers[1]);
    world.enqueue(writers[0], [Sample::value(2)]);
    world.end_set(publisher).unwrap();
    world.run_for(SECOND);
    assert_eq!(world.values(readers[0]), [1, 2]);
}
