//! OWNERSHIP EXCLUSIVE: samples of the strongest writer of an instance are delivered, and those of another writer when
//! it fails (DDS 1.4 §2.2.3.9, §2.2.3.10).

use std::time::Duration;

use isolane_sim::{
    LinkConfig, NodeConfig, NodeId, Partition, ReaderHandle, Sample, Topic, World, WriterHandle,
    seeds,
};
use isolane_wire::{
    guid::{EntityId, EntityKind},
    qos::{LivelinessKind, OwnershipKind, QosPolicies},
    time::Instant,
};

use crate::{
    peer::{Peer, head},
    support::{SECOND, ms, values},
};

fn owned(strength: i32) -> Topic {
    let topic = Topic::new("Owned").reliable().keep_last(4);
    topic.qos(|qos| {
        qos.ownership = OwnershipKind::Exclusive;
        qos.ownership_strength = strength;
    })
}

/// A weak writer, a strong writer and a reader, each on its own node.
struct Rivals {
    world: World,
    nodes: Vec<NodeId>,
    weak: WriterHandle,
    strong: WriterHandle,
    reader: ReaderHandle,
}

fn rivals(world: World, change: impl Fn(Topic) -> Topic) -> Rivals {
    let mut world = world;
    let nodes = world.nodes(3, &NodeConfig::default());
    let weak = world.create_writer(nodes[0], &change(owned(1)));
    let strong = world.create_writer(nodes[1], &change(owned(2)));
    let reader = world.create_reader(nodes[2], &change(owned(0)));
    world.until_matched(&[weak, strong], &[reader]);
    Rivals {
        world,
        nodes,
        weak,
        strong,
        reader,
    }
}

impl Rivals {
    /// Both writers write every 10 ms. The weak one uses values below a thousand, the strong one above.
    fn write_for(&mut self, time: Duration) {
        let count = (time.as_millis() / 10) as u64;
        self.world.publish(self.weak, ms(10), values(count));
        let strong = (1..=count).map(|value| Sample::value(1_000 + value));
        self.world.publish(self.strong, ms(10), strong);
    }

    /// Returns whether samples of the weak and of the strong writer were received since `at`.
    fn seen_since(&self, at: Instant) -> (bool, bool) {
        let seen = |writer| {
            let mut of_writer = self.world.received_from(self.reader, writer);
            of_writer.any(|received| received.at > at && received.info.valid_data())
        };
        (seen(self.weak), seen(self.strong))
    }

    fn seen_in_the_next(&mut self, time: Duration) -> (bool, bool) {
        let begin = self.world.now();
        self.world.run_for(time);
        self.seen_since(begin)
    }
}

#[test]
fn the_stronger_writer_is_seen_from_its_first_sample_on_and_the_weaker_is_counted() {
    for topic in [|topic| topic, Topic::multicast] {
        let mut rivals = rivals(World::new(1), topic);
        rivals.world.enqueue(rivals.weak, values(3));
        assert_eq!(rivals.seen_in_the_next(ms(20)), (true, false));
        rivals.write_for(SECOND);
        rivals.world.run_for(ms(20));
        assert_eq!(rivals.seen_in_the_next(SECOND), (false, true));
        let ledger = rivals.world.reader_ledger(rivals.reader);
        assert!(ledger.not_owner >= 95, "{ledger:?}");
        let weak = rivals.world.writer_ledger(rivals.weak);
        assert_eq!(weak.repaired, 0);
        let node = rivals.world.protocol(rivals.nodes[0]);
        assert!(node.all_acknowledged(rivals.world.writer_id(rivals.weak)));
    }
}

#[test]
fn each_instance_has_its_own_owner() {
    let mut rivals = rivals(World::new(1), Topic::keyed);
    let (world, reader) = (&mut rivals.world, rivals.reader);
    world.enqueue(rivals.strong, [Sample::keyed(1, 10)]);
    world.run_for(ms(20));
    world.enqueue(rivals.weak, [Sample::keyed(1, 11), Sample::keyed(2, 21)]);
    world.run_for(ms(20));
    assert_eq!(world.values(reader), [10, 21]);
    world.enqueue(rivals.strong, [Sample::unregister(1)]);
    world.run_for(ms(20));
    let unregistered = world.reader_ledger(reader).unregistered;
    assert_eq!(
        (world.received(reader).len(), unregistered),
        (2, 1),
        "the other writes it"
    );
    world.enqueue(rivals.weak, [Sample::keyed(1, 12)]);
    world.run_for(ms(20));
    assert_eq!(world.values(reader), [10, 21, 12]);
}

#[test]
fn of_equals_the_one_with_the_lower_guid_is_seen_in_any_order_of_arrival() {
    for first in 0..2 {
        let mut world = World::new(1);
        let nodes = world.nodes(3, &NodeConfig::default());
        let writers = [nodes[0], nodes[1]].map(|node| world.create_writer(node, &owned(7)));
        let reader = world.create_reader(nodes[2], &owned(0));
        world.until_matched(&writers, &[reader]);
        for turn in 0..6 {
            let which = (first + turn) % 2;
            world.enqueue(writers[which], [Sample::value(which as u64)]);
            world.run_for(ms(20));
        }
        let lower = usize::from(world.writer_guid(writers[1]) < world.writer_guid(writers[0]));
        let values = world.values(reader);
        let other = values
            .iter()
            .filter(|&&value| value != lower as u64)
            .count();
        assert_eq!(other, usize::from(first != lower), "{values:?}");
        assert_eq!(values.len(), 3 + other);
    }
}

#[test]
fn another_follows_within_the_deadline_when_the_owner_falls_silent() {
    let with_deadline = |topic: Topic| topic.qos(|qos| qos.deadline = ms(50).into());
    let mut rivals = rivals(World::new(1), with_deadline);
    rivals.write_for(5 * SECOND);
    rivals.world.run_for(SECOND);
    let cut = Partition::between(&[rivals.nodes[1]], &[rivals.nodes[2]]);
    rivals.world.partition(cut);
    let begin = rivals.world.now();
    rivals.world.run_for(ms(75));
    let taken_over = rivals.world.received_from(rivals.reader, rivals.weak);
    let first = taken_over.filter(|it| it.at > begin).map(|it| it.at).min();
    let after = first.map(|first| first.saturating_since(begin));
    assert!(after.is_some_and(|after| after <= ms(50 + 15)), "{after:?}");
    assert_eq!(rivals.seen_in_the_next(ms(500)), (true, false));
    rivals.world.heal();
    rivals.world.run_for(ms(200));
    assert_eq!(rivals.seen_in_the_next(ms(500)), (false, true));
}

#[test]
fn another_follows_when_the_owner_is_not_alive_any_more_or_gone() {
    let lively = |topic: Topic| {
        topic.qos(|qos| {
            qos.liveliness.kind = LivelinessKind::ManualByTopic;
            qos.liveliness.lease = ms(80).into();
        })
    };
    let mut rivals = rivals(World::new(1), lively);
    rivals.write_for(5 * SECOND);
    rivals.world.run_for(SECOND);
    rivals.world.stop_for(rivals.nodes[1], ms(500));
    rivals.world.run_for(ms(100));
    assert_eq!(rivals.seen_in_the_next(ms(300)), (true, false));
    rivals.world.run_for(ms(200));
    assert_eq!(rivals.seen_in_the_next(ms(300)), (false, true));
    rivals.world.delete_writer(rivals.strong);
    rivals.world.run_for(ms(50));
    assert_eq!(rivals.seen_in_the_next(ms(300)), (true, false));
}

/// The strength may change while a writer writes.
#[test]
fn a_writer_that_announces_another_strength_wins_or_loses_by_it() {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let topic = Topic::new("Foreign").keep_last(8).qos(|qos| {
        qos.ownership = OwnershipKind::Exclusive;
    });
    let reader = world.create_reader(node, &topic);
    let mut peer = Peer::of(&mut world, node);
    let [one, other] = [1, 3].map(|number| EntityId::user(number, EntityKind::WRITER_NO_KEY));
    let announce = |world: &mut World, peer: &mut Peer, writer, strength| {
        let qos = QosPolicies {
            ownership: OwnershipKind::Exclusive,
            ownership_strength: strength,
            ..QosPolicies::writer_default()
        };
        peer.announce(world, writer, qos);
    };
    announce(&mut world, &mut peer, one, 5);
    announce(&mut world, &mut peer, other, 4);
    let mut number = 0;
    let mut both_write = |world: &mut World, peer: &Peer| {
        number += 1;
        for (writer, value) in [(one, 1), (other, 2)] {
            let payload = Sample::value(value).payload();
            let head = head(writer, number);
            peer.say(world, |message| message.data(&head, &payload).map(drop));
        }
        world.values(reader).last().copied()
    };
    assert_eq!(both_write(&mut world, &peer), Some(1));
    announce(&mut world, &mut peer, other, 6);
    assert_eq!(both_write(&mut world, &peer), Some(2));
    assert_eq!(both_write(&mut world, &peer), Some(2));
    announce(&mut world, &mut peer, other, 3);
    assert_eq!(both_write(&mut world, &peer), Some(1));
    assert_eq!(both_write(&mut world, &peer), Some(1));
}

#[test]
fn over_bad_links_a_weaker_writer_is_not_seen_after_a_stronger_one() {
    seeds::for_each(0..40, |seed| {
        let world = World::new(seed).link(LinkConfig::lossy(0.2));
        let mut rivals = rivals(world, |topic| topic);
        rivals.write_for(SECOND);
        rivals.world.run_for(3 * SECOND);
        let values = rivals.world.values(rivals.reader);
        let first_strong = values.iter().position(|&value| value > 1_000);
        let first_strong = first_strong.expect("the strong one was seen");
        let is_strong = |&value: &u64| value > 1_000;
        assert!(values[first_strong..].iter().all(is_strong), "seed {seed}");
        assert_eq!(values.last(), Some(&1_100), "seed {seed}");
    });
}
