//! Samples of sets, or of ordered access, that are not delivered: filtered values, and end markers that end no set.

use isolane_rtps::ChangeKind;
use isolane_sim::{Sample, Take, Topic, World};

use super::{COHERENT_TOPIC, Groups, ORDERED_GROUP, alike, groups, reliable};
use crate::support::ms;

/// Filter for small values.
fn wants(payload: &[u8]) -> bool {
    let sample = Sample::parse(ChangeKind::Alive, payload);
    sample.is_some_and(|sample| sample.value < 100)
}

/// A writer of sets, and a reader whose filter passes small values.
fn filtered(requested: &Topic) -> Groups {
    let mut group = groups(World::new(1), COHERENT_TOPIC, &[]);
    let offered = reliable("Sets").keep_all(64).keyed();
    let writer = group.world.create_writer_in(group.publisher, &offered);
    let subscriber = group.subscriber;
    let reader = group
        .world
        .create_filtered_reader_in(subscriber, requested, wants);
    group.world.until_matched(&[writer], &[reader]);
    group.writers.push(writer);
    group.readers.push(reader);
    group
}

#[test]
fn what_is_not_wanted_of_a_set_needs_no_room() {
    let mut group = filtered(&reliable("Sets").keep_all(2).keyed());
    let samples = (1..).zip([1, 2, 200, 201]);
    group.write_set(samples.map(|(key, value)| (0, Sample::keyed(key, value))));
    group.world.run_for(ms(50));
    assert_eq!(group.values(), [[1, 2]]);
    let ledger = group.ledger(0);
    assert_eq!(
        (ledger.content_filtered, ledger.incomplete),
        (2, 0),
        "{ledger:?}"
    );
}

#[test]
fn what_is_not_wanted_of_a_set_pushes_nothing_of_it_out() {
    let mut group = filtered(&reliable("Sets").keep_last(1).keyed().max_instances(1));
    group.write_set([1, 200].map(|value| (0, Sample::keyed(1, value))));
    group.world.run_for(ms(50));
    assert_eq!(group.values(), [[1]]);
    let ledger = group.ledger(0);
    let counts = (ledger.content_filtered, ledger.evicted, ledger.incomplete);
    assert_eq!(counts, (1, 0, 0), "{ledger:?}");
}

/// Adds a writer of another publisher, which writes an instance of the first topic.
fn with_another(group: &mut Groups, topic: &Topic) {
    let other = group.world.create_writer(group.nodes.0, topic);
    let writers = [group.writers[0], other];
    group.world.until_matched(&writers, &[group.readers[0]]);
    group.world.enqueue(other, [Sample::keyed(1, 100)]);
    group.world.run_for(ms(50));
}

#[test]
fn of_a_set_the_end_of_an_instance_that_another_still_writes_is_no_sample() {
    let topic = reliable("Sets").keep_all(16).keyed();
    let offered = topic.qos(|qos| qos.presentation = COHERENT_TOPIC);
    let mut group = groups(World::new(1), COHERENT_TOPIC, &[alike(offered.clone())]);
    with_another(&mut group, &offered);
    group.write_set([(0, Sample::keyed(1, 1)), (0, Sample::unregister(1))]);
    group.world.run_for(ms(50));
    assert_eq!(group.values(), [[100, 1]]);
    let ledger = group.ledger(0);
    let counts = (ledger.unregistered, ledger.in_sets, ledger.incomplete);
    assert_eq!(counts, (1, 0, 0), "{ledger:?}");
}

#[test]
fn in_an_order_the_end_of_an_instance_that_another_still_writes_moves_no_sample() {
    let topic = |name| {
        let keyed = reliable(name).keep_all(16).keyed();
        keyed.qos(|qos| qos.presentation = ORDERED_GROUP)
    };
    let topics = ["Left", "Right"].map(|name| alike(topic(name)));
    let mut group = groups(World::new(1), ORDERED_GROUP, &topics);
    with_another(&mut group, &topics[0].0);
    group.world.take(group.readers[0], 99);
    for &reader in &group.readers {
        group.world.set_take(reader, Take::OnRequest);
    }
    let changes = [
        (0, Sample::keyed(1, 1)),
        (1, Sample::keyed(2, 2)),
        (0, Sample::unregister(1)),
        (1, Sample::keyed(2, 3)),
    ];
    for (writer, change) in changes {
        group.enqueue(writer, [change]);
        group.world.run_for(ms(50));
    }
    let in_order = std::iter::from_fn(|| group.world.take_in_order(group.subscriber));
    let in_order: Vec<_> = in_order.collect();
    let [left, right] = group.readers[..] else {
        panic!("there are two");
    };
    assert!(in_order == [left, right, right]);
    assert_eq!(group.values(), [vec![100, 1], vec![2, 3]]);
    let ledger = group.world.reader_ledger(left);
    assert_eq!((ledger.unregistered, ledger.waiting), (1, 0), "{ledger:?}");
}

#[test]
fn in_an_order_the_end_of_instances_whose_writer_has_gone_comes_after_what_was_seen_before() {
    let topics = ["Left", "Right"].map(|name| alike(reliable(name).keep_all(16).keyed()));
    let mut group = groups(World::new(1), ORDERED_GROUP, &topics);
    let [left, right] = group.readers[..] else {
        panic!("there are two");
    };
    for &reader in &group.readers {
        group.world.set_take(reader, Take::OnRequest);
    }
    group.enqueue(0, [Sample::keyed(1, 1)]);
    group.world.run_for(ms(50));
    assert_eq!(group.world.take(left, 1), 1);
    group.enqueue(1, [Sample::keyed(2, 2)]);
    group.world.run_for(ms(50));
    group.world.delete_writer(group.writers[0]);
    group.world.run_for(ms(50));
    let in_order = std::iter::from_fn(|| group.world.take_in_order(group.subscriber));
    let in_order: Vec<_> = in_order.collect();
    assert!(in_order == [right, left]);
}
