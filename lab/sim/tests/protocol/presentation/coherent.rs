//! Coherent sets of one writer.

use isolane_rtps::{CoherentError, CreateError, DeliveryMode, InstanceState};
use isolane_sim::{LinkConfig, NodeConfig, Random, Sample, Take, Topic, World, seeds};
use isolane_wire::qos::{DurabilityKind, PolicyId, Presentation, PresentationAccessScope};

use super::{COHERENT_TOPIC, Groups, alike, groups, reliable};
use crate::support::{PATIENCE, SECOND, ms, values};

fn a_group(world: World, topic: Topic) -> Groups {
    groups(world, COHERENT_TOPIC, &[alike(topic)])
}

#[test]
fn a_set_is_seen_when_it_has_ended_and_not_before() {
    let mut group = a_group(World::new(1), reliable("Sets").keep_all(8));
    let (writer, reader) = (group.writers[0], group.readers[0]);
    group.begin_set();
    group.world.enqueue(writer, values(3));
    group.world.run_for(SECOND);
    assert_eq!(group.world.values(reader), []);
    let ledger = group.world.reader_ledger(reader);
    assert_eq!(
        (ledger.accounted, ledger.in_sets, ledger.set_ends),
        (3, 3, 0)
    );
    group.end_set();
    group.world.run_for(ms(20));
    assert_eq!(group.world.values(reader), [1, 2, 3]);
    let ledger = group.world.reader_ledger(reader);
    assert_eq!(
        (ledger.delivered, ledger.in_sets, ledger.set_ends),
        (3, 0, 1)
    );
    let written = group.world.writer_ledger(writer);
    assert_eq!((written.written, written.set_ends), (4, 1));
    let ends = group.world.end_set(group.publisher);
    assert_eq!(ends, Err(CoherentError::NotBegun));
}

#[test]
fn a_set_of_instance_scope_is_seen_whole_as_other_implementations_show_it() {
    let presentation = Presentation {
        access_scope: PresentationAccessScope::Instance,
        ..COHERENT_TOPIC
    };
    let topic = reliable("Sets").keep_all(8).keyed();
    let mut group = groups(World::new(1), presentation, &[alike(topic)]);
    group.begin_set();
    let samples = [
        Sample::keyed(1, 1),
        Sample::keyed(2, 2),
        Sample::keyed(1, 3),
    ];
    group.enqueue(0, samples);
    group.world.run_for(SECOND);
    assert_eq!(group.values(), [vec![]]);
    group.end_set();
    group.world.run_for(ms(20));
    assert_eq!(group.values(), [vec![1, 2, 3]]);
}

#[test]
fn what_is_in_no_set_is_seen_at_once_and_keeps_its_place_among_the_sets() {
    let mut group = a_group(World::new(1), reliable("Sets").keep_all(16));
    let (writer, reader) = (group.writers[0], group.readers[0]);
    group.world.enqueue(writer, [Sample::value(1)]);
    group.world.run_for(ms(20));
    assert_eq!(group.world.values(reader), [1]);
    group.write_set([(0, Sample::value(2)), (0, Sample::value(3))]);
    group.world.enqueue(writer, [Sample::value(4)]);
    group.write_set([(0, Sample::value(5))]);
    // An empty set has no effect.
    group.write_set([]);
    group.world.run_for(ms(20));
    assert_eq!(group.world.values(reader), [1, 2, 3, 4, 5]);
    assert_eq!(group.world.writer_ledger(writer).set_ends, 2);
}

#[test]
fn sets_within_a_set_end_with_the_outermost() {
    let mut group = a_group(World::new(1), reliable("Sets").keep_all(8));
    group.begin_set();
    group.enqueue(0, [Sample::value(1)]);
    group.write_set([(0, Sample::value(2))]);
    group.world.run_for(ms(20));
    assert_eq!(group.values(), [vec![]]);
    group.enqueue(0, [Sample::value(3)]);
    group.end_set();
    group.world.run_for(ms(20));
    assert_eq!(group.values(), [vec![1, 2, 3]]);
}

#[test]
fn who_does_not_ask_for_sets_sees_samples_as_they_come_and_no_ends() {
    for keyed in [false, true] {
        let mut world = World::new(1).link(LinkConfig::losing(0.2));
        let nodes = world.nodes(2, &NodeConfig::default());
        let topic = |name: &str| match keyed {
            true => reliable(name).keep_all(64).keyed(),
            false => reliable(name).keep_all(64),
        };
        let publisher = world.create_publisher(nodes[0], COHERENT_TOPIC);
        let writer = world.create_writer_in(publisher, &topic("Sets"));
        let plain = world.create_reader(nodes[1], &topic("Sets"));
        let best_effort = Topic::new("Sets").keep_last(64);
        let best_effort = match keyed {
            true => best_effort.keyed(),
            false => best_effort,
        };
        let lossy = world.create_reader(nodes[1], &best_effort);
        let view = world.create_view_reader(nodes[1], &best_effort);
        world.until_matched(&[writer], &[plain, lossy, view]);
        world.begin_set(publisher);
        world.enqueue(writer, values(20));
        world.run_until("all came to the reliable one", PATIENCE, |world| {
            world.values(plain).len() == 20
        });
        world.end_set(publisher).unwrap();
        world.enqueue(writer, values(20));
        world.run_until("all are done with", PATIENCE, |world| {
            world.reader_ledger(plain).accounted == 41
        });
        let ledger = world.reader_ledger(plain);
        assert_eq!((ledger.set_ends, ledger.rejected, ledger.lost), (1, 0, 0));
        for reader in [lossy, view] {
            let ledger = world.reader_ledger(reader);
            assert_eq!(ledger.rejected, 0);
            assert!(ledger.set_ends <= 1);
            assert!(
                world
                    .values(reader)
                    .iter()
                    .all(|value| (1..=20).contains(value))
            );
        }
    }
}

/// `count` sets of one writer, each of 1 to `most` samples.
fn sets_of(chance: &mut Random, count: usize, most: u64) -> Vec<Vec<(usize, u64)>> {
    let mut next = 0;
    let mut set = |_| {
        let size = 1 + chance.below(most);
        next += size;
        (next - size + 1..=next).map(|value| (0, value)).collect()
    };
    (0..count).map(&mut set).collect()
}

#[test]
fn over_bad_links_every_set_comes_whole_where_all_is_kept() {
    seeds::for_each(0..60, |seed| {
        let world = World::new(seed).link(LinkConfig::lossy(0.2));
        let mut group = a_group(world, reliable("Sets").keep_all(16));
        let mut chance = Random::new(seed);
        let sets = sets_of(&mut chance, 12, 9);
        for set in &sets {
            group.write_set_with_room(set.iter().map(|&(_, value)| Sample::value(value)));
            if chance.below(3) == 0 {
                group.world.run_for(ms(chance.below(30)));
            }
        }
        let all: Vec<u64> = sets.iter().flatten().map(|&(_, value)| value).collect();
        let reader = group.readers[0];
        group
            .world
            .run_until("all came", PATIENCE, |world| world.values(reader) == all);
        assert_eq!(group.whole_sets(&sets), sets.len(), "seed {seed}");
        assert_eq!(group.world.reader_ledger(reader).incomplete, 0);
    });
}

impl Groups {
    /// Writes the samples of a set, each as soon as there is room.
    fn write_set_with_room(&mut self, samples: impl IntoIterator<Item = Sample>) {
        let writer = self.writers[0];
        self.world.begin_set(self.publisher);
        for sample in samples {
            self.world.enqueue(writer, [sample]);
            self.world.run_until("it was written", PATIENCE, |world| {
                world.unwritten(writer) == 0
            });
        }
        while self.world.end_set(self.publisher) == Err(CoherentError::HistoryFull) {
            self.world.run_for(ms(1));
        }
    }
}

#[test]
fn a_set_of_which_something_is_gone_is_dropped_whole_and_counted() {
    let seen = seeds::for_each(0..60, |seed| {
        let world = World::new(seed).link(LinkConfig::lossy(0.3));
        let offered = reliable("Sets").keep_last(2).keyed().max_instances(8);
        let requested = reliable("Sets").keep_last(60).keyed().max_instances(8);
        let mut group = groups(world, COHERENT_TOPIC, &[(offered, requested)]);
        let mut chance = Random::new(seed);
        let sets = sets_of(&mut chance, 30, 5);
        for set in &sets {
            group.write_set(set.iter().map(|&(_, value)| {
                let key = chance.below(6) as u32;
                (0, Sample::keyed(key, value))
            }));
            group.world.run_for(ms(2));
        }
        let (writer, reader) = (group.writers[0], group.readers[0]);
        group.world.run_until("all is settled", PATIENCE, |world| {
            let (written, read) = (world.writer_ledger(writer), world.reader_ledger(reader));
            written.written == read.accounted + read.skipped
        });
        let whole = group.whole_sets(&sets);
        let ledger = group.world.reader_ledger(reader);
        assert_eq!(ledger.in_sets, 0, "seed {seed}");
        assert!(
            whole < sets.len() || ledger.incomplete == 0,
            "seed {seed}: {ledger:?}"
        );
        assert_eq!(group.values()[0].len() as u64, ledger.delivered);
        (whole, ledger.incomplete)
    });
    assert!(
        seen.iter().any(|&(_, incomplete)| incomplete > 0),
        "none was ever torn"
    );
    assert!(
        seen.iter().all(|&(whole, _)| whole > 0),
        "all were torn: {seen:?}"
    );
}

#[test]
fn a_set_larger_than_there_can_be_room_for_is_dropped_and_the_next_one_is_seen() {
    let mut group = groups(
        World::new(1),
        COHERENT_TOPIC,
        &[(reliable("Sets").keep_all(32), reliable("Sets").keep_all(4))],
    );
    group.write_set((1..=6).map(|value| (0, Sample::value(value))));
    group.world.run_for(SECOND);
    group.write_set((7..=10).map(|value| (0, Sample::value(value))));
    group.world.run_for(SECOND);
    assert_eq!(group.values(), [vec![7, 8, 9, 10]]);
    let ledger = group.ledger(0);
    assert_eq!((ledger.incomplete, ledger.rejected), (6, 0));
}

#[test]
fn sets_wait_for_a_user_who_takes_slowly_and_none_is_lost() {
    seeds::for_each(0..20, |seed| {
        let world = World::new(seed).link(LinkConfig::losing(0.1));
        let mut group = a_group(world, reliable("Sets").keep_all(6));
        let reader = group.readers[0];
        group.world.set_take(reader, Take::OneEvery(ms(7)));
        for set in 0..10 {
            group.write_set_with_room((0..4).map(|nth| Sample::value(set * 4 + nth)));
        }
        let all: Vec<u64> = (0..40).collect();
        group
            .world
            .run_until("all came", PATIENCE, |world| world.values(reader) == all);
        assert_eq!(group.world.reader_ledger(reader).incomplete, 0);
    });
}

#[test]
fn history_applies_to_a_set_when_it_is_seen() {
    let offered = reliable("Sets").keep_all(32).keyed();
    let requested = reliable("Sets").keep_last(1).keyed().max_instances(4);
    let mut group = groups(World::new(1), COHERENT_TOPIC, &[(offered, requested)]);
    let reader = group.readers[0];
    group.world.set_take(reader, Take::OnRequest);
    group.write_set([(0, Sample::keyed(1, 10)), (0, Sample::keyed(2, 20))]);
    group.world.run_for(ms(20));
    group.begin_set();
    group.enqueue(0, [Sample::keyed(1, 11)]);
    group.world.run_for(ms(20));
    assert_eq!(
        group.world.take(reader, 9),
        2,
        "the first set is there still"
    );
    group.end_set();
    group.write_set([(0, Sample::keyed(1, 12)), (0, Sample::keyed(2, 22))]);
    group.world.run_for(ms(20));
    group.world.take(reader, 9);
    assert_eq!(group.world.values(reader), [10, 20, 12, 22]);
    assert_eq!(group.world.reader_ledger(reader).evicted, 1);
}

#[test]
fn a_writer_that_dies_within_a_set_takes_it_along() {
    for is_crash in [false, true] {
        let mut group = a_group(World::new(1), reliable("Sets").keep_all(8).keyed());
        let (writer, reader) = (group.writers[0], group.readers[0]);
        group.write_set([(0, Sample::keyed(1, 1))]);
        group.world.run_for(ms(20));
        group.begin_set();
        group
            .world
            .enqueue(writer, [Sample::keyed(1, 2), Sample::keyed(2, 3)]);
        group.world.run_for(ms(20));
        assert_eq!(group.world.reader_ledger(reader).in_sets, 2);
        match is_crash {
            true => group.world.restart(group.nodes.0),
            false => group.world.delete_writer(writer),
        }
        group.world.run_for(20 * SECOND);
        assert_eq!(group.world.values(reader), [1]);
        let ledger = group.world.reader_ledger(reader);
        assert_eq!((ledger.in_sets, ledger.incomplete), (0, 2));
        let end = group
            .world
            .last_of_instance(reader, 1)
            .expect("its end was seen");
        assert_eq!(end.info.instance_state, InstanceState::NotAliveNoWriters);
        assert!(group.world.last_of_instance(reader, 2).is_none());
        // A new writer in the same slot starts without a set.
        let publisher = group.world.create_publisher(group.nodes.0, COHERENT_TOPIC);
        let next = reliable("Sets").keep_all(8).keyed();
        let next = group.world.create_writer_in(publisher, &next);
        group.world.until_matched(&[next], &[reader]);
        group.world.begin_set(publisher);
        group.world.enqueue(next, [Sample::keyed(2, 4)]);
        group.world.end_set(publisher).unwrap();
        group.world.run_for(SECOND);
        assert_eq!(group.world.values(reader), [1, 4]);
    }
}

#[test]
fn a_set_that_has_ended_outlives_its_writer() {
    let mut group = a_group(World::new(1), reliable("Sets").keep_all(4));
    let reader = group.readers[0];
    group.world.set_take(reader, Take::OnRequest);
    group.write_set((1..=3).map(|value| (0, Sample::value(value))));
    group.world.run_for(ms(20));
    group.write_set((4..=6).map(|value| (0, Sample::value(value))));
    group.world.run_for(ms(20));
    assert_eq!(group.world.reader_ledger(reader).in_sets, 3);
    group.world.delete_writer(group.writers[0]);
    group.world.run_for(SECOND);
    group.world.take(reader, 9);
    assert_eq!(group.world.values(reader), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_late_joiner_sees_whole_sets_alone() {
    let late = |durability| {
        let topic = reliable("Sets")
            .keep_all(32)
            .qos(|qos| qos.durability = durability);
        let mut world = World::new(1);
        let nodes = world.nodes(2, &NodeConfig::default());
        let publisher = world.create_publisher(nodes[0], COHERENT_TOPIC);
        let writer = world.create_writer_in(publisher, &topic);
        let write = |world: &mut World, values: &[u64]| {
            world.enqueue(writer, values.iter().copied().map(Sample::value));
            world.run_for(ms(5));
        };
        world.begin_set(publisher);
        write(&mut world, &[1, 2]);
        world.end_set(publisher).unwrap();
        world.begin_set(publisher);
        write(&mut world, &[3]);
        let subscriber = world.create_subscriber(nodes[1], COHERENT_TOPIC);
        let reader = world.create_reader_in(subscriber, &topic);
        world.until_matched(&[writer], &[reader]);
        write(&mut world, &[4]);
        world.end_set(publisher).unwrap();
        world.begin_set(publisher);
        write(&mut world, &[5, 6]);
        world.end_set(publisher).unwrap();
        world.run_for(SECOND);
        world.values(reader)
    };
    assert_eq!(late(DurabilityKind::TransientLocal), [1, 2, 3, 4, 5, 6]);
    assert_eq!(late(DurabilityKind::Volatile), [5, 6]);
}

#[test]
fn samples_in_fragments_are_in_sets_too() {
    let topic = reliable("Large")
        .keep_all(8)
        .max_payload_bytes(20_000)
        .keyed();
    let world = World::new(3).link(LinkConfig::losing(0.1));
    let mut group = a_group(world, topic);
    let sample = |value: u64| Sample::keyed(value as u32 % 2, value).padded(15_000);
    let reader = group.readers[0];
    group.begin_set();
    group.enqueue(0, [sample(1), sample(2)]);
    group.world.run_until("both came", PATIENCE, |world| {
        world.reader_ledger(reader).in_sets == 2
    });
    group.end_set();
    group.world.run_until("they are seen", PATIENCE, |world| {
        world.values(reader) == [1, 2]
    });
}

#[test]
fn what_a_set_cannot_be_kept_with_is_refused_at_creation() {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let coherent = |topic: Topic| topic.qos(|qos| qos.presentation = COHERENT_TOPIC);
    let best_effort = coherent(Topic::new("Sets"));
    let filtered = coherent(reliable("Sets")).qos(|qos| qos.time_based_filter = ms(5).into());
    let created = |world: &mut World, topic: &Topic, delivery| {
        let config = topic.config_on(node);
        world.with_protocol(node, |protocol, now| {
            let reader = protocol.create_reader(now, &config, delivery).map(drop);
            (reader, protocol.create_writer(now, &config).map(drop))
        })
    };
    for delivery in [DeliveryMode::Cache, DeliveryMode::View] {
        let refused = Err(CreateError::PresentationNeedsReliable);
        let (reader, writer) = created(&mut world, &best_effort, delivery);
        assert_eq!((reader, writer), (refused, refused));
    }
    let (reader, _) = created(&mut world, &filtered, DeliveryMode::Cache);
    let policies = (PolicyId::PRESENTATION, PolicyId::TIME_BASED_FILTER);
    assert_eq!(
        reader,
        Err(CreateError::InconsistentPolicy(policies.0, policies.1))
    );
}

#[test]
fn a_set_of_which_a_sample_is_too_large_is_dropped_whole() {
    let offered = reliable("Sets").keep_all(32).max_payload_bytes(1_000);
    let requested = offered.clone().max_payload_bytes(200);
    let mut group = groups(World::new(1), COHERENT_TOPIC, &[(offered, requested)]);
    let of = |value| (0, Sample::value(value));
    group.write_set([of(1), (0, Sample::value(2).padded(800)), of(3)]);
    group.write_set([of(4), of(5)]);
    group.world.run_for(SECOND);
    let ledger = group.ledger(0);
    assert_eq!(group.values(), [[4, 5]], "{ledger:?}");
    assert_eq!((ledger.too_large, ledger.incomplete), (1, 2), "{ledger:?}");
}

#[test]
fn of_topic_scope_the_set_of_one_writer_is_whole_though_another_goes_within_its_own() {
    let topics = ["Left", "Right"].map(|name| alike(reliable(name).keep_all(8)));
    let mut group = groups(World::new(1), COHERENT_TOPIC, &topics);
    group.begin_set();
    for (at, value) in [(0, 1), (1, 2), (0, 3)] {
        group.enqueue(at, [Sample::value(value)]);
    }
    group.world.delete_writer(group.writers[1]);
    group.end_set();
    group.world.run_for(SECOND);
    assert_eq!(group.values(), [vec![1, 3], vec![]]);
}
