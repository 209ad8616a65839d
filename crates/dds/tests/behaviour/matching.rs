//! Tests of matching: which endpoints match, what is reported when they do not, and how a departure is detected.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use isolane::{EndpointKind, Interfaces, Participant, PolicyId, Qos, Timing};

use crate::support::{Domain, Message, Site, World, level};

#[test]
fn an_incompatible_policy_is_named_on_both_sides() {
    let millis = Duration::from_millis;
    let cases = [
        (Qos::best_effort(), Qos::reliable(), PolicyId::RELIABILITY),
        (
            Qos::reliable(),
            Qos::reliable().transient_local(),
            PolicyId::DURABILITY,
        ),
        (
            Qos::reliable().deadline(millis(20)),
            Qos::reliable().deadline(millis(10)),
            PolicyId::DEADLINE,
        ),
    ];
    for site in Site::both() {
        for (offered, requested, policy) in cases.clone() {
            let (world, alice, bob) = World::pair(site.clone());
            let writer = alice.create_writer::<Message>("Unlike", &offered).unwrap();
            let reader = bob.create_reader::<Message>("Unlike", &requested).unwrap();
            world.until("both sides are notified", || {
                writer.incompatible().is_some() && reader.incompatible().is_some()
            });
            let (offered, requested) = (writer.incompatible(), reader.incompatible());
            assert_eq!(offered.unwrap().policy, policy);
            assert_eq!(requested.unwrap().policy, policy);
            assert_eq!(offered.unwrap().other.prefix, bob.guid().prefix);
            assert_eq!(requested.unwrap().other.prefix, alice.guid().prefix);
            assert_eq!((writer.matched_readers(), reader.matched_writers()), (0, 0));
            world.assert_balanced();
        }
    }
}

#[test]
fn topics_of_other_names_do_not_match() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::best_effort();
    let writer = alice.create_writer::<Message>("One", &qos).unwrap();
    let _other = bob.create_reader::<Message>("Other", &qos).unwrap();
    let same = bob.create_reader::<Message>("One", &qos).unwrap();
    world.until_matched(&writer, &same);
    assert!(writer.incompatible().is_none());
    world.assert_balanced();
}

#[test]
fn each_level_is_announced_with_its_own_port() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let readers = [1, 4, 7].map(|number| {
            let qos = Qos::best_effort().level(level(number));
            let topic = format!("Level {number}");
            bob.create_reader::<Message>(&topic, &qos).unwrap()
        });
        world.until("the readers are known", || alice.endpoints().len() == 3);
        let mut ports = BTreeSet::new();
        for endpoint in alice.endpoints() {
            assert_eq!(endpoint.kind, EndpointKind::Reader);
            let unicast = &endpoint.data.unicast;
            assert_eq!(unicast.len(), 1, "{unicast:?}");
            ports.insert(unicast[0].port);
            for group in &endpoint.data.multicast {
                let (address, _) = group.ipv4().map(|at| (at, ())).unwrap();
                let priority = endpoint.data.qos.transport_priority as u8;
                assert_eq!(address[..3], [239, 255, 16 + priority], "{group:?}");
            }
        }
        assert_eq!(ports.len(), 3, "{ports:?}");
        drop(readers);
        world.assert_balanced();
    }
}

#[test]
fn the_departure_of_a_participant_is_seen_at_once_not_when_its_lease_is_over() {
    for site in Site::both() {
        let (mut world, alice, bob) = World::pair(site);
        let writer = alice
            .create_writer::<Message>("Leaving", &Qos::reliable())
            .unwrap();
        let reader = bob
            .create_reader::<Message>("Leaving", &Qos::reliable())
            .unwrap();
        world.until_matched(&writer, &reader);

        let begin = Instant::now();
        drop(reader);
        world.leave(bob);
        world.until("the departure is seen", || alice.participants().is_empty());
        assert_eq!(writer.matched_readers(), 0);
        assert!(alice.endpoints().is_empty());
        let took = begin.elapsed();
        assert!(took < Duration::from_secs(2), "{took:?}, the lease is 10 s");
        world.assert_balanced();
    }
}

#[test]
fn where_only_one_side_names_the_other_both_stay_known_and_both_departures_are_seen() {
    for leaver in 0..2 {
        let domain = Arc::new(Domain::claim());
        // The period is shorter than the test, so an announcement that does not arrive would have an effect.
        let timing = Timing {
            announce_period: Duration::from_millis(100),
            lease: Duration::from_millis(500),
            ..Timing::default()
        };
        let unnamed = || {
            let builder = domain.builder().interfaces(Interfaces::Loopback);
            builder.multicast(false).timing(timing)
        };
        let alice = unnamed().build().unwrap();
        let bob = unnamed()
            .peer_at(domain.first_participant())
            .build()
            .unwrap();
        let mut world = World::new(Site::Loopback(Arc::clone(&domain)));
        world.drive(&alice);
        world.drive(&bob);
        let both = [alice, bob];
        let know = |count| move |one: &Participant| one.participants().len() == count;
        world.until("they know each other", || both.iter().all(know(1)));
        world.run_for(Duration::from_secs(1));
        assert!(both.iter().all(know(1)), "for longer than a lease");

        let [alice, bob] = both;
        let (leaves, stays) = if leaver == 0 {
            (alice, bob)
        } else {
            (bob, alice)
        };
        world.leave(leaves);
        world.until("the departure is seen", || stays.participants().is_empty());
        assert_eq!(stays.counters().leases_expired, 0, "by the good-bye");
        world.assert_balanced();
    }
}

#[test]
fn a_deleted_reader_is_written_to_no_longer() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::best_effort();
        let writer = alice.create_writer::<Message>("Deleted", &qos).unwrap();
        let reader = bob.create_reader::<Message>("Deleted", &qos).unwrap();
        world.until_matched(&writer, &reader);
        drop(reader);
        world.until("the writer is notified", || writer.matched_readers() == 0);
        writer.write(&Message::number(1)).unwrap();
        assert_eq!(writer.ledger().unmatched, 1);
        assert_eq!(bob.participants().len(), 1, "the participant stays");
        world.assert_balanced();
    }
}
