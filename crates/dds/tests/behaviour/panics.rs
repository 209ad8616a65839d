//! Tests of a callback that panics: the panic passes through the call that runs the loop. The callback is removed, and
//! everything else continues.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    time::Duration,
};

use isolane::{Participant, Qos};

use crate::support::{Message, Site, World, level, take_numbers};

/// Runs one participant until one of its callbacks panics.
#[track_caller]
fn run_into_panic(participant: &Participant) {
    let run = || participant.run_for(Duration::from_secs(10));
    let outcome = catch_unwind(AssertUnwindSafe(run));
    let message = outcome.expect_err("a callback panics");
    assert_eq!(message.downcast_ref(), Some(&"as the test wants"));
}

#[test]
fn a_view_callback_that_panics_is_dropped_and_its_participant_can_be_run_again() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::best_effort().keep_last(8);
        let writer = alice.create_writer::<Message>("Panics", &qos).unwrap();
        let reader = bob.create_view_reader::<Message>("Panics", &qos).unwrap();
        let answers = bob.create_writer::<Message>("Answers", &qos).unwrap();
        reader.on_view(move |_| {
            answers.write(&Message::number(1)).unwrap();
            panic!("as the test wants");
        });
        world.until_matched(&writer, &reader);
        assert_eq!(bob.report().writers.len(), 1);
        writer.write(&Message::number(1)).unwrap();
        run_into_panic(&bob);

        assert!(bob.report().writers.is_empty(), "what it owned is gone");
        let seen = Rc::new(Cell::new(0));
        let of_callback = Rc::clone(&seen);
        reader.on_view(move |sample| of_callback.set(sample.value.unwrap().number));
        writer.write(&Message::number(2)).unwrap();
        world.until("the next callback sees the next sample", || seen.get() == 2);
        world.assert_balanced();
    }
}

#[test]
fn a_sample_callback_that_panics_leaves_the_other_samples_to_be_taken() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable().keep_all();
    let writer = alice.create_writer::<Message>("Panics", &qos).unwrap();
    let reader = bob.create_reader::<Message>("Panics", &qos).unwrap();
    world.until_matched(&writer, &reader);
    for number in 0..3 {
        writer.write(&Message::number(number)).unwrap();
    }
    world.until("all arrive", || reader.available() == 3);
    reader
        .on_sample(Message::default(), |_| panic!("as the test wants"))
        .unwrap();
    run_into_panic(&bob);
    world.run_for(Duration::from_millis(10));
    assert_eq!(take_numbers(&reader), [1, 2]);
    world.assert_balanced();
}

#[test]
fn a_timer_that_panics_does_not_run_again() {
    let mut world = World::new(Site::memory());
    let alice = world.join();
    let runs = Rc::new(Cell::new(0));
    let counted = Rc::clone(&runs);
    let period = Duration::from_millis(1);
    let fail = move |_| {
        counted.set(counted.get() + 1);
        panic!("as the test wants");
    };
    let timer = alice
        .create_timer("fails", level(5), period, Duration::ZERO, fail)
        .unwrap();
    run_into_panic(&alice);
    alice.run_for(10 * period);
    assert_eq!(runs.get(), 1);
    alice.stop_timer(timer);
    world.assert_balanced();
}
