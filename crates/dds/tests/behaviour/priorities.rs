//! Tests of the priorities of jobs: samples of level l have 2·l + 1, protocol work has 2·l.

use std::{cell::RefCell, rc::Rc, time::Duration};

use isolane::{Participant, Qos, limits::BURST};

use crate::support::{Message, Order, Site, World, level};

fn priority(participant: &Participant, job: &str) -> u8 {
    let report = participant.report();
    let mut found = report.jobs.iter().filter(|one| one.name == job);
    let one = found
        .next()
        .unwrap_or_else(|| panic!("no job {job}\n{:#?}", report.jobs));
    assert_eq!(found.next(), None, "two jobs {job}");
    one.priority
}

#[test]
fn jobs_have_the_priorities_that_are_documented() {
    let alice = Site::memory().participant();
    let qos = Qos::reliable().level(level(3));
    let reader = alice.create_reader::<Message>("Three", &qos).unwrap();
    reader.on_sample(Message::default(), |_| {}).unwrap();
    let _remote =
        alice.create_writer_handle::<Message>("Five", &Qos::best_effort().level(level(5)));
    let second = Duration::from_secs(1);
    alice
        .create_timer("tick", level(7), second, second, |_| {})
        .unwrap();

    for (job, expected) in [
        ("tick", 15),
        ("receive level 5", 11),
        ("writer handle Five", 11),
        ("receive level 3", 7),
        ("callback Three", 7),
        ("receive discovery", 1),
        ("housekeeping", 0),
    ] {
        assert_eq!(priority(&alice, job), expected, "{job}");
    }
    for number in 0..16 {
        let job = format!("protocol work, priority {number}");
        assert_eq!(priority(&alice, &job), number);
    }
}

#[test]
fn the_work_of_a_reliable_topic_is_done_at_the_priorities_of_its_level() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable().keep_all().level(level(3));
    let writer = alice.create_writer::<Message>("Three", &qos).unwrap();
    let reader = bob.create_reader::<Message>("Three", &qos).unwrap();
    world.until_matched(&writer, &reader);
    for number in 0..40 {
        writer.write(&Message::number(number)).unwrap();
    }
    world.until("all is acknowledged", || writer.all_acknowledged());
    let work = |participant: &Participant, name: &str| {
        let report = participant.report();
        let all = report.work.iter().filter(|work| work.kind.name() == name);
        all.map(|work| work.priority).collect::<Vec<_>>()
    };
    assert_eq!(work(&alice, "data"), [7, 1], "of level 3, and of discovery");
    assert_eq!(work(&bob, "acknack"), [6, 1]);
    world.assert_balanced();
}

/// Order of delivery of two samples that wait when the participant runs again, the less urgent one first.
fn order_of_delivery(order: Order) -> Vec<u32> {
    let site = Site::memory();
    let bob = order.apply(site.builder()).build().unwrap();
    let mut world = World::new(site);
    let alice = world.join();
    world.drive(&bob);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let topics = [1, 6].map(|number| {
        let qos = Qos::best_effort().level(level(number));
        let topic = format!("Level {number}");
        let writer = alice.create_writer::<Message>(&topic, &qos).unwrap();
        let reader = bob.create_view_reader::<Message>(&topic, &qos).unwrap();
        let of_callback = Rc::clone(&seen);
        reader.on_view(move |sample| of_callback.borrow_mut().push(sample.value.unwrap().number));
        world.until_matched(&writer, &reader);
        (writer, reader)
    });
    world.run_for(Duration::from_millis(5));
    for (number, (writer, _)) in [1, 6].into_iter().zip(&topics) {
        writer.write(&Message::number(number)).unwrap();
        writer.write(&Message::number(number)).unwrap();
    }
    assert!(bob.run_until(Duration::from_secs(5), || seen.borrow().len() == 4));
    world.assert_balanced();
    seen.take()
}

#[test]
fn the_most_urgent_sample_is_delivered_first_whatever_came_first() {
    assert_eq!(order_of_delivery(Order::Priority), [6, 6, 1, 1]);
}

#[test]
fn in_the_order_of_arrival_the_less_urgent_sample_is_not_overtaken() {
    assert_eq!(order_of_delivery(Order::Arrival)[0], 1);
}

#[test]
fn a_row_of_callbacks_does_not_keep_an_equally_urgent_socket_unseen() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable().keep_all().level(level(7));
    let bulk = alice.create_writer::<Message>("Bulk", &qos).unwrap();
    let backlog = bob.create_reader::<Message>("Bulk", &qos).unwrap();
    world.until_matched(&bulk, &backlog);
    let urgent = Qos::best_effort().level(level(7));
    let brake = alice.create_writer::<Message>("Brake", &urgent).unwrap();
    let view = bob.create_view_reader::<Message>("Brake", &urgent).unwrap();
    world.until_matched(&brake, &view);
    for number in 0..60 {
        bulk.write(&Message::number(number)).unwrap();
    }
    world.until("sixty samples wait", || backlog.available() == 60);

    // The fifth callback sends a datagram to the same participant.
    let seen = Rc::new(RefCell::new(Vec::new()));
    let by_view = Rc::clone(&seen);
    view.on_view(move |_| by_view.borrow_mut().push("brake"));
    let by_callback = Rc::clone(&seen);
    let on_bulk = move |sample: isolane::Sample<&Message>| {
        by_callback.borrow_mut().push("bulk");
        if sample.value.unwrap().number == 4 {
            brake.write(&Message::number(0)).unwrap();
        }
    };
    backlog.on_sample(Message::default(), on_bulk).unwrap();
    world.until("all is seen", || seen.borrow().len() == 61);
    let at = seen.borrow().iter().position(|&what| what == "brake");
    // It is delivered after the burst in progress and the one that was ready before.
    assert!(at.is_some_and(|at| at <= 2 * BURST), "{:?}", seen.borrow());
}
