//! Tests of LIFESPAN, TIME_BASED_FILTER, DEADLINE, LIVELINESS and OWNERSHIP through the API. Tests in virtual time
//! cover their exact times (`lab/sim/tests/protocol`).

use std::{cell::RefCell, rc::Rc, thread, time::Duration};

use isolane::{
    BuildError, LivelinessChangedStatus, LivelinessKind, LivelinessLostStatus, Network,
    OfferedDeadlineMissedStatus, OwnershipKind, Participant, Qos, RequestedDeadlineMissedStatus,
    Timing,
};

use crate::support::{Message, PATIENCE, Site, World, take_numbers};

const SHORT: Duration = Duration::from_millis(30);

type Recorded<S> = Rc<RefCell<Vec<S>>>;

fn record<S: 'static>() -> (Recorded<S>, impl FnMut(S) + 'static) {
    let recorded = Recorded::default();
    let by_listener = Rc::clone(&recorded);
    (recorded, move |status| {
        by_listener.borrow_mut().push(status);
    })
}

#[test]
fn a_sample_past_its_lifespan_is_neither_taken_nor_read_nor_counted_as_available() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::reliable().keep_all();
        let fresh = qos.clone().lifespan(SHORT);
        let writer = alice.create_writer::<Message>("Fresh", &fresh).unwrap();
        let reader = bob.create_reader::<Message>("Fresh", &qos).unwrap();
        world.until_matched(&writer, &reader);
        writer.write(&Message::number(1)).unwrap();
        world.until("it came, or expired on the way", || {
            let ledger = reader.ledger();
            ledger.available + ledger.expired + ledger.lost == 1
        });
        // The loop does not run meanwhile, so the getter must detect the expiry.
        thread::sleep(SHORT);
        assert_eq!(reader.available(), 0);
        assert!(reader.read(0).unwrap().is_none());
        assert!(reader.take().unwrap().is_none());
        assert_eq!(reader.ledger().delivered, 0);
    }
}

#[test]
fn a_callback_is_given_no_stale_sample() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::best_effort().keep_last(8).lifespan(SHORT);
    let writer = alice.create_writer::<Message>("Fresh", &qos).unwrap();
    let reader = bob.create_reader::<Message>("Fresh", &qos).unwrap();
    let (seen, mut by_callback) = record();
    reader
        .on_sample(Message::default(), move |sample| {
            by_callback(sample.value.map(|message| message.number));
        })
        .unwrap();
    world.until_matched(&writer, &reader);
    writer.write(&Message::number(1)).unwrap();
    // The sample waits in the network for longer than its lifespan.
    thread::sleep(2 * SHORT);
    world.until("it came and was stale", || reader.ledger().expired == 1);
    assert!(seen.borrow().is_empty());
}

#[test]
fn a_filtering_reader_sees_the_first_and_the_last_of_a_burst() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable().keep_all();
    let hour = Duration::from_secs(3_600);
    let writer = alice.create_writer::<Message>("Often", &qos).unwrap();
    let often = bob.create_reader::<Message>("Often", &qos).unwrap();
    let filtered = qos.clone().time_based_filter(SHORT);
    let sometimes = bob.create_reader::<Message>("Often", &filtered).unwrap();
    let seldom = qos.clone().time_based_filter(hour);
    let hardly = bob.create_reader::<Message>("Often", &seldom).unwrap();
    world.until("they match", || writer.matched_readers() == 3);
    for number in 1..=20 {
        writer.write(&Message::number(number)).unwrap();
    }
    world.until("all came", || often.available() == 20);
    let mut seen = Vec::new();
    world.until("the last is seen", || {
        seen.extend(take_numbers(&sometimes));
        seen.last() == Some(&20)
    });
    assert_eq!(seen[0], 1);
    assert_eq!(take_numbers(&hardly), [1]);
    let ledger = hardly.ledger();
    assert_eq!((ledger.time_filtered, ledger.held), (18, 1));
    assert_eq!(writer.ledger().repaired, 0);
}

#[test]
fn a_deadline_shorter_than_the_filters_separation_is_refused_with_the_reason() {
    let (_world, _, bob) = World::pair(Site::memory());
    let qos = Qos::reliable().time_based_filter(2 * SHORT).deadline(SHORT);
    let refused = bob.create_reader::<Message>("Never", &qos).err();
    let refused: BuildError = refused.expect("it contradicts itself");
    let message = refused.to_string();
    assert!(message.contains("DEADLINE"), "{message}");
    assert!(message.contains("TIME_BASED_FILTER"), "{message}");
    assert!(refused.is_wrong_setting());
}

#[test]
fn both_ends_are_notified_of_a_missed_deadline() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::reliable().deadline(SHORT);
        let writer = alice.create_writer::<Message>("Due", &qos).unwrap();
        let reader = bob.create_reader::<Message>("Due", &qos).unwrap();
        let (offered, by_writer) = record();
        let (requested, by_reader) = record();
        writer.on_offered_deadline_missed(by_writer).unwrap();
        reader.on_requested_deadline_missed(by_reader).unwrap();
        world.until_matched(&writer, &reader);
        world.run_for(2 * SHORT);
        assert!(offered.borrow().is_empty() && requested.borrow().is_empty());
        writer.write(&Message::number(1)).unwrap();
        world.until("both are notified", || {
            offered.borrow().len() >= 2 && requested.borrow().len() >= 2
        });
        let last: OfferedDeadlineMissedStatus = offered.borrow()[1];
        let recorded: u64 = offered.borrow()[..2]
            .iter()
            .map(|it| it.total_count_change)
            .sum();
        assert_eq!(last.total_count, recorded);
        let last: RequestedDeadlineMissedStatus = requested.borrow()[1];
        assert!(last.total_count >= 2 && last.total_count_change >= 1);
        assert!(reader.requested_deadline_missed_status().total_count >= 2);
        assert!(writer.offered_deadline_missed_status().total_count >= 2);
    }
}

#[test]
fn a_silent_writer_and_its_reader_are_notified_and_again_when_it_is_asserted() {
    for kind in [
        LivelinessKind::ManualByParticipant,
        LivelinessKind::ManualByTopic,
    ] {
        let (world, alice, bob) = World::pair(Site::memory());
        let qos = Qos::reliable().liveliness(kind, SHORT);
        let writer = alice.create_writer::<Message>("Lively", &qos).unwrap();
        let reader = bob.create_reader::<Message>("Lively", &qos).unwrap();
        let (lost, by_writer) = record();
        let (changed, by_reader) = record();
        writer.on_liveliness_lost(by_writer).unwrap();
        reader.on_liveliness_changed(by_reader).unwrap();
        world.until("its silence is noticed", || {
            let has_lost = !lost.borrow().is_empty();
            let last = changed.borrow().last().copied();
            has_lost && last.is_some_and(|it: LivelinessChangedStatus| it.not_alive_count == 1)
        });
        let first: LivelinessLostStatus = lost.borrow()[0];
        assert_eq!((first.total_count, first.total_count_change), (1, 1));
        let before = changed.borrow().len();
        world.until("it is alive again", || {
            writer.assert_liveliness();
            alice.assert_liveliness();
            let changed = changed.borrow();
            changed[before..].iter().any(|it| it.alive_count == 1)
        });
        assert_eq!(reader.matched_writers(), 1);
        assert!(writer.liveliness_lost_status().total_count >= 1);
        let now = reader.liveliness_changed_status();
        assert_eq!(now.alive_count + now.not_alive_count, 1);
    }
}

#[test]
fn an_automatic_writer_is_alive_without_assertions() {
    let (world, alice, bob) = World::pair(Site::memory());
    // Long enough for a machine that stalls occasionally.
    let lease = Duration::from_secs(2);
    let qos = Qos::reliable().liveliness(LivelinessKind::Automatic, lease);
    let writer = alice.create_writer::<Message>("Alive", &qos).unwrap();
    let reader = bob.create_reader::<Message>("Alive", &qos).unwrap();
    world.until_matched(&writer, &reader);
    world.run_for(lease + lease / 2);
    assert_eq!(reader.liveliness_changed_status().alive_count, 1);
    assert_eq!(writer.liveliness_lost_status().total_count, 0);
}

#[test]
fn the_strongest_writer_is_seen_and_the_next_one_when_it_is_gone() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable()
        .keep_all()
        .ownership(OwnershipKind::Exclusive);
    let weak = alice.create_writer::<Message>("Owned", &qos).unwrap();
    let strong = qos.clone().ownership_strength(1);
    let strong = alice.create_writer::<Message>("Owned", &strong).unwrap();
    let reader = bob.create_reader::<Message>("Owned", &qos).unwrap();
    world.until("they match", || {
        let is_heard = weak.matched_readers() == 1 && strong.matched_readers() == 1;
        is_heard && reader.matched_writers() == 2
    });
    strong.write(&Message::number(1)).unwrap();
    world.until("it came", || reader.available() == 1);
    weak.write(&Message::number(2)).unwrap();
    world.until("the other's came", || reader.ledger().not_owner == 1);
    assert_eq!(take_numbers(&reader), [1]);
    drop(strong);
    world.until("the owner is gone", || reader.matched_writers() == 1);
    weak.write(&Message::number(3)).unwrap();
    world.until("it is seen", || reader.available() == 1);
    assert_eq!(take_numbers(&reader), [3]);
}

#[test]
fn a_sample_that_is_written_long_after_the_loop_ran_last_lives_from_then_on() {
    let network = Network::new(1);
    let builder = Participant::builder(0).memory(&network, [10, 0, 0, 1]);
    let timing = Timing {
        announce_period: Duration::from_millis(50),
        ..Timing::default()
    };
    let alone = builder.timing(timing).build().unwrap();
    let qos = Qos::reliable().keep_all();
    let fresh = qos.clone().lifespan(Duration::from_secs(2));
    let writer = alone.create_writer::<Message>("Late", &fresh).unwrap();
    let reader = alone.create_reader::<Message>("Late", &qos).unwrap();
    alone.run_for(Duration::from_millis(20));
    // Longer than the lifespan, and than the limit after which a loop counts as stopped.
    thread::sleep(Duration::from_millis(2_500));
    writer.write(&Message::number(1)).unwrap();
    assert!(alone.run_until(PATIENCE, || reader.available() == 1));
    assert_eq!(writer.ledger().expired_unsent, 0);
}
