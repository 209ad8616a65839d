//! Forged names of static peers: messages with a static peer's GUID prefix, from another address and from its own, with
//! a forged incarnation and with none.

use std::rc::Rc;

use isolane_rtps::Announces;
use isolane_sim::{NodeConfig, NodeId, ReaderHandle, Sample, World, WriterHandle};
use isolane_wire::{
    guid::{EntityId, GuidPrefix},
    message::{InfoSource, VENDOR_ID, VERSION},
};

use crate::{
    peer::{Peer, head},
    static_discovery::{A, B, one_way, peer_of, peers, report, two_described},
    submessages::{end, heartbeat},
    support::{PATIENCE, SECOND, ms, values},
};

/// Another participant at its own address, with the GUID prefix of the described node 0 and the given start.
fn impostor(world: &mut World, start: u8) -> Peer {
    let node = world.node_down(NodeConfig::default());
    let mut peer = Peer::at(node, B, 9);
    let GuidPrefix(mut prefix) = world.protocol(A).guid_prefix();
    prefix[8..].copy_from_slice(&[start; 4]);
    peer.prefix = GuidPrefix(prefix);
    peer
}

/// Two matched described nodes: a writer on the first, a reader on the second.
fn met(announces: Announces) -> (World, WriterHandle, ReaderHandle) {
    let mut world = World::new(1);
    two_described(&mut world, one_way(announces, &[report()]));
    let writer = world.create_writer(A, &report());
    let reader = world.create_reader(B, &report());
    world.until_matched(&[writer], &[reader]);
    (world, writer, reader)
}

#[test]
fn a_described_name_at_another_address_is_not_believed() {
    for announces in [Announces::All, Announces::Itself, Announces::Nothing] {
        let (mut world, writer, reader) = met(announces);
        world.run_for(SECOND);
        let mut refused = 0;
        for start in [1, 2, 3] {
            let peer = impostor(&mut world, start);
            peer.announce_itself(&mut world, |_| {});
            peer.heartbeat(&mut world, (1, 100), 1);
            peer.value(&mut world, 1);
            peer.leave(&mut world);
            let impostors = world.protocol(B).counters().static_impostors;
            assert!(impostors >= refused + 4);
            refused = impostors;
        }
        assert_eq!(peer_of(&world, B).restarts, 0);
        assert_eq!(peers(&world, B), 1);
        world.enqueue(writer, values(10));
        world.run_for(SECOND);
        assert_eq!(world.values(reader), (1..=10).collect::<Vec<_>>());
    }
}

#[test]
fn a_good_bye_in_the_whole_name_from_another_address_is_not_believed() {
    let (mut world, _writer, reader) = met(Announces::Itself);
    let mut peer = impostor(&mut world, 1);
    peer.prefix = world.protocol(A).guid_prefix();
    peer.leave(&mut world);
    assert_eq!(world.protocol(B).counters().static_impostors, 1);
    assert_eq!(world.matched_writers(reader), 1);
}

#[test]
fn starts_that_are_forged_from_the_right_address_cost_ten_partings_a_second() {
    let (mut world, writer, reader) = met(Announces::Nothing);
    world.run_for(SECOND);
    let mut peer = impostor(&mut world, 0);
    peer.node = A;
    for number in 1..=1_000u32 {
        peer.prefix.0[8..].copy_from_slice(&number.to_be_bytes());
        peer.heartbeat(&mut world, (1, 100), 1);
    }
    let restarts = peer_of(&world, B).restarts;
    assert!((5..=11).contains(&restarts), "{restarts} in a second");
    // The true peer is matched again by its own messages.
    world.enqueue(writer, values(3));
    world.run_until("it is believed again", 3 * SECOND, |world| {
        is_the_true_one(world, B) && world.values(reader).len() == 3
    });
}

/// Returns whether a node regards the described node 0 as the true peer.
fn is_the_true_one(world: &World, node: NodeId) -> bool {
    let peer = peer_of(world, node);
    peer.is_present && peer.prefix == world.protocol(A).guid_prefix()
}

#[test]
fn one_start_that_is_forged_from_the_right_address_silences_the_true_one_for_a_second() {
    for announces in [Announces::All, Announces::Itself, Announces::Nothing] {
        let (mut world, writer, reader) = met(announces);
        world.enqueue(writer, values(3));
        world.run_for(SECOND);
        assert!(is_the_true_one(&world, B));
        let mut peer = impostor(&mut world, 77);
        peer.node = A;
        peer.heartbeat(&mut world, (1, 100), 1);
        assert_eq!(peer_of(&world, B).restarts, 1);
        assert!(!is_the_true_one(&world, B));
        // The samples that it writes meanwhile show that it is alive.
        world.publish(writer, ms(50), (4..=43).map(Sample::value));
        world.run_until("it is believed again", 2 * SECOND, |world| {
            is_the_true_one(world, B)
        });
        world.run_until("what it writes comes", PATIENCE, |world| {
            world.values(reader).last() == Some(&43)
        });
        assert_eq!(peer_of(&world, B).restarts, 2);
    }
}

#[test]
fn a_good_bye_or_an_announcement_of_one_that_announces_nothing_is_not_believed() {
    let (mut world, writer, reader) = met(Announces::Nothing);
    world.enqueue(writer, values(3));
    world.run_for(SECOND);
    let mut peer = impostor(&mut world, 1);
    (peer.prefix, peer.node) = (world.protocol(A).guid_prefix(), A);
    peer.leave(&mut world);
    peer.announce_itself(&mut world, |data| data.lease = ms(1));
    assert_eq!(world.protocol(B).counters().static_impostors, 2);
    world.run_for(SECOND);
    assert_eq!(world.matched_writers(reader), 1);
    world.enqueue(writer, (4..=6).map(Sample::value));
    world.run_for(SECOND);
    assert_eq!(world.values(reader), (1..=6).collect::<Vec<_>>());
    assert_eq!(peer_of(&world, B).restarts, 0);
}

/// Sends all messages that could harm the reader of a described writer, in the peer's name or, with `behind`, by an
/// INFO_SRC behind another name. Returns the number of messages.
fn say_what_harms(world: &mut World, peer: &mut Peer, writer: EntityId, behind: bool) -> u64 {
    let name = peer.prefix;
    if behind {
        peer.prefix = GuidPrefix([7; 12]);
    }
    let source = InfoSource {
        version: VERSION,
        vendor: VENDOR_ID,
        prefix: name,
    };
    let payload = Sample::value(99).payload();
    let sample = head(writer, 1);
    let farewell = end(EntityId::SPDP_WRITER, 2);
    let heartbeat = heartbeat(writer, (1 << 62, 1 << 62), 1_000);
    for which in 0..3 {
        peer.say(world, |message| {
            if behind {
                message.info_source(&source)?;
            }
            match which {
                0 => message.data(&sample, &payload).map(drop),
                1 => message.heartbeat(&heartbeat).map(drop),
                _ => message.data(&farewell, &[]).map(drop),
            }
        });
    }
    peer.prefix = name;
    3
}

#[test]
fn a_described_name_without_an_incarnation_is_not_believed() {
    for (behind, is_right_address) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut world = World::new(1);
        let config = NodeConfig {
            described: Some(Rc::new(one_way(Announces::Itself, &[report()]))),
            ..NodeConfig::default()
        };
        // The peer has not started yet, so all that is known of it comes from the description.
        world.node_down(config.clone());
        world.node(config);
        let reader = world.create_reader(B, &report());
        let entity = world.protocol(B).remote_endpoints().next();
        let entity = entity.expect("it is described").data.guid.entity;
        let stranger = world.node_down(NodeConfig::default());
        let node = if is_right_address { A } else { stranger };
        let mut peer = Peer::at(node, B, 9);
        peer.prefix = peer_of(&world, B).prefix;
        assert_eq!(peer.prefix.0[8..], [0; 4]);
        let said = say_what_harms(&mut world, &mut peer, entity, behind);
        assert_eq!(world.protocol(B).counters().static_impostors, said);
        assert_eq!(world.matched_writers(reader), 1);
        assert!(world.received(reader).is_empty());
        world.restart(A);
        let writer = world.create_writer(A, &report());
        world.until_matched(&[writer], &[reader]);
        world.enqueue(writer, values(3));
        world.run_for(SECOND);
        assert_eq!(world.values(reader), [1, 2, 3], "the true one is met");
        let said = said + say_what_harms(&mut world, &mut peer, entity, behind);
        assert_eq!(world.protocol(B).counters().static_impostors, said);
        world.enqueue(writer, (4..=6).map(Sample::value));
        world.run_for(SECOND);
        assert_eq!(world.values(reader), (1..=6).collect::<Vec<_>>());
        assert!(is_the_true_one(&world, B));
        assert_eq!(peer_of(&world, B).restarts, 0);
    }
}
