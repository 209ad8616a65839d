//! Ignored entities: they have no effect from then on, permanently.

use isolane_rtps::{
    IgnoreError,
    limits::{MAX_IGNORED, MAX_IGNORED_TOPICS},
};
use isolane_sim::{LinkConfig, Topic, World, seeds};
use isolane_wire::guid::{EntityId, EntityKind, Guid, GuidPrefix};

use crate::{
    peer::{KEYED_WRITER, Peer, WRITER},
    support::{
        PATIENCE, SECOND, a_pair, a_pair_in, endpoints, matched, ms, two_nodes, until_taken, values,
    },
};

fn topic() -> Topic {
    Topic::new("Ignored").reliable().keep_last(4)
}

fn peers(world: &World, node: isolane_sim::NodeId) -> usize {
    world.protocol(node).remote_participants().count()
}

#[test]
fn an_ignored_participant_goes_with_its_endpoints_and_does_not_come_back() {
    seeds::for_each(0..10, |seed| {
        let (mut world, (a, b), writer, reader) =
            a_pair_in(World::new(seed).link(LinkConfig::lossy(0.1)), &topic());
        let prefix = world.protocol(a).guid_prefix();
        world
            .with_protocol(b, |protocol, now| protocol.ignore_participant(now, prefix))
            .unwrap();
        world.run_until("it is gone", SECOND, |world| {
            peers(world, b) == 0 && world.matched_writers(reader) == 0
        });
        assert_eq!(endpoints(&world, b), 0);
        world.publish(writer, ms(10), values(100));
        world.run_for(20 * SECOND);
        assert_eq!(peers(&world, b), 0);
        assert!(world.received(reader).is_empty());
        assert!(world.protocol(b).counters().announcements_ignored > 5);
        // After the restart it has another GUID prefix.
        world.crash(a);
        world.restart(a);
        let again = world.create_writer(a, &topic());
        world.until_matched(&[again], &[reader]);
    });
}

#[test]
fn an_ignored_endpoint_goes_and_others_of_its_participant_stay() {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    let writers = [(); 2].map(|()| world.create_writer(a, &topic()));
    let readers = [(); 2].map(|()| world.create_reader(b, &topic()));
    world.until_matched(&writers, &readers);
    let (writer, reader) = (world.writer_guid(writers[0]), world.reader_guid(readers[0]));
    world
        .with_protocol(b, |protocol, now| protocol.ignore_endpoint(now, writer))
        .unwrap();
    world
        .with_protocol(a, |protocol, now| protocol.ignore_endpoint(now, reader))
        .unwrap();
    let matched = |world: &World| {
        (
            writers.map(|writer| world.matched_readers(writer)),
            readers.map(|reader| world.matched_writers(reader)),
        )
    };
    assert_eq!(matched(&world), ([1, 1], [1, 1]));
    // The endpoint stays ignored when it changes and is announced again.
    let renewed = |qos: &mut isolane_wire::qos::QosPolicies| qos.ownership_strength = 3;
    world.set_writer_qos(writers[0], renewed).unwrap();
    world.set_reader_qos(readers[0], renewed).unwrap();
    world.run_for(20 * SECOND);
    assert_eq!(matched(&world), ([1, 1], [1, 1]));
    let late = world.create_reader(b, &topic());
    world.run_for(SECOND);
    assert_eq!(world.matched_writers(late), 1, "of two writers");
    world.enqueue(writers[1], values(3));
    until_taken(&mut world, "the other writer is heard", readers[1], 3);
}

#[test]
fn an_ignored_topic_has_no_endpoints_any_more() {
    let (mut world, (_, b), writer, reader) = a_pair(&topic());
    let other = Topic::new("Other");
    let own = world.create_writer(b, &topic());
    let others = (
        world.create_writer(b, &other),
        world.create_reader(b, &other),
    );
    world.until_matched(&[others.0], &[others.1]);
    world.run_until("the local writer is met", PATIENCE, |world| {
        world.matched_writers(reader) == 2
    });
    world
        .with_protocol(b, |protocol, now| protocol.ignore_topic(now, "Ignored"))
        .unwrap();
    assert_eq!(
        (world.matched_writers(reader), world.matched_readers(own)),
        (0, 0)
    );
    let late = (
        world.create_writer(b, &topic()),
        world.create_reader(b, &topic()),
    );
    world.run_for(20 * SECOND);
    let matched = [reader, late.1].map(|reader| world.matched_writers(reader));
    assert_eq!((matched, world.matched_readers(late.0)), ([0, 0], 0));
    assert_eq!(endpoints(&world, b), 0);
    // The other participants are not affected.
    assert_eq!(world.matched_writers(others.1), 1);
    assert_eq!(
        world.matched_readers(writer),
        1,
        "it goes on waiting for the one it had"
    );
}

#[test]
fn a_participant_that_ignores_itself_does_not_hear_itself() {
    let (mut world, (a, _), writer, reader) = a_pair(&topic());
    let own = world.create_reader(a, &topic());
    world.until_matched(&[writer], &[reader, own]);
    let prefix = world.protocol(a).guid_prefix();
    world
        .with_protocol(a, |protocol, now| protocol.ignore_participant(now, prefix))
        .unwrap();
    assert_eq!(matched(&world, writer, own), (1, 0));
    world.enqueue(writer, values(2));
    until_taken(&mut world, "others hear it", reader, 2);
    assert!(world.received(own).is_empty());
}

#[test]
fn what_is_ignored_before_it_is_heard_of_never_comes() {
    let mut world = World::new(1);
    let (a, _) = two_nodes(&mut world);
    let reader = world.create_reader(a, &Topic::new("Foreign"));
    let mut peer = Peer::of(&mut world, a);
    let guid = Guid {
        prefix: peer.prefix,
        entity: WRITER,
    };
    world
        .with_protocol(a, |protocol, now| protocol.ignore_endpoint(now, guid))
        .unwrap();
    peer.announce_with(&mut world, WRITER, |_| {});
    peer.announce_with(&mut world, KEYED_WRITER, |_| {});
    world.run_for(ms(100));
    assert_eq!(
        (world.matched_writers(reader), endpoints(&world, a)),
        (0, 1)
    );
    assert_eq!(world.protocol(a).counters().announcements_ignored, 1);
}

#[test]
fn the_lists_are_bounded_and_say_so() {
    let mut world = World::new(1);
    let (a, _) = two_nodes(&mut world);
    let prefix = GuidPrefix([7; 12]);
    let endpoint = |number| Guid {
        prefix,
        entity: EntityId::user(number, EntityKind::WRITER_NO_KEY),
    };
    world.with_protocol(a, |protocol, now| {
        for number in 0..MAX_IGNORED as u32 {
            assert_eq!(protocol.ignore_endpoint(now, endpoint(number)), Ok(()));
        }
        let full = Err(IgnoreError::ListFull(MAX_IGNORED));
        assert_eq!(protocol.ignore_endpoint(now, endpoint(1_000)), full);
        assert_eq!(protocol.ignore_participant(now, prefix), full);
        assert_eq!(
            protocol.ignore_endpoint(now, endpoint(0)),
            Ok(()),
            "it is there"
        );
        for number in 0..MAX_IGNORED_TOPICS {
            assert_eq!(protocol.ignore_topic(now, &format!("T{number}")), Ok(()));
        }
        let full = Err(IgnoreError::ListFull(MAX_IGNORED_TOPICS));
        assert_eq!(protocol.ignore_topic(now, "One more"), full);
        let long = "x".repeat(300);
        assert_eq!(
            protocol.ignore_topic(now, &long),
            Err(IgnoreError::NameTooLong)
        );
    });
}
