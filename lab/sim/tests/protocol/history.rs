//! Late joiners: readers that request history get it, others do not.

use std::time::Duration;

use isolane_sim::{
    LinkConfig, NodeConfig, Random, ReaderHandle, Sample, Take, Topic, World, WriterHandle, seeds,
};

use isolane_wire::{
    guid::{EntityId, EntityKind},
    message::Submessage,
};

use crate::{
    peer::{Peer, for_each_submessage},
    submessages::{full_set, late_joiner},
    support::{
        PATIENCE, SECOND, a_pair_in, a_pair_of, ms, taken, two_nodes, until_taken, values, written,
    },
};

/// A writer whose samples 1 to 10 have all been acknowledged, and a node for late joiners.
fn an_old_writer(seed: u64, link: LinkConfig, topic: &Topic) -> (World, WriterHandle, Topic) {
    let (mut world, (a, _), writer, _) = a_pair_in(World::new(seed).link(link), topic);
    world.enqueue(writer, values(10));
    world.run_until("all is acknowledged", PATIENCE, |world| {
        world.protocol(a).all_acknowledged(world.writer_id(writer))
    });
    (world, writer, topic.clone())
}

fn late_reader(world: &mut World, writer: WriterHandle, topic: &Topic) -> ReaderHandle {
    let node = world.node(NodeConfig::default());
    let reader = world.create_reader(node, topic);
    world.run_until("the late reader is matched", PATIENCE, |world| {
        world.matched_writers(reader) == 1 && world.matched_readers(writer) == 2
    });
    reader
}

#[test]
fn a_late_joiner_gets_the_whole_history_of_keep_all() {
    seeds::for_each(0..50, |seed| {
        let topic = Topic::new("All").reliable().transient_local().keep_all(20);
        let (mut world, writer, topic) = an_old_writer(seed, LinkConfig::lossy(0.3), &topic);
        let late = late_reader(&mut world, writer, &topic);
        world.enqueue(writer, (11..=15).map(Sample::value));
        until_taken(&mut world, "the history and what followed came", late, 15);
        assert_eq!(taken(&world, late, writer), written(&world, writer, 1));
        assert_eq!(world.reader_ledger(late).lost, 0);
    });
}

#[test]
fn a_late_joiner_gets_the_last_n_of_each_instance_of_keep_last_n() {
    let replaced: u64 = seeds::for_each(0..200, |seed| {
        let mut chance = Random::new(seed);
        let mut world = World::new(seed).link(LinkConfig::lossy(0.3));
        let (a, b) = two_nodes(&mut world);
        let depth = chance.between(1, 4);
        let topic = Topic::new("Last").reliable().transient_local().keyed();
        let topic = topic.keep_last(depth as u16).max_instances(4);
        let writer = world.create_writer(a, &topic);
        let samples: Vec<_> = (1..=30)
            .map(|value| Sample::keyed(chance.below(4) as u32, value))
            .collect();
        world.publish(writer, ms(1), samples.clone());
        // Some readers join while samples are still being written.
        world.run_for(chance.up_to(ms(60)));
        let late = world.create_reader(b, &topic);
        if chance.chance(0.5) {
            world.set_take(late, Take::OneEvery(chance.up_to(ms(3))));
        }

        let last_of = |key: u32| -> Vec<u64> {
            let of_key = samples.iter().filter(|sample| sample.key == key);
            let values: Vec<_> = of_key.map(|sample| sample.value).collect();
            values[values.len().saturating_sub(depth as usize)..].to_vec()
        };
        let came_of = |world: &World, key: u32| -> Vec<u64> {
            let came = taken(world, late, writer).into_iter();
            let of_key = came.filter(|(_, sample)| sample.key == key);
            of_key.map(|(_, sample)| sample.value).collect()
        };
        world.run_until("the last of each instance came", PATIENCE, |world| {
            (0..4).all(|key| came_of(world, key).ends_with(&last_of(key)))
        });
        world.run_for(SECOND);
        let came = taken(&world, late, writer);
        assert!(came.is_sorted_by_key(|&(sequence, _)| sequence));
        for key in 0..4 {
            assert!(came_of(&world, key).ends_with(&last_of(key)), "seed {seed}");
        }
        30 - came.len() as u64
    })
    .into_iter()
    .sum();
    assert!(replaced > 0, "in some worlds something was replaced");
}

#[test]
fn a_volatile_reader_of_a_transient_local_writer_gets_no_history_and_all_that_follows() {
    seeds::for_each(0..200, |seed| {
        let topic = Topic::new("None").reliable().transient_local().keep_all(20);
        let (mut world, writer, topic) = an_old_writer(seed, LinkConfig::lossy(0.3), &topic);
        let volatile = Topic::new("None").reliable().keep_all(20);
        drop(topic);
        let late = late_reader(&mut world, writer, &volatile);
        world.enqueue(writer, (11..=20).map(Sample::value));
        world.run_until("what followed came", PATIENCE, |world| {
            world.received(late).len() >= 10
        });
        world.run_for(SECOND);
        assert_eq!(taken(&world, late, writer), written(&world, writer, 11));
        let ledger = world.reader_ledger(late);
        assert_eq!((ledger.skipped, ledger.lost), (10, 0));
    });
}

#[test]
fn a_late_reader_of_a_volatile_writer_gets_what_is_written_from_the_match_on() {
    seeds::for_each(0..100, |seed| {
        let topic = Topic::new("Now").reliable().keep_all(20);
        let (mut world, writer, topic) = an_old_writer(seed, LinkConfig::lossy(0.3), &topic);
        let late = late_reader(&mut world, writer, &topic);
        world.enqueue(writer, (11..=20).map(Sample::value));
        world.run_until("what followed came", PATIENCE, |world| {
            world.received(late).len() >= 10
        });
        world.run_for(SECOND);
        assert_eq!(taken(&world, late, writer), written(&world, writer, 11));
        assert_eq!(world.reader_ledger(late).lost, 0);
    });
}

#[test]
fn a_best_effort_reader_gets_no_history() {
    let topic = Topic::new("Effort")
        .reliable()
        .transient_local()
        .keep_all(20);
    let (mut world, writer, _) = an_old_writer(1, LinkConfig::default(), &topic);
    let late = late_reader(&mut world, writer, &Topic::new("Effort"));
    world.run_for(SECOND);
    world.enqueue(writer, [Sample::value(11)]);
    world.run_for(SECOND);
    assert_eq!(world.values(late), [11]);
}

#[test]
fn a_reader_of_keep_last_keeps_the_last_and_counts_those_pushed_out() {
    let topic = Topic::new("Evicted").reliable().keep_last(3);
    let (mut world, _, writer, reader) =
        a_pair_of(World::new(1), &topic.clone().keep_all(64), &topic);
    world.set_take(reader, Take::OnRequest);
    world.enqueue(writer, values(10));
    world.run_for(SECOND);
    world.take(reader, 100);
    assert_eq!(world.values(reader), [8, 9, 10]);
    let ledger = world.reader_ledger(reader);
    assert_eq!((ledger.evicted, ledger.delivered, ledger.lost), (7, 3, 0));
}

#[test]
fn a_writer_of_keep_last_counts_what_was_replaced_before_it_was_sent() {
    let topic = Topic::new("Replaced").reliable().keep_last(2);
    let (mut world, _, writer, reader) =
        a_pair_of(World::new(1), &topic, &topic.clone().keep_all(64));
    world.enqueue(writer, [Sample::value(0)]);
    world.run_for(SECOND);
    // All samples at once, so that the node sends none between two writes.
    world.enqueue(writer, values(10));
    world.run_for(SECOND);
    assert_eq!(world.values(reader), [0, 9, 10]);
    assert_eq!(world.writer_ledger(writer).evicted_unsent, 8);
    assert_eq!(world.reader_ledger(reader).lost, 8);
}

#[test]
fn a_keep_last_writer_refuses_an_instance_only_while_all_places_are_taken() {
    let topic = Topic::new("Instances")
        .reliable()
        .keyed()
        .keep_last(1)
        .max_instances(2);
    let (mut world, _, writer, reader) =
        a_pair_of(World::new(1), &topic, &topic.clone().keep_all(64));
    world.enqueue(
        writer,
        (1..=20).map(|value| Sample::keyed(value as u32, value)),
    );
    assert!(world.refused(writer) > 0);
    until_taken(&mut world, "all were written", reader, 20);
}

#[test]
fn a_durable_keep_all_writer_goes_on_when_its_history_is_full_of_what_all_have_acknowledged() {
    seeds::for_each(0..50, |seed| {
        let topic = Topic::new("Durable").reliable().transient_local();
        let topic = topic.keep_all(8);
        let (mut world, _, writer, reader) =
            a_pair_in(World::new(seed).link(LinkConfig::lossy(0.3)), &topic);
        world.enqueue(writer, values(40));
        until_taken(&mut world, "all came", reader, 40);
        assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
        assert_eq!(world.writer_ledger(writer).replaced, 32);
        assert_eq!(world.reader_ledger(reader).lost, 0);
        // A late joiner gets only the last of them.
        let late = late_reader(&mut world, writer, &topic);
        until_taken(&mut world, "the last came", late, 8);
        assert_eq!(taken(&world, late, writer), written(&world, writer, 33));
    });
}

#[test]
fn what_is_written_while_a_late_joiner_gets_its_history_is_sent_to_it_once() {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    let topic = Topic::new("Busy")
        .reliable()
        .transient_local()
        .keep_last(50);
    let writer = world.create_writer(a, &topic);
    world.enqueue(writer, values(50));
    // Written faster than the node sends the history.
    world.publish(
        writer,
        Duration::from_micros(12),
        (51..=4_000).map(Sample::value),
    );
    let late = world.create_reader(b, &topic);
    world.run_for(SECOND);
    assert_eq!(world.values(late).last(), Some(&4_000));
    let ledger = world.writer_ledger(writer);
    assert!(ledger.history <= 50, "{ledger:?}");
    assert_eq!(world.reader_ledger(late).duplicates, 0);
}

/// Sample 1 of one instance, and then 999 samples of another, of which only the last is kept.
fn with_a_hole() -> impl Iterator<Item = Sample> {
    (1..=1_000).map(|value| Sample::keyed(u32::from(value > 1), value))
}

#[test]
fn a_late_joiner_gets_a_gap_for_a_hole_in_the_history_with_the_samples_behind_it() {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    let topic = Topic::new("Hole").reliable().transient_local().keyed();
    let writer = world.create_writer(a, &topic.clone().keep_last(1));
    world.enqueue(writer, with_a_hole());
    world.run_for(SECOND);
    let late = world.create_reader(b, &topic.keep_all(8));
    world.run_for(SECOND);
    assert_eq!(world.values(late), [1, 1_000]);
    let ledger = world.writer_ledger(writer);
    assert_eq!((ledger.history, ledger.repaired, ledger.gaps), (2, 0, 998));
    let [first, last] = world.received(late) else {
        panic!("two came");
    };
    assert!(last.at.saturating_since(first.at) < ms(1));
}

#[test]
fn one_gap_answers_a_hole_longer_than_an_acknack_can_request() {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let topic = Topic::new("Foreign").reliable().transient_local().keyed();
    let writer = world.create_writer(node, &topic.keep_last(1));
    world.enqueue(writer, with_a_hole());
    world.run_for(SECOND);
    let mut peer = Peer::of(&mut world, node);
    let reader = EntityId::user(2, EntityKind::READER_WITH_KEY);
    peer.announce(&mut world, reader, late_joiner());
    let pair = (reader, world.writer_guid(writer).entity);
    let gaps = |world: &World| {
        let mut gaps = Vec::new();
        for_each_submessage(world, |submessage| {
            if let Submessage::Gap(gap) = submessage {
                gaps.push((gap.start.get(), gap.list.base().get()));
            }
        });
        gaps
    };
    let before = gaps(&world).len();
    peer.acknack(&mut world, pair, full_set(2), 1);
    // Twice if the history was being sent at the same time.
    let announced = gaps(&world).split_off(before);
    assert!((1..=2).contains(&announced.len()), "{announced:?}");
    assert!(
        announced.iter().all(|&announced| announced == (2, 1_000)),
        "{announced:?}"
    );
}
