//! TIME_BASED_FILTER: at most one sample of an instance is delivered in each separation, and finally the last one (DDS
//! 1.4 §2.2.3.12).

use std::{collections::BTreeMap, time::Duration};

use isolane_rtps::ChangeKind;
use isolane_sim::{
    LinkConfig, Random, ReaderHandle, Sample, Take, Topic, World, WriterHandle, seeds,
};
use isolane_wire::time::Instant;

use crate::support::{PATIENCE, SECOND, a_pair_of, ms, two_nodes, values};

const SEPARATION: Duration = ms(50);

fn reliable() -> Topic {
    Topic::new("Filtered").reliable().keep_all(16)
}

fn filtering(topic: Topic) -> Topic {
    topic.qos(|qos| qos.time_based_filter = SEPARATION.into())
}

/// A writer without a filter, and a reader with the filter.
fn a_filtered_pair(mut world: World, topic: &Topic) -> (World, WriterHandle, ReaderHandle) {
    let (a, b) = two_nodes(&mut world);
    let writer = world.create_writer(a, topic);
    let reader = world.create_reader(b, &filtering(topic.clone()));
    world.until_matched(&[writer], &[reader]);
    (world, writer, reader)
}

/// Each two samples of an instance were seen that far apart, by the time they could be taken.
fn assert_apart(world: &World, reader: ReaderHandle) {
    let mut seen = BTreeMap::<u32, Instant>::new();
    for received in world.received(reader) {
        let Some(sample) = received.sample().filter(|it| it.kind == ChangeKind::Alive) else {
            continue;
        };
        if let Some(before) = seen.insert(sample.key, received.at) {
            let apart = received.at.saturating_since(before);
            assert!(apart >= SEPARATION, "seed {}: {apart:?}", world.seed());
        }
    }
}

#[test]
fn a_best_effort_reader_sees_one_sample_in_each_separation() {
    for view in [false, true] {
        let topic = Topic::new("Filtered").keep_last(4);
        let mut world = World::new(1);
        let (a, b) = two_nodes(&mut world);
        let writer = world.create_writer(a, &topic);
        let reader = match view {
            false => world.create_reader(b, &filtering(topic)),
            true => world.create_view_reader(b, &filtering(topic)),
        };
        world.until_matched(&[writer], &[reader]);
        world.publish(writer, ms(10), values(100));
        world.run_for(2 * SECOND);
        assert_apart(&world, reader);
        let ledger = world.reader_ledger(reader);
        assert_eq!((ledger.delivered, ledger.time_filtered), (20, 80), "{view}");
    }
}

#[test]
fn a_reliable_reader_ends_with_the_last_value_and_asks_for_nothing_again() {
    let (mut world, writer, reader) = a_filtered_pair(World::new(1), &reliable());
    world.publish(writer, ms(10), values(98));
    world.run_for(2 * SECOND);
    assert_apart(&world, reader);
    assert_eq!(world.values(reader).last(), Some(&98));
    let received = world.received(reader);
    let [.., before, last] = received else {
        panic!("more than one came")
    };
    let apart = last.at.saturating_since(before.at);
    assert!(
        apart < SEPARATION + ms(1),
        "it was kept back for longer: {apart:?}"
    );
    let ledger = world.reader_ledger(reader);
    assert_eq!(ledger.delivered + ledger.time_filtered, 98);
    assert_eq!(world.writer_ledger(writer).repaired, 0);
}

#[test]
fn each_instance_is_filtered_for_itself_and_ends_at_once() {
    let (mut world, writer, reader) = a_filtered_pair(World::new(1), &reliable().keyed());
    let samples = [
        Sample::keyed(1, 10),
        Sample::keyed(2, 20),
        Sample::keyed(1, 11),
        Sample::keyed(2, 21),
        Sample::dispose(2),
    ];
    world.enqueue(writer, samples);
    world.run_for(ms(20));
    assert_eq!(world.values(reader), [10, 20]);
    let end = world.last_of_instance(reader, 2).expect("it came");
    assert_eq!(end.info.kind, ChangeKind::Dispose);
    assert_eq!(world.reader_ledger(reader).held, 1);
    world.run_for(SEPARATION);
    assert_eq!(world.values(reader), [10, 20, 11]);
    let ledger = world.reader_ledger(reader);
    assert_eq!(
        (ledger.time_filtered, ledger.held),
        (1, 0),
        "21 ended with its instance"
    );
}

#[test]
fn what_is_kept_back_waits_for_room_and_takes_none() {
    let topic = reliable().keyed().keep_all(2);
    let (mut world, writer, reader) = a_filtered_pair(World::new(1), &topic);
    world.set_take(reader, Take::OnRequest);
    world.enqueue(writer, [Sample::keyed(1, 1), Sample::keyed(1, 2)]);
    world.run_for(ms(20));
    world.enqueue(writer, [Sample::keyed(2, 3)]);
    world.run_for(4 * SEPARATION);
    let ledger = world.reader_ledger(reader);
    assert_eq!((ledger.available, ledger.held), (2, 1), "{ledger:?}");
    world.take(reader, 2);
    world.run_for(2 * SEPARATION);
    world.take(reader, 2);
    assert_eq!(world.values(reader), [1, 3, 2]);
}

#[test]
fn the_last_value_of_a_writer_that_leaves_is_seen() {
    let (mut world, writer, reader) = a_filtered_pair(World::new(1), &reliable());
    world.enqueue(writer, values(3));
    world.run_for(ms(10));
    world.delete_writer(writer);
    world.run_for(ms(10));
    assert_eq!(world.values(reader), [1, 3]);
    assert_eq!(world.reader_ledger(reader).held, 0);
}

#[test]
fn over_bad_links_separations_are_kept_and_last_values_come() {
    seeds::for_each(0..60, |seed| {
        let mut chance = Random::new(seed);
        let link = LinkConfig {
            jitter: ms(10),
            ..LinkConfig::lossy(0.2)
        };
        let topic = match seed % 2 {
            0 => reliable().keyed(),
            _ => Topic::new("Last").keyed().reliable().keep_last(3),
        };
        let (mut world, writer, reader) = a_filtered_pair(World::new(seed).link(link), &topic);
        let samples = (1..=200).map(|value| Sample::keyed(chance.below(4) as u32, value));
        let samples: Vec<Sample> = samples.collect();
        world.publish(writer, ms(3), samples.clone());
        world.run_until("all is written", PATIENCE, |world| {
            world.unwritten(writer) == 0
        });
        world.run_until("the reader has seen the last values", PATIENCE, |world| {
            (0..4).all(|key| {
                let written = samples.iter().rev().find(|sample| sample.key == key);
                let seen = world.last_of_instance(reader, key);
                written.copied() == seen.and_then(|seen| seen.sample())
            })
        });
        assert_apart(&world, reader);
        assert!(
            world.reader_ledger(reader).time_filtered > 20,
            "seed {seed}"
        );
    });
}

#[test]
fn what_was_kept_back_is_shown_when_the_filter_goes() {
    let topic = reliable().keep_all(1);
    let (mut world, writer, reader) = a_filtered_pair(World::new(1), &topic);
    world.set_take(reader, Take::OnRequest);
    world.enqueue(writer, values(2));
    world.run_for(ms(10));
    let change = |qos: &mut isolane_wire::qos::QosPolicies| {
        qos.time_based_filter = isolane_wire::time::Duration::ZERO;
    };
    world.set_reader_qos(reader, change).unwrap();
    world.run_for(SECOND);
    let ledger = world.reader_ledger(reader);
    assert_eq!((ledger.available, ledger.held), (1, 1), "it waits for room");
    world.take(reader, 1);
    world.run_for(ms(2));
    world.take(reader, 1);
    assert_eq!(world.values(reader), [1, 2]);
}

#[test]
fn of_large_samples_no_more_are_kept_back_than_may_wait() {
    let topic = reliable().keyed().keep_all(16);
    let (mut world, _, writer, reader) = a_pair_of(
        World::new(1),
        &topic,
        &filtering(topic.clone()).max_payload_bytes(1 << 20),
    );
    let twice = |key| [Sample::keyed(key, 1), Sample::keyed(key, 2)];
    world.enqueue(writer, (0..8).flat_map(twice));
    world.run_for(ms(20));
    let ledger = world.reader_ledger(reader);
    assert_eq!(
        (ledger.held, ledger.time_filtered),
        (4, 4),
        "4 MiB: {ledger:?}"
    );
}

#[test]
fn a_writer_that_leaves_an_instance_to_others_takes_nothing_along_that_is_kept_back() {
    let topic = reliable().keyed();
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    let [leaving, staying] = [0, 1].map(|_| world.create_writer(a, &topic));
    let reader = world.create_reader(b, &filtering(topic));
    world.until_matched(&[leaving, staying], &[reader]);
    world.enqueue(leaving, [Sample::keyed(1, 10)]);
    world.run_for(ms(10));
    world.enqueue(staying, [Sample::keyed(1, 11)]);
    world.run_for(ms(10));
    world.enqueue(leaving, [Sample::unregister(1)]);
    world.run_for(SECOND);
    assert_eq!(world.values(reader), [10, 11]);
    let ledger = world.reader_ledger(reader);
    assert_eq!((ledger.unregistered, ledger.time_filtered), (1, 0));
}
