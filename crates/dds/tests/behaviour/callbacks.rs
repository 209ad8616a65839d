//! Tests of operations allowed in callbacks: writing, creating and deleting endpoints, replacing the callback, dropping
//! what it owns.

use std::{cell::RefCell, rc::Rc, time::Duration};

use isolane::{DataReader, DataWriter, Participant, Qos};

use crate::support::{Message, Site, World, level, take_numbers};

#[test]
fn a_view_callback_may_answer() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::best_effort().keep_last(8);
        let pings = alice.create_writer::<Message>("Ping", &qos).unwrap();
        let pongs = alice.create_reader::<Message>("Pong", &qos).unwrap();
        let echo = bob.create_view_reader::<Message>("Ping", &qos).unwrap();
        let answers = bob.create_writer::<Message>("Pong", &qos).unwrap();
        world.until("the answers match", || answers.matched_readers() == 1);
        echo.on_view(move |sample| {
            let number = sample.value.unwrap().number;
            answers.write(&Message::number(number + 100)).unwrap();
        });
        world.until_matched(&pings, &echo);
        for number in 0..3 {
            pings.write(&Message::number(number)).unwrap();
        }
        world.until("all are answered", || pongs.available() == 3);
        assert_eq!(take_numbers(&pongs), [100, 101, 102]);
        world.assert_balanced();

        // Dropping the reader drops its callback, and the writer that the callback owns.
        drop(echo);
        assert!(bob.report().writers.is_empty());
        world.until("alice is notified", || pongs.matched_writers() == 0);
    }
}

#[test]
fn a_sample_callback_may_write_reliably_and_never_waits() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::reliable()
            .keep_all()
            .max_samples(4)
            .max_blocking_time(Duration::from_secs(5));
        let requests = alice.create_writer::<Message>("Request", &qos).unwrap();
        let replies = alice.create_reader::<Message>("Reply", &qos).unwrap();
        let service = bob.create_reader::<Message>("Request", &qos).unwrap();
        let answers = bob.create_writer::<Message>("Reply", &qos).unwrap();
        world.until_matched(&answers, &replies);
        let written = Rc::new(RefCell::new((0, 0)));
        let of_callback = Rc::clone(&written);
        let answer = move |_: isolane::Sample<&Message>| {
            // Five answers do not fit a history of four, and no reader can release samples here.
            for number in 0..5 {
                let mut written = of_callback.borrow_mut();
                match answers.write(&Message::number(number)) {
                    Ok(()) => written.0 += 1,
                    Err(_) => written.1 += 1,
                }
            }
        };
        service.on_sample(Message::default(), answer).unwrap();
        world.until_matched(&requests, &service);
        requests.write(&Message::number(0)).unwrap();
        world.until("the answers arrive", || replies.available() == 4);
        assert_eq!(*written.borrow(), (4, 1));
        assert_eq!(take_numbers(&replies), [0, 1, 2, 3]);
        world.assert_balanced();
    }
}

/// Objects created by a callback.
#[derive(Default)]
struct Made {
    writer: Option<DataWriter<Message>>,
    reader: Option<DataReader<Message>>,
    count: u32,
}

#[test]
fn a_callback_may_create_and_delete_endpoints() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::best_effort().keep_last(8);
        let commands = alice.create_writer::<Message>("Command", &qos).unwrap();
        let obeys = bob.create_view_reader::<Message>("Command", &qos).unwrap();
        let made = Rc::new(RefCell::new(Made::default()));
        let (of_callback, participant) = (Rc::clone(&made), bob.clone());
        obeys.on_view(move |sample| {
            let mut made = of_callback.borrow_mut();
            made.count += 1;
            let higher = Qos::best_effort().level(level(3));
            match sample.value.unwrap().number {
                0 => {
                    made.writer = participant.create_writer("Made", &higher).ok();
                    made.reader = participant.create_reader("Made", &higher).ok();
                    let writer = made.writer.as_ref().unwrap();
                    writer.write(&Message::number(42)).unwrap();
                }
                _ => {
                    *made = Made {
                        count: made.count,
                        ..Made::default()
                    }
                }
            }
        });
        world.until_matched(&commands, &obeys);
        let own = |made: &Made| {
            let reader = made.reader.as_ref();
            reader.is_some_and(|reader| reader.available() == 1)
        };

        commands.write(&Message::number(0)).unwrap();
        world.until("the new writer reaches the new reader", || {
            own(&made.borrow())
        });
        world.until("alice knows both", || alice.endpoints().len() == 3);
        commands.write(&Message::number(1)).unwrap();
        world.until("alice knows they are gone", || alice.endpoints().len() == 1);
        assert_eq!(made.borrow().count, 2);
        // The callback owns a handle of the reader's participant, which is dropped with the reader.
        drop(obeys);
        world.assert_balanced();
    }
}

#[test]
fn a_callback_may_delete_its_own_reader_and_another_one_in_its_place_is_untouched() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::best_effort();
    let writer = alice.create_writer::<Message>("Own", &qos).unwrap();
    let own = Rc::new(RefCell::new(None));
    let calls = Rc::new(RefCell::new(0));
    let reader = bob.create_view_reader::<Message>("Own", &qos).unwrap();
    let (of_callback, counted, participant) = (Rc::clone(&own), Rc::clone(&calls), bob.clone());
    reader.on_view(move |_| {
        *counted.borrow_mut() += 1;
        // The entry in the tables is free now, and used again at once.
        let former = of_callback.borrow_mut().take();
        drop(former);
        let next = participant.create_view_reader::<Message>("Own", &Qos::best_effort());
        *of_callback.borrow_mut() = Some(next.unwrap());
    });
    world.until_matched(&writer, &reader);
    *own.borrow_mut() = Some(reader);
    writer.write(&Message::number(1)).unwrap();
    world.until("it is called", || *calls.borrow() == 1);
    assert_eq!(
        Rc::strong_count(&calls),
        1,
        "the callback went with its reader"
    );

    let matched = || own.borrow().as_ref().map_or(0, DataReader::matched_writers);
    world.until("the new reader matches", || {
        matched() == 1 && writer.matched_readers() == 1
    });
    let before = alice.report().datagrams.total().transmit.sent;
    writer.write(&Message::number(2)).unwrap();
    assert!(alice.report().datagrams.total().transmit.sent > before);
    world.until("it comes to a reader without callback", || {
        bob.report().readers[0].ledger.rejected == 1
    });
    assert_eq!(*calls.borrow(), 1);
    own.borrow_mut().take();
    world.assert_balanced();
}

#[test]
fn a_callback_may_put_another_one_in_its_place() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::best_effort();
    let writer = alice.create_writer::<Message>("Next", &qos).unwrap();
    let reader = Rc::new(bob.create_view_reader::<Message>("Next", &qos).unwrap());
    let calls = Rc::new(RefCell::new(Vec::new()));
    let (of_first, handle) = (Rc::clone(&calls), Rc::downgrade(&reader));
    reader.on_view(move |_| {
        of_first.borrow_mut().push("first");
        let of_second = Rc::clone(&of_first);
        let reader = handle.upgrade().unwrap();
        reader.on_view(move |_| of_second.borrow_mut().push("second"));
    });
    world.until_matched(&writer, &reader);
    for number in 0..3 {
        writer.write(&Message::number(number)).unwrap();
    }
    world.until("three are seen", || calls.borrow().len() == 3);
    assert_eq!(*calls.borrow(), ["first", "second", "second"]);
    world.assert_balanced();
}

#[test]
fn the_last_handle_takes_timers_and_callbacks_with_it_and_peers_see_the_departure() {
    let (mut world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::best_effort();
    let writer = bob.create_writer::<Message>("Owned", &qos).unwrap();
    let reader = alice.create_reader::<Message>("Owned", &qos).unwrap();
    world.until_matched(&writer, &reader);
    // The timer's callback owns the writer, and the writer owns a handle of its participant.
    let millisecond = Duration::from_millis(1);
    let publish = move |_| writer.write(&Message::number(1)).unwrap();
    bob.create_timer("publish", level(0), millisecond, Duration::ZERO, publish)
        .unwrap();
    world.until("it publishes", || {
        reader.ledger().delivered + reader.ledger().available > 0
    });
    world.leave(bob);
    world.until("bob is gone", || alice.participants().is_empty());
    assert_eq!(reader.matched_writers(), 0);
    world.assert_balanced();
}

#[test]
fn a_callback_cannot_drive_the_loop_that_runs_it() {
    let mut world = World::new(Site::memory());
    let alice: Participant = world.join();
    let inner = alice.clone();
    let drive = move |_| inner.run_for(Duration::from_millis(1));
    let timer = alice
        .create_timer(
            "drives",
            level(0),
            Duration::from_millis(1),
            Duration::ZERO,
            drive,
        )
        .unwrap();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        alice.run_for(Duration::from_secs(5));
    }));
    let message = *outcome.unwrap_err().downcast::<&str>().unwrap();
    assert!(message.contains("a callback cannot drive it"), "{message}");
    alice.stop_timer(timer);
}
