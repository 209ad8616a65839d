//! Tests of reliability with small histories, waiting for room, and history for late joiners.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use isolane::{Network, Participant, Qos, WriteError};

use crate::support::{Domain, Message, Site, World, assert_balanced, take_numbers};

const HISTORY_FULL: WriteError = WriteError::Protocol(isolane_rtps::WriteError::HistoryFull);

fn small() -> Qos {
    Qos::reliable().keep_all().max_samples(8)
}

/// Writes `count` samples, runs all participants whenever the history is full, and returns the received samples.
fn bulk(world: &World, from: &Participant, to: &Participant, count: u32) -> Vec<u32> {
    let writer = from.create_writer::<Message>("Bulk", &small()).unwrap();
    let reader = to.create_reader::<Message>("Bulk", &small()).unwrap();
    world.until_matched(&writer, &reader);
    let mut received = Vec::new();
    let mut refused = 0;
    for number in 0..count {
        world.until("there is room", || {
            match writer.write(&Message::number(number)) {
                Ok(()) => true,
                Err(error) => {
                    assert_eq!(error, HISTORY_FULL);
                    refused += 1;
                    received.extend(take_numbers(&reader));
                    false
                }
            }
        });
    }
    world.until("all arrive", || {
        received.extend(take_numbers(&reader));
        received.len() == count as usize
    });
    world.until("all is acknowledged", || writer.all_acknowledged());
    assert!(refused > 0, "a history of 8 is full at some time");
    assert_eq!(writer.ledger().refused, refused);
    assert_eq!(writer.ledger().sent, u64::from(count));
    let ledger = reader.ledger();
    assert_eq!((ledger.delivered, ledger.lost), (u64::from(count), 0));
    world.assert_balanced();
    received
}

#[test]
fn bulk_through_a_small_history_is_refused_as_error_and_loses_nothing() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let received = bulk(&world, &alice, &bob, 2_000);
        assert!(received.into_iter().eq(0..2_000), "in order, each once");
    }
}

#[test]
fn bulk_over_a_network_that_loses_every_fifth_datagram_loses_nothing() {
    let network = Network::new(7);
    let (world, alice, bob) = World::pair(Site::Memory(network.clone()));
    network.set_loss_per_million(200_000);
    let received = bulk(&world, &alice, &bob, 300);
    assert!(received.into_iter().eq(0..300), "in order, each once");
}

#[test]
fn a_write_waits_for_room_as_long_as_max_blocking_time_and_no_longer() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let limit = Duration::from_millis(30);
        let qos = small().max_blocking_time(limit);
        let writer = alice.create_writer::<Message>("Waits", &qos).unwrap();
        let reader = bob.create_reader::<Message>("Waits", &qos).unwrap();
        world.until_matched(&writer, &reader);

        // Only the writer's participant runs meanwhile, so no reader acknowledges.
        for number in 0..8 {
            writer.write(&Message::number(number)).unwrap();
        }
        let begin = Instant::now();
        assert_eq!(writer.write(&Message::number(8)), Err(HISTORY_FULL));
        let waited = begin.elapsed();
        assert!(waited >= limit, "{waited:?}");
        assert!(waited < limit + Duration::from_secs(2), "{waited:?}");

        world.until("the eight arrive", || reader.available() == 8);
        assert!(take_numbers(&reader).into_iter().eq(0..8));
        world.assert_balanced();
    }
}

#[test]
fn with_max_blocking_time_a_writer_keeps_pace_with_a_reader_on_another_thread() {
    const COUNT: u32 = 3_000;
    let domain = Domain::claim();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let bob = domain.builder().loopback().build().unwrap();
            let reader = bob.create_reader::<Message>("Pace", &small()).unwrap();
            let mut expected = 0;
            let in_time = bob.run_until(Duration::from_secs(20), || {
                for number in take_numbers(&reader) {
                    assert_eq!(number, expected);
                    expected += 1;
                }
                expected == COUNT
            });
            assert!(in_time, "{expected} of {COUNT}\n{}", bob.report());
            // The last acknowledgement still has to leave.
            bob.run_until(Duration::from_secs(20), || is_done.load(Ordering::Relaxed));
            assert_balanced(&bob.report(), false);
        });
        let alice = domain.builder().loopback().build().unwrap();
        let qos = small().max_blocking_time(Duration::from_secs(10));
        let writer = alice.create_writer::<Message>("Pace", &qos).unwrap();
        assert!(alice.run_until(Duration::from_secs(10), || writer.matched_readers() == 1));
        for number in 0..COUNT {
            writer.write(&Message::number(number)).unwrap();
        }
        assert!(writer.wait_for_acknowledgments(Duration::from_secs(10)));
        is_done.store(true, Ordering::Relaxed);
        assert_eq!(writer.ledger().refused, 0);
        assert_balanced(&alice.report(), false);
    });
}

#[test]
fn a_late_joiner_gets_the_history_of_a_transient_local_writer_and_only_if_it_asks() {
    for site in Site::both() {
        let mut world = World::new(site);
        let alice = world.join();
        let kept = Qos::reliable().keep_last(3).transient_local();
        let writer = alice.create_writer::<Message>("History", &kept).unwrap();
        for number in 1..=5 {
            writer.write(&Message::number(number)).unwrap();
        }
        world.until("all is sent, without a reader", || {
            writer.ledger().pending == 0
        });

        let bob = world.join();
        let late = bob.create_reader::<Message>("History", &kept).unwrap();
        let volatile = Qos::reliable().keep_last(3);
        let indifferent = bob.create_reader::<Message>("History", &volatile).unwrap();
        world.until("the history arrives", || late.available() == 3);
        world.until("both match", || writer.matched_readers() == 2);
        writer.write(&Message::number(6)).unwrap();
        world.until("the next one arrives", || indifferent.available() == 1);
        world.until("everywhere", || late.ledger().accounted == 4);

        assert_eq!(take_numbers(&indifferent), [6]);
        assert_eq!(take_numbers(&late), [4, 5, 6]);
        assert_eq!(late.ledger().evicted, 1, "depth 3");
        world.assert_balanced();
    }
}
