//! Datagrams of a writer with filters for some readers: readers that get the same samples share datagrams, and samples
//! that leave in one datagram still do.

use isolane_rtps::{Priority, limits::BATCH_BYTES};
use isolane_sim::{LinkConfig, NodeConfig, ReaderHandle, Sample, Topic, World, seeds};
use isolane_wire::level::Level;

use crate::{
    filtered_writer::{all_accounted, evaluating, multiples},
    support::{SECOND, a_pair, ms, values},
};

/// Number of datagrams for readers on separate nodes. Each number in `wishes` is a reader whose filter passes multiples
/// of it; 1 means no filter.
fn datagrams(topic: &Topic, wishes: &[u64], count: u64) -> usize {
    let mut world = World::new(1);
    let nodes = world.nodes(1 + wishes.len(), &NodeConfig::default());
    let writer = evaluating(&mut world, nodes[0], topic);
    let readers: Vec<ReaderHandle> = wishes
        .iter()
        .zip(&nodes[1..])
        .map(|(&of, &node)| match of {
            1 => world.create_reader(node, topic),
            _ => world.create_reader_with(node, topic, multiples(of)),
        })
        .collect();
    world.until_matched(&[writer], &readers);
    world.run_for(SECOND);
    world.tap();
    let before = world.tapped().len();
    world.publish(writer, ms(1) / 10, values(count));
    for (&reader, of) in readers.iter().zip(wishes) {
        all_accounted(&mut world, reader, count);
        assert_eq!(world.reader_ledger(reader).delivered, count / of);
        assert_eq!(world.reader_ledger(reader).lost, 0);
    }
    world.tapped().len() - before
}

fn batched() -> Topic {
    let topic = Topic::new("Numbers").reliable().keep_all(256);
    topic.qos(|qos| qos.latency_budget = ms(8).into())
}

#[test]
fn one_filtered_reader_does_not_end_that_samples_leave_together() {
    let together = datagrams(&batched(), &[1, 1], 960);
    let separate = datagrams(&batched(), &[1, 1, 3], 960);
    assert!(separate < 4 * together, "{separate} and {together}");
    assert!(separate < 960 / 4, "{separate}");
}

#[test]
fn readers_of_the_same_filter_share_a_datagram() {
    let one = datagrams(&batched(), &[1, 5], 960);
    let many = datagrams(&batched(), &[1, 5, 5, 5, 5, 5], 960);
    // Each reader sends its own acknowledgements.
    let acknowledgements = 6 * (960 / 32);
    assert!(many < one + acknowledgements, "{many} and {one}");
}

#[test]
fn who_wants_nothing_of_a_run_is_sent_nothing_of_it() {
    // Twelve readers want none of these samples, and one wants all.
    let wishes: Vec<u64> = (0..12).map(|number| 10_000 + number).chain([1]).collect();
    let count = datagrams(&batched(), &wishes, 480);
    // This includes the GAPs for each of the twelve, and their acknowledgements.
    assert!(count < 480, "{count}");
}

#[test]
fn parts_reach_everyone_whatever_the_link_loses_and_however_many_addresses_there_are() {
    seeds::for_each(0..5, |seed| {
        let mut world = World::new(seed).link(LinkConfig::lossy(0.1));
        let nodes = world.nodes(20, &NodeConfig::default());
        let writer = evaluating(&mut world, nodes[0], &batched());
        let mut readers: Vec<(ReaderHandle, u64)> = Vec::new();
        for (number, &node) in nodes[1..].iter().enumerate() {
            // More readers than one step can send to: the last ones are served separately.
            let of = 1 + number as u64 % 7;
            let reader = match of {
                1 => world.create_reader(node, &batched()),
                _ => world.create_reader_with(node, &batched(), multiples(of)),
            };
            readers.push((reader, of));
        }
        let all: Vec<ReaderHandle> = readers.iter().map(|(reader, _)| *reader).collect();
        world.until_matched(&[writer], &all);
        world.publish(writer, ms(1), values(420));
        for (reader, of) in readers {
            all_accounted(&mut world, reader, 420);
            let ledger = world.reader_ledger(reader);
            assert_eq!(
                (ledger.delivered, ledger.lost),
                (420 / of, 0),
                "seed {seed}, {of}"
            );
        }
    });
}

#[test]
fn a_best_effort_reader_next_to_filtered_ones_gets_all_in_order() {
    let mut world = World::new(2);
    let nodes = world.nodes(4, &NodeConfig::default());
    let writer = evaluating(&mut world, nodes[0], &batched());
    let best_effort = Topic::new("Numbers").keep_last(64);
    let best_effort = best_effort.qos(|qos| qos.latency_budget = ms(8).into());
    let readers = [
        world.create_reader_with(nodes[1], &batched(), multiples(3)),
        world.create_reader(nodes[2], &best_effort),
        world.create_reader_with(nodes[3], &batched(), multiples(4)),
    ];
    world.until_matched(&[writer], &readers);
    world.publish(writer, ms(1), values(300));
    world.run_for(SECOND);
    let ledger = world.reader_ledger(readers[1]);
    assert_eq!(
        (ledger.delivered, ledger.lost, ledger.duplicates),
        (300, 0, 0),
        "{ledger:?}"
    );
}

#[test]
fn a_few_samples_of_a_large_batch_ask_for_no_large_frame() {
    let topic = Topic::new("Traces").reliable().keep_all(512).level(3);
    let topic = topic.max_payload_bytes(8_000).max_datagram_bytes(8_000);
    let topic = topic.qos(|qos| qos.latency_budget = (10 * SECOND).into());
    let (mut world, (a, _), writer, reader) = a_pair(&topic);
    let priority = Priority::of_data(Level::clamp(3));
    let id = world.writer_id(writer);
    let asked = |world: &mut World, count: u64| {
        for sample in values(count) {
            world.write(writer, sample).expect("it has room");
        }
        world.with_protocol(a, |protocol, _| {
            protocol.flush(id);
            protocol.next_bytes(priority)
        })
    };
    let few = asked(&mut world, 3);
    assert_eq!(few, BATCH_BYTES);
    world.run_for(SECOND);
    let many = asked(&mut world, 60);
    assert!(many > BATCH_BYTES && many <= 8_000, "{many}");
    world.run_for(SECOND);
    assert_eq!(world.reader_ledger(reader).delivered, 63);
    assert_eq!(asked(&mut world, 3), BATCH_BYTES, "again");
}

#[test]
fn what_is_left_of_a_run_asks_for_no_larger_frame_than_it_needs() {
    let topic = Topic::new("Numbers").reliable().keep_all(64).level(3);
    let topic = topic.max_payload_bytes(8_000).max_datagram_bytes(8_000);
    let batched = topic.clone();
    let batched = batched.qos(|qos| qos.latency_budget = (10 * SECOND).into());
    // Neither the next sample nor a further batched one carries the number of filtered samples.
    let next = [Sample::value(4).padded(6_000), Sample::value(4)];
    for (topic, next) in [topic, batched].into_iter().zip(next) {
        let mut world = World::new(1);
        let nodes = world.nodes(3, &NodeConfig::default());
        let writer = evaluating(&mut world, nodes[0], &topic);
        let readers = [
            world.create_reader(nodes[1], &topic),
            world.create_reader_with(nodes[2], &topic, multiples(2)),
        ];
        world.until_matched(&[writer], &readers);
        world.run_for(SECOND);
        for sample in values(3).chain([next]) {
            world.write(writer, sample).expect("it has room");
        }
        let (id, priority) = (world.writer_id(writer), Priority::of_data(Level::clamp(3)));
        let asked = world.with_protocol(nodes[0], |protocol, now| {
            protocol.flush(id);
            let mut buffer = [0; 8_000];
            let work = protocol.poll_transmit(now, priority, &mut buffer);
            assert!(work.is_some_and(|work| work.bytes > 0));
            protocol.next_bytes(priority)
        });
        assert_eq!(asked, BATCH_BYTES);
        all_accounted(&mut world, readers[0], 4);
        all_accounted(&mut world, readers[1], 4);
    }
}
