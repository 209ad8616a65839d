//! DURABILITY and DURABILITY_SERVICE: offers, requests and matches, and the samples that late joiners get.

use isolane_sim::{LinkConfig, Sample, Topic, World, seeds};
use isolane_wire::qos::{DurabilityKind, HistoryKind, PolicyId, QosPolicies};

use crate::support::{SECOND, ms, two_nodes, until_taken, values};

const KINDS: [DurabilityKind; 4] = [
    DurabilityKind::Volatile,
    DurabilityKind::TransientLocal,
    DurabilityKind::Transient,
    DurabilityKind::Persistent,
];

fn of_kind(topic: Topic, kind: DurabilityKind) -> Topic {
    topic.qos(|qos| qos.durability = kind)
}

#[test]
fn a_writer_matches_readers_that_request_no_more_durability_than_it_offers() {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    for offered in KINDS {
        for requested in KINDS {
            let topic = Topic::new(&format!("{offered:?} {requested:?}")).reliable();
            let writer = world.create_writer(a, &of_kind(topic.clone(), offered));
            let reader = world.create_reader(b, &of_kind(topic, requested));
            world.run_for(SECOND);
            let expected = usize::from(offered >= requested);
            assert_eq!(
                world.matched_readers(writer),
                expected,
                "{offered:?} {requested:?}"
            );
            assert_eq!(world.matched_writers(reader), expected);
            let reported = world
                .protocol(b)
                .requested_incompatible(world.reader_id(reader));
            let differs = (expected == 0).then_some(PolicyId::DURABILITY);
            assert_eq!(reported.map(|it| it.policy), differs);
            world.delete_writer(writer);
            world.delete_reader(reader);
        }
    }
}

#[test]
fn every_kind_but_volatile_gives_late_joiners_the_history_while_the_writer_lives() {
    for kind in &KINDS[1..] {
        seeds::for_each(0..20, |seed| {
            let mut world = World::new(seed).link(LinkConfig::lossy(0.2));
            let (a, b) = two_nodes(&mut world);
            let topic = of_kind(Topic::new("Kept").reliable().keep_last(5), *kind);
            let writer = world.create_writer(a, &topic);
            world.enqueue(writer, values(8));
            world.run_for(SECOND);
            let late = world.create_reader(b, &topic);
            until_taken(&mut world, "the history came", late, 5);
            assert_eq!(world.values(late), [4, 5, 6, 7, 8]);
            world.delete_writer(writer);
            let too_late = world.create_reader(b, &topic);
            world.run_for(5 * SECOND);
            assert!(world.received(too_late).is_empty(), "there is no service");
        });
    }
}

/// Number of samples of each of 3 instances that a late joiner gets, after 30 samples in total.
fn history_of(change: impl FnOnce(&mut QosPolicies)) -> [usize; 3] {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    let topic = Topic::new("Served").reliable().keyed().max_instances(3);
    let offered = topic.clone().keep_last(2).qos(|qos| {
        qos.durability = DurabilityKind::Transient;
        change(qos);
    });
    let writer = world.create_writer(a, &offered);
    // The instances take turns. A KEEP_LAST writer never refuses a sample.
    world.publish(
        writer,
        ms(1),
        (0..30).map(|value| Sample::keyed(value as u32 % 3, value)),
    );
    world.run_for(SECOND);
    assert_eq!(world.refused(writer), 0);
    let requested = of_kind(topic.keep_last(20), DurabilityKind::TransientLocal);
    let late = world.create_reader(b, &requested);
    world.run_for(SECOND);
    [0, 1, 2].map(|key| {
        let of_key = world.received(late).iter().filter_map(|it| it.sample());
        of_key.filter(|sample| sample.key == key).count()
    })
}

#[test]
fn what_the_service_is_to_keep_is_kept_by_the_writer() {
    let last =
        |depth: i32| move |qos: &mut QosPolicies| qos.durability_service.history.depth = depth;
    assert_eq!(history_of(last(1)), [2; 3], "its own history is more");
    assert_eq!(history_of(last(5)), [5; 3]);
    let all = |max_samples: i32, per_instance: i32| {
        move |qos: &mut QosPolicies| {
            let service = &mut qos.durability_service;
            service.history.kind = HistoryKind::KeepAll;
            service.resource_limits.max_samples = max_samples;
            service.resource_limits.max_samples_per_instance = per_instance;
        }
    };
    assert_eq!(history_of(all(-1, -1)), [10; 3], "all there are");
    assert_eq!(
        history_of(all(12, -1)),
        [4; 3],
        "twelve among three instances"
    );
    assert_eq!(history_of(all(-1, 7)), [7; 3]);
    // DURABILITY below TRANSIENT has no service.
    assert_eq!(
        history_of(|qos| {
            last(5)(qos);
            qos.durability = DurabilityKind::TransientLocal;
        }),
        [2; 3]
    );
}

#[test]
fn a_depth_that_no_memory_holds_is_bounded() {
    let huge = |qos: &mut QosPolicies| {
        qos.durability_service.history.depth = i32::MAX;
        qos.durability_service.resource_limits.max_samples = 30;
    };
    assert_eq!(history_of(huge), [10; 3]);
}
