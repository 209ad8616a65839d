//! Tests of the simulated world itself.

use isolane_sim::{LinkConfig, LinkLedger, NodeConfig, Sample, Topic, World, seeds};

use crate::support::{SECOND, ms, taken, two_nodes, values};

/// All datagrams of a busy world, and where they went.
fn a_busy_world(seed: u64) -> (Vec<Vec<u8>>, LinkLedger) {
    let mut world = World::new(seed).link(LinkConfig::lossy(0.3));
    world.tap();
    let nodes = world.nodes(3, &NodeConfig::default());
    let topic = Topic::new("Busy")
        .reliable()
        .keep_all(4)
        .keyed()
        .multicast();
    let writer = world.create_writer(nodes[0], &topic);
    for &node in &nodes {
        world.create_reader(node, &topic);
    }
    world.publish(
        writer,
        ms(3),
        (0..50).map(|n| Sample::keyed(n % 5, n.into())),
    );
    world.run_for(5 * SECOND);
    (world.tapped().to_vec(), *world.link_ledger())
}

#[test]
fn a_world_is_the_same_every_time_and_another_with_another_seed() {
    seeds::for_each(0..20, |seed| {
        assert_eq!(a_busy_world(seed), a_busy_world(seed));
        assert_ne!(a_busy_world(seed).0, a_busy_world(seed + 1).0);
    });
}

#[test]
fn a_node_that_is_overrun_drops_and_counts() {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    let topic = Topic::new("Flood");
    let writer = world.create_writer(a, &topic);
    let reader = world.create_view_reader(b, &topic);
    world.until_matched(&[writer], &[reader]);
    // A hundred arrive at once, and three times as many at once.
    world.enqueue(writer, values(100));
    world.run_for(SECOND);
    assert_eq!(world.link_ledger().lane_full, 0);
    world.enqueue(writer, values(300));
    world.run_for(SECOND);
    let dropped = world.link_ledger().lane_full;
    assert!(dropped > 0);
    let last_came = taken(&world, reader, writer)
        .last()
        .map(|&(number, _)| number);
    let behind = 400 - last_came.expect("some came") as u64;
    assert_eq!(world.reader_ledger(reader).lost + behind, dropped);
}

#[test]
fn a_more_urgent_frame_is_read_before_one_that_came_earlier() {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    let (low, high) = (Topic::new("Low").level(1), Topic::new("High").level(6));
    let writers = [world.create_writer(a, &low), world.create_writer(a, &high)];
    let readers = [
        world.create_view_reader(b, &low),
        world.create_view_reader(b, &high),
    ];
    world.until_matched(&writers[..1], &readers[..1]);
    world.until_matched(&writers[1..], &readers[1..]);
    world.run_for(SECOND);
    world.enqueue(writers[0], values(50));
    world.enqueue(writers[1], [Sample::value(1)]);
    world.run_for(SECOND);
    let urgent = world.received(readers[1])[0].at;
    let before = world
        .received(readers[0])
        .iter()
        .filter(|taken| taken.at <= urgent)
        .count();
    assert!(before <= 1, "one that had begun at most, not {before}");
}
