//! BEST_EFFORT: samples arrive at most once and in order, and lost ones are counted.

use isolane_rtps::{ReaderStatus, WriteError};
use isolane_sim::{LinkConfig, ReaderHandle, Sample, Take, Topic, World, WriterHandle, seeds};
use isolane_wire::message::Submessage;

use crate::peer::for_each_submessage;
use crate::support::{SECOND, a_pair, a_pair_of, ms, taken, two_nodes, values, written};

/// Number of samples that a reader of one writer should have counted as lost: the gaps in the received numbers.
fn holes(world: &World, reader: ReaderHandle) -> u64 {
    let numbers = world
        .received(reader)
        .iter()
        .map(|taken| taken.info.sequence.get());
    let numbers: Vec<_> = numbers.collect();
    let holes = numbers
        .windows(2)
        .map(|pair| (pair[1] - pair[0] - 1) as u64);
    holes.sum()
}

#[test]
fn samples_come_at_most_once_and_in_order_and_losses_are_counted_exactly() {
    let lost: u64 = seeds::for_each(0..200, |seed| {
        let mut world = World::new(seed).link(LinkConfig::lossy(0.3));
        let (a, b) = two_nodes(&mut world);
        let topic = Topic::new("Effort");
        let writer = world.create_writer(a, &topic);
        let viewing = world.create_view_reader(b, &topic);
        let caching = world.create_reader(b, &topic);
        world.until_matched(&[writer], &[viewing, caching]);
        world.publish(writer, ms(1), values(100));
        world.run_for(SECOND);
        assert_eq!(world.unwritten(writer), 0);

        let went = written(&world, writer, 1);
        for reader in [viewing, caching] {
            let came = taken(&world, reader, writer);
            assert!(came.iter().all(|sample| went.contains(sample)));
            assert!(
                came.windows(2).all(|pair| pair[0].0 < pair[1].0),
                "seed {seed}"
            );
            let ledger = world.reader_ledger(reader);
            assert_eq!(ledger.lost, holes(&world, reader), "seed {seed}");
            assert_eq!(ledger.skipped, came[0].0 as u64 - 1);
        }
        let ledger = world.writer_ledger(writer);
        assert_eq!((ledger.written, ledger.sent), (100, 100));
        world.reader_ledger(viewing).lost
    })
    .into_iter()
    .sum();
    assert!(lost > 1_000, "{lost} of 20,000 lost at 30 %");
}

#[test]
fn on_a_perfect_link_nothing_is_lost() {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    let topic = Topic::new("Perfect").multicast();
    let writer = world.create_writer(a, &topic);
    let readers = [
        world.create_view_reader(a, &topic),
        world.create_view_reader(b, &topic),
    ];
    world.until_matched(&[writer], &readers);
    world.publish(writer, ms(1), values(100));
    world.run_for(SECOND);
    for reader in readers {
        assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
    }
}

#[test]
fn a_sample_without_a_matched_reader_is_counted_as_unmatched() {
    let mut world = World::new(1);
    let (a, _) = two_nodes(&mut world);
    let writer = world.create_writer(a, &Topic::new("Alone"));
    world.enqueue(writer, values(3));
    world.run_for(SECOND);
    assert_eq!(world.writer_ledger(writer).unmatched, 3);
}

#[test]
fn a_sample_above_the_readers_limit_is_a_counted_rejection_and_no_stop() {
    for (is_reliable, loss) in [(false, 0.0), (true, 0.0), (true, 0.3)] {
        let mut world = World::new(1).link(LinkConfig::losing(loss));
        let (a, b) = two_nodes(&mut world);
        let mut topic = Topic::new("Large").keep_all(8);
        if is_reliable {
            topic = topic.reliable();
        }
        let writer = world.create_writer(a, &topic.clone().max_payload_bytes(256));
        let reader = world.create_reader(b, &topic);
        world.until_matched(&[writer], &[reader]);
        let large = |value: u64| value.is_multiple_of(3);
        let sample = |value| Sample::value(value).padded(if large(value) { 200 } else { 0 });
        world.publish(writer, ms(1), (1..=9).map(sample));
        world.run_for(10 * SECOND);
        assert_eq!(world.values(reader), [1, 2, 4, 5, 7, 8]);
        let ledger = world.reader_ledger(reader);
        assert_eq!((ledger.too_large, ledger.rejected, ledger.lost), (3, 0, 0));
        let statuses = world.reader_statuses(reader);
        assert!(statuses.contains(ReaderStatus::SAMPLE_LOST));
    }
}

#[test]
fn a_sample_above_the_writers_limit_is_refused_with_the_limit() {
    let mut world = World::new(1);
    let (a, _) = two_nodes(&mut world);
    for topic in [Topic::new("Effort"), Topic::new("Reliable").reliable()] {
        let writer = world.create_writer(a, &topic.max_payload_bytes(32));
        let refused = world.write(writer, Sample::value(1).padded(100));
        assert_eq!(refused, Err(WriteError::TooLarge { limit: 32 }));
        assert!(world.write(writer, Sample::value(2)).is_ok());
        let ledger = world.writer_ledger(writer);
        assert_eq!((ledger.written, ledger.refused), (1, 1));
    }
}

#[test]
fn a_full_cache_of_a_best_effort_reader_rejects_and_counts() {
    let topic = Topic::new("Full").keep_all(4);
    let (mut world, _, writer, reader) = a_pair(&topic);
    world.set_take(reader, Take::OnRequest);
    world.publish(writer, ms(1), values(10));
    world.run_for(SECOND);
    world.take(reader, 100);
    assert_eq!(world.values(reader), [1, 2, 3, 4]);
    assert_eq!(world.reader_ledger(reader).rejected, 6);
}

#[test]
fn a_best_effort_reader_of_a_reliable_writer_is_never_waited_for() {
    let mut world = World::new(1).link(LinkConfig::losing(0.5));
    let (a, b) = two_nodes(&mut world);
    let topic = Topic::new("Mixed").reliable().keep_all(2);
    let writer = world.create_writer(a, &topic);
    let effort = world.create_view_reader(b, &Topic::new("Mixed"));
    world.until_matched(&[writer], &[effort]);
    world.enqueue(writer, values(100));
    world.run_for(SECOND);
    assert_eq!(world.unwritten(writer), 0);
    assert!(world.reader_ledger(effort).lost > 0);
    assert_eq!(world.writer_ledger(writer).repaired, 0);
}

/// Number of HEARTBEATs and HEARTBEAT_FRAGs of a writer among all datagrams of a world.
fn heartbeats_of(world: &World, writer: WriterHandle) -> usize {
    let entity = world.writer_guid(writer).entity;
    let mut count = 0;
    for_each_submessage(world, |submessage| {
        let of = match submessage {
            Submessage::Heartbeat(heartbeat) => heartbeat.writer,
            Submessage::HeartbeatFrag(heartbeat) => heartbeat.writer,
            _ => return,
        };
        count += usize::from(of == entity);
    });
    count
}

#[test]
fn a_reliable_writer_sends_heartbeats_only_while_a_reliable_reader_is_matched() {
    // A sample of 600 fragments would also cause HEARTBEAT_FRAGs.
    let topic = Topic::new("Mixed").max_payload_bytes(800_000);
    let samples =
        || (1..=20).map(|value| Sample::value(value).padded(700_000 * (value as u32 % 2)));
    let (mut world, (_, b), writer, best_effort) = a_pair_of(
        World::new(1),
        &topic.clone().reliable().keep_all(64),
        &topic,
    );
    world.tap();
    world.publish(writer, ms(100), samples());
    world.run_for(5 * SECOND);
    assert_eq!(taken(&world, best_effort, writer).len(), 20);
    assert_eq!(heartbeats_of(&world, writer), 0);

    let reliable = world.create_reader(b, &topic.clone().reliable().keep_all(64));
    world.until_matched(&[writer], &[reliable]);
    let before = heartbeats_of(&world, writer);
    world.publish(writer, ms(100), samples());
    world.run_for(5 * SECOND);
    let with = heartbeats_of(&world, writer) - before;
    assert!(with >= 40, "one a sample, and two a large one: {with}");
    assert_eq!(taken(&world, reliable, writer).len(), 20);

    world.delete_reader(reliable);
    world.run_for(SECOND);
    let before = heartbeats_of(&world, writer);
    world.publish(writer, ms(100), samples());
    world.run_for(5 * SECOND);
    assert_eq!(heartbeats_of(&world, writer) - before, 0);
    assert_eq!(taken(&world, best_effort, writer).len(), 60);
}
