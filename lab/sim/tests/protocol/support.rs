//! Set-up that several of these tests share.

use std::time::Duration;

use isolane_rtps::{ChangeKind, ReaderStatus, WriterStatus};
use isolane_sim::{NodeConfig, NodeId, Random, ReaderHandle, Sample, Topic, World, WriterHandle};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Time limit, longer than any test needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Two nodes that discover each other by multicast.
pub(crate) fn two_nodes(world: &mut World) -> (NodeId, NodeId) {
    let nodes = world.nodes(2, &NodeConfig::default());
    (nodes[0], nodes[1])
}

/// A world, its two nodes, a writer on the first, a reader on the second.
pub(crate) type Pair = (World, (NodeId, NodeId), WriterHandle, ReaderHandle);

/// Two nodes with a writer and a reader that are matched.
pub(crate) fn a_pair(topic: &Topic) -> Pair {
    a_pair_in(World::new(1), topic)
}

/// As [`a_pair`], in an existing world.
pub(crate) fn a_pair_in(world: World, topic: &Topic) -> Pair {
    a_pair_of(world, topic, topic)
}

/// Returns a matched pair in `world`. The writer has the topic `offered`, the reader `requested`.
pub(crate) fn a_pair_of(mut world: World, offered: &Topic, requested: &Topic) -> Pair {
    let (a, b) = two_nodes(&mut world);
    let writer = world.create_writer(a, offered);
    let reader = world.create_reader(b, requested);
    world.until_matched(&[writer], &[reader]);
    (world, (a, b), writer, reader)
}

/// Runs until a reader has taken this many changes.
pub(crate) fn until_taken(world: &mut World, what: &str, reader: ReaderHandle, count: usize) {
    world.run_until(what, PATIENCE, |world| {
        world.received(reader).len() == count
    });
}

/// Number of matched readers of a writer, and of matched writers of a reader.
pub(crate) fn matched(world: &World, writer: WriterHandle, reader: ReaderHandle) -> (usize, usize) {
    (world.matched_readers(writer), world.matched_writers(reader))
}

/// Asserts that both ends were notified of incompatible policies.
pub(crate) fn assert_notified(world: &World, writer: WriterHandle, reader: ReaderHandle) {
    let at_writer = world.writer_statuses(writer);
    assert!(at_writer.contains(WriterStatus::OFFERED_INCOMPATIBLE_QOS));
    let at_reader = world.reader_statuses(reader);
    assert!(at_reader.contains(ReaderStatus::REQUESTED_INCOMPATIBLE_QOS));
}

/// Configuration of a node whose time stamps are ahead of the world's time.
pub(crate) fn ahead(by: Duration) -> NodeConfig {
    NodeConfig {
        stamps_ahead: by,
        ..NodeConfig::default()
    }
}

/// Number of endpoints of other nodes that a node knows.
pub(crate) fn endpoints(world: &World, node: NodeId) -> usize {
    world.protocol(node).remote_endpoints().count()
}

/// Values 1 to `count`.
pub(crate) fn values(count: u64) -> impl Iterator<Item = Sample> {
    (1..=count).map(Sample::value)
}

/// Samples of a few instances, some of which end and are written again.
pub(crate) fn keyed_samples(count: u64, chance: &mut Random) -> Vec<Sample> {
    let sample = |value| {
        let key = chance.below(3) as u32;
        match chance.below(10) {
            0 => Sample::dispose(key),
            1 => Sample::unregister(key),
            _ => Sample::keyed(key, value),
        }
    };
    (1..=count).map(sample).collect()
}

/// Sequence number and change.
pub(crate) type Numbered = (i64, Sample);

/// Returns whether a change is a sample, whatever the state of its instance. An unregister is not, because it may be
/// withheld.
fn is_sample(&(_, sample): &Numbered) -> bool {
    sample.kind != ChangeKind::Unregister
}

/// Changes that a writer has written from a number on, except unregistered instances.
pub(crate) fn written(world: &World, writer: WriterHandle, from: i64) -> Vec<Numbered> {
    let written = world.written(writer).iter();
    written
        .map(|written| (written.sequence.get(), written.sample))
        .filter(|&(sequence, _)| sequence >= from)
        .filter(is_sample)
        .collect()
}

/// Changes that a reader has taken of a writer, except unregistered instances.
pub(crate) fn taken(world: &World, reader: ReaderHandle, writer: WriterHandle) -> Vec<Numbered> {
    let received = world.received_from(reader, writer);
    received
        .filter(|received| received.was_sent())
        .map(|received| {
            let sample = received.sample().expect("a sample of ours");
            assert_eq!(sample.kind == ChangeKind::Alive, received.info.valid_data());
            (received.info.sequence.get(), sample)
        })
        .filter(is_sample)
        .collect()
}
