//! Tests of writers for other threads.

use std::{
    thread,
    time::{Duration, Instant},
};

use isolane::{Qos, WriteError, WriterHandle, limits::HANDLE_QUEUE};

use crate::support::{Message, Site, World, take_numbers};

/// Writes numbers, and waits while the queue is full; returns how often it was full.
fn publish(writer: &mut WriterHandle<Message>, count: u32) -> u32 {
    let mut full = 0;
    for number in 0..count {
        while let Err(error) = writer.write(&Message::number(number)) {
            assert_eq!(error, WriteError::QueueFull);
            full += 1;
            thread::sleep(Duration::from_micros(20));
        }
    }
    full
}

#[test]
fn a_writer_handle_may_move_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<WriterHandle<Message>>();
}

#[test]
fn what_a_thread_writes_best_effort_is_sent_in_its_order() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::best_effort().keep_last(512);
        let mut writer = alice
            .create_writer_handle::<Message>("Thread", &qos)
            .unwrap();
        let reader = bob.create_reader::<Message>("Thread", &qos).unwrap();
        world.until("they match", || alice.report().writers[0].matched == 1);
        let publisher = thread::spawn(move || {
            for number in 0..100 {
                while writer.write(&Message::number(number)).is_err() {
                    thread::yield_now();
                }
                // Slow enough that no queue is full.
                thread::sleep(Duration::from_micros(100));
            }
            writer
        });
        world.until("all arrive", || reader.available() == 100);
        assert!(take_numbers(&reader).into_iter().eq(0..100));
        let writer = publisher.join().unwrap();
        assert_eq!(alice.report().frames_lent, HANDLE_QUEUE);
        drop(writer);
        world.assert_balanced();
    }
}

#[test]
fn what_a_thread_writes_reliably_arrives_all_of_it_also_when_the_writer_is_dropped_at_once() {
    const COUNT: u32 = 2_000;
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::reliable().keep_all().max_samples(8);
        let mut writer = alice.create_writer_handle::<Message>("Sure", &qos).unwrap();
        let reader = bob.create_reader::<Message>("Sure", &qos).unwrap();
        world.until("they match", || alice.report().writers[0].matched == 1);
        let publisher = thread::spawn(move || publish(&mut writer, COUNT));
        let mut received = Vec::new();
        world.until("all arrive", || {
            received.extend(take_numbers(&reader));
            received.len() == COUNT as usize
        });
        assert!(received.into_iter().eq(0..COUNT));
        assert!(
            publisher.join().unwrap() > 0,
            "a small queue was full at some time"
        );
        world.until("the writer is deleted", || {
            alice.report().writers.is_empty()
        });
        assert_eq!(reader.ledger().lost, 0);
        world.assert_balanced();
    }
}

#[test]
fn a_full_queue_is_an_error_at_once_and_room_comes_with_the_next_turn() {
    let (world, alice, _bob) = World::pair(Site::memory());
    let mut writer = alice
        .create_writer_handle::<Message>("Full", &Qos::best_effort())
        .unwrap();
    for number in 0..HANDLE_QUEUE {
        writer.write(&Message::number(number as u32)).unwrap();
    }
    let begin = Instant::now();
    assert_eq!(
        writer.write(&Message::number(99)),
        Err(WriteError::QueueFull)
    );
    assert!(begin.elapsed() < Duration::from_secs(1), "it never waits");
    world.until("the queue is taken", || {
        alice.report().writers[0].ledger.written == HANDLE_QUEUE as u64
    });
    writer.write(&Message::number(99)).unwrap();
    world.assert_balanced();
}

#[test]
fn a_bounded_wait_ends_with_room_with_the_timeout_or_with_the_participant() {
    let participant = Site::memory().participant();
    let qos = Qos::best_effort().keep_last(64);
    let mut writer = participant
        .create_writer_handle::<Message>("Waiting", &qos)
        .unwrap();
    let timeout = Duration::from_secs(20);
    while writer.write(&Message::default()).is_ok() {}
    let begin = Instant::now();
    let written = writer.write_timeout(&Message::default(), Duration::from_millis(10));
    assert_eq!(written, Err(WriteError::QueueFull));
    assert!(begin.elapsed() >= Duration::from_millis(10));

    let publisher = thread::spawn(move || {
        let written = writer.write_timeout(&Message::default(), timeout);
        (written, writer)
    });
    thread::sleep(Duration::from_millis(20));
    participant.run_for(Duration::from_millis(20));
    let (written, mut writer) = publisher.join().unwrap();
    assert_eq!(written, Ok(()));
    while writer.write(&Message::default()).is_ok() {}
    let publisher = thread::spawn(move || writer.write_timeout(&Message::default(), timeout));
    thread::sleep(Duration::from_millis(20));
    drop(participant);
    assert_eq!(publisher.join().unwrap(), Err(WriteError::Gone));
    assert!(begin.elapsed() < timeout, "it was not woken");
}

#[test]
fn a_dropped_writer_handle_sends_its_batch() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::best_effort()
        .keep_last(8)
        .latency_budget(Duration::from_secs(10));
    let mut writer = alice
        .create_writer_handle::<Message>("Batch", &qos)
        .unwrap();
    let reader = bob.create_reader::<Message>("Batch", &qos).unwrap();
    world.until("they match", || alice.report().writers[0].matched == 1);
    for number in 0..3 {
        writer.write(&Message::number(number)).unwrap();
    }
    drop(writer);
    world.until("it is deleted", || alice.report().writers.is_empty());
    world.until("all arrive", || reader.ledger().accounted == 3);
    assert_eq!(take_numbers(&reader), [0, 1, 2]);
}

#[test]
fn a_writer_handle_is_deleted_with_its_participant_and_its_samples_are_sent() {
    let batched = Qos::best_effort().latency_budget(Duration::from_secs(10));
    for qos in [Qos::reliable(), batched] {
        let (mut world, alice, bob) = World::pair(Site::memory());
        let mut writer = alice
            .create_writer_handle::<Message>("Ended", &qos)
            .unwrap();
        let own = alice.create_reader::<Message>("Ended", &qos).unwrap();
        let reader = bob.create_reader::<Message>("Ended", &qos).unwrap();
        world.until("they match", || alice.report().writers[0].matched == 2);
        writer.write(&Message::number(7)).unwrap();
        world.leave(alice);
        // The reader keeps what the participant has left.
        assert_eq!(own.matched_writers(), 0);
        world.until("it arrives", || reader.available() == 1);
        assert_eq!(writer.write(&Message::number(8)), Err(WriteError::Gone));
    }
}

#[test]
fn a_full_history_keeps_samples_in_the_queue_and_does_not_make_the_loop_spin() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable().keep_all().max_samples(2);
    let mut writer = alice
        .create_writer_handle::<Message>("Backed up", &qos)
        .unwrap();
    let reader = bob.create_reader::<Message>("Backed up", &qos).unwrap();
    world.until("they match", || alice.report().writers[0].matched == 1);

    // Bob does not run: two samples fill the history, the others wait in the queue.
    let mut accepted = 0;
    while writer.write(&Message::number(accepted)).is_ok() {
        accepted += 1;
        alice.run_for(Duration::from_millis(1));
    }
    assert_eq!(accepted as usize, HANDLE_QUEUE + 2);
    let activations = |name: &str| {
        let report = alice.report();
        let jobs = report.jobs.iter().filter(|job| job.name.contains(name));
        jobs.map(|job| job.statistics.activations).sum::<u64>()
    };
    let before = activations("writer handle");
    alice.run_for(Duration::from_millis(50));
    assert!(activations("writer handle") - before < 10);

    let mut received = Vec::new();
    world.until("all arrive", || {
        received.extend(take_numbers(&reader));
        received.len() == accepted as usize
    });
    assert!(received.into_iter().eq(0..accepted));
    assert_eq!(alice.report().writers[0].ledger.refused, 0);
    world.assert_balanced();
}

#[test]
fn a_dropped_writer_handle_is_deleted_and_its_frames_come_home() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::best_effort();
        let writer = alice
            .create_writer_handle::<Message>("Dropped", &qos)
            .unwrap();
        let reader = bob.create_reader::<Message>("Dropped", &qos).unwrap();
        world.until("they match", || reader.matched_writers() == 1);
        thread::spawn(move || drop(writer)).join().unwrap();
        world.until("the reader is notified", || reader.matched_writers() == 0);
        assert!(alice.report().writers.is_empty());
        assert_eq!(alice.report().frames_lent, 0);

        // Another writer may use the same index by now, and must stay.
        let next = alice.create_writer::<Message>("Dropped", &qos).unwrap();
        world.run_for(Duration::from_millis(1_200));
        assert_eq!(next.matched_readers(), 1);
        world.assert_balanced();
    }
}

#[test]
fn without_its_participant_a_writer_handle_says_so() {
    let participant = Site::memory().participant();
    let mut writer = participant
        .create_writer_handle::<Message>("Gone", &Qos::best_effort())
        .unwrap();
    drop(participant);
    assert_eq!(writer.write(&Message::number(1)), Err(WriteError::Gone));
}
