//! DESTINATION_ORDER: which of two samples of an instance counts as the later one (DDS 1.4 §2.2.3.17).

use isolane_rtps::{ChangeKind, InstanceState};
use isolane_sim::{
    LinkConfig, NodeConfig, NodeId, Random, ReaderHandle, Sample, Topic, World, WriterHandle, seeds,
};
use isolane_wire::{
    qos::{DestinationOrderKind, OwnershipKind, PolicyId},
    time::Timestamp,
};

use crate::support::{PATIENCE, SECOND, a_pair_in, ahead, ms, two_nodes};

fn by_source(topic: Topic) -> Topic {
    topic.qos(|qos| qos.destination_order = DestinationOrderKind::BySourceTimestamp)
}

/// Two writers and a reader, each on its own node. The clock of the first writer's node is one second ahead.
struct Clocks {
    world: World,
    ahead: WriterHandle,
    behind: WriterHandle,
    reader: ReaderHandle,
}

fn clocks(topic: &Topic, change: impl Fn(Topic, bool) -> Topic) -> Clocks {
    let mut world = World::new(1);
    let early = world.node(ahead(SECOND));
    let late = world.node(NodeConfig::default());
    let node = world.node(NodeConfig::default());
    let ahead = world.create_writer(early, &change(topic.clone(), true));
    let behind = world.create_writer(late, &change(topic.clone(), false));
    let reader = world.create_reader(node, topic);
    world.until_matched(&[ahead, behind], &[reader]);
    Clocks {
        world,
        ahead,
        behind,
        reader,
    }
}

impl Clocks {
    fn write(&mut self, writer: WriterHandle, sample: Sample) {
        self.world.enqueue(writer, [sample]);
        self.world.run_for(ms(10));
    }
}

fn as_it_is(topic: Topic, _: bool) -> Topic {
    topic
}

#[test]
fn an_instance_never_goes_back_in_time_where_its_writers_clocks_count() {
    for topic in [
        by_source(Topic::new("Places").reliable().keep_all(16).keyed()),
        by_source(Topic::new("Places").keep_last(16).keyed()),
    ] {
        let mut clocks = clocks(&topic, as_it_is);
        let (ahead, behind) = (clocks.ahead, clocks.behind);
        clocks.write(behind, Sample::keyed(1, 10));
        clocks.write(ahead, Sample::keyed(1, 20));
        clocks.write(behind, Sample::keyed(1, 11));
        clocks.write(behind, Sample::dispose(1));
        clocks.write(behind, Sample::keyed(2, 12));
        clocks.write(ahead, Sample::keyed(1, 21));
        assert_eq!(clocks.world.values(clocks.reader), [10, 20, 12, 21]);
        assert_eq!(clocks.world.reader_ledger(clocks.reader).outdated, 2);
        clocks.world.run_for(SECOND);
        clocks.write(behind, Sample::keyed(1, 13));
        assert_eq!(clocks.world.values(clocks.reader).last(), Some(&13));
    }
}

#[test]
fn by_reception_the_one_that_comes_last_is_the_later() {
    let topic = Topic::new("Places").reliable().keep_all(16).keyed();
    let mut clocks = clocks(&topic, as_it_is);
    let (ahead, behind) = (clocks.ahead, clocks.behind);
    clocks.write(ahead, Sample::keyed(1, 20));
    clocks.write(behind, Sample::keyed(1, 11));
    assert_eq!(clocks.world.values(clocks.reader), [20, 11]);
    assert_eq!(clocks.world.reader_ledger(clocks.reader).outdated, 0);
}

#[test]
fn who_wants_the_order_of_writing_needs_a_writer_that_offers_it() {
    let plain = Topic::new("Places").reliable();
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    let writer = world.create_writer(a, &plain);
    let reader = world.create_reader(b, &by_source(plain.clone()));
    let offering = world.create_writer(a, &by_source(plain.clone().name("Other")));
    let content = world.create_reader(b, &plain.name("Other"));
    world.until_matched(&[offering], &[content]);
    world.run_for(SECOND);
    assert_eq!(world.matched_writers(reader), 0);
    let protocol = world.protocol(b);
    let differs = protocol.requested_incompatible(world.reader_id(reader));
    assert_eq!(
        differs.map(|it| it.policy),
        Some(PolicyId::DESTINATION_ORDER)
    );
    let differs = world
        .protocol(a)
        .offered_incompatible(world.writer_id(writer));
    assert_eq!(
        differs.map(|it| it.policy),
        Some(PolicyId::DESTINATION_ORDER)
    );
}

/// Writers on three nodes with different clocks, and readers on two nodes.
fn a_crowd(seed: u64) -> (World, Vec<WriterHandle>, Vec<ReaderHandle>) {
    let mut world = World::new(seed).link(LinkConfig::lossy(0.2));
    let topic = by_source(Topic::new("Places").reliable().keep_last(1).keyed());
    let mut node = |by| world.node(ahead(ms(by)));
    let sending: Vec<NodeId> = [0, 7, 30].map(&mut node).to_vec();
    let reading: Vec<NodeId> = [0, 0].map(&mut node).to_vec();
    let writers: Vec<_> = sending
        .iter()
        .map(|&node| world.create_writer(node, &topic))
        .collect();
    let readers: Vec<_> = reading
        .iter()
        .map(|&node| world.create_reader(node, &topic))
        .collect();
    world.until_matched(&writers, &readers);
    (world, writers, readers)
}

#[test]
fn over_bad_links_all_readers_end_with_the_same_value_and_none_goes_back_in_time() {
    seeds::for_each(0..60, |seed| {
        let (mut world, writers, readers) = a_crowd(seed);
        let mut chance = Random::new(seed);
        for value in 1..=60 {
            let writer = writers[chance.below(3) as usize];
            world.enqueue(writer, [Sample::keyed(chance.below(3) as u32, value)]);
            world.run_for(ms(chance.below(4)));
        }
        world.run_until("all is acknowledged", PATIENCE, |world| {
            writers.iter().zip(0..).all(|(&writer, nth)| {
                let node = NodeId(nth);
                world
                    .protocol(node)
                    .all_acknowledged(world.writer_id(writer))
            })
        });
        let mut last = Vec::new();
        for &reader in &readers {
            for key in 0..3 {
                let of_key = world.received(reader).iter().filter_map(|it| {
                    let sample = it.sample()?;
                    (sample.key == key).then_some((it.info.source_timestamp, sample.value))
                });
                let seen: Vec<(Option<Timestamp>, u64)> = of_key.collect();
                assert!(
                    seen.is_sorted_by_key(|&(stamp, _)| stamp),
                    "seed {seed}: {seen:?}"
                );
                last.push(seen.last().map(|&(_, value)| value));
            }
        }
        let (one, other) = last.split_at(3);
        assert_eq!(one, other, "seed {seed}");
    });
}

#[test]
fn a_writer_does_not_stamp_backwards_when_its_clock_is_set_back() {
    for topic in [
        by_source(Topic::new("Places").reliable().keep_all(16)),
        by_source(Topic::new("Places").keep_last(16)),
    ] {
        let (mut world, (a, _), writer, reader) = a_pair_in(World::new(1), &topic);
        world.with_protocol(a, |protocol, _| protocol.set_wall_offset(100_000_000_000));
        world.enqueue(writer, [Sample::value(1)]);
        world.run_for(SECOND);
        world.with_protocol(a, |protocol, _| protocol.set_wall_offset(50_000_000_000));
        world.enqueue(writer, [Sample::value(2), Sample::value(3)]);
        world.run_for(SECOND);
        assert_eq!(world.values(reader), [1, 2, 3]);
        let stamps = world
            .received(reader)
            .iter()
            .map(|it| it.info.source_timestamp);
        assert!(stamps.is_sorted());
    }
}

#[test]
fn of_an_owner_too_nothing_is_seen_that_is_older_than_what_was_seen() {
    let topic = by_source(Topic::new("Places").reliable().keep_all(16))
        .qos(|qos| qos.ownership = OwnershipKind::Exclusive);
    let strength = |topic: Topic, is_ahead: bool| {
        topic.qos(|qos| qos.ownership_strength = if is_ahead { 1 } else { 2 })
    };
    let mut clocks = clocks(&topic, strength);
    let (ahead, behind, reader) = (clocks.ahead, clocks.behind, clocks.reader);
    clocks.write(ahead, Sample::value(1));
    // The stronger writer owns the instance from now on, and its clock is behind.
    clocks.write(behind, Sample::value(2));
    clocks.write(ahead, Sample::value(3));
    let ledger = clocks.world.reader_ledger(reader);
    assert_eq!((ledger.outdated, ledger.not_owner), (1, 1));
    clocks.world.run_for(SECOND);
    clocks.write(behind, Sample::value(4));
    assert_eq!(clocks.world.values(reader), [1, 4]);
}

/// The last writer's dispose or unregister has an older time stamp than the instance's latest sample. The instance
/// still has no writer afterwards.
#[test]
fn an_instance_ends_with_its_last_writer_also_where_that_one_says_so_too_late() {
    let topic = by_source(Topic::new("Places").reliable().keep_all(16).keyed());
    let mut clocks = clocks(&topic, as_it_is);
    let (ahead, behind) = (clocks.ahead, clocks.behind);
    clocks.write(behind, Sample::keyed(1, 10));
    clocks.write(ahead, Sample::keyed(1, 20));
    clocks.write(ahead, Sample::unregister(1));
    let ended = (ChangeKind::Unregister, InstanceState::NotAliveNoWriters);
    let last = |clocks: &Clocks| {
        let last = clocks.world.last_of_instance(clocks.reader, 1);
        last.expect("some came").states()
    };
    assert_ne!(last(&clocks), ended, "the other writes it");
    clocks.write(behind, Sample::unregister(1));
    assert_eq!(last(&clocks), ended);
    let ledger = clocks.world.reader_ledger(clocks.reader);
    assert_eq!((ledger.unregistered, ledger.outdated), (1, 1));
}
