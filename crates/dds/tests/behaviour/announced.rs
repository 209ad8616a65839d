//! Tests of the data that endpoints announce and may change while they exist.

use isolane::{BuildError, DurabilityKind, PolicyId, Qos, QosError, SetQosError, types};

use crate::support::{Message, Site, World, level, take_numbers};

#[test]
fn user_data_of_participants_and_endpoints_is_read_by_others_and_follows_its_changes() {
    for site in Site::both() {
        let mut world = World::new(site.clone());
        let alice = site.builder().user_data(b"alice").build().unwrap();
        world.drive(&alice);
        let bob = world.join();
        let qos = Qos::reliable()
            .user_data(b"typehash=1;")
            .topic_data(b"metres")
            .group_data(b"left");
        let writer = alice.create_writer::<Message>("Said", &qos).unwrap();
        world.until("it is known", || {
            bob.publications().len() == 1 && bob.participants().len() == 1
        });
        let said = bob.publications()[0].data.qos.clone();
        assert_eq!(said.user_data.as_slice(), b"typehash=1;");
        assert_eq!(said.topic_data.as_slice(), b"metres");
        assert_eq!(said.group_data.as_slice(), b"left");
        assert_eq!(bob.participants()[0].data.user_data.as_slice(), b"alice");

        alice.set_user_data(b"alice again").unwrap();
        writer
            .set_qos(&writer.qos().user_data(b"typehash=2;"))
            .unwrap();
        world.until("the changes are known", || {
            let of_writer = bob.publications()[0].data.qos.user_data.clone();
            let of_participant = bob.participants()[0].data.user_data.clone();
            of_writer.as_slice() == b"typehash=2;" && of_participant.as_slice() == b"alice again"
        });
        world.assert_balanced();
    }
}

#[test]
fn more_octets_than_are_announced_are_refused_by_the_name_of_the_policy() {
    let (_world, alice, _bob) = World::pair(Site::memory());
    let many = [0; 257];
    let is_refused = |refused: Result<(), BuildError>, named: PolicyId| {
        assert!(matches!(refused, Err(BuildError::Octets { policy }) if policy == named));
    };
    let create = |qos: Qos| alice.create_writer::<Message>("Long", &qos).map(drop);
    let qos = Qos::reliable();
    is_refused(create(qos.clone().user_data(&many)), PolicyId::USER_DATA);
    is_refused(create(qos.clone().topic_data(&many)), PolicyId::TOPIC_DATA);
    is_refused(create(qos.clone().group_data(&many)), PolicyId::GROUP_DATA);
    is_refused(alice.set_user_data(&many), PolicyId::USER_DATA);
    let built = Site::memory().builder().user_data(&many).build();
    is_refused(built.map(drop), PolicyId::USER_DATA);
    assert!(create(qos.user_data(&many[1..])).is_ok());
}

#[test]
fn a_changed_partition_parts_a_pair_and_joins_it_and_the_statuses_tell() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::reliable().keep_all();
        let writer = alice
            .create_writer::<Message>("Moved", &qos.clone().partition("left/front"))
            .unwrap();
        let reader = bob
            .create_reader::<Message>("Moved", &qos.partition("left/*"))
            .unwrap();
        world.until_matched(&writer, &reader);
        writer.set_qos(&writer.qos().partitions(["right"])).unwrap();
        world.until("both sides know", || {
            writer.matched_readers() == 0 && reader.matched_writers() == 0
        });
        reader
            .set_qos(&reader.qos().partitions(["left/*", "[rx]ight"]))
            .unwrap();
        world.until_matched(&writer, &reader);
        let (offered, requested) = (
            writer.publication_matched_status(),
            reader.subscription_matched_status(),
        );
        assert_eq!((offered.total_count, offered.current_count), (2, 1));
        assert_eq!((requested.total_count, requested.current_count), (2, 1));
        writer.write(&Message::number(7)).unwrap();
        world.until("it came", || reader.available() == 1);
        assert_eq!(take_numbers(&reader), [7]);
        assert!(
            writer.incompatible().is_none(),
            "a partition is no mismatch"
        );
        world.assert_balanced();
    }
}

#[test]
fn what_cannot_change_is_refused_by_name_and_nothing_of_it_is_done() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable();
    let writer = alice.create_writer::<Message>("Fixed", &qos).unwrap();
    let reader = bob.create_reader::<Message>("Fixed", &qos).unwrap();
    world.until_matched(&writer, &reader);
    let elsewhere = || qos.clone().partition("elsewhere");
    for (changed, named) in [
        (elsewhere().level(level(3)), PolicyId::TRANSPORT_PRIORITY),
        (elsewhere().keep_last(2), PolicyId::HISTORY),
        (elsewhere().max_samples(9), PolicyId::RESOURCE_LIMITS),
        (elsewhere().transient_local(), PolicyId::DURABILITY),
        (
            elsewhere().service_keep_last(2),
            PolicyId::DURABILITY_SERVICE,
        ),
        (Qos::best_effort(), PolicyId::RELIABILITY),
    ] {
        for refused in [writer.set_qos(&changed), reader.set_qos(&changed)] {
            let Err(QosError::Policies(SetQosError::ImmutablePolicy(policy))) = refused else {
                panic!("{named}: {refused:?}");
            };
            assert_eq!(policy, named);
        }
    }
    let refused = writer.set_qos(&elsewhere().representation(types::Representation::Xcdr2));
    let immutable = SetQosError::ImmutablePolicy(PolicyId::DATA_REPRESENTATION);
    assert!(matches!(refused, Err(QosError::Policies(found)) if found == immutable));
    let refused = reader.set_qos(&elsewhere().max_bytes(100));
    assert!(matches!(
        refused,
        Err(QosError::MaxBytes { asked: 100, .. })
    ));
    let refused = reader.set_qos(&elsewhere().user_data(&[0; 300]));
    assert!(matches!(
        refused,
        Err(QosError::Unusable(BuildError::Octets { .. }))
    ));
    // An endpoint accepts its own announced policies.
    writer.set_qos(&writer.qos()).unwrap();
    reader.set_qos(&reader.qos()).unwrap();
    world.until_matched(&writer, &reader);
    world.assert_balanced();
}

#[test]
fn a_transient_writer_serves_its_history_and_what_the_service_is_to_keep_while_it_lives() {
    for kind in [DurabilityKind::Transient, DurabilityKind::Persistent] {
        let (world, alice, bob) = World::pair(Site::memory());
        let offered = Qos::reliable().durability(kind).service_keep_last(3);
        let requested = Qos::reliable().durability(kind).keep_all();
        let writer = alice.create_writer::<Message>("Kept", &offered).unwrap();
        for number in 1..=5 {
            writer.write(&Message::number(number)).unwrap();
        }
        let reader = bob.create_reader::<Message>("Kept", &requested).unwrap();
        world.until_matched(&writer, &reader);
        world.until("the history came", || reader.available() == 3);
        assert_eq!(take_numbers(&reader), [3, 4, 5]);
        world.assert_balanced();
    }
}
