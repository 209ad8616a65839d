//! Tests of time-triggered jobs.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use isolane::{BuildError, Level, Qos, Timer, limits::MAX_JOBS};

use crate::support::{Message, Site, World, level, take_numbers};

const PERIOD: Duration = Duration::from_millis(5);

#[test]
fn a_time_triggered_job_publishes_once_a_period_at_the_planned_instants() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::best_effort().level(level(6)).keep_last(64);
        let writer = alice.create_writer::<Message>("Periodic", &qos).unwrap();
        let reader = bob.create_reader::<Message>("Periodic", &qos).unwrap();
        world.until_matched(&writer, &reader);

        let planned = Rc::new(RefCell::new(Vec::new()));
        let of_callback = Rc::clone(&planned);
        let offset = Duration::from_millis(2);
        let publish = move |release: isolane::Instant| {
            let mut planned = of_callback.borrow_mut();
            planned.push(release.as_nanos());
            writer
                .write(&Message::number(planned.len() as u32))
                .unwrap();
        };
        let timer = alice
            .create_timer("publish", level(6), PERIOD, offset, publish)
            .unwrap();
        world.until("ten are published", || planned.borrow().len() >= 10);
        alice.stop_timer(timer);
        let planned = planned.borrow();
        world.until("all arrive", || reader.available() == planned.len());

        let numbers = take_numbers(&reader).into_iter();
        assert!(numbers.eq(1..=planned.len() as u32));
        let period = PERIOD.as_nanos() as u64;
        for release in planned.iter() {
            assert_eq!(release % period, 2_000_000, "offset 2 ms");
        }
        // A late turn of the loop skips releases, and never advances one.
        assert!(planned.windows(2).all(|pair| pair[1] - pair[0] >= period));
        world.assert_balanced();
    }
}

#[test]
fn a_stopped_timer_runs_no_more_and_stopping_it_again_is_nothing() {
    let mut world = World::new(Site::memory());
    let alice = world.join();
    let runs = Rc::new(Cell::new(0));
    let counted = Rc::clone(&runs);
    let count = move |_| counted.set(counted.get() + 1);
    let zero = Duration::ZERO;
    let timer = alice
        .create_timer("stops", level(0), PERIOD, zero, count)
        .unwrap();
    world.until("it runs", || runs.get() > 0);
    alice.stop_timer(timer);
    let at_stop = runs.get();

    // Another timer may use the entry of the first one, whose handle does not refer to it.
    let others = Rc::new(Cell::new(0));
    let counted = Rc::clone(&others);
    let count = move |_| counted.set(counted.get() + 1);
    alice
        .create_timer("goes on", level(0), PERIOD, zero, count)
        .unwrap();
    alice.stop_timer(timer);
    world.until("the other one runs", || others.get() > 2);
    assert_eq!(runs.get(), at_stop);
}

#[test]
fn a_timer_may_stop_itself() {
    let mut world = World::new(Site::memory());
    let alice = world.join();
    let own = Rc::new(Cell::new(None::<Timer>));
    let runs = Rc::new(Cell::new(0));
    let (of_callback, counted) = (Rc::clone(&own), Rc::clone(&runs));
    let participant = alice.clone();
    let once = move |_| {
        counted.set(counted.get() + 1);
        participant.stop_timer(of_callback.get().unwrap());
    };
    let timer = alice.create_timer("once", level(0), PERIOD, Duration::ZERO, once);
    own.set(Some(timer.unwrap()));
    world.run_for(10 * PERIOD);
    assert_eq!(runs.get(), 1);
    assert_eq!(Rc::strong_count(&own), 1, "the callback is dropped");
}

#[test]
fn stopped_timers_leave_their_places_and_the_table_has_a_bound() {
    let mut world = World::new(Site::memory());
    let alice = world.join();
    let create = || {
        let second = Duration::from_secs(1);
        alice.create_timer("one of many", Level::clamp(0), second, second, |_| {})
    };
    for _ in 0..10 * MAX_JOBS {
        alice.stop_timer(create().unwrap());
    }
    let mut timers = Vec::new();
    let refused = loop {
        match create() {
            Ok(timer) => timers.push(timer),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, BuildError::TooManyJobs), "{refused}");
    assert!(timers.len() > MAX_JOBS / 2 && timers.len() < MAX_JOBS);
    alice.stop_timer(timers[0]);
    create().unwrap();
}

#[test]
fn a_timer_without_a_period_is_refused() {
    let alice = Site::memory().participant();
    let refused = alice.create_timer("never", level(0), Duration::ZERO, PERIOD, |_| {});
    assert!(matches!(refused, Err(BuildError::NoPeriod)));
}
