//! Samples of a type without bounds: most are short, and long ones share memory.

use isolane_sim::{LinkConfig, Take, Topic, World, seeds};

use super::padded;
use crate::support::{SECOND, a_pair, a_pair_in, ms, taken, two_nodes, until_taken, written};

/// Topic whose long samples share memory, enough for four of maximum size, or under KEEP_ALL for 32.
fn unbounded() -> Topic {
    Topic::new("Unbounded")
        .max_payload_bytes(64 << 10)
        .shares_long()
}

const LONG: u32 = 60_000;

#[test]
fn short_and_long_samples_arrive_once_and_in_order_though_memory_is_for_some_long_ones() {
    for loss in [0.0, 0.1] {
        seeds::for_each(0..4, |seed| {
            let world = World::new(seed).link(LinkConfig::lossy(loss));
            let topic = unbounded().reliable().keep_all(64);
            let (mut world, _, writer, reader) = a_pair_in(world, &topic);
            let sizes = [0, LONG, 100, LONG, LONG, 20_000, LONG, 1_500, LONG, LONG];
            let sizes = sizes.into_iter().cycle().take(60);
            world.enqueue(
                writer,
                (1..).zip(sizes).map(|(value, bytes)| padded(value, bytes)),
            );
            until_taken(&mut world, "all came", reader, 60);
            assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
            // There is a slot for each sample.
            assert!(world.refused(writer) > 0, "memory was full for a while");
        });
    }
}

#[test]
fn an_acknowledgement_is_demanded_before_long_samples_have_used_their_memory_up() {
    let topic = unbounded().reliable().keep_all(256);
    for (bytes, count) in [(8_000, 400), (LONG, 60)] {
        let (mut world, _, writer, reader) = a_pair(&topic);
        let begin = world.elapsed();
        world.enqueue(writer, (1..=count).map(|value| padded(value, bytes)));
        until_taken(&mut world, "all came", reader, count as usize);
        let took = world.elapsed() - begin;
        assert!(
            took < ms(100),
            "{bytes} bytes: {took:?}, heartbeats are 20 ms apart"
        );
    }
}

#[test]
fn a_keep_all_reader_that_does_not_take_long_samples_loses_none() {
    let topic = unbounded().reliable().keep_all(64);
    let (mut world, _, writer, reader) = a_pair(&topic);
    world.set_take(reader, Take::OnRequest);
    world.enqueue(writer, (1..=80).map(|value| padded(value, LONG)));
    for _ in 0..160 {
        world.run_for(ms(100));
        world.take(reader, 1);
    }
    assert_eq!(world.values(reader), Vec::from_iter(1..=80));
    let ledger = world.reader_ledger(reader);
    assert_eq!((ledger.evicted, ledger.rejected, ledger.lost), (0, 0, 0));
}

#[test]
fn under_keep_last_the_oldest_give_way_where_long_samples_have_used_their_memory_up() {
    let topic = unbounded().reliable().keep_last(16);
    let (mut world, _, writer, reader) = a_pair(&topic);
    world.set_take(reader, Take::OnRequest);
    for value in 1..=10 {
        world.enqueue(writer, [padded(value, LONG)]);
        world.run_for(SECOND);
    }
    assert_eq!(world.reader_ledger(reader).available, 4);
    assert_eq!(world.reader_ledger(reader).evicted, 6);
    world.take(reader, 99);
    assert_eq!(world.values(reader), [7, 8, 9, 10]);
    // Short samples do not use the shared memory.
    world.enqueue(writer, (11..=26).map(|value| padded(value, 0)));
    world.run_for(SECOND);
    assert_eq!(world.reader_ledger(reader).available, 16);
}

#[test]
fn a_late_joiner_gets_the_long_samples_that_a_keep_last_writer_has_memory_for() {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    let topic = unbounded().reliable().keep_last(16).transient_local();
    let writer = world.create_writer(a, &topic);
    for value in 1..=10 {
        assert!(world.write(writer, padded(value, LONG)).is_ok());
    }
    assert_eq!(world.writer_ledger(writer).refused, 0);
    let reader = world.create_reader(b, &topic);
    world.until_matched(&[writer], &[reader]);
    world.run_for(5 * SECOND);
    let values = world.values(reader);
    assert!(
        (3..=4).contains(&values.len()) && values.last() == Some(&10),
        "{values:?}"
    );
}

#[test]
fn a_best_effort_reader_rejects_what_it_has_no_memory_for() {
    let topic = unbounded().keep_all(64);
    let (mut world, _, writer, reader) = a_pair(&topic);
    world.set_take(reader, Take::OnRequest);
    for value in 1..=40 {
        world.enqueue(writer, [padded(value, LONG)]);
        world.run_for(SECOND);
    }
    let ledger = world.reader_ledger(reader);
    // A sample takes 59 of 2,048 pages.
    assert_eq!((ledger.available, ledger.rejected), (34, 6), "{ledger:?}");
    world.take(reader, 99);
    world.enqueue(writer, [padded(41, LONG)]);
    world.run_for(SECOND);
    assert_eq!(world.reader_ledger(reader).available, 1);
}
