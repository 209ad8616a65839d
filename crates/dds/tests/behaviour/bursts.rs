//! Tests of several waiting samples: they leave in one datagram, are delivered in one activation, and let
//! acknowledgements be sent in time.

use std::{cell::RefCell, rc::Rc, time::Duration};

use isolane::{DataReader, DataWriter, Participant, Qos, Sample, TopicType, limits::BURST};

use crate::support::{Message, Site, World, level, take_numbers};

const SLOTS: u16 = 64;

/// Sample so large that no two share an Ethernet frame.
#[derive(TopicType)]
struct Large {
    bytes: Vec<u8>,
}

fn bulk(number: u8) -> Qos {
    let qos = Qos::reliable().keep_all().max_samples(SLOTS);
    qos.level(level(number))
}

/// A matched pair of endpoints.
fn pair(
    world: &World,
    (alice, bob): (&Participant, &Participant),
    topic: &str,
    qos: &Qos,
) -> (DataWriter<Message>, DataReader<Message>) {
    let writer = alice.create_writer(topic, qos).unwrap();
    let reader = bob.create_reader(topic, qos).unwrap();
    world.until_matched(&writer, &reader);
    world.until("nothing is under way", || {
        writer.all_acknowledged() && alice.poll() + bob.poll() == 0
    });
    (writer, reader)
}

/// Number of steps of one kind of work for the user's topics.
fn steps(participant: &Participant, kind: &str) -> u64 {
    let report = participant.report();
    let found = report
        .work
        .iter()
        .filter(|work| work.kind.name() == kind && work.priority > 1);
    found.map(|work| work.steps).sum()
}

#[test]
fn samples_that_wait_share_datagrams_and_count_one_by_one() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let (writer, reader) = pair(&world, (&alice, &bob), "Many", &bulk(7));
        for number in 0..u32::from(SLOTS) {
            writer.write(&Message::number(number)).unwrap();
        }
        world.until("all is acknowledged", || writer.all_acknowledged());
        assert_eq!(writer.ledger().sent, u64::from(SLOTS));
        assert_eq!(writer.ledger().repaired, 0);
        // The payload has 12 bytes, with submessage header and time stamp 48.
        assert!(steps(&alice, "data") <= 4, "{}", alice.report());
        assert!(take_numbers(&reader).into_iter().eq(0..u32::from(SLOTS)));
    }
}

#[test]
fn a_sample_alone_is_not_held_back_for_others() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let (writer, reader) = pair(&world, (&alice, &bob), "One", &bulk(7));
        for number in 0..10 {
            writer.write(&Message::number(number)).unwrap();
            alice.poll();
            assert_eq!(writer.ledger().pending, 0);
            assert_eq!(steps(&alice, "data"), u64::from(number) + 1);
        }
        world.until("all arrive", || reader.available() == 10);
    }
}

#[test]
fn large_samples_leave_in_bursts_each_in_its_own_datagram() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = bulk(7).max_bytes(1_400);
        let writer = alice.create_writer::<Large>("Large", &qos);
        let reader = bob.create_reader::<Large>("Large", &qos);
        let (writer, reader) = (writer.unwrap(), reader.unwrap());
        world.until_matched(&writer, &reader);
        let job = |name: &str| {
            let report = alice.report();
            let job = report.jobs.iter().find(|job| job.name == name).unwrap();
            job.statistics.activations
        };
        let large = Large {
            bytes: vec![7; 1_000],
        };
        let before = job("protocol work, priority 15");
        for _ in 0..2 * BURST {
            writer.write(&large).unwrap();
        }
        world.until("all is acknowledged", || writer.all_acknowledged());
        assert_eq!(steps(&alice, "data"), 2 * BURST as u64);
        assert!(job("protocol work, priority 15") - before <= 3);
    }
}

#[test]
fn below_the_highest_level_in_use_bursts_are_shorter() {
    let alice = Site::memory().participant();
    let items = |name: &str| {
        let report = alice.report();
        let found = report.jobs.iter().find(|job| job.name == name);
        usize::from(found.unwrap_or_else(|| panic!("no {name}")).items)
    };
    let reader = alice.create_reader::<Message>("Low", &bulk(3)).unwrap();
    reader.on_sample(Message::default(), |_| {}).unwrap();
    let of_low = [
        "receive level 3",
        "callback Low",
        "protocol work, priority 7",
    ];
    assert_eq!(of_low.map(items), [BURST; 3]);

    let reader = alice.create_reader::<Message>("High", &bulk(6)).unwrap();
    reader.on_sample(Message::default(), |_| {}).unwrap();
    let of_high = [
        "receive level 6",
        "callback High",
        "protocol work, priority 13",
    ];
    assert_eq!(of_high.map(items), [BURST; 3]);
    assert_eq!(of_low.map(items), [4, 8, 1]);
    assert_eq!(items("protocol work, priority 12"), 1);
}

#[test]
fn samples_without_readers_count_for_a_burst_too() {
    let alice = Site::memory().participant();
    let _brake = alice.create_reader::<Message>("Brake", &bulk(6)).unwrap();
    let writer = alice.create_writer::<Message>("Bulk", &bulk(3)).unwrap();
    for number in 0..u32::from(SLOTS) {
        writer.write(&Message::number(number)).unwrap();
    }
    while writer.ledger().unmatched < u64::from(SLOTS) {
        alice.poll();
    }
    let report = alice.report();
    let mut jobs = report.jobs.iter();
    let sending = jobs.find(|job| job.name == "protocol work, priority 7");
    let activations = sending.unwrap().statistics.activations;
    assert!(
        activations >= u64::from(SLOTS) / BURST as u64,
        "{activations}"
    );
}

/// Number of samples that the writer knew to be acknowledged at each callback.
fn acknowledged_by_callback(number: u8) -> Vec<u64> {
    let (world, alice, bob) = World::pair(Site::memory());
    let (writer, reader) = pair(&world, (&alice, &bob), "Bulk", &bulk(number));
    // A more critical endpoint, so that this level has no bursts unless it is 7.
    let critical = Qos::best_effort().level(level(7));
    let _brake = bob.create_view_reader::<Message>("Brake", &critical);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let of_callback = Rc::clone(&seen);
    let observed = bob.clone();
    let before = steps(&bob, "acknack");
    let on_bulk = move |_: Sample<&Message>| {
        let acknacks = steps(&observed, "acknack") - before;
        of_callback.borrow_mut().push(acknacks);
    };
    reader.on_sample(Message::default(), on_bulk).unwrap();
    for number in 0..u32::from(SLOTS) {
        writer.write(&Message::number(number)).unwrap();
    }
    while writer.ledger().pending > 0 {
        alice.poll();
    }
    world.until("all are seen", || seen.borrow().len() == usize::from(SLOTS));
    world.until("all is acknowledged", || writer.all_acknowledged());
    assert_eq!(reader.ledger().deferred, 0);
    seen.take()
}

#[test]
fn a_row_of_callbacks_lets_an_acknowledgement_through_with_every_burst() {
    for number in [3, 7] {
        let acknacks = acknowledged_by_callback(number);
        // A series of callbacks below the highest level in use may also end by time, and the next one is a whole burst.
        let late = if number == 7 { 1 } else { 2 };
        let at_least = |at: usize| (at / BURST).saturating_sub(late) as u64;
        for (at, &count) in acknacks.iter().enumerate() {
            assert!(count >= at_least(at), "level {number}: {acknacks:?}");
            assert!(count <= at_least(at) + 3, "level {number}: {acknacks:?}");
        }
    }
}

#[test]
fn a_writer_is_let_go_on_only_as_far_as_samples_were_taken_so_none_is_refused() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let (writer, reader) = pair(&world, (&alice, &bob), "Bulk", &bulk(7));
        let seen = Rc::new(RefCell::new(0));
        let counted = Rc::clone(&seen);
        let on_bulk = move |_: Sample<&Message>| *counted.borrow_mut() += 1;
        reader.on_sample(Message::default(), on_bulk).unwrap();
        let mut written = 0;
        for _ in 0..500 {
            alice.poll();
            while writer.write(&Message::number(written)).is_ok() {
                written += 1;
            }
            alice.poll();
            // After a few turns the cache has many samples, and the writer continues.
            let mut turns = 0;
            bob.run_until(Duration::from_micros(200), || {
                turns += 1;
                turns > 4
            });
        }
        assert!(written > 1_000, "{written} samples in 500 rounds");
        world.until("all are seen", || *seen.borrow() == written);
        world.until("all is acknowledged", || writer.all_acknowledged());
        assert_eq!(reader.ledger().deferred, 0);
        assert_eq!(writer.ledger().repaired, 0);
    }
}

#[test]
fn what_waits_in_the_sockets_is_read_also_when_the_time_of_a_run_is_over_at_once() {
    let (world, alice, bob) = World::pair(Site::loopback());
    let qos = Qos::best_effort().keep_last(SLOTS);
    let (writer, reader) = pair(&world, (&alice, &bob), "Late", &qos);
    let samples = 3 * BURST as u32;
    for number in 0..samples {
        writer.write(&Message::number(number)).unwrap();
    }
    bob.run_for(Duration::from_nanos(1));
    assert!(take_numbers(&reader).into_iter().eq(0..samples));
}
