//! Peers of other implementations: messages made by hand and the answers to them, and replayed captures.

mod answers;
mod extension;
mod replay;
mod samples;

use isolane_sim::{NodeConfig, ReaderHandle, Topic, World, WriterHandle};
use isolane_wire::{
    guid::EntityId,
    qos::{DurabilityKind, QosPolicies, ReliabilityKind},
};

use crate::peer::{KEYED_WRITER, Peer, READER, WRITER};

fn reliable(durability: DurabilityKind) -> QosPolicies {
    let mut qos = QosPolicies::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.durability = durability;
    qos
}

/// A VOLATILE reliable reader, matched with a writer of a peer.
fn a_reader(durability: DurabilityKind) -> (World, Peer, ReaderHandle) {
    let topic = Topic::new("Foreign").reliable().keep_all(64);
    a_reader_of(&topic, WRITER, durability)
}

/// A best-effort reader of a topic with a key, matched with a writer of a peer.
fn a_keyed_reader() -> (World, Peer, ReaderHandle) {
    let topic = Topic::new("Foreign").keyed().keep_all(8);
    a_reader_of(&topic, KEYED_WRITER, DurabilityKind::Volatile)
}

fn a_reader_of(
    topic: &Topic,
    writer: EntityId,
    durability: DurabilityKind,
) -> (World, Peer, ReaderHandle) {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let reader = world.create_reader(node, topic);
    let mut peer = Peer::of(&mut world, node);
    peer.announce(&mut world, writer, reliable(durability));
    assert_eq!(world.matched_writers(reader), 1);
    (world, peer, reader)
}

/// A reliable writer, and a peer that has announced a reader of it.
fn a_writer() -> (World, Peer, WriterHandle) {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let topic = Topic::new("Foreign")
        .reliable()
        .keep_all(64)
        .transient_local();
    let writer = world.create_writer(node, &topic);
    let mut peer = Peer::of(&mut world, node);
    peer.announce(&mut world, READER, reliable(DurabilityKind::Volatile));
    (world, peer, writer)
}
