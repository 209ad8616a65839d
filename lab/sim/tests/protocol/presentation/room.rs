//! Room for coherent sets: at readers whose users take no samples, next to sets that never end, and for their ends in
//! histories.

use isolane_sim::{
    LinkConfig, NodeConfig, NodeId, PublisherHandle, ReaderHandle, Sample, Take, Topic, World,
    WriterHandle, seeds,
};

use super::{COHERENT_GROUP, COHERENT_TOPIC, Groups, ORDERED_GROUP, alike, groups, reliable};
use crate::support::{PATIENCE, SECOND, ms};

fn available(world: &World, node: NodeId, reader: ReaderHandle) -> usize {
    world.protocol(node).available(world.reader_id(reader))
}

/// Topics with room for `samples` samples: KEEP_ALL, and KEEP_LAST with that many instances.
fn both_kinds(samples: u16) -> [Topic; 2] {
    let sets = || reliable("Sets").keyed();
    [
        sets().keep_all(samples),
        sets().keep_last(1).max_instances(samples),
    ]
}

/// A writer of sets, and a reader whose user takes samples only when the test does so.
fn untaken(requested: Topic) -> Groups {
    let offered = reliable("Sets").keep_all(64).keyed();
    let mut group = groups(World::new(1), COHERENT_TOPIC, &[(offered, requested)]);
    group.world.set_take(group.readers[0], Take::OnRequest);
    group
}

impl Groups {
    fn available(&self) -> usize {
        available(&self.world, self.nodes.1, self.readers[0])
    }

    fn taken(&mut self) -> Vec<u64> {
        self.world.take(self.readers[0], 99);
        self.values().swap_remove(0)
    }
}

#[test]
fn a_set_larger_than_the_room_does_not_wait_for_a_user_who_only_looks() {
    for requested in both_kinds(4) {
        let mut group = untaken(requested);
        group.enqueue(0, [Sample::keyed(0, 1)]);
        group.world.run_for(ms(20));
        group.write_set((1..=6).map(|key| (0, Sample::keyed(key, 1 + u64::from(key)))));
        group.write_set((1..=2).map(|key| (0, Sample::keyed(key, 7 + u64::from(key)))));
        group.world.run_for(SECOND);
        assert_eq!(group.available(), 3);
        assert_eq!(group.taken(), [1, 8, 9]);
        let ledger = group.ledger(0);
        assert_eq!((ledger.incomplete, ledger.in_sets), (6, 0));
    }
}

/// Writers of separate publishers on one node, and a reader of all of them.
struct Crowd {
    world: World,
    nodes: Vec<NodeId>,
    publishers: Vec<PublisherHandle>,
    writers: Vec<WriterHandle>,
    reader: ReaderHandle,
}

fn crowd(count: usize, requested: &Topic) -> Crowd {
    let mut world = World::new(1);
    let nodes = world.nodes(2, &NodeConfig::default());
    let subscriber = world.create_subscriber(nodes[1], COHERENT_TOPIC);
    let reader = world.create_reader_in(subscriber, requested);
    world.set_take(reader, Take::OnRequest);
    let mut crowd = Crowd {
        world,
        nodes,
        publishers: Vec::new(),
        writers: Vec::new(),
        reader,
    };
    (0..count).for_each(|_| crowd.add());
    crowd
}

impl Crowd {
    fn add(&mut self) {
        let publisher = self.world.create_publisher(self.nodes[0], COHERENT_TOPIC);
        let topic = reliable("Sets").keep_all(64).keyed();
        let topic = topic.max_payload_bytes(1_000);
        let writer = self.world.create_writer_in(publisher, &topic);
        self.publishers.push(publisher);
        self.writers.push(writer);
        self.world.until_matched(&self.writers, &[self.reader]);
    }

    /// The open sets of three writers need one slot more than there are. A further slot holds a sample that is never
    /// taken.
    fn three_open_sets(&mut self) {
        self.world.enqueue(self.writers[0], [Sample::keyed(0, 100)]);
        self.world.run_for(ms(20));
        for (nth, &writer) in (1..).zip(&self.writers) {
            self.world.begin_set(self.publishers[nth - 1]);
            let value = 10 * nth as u64;
            let samples = [value, value + 1].map(|value| Sample::keyed(value as u32, value));
            self.world.enqueue(writer, samples);
            self.world.run_for(ms(20));
        }
    }

    fn end(&mut self, nth: usize) {
        let ended = self.world.end_set(self.publishers[nth]);
        ended.expect("there is room for the end");
        self.world.run_for(ms(20));
    }

    fn available(&self) -> usize {
        available(&self.world, self.nodes[1], self.reader)
    }
}

#[test]
fn sets_that_end_make_room_for_others_and_none_is_dropped() {
    for requested in both_kinds(5) {
        let mut crowd = crowd(3, &requested);
        crowd.three_open_sets();
        assert_eq!(crowd.available(), 1);
        (0..3).for_each(|nth| crowd.end(nth));
        let ledger = crowd.world.reader_ledger(crowd.reader);
        assert_eq!((ledger.incomplete, ledger.in_sets), (0, 2), "{ledger:?}");
        crowd.world.take(crowd.reader, 99);
        assert_eq!(
            crowd.world.values(crowd.reader),
            [100, 10, 11, 20, 21, 30, 31]
        );
    }
}

#[test]
fn of_sets_that_do_not_end_one_is_dropped_so_that_the_others_can() {
    for requested in both_kinds(5) {
        let mut crowd = crowd(3, &requested);
        crowd.three_open_sets();
        crowd.world.run_for(SECOND);
        let ledger = crowd.world.reader_ledger(crowd.reader);
        assert_eq!((ledger.incomplete, ledger.in_sets), (2, 4), "{ledger:?}");
        (0..3).for_each(|nth| crowd.end(nth));
        assert_eq!(crowd.available(), 5, "two of the sets, and what was there");
        crowd.world.take(crowd.reader, 99);
        let values = crowd.world.values(crowd.reader);
        let whole = [10, 20, 30].map(|set| {
            let parts = [set, set + 1].map(|value| values.contains(&value));
            assert_eq!(parts[0], parts[1], "{values:?}");
            parts[0]
        });
        assert_eq!(whole.iter().filter(|&&is_whole| is_whole).count(), 2);
    }
}

#[test]
fn what_is_dropped_since_it_cannot_be_whole_makes_room_at_once() {
    let requested = reliable("Sets").keep_all(2).keyed().max_payload_bytes(200);
    let mut crowd = crowd(3, &requested);
    for (nth, value) in (0..).zip([1, 2, 3]) {
        crowd.world.begin_set(crowd.publishers[nth]);
        let sample = Sample::keyed(value as u32, value);
        crowd.world.enqueue(crowd.writers[nth], [sample]);
        crowd.world.run_for(ms(20));
    }
    let too_large = Sample::keyed(1, 4).padded(800);
    crowd.world.enqueue(crowd.writers[0], [too_large]);
    crowd.world.run_for(ms(50));
    let ledger = crowd.world.reader_ledger(crowd.reader);
    let counts = (ledger.too_large, ledger.incomplete, ledger.in_sets);
    assert_eq!(counts, (1, 1, 2), "the third has its slot: {ledger:?}");
    (0..3).for_each(|nth| crowd.end(nth));
    crowd.world.take(crowd.reader, 99);
    assert_eq!(crowd.world.values(crowd.reader), [2, 3]);
}

#[test]
fn a_set_that_grows_without_end_does_not_keep_the_sets_of_others_from_being_seen() {
    let requested = reliable("Sets").keep_last(1).keyed().max_instances(8);
    let mut crowd = crowd(2, &requested);
    crowd
        .world
        .enqueue(crowd.writers[1], [Sample::keyed(9, 99)]);
    crowd.world.begin_set(crowd.publishers[0]);
    for key in 100..140 {
        let endless = Sample::keyed(key, u64::from(key));
        crowd.world.enqueue(crowd.writers[0], [endless]);
        crowd.world.run_for(ms(20));
    }
    // The user has taken nothing, so the cache has the last sample of each instance.
    for set in 0..10 {
        crowd.world.begin_set(crowd.publishers[1]);
        let samples = [0, 1, 2].map(|nth| Sample::keyed(nth, 3 * set + u64::from(nth)));
        crowd.world.enqueue(crowd.writers[1], samples);
        crowd.end(1);
    }
    crowd.world.run_for(SECOND);
    crowd.world.take(crowd.reader, 99);
    assert_eq!(crowd.world.values(crowd.reader), [99, 27, 28, 29]);
}

#[test]
fn of_a_set_keep_last_holds_what_it_would_show() {
    let offered = reliable("Sets").keep_all(64);
    let requested = reliable("Sets").keep_last(2);
    let mut group = groups(World::new(1), COHERENT_TOPIC, &[(offered, requested)]);
    group.write_set((1..=5).map(|value| (0, Sample::value(value))));
    group.world.run_for(ms(20));
    assert_eq!(group.values(), [[4, 5]]);
    let ledger = group.ledger(0);
    assert_eq!((ledger.evicted, ledger.incomplete), (3, 0));
}

#[test]
fn samples_of_one_instance_in_a_set_need_no_more_room_than_history_gives_them() {
    let requested = reliable("Sets").keep_last(1).keyed().max_instances(4);
    let mut group = untaken(requested);
    for key in 1..=2 {
        group.write_set([(0, Sample::keyed(key, u64::from(key)))]);
    }
    group.write_set((3..=6).map(|value| (0, Sample::keyed(3, value))));
    group.world.run_for(ms(20));
    assert_eq!(group.available(), 3);
    assert_eq!(group.taken(), [1, 2, 6]);
}

#[test]
fn a_writer_that_joins_late_finds_a_place_next_to_one_that_fills_all() {
    let mut crowd = crowd(1, &reliable("Sets").keep_all(4).keyed());
    let sample = |value: u64| Sample::keyed(value as u32, value);
    crowd.world.enqueue(crowd.writers[0], [1, 2].map(sample));
    crowd.world.begin_set(crowd.publishers[0]);
    crowd.world.enqueue(crowd.writers[0], [3, 4, 5].map(sample));
    crowd.end(0);
    // The set finds no room until the user takes samples. As many later samples wait as possible.
    crowd.world.enqueue(crowd.writers[0], (6..40).map(sample));
    crowd.world.run_for(SECOND);
    assert_eq!(crowd.available(), 2);
    crowd.add();
    crowd.world.enqueue(crowd.writers[1], [sample(50)]);
    crowd.world.run_for(SECOND);
    assert_eq!(crowd.available(), 3);
    for _ in 0..100 {
        crowd.world.take(crowd.reader, 99);
        crowd.world.run_for(ms(50));
    }
    let mut values = crowd.world.values(crowd.reader);
    values.sort_unstable();
    let all: Vec<u64> = (1..40).chain([50]).collect();
    assert_eq!(values, all);
}

#[test]
fn more_writers_than_places_to_wait_in_keep_their_order() {
    const WRITERS: usize = 24;
    seeds::for_each(0..40, |seed| {
        let mut world = World::new(seed);
        let mut config = NodeConfig::default();
        config.limits.local_endpoints = 32;
        let nodes = world.nodes(2, &config);
        let publisher = world.create_publisher(nodes[0], ORDERED_GROUP);
        let subscriber = world.create_subscriber(nodes[1], ORDERED_GROUP);
        let topic = reliable("Crowd").keep_all(4);
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| world.create_writer_in(publisher, &topic))
            .collect();
        let reader = world.create_reader_in(subscriber, &topic);
        world.until_matched(&writers, &[reader]);
        world.set_link(LinkConfig::lossy(0.2));
        let count = 3 * WRITERS as u64;
        for value in 0..count {
            let writer = writers[value as usize % WRITERS];
            world.enqueue(writer, [Sample::value(value)]);
        }
        world.run_until("all came", PATIENCE, |world| {
            world.values(reader).len() as u64 == count
        });
        assert_eq!(world.values(reader), (0..count).collect::<Vec<u64>>());
    });
}

#[test]
fn a_keep_last_writer_keeps_the_ends_of_all_sets_it_has_samples_of() {
    let topic = reliable("Sets")
        .keep_last(1)
        .keyed()
        .max_instances(8)
        .transient_local();
    let mut world = World::new(1);
    let nodes = world.nodes(2, &NodeConfig::default());
    let publisher = world.create_publisher(nodes[0], COHERENT_TOPIC);
    let writer = world.create_writer_in(publisher, &topic);
    let write_set = |world: &mut World, key: u32, value: u64| {
        world.begin_set(publisher);
        world.enqueue(writer, [Sample::keyed(key, value)]);
        world.end_set(publisher).expect("there is room for the end");
    };
    write_set(&mut world, 0, 1_000);
    for value in 0..500 {
        write_set(&mut world, 1 + value as u32 % 7, value);
    }
    let subscriber = world.create_subscriber(nodes[1], COHERENT_TOPIC);
    let late = world.create_reader_in(subscriber, &topic);
    world.until_matched(&[writer], &[late]);
    world.run_for(SECOND);
    let mut values = world.values(late);
    values.sort_unstable();
    let last: Vec<u64> = (493..500).chain([1_000]).collect();
    assert_eq!(values, last);
}

#[test]
fn a_history_full_of_instances_has_room_for_the_end_and_that_for_no_other_instance() {
    let topic = reliable("Sets")
        .keep_last(1)
        .keyed()
        .max_instances(4)
        .transient_local();
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let publisher = world.create_publisher(node, COHERENT_TOPIC);
    let writer = world.create_writer_in(publisher, &topic);
    for round in 0..3 {
        world.begin_set(publisher);
        let mut write = |key| world.write(writer, Sample::keyed(key, round)).is_ok();
        assert_eq!(
            [0, 1, 2, 3, 4].map(&mut write),
            [true, true, true, true, false]
        );
        assert_eq!(world.end_set(publisher), Ok(()));
    }
}

#[test]
fn ends_of_sets_of_others_make_room_for_each_other() {
    let topics = ["Left", "Right"].map(|name| alike(reliable(name).keep_last(1).transient_local()));
    let mut group = groups(World::new(1), COHERENT_GROUP, &topics);
    for value in 0..300 {
        group.write_set([(0, Sample::value(value))]);
        group.world.run_for(ms(2));
    }
    group.world.run_for(SECOND);
    assert_eq!(group.values()[0].last(), Some(&299));
    assert_eq!(group.ledger(1).set_ends, 300);
}
