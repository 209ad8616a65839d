//! Tests of statuses of endpoints (DDS 1.4 §2.2.4.1): which listener is notified of which status, when, and what a
//! listener may do.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use isolane::{
    DataReader, LostReason, OfferedIncompatibleQosStatus, PolicyId, PublicationMatchedStatus, Qos,
    RejectReason, RequestedIncompatibleQosStatus, SampleLostStatus,
};

use crate::support::{Message, PATIENCE, Site, World, level};

/// Statuses that a listener got, in order.
type Recorded<S> = Rc<RefCell<Vec<S>>>;

fn record<S: 'static>() -> (Recorded<S>, impl FnMut(S) + 'static) {
    let recorded = Recorded::default();
    let by_listener = Rc::clone(&recorded);
    (recorded, move |status| {
        by_listener.borrow_mut().push(status);
    })
}

#[test]
fn both_ends_are_notified_when_they_match_and_when_they_part() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let writer = alice
            .create_writer::<Message>("Met", &Qos::reliable())
            .unwrap();
        let (published, of_writer) = record();
        writer.on_publication_matched(of_writer).unwrap();
        let reader = bob
            .create_reader::<Message>("Met", &Qos::reliable())
            .unwrap();
        let (subscribed, of_reader) = record();
        reader.on_subscription_matched(of_reader).unwrap();
        world.until("both are notified", || {
            published.borrow().len() == 1 && subscribed.borrow().len() == 1
        });
        let joined: PublicationMatchedStatus = published.borrow()[0];
        assert_eq!((joined.total_count, joined.total_count_change), (1, 1));
        assert_eq!((joined.current_count, joined.current_count_change), (1, 1));
        let prefix = |guid: Option<isolane::Guid>| guid.map(|guid| guid.prefix);
        let other = prefix(joined.last_subscription_handle);
        assert_eq!(other, Some(bob.guid().prefix));
        let other = prefix(subscribed.borrow()[0].last_publication_handle);
        assert_eq!(other, Some(alice.guid().prefix));

        drop(reader);
        world.until("alice is notified", || published.borrow().len() == 2);
        let parted = published.borrow()[1];
        assert_eq!((parted.total_count, parted.total_count_change), (1, 0));
        assert_eq!((parted.current_count, parted.current_count_change), (0, -1));
    }
}

#[test]
fn a_listener_gets_changes_from_before_it_was_set_unless_a_getter_has_read_them() {
    let (world, alice, bob) = World::pair(Site::memory());
    let writer = alice
        .create_writer::<Message>("Early", &Qos::best_effort())
        .unwrap();
    let reader = bob
        .create_reader::<Message>("Early", &Qos::best_effort())
        .unwrap();
    world.until_matched(&writer, &reader);
    let (recorded, listener) = record();
    reader.on_subscription_matched(listener).unwrap();
    world.until("it is notified", || recorded.borrow().len() == 1);
    let status = reader.subscription_matched_status();
    assert_eq!((status.current_count, status.current_count_change), (1, 0));

    let status = writer.publication_matched_status();
    assert_eq!((status.current_count, status.current_count_change), (1, 1));
    let (recorded, listener) = record();
    writer.on_publication_matched(listener).unwrap();
    world.run_for(Duration::from_millis(20));
    assert!(recorded.borrow().is_empty(), "{recorded:?}");
    assert_eq!(writer.publication_matched_status().current_count_change, 0);
}

#[test]
fn both_ends_learn_which_policy_keeps_them_apart() {
    let (world, alice, bob) = World::pair(Site::memory());
    let offered = Qos::best_effort();
    let requested = Qos::reliable();
    let writer = alice.create_writer::<Message>("Apart", &offered).unwrap();
    let (at_writer, listener) = record();
    writer.on_offered_incompatible_qos(listener).unwrap();
    let reader = bob.create_reader::<Message>("Apart", &requested).unwrap();
    let (at_reader, listener) = record();
    reader.on_requested_incompatible_qos(listener).unwrap();
    world.until("both are notified", || {
        at_writer.borrow().len() == 1 && at_reader.borrow().len() == 1
    });
    let offered: OfferedIncompatibleQosStatus = at_writer.borrow()[0];
    let requested: RequestedIncompatibleQosStatus = at_reader.borrow()[0];
    assert_eq!(offered.last_policy_id, Some(PolicyId::RELIABILITY));
    assert_eq!(requested.last_policy_id, Some(PolicyId::RELIABILITY));
    assert_eq!((offered.total_count, offered.total_count_change), (1, 1));
    assert_eq!(reader.requested_incompatible_qos_status().total_count, 1);
    assert_eq!(writer.offered_incompatible_qos_status().total_count, 1);
    assert_eq!(writer.publication_matched_status().total_count, 0);
}

#[test]
fn a_reader_is_notified_of_lost_samples_and_of_samples_that_are_too_large() {
    let site = Site::memory();
    let Site::Memory(network) = &site else {
        unreachable!("it is in memory")
    };
    let network = network.clone();
    let (world, alice, bob) = World::pair(site);
    let qos = Qos::best_effort().keep_last(8);
    let writer = alice.create_writer::<Message>("Lost", &qos).unwrap();
    let small = Qos::best_effort().keep_last(8).max_bytes(32);
    let reader = bob.create_reader::<Message>("Lost", &small).unwrap();
    world.until_matched(&writer, &reader);
    let (lost, listener) = record();
    reader.on_sample_lost(listener).unwrap();

    writer.write(&Message::number(1)).unwrap();
    network.set_loss_per_million(1_000_000);
    for number in 2..4 {
        writer.write(&Message::number(number)).unwrap();
    }
    network.set_loss_per_million(0);
    let large = "more than thirty-two bytes, with the head";
    writer.write(&Message::new(4, large)).unwrap();
    world.until("all are notified", || {
        let recorded = lost.borrow();
        recorded
            .last()
            .is_some_and(|last: &SampleLostStatus| last.total_count == 3)
    });
    let last = *lost.borrow().last().unwrap();
    assert_eq!(last.too_large, 1);
    assert!(
        matches!(last.last_reason, LostReason::TooLarge { bytes: 33.. }),
        "{last:?}"
    );
    assert_eq!(reader.sample_lost_status().total_count, 3);
    assert_eq!(reader.sample_rejected_status().total_count, 0);
}

/// Listeners run in a job at the priority of the topic's protocol work, one in each activation.
#[test]
fn listeners_are_jobs_at_the_protocol_priority_of_their_topic() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::best_effort().level(level(3));
    let reader = bob.create_reader::<Message>("Three", &qos).unwrap();
    let (recorded, listener) = record();
    reader.on_subscription_matched(listener).unwrap();
    reader.on_sample_lost(|_| {}).unwrap();
    let _writer = alice.create_writer::<Message>("Three", &qos).unwrap();
    world.until("it is notified", || recorded.borrow().len() == 1);
    let report = bob.report();
    let jobs: Vec<_> = report
        .jobs
        .iter()
        .filter(|job| job.name == "status Three")
        .collect();
    assert_eq!(jobs.len(), 1, "one for all listeners of an endpoint");
    assert_eq!(jobs[0].priority, 6);
    drop(reader);
    let report = bob.report();
    assert!(report.jobs.iter().all(|job| job.name != "status Three"));
}

#[test]
fn a_listener_may_write_create_replace_itself_and_delete_its_own_endpoint() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::reliable();
        let own: Rc<RefCell<Option<DataReader<Message>>>> = Rc::default();
        let reader = bob.create_reader::<Message>("Free", &qos).unwrap();
        let (handle, participant) = (Rc::downgrade(&own), bob.clone());
        let answered = Rc::new(Cell::new(0));
        let counted = Rc::clone(&answered);
        let answers = bob.create_writer::<Message>("Answers", &qos).unwrap();
        reader
            .on_subscription_matched(move |status| {
                counted.set(counted.get() + 1);
                if status.current_count == 0 {
                    return;
                }
                answers.write(&Message::number(5)).unwrap();
                let made = participant.create_writer::<Message>("Made", &Qos::best_effort());
                drop(made.unwrap());
                let own = handle.upgrade().unwrap();
                let again = Rc::clone(&counted);
                let reader = own.borrow_mut().take().unwrap();
                let replaced = reader.on_subscription_matched(move |_| again.set(100));
                replaced.unwrap();
                // Dropping the reader drops both listeners.
                drop(reader);
            })
            .unwrap();
        *own.borrow_mut() = Some(reader);
        let writer = alice.create_writer::<Message>("Free", &qos).unwrap();
        world.until("it is notified", || answered.get() > 0);
        world.until("alice is notified of the end", || {
            writer.matched_readers() == 0
        });
        world.run_for(Duration::from_millis(10));
        assert_eq!(answered.get(), 1);
        let topics: Vec<_> = bob
            .report()
            .writers
            .into_iter()
            .map(|it| it.topic)
            .collect();
        assert!(
            topics.is_empty(),
            "the listener's writer went with it: {topics:?}"
        );
    }
}

#[test]
fn a_listener_that_panics_is_dropped_and_the_loop_goes_on() {
    let mut world = World::new(Site::memory());
    let alice = world.join();
    let qos = Qos::best_effort();
    let reader = alice.create_reader::<Message>("Panics", &qos).unwrap();
    reader
        .on_subscription_matched(|_| panic!("on purpose"))
        .unwrap();
    let first = alice.create_writer::<Message>("Panics", &qos).unwrap();
    let run = || alice.run_until(PATIENCE, || false);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    assert!(outcome.is_err());
    let _second = alice.create_writer::<Message>("Panics", &qos).unwrap();
    first.write(&Message::number(1)).unwrap();
    assert!(alice.run_until(PATIENCE, || reader.available() == 1));
    assert_eq!(reader.subscription_matched_status().current_count, 2);
}

#[test]
fn a_sample_that_is_not_of_the_type_is_reported_as_rejected() {
    use isolane::TopicType;
    /// Type that announces the name of another type, and is longer than that type allows.
    #[derive(TopicType, Debug, Default, Clone, PartialEq)]
    #[topic(name = "Message")]
    struct Longer {
        number: u32,
        #[topic(bound = 200)]
        text: String,
    }
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::best_effort();
    let writer = alice.create_writer::<Longer>("Strange", &qos).unwrap();
    let takes_more = qos.max_bytes(400);
    let reader = bob.create_view_reader::<Message>("Strange", &takes_more);
    let reader = reader.unwrap();
    world.until("they match", || writer.matched_readers() == 1);
    reader.on_view(|_| {});
    let (rejected, listener) = record();
    reader.on_sample_rejected(listener).unwrap();
    let text = "x".repeat(100);
    writer.write(&Longer { number: 1, text }).unwrap();
    world.until("it is notified", || rejected.borrow().len() == 1);
    let reason = rejected.borrow()[0].last_reason;
    assert_eq!(reason, Some(RejectReason::NotOfType));
}
