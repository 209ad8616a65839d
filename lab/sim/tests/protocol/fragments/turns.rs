//! Order of transmission of fragments: which samples wait for them, which do not, and what happens to replaced samples.

use std::time::Duration;

use isolane_rtps::{WriteError, limits::STAGED_SAMPLES};
use isolane_sim::{LinkConfig, NodeConfig, Sample, Topic, World, seeds};

use super::{large, padded};
use crate::support::{PATIENCE, SECOND, a_pair, a_pair_in, ms, taken, until_taken, written};

#[test]
fn a_sample_as_critical_as_a_large_one_waits_for_a_fragment_and_not_for_the_rest() {
    for level in [0, 3, 7] {
        let mut world = World::new(1);
        let nodes = world.nodes(2, &NodeConfig::default());
        let (bulk, brake) = (
            large().reliable().keep_all(4).level(level),
            Topic::new("Brake").reliable().keep_all(64).level(level),
        );
        let writers = [
            world.create_writer(nodes[0], &bulk),
            world.create_writer(nodes[0], &brake),
        ];
        let readers = [
            world.create_reader(nodes[1], &bulk),
            world.create_reader(nodes[1], &brake),
        ];
        world.until_matched(&writers[..1], &readers[..1]);
        world.until_matched(&writers[1..], &readers[1..]);
        world.run_for(SECOND);
        world.enqueue(writers[0], [padded(1, 1 << 20)]);
        for value in 1..=10 {
            world.run_for(Duration::from_micros(203));
            world.enqueue(writers[1], [Sample::value(value)]);
        }
        world.run_until("all came", PATIENCE, |world| {
            readers
                .iter()
                .map(|&reader| world.received(reader).len())
                .sum::<usize>()
                == 11
        });
        // Latency bound: 50 µs on the link, and 5 µs for each step: one started before at each end, the sample's own
        // two, and the fragments that the receiver has queued before it.
        let pairs = world
            .written(writers[1])
            .iter()
            .zip(world.received(readers[1]));
        for (sent, came) in pairs {
            let took = came.at.saturating_since(sent.at);
            assert!(took < Duration::from_micros(100), "level {level}: {took:?}");
        }
        let last_small = world.received(readers[1])[9].at;
        assert!(
            last_small < world.received(readers[0])[0].at,
            "the large one takes 4 ms"
        );
    }
}

#[test]
fn a_keep_last_writer_that_writes_faster_than_its_samples_leave_still_sends_whole_ones() {
    for topic in [large().keep_last(1), large().keep_last(1).reliable()] {
        let (mut world, _, writer, reader) = a_pair(&topic);
        // 1 MiB takes 800 steps of 5 µs, which is 4 ms.
        let samples = (1..=60).map(|value| padded(value, 1 << 20));
        world.publish(writer, ms(1), samples);
        world.run_for(2 * SECOND);
        let (taken, written) = (taken(&world, reader, writer), written(&world, writer, 1));
        assert!(taken.len() >= 10, "{} came", taken.len());
        assert!(taken.iter().all(|sample| written.contains(sample)));
        assert_eq!(taken.last(), written.last());
        let ledger = world.writer_ledger(writer);
        assert_eq!(ledger.sent + ledger.evicted_unsent, 60, "{ledger:?}");
    }
}

#[test]
fn a_sample_that_is_pushed_out_before_it_is_repaired_is_given_up_and_counted() {
    seeds::for_each(0..6, |seed| {
        let world = World::new(seed).link(LinkConfig::lossy(0.2));
        let topic = large().keep_last(1).reliable();
        let (mut world, _, writer, reader) = a_pair_in(world, &topic);
        world.publish(writer, ms(3), (1..=40).map(|value| padded(value, 60_000)));
        world.run_until("the last one came", PATIENCE, |world| {
            let last = world.received(reader).last();
            last.is_some_and(|came| came.info.sequence.get() == 40)
        });
        let ledger = world.reader_ledger(reader);
        let done = ledger.accounted + ledger.skipped;
        assert!(ledger.lost > 0 && done == 40, "{ledger:?}");
        assert!(world.writer_ledger(writer).gaps > 0);
    });
}

#[test]
fn best_effort_samples_that_wait_are_replaced_or_refused_as_history_says() {
    // As many samples as fit the memory for waiting samples.
    let (bytes, large) = (200_000, || large().max_payload_bytes(250_000));
    let (mut world, _, writer, reader) = a_pair(&large().keep_last(1));
    for value in 1..=40 {
        world
            .write(writer, padded(value, bytes))
            .expect("the oldest gives way");
    }
    world.run_for(SECOND);
    let staged = u64::from(STAGED_SAMPLES);
    assert_eq!(world.writer_ledger(writer).evicted_unsent, 40 - staged);
    assert_eq!(world.values(reader), Vec::from_iter(41 - staged..=40));

    let (mut world, _, writer, reader) = a_pair(&large().keep_all(64));
    for value in 1..=staged {
        world
            .write(writer, padded(value, bytes))
            .expect("there is room");
    }
    let refused = world.write(writer, padded(99, bytes));
    assert_eq!(refused, Err(WriteError::HistoryFull));
    world.run_for(SECOND);
    world
        .write(writer, padded(staged + 1, bytes))
        .expect("there is room again");
    world.run_for(SECOND);
    assert_eq!(world.values(reader), Vec::from_iter(1..=staged + 1));
}

#[test]
fn a_reader_that_goes_while_a_sample_is_under_way_leaves_balanced_books() {
    for topic in [large().keep_all(4), large().keep_all(4).reliable()] {
        let mut world = World::new(1);
        // Slow enough that the other node can announce the deletion of its reader meanwhile.
        let slow = NodeConfig {
            step: Duration::from_micros(50),
            ..NodeConfig::default()
        };
        let (a, b) = (world.node(slow), world.node(NodeConfig::default()));
        let writer = world.create_writer(a, &topic);
        let reader = world.create_reader(b, &topic);
        world.until_matched(&[writer], &[reader]);
        world.enqueue(writer, [padded(1, 1 << 20), Sample::value(2)]);
        world.run_for(ms(1));
        assert_eq!(world.writer_ledger(writer).sent, 0);
        world.delete_reader(reader);
        world.run_for(SECOND);
        let ledger = world.writer_ledger(writer);
        assert_eq!(ledger.unmatched, 2, "{ledger:?}");

        let reader = world.create_reader(b, &topic);
        world.until_matched(&[writer], &[reader]);
        world.run_for(SECOND);
        world.enqueue(writer, [padded(3, 5_000)]);
        world.run_for(SECOND);
        assert_eq!(world.values(reader), [3]);
    }
}

#[test]
fn a_reliable_reader_that_joins_while_a_sample_is_under_way_gets_all_of_it() {
    let (mut world, (_, b), writer, first) = a_pair(&large().keep_all(4).reliable());
    let second = world.create_reader(b, &large().keep_all(4).reliable());
    world.enqueue(writer, [padded(1, 1 << 20)]);
    world.run_until("both have it", PATIENCE, |world| {
        [first, second]
            .iter()
            .all(|&reader| world.received(reader).len() == 1)
    });
    assert_eq!(taken(&world, second, writer), written(&world, writer, 1));
}

#[test]
fn a_writer_that_is_deleted_in_the_middle_of_a_sample_is_gone() {
    for topic in [large().keep_all(4), large().keep_all(4).reliable()] {
        let (mut world, (a, _), writer, reader) = a_pair(&topic);
        world.enqueue(writer, [padded(1, 1 << 20)]);
        world.run_for(ms(1));
        world.delete_writer(writer);
        world.run_for(SECOND);
        let another = world.create_writer(a, &topic);
        world.until_matched(&[another], &[reader]);
        world.enqueue(another, [padded(2, 300_000)]);
        world.run_for(SECOND);
        assert_eq!(world.values(reader), [2]);
    }
}

#[test]
fn a_slow_user_of_a_keep_all_reader_loses_nothing() {
    seeds::for_each(0..4, |seed| {
        let world = World::new(seed).link(LinkConfig::lossy(0.05));
        let topic = large().reliable().keep_all(2);
        let (mut world, _, writer, reader) = a_pair_in(world, &topic);
        world.set_take(reader, isolane_sim::Take::OneEvery(ms(50)));
        world.enqueue(writer, (1..=30).map(|value| padded(value, 30_000)));
        until_taken(&mut world, "all were taken", reader, 30);
        assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
    });
}
