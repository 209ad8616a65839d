//! Coherent sets of several writers.

use isolane_sim::{LinkConfig, NodeConfig, Partition, Random, Sample, Take, World, seeds};

use super::{BOTH_OF_GROUP, COHERENT_GROUP, Groups, alike, groups, reliable};
use crate::support::{PATIENCE, SECOND, ms};

fn two_topics(world: World, presentation: isolane_wire::qos::Presentation) -> Groups {
    let topics = ["Left", "Right"].map(|name| alike(reliable(name).keep_all(64)));
    groups(world, presentation, &topics)
}

#[test]
fn a_set_of_two_writers_is_seen_at_both_readers_at_once() {
    for presentation in [COHERENT_GROUP, BOTH_OF_GROUP] {
        let mut group = two_topics(World::new(1), presentation);
        group.begin_set();
        group.enqueue(0, [Sample::value(1), Sample::value(2)]);
        group.enqueue(1, [Sample::value(3)]);
        group.world.run_for(SECOND);
        assert_eq!(group.values(), [vec![], vec![]]);
        group.end_set();
        group.world.run_for(ms(20));
        assert_eq!(group.values(), [vec![1, 2], vec![3]]);
        assert_eq!(group.whole_sets(&[vec![(0, 1), (0, 2), (1, 3)]]), 1);
    }
}

#[test]
fn a_writer_without_a_part_in_a_set_holds_nothing_up() {
    let mut group = two_topics(World::new(1), COHERENT_GROUP);
    for set in 0..5 {
        group.write_set([(0, Sample::value(set))]);
        group.world.run_for(ms(20));
        assert_eq!(group.values()[0].len() as u64, set + 1);
    }
    let ledger = group.ledger(1);
    assert_eq!((ledger.set_ends, ledger.delivered), (5, 0));
}

/// Random sets over both writers.
fn sets_of(chance: &mut Random, count: u64) -> Vec<Vec<(usize, u64)>> {
    let mut next = 0;
    let mut sample = |chance: &mut Random| {
        next += 1;
        (chance.below(2) as usize, next)
    };
    let mut set = |_| {
        let size = 1 + chance.below(6);
        (0..size).map(|_| sample(chance)).collect()
    };
    (0..count).map(&mut set).collect()
}

#[test]
fn over_bad_links_every_set_of_a_group_comes_whole_at_both_readers_at_once() {
    seeds::for_each(0..60, |seed| {
        let world = World::new(seed).link(LinkConfig::lossy(0.2));
        let presentation = [COHERENT_GROUP, BOTH_OF_GROUP][seed as usize % 2];
        let mut group = two_topics(world, presentation);
        let mut chance = Random::new(seed);
        let sets = sets_of(&mut chance, 12);
        for set in &sets {
            group.write_set(
                set.iter()
                    .map(|&(writer, value)| (writer, Sample::value(value))),
            );
            group.world.run_for(ms(chance.below(12)));
        }
        let of_reader = |reader: usize| -> Vec<u64> {
            let samples = sets.iter().flatten().filter(|&&(of, _)| of == reader);
            samples.map(|&(_, value)| value).collect()
        };
        let all = [of_reader(0), of_reader(1)];
        let readers = group.readers.clone();
        group.world.run_until("all came", PATIENCE, |world| {
            (0..2).all(|nth| world.values(readers[nth]) == all[nth])
        });
        assert_eq!(group.whole_sets(&sets), sets.len(), "seed {seed}");
    });
}

#[test]
fn what_is_missing_at_one_reader_is_dropped_at_both() {
    let dropped = seeds::for_each(0..60, |seed| {
        let world = World::new(seed).link(LinkConfig::lossy(0.3));
        let topic = |name| {
            let topic = reliable(name).keyed().max_instances(4);
            (topic.clone().keep_last(2), topic.keep_last(60))
        };
        let mut group = groups(world, COHERENT_GROUP, &[topic("Left"), topic("Right")]);
        let mut chance = Random::new(seed);
        let sets = sets_of(&mut chance, 25);
        for set in &sets {
            let samples: Vec<_> = set
                .iter()
                .map(|&(writer, value)| (writer, Sample::keyed(chance.below(3) as u32, value)))
                .collect();
            group.write_set(samples);
            group.world.run_for(ms(2));
        }
        let (writers, readers) = (group.writers.clone(), group.readers.clone());
        group.world.run_until("all is settled", PATIENCE, |world| {
            writers.iter().zip(&readers).all(|(&writer, &reader)| {
                let (written, read) = (world.writer_ledger(writer), world.reader_ledger(reader));
                written.written == read.accounted + read.skipped && read.in_sets == 0
            })
        });
        group.whole_sets(&sets);
        let ledgers = readers
            .iter()
            .map(|&reader| group.world.reader_ledger(reader));
        ledgers.map(|ledger| ledger.incomplete).sum::<u64>()
    });
    assert!(dropped.iter().sum::<u64>() > 0, "none was ever torn");
}

#[test]
fn a_set_waits_for_the_slower_of_two_users() {
    let mut group = two_topics(World::new(1), COHERENT_GROUP);
    let slow = group.readers[1];
    group.world.set_take(slow, Take::OnRequest);
    for set in 0..16 {
        let values = (0..4).map(|nth| set * 4 + nth);
        group.write_set(values.map(|value| (1, Sample::value(value))));
        group.world.run_for(ms(5));
    }
    group.write_set([(0, Sample::value(100)), (1, Sample::value(101))]);
    group.world.run_for(SECOND);
    assert_eq!(group.values()[0], [], "the other has no room for its part");
    assert_eq!(group.world.take(slow, 1), 1);
    group.world.run_for(ms(20));
    assert_eq!(group.values()[0], [100]);
    while group.world.take(slow, 99) > 0 {}
    assert_eq!(group.values()[1].last(), Some(&101));
}

#[test]
fn a_writer_that_goes_within_a_set_takes_the_others_part_along() {
    let mut group = two_topics(World::new(1), COHERENT_GROUP);
    group.begin_set();
    group.enqueue(0, [Sample::value(1)]);
    group.enqueue(1, [Sample::value(2)]);
    group.world.delete_writer(group.writers[1]);
    group.end_set();
    group.world.run_for(SECOND);
    group.write_set([(0, Sample::value(3))]);
    group.world.run_for(SECOND);
    assert_eq!(group.world.values(group.readers[0]), [3]);
    assert_eq!(group.ledger(0).incomplete, 1);
}

#[test]
fn a_host_that_dies_within_a_set_takes_it_along_and_a_restarted_one_begins_anew() {
    let mut group = two_topics(World::new(1), COHERENT_GROUP);
    group.begin_set();
    for writer in group.writers.clone() {
        group.world.enqueue(writer, [Sample::value(1)]);
    }
    group.world.run_for(ms(20));
    group.world.restart(group.nodes.0);
    group.world.run_for(20 * SECOND);
    assert_eq!(group.values(), [vec![], vec![]]);
    let publisher = group.world.create_publisher(group.nodes.0, COHERENT_GROUP);
    let topics = ["Left", "Right"].map(|name| reliable(name).keep_all(64));
    let writers = topics.map(|topic| group.world.create_writer_in(publisher, &topic));
    for (&writer, &reader) in writers.iter().zip(&group.readers.clone()) {
        group.world.until_matched(&[writer], &[reader]);
    }
    group.world.begin_set(publisher);
    for writer in writers {
        group.world.enqueue(writer, [Sample::value(2)]);
    }
    group.world.end_set(publisher).unwrap();
    group.world.run_for(SECOND);
    assert_eq!(group.values(), [vec![2], vec![2]]);
}

#[test]
fn after_a_cut_sets_go_on() {
    let mut group = two_topics(World::new(1), COHERENT_GROUP);
    let (a, b) = group.nodes;
    group.world.partition(Partition::between(&[a], &[b]));
    for set in 1..=5 {
        group.write_set([(0, Sample::value(set)), (1, Sample::value(set))]);
        group.world.run_for(ms(100));
    }
    assert_eq!(group.values(), [vec![], vec![]]);
    group.world.heal();
    group.world.run_for(3 * SECOND);
    assert_eq!(group.values(), [vec![1, 2, 3, 4, 5], vec![1, 2, 3, 4, 5]]);
}

#[test]
fn a_reader_that_joins_within_a_set_makes_no_part_of_it_seen() {
    let topic = |name: &str| reliable(name).keep_all(64);
    let mut group = groups(World::new(1), COHERENT_GROUP, &[alike(topic("Left"))]);
    let right = group
        .world
        .create_writer_in(group.publisher, &topic("Right"));
    group.writers.push(right);
    group.write_set([(0, Sample::value(1)), (1, Sample::value(2))]);
    group.world.run_for(SECOND);
    assert_eq!(
        group.values(),
        [vec![1]],
        "samples without a reader are not waited for"
    );
    group.begin_set();
    group.world.enqueue(right, [Sample::value(3)]);
    group.world.run_for(ms(20));
    let reader = group
        .world
        .create_reader_in(group.subscriber, &topic("Right"));
    group.readers.push(reader);
    group.world.until_matched(&[right], &[reader]);
    group.world.enqueue(right, [Sample::value(4)]);
    group.enqueue(0, [Sample::value(5)]);
    group.end_set();
    group.world.run_for(SECOND);
    assert_eq!(group.values(), [vec![1], vec![]]);
    group.write_set([(0, Sample::value(6)), (1, Sample::value(7))]);
    group.world.run_for(SECOND);
    assert_eq!(group.values(), [vec![1, 6], vec![7]]);
}

#[test]
fn readers_of_two_subscribers_do_not_wait_for_each_other() {
    let mut group = two_topics(World::new(1), COHERENT_GROUP);
    let node = group.world.node(NodeConfig::default());
    let other = group.world.create_subscriber(node, COHERENT_GROUP);
    let reader = group
        .world
        .create_reader_in(other, &reliable("Left").keep_all(64));
    group.world.run_for(SECOND);
    let cut = Partition::between(&[group.nodes.0], &[group.nodes.1]);
    group.world.partition(cut);
    group.write_set([(0, Sample::value(1)), (1, Sample::value(2))]);
    group.world.run_for(SECOND);
    assert_eq!(group.world.values(reader), [1]);
    assert_eq!(group.values(), [vec![], vec![]]);
}
