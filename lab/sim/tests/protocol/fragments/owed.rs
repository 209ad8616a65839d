//! Fragments that a writer still has to send, and those that it no longer has to send.

use std::time::Duration;

use isolane_rtps::{
    Priority,
    limits::{BATCH_BYTES, FRAGMENT_BYTES},
};
use isolane_sim::{NodeConfig, Sample, World, WriterHandle};
use isolane_wire::{
    level::Level,
    message::{NackFrag, Submessage},
    qos::{QosPolicies, ReliabilityKind},
    sequence::{FragmentNumberSet, SequenceNumber},
};

use super::{large, padded};
use crate::{
    peer::{Peer, READER, for_each_submessage},
    submessages::set,
    support::{SECOND, a_pair, ms},
};

const MIB: u32 = 1 << 20;
const FRAGMENTS_OF_MIB: u64 = (MIB as u64).div_ceil(FRAGMENT_BYTES as u64);

#[test]
fn a_large_sample_in_the_place_of_a_small_one_asks_for_no_larger_buffer_than_a_fragment() {
    let topic = large().keep_last(1).reliable().level(3);
    let (mut world, (a, _), writer, reader) = a_pair(&topic);
    let priority = Priority::of_data(Level::clamp(3));
    world.write(writer, Sample::value(1)).expect("it has room");
    world.write(writer, padded(2, MIB)).expect("it replaces");
    assert_ne!(world.protocol(a).ready() & 1 << priority.get(), 0);
    let asked = world.protocol(a).next_bytes(priority);
    assert!(asked <= BATCH_BYTES, "{asked} bytes");
    world.run_for(SECOND);
    assert_eq!(world.values(reader), [2]);
}

/// A writer with two long samples, and a peer's reader to which both have been sent.
fn a_foreign_reader() -> (World, Peer, WriterHandle) {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let topic = large().reliable().keep_all(8).transient_local();
    let writer = world.create_writer(node, &topic.name("Foreign"));
    let mut peer = Peer::of(&mut world, node);
    let mut qos = QosPolicies::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    peer.announce(&mut world, READER, qos);
    world.enqueue(writer, [padded(1, MIB), padded(2, MIB)]);
    world.run_for(SECOND);
    (world, peer, writer)
}

fn ask(world: &mut World, peer: &Peer, writer: WriterHandle, base: i64, asked: &[i64], count: i32) {
    let pair = (READER, world.writer_guid(writer).entity);
    peer.acknack(world, pair, set(base, asked.iter().copied()), count);
}

/// Cyclone DDS requests the fragments of one sample at a time, and those of the next sample after a HEARTBEAT. With a
/// tenth of the fragments lost, 120 samples of 64 KiB took it 8 s longer than their transmission.
#[test]
fn a_reader_of_others_hears_a_heartbeat_behind_the_fragments_it_requested() {
    let (mut world, peer, writer) = a_foreign_reader();
    // The reader has answered, so its requests are repaired. After a second all repairs have been sent.
    ask(&mut world, &peer, writer, 1, &[], 1);
    world.run_for(SECOND);
    let heartbeats = |world: &World| {
        let mut asking = 0;
        for_each_submessage(world, |submessage| {
            if let Submessage::Heartbeat(heartbeat) = submessage {
                asking += u32::from(heartbeat.reader == READER && !heartbeat.is_final);
            }
        });
        asking
    };
    let before = (
        heartbeats(&world),
        world.writer_ledger(writer).fragments_repaired,
    );
    let mut state = FragmentNumberSet::new(3);
    state.insert(3);
    state.insert(7);
    let nack = NackFrag {
        reader: READER,
        writer: world.writer_guid(writer).entity,
        sequence: SequenceNumber(1),
        state,
        count: 1,
    };
    peer.say(&mut world, |message| message.nack_frag(&nack).map(drop));
    // Earlier than any period would end.
    world.run_for(ms(1));
    let repaired = world.writer_ledger(writer).fragments_repaired - before.1;
    assert_eq!((repaired, heartbeats(&world) - before.0), (2, 1));
}

#[test]
fn what_a_reader_has_acknowledged_is_repaired_no_further() {
    let (mut world, peer, writer) = a_foreign_reader();
    ask(&mut world, &peer, writer, 1, &[1, 2], 1);
    ask(&mut world, &peer, writer, 2, &[2], 2);
    world.run_for(Duration::from_micros(500));
    let of_first = world.writer_ledger(writer).fragments_repaired;
    assert!(of_first > 0 && of_first < FRAGMENTS_OF_MIB, "{of_first}");
    ask(&mut world, &peer, writer, 3, &[], 3);
    let repaired = world.writer_ledger(writer).fragments_repaired;
    world.run_for(SECOND);
    let ledger = world.writer_ledger(writer);
    assert!(repaired < FRAGMENTS_OF_MIB, "{repaired}");
    assert_eq!(ledger.fragments_repaired, repaired);
}

#[test]
fn a_sample_that_is_requested_twice_while_it_is_repaired_is_repaired_once() {
    let (mut world, peer, writer) = a_foreign_reader();
    ask(&mut world, &peer, writer, 1, &[1], 1);
    ask(&mut world, &peer, writer, 1, &[1], 2);
    world.run_for(SECOND);
    let ledger = world.writer_ledger(writer);
    assert_eq!(ledger.repaired, 1);
    assert_eq!(ledger.fragments_repaired, FRAGMENTS_OF_MIB);
    ask(&mut world, &peer, writer, 1, &[1], 3);
    world.run_for(SECOND);
    assert_eq!(world.writer_ledger(writer).repaired, 2, "and again later");
}

#[test]
fn a_sample_that_expires_unsent_behind_a_large_one_is_counted_as_expired_and_announced() {
    // 1 MiB takes 4 ms. The first sample is being sent when the others expire, and when the last one is written.
    let topic = large().reliable().keep_all(8);
    let topic = topic.qos(|qos| qos.lifespan = ms(2).into());
    let (mut world, _, writer, reader) = a_pair(&topic);
    world.enqueue(writer, (1..=3).map(|value| padded(value, MIB)));
    world.run_for(ms(3));
    world.enqueue(writer, [padded(4, 20_000)]);
    world.run_for(3 * SECOND);
    let ledger = world.writer_ledger(writer);
    assert_eq!((ledger.sent, ledger.expired_unsent), (2, 2), "{ledger:?}");
    assert_eq!(ledger.evicted_unsent, 0, "{ledger:?}");
    let of_reader = world.reader_ledger(reader);
    assert_eq!(of_reader.accounted, 4, "{of_reader:?}");
    assert_eq!(world.values(reader), [4]);
}

#[test]
fn a_sample_that_expires_while_it_leaves_counts_as_sent_and_expired() {
    for topic in [large().reliable().keep_all(8), large().keep_all(8)] {
        let topic = topic.qos(|qos| qos.lifespan = ms(2).into());
        let (mut world, _, writer, _) = a_pair(&topic);
        for value in 1..=3 {
            world.enqueue(writer, [padded(value, MIB)]);
            world.run_for(SECOND);
            let ledger = world.writer_ledger(writer);
            let counted = (ledger.sent, ledger.expired, ledger.expired_unsent);
            assert_eq!(counted, (value, value, 0), "{ledger:?}");
        }
    }
}

#[test]
fn a_large_sample_that_expired_before_its_first_fragment_is_not_sent() {
    let topic = large().reliable().keep_all(8);
    let topic = topic.qos(|qos| qos.lifespan = ms(50).into());
    let (mut world, (a, _), writer, reader) = a_pair(&topic);
    world.run_for(SECOND);
    world.write(writer, padded(1, MIB)).expect("it has room");
    world.stop_for(a, ms(100));
    world.run_for(3 * SECOND);
    let ledger = world.writer_ledger(writer);
    assert_eq!((ledger.sent, ledger.fragments), (0, 0), "{ledger:?}");
    assert_eq!(ledger.expired_unsent, 1, "{ledger:?}");
    assert_eq!(world.reader_ledger(reader).delivered, 0);
}
