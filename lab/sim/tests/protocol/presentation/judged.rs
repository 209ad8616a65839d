//! Samples of sets together with those of other writers: only delivered samples determine the latest sample and the
//! owner of an instance.

use isolane_sim::{PublisherHandle, ReaderHandle, Sample, Topic, World, WriterHandle};
use isolane_wire::qos::{DestinationOrderKind, OwnershipKind};

use super::{COHERENT_TOPIC, reliable};
use crate::support::{SECOND, ahead, ms};

/// Two writers, each with its own publisher. The clock of one of their nodes is a second ahead.
struct TwoWriters {
    world: World,
    set_of: PublisherHandle,
    in_set: WriterHandle,
    outside: WriterHandle,
    reader: ReaderHandle,
}

fn two_writers(is_set_ahead: bool, change: impl Fn(Topic, bool) -> Topic) -> TwoWriters {
    let mut world = World::new(1);
    let mut node = |is_ahead: bool| world.node(ahead(if is_ahead { SECOND } else { ms(0) }));
    let nodes = [node(is_set_ahead), node(!is_set_ahead), node(false)];
    let topic = |is_in_set| change(reliable("Places").keep_all(16).keyed(), is_in_set);
    let publishers = [nodes[0], nodes[1]].map(|node| world.create_publisher(node, COHERENT_TOPIC));
    let in_set = world.create_writer_in(publishers[0], &topic(true));
    let outside = world.create_writer_in(publishers[1], &topic(false));
    let subscriber = world.create_subscriber(nodes[2], COHERENT_TOPIC);
    let reader = world.create_reader_in(subscriber, &topic(false));
    world.until_matched(&[in_set, outside], &[reader]);
    TwoWriters {
        world,
        set_of: publishers[0],
        in_set,
        outside,
        reader,
    }
}

fn by_source(topic: Topic, _: bool) -> Topic {
    topic.qos(|qos| qos.destination_order = DestinationOrderKind::BySourceTimestamp)
}

fn owned(topic: Topic, is_in_set: bool) -> Topic {
    topic.qos(|qos| {
        qos.ownership = OwnershipKind::Exclusive;
        qos.ownership_strength = i32::from(is_in_set);
    })
}

impl TwoWriters {
    fn write(&mut self, writer: WriterHandle, value: u64) {
        self.world.enqueue(writer, [Sample::keyed(1, value)]);
        self.world.run_for(ms(20));
    }

    fn begin_with(&mut self, value: u64) {
        self.world.begin_set(self.set_of);
        self.write(self.in_set, value);
    }

    fn write_outside(&mut self, value: u64) {
        self.write(self.outside, value);
    }

    fn end(&mut self) {
        let ended = self.world.end_set(self.set_of);
        ended.expect("there is room for the end");
        self.world.run_for(ms(20));
    }

    fn values(&self) -> Vec<u64> {
        self.world.values(self.reader)
    }
}

#[test]
fn what_a_set_holds_makes_nothing_outdated_before_it_is_seen() {
    let mut it = two_writers(true, by_source);
    it.begin_with(10);
    it.write_outside(1);
    assert_eq!(it.values(), [1]);
    it.end();
    it.write_outside(2);
    assert_eq!(it.values(), [1, 10]);
    assert_eq!(it.world.reader_ledger(it.reader).outdated, 1);
}

#[test]
fn a_set_that_is_dropped_has_made_nothing_outdated() {
    let mut it = two_writers(true, by_source);
    it.begin_with(10);
    it.write_outside(1);
    it.world.delete_writer(it.in_set);
    it.write_outside(2);
    assert_eq!(it.values(), [1, 2]);
    let ledger = it.world.reader_ledger(it.reader);
    assert_eq!((ledger.outdated, ledger.incomplete), (0, 1));
}

#[test]
fn of_a_set_that_is_seen_late_what_is_outdated_by_then_is_not_seen() {
    let mut it = two_writers(false, by_source);
    it.begin_with(10);
    let other = Sample::keyed(2, 11);
    it.world.enqueue(it.in_set, [other]);
    it.write_outside(1);
    it.end();
    assert_eq!(
        it.values(),
        [1, 11],
        "the instance does not go back in time"
    );
    let ledger = it.world.reader_ledger(it.reader);
    assert_eq!((ledger.outdated, ledger.in_sets), (1, 0));
}

#[test]
fn who_owns_an_instance_is_decided_when_a_set_is_seen() {
    let mut it = two_writers(true, owned);
    it.begin_with(10);
    it.write_outside(1);
    assert_eq!(it.values(), [1], "of the stronger one nothing is seen yet");
    it.end();
    it.write_outside(2);
    assert_eq!(it.values(), [1, 10]);
    assert_eq!(it.world.reader_ledger(it.reader).not_owner, 1);
}

#[test]
fn a_set_that_is_dropped_has_owned_nothing() {
    let mut it = two_writers(true, owned);
    it.begin_with(10);
    it.write_outside(1);
    it.world.delete_writer(it.in_set);
    it.world.run_for(SECOND);
    it.write_outside(2);
    assert_eq!(it.values(), [1, 2]);
    assert_eq!(it.world.reader_ledger(it.reader).not_owner, 0);
}
