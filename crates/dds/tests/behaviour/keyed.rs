//! Tests of instances that are disposed, unregistered, or left by a writer that is deleted or whose participant is
//! gone.

use isolane::{
    ChangeKind, DataReader, DataWriter, InstanceState, Participant, Qos, SampleInfo, TopicType,
    types::BoundedString,
};

use crate::support::{Site, World};

#[derive(TopicType, Debug, Clone, PartialEq, Default)]
struct Shape {
    #[topic(key)]
    color: BoundedString<16>,
    x: i32,
}

fn shape(color: &str, x: i32) -> Shape {
    let color = color.try_into().unwrap();
    Shape { color, x }
}

fn qos() -> Qos {
    Qos::reliable()
        .keep_last(4)
        .max_instances(4)
        .autodispose(false)
}

fn endpoints(
    world: &World,
    from: &Participant,
    to: &Participant,
) -> (DataWriter<Shape>, DataReader<Shape>) {
    let writer = from.create_writer::<Shape>("Shapes", &qos()).unwrap();
    let reader = to.create_reader::<Shape>("Shapes", &qos()).unwrap();
    world.until_matched(&writer, &reader);
    (writer, reader)
}

/// Returns the next sample, which must arrive.
#[track_caller]
fn next(world: &World, reader: &DataReader<Shape>) -> (Option<Shape>, SampleInfo) {
    world.until("a sample arrives", || reader.available() > 0);
    let sample = reader.take().unwrap().unwrap();
    (sample.value, sample.info)
}

#[test]
fn a_disposed_instance_differs_from_an_unregistered_one() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let (writer, reader) = endpoints(&world, &alice, &bob);

        writer.write(&shape("RED", 1)).unwrap();
        let (value, red) = next(&world, &reader);
        assert_eq!(value, Some(shape("RED", 1)));
        assert_eq!(red.instance_state, InstanceState::Alive);

        writer.dispose(&shape("RED", 0)).unwrap();
        writer.write(&shape("BLUE", 2)).unwrap();
        writer.unregister(&shape("BLUE", 0)).unwrap();
        let (value, ended) = next(&world, &reader);
        assert_eq!(value, None);
        assert_eq!(ended.kind, ChangeKind::Dispose);
        assert_eq!(ended.instance_state, InstanceState::NotAliveDisposed);
        assert_eq!(ended.key_hash, red.key_hash);

        let (_, blue) = next(&world, &reader);
        assert_ne!(blue.key_hash, red.key_hash);
        let (value, left) = next(&world, &reader);
        assert_eq!(value, None);
        assert_eq!(left.instance_state, InstanceState::NotAliveNoWriters);
        assert_eq!(left.key_hash, blue.key_hash);
        world.assert_balanced();
    }
}

#[test]
fn deleting_a_writer_unregisters_its_instances_and_disposes_none() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let (writer, reader) = endpoints(&world, &alice, &bob);
        writer.write(&shape("GREEN", 3)).unwrap();
        let (_, alive) = next(&world, &reader);

        drop(writer);
        let (value, left) = next(&world, &reader);
        assert_eq!(value, None);
        assert_eq!(left.instance_state, InstanceState::NotAliveNoWriters);
        assert_eq!(left.key_hash, alive.key_hash);
        world.until("no writer is matched", || reader.matched_writers() == 0);
        world.assert_balanced();
    }
}

#[test]
fn a_writer_that_is_dropped_unregisters_each_instance_before_its_own_end() {
    let qos = Qos::best_effort().keep_last(1).max_instances(50);
    for qos in [qos.clone(), Qos::reliable().keep_last(1).max_instances(50)] {
        let (world, alice, bob) = World::pair(Site::memory());
        let writer = alice.create_writer::<Shape>("Many", &qos).unwrap();
        let reader = bob.create_reader::<Shape>("Many", &qos).unwrap();
        world.until_matched(&writer, &reader);
        let mut remote = alice.create_writer_handle::<Shape>("Many", &qos).unwrap();
        world.until("both match", || reader.matched_writers() == 2);
        for number in 0..40 {
            writer.write(&shape(&format!("C{number}"), number)).unwrap();
            world.until("it arrives", || reader.ledger().accounted > number as u64);
        }
        // An instance that is unregistered already, and one that is written again.
        writer.unregister(&shape("C0", 0)).unwrap();
        writer.write(&shape("C1", 1)).unwrap();
        remote.write(&shape("REMOTE", 1)).unwrap();
        world.until("all arrive", || reader.ledger().accounted == 43);

        drop((writer, remote));
        world.until("no writer is left", || reader.matched_writers() == 0);
        let ledger = reader.ledger();
        assert_eq!(ledger.accounted, 43 + 39 + 1, "{ledger:?}");
        assert_eq!(ledger.lost, 0, "{ledger:?}");
        world.assert_balanced();
    }
}

/// A key of one byte in four nested structures, each with its length in front.
#[derive(TopicType)]
#[topic(appendable)]
struct Nested {
    #[topic(key)]
    outer: Outer,
}

#[derive(TopicType)]
#[topic(appendable)]
struct Outer {
    inner: Inner,
}

#[derive(TopicType)]
#[topic(appendable)]
struct Inner {
    letter: Letter,
}

#[derive(TopicType)]
#[topic(appendable)]
struct Letter {
    letter: u8,
}

#[test]
fn a_writer_that_is_dropped_unregisters_instances_whose_keys_are_nested() {
    let (world, alice, bob) = World::pair(Site::memory());
    let writer = alice.create_writer::<Nested>("Nested", &qos()).unwrap();
    let reader = bob.create_reader::<Nested>("Nested", &qos()).unwrap();
    world.until_matched(&writer, &reader);
    let letter = Letter { letter: b'a' };
    let outer = Outer {
        inner: Inner { letter },
    };
    writer.write(&Nested { outer }).unwrap();
    world.until("it arrives", || reader.ledger().accounted == 1);
    drop(writer);
    world.until("no writer is left", || reader.matched_writers() == 0);
    let ledger = reader.ledger();
    assert_eq!(ledger.accounted, 2, "{ledger:?}");
    world.assert_balanced();
}

#[test]
fn an_instance_lives_until_the_last_of_its_writers_leaves() {
    let (world, alice, bob) = World::pair(Site::memory());
    let (first, reader) = endpoints(&world, &alice, &bob);
    let second = alice.create_writer::<Shape>("Shapes", &qos()).unwrap();
    world.until("both match", || {
        reader.matched_writers() == 2 && second.matched_readers() == 1
    });
    for writer in [&first, &second] {
        writer.write(&shape("CYAN", 1)).unwrap();
        next(&world, &reader);
    }
    drop(first);
    world.until("one is left", || reader.matched_writers() == 1);
    assert_eq!(reader.available(), 0, "the instance still has a writer");
    drop(second);
    let (_, left) = next(&world, &reader);
    assert_eq!(left.instance_state, InstanceState::NotAliveNoWriters);
    world.assert_balanced();
}

#[test]
fn a_keep_last_history_without_room_for_another_instance_refuses_it_by_name() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = qos().keep_last(1).max_instances(2).transient_local();
    let writer = alice.create_writer::<Shape>("Two", &qos).unwrap();
    let reader = bob.create_reader::<Shape>("Two", &qos).unwrap();
    world.until_matched(&writer, &reader);
    writer.write(&shape("RED", 1)).unwrap();
    writer.write(&shape("BLUE", 1)).unwrap();
    let refused = writer.write(&shape("GREEN", 1)).unwrap_err();
    assert!(refused.to_string().contains("max_instances"), "{refused}");
    writer.write(&shape("RED", 2)).unwrap();
    assert_eq!(writer.ledger().refused, 1);
    world.until("two instances arrive", || reader.ledger().available == 2);
    world.assert_balanced();
}
