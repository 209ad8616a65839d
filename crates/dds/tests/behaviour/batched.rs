//! Tests of LATENCY_BUDGET: samples that leave in one datagram.

use std::time::Duration;

use isolane::{Participant, Qos, Report};

use crate::support::{Message, Site, World, take_numbers};

const BUDGET: Duration = Duration::from_millis(20);

/// Budget that never ends within a test; a sample is kept back for at most a second.
const LONG: Duration = Duration::from_secs(100);

fn datagrams(participant: &Participant) -> u64 {
    let report: Report = participant.report();
    report.datagrams.total().transmit.offered
}

#[test]
fn samples_of_a_budget_share_datagrams_and_all_arrive_in_order() {
    for site in Site::both() {
        for qos in [
            Qos::best_effort().keep_last(200),
            Qos::reliable().keep_all(),
        ] {
            let qos = qos.latency_budget(BUDGET).max_samples(200);
            let (world, alice, bob) = World::pair(site.clone());
            let writer = alice.create_writer::<Message>("Messages", &qos).unwrap();
            let reader = bob.create_reader::<Message>("Messages", &qos).unwrap();
            world.until_matched(&writer, &reader);
            for number in 0..200 {
                writer.write(&Message::number(number)).unwrap();
            }
            world.until("all arrive", || reader.available() == 200);
            assert_eq!(take_numbers(&reader), (0..200).collect::<Vec<_>>());
            assert_eq!(writer.ledger().sent, 200);
        }
    }
}

#[test]
fn a_best_effort_writer_sends_full_datagrams_before_write_returns_and_the_rest_at_flush() {
    let qos = Qos::best_effort().keep_last(500).latency_budget(LONG);
    let (world, alice, bob) = World::pair(Site::memory());
    let writer = alice.create_writer::<Message>("Messages", &qos).unwrap();
    let reader = bob.create_reader::<Message>("Messages", &qos).unwrap();
    world.until_matched(&writer, &reader);
    let before = datagrams(&alice);
    for number in 0..100 {
        writer.write(&Message::number(number)).unwrap();
    }
    assert_eq!(writer.ledger().sent, 0, "they fill a few datagrams");
    for number in 100..500 {
        writer.write(&Message::number(number)).unwrap();
    }
    // The loop has not run.
    let ledger = writer.ledger();
    assert!(ledger.sent > 200 && ledger.pending > 0, "{ledger:?}");
    writer.flush();
    assert_eq!(writer.ledger().pending, 0);
    let sent = datagrams(&alice) - before;
    assert!(sent <= 25, "{sent} datagrams");
    world.until("all arrive", || reader.available() == 500);
}

#[test]
fn waiting_for_acknowledgements_and_dropping_let_go_of_what_waits() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable().keep_all().latency_budget(LONG);
    let writer = alice.create_writer::<Message>("Messages", &qos).unwrap();
    let reader = bob.create_reader::<Message>("Messages", &qos).unwrap();
    world.until_matched(&writer, &reader);
    writer.write(&Message::number(1)).unwrap();
    assert!(!writer.wait_for_acknowledgments(Duration::from_millis(1)));
    world.until("it arrives", || reader.available() == 1);
    world.until("it is acknowledged", || writer.all_acknowledged());

    let qos = Qos::best_effort().keep_last(8).latency_budget(LONG);
    let writer = alice.create_writer::<Message>("Others", &qos).unwrap();
    let reader = bob.create_reader::<Message>("Others", &qos).unwrap();
    world.until_matched(&writer, &reader);
    writer.write(&Message::number(2)).unwrap();
    drop(writer);
    world.until("it arrives", || reader.available() >= 1);
}

#[test]
fn a_writer_without_a_budget_sends_at_once() {
    let (world, alice, bob) = World::pair(Site::memory());
    let writer = alice
        .create_writer::<Message>("Messages", &Qos::best_effort())
        .unwrap();
    let reader = bob
        .create_reader::<Message>("Messages", &Qos::best_effort())
        .unwrap();
    world.until_matched(&writer, &reader);
    writer.write(&Message::number(1)).unwrap();
    assert_eq!((writer.ledger().sent, writer.ledger().pending), (1, 0));
    writer.flush();
    world.until("it arrives", || reader.available() == 1);
}

#[test]
fn another_threads_samples_share_datagrams_too() {
    for qos in [Qos::best_effort().keep_last(64), Qos::reliable().keep_all()] {
        let qos = qos.latency_budget(BUDGET);
        let (world, alice, bob) = World::pair(Site::memory());
        let mut writer = alice
            .create_writer_handle::<Message>("Messages", &qos)
            .unwrap();
        let reader = bob.create_reader::<Message>("Messages", &qos).unwrap();
        world.until("they match", || {
            alice
                .report()
                .writers
                .iter()
                .any(|writer| writer.matched == 1)
                && reader.matched_writers() == 1
        });
        for number in 0..12 {
            writer.write(&Message::number(number)).unwrap();
        }
        world.until("all arrive", || reader.available() == 12);
        assert_eq!(take_numbers(&reader), (0..12).collect::<Vec<_>>());
    }
}
