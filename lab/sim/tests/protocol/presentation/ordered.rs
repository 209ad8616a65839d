//! Ordered access: one order for the samples of several writers.

use isolane_sim::{LinkConfig, NodeConfig, Random, Sample, Take, Topic, World, seeds};

use super::{BOTH_OF_GROUP, Groups, ORDERED_GROUP, alike, groups, reliable};
use crate::support::{PATIENCE, SECOND, ms};

fn topics(names: &[&str]) -> Vec<(Topic, Topic)> {
    let topic = |name: &&str| alike(reliable(name).keep_all(64));
    names.iter().map(topic).collect()
}

/// Takes all available samples of a group, in group order.
fn take_all(group: &mut Groups) -> Vec<u64> {
    let mut taken = Vec::new();
    while let Some(reader) = group.world.take_in_order(group.subscriber) {
        let last = group
            .world
            .received(reader)
            .last()
            .expect("it was taken just now");
        taken.push(last.sample().expect("one of ours").value);
    }
    taken
}

#[test]
fn samples_of_several_writers_are_taken_in_the_order_they_were_written() {
    for names in [["Left", "Right", "Middle"], ["Same", "Same", "Same"]] {
        seeds::for_each(0..40, |seed| {
            let world = World::new(seed).link(LinkConfig::lossy(0.2));
            let mut group = Groups::ordered(world, &names);
            let mut chance = Random::new(seed);
            let mut taken = Vec::new();
            for value in 1..=60 {
                let writer = group.writers[chance.below(3) as usize];
                group.world.enqueue(writer, [Sample::value(value)]);
                group.world.run_for(ms(chance.below(4)));
                taken.extend(take_all(&mut group));
            }
            for _ in 0..3_000 {
                group.world.run_for(ms(10));
                taken.extend(take_all(&mut group));
                if taken.len() >= 60 {
                    break;
                }
            }
            assert_eq!(taken, (1..=60).collect::<Vec<u64>>(), "seed {seed}");
        });
    }
}

impl Groups {
    /// Three writers and their readers; a single reader if all have the same topic.
    fn ordered(world: World, names: &[&str]) -> Self {
        if names[0] != names[1] {
            let group = groups(world, ORDERED_GROUP, &topics(names));
            return group.on_request();
        }
        let mut group = groups(world, ORDERED_GROUP, &[]);
        let topic = reliable(names[0]).keep_all(64);
        for _ in names {
            let writer = group.world.create_writer_in(group.publisher, &topic);
            group.writers.push(writer);
        }
        let reader = group.world.create_reader_in(group.subscriber, &topic);
        group.readers.push(reader);
        group.world.until_matched(&group.writers, &group.readers);
        group.on_request()
    }

    fn on_request(mut self) -> Self {
        for &reader in &self.readers {
            self.world.set_take(reader, Take::OnRequest);
        }
        self
    }
}

#[test]
fn a_silent_writer_holds_the_others_up_for_a_question_and_its_answer() {
    let mut group = groups(World::new(1), ORDERED_GROUP, &topics(&["Left", "Right"]));
    group.world.run_for(SECOND);
    for value in 1..=5 {
        group.enqueue(0, [Sample::value(value)]);
        group.world.run_for(ms(5));
        assert_eq!(group.values()[0].len() as u64, value);
    }
    // For a second all messages of the writers are lost, answers included. They are queried again.
    let (a, b) = group.nodes;
    group.world.set_link_between(a, b, LinkConfig::losing(1.0));
    group.enqueue(0, [Sample::value(6)]);
    group.world.run_for(SECOND);
    group.world.set_link_between(a, b, LinkConfig::default());
    group.world.run_for(2 * SECOND);
    assert_eq!(group.values()[0].len(), 6);
}

#[test]
fn a_writer_that_is_gone_is_not_waited_for() {
    let mut group = groups(World::new(1), ORDERED_GROUP, &topics(&["Left", "Right"]));
    group.world.run_for(SECOND);
    group.world.delete_writer(group.writers[1]);
    group.enqueue(0, [Sample::value(1), Sample::value(2)]);
    group.world.run_for(SECOND);
    assert_eq!(group.values()[0], [1, 2]);
}

#[test]
fn sets_and_single_samples_keep_their_order() {
    seeds::for_each(0..40, |seed| {
        let world = World::new(seed).link(LinkConfig::lossy(0.15));
        let mut group = groups(world, BOTH_OF_GROUP, &topics(&["Left", "Right"])).on_request();
        let mut chance = Random::new(seed);
        let mut value = 0;
        let mut taken = Vec::new();
        for _ in 0..25 {
            let is_set = chance.below(2) == 0;
            if is_set {
                group.begin_set();
            }
            for _ in 0..1 + chance.below(3) {
                value += 1;
                let writer = group.writers[chance.below(2) as usize];
                group.world.enqueue(writer, [Sample::value(value)]);
            }
            if is_set {
                group.end_set();
            }
            group.world.run_for(ms(chance.below(10)));
            taken.extend(take_all(&mut group));
        }
        for _ in 0..3_000 {
            group.world.run_for(ms(10));
            taken.extend(take_all(&mut group));
            if taken.len() as u64 >= value {
                break;
            }
        }
        assert_eq!(taken, (1..=value).collect::<Vec<u64>>(), "seed {seed}");
    });
}

#[test]
fn nothing_is_added_while_the_user_looks() {
    let mut group = groups(World::new(1), BOTH_OF_GROUP, &topics(&["Left", "Right"])).on_request();
    group.write_set([(0, Sample::value(1)), (1, Sample::value(2))]);
    group.world.run_for(ms(50));
    assert!(group.world.begin_access(group.subscriber));
    assert!(
        !group.world.begin_access(group.subscriber),
        "it looks already"
    );
    group.write_set([(0, Sample::value(3)), (1, Sample::value(4))]);
    group.world.run_for(SECOND);
    assert_eq!(take_all(&mut group), [1, 2]);
    assert!(group.world.end_access(group.subscriber));
    group.world.run_for(ms(50));
    assert_eq!(take_all(&mut group), [3, 4]);
}

#[test]
fn a_writer_by_itself_is_its_own_group() {
    let mut world = World::new(1);
    let nodes = world.nodes(2, &NodeConfig::default());
    let topic = reliable("Alone")
        .keep_all(16)
        .qos(|qos| qos.presentation = ORDERED_GROUP);
    let writers = [0, 1].map(|_| world.create_writer(nodes[0], &topic));
    let reader = world.create_reader(nodes[1], &topic);
    world.until_matched(&writers, &[reader]);
    for value in 1..=10 {
        world.enqueue(writers[(value % 2) as usize], [Sample::value(value)]);
    }
    world.run_until("all came", PATIENCE, |world| {
        world.values(reader).len() == 10
    });
}

#[test]
fn two_readers_of_one_topic_in_a_group_see_it_both() {
    let mut group = groups(World::new(1), ORDERED_GROUP, &topics(&["Left", "Right"]));
    let topic = reliable("Left").keep_all(64);
    let second = group.world.create_reader_in(group.subscriber, &topic);
    group.world.until_matched(&[group.writers[0]], &[second]);
    for value in 1..=20 {
        let writer = group.writers[usize::from(value > 10)];
        group.world.enqueue(writer, [Sample::value(value)]);
        group.world.run_for(ms(5));
    }
    group.world.run_for(SECOND);
    let first: Vec<u64> = (1..=10).collect();
    assert_eq!(group.world.values(group.readers[0]), first);
    assert_eq!(group.world.values(second), first);
    assert_eq!(
        group.world.values(group.readers[1]),
        (11..=20).collect::<Vec<u64>>()
    );
}
