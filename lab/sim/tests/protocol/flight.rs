//! Bytes in flight: a KEEP_ALL writer waits for acknowledgements before its history is full.

use isolane_rtps::limits::FLIGHT_BYTES;
use isolane_sim::{NodeConfig, Partition, Sample, Topic, World};

use crate::filtered_writer::{evaluating, multiples};
use crate::support::{PATIENCE, SECOND, ms, taken, written};

const SAMPLE_BYTES: usize = 1_000;

/// Number of samples that are more than the limit, and fewer than the history holds.
const SAMPLES: u64 = 4 * (FLIGHT_BYTES / SAMPLE_BYTES) as u64;

/// Writes to a reader and to one whose acknowledgements are lost for half a second. Returns the number of samples that
/// the first one has in that time; in the end, both have all.
fn received_beside_a_mute_reader(topic: &Topic) -> u64 {
    let mut world = World::new(1);
    let nodes = world.nodes(3, &NodeConfig::default());
    let writer = world.create_writer(nodes[0], topic);
    let readers = [nodes[1], nodes[2]].map(|node| world.create_reader(node, topic));
    world.until_matched(&[writer], &readers);
    world.run_for(SECOND);
    let now = world.elapsed();
    let mute = Partition::one_way(&[nodes[2]], &[nodes[0]]);
    world.partition(mute.during(now..now + ms(500)));
    world.enqueue(
        writer,
        (0..SAMPLES).map(|value| Sample::value(value).padded(SAMPLE_BYTES as u32)),
    );
    world.run_for(ms(400));
    let received = world.reader_ledger(readers[0]).delivered;
    world.run_until("all come", PATIENCE, |world| {
        readers
            .iter()
            .all(|&reader| world.reader_ledger(reader).delivered == SAMPLES)
    });
    for reader in readers {
        assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
    }
    received
}

#[test]
fn a_keep_all_writer_waits_for_a_reader_that_does_not_acknowledge_and_goes_on_afterwards() {
    let topic = Topic::new("Bulk")
        .reliable()
        .max_payload_bytes(SAMPLE_BYTES + 100)
        .keep_all(2 * SAMPLES as u16);
    let received = received_beside_a_mute_reader(&topic);
    let sample = Sample::value(0).padded(SAMPLE_BYTES as u32);
    let limit = FLIGHT_BYTES.div_ceil(sample.payload().len());
    assert_eq!(received, limit as u64);
}

#[test]
fn a_keep_last_writer_does_not_wait() {
    let topic = Topic::new("Bulk")
        .reliable()
        .max_payload_bytes(SAMPLE_BYTES + 100)
        .keep_last(2 * SAMPLES as u16);
    assert_eq!(received_beside_a_mute_reader(&topic), SAMPLES);
}

#[test]
fn a_reader_whose_filter_rejects_all_does_not_hold_the_writer_up() {
    let mut world = World::new(2);
    let nodes = world.nodes(3, &NodeConfig::default());
    let topic = Topic::new("Bulk")
        .reliable()
        .max_payload_bytes(SAMPLE_BYTES + 100)
        .keep_all(2 * SAMPLES as u16);
    let writer = evaluating(&mut world, nodes[0], &topic);
    let none = world.create_reader_with(nodes[1], &topic, multiples(1_000_000));
    let all = world.create_reader(nodes[2], &topic);
    world.until_matched(&[writer], &[none, all]);
    world.run_for(SECOND);
    world.enqueue(
        writer,
        (1..=SAMPLES).map(|value| Sample::value(value).padded(SAMPLE_BYTES as u32)),
    );
    world.run_for(ms(400));
    assert_eq!(world.reader_ledger(all).delivered, SAMPLES);
    let ledger = world.reader_ledger(none);
    assert_eq!((ledger.delivered, ledger.content_filtered), (0, SAMPLES));
    assert_eq!(world.writer_ledger(writer).sent, SAMPLES);
}
