//! RELIABLE with KEEP_ALL: every sample arrives exactly once and in order, whatever the network does, and with any
//! amount of room.

use std::time::Duration;

use isolane_sim::{
    LinkConfig, NodeConfig, Partition, Random, ReaderHandle, Sample, Take, Topic, World,
    WriterHandle, seeds,
};

use isolane_wire::{message::Submessage, qos::HistoryKind};

use crate::peer::for_each_submessage;
use crate::support::{
    PATIENCE, SECOND, a_pair, a_pair_in, a_pair_of, keyed_samples, ms, taken, two_nodes,
    until_taken, values, written,
};

/// Counts of the faults and recoveries in a world, to check that the worlds had enough of them.
#[derive(Debug, Default)]
struct Hardship {
    lost: u64,
    doubled: u64,
    refused_writes: u64,
    repaired: u64,
    history: u64,
    deferred: u64,
    duplicates: u64,
    ends: usize,
}

impl Hardship {
    fn of(world: &World, writers: &[WriterHandle], readers: &[ReaderHandle]) -> Self {
        let mut hardship = Self {
            lost: world.link_ledger().lost,
            doubled: world.link_ledger().doubled,
            ..Self::default()
        };
        for &writer in writers {
            let ledger = world.writer_ledger(writer);
            hardship.refused_writes += world.refused(writer);
            hardship.repaired += ledger.repaired;
            hardship.history += ledger.history;
        }
        for &reader in readers {
            let ledger = world.reader_ledger(reader);
            hardship.deferred += ledger.deferred;
            hardship.duplicates += ledger.duplicates;
            let received = world.received(reader).iter();
            hardship.ends += received.filter(|one| !one.info.valid_data()).count();
        }
        hardship
    }

    fn add(&mut self, other: &Self) {
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.refused_writes += other.refused_writes;
        self.repaired += other.repaired;
        self.history += other.history;
        self.deferred += other.deferred;
        self.duplicates += other.duplicates;
        self.ends += other.ends;
    }
}

/// Configuration with a lease so long that losses alone do not end it.
fn patient() -> NodeConfig {
    let mut config = NodeConfig::default();
    config.timing.lease = Duration::from_secs(100);
    config
}

/// World of a few nodes, writers and readers, with little room on both sides. The link loses 30 % of discovery and
/// data, and one reader joins late.
fn a_bad_world(seed: u64) -> Hardship {
    let mut world = World::new(seed).link(LinkConfig::lossy(0.3));
    let chance = &mut Random::new(seed).fork();
    let count = chance.between(2, 4) as usize;
    let nodes = world.nodes(count, &patient());

    let samples = chance.between(10, 40);
    let is_keyed = chance.chance(0.4);
    let is_durable = chance.chance(0.5);
    let mut topic = Topic::new("Gate").reliable().level(chance.below(8) as u8);
    if is_keyed {
        topic = topic.keyed();
    }
    if chance.chance(0.5) {
        topic = topic.multicast();
    }
    // A TRANSIENT_LOCAL KEEP_ALL writer keeps all its samples, so it needs room for all of them.
    let written_topic = if is_durable {
        topic.clone().transient_local().keep_all(samples as u16)
    } else {
        topic.clone().keep_all(chance.between(1, 8) as u16)
    };
    let read_topic = |chance: &mut Random| {
        let read = topic.clone().keep_all(chance.between(1, 8) as u16);
        if is_durable && chance.chance(0.5) {
            read.transient_local()
        } else {
            read
        }
    };

    let writers: Vec<_> = (0..chance.between(1, 3))
        .map(|_| world.create_writer(chance.pick(&nodes), &written_topic))
        .collect();
    let mut readers: Vec<_> = (0..chance.between(1, 3))
        .map(|_| world.create_reader(chance.pick(&nodes), &read_topic(chance)))
        .collect();
    for &reader in &readers {
        if chance.chance(0.5) {
            world.set_take(reader, Take::OneEvery(chance.up_to(ms(20))));
        }
    }
    world.until_matched(&writers, &readers);

    for &writer in &writers {
        let to_write = if is_keyed {
            keyed_samples(samples, chance)
        } else {
            values(samples).collect()
        };
        if chance.chance(0.5) {
            world.enqueue(writer, to_write);
        } else {
            world.publish(writer, chance.up_to(ms(10)), to_write);
        }
    }
    world.run_for(chance.up_to(ms(100)));
    if is_durable {
        let late = topic
            .transient_local()
            .keep_all(chance.between(1, 8) as u16);
        let late = world.create_reader(chance.pick(&nodes), &late);
        world.set_take(late, Take::OneEvery(chance.up_to(ms(5))));
        readers.push(late);
    }

    let everything = samples as usize * writers.len();
    world.run_until("every sample came", PATIENCE, |world| {
        let all_of = |&reader: &ReaderHandle| {
            let ledger = world.reader_ledger(reader);
            ledger.delivered + ledger.unregistered
        };
        readers
            .iter()
            .all(|reader| all_of(reader) as usize >= everything)
    });
    // Time in which superfluous samples would arrive.
    world.run_for(SECOND);
    for &reader in &readers {
        for &writer in &writers {
            let (came, went) = (taken(&world, reader, writer), written(&world, writer, 1));
            assert_eq!(came, went, "seed {seed}: {reader:?} of {writer:?}");
        }
        assert_eq!(world.reader_ledger(reader).evicted, 0);
        assert_eq!(world.reader_ledger(reader).rejected, 0);
    }
    Hardship::of(&world, &writers, &readers)
}

#[test]
fn reliable_keep_all_samples_come_exactly_once_and_in_order_at_30_percent_loss() {
    let mut sum = Hardship::default();
    let worlds = seeds::for_each(0..1_000, a_bad_world);
    for hardship in &worlds {
        sum.add(hardship);
    }
    // With fewer worlds, some of these events may not have occurred.
    if worlds.len() >= 1_000 {
        // Each mechanism was needed, and often.
        let Hardship {
            lost,
            doubled,
            refused_writes,
            repaired,
            history,
            deferred,
            duplicates,
            ends,
        } = sum;
        for count in [
            lost,
            doubled,
            refused_writes,
            repaired,
            history,
            deferred,
            duplicates,
            ends as u64,
        ] {
            assert!(count > 1_000, "{sum:?}");
        }
    }
}

#[test]
fn a_full_history_refuses_and_takes_again_when_a_slow_reader_has_taken() {
    let topic = Topic::new("Slow").reliable().keep_all(4);
    let (mut world, _, writer, reader) = a_pair(&topic);
    world.set_take(reader, Take::OneEvery(ms(50)));
    world.enqueue(writer, values(40));
    until_taken(&mut world, "all were taken", reader, 40);
    assert!(world.refused(writer) > 0);
    assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
}

#[test]
fn one_slow_reader_does_not_take_a_sample_from_a_fast_one() {
    let mut world = World::new(1).link(LinkConfig::lossy(0.1));
    let (a, b) = two_nodes(&mut world);
    let topic = Topic::new("Two").reliable().keep_all(2);
    let writers = [
        world.create_writer(a, &topic),
        world.create_writer(b, &topic),
    ];
    let readers = [
        world.create_reader(a, &topic),
        world.create_reader(b, &topic),
    ];
    world.set_take(readers[0], Take::OneEvery(ms(30)));
    world.until_matched(&writers, &readers);
    for writer in writers {
        world.enqueue(writer, values(50));
    }
    world.run_until("all were taken", PATIENCE, |world| {
        readers
            .iter()
            .all(|&reader| world.received(reader).len() == 100)
    });
    for reader in readers {
        for writer in writers {
            assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
        }
    }
}

#[test]
fn samples_out_of_order_of_one_writer_do_not_keep_those_of_another_from_being_requested() {
    // Ten writers share the few slots of one reader for samples out of order.
    seeds::for_each(0..20, |seed| {
        let mut world = World::new(seed).link(LinkConfig::lossy(0.5));
        let nodes = world.nodes(3, &patient());
        let topic = Topic::new("Many").reliable().keep_all(64);
        let writers: Vec<_> = (0..10)
            .map(|n| world.create_writer(nodes[n % 2], &topic))
            .collect();
        let reader = world.create_reader(nodes[2], &topic.keep_all(1));
        world.until_matched(&writers, &[reader]);
        for &writer in &writers {
            world.enqueue(writer, values(60));
        }
        until_taken(&mut world, "all were taken", reader, 600);
        for &writer in &writers {
            assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
        }
    });
}

#[test]
fn everyone_has_acknowledged_once_all_has_come() {
    let topic = Topic::new("Acknowledged").reliable().keep_all(32);
    let (mut world, (a, _), writer, reader) =
        a_pair_in(World::new(3).link(LinkConfig::lossy(0.3)), &topic);
    world.enqueue(writer, values(20));
    let id = world.writer_id(writer);
    assert!(!world.protocol(a).all_acknowledged(id));
    world.run_until("all is acknowledged", Duration::from_secs(30), |world| {
        world.protocol(a).all_acknowledged(id)
    });
    assert_eq!(world.received(reader).len(), 20);
    // From now on only liveliness is announced.
    world.run_for(5 * SECOND);
    let before = world.writer_ledger(writer).heartbeats;
    world.run_for(10 * SECOND);
    assert_eq!(world.writer_ledger(writer).heartbeats, before);
}

#[test]
fn a_dead_reader_does_not_make_a_living_one_wait_for_what_it_has_lost() {
    let mut world = World::new(1);
    let nodes = world.nodes(3, &patient());
    let topic = Topic::new("Dead").reliable().keep_all(32);
    let writer = world.create_writer(nodes[0], &topic);
    let readers = [
        world.create_reader(nodes[1], &topic),
        world.create_reader(nodes[2], &topic),
    ];
    world.until_matched(&[writer], &readers);
    world.crash(nodes[2]);
    world.enqueue(writer, values(1));
    // Long enough for the HEARTBEAT period to grow.
    world.run_for(10 * SECOND);
    for value in 2..=9 {
        let cut = Partition::one_way(&nodes[..1], &nodes[1..2]);
        world.partition(cut);
        world.enqueue(writer, [Sample::value(value)]);
        world.run_for(ms(5));
        world.heal();
        world.run_for(ms(60));
        assert_eq!(world.received(readers[0]).len() as u64, value);
        world.run_for(10 * SECOND);
    }
}

#[test]
fn a_reader_with_little_room_asks_for_no_more_than_it_can_keep() {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    let topic = Topic::new("Little").reliable().transient_local();
    let writer = world.create_writer(a, &topic.clone().keep_all(400));
    world.enqueue(writer, values(400));
    world.run_for(SECOND);
    let reader = world.create_reader(b, &topic.keep_all(4));
    world.set_take(reader, Take::OneEvery(ms(2)));
    let before = world.elapsed();
    until_taken(&mut world, "all were taken", reader, 400);
    assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
    let repaired = world.writer_ledger(writer).repaired;
    assert!(repaired < 500, "{repaired} repairs of 400 samples");
    // The writer is as fast as the reader's user.
    let took = world.elapsed() - before;
    assert!(took < 2 * SECOND, "{took:?}");
}

#[test]
fn a_reader_that_joins_makes_no_other_answer() {
    for is_durable in [false, true] {
        let mut world = World::new(1);
        let nodes = world.nodes(5, &NodeConfig::default());
        let mut topic = Topic::new("Joined").reliable().keep_all(16);
        if is_durable {
            topic = topic.transient_local();
        }
        let writer = world.create_writer(nodes[0], &topic);
        let mut readers: Vec<_> = nodes[1..4]
            .iter()
            .map(|&node| world.create_reader(node, &topic))
            .collect();
        world.until_matched(&[writer], &readers);
        world.enqueue(writer, values(10));
        world.run_for(5 * SECOND);
        world.tap();
        readers.push(world.create_reader(nodes[4], &topic));
        world.until_matched(&[writer], &readers);
        world.run_for(SECOND);
        let entity = world.writer_guid(writer).entity;
        let mut answers = 0;
        for_each_submessage(&world, |submessage| {
            if let Submessage::AckNack(acknack) = submessage {
                // ACKNACKs of the late joiner: for the HEARTBEAT that it requested, and for its share of the history.
                answers += usize::from(acknack.writer == entity);
            }
        });
        assert!((1..=3).contains(&answers), "{answers} answers");
    }
}

/// Topic with KEEP_ALL and without RESOURCE_LIMITS.
fn without_limits() -> Topic {
    let topic = Topic::new("Bulk").reliable();
    topic.qos(|qos| qos.history.kind = HistoryKind::KeepAll)
}

/// Samples with a payload of `bytes` bytes.
fn of_size(bytes: usize, count: u64) -> impl Iterator<Item = Sample> {
    let padding = bytes - Sample::value(0).payload().len();
    values(count).map(move |sample| sample.padded(padding as u32))
}

#[test]
fn without_limits_history_and_cache_hold_as_many_bytes_whatever_the_size_of_a_sample() {
    for (max_bytes, samples) in [
        (64, 256),
        (1_024, 256),
        (1_400, 187),
        (4_096, 64),
        (64 << 10, 64),
        // Above 64 KiB, as many as fit 4 MiB, and at least four.
        (100_000, 41),
        (2 << 20, 4),
    ] {
        let topic = without_limits().max_payload_bytes(max_bytes);
        let (mut world, _, writer, _) = a_pair(&topic);
        world.enqueue(writer, of_size(max_bytes, 300));
        assert_eq!(world.written(writer).len(), samples, "{max_bytes} bytes");

        let offered = topic.clone().keep_all(600);
        let (mut world, (_, b), writer, reader) = a_pair_of(World::new(1), &offered, &topic);
        world.set_take(reader, Take::OnRequest);
        world.enqueue(writer, values(600));
        world.run_for(SECOND);
        let available = world.protocol(b).available(world.reader_id(reader));
        assert_eq!(available, samples, "{max_bytes} bytes");
    }
}

#[test]
fn without_limits_four_of_the_longest_samples_of_an_unbounded_type_are_under_way() {
    let topic = without_limits().max_payload_bytes(1 << 20).shares_long();
    let (mut world, _, writer, _) = a_pair(&topic);
    world.enqueue(writer, values(300));
    assert_eq!(world.written(writer).len(), 187, "short ones");
    let (mut world, _, writer, reader) = a_pair(&topic);
    world.enqueue(writer, of_size(1 << 20, 6));
    assert_eq!(world.written(writer).len(), 4);
    until_taken(&mut world, "all were taken", reader, 6);
}

#[test]
fn a_stream_without_limits_costs_few_acknacks_and_repairs_of_little_more_than_what_is_lost() {
    for (loss, acknacks_max, repairs_max) in [(0.0, 60, 0), (0.01, 120, 300), (0.1, 300, 3_000)] {
        for bytes in [20, 1_024] {
            let topic = without_limits().max_payload_bytes(bytes);
            let (mut world, _, writer, reader) = a_pair(&topic);
            world.set_link(LinkConfig::losing(loss));
            world.tap();
            world.enqueue(writer, of_size(bytes, 10_000));
            until_taken(&mut world, "all were taken", reader, 10_000);
            let entity = world.writer_guid(writer).entity;
            let mut acknacks = 0;
            for_each_submessage(&world, |submessage| {
                if let Submessage::AckNack(acknack) = submessage {
                    acknacks += usize::from(acknack.writer == entity);
                }
            });
            let said = format!("{bytes} bytes at a loss of {loss}");
            assert!(acknacks <= acknacks_max, "{acknacks} ACKNACKs, {said}");
            let repairs = world.writer_ledger(writer).repaired;
            assert!(repairs <= repairs_max, "{repairs} repairs, {said}");
        }
    }
}
