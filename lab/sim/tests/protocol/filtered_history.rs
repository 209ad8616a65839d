//! Samples that a writer withheld because of a filter and has since removed count as content-filtered, never as lost.
//! Samples that it sent, or would have sent, and has removed count as lost, with a filter or without.

use std::time::Duration;

use isolane_sim::{LinkConfig, Partition, Sample, Take, Topic, World, seeds};

use crate::{
    filtered_writer::{
        a_pair, all_accounted, assert_account, assert_withheld, evaluating, multiples,
    },
    support::{PATIENCE, SECOND, ms, two_nodes, values},
};

/// `count` values, written to `instances` instances in turn.
fn in_turn(count: u64, instances: u32) -> impl Iterator<Item = Sample> {
    (1..=count).map(move |value| Sample::keyed(value as u32 % instances, value))
}

#[test]
fn a_keep_last_writer_holds_back_too_and_nothing_of_it_counts_as_lost() {
    let one = Topic::new("Numbers").reliable().keep_last(1);
    for topic in [one.clone(), one.clone().transient_local(), one.keyed()] {
        let (mut world, _, writer, reader) = a_pair(World::new(1), &topic, multiples(100));
        world.publish(writer, ms(2), in_turn(1_000, 7));
        all_accounted(&mut world, reader, 1_000);
        let ledger = world.reader_ledger(reader);
        assert_eq!(
            (ledger.lost, ledger.content_filtered),
            (0, 990),
            "{ledger:?}"
        );
        assert_withheld(&world, writer, (10, 990));
    }
}

#[test]
fn rejected_samples_count_as_content_filtered_and_never_as_lost_whatever_the_link_loses() {
    seeds::for_each(0..20, |seed| {
        let world = World::new(seed).link(LinkConfig::lossy(0.2));
        let topic = Topic::new("Numbers").reliable().keep_last(2).keyed();
        let (mut world, _, writer, reader) = a_pair(world, &topic, multiples(4));
        world.publish(writer, ms(1), in_turn(200, 3));
        all_accounted(&mut world, reader, 200);
        let ledger = world.reader_ledger(reader);
        assert_eq!(ledger.content_filtered, 150, "seed {seed}: {ledger:?}");
        assert_eq!(
            ledger.delivered + ledger.evicted + ledger.lost,
            50,
            "seed {seed}: {ledger:?}"
        );
    });
}

#[test]
fn what_is_pushed_out_while_a_reader_cannot_be_reached_is_lost_as_far_as_it_wanted_it() {
    let topic = Topic::new("Numbers").reliable().keep_last(1);
    let (mut world, (a, b), writer, reader) = a_pair(World::new(2), &topic, multiples(2));
    world.publish(writer, ms(10), values(10));
    all_accounted(&mut world, reader, 10);
    world.partition(Partition::between(&[a], &[b]));
    world.publish(writer, ms(10), (11..=60).map(Sample::value));
    world.run_for(SECOND);
    world.heal();
    all_accounted(&mut world, reader, 60);
    let ledger = world.reader_ledger(reader);
    // Of the 50 samples written meanwhile, 25 passed its filter. The history still has the last of these.
    assert_eq!(
        (ledger.delivered, ledger.content_filtered, ledger.lost),
        (5 + 1, 5 + 25, 24),
        "{ledger:?}"
    );
}

#[test]
fn more_than_can_be_noted_is_sent_and_then_lost_like_anything_else() {
    let topic = Topic::new("Numbers").reliable().keep_last(1);
    let (mut world, (a, b), writer, reader) = a_pair(World::new(3), &topic, multiples(1_000_000));
    world.publish(writer, ms(1), values(10));
    all_accounted(&mut world, reader, 10);
    // Until the reader has acknowledged it as well.
    world.run_for(SECOND);
    world.partition(Partition::between(&[a], &[b]));
    world.publish(writer, ms(1), (11..=1_000).map(Sample::value));
    world.run_for(2 * SECOND);
    let content_filtered = world.writer_ledger(writer).content_filtered;
    assert_eq!(content_filtered, 10 + 256, "one window is noted");
    world.heal();
    all_accounted(&mut world, reader, 1_000);
    let ledger = world.reader_ledger(reader);
    // The last sample arrived, and the reader itself evaluated its filter.
    assert_eq!(
        (ledger.content_filtered, ledger.lost),
        (content_filtered + 1, 1_000 - 1 - content_filtered)
    );
}

#[test]
fn a_late_joiner_counts_a_hole_in_the_history_as_lost_and_rejected_samples_as_filtered() {
    let topic = Topic::new("Numbers").reliable().keep_last(1);
    let topic = topic.keyed().transient_local();
    for loss in [0.0, 0.3] {
        let mut world = World::new(4).link(LinkConfig::lossy(loss));
        let (a, b) = two_nodes(&mut world);
        let writer = evaluating(&mut world, a, &topic);
        // Sample 1 is kept and passes, 2 to 5 are replaced, 6 and 7 are kept and do not pass, 8 passes.
        let written = [
            (1, 2),
            (2, 3),
            (2, 4),
            (2, 6),
            (2, 8),
            (2, 5),
            (3, 7),
            (4, 10),
        ];
        for (key, value) in written {
            let written = world.write(writer, Sample::keyed(key, value));
            assert!(written.is_ok(), "{written:?}");
        }
        world.run_for(SECOND);
        let reader = world.create_reader_with(b, &topic, multiples(2));
        all_accounted(&mut world, reader, 8);
        assert_account(&world, reader, (2, 2, 4));
    }
}

#[test]
fn samples_written_before_a_volatile_reader_came_are_neither_filtered_nor_lost() {
    let topic = Topic::new("Numbers").reliable().keep_all(32);
    let mut world = World::new(6);
    let nodes = world.nodes(3, &Default::default());
    let writer = evaluating(&mut world, nodes[0], &topic);
    // A reader that takes nothing prevents the writer from releasing samples.
    let holder = world.create_reader(nodes[1], &topic.clone().keep_all(1));
    world.set_take(holder, Take::OnRequest);
    world.until_matched(&[writer], &[holder]);
    world.enqueue(writer, values(20));
    world.run_for(SECOND);
    let late = world.create_reader_with(nodes[2], &topic, multiples(3));
    world.until_matched(&[writer], &[holder, late]);
    world.enqueue(writer, (21..=30).map(Sample::value));
    all_accounted(&mut world, late, 10);
    assert_account(&world, late, (4, 6, 0));
}

#[test]
fn what_has_expired_and_was_not_wanted_was_not_lost() {
    let topic = Topic::new("Numbers").reliable().keep_all(64);
    let topic = topic.qos(|qos| qos.lifespan = ms(30).into());
    let (mut world, (a, b), writer, reader) = a_pair(World::new(5), &topic, multiples(3));
    world.enqueue(writer, [Sample::value(3)]);
    all_accounted(&mut world, reader, 1);
    let cut: Duration = ms(200);
    world.partition(Partition::between(&[a], &[b]));
    world.publish(writer, ms(1), (4..=33).map(Sample::value));
    world.run_for(cut);
    world.heal();
    all_accounted(&mut world, reader, 31);
    assert_account(&world, reader, (1, 20, 10));
}

#[test]
fn a_reader_without_a_filter_knows_nothing_of_what_another_does_not_want() {
    // While a reader has not acknowledged that a sample was filtered, the writer's HEARTBEATs begin before its history.
    let topic = Topic::new("Numbers")
        .reliable()
        .keep_last(1)
        .transient_local();
    seeds::for_each(0..10, |seed| {
        let mut world = World::new(seed).link(LinkConfig::lossy(0.1));
        let nodes = world.nodes(4, &Default::default());
        let writer = evaluating(&mut world, nodes[0], &topic);
        let few = world.create_reader_with(nodes[1], &topic, multiples(50));
        let all = world.create_reader(nodes[2], &topic);
        world.until_matched(&[writer], &[few, all]);
        world.publish(writer, ms(3), values(500));
        world.run_for(ms(700));
        let late = world.create_reader(nodes[3], &topic);
        for reader in [few, all] {
            world.run_until("all are accounted for", PATIENCE, |world| {
                let ledger = world.reader_ledger(reader);
                // The first samples may be replaced before any sample arrives.
                ledger.accounted + ledger.skipped == 500
            });
        }
        assert_eq!(
            world.reader_ledger(few).content_filtered,
            490,
            "seed {seed}"
        );
        let ledger = world.reader_ledger(all);
        assert_eq!(ledger.content_filtered, 0);
        world.run_until("the late one has the last", PATIENCE, |world| {
            world.values(late).last() == Some(&500)
        });
    });
}
