//! Publishers and subscribers: shared policies, coherent sets, and ordered access across readers. Tests in virtual
//! time cover coherent sets over lossy links (`lab/sim/tests/protocol/presentation`).

use std::time::Duration;

use isolane::{
    BuildError, CoherentError, DataReader, DestinationOrderKind, Participant, PolicyId,
    PresentationAccessScope, Publisher, Qos, QosError, SetQosError, Subscriber,
};

use crate::support::{Message, Site, World, take_numbers};

fn together() -> Qos {
    Qos::reliable().presentation(PresentationAccessScope::Group, true, true)
}

fn keep() -> Qos {
    Qos::reliable().keep_all().max_samples(16)
}

/// A publisher and a subscriber.
fn groups(alice: &Participant, bob: &Participant, qos: &Qos) -> (Publisher, Subscriber) {
    (
        alice.create_publisher(qos).unwrap(),
        bob.create_subscriber(qos).unwrap(),
    )
}

fn numbers(first: &DataReader<Message>, second: &DataReader<Message>) -> [usize; 2] {
    [first.available(), second.available()]
}

#[test]
fn a_set_of_two_writers_is_there_at_both_readers_at_once_in_the_order_of_writing() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let (publisher, subscriber) = groups(&alice, &bob, &together());
        let writers = ["Left", "Right"]
            .map(|topic| publisher.create_writer::<Message>(topic, &keep()).unwrap());
        let readers = ["Left", "Right"]
            .map(|topic| subscriber.create_reader::<Message>(topic, &keep()).unwrap());
        for (writer, reader) in writers.iter().zip(&readers) {
            world.until_matched(writer, reader);
        }
        publisher.begin_coherent_changes().unwrap();
        for (number, which) in (1..).zip([1, 0, 0, 1]) {
            writers[which].write(&Message::number(number)).unwrap();
        }
        world.until("all came", || {
            readers.iter().map(|it| it.ledger().in_sets).sum::<u64>() == 4
        });
        assert_eq!(numbers(&readers[0], &readers[1]), [0, 0]);
        publisher.end_coherent_changes().unwrap();
        world.until("they are seen", || {
            let available = numbers(&readers[0], &readers[1]);
            assert!(available == [0, 0] || available == [2, 2], "{available:?}");
            available == [2, 2]
        });
        let access = subscriber.begin_access();
        let mut seen = Vec::new();
        while let Some(next) = readers.iter().find(|reader| access.is_next(reader)) {
            seen.push(
                next.take()
                    .unwrap()
                    .and_then(|it| it.value)
                    .map(|it| it.number),
            );
        }
        assert_eq!(seen, [Some(1), Some(2), Some(3), Some(4)]);
        let again = publisher.end_coherent_changes();
        assert_eq!(again, Err(CoherentError::NotBegun));
    }
}

/// When a reader is woken by the first end marker, the others must have left their writers.
#[test]
fn the_ends_of_a_set_have_left_when_it_is_ended() {
    const TOPICS: [&str; 3] = ["One", "Two", "Three"];
    let (world, alice, bob) = World::pair(Site::loopback());
    let (publisher, subscriber) = groups(&alice, &bob, &together());
    let writers = TOPICS.map(|topic| publisher.create_writer::<Message>(topic, &keep()).unwrap());
    let readers = TOPICS.map(|topic| {
        let reader = subscriber.create_reader::<Message>(topic, &keep());
        reader.unwrap()
    });
    for (writer, reader) in writers.iter().zip(&readers) {
        world.until_matched(writer, reader);
    }
    publisher.begin_coherent_changes().unwrap();
    for writer in &writers {
        writer.write(&Message::number(1)).unwrap();
    }
    world.until("all came", || {
        readers.iter().map(|it| it.ledger().in_sets).sum::<u64>() == 3
    });
    publisher.end_coherent_changes().unwrap();
    // The publisher's loop does not run from here on.
    bob.run_for(Duration::from_millis(50));
    assert_eq!(readers.each_ref().map(DataReader::available), [1; 3]);
}

#[test]
fn while_the_user_looks_nothing_is_added() {
    let (world, alice, bob) = World::pair(Site::memory());
    let (publisher, subscriber) = groups(&alice, &bob, &together());
    let writer = publisher
        .create_writer::<Message>("Looked at", &keep())
        .unwrap();
    let reader = subscriber
        .create_reader::<Message>("Looked at", &keep())
        .unwrap();
    world.until_matched(&writer, &reader);
    let access = subscriber.begin_access();
    writer.write(&Message::number(1)).unwrap();
    world.until("it waits", || reader.ledger().waiting == 1);
    world.run_for(Duration::from_millis(20));
    assert!(!access.is_next(&reader));
    drop(access);
    assert_eq!(take_numbers(&reader), [1]);
}

#[test]
fn members_share_what_the_group_says_and_follow_its_changes() {
    let (world, alice, bob) = World::pair(Site::memory());
    let north = together().partition("north").group_data(b"blue");
    let (publisher, subscriber) = groups(&alice, &bob, &north);
    let south = keep().partition("south").group_data(b"red");
    let writer = publisher
        .create_writer::<Message>("Shared", &south)
        .unwrap();
    let reader = subscriber
        .create_reader::<Message>("Shared", &keep())
        .unwrap();
    world.until_matched(&writer, &reader);
    world.until("it is known", || bob.publications().len() == 1);
    let said = bob.publications()[0].data.clone();
    assert_eq!(said.qos.group_data.as_slice(), b"blue");
    assert_eq!(
        said.qos.presentation.access_scope,
        PresentationAccessScope::Group
    );
    assert!(said.group.is_some(), "its publisher is announced");
    // A member cannot change the shared policies.
    writer.set_qos(&writer.qos().partitions(["south"])).unwrap();
    world.run_for(Duration::from_millis(20));
    assert_eq!(reader.matched_writers(), 1);
    publisher.set_qos(&together().partition("south")).unwrap();
    world.until("they part", || reader.matched_writers() == 0);
    subscriber.set_qos(&together().partition("south")).unwrap();
    world.until_matched(&writer, &reader);
    let refused = publisher.set_qos(&Qos::reliable());
    assert!(matches!(
        refused,
        Err(QosError::Policies(SetQosError::ImmutablePolicy(
            PolicyId::PRESENTATION
        )))
    ));
}

#[test]
fn a_group_is_there_as_long_as_a_member_is() {
    let (world, alice, bob) = World::pair(Site::memory());
    let (publisher, subscriber) = groups(&alice, &bob, &together());
    let writer = publisher.create_writer::<Message>("Kept", &keep()).unwrap();
    let reader = subscriber
        .create_reader::<Message>("Kept", &keep())
        .unwrap();
    drop((publisher, subscriber));
    world.until_matched(&writer, &reader);
    writer.write(&Message::number(1)).unwrap();
    world.until("it came", || reader.available() == 1);
    drop((writer, reader));
    // The entries are free again.
    for _ in 0..100 {
        let (_publisher, _subscriber) = groups(&alice, &bob, &together());
    }
    let many: Vec<_> = (0..32)
        .map(|_| alice.create_publisher(&together()).unwrap())
        .collect();
    let refused = alice.create_publisher(&together()).map(drop);
    assert!(
        matches!(refused, Err(BuildError::Endpoint(_))),
        "{} are too many",
        many.len()
    );
}

#[test]
fn coherence_without_reliability_is_refused_by_name() {
    let (_world, alice, bob) = World::pair(Site::memory());
    let (publisher, subscriber) = groups(&alice, &bob, &together());
    let best_effort = Qos::best_effort();
    let refused = [
        publisher
            .create_writer::<Message>("Sets", &best_effort)
            .map(drop),
        subscriber
            .create_reader::<Message>("Sets", &best_effort)
            .map(drop),
        alice
            .create_view_reader::<Message>(
                "Sets",
                &best_effort.presentation(PresentationAccessScope::Topic, true, false),
            )
            .map(drop),
    ];
    for refused in refused {
        let message = refused.expect_err("it was refused").to_string();
        assert!(message.contains("RELIABILITY RELIABLE"), "{message}");
    }
}

#[test]
fn the_end_of_a_set_waits_for_room_as_long_as_it_may() {
    let (world, alice, bob) = World::pair(Site::memory());
    let patient = together().max_blocking_time(Duration::from_secs(5));
    for (qos, waits) in [(together(), false), (patient, true)] {
        let (publisher, subscriber) = groups(&alice, &bob, &qos);
        let small = Qos::reliable().keep_all().max_samples(1);
        let writer = publisher.create_writer::<Message>("Small", &small).unwrap();
        let reader = subscriber
            .create_reader::<Message>("Small", &keep())
            .unwrap();
        world.until_matched(&writer, &reader);
        for number in [1, 2] {
            publisher.begin_coherent_changes().unwrap();
            world.until("it is written", || {
                writer.write(&Message::number(number)).is_ok()
            });
            let ended = publisher.end_coherent_changes();
            if number == 2 && ended.is_err() {
                assert!(!waits);
                assert_eq!(ended, Err(CoherentError::HistoryFull));
            }
            world.until("it has ended", || {
                ended.is_ok() || publisher.end_coherent_changes().is_ok()
            });
        }
        world.until("both came", || reader.available() == 2);
        assert_eq!(take_numbers(&reader), [1, 2]);
    }
}

#[test]
fn an_instance_does_not_go_back_to_what_was_written_before() {
    let (world, alice, bob) = World::pair(Site::memory());
    let by_source = keep()
        .max_samples(32)
        .destination_order(DestinationOrderKind::BySourceTimestamp);
    let first = alice
        .create_writer::<Message>("Latest", &by_source)
        .unwrap();
    let second = bob.create_writer::<Message>("Latest", &by_source).unwrap();
    let reader = bob.create_reader::<Message>("Latest", &by_source).unwrap();
    world.until("all match", || {
        let known = [first.matched_readers(), second.matched_readers()];
        reader.matched_writers() == 2 && known == [1, 1]
    });
    for number in 1..=20 {
        let writer = if number % 2 == 0 { &first } else { &second };
        writer.write(&Message::number(number)).unwrap();
    }
    world.until("all are done with", || reader.ledger().accounted == 20);
    let seen = take_numbers(&reader);
    assert!(seen.is_sorted(), "{seen:?}");
    assert_eq!(seen.last(), Some(&20));
    assert_eq!(seen.len() as u64 + reader.ledger().outdated, 20);
}
