//! Tests of creating endpoints: as requested, or refused with a reason.

use std::time::Duration;

use isolane::{
    BuildError, Interfaces, LivelinessKind, OwnershipKind, Participant, PolicyId,
    PresentationAccessScope, Qos, TopicType,
};

use crate::support::{Message, Site, World, level};

#[derive(TopicType, Debug, Clone, PartialEq, Default)]
struct Temperature {
    degrees: f32,
}

#[test]
fn a_topic_has_one_type_in_a_participant_and_the_error_names_both() {
    let alice = Site::memory().participant();
    let qos = Qos::best_effort();
    let writer = alice.create_writer::<Message>("Engine", &qos).unwrap();
    let refused = [
        alice.create_reader::<Temperature>("Engine", &qos).err(),
        alice.create_writer::<Temperature>("Engine", &qos).err(),
        alice
            .create_writer_handle::<Temperature>("Engine", &qos)
            .err(),
    ];
    for error in refused {
        let message = error.expect("it is another type").to_string();
        for name in ["Engine", "Message", "Temperature"] {
            assert!(message.contains(name), "{message}");
        }
    }
    assert_eq!(alice.report().writers.len(), 1);
    alice.create_reader::<Message>("Engine", &qos).unwrap();
    drop(writer);
    // A topic is removed with its last endpoint.
    alice.create_writer::<Temperature>("Engine", &qos).unwrap();
}

#[test]
fn partitions_that_do_not_fit_an_announcement_are_refused_by_name() {
    let alice = Site::memory().participant();
    let long = "p".repeat(65);
    let many = (0..9).fold(Qos::best_effort(), |qos, number| {
        qos.partition(&format!("number {number}"))
    });
    for (qos, name) in [
        (Qos::best_effort().partition(&long), long.as_str()),
        (many, "number 8"),
    ] {
        let refused = alice.create_writer::<Message>("Partition", &qos);
        let Err(BuildError::Partition { name: refused }) = refused.map(drop) else {
            panic!("{name} does not fit");
        };
        assert_eq!(refused, name);
    }
}

#[test]
fn a_depth_beyond_max_samples_per_instance_is_refused() {
    let alice = Site::memory().participant();
    let qos = Qos::reliable().keep_last(8);
    let refused = alice.create_writer::<Message>("Depth", &qos.clone().max_samples_per_instance(7));
    assert!(refused.is_err());
    let enough = qos.max_samples_per_instance(8);
    alice.create_writer::<Message>("Depth", &enough).unwrap();
}

#[test]
fn endpoints_meet_where_they_share_a_partition() {
    let (world, alice, bob) = World::pair(Site::memory());
    let of = |names: &[&str]| {
        names
            .iter()
            .fold(Qos::best_effort(), |qos, n| qos.partition(n))
    };
    let writer = alice
        .create_writer::<Message>("Part", &of(&["left", "right"]))
        .unwrap();
    let meets = bob
        .create_reader::<Message>("Part", &of(&["right"]))
        .unwrap();
    let apart = bob.create_reader::<Message>("Part", &of(&["up"])).unwrap();
    let default = bob.create_reader::<Message>("Part", &of(&[])).unwrap();
    world.until_matched(&writer, &meets);
    world.run_for(Duration::from_millis(20));
    assert_eq!((apart.matched_writers(), default.matched_writers()), (0, 0));
    assert_eq!(apart.incompatible(), None, "it is no incompatibility");
}

#[test]
fn policies_that_are_compared_keep_apart_those_who_request_more_than_is_offered() {
    let second = Duration::from_secs(1);
    let automatic = LivelinessKind::Automatic;
    let instance = PresentationAccessScope::Instance;
    let base = Qos::best_effort;
    for (offered, requested, policy) in [
        (
            base().latency_budget(second),
            base().latency_budget(second / 2),
            PolicyId::LATENCY_BUDGET,
        ),
        (
            base().liveliness(automatic, second),
            base().liveliness(LivelinessKind::ManualByTopic, second),
            PolicyId::LIVELINESS,
        ),
        (
            base().ownership(OwnershipKind::Shared),
            base().ownership(OwnershipKind::Exclusive),
            PolicyId::OWNERSHIP,
        ),
        (
            base().presentation(instance, false, false),
            base().presentation(instance, false, true),
            PolicyId::PRESENTATION,
        ),
    ] {
        let (world, alice, bob) = World::pair(Site::memory());
        let writer = alice.create_writer::<Message>("Less", &offered).unwrap();
        let reader = bob.create_reader::<Message>("Less", &requested).unwrap();
        world.until("the reader is notified", || reader.incompatible().is_some());
        assert_eq!(reader.incompatible().unwrap().policy, policy);
        let equal = bob.create_reader::<Message>("Less", &offered).unwrap();
        world.until_matched(&writer, &equal);
    }
}

#[test]
fn what_a_lane_takes_at_once_is_what_its_job_says() {
    let alice = Site::memory().participant();
    let mut endpoints = Vec::new();
    for number in [2, 5] {
        let qos = Qos::best_effort().level(level(number));
        let topic = format!("Level {number}");
        endpoints.push(alice.create_reader::<Message>(&topic, &qos).unwrap());
    }
    let report = alice.report();
    let items = |name: &str| {
        let mut jobs = report.jobs.iter();
        jobs.find(|job| job.name == name).map(|job| job.items)
    };
    assert_eq!(items("receive level 5"), Some(16));
    assert_eq!(items("receive level 2"), Some(4));
    assert_eq!(items("receive discovery"), Some(1));
}

#[test]
fn an_interface_that_is_not_there_is_answered_with_those_that_are() {
    let builder = Participant::builder(0);
    let wanted = Interfaces::Named(vec!["no-such".to_owned()]);
    let error = builder.interfaces(wanted).build().err().unwrap();
    let message = error.to_string();
    assert!(
        message.contains("no-such") && message.contains("lo"),
        "{message}"
    );
}

#[test]
fn a_participant_that_cannot_be_found_says_so() {
    let Site::Loopback(domain) = Site::loopback() else {
        unreachable!("it is on loopback")
    };
    let builder = || domain.builder().interfaces(Interfaces::Loopback);
    let lonely = builder().multicast(false).build().unwrap();
    let warnings = lonely.warnings();
    assert!(
        warnings
            .iter()
            .any(|warning| warning.contains("Builder::peer")),
        "{warnings:?}"
    );
    let with_peer = builder().loopback().build().unwrap();
    assert_eq!(with_peer.warnings(), Vec::<String>::new());
}

#[test]
fn a_domain_without_ports_is_answered_with_the_last_that_has_some() {
    for domain in [233, u32::MAX] {
        let error = Participant::builder(domain)
            .loopback()
            .build()
            .err()
            .unwrap();
        assert!(error.to_string().contains("0 to 232"), "{error}");
    }
}

#[test]
fn receive_buffers_are_larger_than_the_systems_and_as_large_as_requested() {
    let size_of = |asked: Option<usize>| {
        let site = Site::loopback();
        let builder = asked.map_or(site.builder(), |bytes| {
            site.builder().receive_buffer_bytes(bytes)
        });
        let alice = builder.build().unwrap();
        let _reader = alice.create_reader::<Message>("Size", &Qos::best_effort());
        let sockets = alice.report().sockets;
        let lanes: Vec<_> = sockets.iter().map(|socket| socket.lane.as_str()).collect();
        assert_eq!(lanes, ["discovery", "level 0"]);
        let sizes: Vec<_> = sockets.iter().map(|it| it.receive_buffer_bytes).collect();
        assert_eq!(sizes[0], sizes[1]);
        sizes[0]
    };
    // The kernel doubles what is requested.
    assert_eq!(size_of(Some(50_000)), 100_000);
    assert!(size_of(None) > 2 * 50_000);
}
