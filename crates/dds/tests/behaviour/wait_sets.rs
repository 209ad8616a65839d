//! Tests of conditions and wait sets.

use std::{
    cell::Cell,
    rc::Rc,
    thread,
    time::{Duration, Instant},
};

use isolane::{
    AttachError, Condition, Filter, Level, Network, Participant, Qos, StateMask, StatusMask,
    WaitError, WaitSet, limits,
};

use crate::support::{Message, PATIENCE, Site, World, take_numbers};

const ANY: StateMask = StateMask::empty();
const SHORT: Duration = Duration::from_millis(5);

fn participant() -> Participant {
    let network = Network::new(1);
    let builder = Participant::builder(0).memory(&network, [10, 0, 0, 1]);
    builder.build().unwrap()
}

#[test]
fn a_wait_set_wakes_by_each_kind_of_condition_and_says_which() {
    let alone = participant();
    let qos = Qos::reliable().keep_all();
    let writer = alone.create_writer::<Message>("Waited", &qos).unwrap();
    let reader = alone.create_reader::<Message>("Waited", &qos).unwrap();
    let waits = WaitSet::new(&alone);
    let unread = reader.create_read_condition(StateMask::NOT_READ);
    let large = Filter::new("number > 5", &[]).unwrap();
    let large = reader.create_query_condition(ANY, large);
    let matched = reader.status_condition(StatusMask::SUBSCRIPTION_MATCHED);
    let guard = alone.create_guard_condition();
    for condition in [
        Condition::from(&unread),
        (&large).into(),
        (&matched).into(),
        (&guard).into(),
    ] {
        waits.attach(&condition).unwrap();
        waits.attach(&condition).unwrap();
    }
    assert_eq!(waits.conditions().len(), 4, "each once");

    assert!(waits.wait(PATIENCE).unwrap() == [(&matched).into()]);
    assert_eq!(reader.subscription_matched_status().current_count, 1);
    assert!(waits.wait(SHORT).unwrap().is_empty());
    writer.write(&Message::number(3)).unwrap();
    assert!(waits.wait(PATIENCE).unwrap() == [(&unread).into()]);
    assert!(
        waits.wait(PATIENCE).unwrap() == [(&unread).into()],
        "it was not read"
    );
    reader.read_samples(usize::MAX, ANY).unwrap();
    assert!(waits.wait(SHORT).unwrap().is_empty());
    writer.write(&Message::number(7)).unwrap();
    assert!(waits.wait(PATIENCE).unwrap() == [(&unread).into(), (&large).into()]);
    assert_eq!(take_numbers(&reader), [3, 7]);
    guard.set_trigger_value(true);
    assert!(waits.wait(PATIENCE).unwrap() == [(&guard).into()]);
    guard.set_trigger_value(false);
    assert!(waits.wait(SHORT).unwrap().is_empty());

    assert!(waits.detach(&unread) && !waits.detach(&unread));
    writer.write(&Message::number(1)).unwrap();
    assert!(
        waits.wait(SHORT).unwrap().is_empty(),
        "it is not waited for any more"
    );
    assert!(unread.trigger_value());
}

#[test]
fn a_status_holds_from_its_change_until_it_is_read() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable().keep_all();
    let writer = alice.create_writer::<Message>("Notified", &qos).unwrap();
    let changed = writer.status_condition(StatusMask::all());
    assert!(!changed.trigger_value());
    let notified = Rc::new(Cell::new(0));
    let by_listener = Rc::clone(&notified);
    let reader = bob.create_reader::<Message>("Notified", &qos).unwrap();
    reader
        .on_subscription_matched(move |status| by_listener.set(status.current_count))
        .unwrap();
    world.until_matched(&writer, &reader);
    world.until("the listener was notified", || notified.get() == 1);
    assert_eq!(writer.status_changes(), StatusMask::PUBLICATION_MATCHED);
    assert!(changed.trigger_value());
    changed.set_enabled_statuses(StatusMask::LIVELINESS_LOST);
    assert!(!changed.trigger_value());
    changed.set_enabled_statuses(StatusMask::PUBLICATION_MATCHED);
    assert!(changed.trigger_value());
    assert_eq!(writer.publication_matched_status().current_count, 1);
    assert!(!changed.trigger_value());

    let of_reader = reader.status_changes();
    assert!(
        !of_reader.contains(StatusMask::SUBSCRIPTION_MATCHED),
        "the listener was notified"
    );
    assert!(!of_reader.contains(StatusMask::DATA_AVAILABLE));
    writer.write(&Message::number(1)).unwrap();
    world.until("it came", || {
        reader.status_changes().contains(StatusMask::DATA_AVAILABLE)
    });
    assert_eq!(take_numbers(&reader), [1]);
    assert!(!reader.status_changes().contains(StatusMask::DATA_AVAILABLE));
    drop(writer);
    assert!(!changed.trigger_value(), "its writer is gone");
}

#[test]
fn a_wait_set_sleeps_until_another_thread_says_so() {
    for site in Site::both() {
        let alone = site.participant();
        let waits = WaitSet::new(&alone);
        let guard = alone.create_guard_condition();
        waits.attach(&guard).unwrap();
        let by_thread = guard.clone();
        let setter = thread::spawn(move || {
            thread::sleep(Duration::from_millis(30));
            by_thread.set_trigger_value(true);
        });
        let before = alone.report().jobs;
        assert!(waits.wait(PATIENCE).unwrap() == [(&guard).into()]);
        setter.join().unwrap();
        let ran = |jobs: &[isolane::JobReport]| -> u64 {
            jobs.iter().map(|job| job.statistics.activations).sum()
        };
        let ran = ran(&alone.report().jobs) - ran(&before);
        assert!(ran < 1_000, "{ran} activations while nothing happened");
    }
}

#[test]
fn participants_of_one_thread_are_waited_for_together() {
    for site in Site::both() {
        let (_world, alice, bob) = World::pair(site);
        let qos = Qos::reliable().keep_all();
        let readers =
            [&alice, &bob].map(|owner| owner.create_reader::<Message>("Both", &qos).unwrap());
        let writer = alice.create_writer::<Message>("Both", &qos).unwrap();
        let waits = WaitSet::new(&alice);
        let conditions = readers
            .each_ref()
            .map(|reader| reader.create_read_condition(StateMask::NOT_READ));
        let guard = bob.create_guard_condition();
        assert_eq!(waits.attach(&guard), Err(AttachError::ForeignGuard));
        for condition in &conditions {
            waits.attach(condition).unwrap();
        }
        waits.attach(&guard).unwrap();
        let end = Instant::now() + PATIENCE;
        while writer.matched_readers() < 2 && Instant::now() < end {
            assert!(waits.wait(SHORT).unwrap().is_empty());
        }
        writer.write(&Message::number(1)).unwrap();
        let mut came = [0, 0];
        while came != [1, 1] && Instant::now() < end {
            for active in waits.wait(PATIENCE).unwrap() {
                for at in 0..2 {
                    if active == (&conditions[at]).into() {
                        came[at] += readers[at].take_samples(usize::MAX, ANY).unwrap().len();
                    }
                }
            }
        }
        assert_eq!(came, [1, 1]);
        let setter = thread::spawn(move || guard.set_trigger_value(true));
        assert_eq!(waits.wait(PATIENCE).unwrap().len(), 1);
        setter.join().unwrap();
    }
}

#[test]
fn a_callback_may_set_a_guard_and_attach_and_detach_meanwhile() {
    let alone = participant();
    let waits = Rc::new(WaitSet::new(&alone));
    let [first, second] = [
        alone.create_guard_condition(),
        alone.create_guard_condition(),
    ];
    waits.attach(&first).unwrap();
    let (set, by_callback) = (second.clone(), Rc::clone(&waits));
    let mut is_done = false;
    let milli = Duration::from_millis(1);
    alone
        .create_timer("swap", Level::MIN, milli, Duration::ZERO, move |_| {
            if !std::mem::replace(&mut is_done, true) {
                by_callback.attach(&set).unwrap();
                set.set_trigger_value(true);
            }
        })
        .unwrap();
    assert!(waits.wait(PATIENCE).unwrap() == [(&second).into()]);
}

#[test]
fn a_wait_set_says_when_it_is_full() {
    let alone = participant();
    let waits = WaitSet::new(&alone);
    for _ in 0..limits::MAX_WAIT_SET_CONDITIONS {
        waits.attach(&alone.create_guard_condition()).unwrap();
    }
    let more = alone.create_guard_condition();
    assert_eq!(waits.attach(&more), Err(AttachError::TooManyConditions));

    let waits = WaitSet::new(&alone);
    let others: Vec<_> = (0..limits::MAX_WAIT_SET_PARTICIPANTS)
        .map(|_| participant())
        .collect();
    let qos = Qos::best_effort();
    let readers = others
        .iter()
        .map(|other| other.create_reader::<Message>("Many", &qos).unwrap());
    let readers: Vec<_> = readers.collect();
    let attached = readers
        .iter()
        .map(|reader| waits.attach(&reader.create_read_condition(ANY)));
    let attached: Vec<_> = attached.collect();
    let (last, before) = attached.split_last().unwrap();
    assert!(before.iter().all(Result::is_ok));
    assert_eq!(*last, Err(AttachError::TooManyParticipants));
}

#[test]
fn who_waits_for_no_time_at_all_lets_the_loop_run() {
    let network = Network::new(1);
    let at = |address| Participant::builder(0).memory(&network, address).build();
    let (a, b) = (at([10, 0, 0, 1]).unwrap(), at([10, 0, 0, 2]).unwrap());
    let qos = Qos::reliable().keep_all();
    let writer = a.create_writer::<Message>("Waited", &qos).unwrap();
    let reader = b.create_reader::<Message>("Waited", &qos).unwrap();
    let waits = WaitSet::new(&b);
    let unread = reader.create_read_condition(StateMask::NOT_READ);
    waits.attach(&unread).unwrap();
    let end = Instant::now() + PATIENCE;
    let mut is_written = false;
    while waits.wait(Duration::ZERO).unwrap().is_empty() {
        assert!(Instant::now() < end, "nothing came");
        a.run_for(Duration::from_millis(1));
        is_written |= !is_written && writer.matched_readers() > 0 && {
            writer.write(&Message::number(1)).unwrap();
            true
        };
    }
}

#[test]
fn a_condition_that_holds_already_wakes_a_wait_that_it_is_attached_in() {
    let alone = participant();
    let qos = Qos::reliable().keep_all();
    let writer = alone.create_writer::<Message>("Waited", &qos).unwrap();
    let reader = alone.create_reader::<Message>("Waited", &qos).unwrap();
    writer.write(&Message::number(3)).unwrap();
    assert!(alone.run_until(PATIENCE, || reader.available() == 1));
    let waits = Rc::new(WaitSet::new(&alone));
    let unread = reader.create_read_condition(StateMask::NOT_READ);
    let (attached, of_timer) = (Rc::clone(&waits), unread.clone());
    let _timer = alone
        .create_timer(
            "attach",
            Level::clamp(1),
            SHORT,
            Duration::ZERO,
            move |_| {
                attached.attach(&of_timer).unwrap();
            },
        )
        .unwrap();
    let begin = Instant::now();
    assert!(waits.wait(PATIENCE).unwrap() == [(&unread).into()]);
    assert!(begin.elapsed() < PATIENCE, "it woke by its end only");
}

#[test]
fn conditions_and_wait_sets_keep_no_participant() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable().keep_all();
    let writer = alice.create_writer::<Message>("Kept", &qos).unwrap();
    let reader = bob.create_reader::<Message>("Kept", &qos).unwrap();
    world.until_matched(&writer, &reader);
    writer.write(&Message::number(7)).unwrap();
    world.until("it came", || reader.available() == 1);

    let waits = WaitSet::new(&bob);
    let unread = reader.create_read_condition(StateMask::NOT_READ);
    let large = Filter::new("number > 5", &[]).unwrap();
    let large = reader.create_query_condition(ANY, large);
    let matched = reader.status_condition(StatusMask::all());
    let guard = bob.create_guard_condition();
    for condition in [
        Condition::from(&unread),
        (&large).into(),
        (&matched).into(),
        (&guard).into(),
    ] {
        waits.attach(&condition).unwrap();
    }
    assert_eq!(waits.wait(SHORT).map(|active| active.len()), Ok(3));

    drop((reader, world));
    drop(bob);
    let said_good_bye = alice.run_until(PATIENCE, || writer.matched_readers() == 0);
    assert!(said_good_bye, "bob is kept by a condition or a wait set");
    assert!(!unread.trigger_value() && !matched.trigger_value());
    assert!(!large.as_read_condition().trigger_value());
    large.set_query_parameters(&[]).unwrap();
    matched.set_enabled_statuses(StatusMask::DATA_AVAILABLE);
    guard.set_trigger_value(true);
    assert!(guard.trigger_value(), "it is its user's alone");

    assert_eq!(
        waits.wait(PATIENCE).err(),
        Some(WaitError::ParticipantsGone)
    );
    waits.detach(&unread);
    assert_eq!(waits.attach(&unread), Err(AttachError::ParticipantGone));
    let others = WaitSet::new(&alice);
    assert_eq!(others.attach(&matched), Err(AttachError::ParticipantGone));
}

#[test]
fn a_wait_set_goes_on_with_the_participants_that_are_left() {
    let (alice, bob) = (participant(), participant());
    let qos = Qos::reliable().keep_all();
    let writer = alice.create_writer::<Message>("Left", &qos).unwrap();
    let [at_alice, at_bob] =
        [&alice, &bob].map(|owner| owner.create_reader::<Message>("Left", &qos).unwrap());
    let waits = WaitSet::new(&bob);
    let conditions = [&at_alice, &at_bob].map(|reader| reader.create_read_condition(ANY));
    for condition in &conditions {
        waits.attach(condition).unwrap();
    }
    drop((bob, at_bob));
    writer.write(&Message::number(1)).unwrap();
    assert!(waits.wait(PATIENCE).unwrap() == [(&conditions[0]).into()]);
}

#[test]
fn a_guard_whose_participant_is_gone_is_an_error_and_no_sleep() {
    let (alice, bob) = (participant(), participant());
    let qos = Qos::reliable();
    let reader = bob.create_reader::<Message>("Guarded", &qos).unwrap();
    let waits = WaitSet::new(&alice);
    let [of_alice, of_bob] = [&alice, &bob].map(|owner| owner.create_guard_condition());
    waits.attach(&reader.create_read_condition(ANY)).unwrap();
    waits.attach(&of_alice).unwrap();
    waits.attach(&of_bob).unwrap();
    assert_eq!(waits.wait(SHORT).map(|active| active.len()), Ok(0));
    drop((bob, reader));
    assert_eq!(waits.wait(SHORT).err(), Some(WaitError::GuardGone));
    assert!(waits.detach(&of_bob));
    of_alice.set_trigger_value(true);
    assert!(waits.wait(PATIENCE).unwrap() == [(&of_alice).into()]);
}

#[test]
fn a_status_that_was_read_does_not_hold_again_when_a_listener_is_set() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable().keep_all();
    let writer = alice.create_writer::<Message>("Heard", &qos).unwrap();
    let reader = bob.create_reader::<Message>("Heard", &qos).unwrap();
    let ends = [
        writer.status_condition(StatusMask::all()),
        reader.status_condition(StatusMask::SUBSCRIPTION_MATCHED),
    ];
    let holds = || ends.each_ref().map(|condition| condition.trigger_value());
    world.until_matched(&writer, &reader);
    assert_eq!(holds(), [true, true]);
    assert_eq!(writer.publication_matched_status().current_count, 1);
    assert_eq!(reader.subscription_matched_status().current_count, 1);
    assert_eq!(holds(), [false, false]);

    let notified = Rc::new(Cell::new(0));
    let (by_writer, by_reader) = (Rc::clone(&notified), Rc::clone(&notified));
    writer
        .on_publication_matched(move |_| by_writer.set(by_writer.get() + 1))
        .unwrap();
    reader
        .on_subscription_matched(move |_| by_reader.set(by_reader.get() + 1))
        .unwrap();
    assert_eq!(holds(), [false, false], "nothing has changed");
    world.run_for(Duration::from_millis(20));
    assert_eq!((holds(), notified.get()), ([false, false], 0));

    drop(reader);
    world.until("the listener was notified", || notified.get() == 1);
    assert_eq!(holds(), [false, false], "the listener has taken it");
}

/// The getter may be called before the loop has processed a status change.
#[test]
fn what_a_getter_tells_does_not_count_as_changed_afterwards() {
    let alone = participant();
    let qos = Qos::reliable().keep_all();
    let writer = alone.create_writer::<Message>("Early", &qos).unwrap();
    let reader = alone.create_reader::<Message>("Early", &qos).unwrap();
    let matched = writer.status_condition(StatusMask::PUBLICATION_MATCHED);
    assert!(alone.run_until(PATIENCE, || writer.matched_readers() == 1));
    drop(reader);
    assert_eq!(writer.publication_matched_status().current_count_change, 0);
    assert!(!matched.trigger_value(), "both changes were reported");
    alone.run_for(Duration::from_millis(5));
    assert!(!matched.trigger_value());
}
