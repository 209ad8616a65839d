//! Test that participants allocate nothing after the start: 10,000 samples of every path, on both datapaths, without
//! one allocation or free. Announcements, HEARTBEATs and housekeeping continue meanwhile, so the test covers them too.

#[path = "../../../tests/support/counting_allocator.rs"]
mod counting_allocator;
#[allow(
    dead_code,
    reason = "shared with the tests of behaviour; not all of it is used here"
)]
#[path = "behaviour/support.rs"]
mod support;

use std::{
    cell::Cell,
    ops::Range,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use isolane::{
    DataReader, Filter, Level, Participant, Qos, StateMask, StatusMask, WaitSet, WriteError,
};

use counting_allocator::{allocator_calls, allocator_calls_of};
use support::{Domain, Message, PATIENCE, Site, World};

const WARM_UP: u32 = 100;
const SAMPLES: u32 = 10_000;

/// Sets a callback that counts samples.
fn count_into(reader: &DataReader<Message>) -> Rc<Cell<u32>> {
    let seen = Rc::new(Cell::new(0));
    let of_callback = Rc::clone(&seen);
    let callback = move |sample: isolane::Sample<&Message>| {
        assert!(sample.value.is_some());
        of_callback.set(of_callback.get() + 1);
    };
    reader.on_sample(Message::default(), callback).unwrap();
    seen
}

#[test]
fn best_effort_by_view_allocates_nothing() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::best_effort();
        let writer = alice.create_writer::<Message>("View", &qos).unwrap();
        let reader = bob.create_view_reader::<Message>("View", &qos).unwrap();
        let seen = Rc::new(Cell::new(0));
        let of_callback = Rc::clone(&seen);
        reader.on_view(move |sample| {
            assert_eq!(sample.value.unwrap().text, "sixteen letters.");
            of_callback.set(of_callback.get() + 1);
        });
        world.until_matched(&writer, &reader);
        let exchange = |count: u32| {
            for number in 0..count {
                let sample = Message::new(number, "sixteen letters.");
                let before = seen.get();
                writer.write(&sample).unwrap();
                world.until("it is seen", || seen.get() > before);
            }
        };
        exchange(WARM_UP);
        assert_eq!(allocator_calls_of(|| exchange(SAMPLES)), 0);
        assert_eq!(seen.get(), WARM_UP + SAMPLES);
        world.assert_balanced();
    }
}

#[test]
fn reliable_with_cache_and_callback_allocates_nothing() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::reliable().keep_all().max_samples(32);
        let writer = alice.create_writer::<Message>("Reliable", &qos).unwrap();
        let reader = bob.create_reader::<Message>("Reliable", &qos).unwrap();
        world.until_matched(&writer, &reader);
        let seen = count_into(&reader);
        let exchange = |count: u32| {
            let end = seen.get() + count;
            for number in 0..count {
                let sample = Message::number(number);
                world.until("there is room", || writer.write(&sample).is_ok());
            }
            world.until("all are seen", || seen.get() == end);
        };
        exchange(WARM_UP);
        assert_eq!(allocator_calls_of(|| exchange(SAMPLES)), 0);
        assert_eq!(reader.ledger().delivered, u64::from(WARM_UP + SAMPLES));
        world.assert_balanced();
    }
}

#[test]
fn taking_into_a_value_allocates_nothing() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::best_effort();
        let writer = alice.create_writer::<Message>("Taken", &qos).unwrap();
        let reader = bob.create_reader::<Message>("Taken", &qos).unwrap();
        world.until_matched(&writer, &reader);
        let mut value = Message::default();
        let mut exchange = |count: u32| {
            for number in 0..count {
                writer.write(&Message::new(number, "taken")).unwrap();
                world.until("it arrives", || reader.available() > 0);
                assert!(reader.take_into(&mut value).unwrap().is_some());
                assert_eq!(value.number, number);
            }
        };
        exchange(WARM_UP);
        assert_eq!(allocator_calls_of(|| exchange(SAMPLES)), 0);
        world.assert_balanced();
    }
}

#[test]
fn waiting_for_conditions_and_being_woken_allocates_nothing() {
    for site in Site::both() {
        let world = World::new(site);
        let alone = world.site.participant();
        let qos = Qos::reliable().keep_all().max_samples(32);
        let writer = alone.create_writer::<Message>("Waited", &qos).unwrap();
        let reader = alone.create_reader::<Message>("Waited", &qos).unwrap();
        let waits = WaitSet::new(&alone);
        let all = Filter::new("text = %0", &["'waited'"]).unwrap();
        let all = reader.create_query_condition(StateMask::NOT_READ, all);
        let matched = reader.status_condition(StatusMask::SUBSCRIPTION_MATCHED);
        let guard = alone.create_guard_condition();
        waits.attach(&all).unwrap();
        waits.attach(&matched).unwrap();
        waits.attach(&guard).unwrap();
        alone.run_until(PATIENCE, || writer.matched_readers() == 1);
        let _ = reader.subscription_matched_status();
        let (mut value, mut active) = (Message::default(), Vec::with_capacity(8));
        let mut exchange = |count: u32| {
            for number in 0..count {
                writer.write(&Message::new(number, "waited")).unwrap();
                assert!(waits.wait_into(PATIENCE, &mut active).unwrap());
                assert!(active == [(&all).into()]);
                assert!(reader.take_into(&mut value).unwrap().is_some());
                assert_eq!(value.number, number);
            }
        };
        exchange(WARM_UP);
        assert_eq!(allocator_calls_of(|| exchange(SAMPLES)), 0);
    }
}

#[test]
fn a_remote_writer_allocates_nothing_on_its_thread_nor_on_the_executors() {
    for qos in [
        Qos::best_effort().keep_last(32),
        Qos::reliable().keep_all().max_samples(32),
    ] {
        for site in Site::both() {
            let (world, alice, bob) = World::pair(site);
            let mut writer = alice
                .create_writer_handle::<Message>("Remote", &qos)
                .unwrap();
            let reader = bob.create_reader::<Message>("Remote", &qos).unwrap();
            let seen = Arc::new(AtomicU32::new(0));
            let of_callback = Arc::clone(&seen);
            let callback = move |_: isolane::Sample<&Message>| {
                of_callback.fetch_add(1, Ordering::Relaxed);
            };
            reader.on_sample(Message::default(), callback).unwrap();
            world.until("they match", || alice.report().writers[0].matched == 1);

            let (start, started) = mpsc::channel();
            let arrived = Arc::clone(&seen);
            let publisher = thread::spawn(move || {
                let mut publish = |numbers: Range<u32>| {
                    for number in numbers {
                        // Only a few samples are in flight, because best effort loses samples that arrive faster than
                        // they are taken.
                        while number - arrived.load(Ordering::Relaxed) > 8 {
                            thread::yield_now();
                        }
                        let sample = Message::number(number);
                        while let Err(error) = writer.write(&sample) {
                            assert_eq!(error, WriteError::QueueFull);
                            thread::yield_now();
                        }
                    }
                };
                publish(0..WARM_UP);
                started.recv().unwrap();
                let calls = allocator_calls_of(|| publish(WARM_UP..WARM_UP + SAMPLES));
                (writer, calls)
            });
            let is_seen = |count: u32| seen.load(Ordering::Relaxed) == count;
            world.until("it is warm", || is_seen(WARM_UP));
            start.send(()).unwrap();
            let calls =
                allocator_calls_of(|| world.until("all arrive", || is_seen(WARM_UP + SAMPLES)));
            let (writer, calls_of_publisher) = publisher.join().unwrap();
            assert_eq!((calls, calls_of_publisher), (0, 0));
            drop(writer);
            world.assert_balanced();
        }
    }
}

#[test]
fn a_reader_handle_takes_without_allocating_on_either_thread() {
    let domain = Arc::new(Domain::claim());
    let of_loop = Arc::clone(&domain);
    let participant = Participant::spawn(move || of_loop.builder().loopback().build()).unwrap();
    let qos = Qos::reliable().keep_all().max_samples(32);
    let mut writer = participant.create_writer::<Message>("Taken", &qos).unwrap();
    let mut reader = participant.create_reader::<Message>("Taken", &qos).unwrap();
    // A timer tells how often the loop's thread has called the allocator.
    let (ticks, calls) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU64::new(0)));
    let (ticked, called) = (Arc::clone(&ticks), Arc::clone(&calls));
    let timer = participant.with(move |participant| {
        let (period, offset) = (Duration::from_millis(1), Duration::ZERO);
        participant.create_timer("calls", Level::MIN, period, offset, move |_| {
            called.store(allocator_calls(), Ordering::SeqCst);
            ticked.fetch_add(1, Ordering::SeqCst);
        })
    });
    timer.unwrap().unwrap();
    let of_loop = || {
        let before = ticks.load(Ordering::SeqCst);
        // The tick after the next one has begun after this call.
        while ticks.load(Ordering::SeqCst) < before + 2 {
            thread::yield_now();
        }
        calls.load(Ordering::SeqCst)
    };
    let mut exchange = |count: u32| {
        for number in 0..count {
            let sample = Message::new(number, "sixteen letters.");
            writer.write_timeout(&sample, PATIENCE).unwrap();
            let taken = reader.take_timeout(PATIENCE).unwrap().unwrap();
            assert_eq!(taken.value.unwrap().number, number);
        }
    };
    exchange(WARM_UP);
    let before = of_loop();
    assert_eq!(allocator_calls_of(|| exchange(SAMPLES)), 0);
    assert_eq!(of_loop() - before, 0);
}
