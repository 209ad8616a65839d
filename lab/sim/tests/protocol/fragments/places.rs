//! Reassembly places: which sample gets one, and how long it holds it.

use isolane_rtps::limits::ASSEMBLIES;
use isolane_sim::{LinkConfig, World};
use isolane_wire::{
    guid::{EntityId, EntityKind},
    message::DataFragPrefix,
    qos::{LivelinessKind, ReliabilityKind},
};

use super::{
    large, padded,
    peers::{CYCLONE, KINDS, a_reader, part, say, volatile},
};
use crate::{
    peer::{Peer, WRITER},
    support::{SECOND, a_pair_in, ms, taken, values, written},
};

const HUGE: usize = 1 << 20;

/// Says a fragment of a sample that never becomes complete.
fn say_endless(world: &mut World, peer: &Peer, writer: EntityId, sequence: i64, fragment: u32) {
    let head = DataFragPrefix {
        writer,
        ..part(sequence, fragment, 1, CYCLONE, HUGE)
    };
    say(world, peer, (head, &[7; 1_344]));
}

#[test]
fn a_writer_that_begins_a_sample_for_each_place_and_falls_silent_stops_no_repair() {
    let topic = large().reliable().keep_all(64).name("Foreign");
    let (mut world, (_, b), writer, reader) = a_pair_in(World::new(3), &topic);
    let mut peer = Peer::of(&mut world, b);
    peer.announce(&mut world, WRITER, volatile(ReliabilityKind::Reliable));
    assert_eq!(world.matched_writers(reader), 2);
    for sequence in 1..=ASSEMBLIES as i64 {
        say_endless(&mut world, &peer, WRITER, sequence, 1);
    }
    world.set_link(LinkConfig::losing(0.3));
    world.publish(writer, ms(5), values(60));
    world.run_for(20 * SECOND);
    assert_eq!(
        taken(&world, reader, writer),
        written(&world, writer, 1),
        "{}",
        world.describe()
    );
}

#[test]
fn a_participant_whose_writers_hold_every_place_makes_way_for_others() {
    let topic = large().reliable().keep_all(8).name("Foreign");
    let (mut world, (_, b), writer, reader) = a_pair_in(World::new(1), &topic);
    let mut peer = Peer::of(&mut world, b);
    let writers: Vec<_> = (1..=ASSEMBLIES as u32)
        .map(|number| EntityId::user(number, EntityKind::WRITER_NO_KEY))
        .collect();
    for &writer in &writers {
        peer.announce(&mut world, writer, volatile(ReliabilityKind::Reliable));
    }
    assert_eq!(world.matched_writers(reader), 1 + ASSEMBLIES);
    for fragment in 1..=20 {
        // Fast enough that no sample counts as stalled.
        for &writer in &writers {
            say_endless(&mut world, &peer, writer, 1, fragment);
        }
        if fragment == 2 {
            world.enqueue(writer, (1..=5).map(|value| padded(value, 100_000)));
        }
        world.run_for(ms(300));
    }
    assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
}

#[test]
fn a_sample_that_is_longer_on_its_way_than_a_lease_keeps_its_writer_alive() {
    let topic = large().reliable().keep_all(8).name("Foreign");
    let mut world = World::new(1);
    let node = world.node(isolane_sim::NodeConfig::default());
    let reader = world.create_reader(node, &topic);
    let mut peer = Peer::of(&mut world, node);
    let mut qos = volatile(ReliabilityKind::Reliable);
    qos.liveliness.kind = LivelinessKind::ManualByTopic;
    qos.liveliness.lease = ms(200).into();
    peer.announce(&mut world, WRITER, qos);
    for fragment in 1..=20 {
        say_endless(&mut world, &peer, WRITER, 1, fragment);
        world.run_for(ms(100));
    }
    let changed = world.take_liveliness_changed(reader).expect("it is alive");
    assert_eq!((changed.alive, changed.not_alive), (1, 0));
    assert_eq!(changed.not_alive_change, 0);
    // The writer has lost its liveliness, and the next fragment asserts it again.
    world.run_for(SECOND);
    let changed = world.take_liveliness_changed(reader).expect("it is silent");
    assert_eq!((changed.alive, changed.not_alive), (0, 1));
    say_endless(&mut world, &peer, WRITER, 1, 20);
    world.run_for(ms(10));
    assert_eq!(world.take_liveliness_changed(reader), None, "nothing new");
    say_endless(&mut world, &peer, WRITER, 1, 21);
    world.run_for(ms(10));
    let changed = world.take_liveliness_changed(reader).expect("it is back");
    assert_eq!((changed.alive, changed.not_alive), (1, 0));
}

#[test]
fn fragments_renew_the_lease_of_a_participant_whose_announcements_are_lost() {
    for kind in KINDS {
        let (mut world, peer, _) = a_reader(kind);
        peer.announce_itself(&mut world, |data| data.lease = 3 * SECOND);
        let peers = |world: &World| world.protocol(peer.target).remote_participants().count();
        for fragment in 1..=20 {
            say_endless(&mut world, &peer, WRITER, 1, fragment);
            world.run_for(SECOND / 2);
        }
        assert_eq!(peers(&world), 1);
        world.run_for(4 * SECOND);
        assert_eq!(peers(&world), 0);
    }
}
