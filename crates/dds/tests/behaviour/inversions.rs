//! Tests of priority inversions: in priority order, no less urgent activation starts after a more critical frame has
//! arrived, whatever the load; in order of arrival it does.

use std::{
    cell::Cell,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use isolane::{Participant, Qos, Report, Waiting};

use crate::support::{Domain, Message, Order, PATIENCE, Site, World, assert_balanced, level};

/// Number of critical samples that each run waits for.
const SAMPLES: u32 = 300;
const BULK_LEVEL: u8 = 1;
/// Number of slots in the bulk writer's history.
const SLOTS: u16 = 64;

fn bulk() -> Qos {
    Qos::reliable()
        .keep_all()
        .max_samples(SLOTS)
        .level(level(BULK_LEVEL))
}

fn critical() -> Qos {
    Qos::best_effort().level(level(7))
}

/// Writes bulk as fast as it is acknowledged, and a critical sample each millisecond, until `stop` is set.
fn publish(domain: &Domain, stop: &AtomicBool) {
    let alice = domain.builder().loopback().build().unwrap();
    let flood = alice.create_writer::<Message>("Bulk", &bulk()).unwrap();
    let brake = alice
        .create_writer::<Message>("Brake", &critical())
        .unwrap();
    // More urgent work leaves discovery no time, so matching must be complete before.
    let is_met = || flood.matched_readers() == 1 && brake.matched_readers() == 1;
    assert!(alice.run_until(PATIENCE, is_met));
    let millisecond = Duration::from_millis(1);
    let write_brake = move |_| brake.write(&Message::number(7)).unwrap_or_default();
    alice
        .create_timer("brake", level(7), millisecond, Duration::ZERO, write_brake)
        .unwrap();
    while !stop.load(Ordering::Relaxed) {
        let room = (0..SLOTS).take_while(|_| flood.write(&Message::number(1)).is_ok());
        room.for_each(drop);
        alice.poll();
    }
    assert_balanced(&alice.report(), false);
}

/// Report of a reader of both topics when it has received all critical samples.
fn under_load(order: Order) -> Report {
    let domain = Domain::claim();
    let bob: Participant = order
        .apply(domain.builder().loopback())
        .waiting(Waiting::Sleep)
        .build()
        .unwrap();
    let backlog = bob.create_reader::<Message>("Bulk", &bulk()).unwrap();
    let taken = Rc::new(Cell::new(0));
    let counted = Rc::clone(&taken);
    let on_bulk = move |_: isolane::Sample<&Message>| counted.set(counted.get() + 1);
    backlog.on_sample(Message::default(), on_bulk).unwrap();
    let brake = bob
        .create_view_reader::<Message>("Brake", &critical())
        .unwrap();
    let seen = Rc::new(Cell::new(0));
    let counted = Rc::clone(&seen);
    brake.on_view(move |_| counted.set(counted.get() + 1));

    let stop = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let (domain, notified) = (&domain, Arc::clone(&stop));
        let publisher = scope.spawn(move || publish(domain, &notified));
        let is_done = || seen.get() >= SAMPLES && taken.get() >= 10 * SAMPLES;
        let is_in_time = bob.run_until(PATIENCE, is_done);
        stop.store(true, Ordering::Relaxed);
        publisher.join().unwrap();
        assert!(is_in_time, "{} of {SAMPLES}, {}", seen.get(), bob.report());
    });
    let report = bob.report();
    assert_balanced(&report, false);
    report
}

#[test]
fn in_the_order_of_priority_nothing_less_urgent_begins_once_a_critical_sample_has_arrived() {
    let report = under_load(Order::Priority);
    assert_eq!(report.inversions(), 0, "{report}");
    let of_jobs: u64 = report
        .jobs
        .iter()
        .map(|job| job.statistics.inversions)
        .sum();
    assert_eq!(of_jobs, 0, "{report}");
    let critical = report.levels[0];
    assert_eq!(critical.level, level(7));
    assert!(critical.datagrams >= u64::from(SAMPLES), "{report}");
}

#[test]
fn in_the_order_of_arrival_critical_samples_wait_behind_others() {
    // On a machine with other work, several runs may have no inversion.
    let report = (0..20)
        .map(|_| under_load(Order::Arrival))
        .find(|report| report.levels[0].inversions > 0)
        .expect("critical samples waited in none of twenty runs");
    let receives = report
        .jobs
        .iter()
        .filter(|job| job.name.starts_with("receive"));
    let names: Vec<_> = receives.map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["receive discovery", "receive all levels"]);
}

#[test]
fn in_the_order_of_arrival_all_levels_come_by_one_port_and_in_that_of_priority_by_their_own() {
    for (order, expected) in [(Order::Priority, 3), (Order::Arrival, 1)] {
        for site in Site::both() {
            let bob = order.apply(site.builder()).build().unwrap();
            let mut world = World::new(site);
            world.drive(&bob);
            let alice = world.join();
            let readers: Vec<_> = [0, 3, 7]
                .into_iter()
                .map(|number| {
                    let qos = Qos::reliable().level(level(number));
                    let topic = format!("Level {number}");
                    bob.create_reader::<Message>(&topic, &qos).unwrap()
                })
                .collect();
            world.until("alice knows them", || {
                alice.endpoints().len() == readers.len()
            });
            let endpoints = alice.endpoints();
            let mut places: Vec<_> = endpoints
                .iter()
                .flat_map(|endpoint| endpoint.data.unicast.iter().copied())
                .collect();
            places.sort_by_key(|place| place.port);
            places.dedup();
            assert_eq!(places.len(), expected, "{order:?}: {places:?}");
        }
    }
}

/// Everything is on one thread, so the order of events is known. More bulk samples than one activation receives are in
/// the sockets before the critical one.
#[test]
fn a_sample_that_waits_behind_a_callback_of_lower_level_counts_it() {
    let inversions = |order: Order| {
        let site = Site::loopback();
        let bob = order.apply(site.builder()).build().unwrap();
        let mut world = World::new(site);
        world.drive(&bob);
        let alice = world.join();
        let flood = alice.create_writer::<Message>("Bulk", &bulk()).unwrap();
        let backlog = bob.create_reader::<Message>("Bulk", &bulk()).unwrap();
        let brake = alice
            .create_writer::<Message>("Brake", &critical())
            .unwrap();
        let view = bob
            .create_view_reader::<Message>("Brake", &critical())
            .unwrap();
        world.until_matched(&flood, &backlog);
        world.until_matched(&brake, &view);
        let seen = Rc::new(Cell::new(false));
        let notified = Rc::clone(&seen);
        view.on_view(move |_| notified.set(true));
        // The callback of the first bulk sample sends the critical sample.
        let mut brake = Some(brake);
        let on_bulk = move |_: isolane::Sample<&Message>| {
            if let Some(brake) = brake.take() {
                brake.write(&Message::number(7)).unwrap();
                // If the writer were deleted, the sample would have no writer.
                std::mem::forget(brake);
            }
        };
        backlog.on_sample(Message::default(), on_bulk).unwrap();
        for number in 0..u32::from(SLOTS) {
            flood.write(&Message::number(number)).unwrap();
        }
        while flood.ledger().pending > 0 {
            alice.poll();
        }
        assert!(bob.run_until(PATIENCE, || seen.get()));
        let report = bob.report();
        (report.levels[0].level, report.inversions())
    };
    assert_eq!(inversions(Order::Priority), (level(7), 0));
    let (critical, count) = inversions(Order::Arrival);
    assert_eq!(critical, level(7));
    assert!(count > 0);
}
