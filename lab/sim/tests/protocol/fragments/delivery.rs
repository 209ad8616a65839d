//! Delivery of samples of any size over any link: each arrives as it was written.

use isolane_rtps::limits::{FRAGMENT_BYTES, MAX_DATA_PAYLOAD_BYTES};
use isolane_sim::{LinkConfig, NodeConfig, Sample, World, seeds};

use super::{large, padded};
use crate::support::{
    PATIENCE, SECOND, a_pair, a_pair_in, a_pair_of, ms, taken, two_nodes, until_taken, written,
};

/// Sample sizes around each size at which the encoding changes.
fn sizes() -> Vec<u32> {
    let (whole, fragment) = (MAX_DATA_PAYLOAD_BYTES as u32, u32::from(FRAGMENT_BYTES));
    let mut sizes = vec![0, 4, 64, 1_000, 10_000, 65_536, 1 << 20];
    for edge in [whole, 2 * fragment, 256 * fragment, 257 * fragment] {
        // These are sizes of padding; the rest of a payload takes 20 bytes.
        sizes.extend([edge - 24, edge - 20, edge - 16]);
    }
    sizes
}

#[test]
fn samples_of_every_size_arrive_over_a_perfect_link() {
    for topic in [large().keep_all(64), large().keep_all(64).reliable()] {
        let (mut world, _, writer, reader) = a_pair(&topic);
        for (value, bytes) in (1..).zip(sizes()) {
            world.enqueue(writer, [padded(value, bytes)]);
            world.run_for(ms(50));
        }
        assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
        let ledger = world.writer_ledger(writer);
        assert!(ledger.fragments > 2 * 800, "{ledger:?}");
        assert_eq!(ledger.fragments_repaired, 0, "{ledger:?}");
    }
}

#[test]
fn reliable_samples_of_mixed_sizes_arrive_once_and_in_order_over_links_that_lose_double_and_overtake()
 {
    for loss in [0.0, 0.01, 0.1, 0.3] {
        seeds::for_each(0..6, |seed| {
            let world = World::new(seed).link(LinkConfig::lossy(loss));
            let topic = large().reliable().keep_all(8);
            let (mut world, _, writer, reader) = a_pair_in(world, &topic);
            let sizes = [0, 3_000, 100_000, 64, 1_400, 20_000, 4, 70_000, 2_000, 0];
            world.enqueue(
                writer,
                (1..).zip(sizes).map(|(value, bytes)| padded(value, bytes)),
            );
            until_taken(&mut world, "all came", reader, sizes.len());
            assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
            world.run_until("all is acknowledged", PATIENCE, |world| {
                let (node, id) = (isolane_sim::NodeId(0), world.writer_id(writer));
                world.protocol(node).all_acknowledged(id)
            });
            let ledger = world.writer_ledger(writer);
            assert!(loss < 0.05 || ledger.fragments_repaired > 0, "{ledger:?}");
        });
    }
}

#[test]
fn a_mebibyte_arrives_over_a_link_that_loses_a_third() {
    seeds::for_each(0..4, |seed| {
        let world = World::new(seed).link(LinkConfig::lossy(0.3));
        let topic = large().reliable().keep_all(4);
        let (mut world, _, writer, reader) = a_pair_in(world, &topic);
        world.enqueue(writer, [padded(1, 1 << 20), padded(2, 1 << 20)]);
        world.run_until("both came", 20 * SECOND, |world| {
            world.received(reader).len() == 2
        });
        assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
        // Only lost fragments are repaired, not whole samples repeatedly.
        let ledger = world.writer_ledger(writer);
        assert!(
            ledger.fragments_repaired < 2 * ledger.fragments,
            "{ledger:?}"
        );
    });
}

#[test]
fn best_effort_samples_arrive_whole_or_are_counted_as_lost() {
    for loss in [0.0, 0.01, 0.1] {
        seeds::for_each(0..6, |seed| {
            let link = LinkConfig {
                loss,
                duplication: 0.1,
                ..LinkConfig::default()
            };
            let world = World::new(seed).link(link);
            let (mut world, _, writer, reader) = a_pair_in(world, &large().keep_all(64));
            let samples = (1..=100).map(|value| padded(value, 500 * (value % 40) as u32));
            world.publish(writer, ms(2), samples);
            world.run_for(SECOND);
            let taken = taken(&world, reader, writer);
            let written = written(&world, writer, 1);
            assert!(
                taken.iter().all(|sample| written.contains(sample)),
                "what came was written"
            );
            assert!(taken.is_sorted_by_key(|(number, _)| *number), "in order");
            let ledger = world.reader_ledger(reader);
            match loss {
                0.0 => assert_eq!(taken, written),
                0.1 => assert!(ledger.lost > 5 && ledger.delivered > 20, "{ledger:?}"),
                _ => assert!(ledger.delivered > 50, "{ledger:?}"),
            }
        });
    }
}

#[test]
fn a_reader_of_views_is_shown_what_was_put_together() {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    let topic = large().keep_all(64);
    let writer = world.create_writer(a, &topic);
    let readers = [
        world.create_view_reader(b, &topic),
        world.create_reader(b, &topic),
        world.create_view_reader(b, &topic),
        world.create_view_reader(a, &topic),
    ];
    world.until_matched(&[writer], &readers);
    for (value, bytes) in (1..).zip(sizes()) {
        world.enqueue(writer, [padded(value, bytes)]);
        world.run_for(ms(50));
    }
    for reader in readers {
        assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
    }
}

#[test]
fn small_samples_that_follow_a_large_one_keep_their_order() {
    for topic in [large().keep_all(64), large().keep_all(64).reliable()] {
        let (mut world, _, writer, reader) = a_pair(&topic);
        let samples = [0, 200_000, 0, 0, 3_000, 0];
        world.enqueue(
            writer,
            (1..)
                .zip(samples)
                .map(|(value, bytes)| padded(value, bytes)),
        );
        world.run_for(SECOND);
        assert_eq!(world.values(reader), [1, 2, 3, 4, 5, 6]);
    }
}

#[test]
fn several_large_writers_reach_one_reader() {
    for loss in [0.0, 0.1] {
        seeds::for_each(0..4, |seed| {
            let mut world = World::new(seed).link(LinkConfig::lossy(loss));
            let nodes = world.nodes(7, &NodeConfig::default());
            let topic = large().reliable().keep_all(64);
            let reader = world.create_reader(nodes[0], &topic);
            let writers: Vec<_> = nodes[1..]
                .iter()
                .map(|&node| world.create_writer(node, &topic))
                .collect();
            world.until_matched(&writers, &[reader]);
            for &writer in &writers {
                world.enqueue(writer, (1..=4).map(|value| padded(value, 60_000)));
            }
            until_taken(&mut world, "all came", reader, 4 * writers.len());
            for &writer in &writers {
                assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
            }
        });
    }
}

#[test]
fn a_late_joiner_gets_a_history_of_large_samples_in_fragments() {
    for loss in [0.0, 0.1, 0.3] {
        seeds::for_each(0..4, |seed| {
            let mut world = World::new(seed).link(LinkConfig::lossy(loss));
            let (a, b) = two_nodes(&mut world);
            let topic = large().reliable().transient_local().keep_last(5);
            let writer = world.create_writer(a, &topic);
            let sizes = [0, 100_000, 64, 5_000, 40_000, 2_000, 0];
            world.enqueue(
                writer,
                (1..).zip(sizes).map(|(value, bytes)| padded(value, bytes)),
            );
            world.run_for(SECOND);
            let reader = world.create_reader(b, &topic);
            until_taken(&mut world, "the history came", reader, 5);
            assert_eq!(taken(&world, reader, writer), written(&world, writer, 3));
            assert!(
                world.writer_ledger(writer).history + world.writer_ledger(writer).repaired >= 5
            );
        });
    }
}

#[test]
fn instances_and_their_ends_go_with_large_samples() {
    for topic in [
        large().keyed().keep_all(64),
        large().keyed().keep_all(64).reliable(),
    ] {
        let (mut world, _, writer, reader) = a_pair(&topic);
        let samples = [
            Sample::keyed(1, 1).padded(5_000),
            Sample::keyed(2, 2),
            Sample::dispose(1),
            Sample::keyed(2, 3).padded(70_000),
            Sample::unregister(2),
        ];
        world.enqueue(writer, samples);
        world.run_for(SECOND);
        assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
        let last = world.last_of_instance(reader, 2).expect("it is known");
        assert_eq!(last.states().0, isolane_rtps::ChangeKind::Unregister);
    }
}

#[test]
fn samples_up_to_the_size_of_a_datagram_go_in_one_where_that_is_requested() {
    for topic in [large().keep_all(64), large().keep_all(64).reliable()] {
        let topic = topic.max_payload_bytes(60_000).max_datagram_bytes(60_000);
        let (mut world, _, writer, reader) = a_pair(&topic);
        world.enqueue(writer, (1..=5).map(|value| padded(value, 50_000)));
        world.run_for(SECOND);
        assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
        assert_eq!(world.writer_ledger(writer).fragments, 0);
    }
}

#[test]
fn a_sample_longer_than_the_readers_bound_is_too_large_and_not_requested_again() {
    for topic in [large().keep_all(64), large().keep_all(64).reliable()] {
        let (mut world, _, writer, reader) = a_pair_of(
            World::new(1),
            &topic,
            &topic.clone().max_payload_bytes(10_000),
        );
        world.run_for(SECOND);
        world.enqueue(writer, [padded(1, 64), padded(2, 20_000), padded(3, 9_000)]);
        world.run_for(SECOND);
        assert_eq!(world.values(reader), [1, 3]);
        assert_eq!(world.reader_ledger(reader).too_large, 1);
        assert_eq!(world.writer_ledger(writer).fragments_repaired, 0);
    }
}

#[test]
fn fragments_are_as_short_as_datagrams_are_to_be_down_to_what_readers_take() {
    for topic in [large().keep_all(64), large().keep_all(64).reliable()] {
        for (max_datagram_bytes, fragments) in [(600, 2 + 2 + 3 + 3 + 17), (64, 2 + 3 + 3 + 3 + 20)]
        {
            let topic = topic.clone().max_datagram_bytes(max_datagram_bytes);
            let (mut world, _, writer, reader) = a_pair(&topic);
            for (value, bytes) in (1..).zip([100, 480, 1_000, 1_024, 1_280, 1_400, 10_000]) {
                world.enqueue(writer, [padded(value, bytes)]);
                world.run_for(ms(50));
            }
            assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
            assert_eq!(world.writer_ledger(writer).fragments, fragments);
        }
    }
}
