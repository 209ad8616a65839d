//! Instances: their creation and their end.

use std::collections::BTreeSet;

use isolane_rtps::{ChangeKind, InstanceState, limits::REGISTERED_INSTANCES};
use isolane_sim::{LinkConfig, NodeConfig, ReaderHandle, Sample, Topic, World, key_of};
use isolane_wire::{
    cdr::KeyHash,
    message::{HEADER_BYTES, PayloadKind, Submessage, Submessages},
};

use crate::support::{SECOND, a_pair, a_pair_of};

fn keyed() -> Topic {
    Topic::new("Keyed").keyed().reliable().keep_all(16)
}

/// Change kind and state of the sample taken last from an instance.
fn last(world: &World, reader: ReaderHandle, key: u32) -> (ChangeKind, InstanceState) {
    let taken = world.last_of_instance(reader, key);
    taken.expect("something came of the instance").states()
}

#[test]
fn an_instance_is_alive_disposed_and_alive_again() {
    for topic in [keyed(), Topic::new("Keyed").keyed()] {
        let (mut world, _, writer, reader) = a_pair(&topic);
        let steps = [
            (Sample::keyed(7, 1), ChangeKind::Alive, InstanceState::Alive),
            (
                Sample::dispose(7),
                ChangeKind::Dispose,
                InstanceState::NotAliveDisposed,
            ),
            (Sample::keyed(7, 2), ChangeKind::Alive, InstanceState::Alive),
            (
                Sample::unregister(7),
                ChangeKind::Unregister,
                InstanceState::NotAliveNoWriters,
            ),
            (Sample::keyed(7, 3), ChangeKind::Alive, InstanceState::Alive),
        ];
        for (sample, kind, state) in steps {
            world.enqueue(writer, [sample, Sample::keyed(8, 0)]);
            world.run_for(SECOND);
            assert_eq!(last(&world, reader, 7), (kind, state), "{sample:?}");
            assert_eq!(last(&world, reader, 8).1, InstanceState::Alive);
            let came = world
                .last_of_instance(reader, 7)
                .and_then(|taken| taken.sample());
            assert_eq!(came, Some(sample), "the key came with the end");
        }
    }
}

#[test]
fn an_instance_lives_until_its_last_writer_has_unregistered_it() {
    let (mut world, (a, _), one, reader) = a_pair(&keyed());
    let other = world.create_writer(a, &keyed());
    world.until_matched(&[one, other], &[reader]);
    world.enqueue(one, [Sample::keyed(7, 1)]);
    world.enqueue(other, [Sample::keyed(7, 2)]);
    world.run_for(SECOND);
    world.enqueue(one, [Sample::unregister(7)]);
    world.run_for(SECOND);
    assert_eq!(last(&world, reader, 7).1, InstanceState::Alive);
    assert_eq!(world.received(reader).len(), 2, "nothing has ended");
    assert_eq!(world.reader_ledger(reader).unregistered, 1);
    world.enqueue(other, [Sample::unregister(7), Sample::unregister(7)]);
    world.run_for(SECOND);
    assert_eq!(
        last(&world, reader, 7),
        (ChangeKind::Unregister, InstanceState::NotAliveNoWriters)
    );
    assert_eq!(world.received(reader).len(), 3, "it has ended once");
}

/// The reader joins after the samples of the instances, and requests no history.
#[test]
fn the_end_of_an_instance_that_a_reader_never_had_is_a_sample_only_where_it_is_disposed() {
    for topic in [keyed(), Topic::new("Keyed").keyed().max_instances(16)] {
        let (mut world, (a, _), writer, early) = a_pair(&topic);
        let other = world.create_writer(a, &topic);
        world.until_matched(&[writer, other], &[early]);
        world.enqueue(writer, (1..=5).map(|key| Sample::keyed(key, key.into())));
        world.run_for(SECOND);
        let node = world.node(NodeConfig::default());
        let reader = world.create_reader(node, &topic);
        world.until_matched(&[writer, other], &[early, reader]);
        world.enqueue(other, [Sample::keyed(2, 9)]);
        world.run_for(SECOND);
        world.enqueue(writer, [1, 2].map(Sample::unregister));
        world.enqueue(writer, [Sample::dispose(3)]);
        world.run_for(SECOND);
        world.delete_writer(writer);
        world.run_for(SECOND);
        let came = world.received(reader).iter();
        let came: Vec<_> = came
            .map(|it| (it.sample().map(|it| it.key), it.states()))
            .collect();
        let expected = [
            (Some(2), (ChangeKind::Alive, InstanceState::Alive)),
            (
                Some(3),
                (ChangeKind::Dispose, InstanceState::NotAliveDisposed),
            ),
        ];
        assert_eq!(came, expected);
        // The ends of instances 1, 2 (which another writer still writes), 3 (which had ended), 4 and 5.
        assert_eq!(world.reader_ledger(reader).unregistered, 5);
        let ends = [1, 4, 5].map(|key| last(&world, early, key).1);
        assert_eq!(ends, [InstanceState::NotAliveNoWriters; 3]);
    }
}

#[test]
fn the_end_of_an_instance_that_made_way_for_others_is_seen() {
    let (mut world, _, writer, reader) = a_pair_of(World::new(1), &keyed(), &keyed().keep_all(2));
    world.enqueue(
        writer,
        (0..200).map(|key| Sample::keyed(key, u64::from(key))),
    );
    world.enqueue(writer, [Sample::unregister(0)]);
    world.run_for(SECOND);
    assert_eq!(
        last(&world, reader, 0),
        (ChangeKind::Unregister, InstanceState::NotAliveNoWriters)
    );
}

#[test]
fn the_end_of_an_instance_is_sent_with_key_key_hash_and_status() {
    let (mut world, _, writer, _) = a_pair(&keyed());
    world.tap();
    world.enqueue(writer, [Sample::dispose(7), Sample::unregister(7)]);
    world.run_for(SECOND);
    let mut ends = Vec::new();
    for datagram in world.tapped() {
        for submessage in Submessages::new(datagram, HEADER_BYTES) {
            if let Ok(Submessage::Data(data)) = submessage
                && !data.writer.is_builtin()
            {
                assert_eq!(data.payload, PayloadKind::Key);
                assert_eq!(data.key_hash(), key_of(data.bytes, true).ok());
                assert!(data.key_hash().is_some());
                ends.push((data.status_info().disposed, data.status_info().unregistered));
            }
        }
    }
    assert_eq!(ends, [(true, false), (false, true)]);
}

/// Instances that the tapped datagrams unregister, and whether the dispose of a writer was sent before one of them.
fn unregistered(world: &World) -> (Vec<KeyHash>, bool) {
    let (mut keys, mut has_ended, mut is_late) = (Vec::new(), false, false);
    for datagram in world.tapped() {
        for submessage in Submessages::new(datagram, HEADER_BYTES) {
            let Ok(Submessage::Data(data)) = submessage else {
                continue;
            };
            let status = data.status_info();
            if data.writer.is_builtin() {
                has_ended |= status.disposed;
            } else if status.unregistered {
                assert!(
                    !status.disposed,
                    "a writer that is deleted disposes nothing"
                );
                assert_eq!(data.key_hash(), key_of(data.bytes, true).ok());
                keys.extend(data.key_hash());
                is_late |= has_ended;
            }
        }
    }
    (keys, is_late)
}

#[test]
fn a_deleted_writer_unregisters_its_instances_before_its_end_is_announced() {
    let effort = Topic::new("Effort").keyed().max_instances(64);
    for topic in [keyed().keep_all(64), effort] {
        let (mut world, _, writer, reader) = a_pair(&topic);
        let samples = (0..60).map(|key| Sample::keyed(key, key.into()));
        let again = (0..60).map(|key| Sample::keyed(key, 100));
        world.enqueue(writer, samples.chain(again));
        world.run_for(SECOND);
        world.enqueue(writer, [Sample::unregister(3), Sample::dispose(4)]);
        world.run_for(SECOND);
        world.tap();
        world.delete_writer(writer);
        world.run_for(SECOND);
        let (keys, is_late) = unregistered(&world);
        let distinct: BTreeSet<_> = keys.iter().collect();
        assert_eq!((keys.len(), distinct.len()), (59, 59));
        assert!(!is_late);
        let states = [3, 4, 5].map(|key| last(&world, reader, key).1);
        assert_eq!(states[0], InstanceState::NotAliveNoWriters);
        assert_eq!(states[1], InstanceState::NotAliveDisposed);
        assert_eq!(states[2], InstanceState::NotAliveNoWriters);
    }
}

#[test]
fn a_deleted_writer_unregisters_a_bounded_number_of_instances() {
    let bound = u32::from(REGISTERED_INSTANCES);
    let topic = Topic::new("Effort")
        .keyed()
        .max_instances(4 * REGISTERED_INSTANCES);
    let (mut world, _, writer, _) = a_pair(&topic);
    world.enqueue(writer, (0..2 * bound).map(|key| Sample::keyed(key, 1)));
    world.run_for(SECOND);
    world.tap();
    world.delete_writer(writer);
    world.run_for(SECOND);
    assert_eq!(unregistered(&world).0.len(), bound as usize);
}

#[test]
fn a_deleted_writer_without_a_match_unregisters_nothing() {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let writer = world.create_writer(node, &keyed());
    world.enqueue(writer, [Sample::keyed(1, 1)]);
    world.run_for(SECOND);
    world.tap();
    world.delete_writer(writer);
    assert!(unregistered(&world).0.is_empty());
}

#[test]
fn a_deleted_writer_leaves_its_instances_without_writers_and_not_disposed() {
    let (mut world, (a, _), writer, reader) = a_pair(&keyed());
    let other = world.create_writer(a, &keyed());
    world.until_matched(&[writer, other], &[reader]);
    world.enqueue(
        writer,
        [Sample::keyed(1, 1), Sample::keyed(2, 2), Sample::dispose(3)],
    );
    world.enqueue(other, [Sample::keyed(2, 3)]);
    world.run_for(SECOND);
    world.delete_writer(writer);
    world.run_for(SECOND);
    let states = [1, 2, 3].map(|key| last(&world, reader, key).1);
    assert_eq!(
        states,
        [
            InstanceState::NotAliveNoWriters,
            InstanceState::Alive,
            InstanceState::NotAliveDisposed
        ]
    );
    let of_first = world.last_of_instance(reader, 1).expect("it came");
    assert!(of_first.was_sent() && !of_first.info.valid_data());
    assert_eq!(of_first.info.writer, world.writer_guid(writer));
}

#[test]
fn a_writer_that_vanishes_leaves_its_instances_without_writers() {
    let (mut world, (a, _), writer, reader) = a_pair(&keyed());
    world.enqueue(writer, [Sample::keyed(1, 1)]);
    world.run_for(SECOND);
    world.crash(a);
    world.run_for(11 * SECOND);
    assert_eq!(
        last(&world, reader, 1),
        (ChangeKind::Unregister, InstanceState::NotAliveNoWriters)
    );
}

#[test]
fn more_instances_than_a_reader_has_places_for_are_all_delivered() {
    let (mut world, _, writer, reader) = a_pair_of(
        World::new(5).link(LinkConfig::lossy(0.2)),
        &keyed(),
        &keyed().keep_all(2),
    );
    world.enqueue(
        writer,
        (0..200).map(|key| Sample::keyed(key, u64::from(key))),
    );
    world.run_until("all came", 60 * SECOND, |world| {
        world.received(reader).len() == 200
    });
    assert_eq!(world.values(reader), (0..200).collect::<Vec<_>>());
}
