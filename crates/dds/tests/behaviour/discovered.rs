//! Tests of discovery of peers and endpoints: events, queries, and ignored entities.

use std::{cell::RefCell, rc::Rc};

use isolane::{DiscoveryChange, DiscoveryEvent, IgnoreError, Qos};

use crate::support::{Message, Site, World};

type Events = Rc<RefCell<Vec<DiscoveryEvent>>>;

fn watch(participant: &isolane::Participant) -> Events {
    let events = Events::default();
    let recorded = Rc::clone(&events);
    let listener = move |event| recorded.borrow_mut().push(event);
    participant.on_discovery(listener).unwrap();
    events
}

#[test]
fn a_callback_gets_each_discovery_change_and_removal() {
    use DiscoveryChange::{Changed, Found, Gone};

    for site in Site::both() {
        let (mut world, alice, bob) = World::pair(site);
        let events = watch(&alice);
        let of_bob = bob.guid();
        let qos = Qos::best_effort();
        let writer = bob.create_writer::<Message>("Found", &qos).unwrap();
        let _other = alice.create_writer::<Message>("Own", &qos).unwrap();
        world.until("the writer is known", || alice.publications().len() == 1);
        let guid = alice.publications()[0].data.guid;
        writer.set_qos(&qos.user_data(b"more")).unwrap();
        bob.set_user_data(b"bob").unwrap();
        world.until("both have changed", || {
            let changes = events.borrow();
            changes.contains(&DiscoveryEvent::Writer(guid, Changed))
                && changes.contains(&DiscoveryEvent::Participant(of_bob, Changed))
        });
        drop(writer);
        world.until("the writer is gone", || {
            let gone = DiscoveryEvent::Writer(guid, Gone);
            events.borrow().contains(&gone)
        });
        world.leave(bob);
        world.until("the participant is gone", || {
            let gone = DiscoveryEvent::Participant(of_bob, Gone);
            events.borrow().contains(&gone)
        });
        let recorded = |of: fn(&DiscoveryEvent) -> Option<DiscoveryChange>| -> Vec<_> {
            events.borrow().iter().filter_map(of).collect()
        };
        let of_participant = recorded(|event| match event {
            DiscoveryEvent::Participant(_, change) => Some(*change),
            _ => None,
        });
        assert_eq!(of_participant, [Found, Changed, Gone]);
        let of_writer = recorded(|event| match event {
            DiscoveryEvent::Writer(_, change) => Some(*change),
            _ => None,
        });
        assert_eq!(
            of_writer,
            [Found, Changed, Gone],
            "a participant does not report its own entities"
        );
        world.assert_balanced();
    }
}

#[test]
fn a_callback_of_discovery_may_create_and_delete_endpoints_and_set_another_callback() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::best_effort();
    let reader = Rc::new(RefCell::new(None));
    let (place, here) = (Rc::clone(&reader), alice.clone());
    let follow = move |event| {
        if let DiscoveryEvent::Writer(_, DiscoveryChange::Found) = event {
            let made = here.create_reader::<Message>("Followed", &Qos::best_effort());
            *place.borrow_mut() = Some(made.unwrap());
            here.on_discovery(|_| {}).unwrap();
        }
    };
    alice.on_discovery(follow).unwrap();
    let writer = bob.create_writer::<Message>("Followed", &qos).unwrap();
    world.until("the reader follows", || writer.matched_readers() == 1);
    let _second = bob.create_writer::<Message>("Second", &qos).unwrap();
    world.until("the second is known", || alice.publications().len() == 2);
    drop(reader.borrow_mut().take());
    world.until("it is gone", || writer.matched_readers() == 0);
    world.assert_balanced();
}

#[test]
fn topics_are_made_of_the_endpoints_of_others() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::best_effort();
    let said = qos.clone().topic_data(b"metres");
    let _one = bob.create_writer::<Message>("One", &qos).unwrap();
    let _more = bob.create_writer::<Message>("One", &said).unwrap();
    let _read = bob.create_reader::<Message>("One", &qos).unwrap();
    let _two = bob.create_reader::<Message>("Another", &qos).unwrap();
    let _own = alice.create_writer::<Message>("Own", &qos).unwrap();
    world.until("all are known", || alice.endpoints().len() == 4);
    let topics = alice.topics();
    let of_topics: Vec<_> = topics
        .iter()
        .map(|it| (it.name.as_str(), it.writers, it.readers))
        .collect();
    assert_eq!(of_topics, [("Another", 0, 1), ("One", 2, 1)]);
    assert_eq!(topics[1].topic_data.as_slice(), b"metres");
    assert_eq!(
        (alice.publications().len(), alice.subscriptions().len()),
        (2, 2)
    );
    world.assert_balanced();
}

#[test]
fn what_is_ignored_parts_at_once_and_stays_away() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::best_effort();
        let topics = ["Writer", "Topic", "Participant"];
        let writers = topics.map(|topic| bob.create_writer::<Message>(topic, &qos).unwrap());
        let readers = topics.map(|topic| alice.create_reader::<Message>(topic, &qos).unwrap());
        let matched = || readers.each_ref().map(|reader| reader.matched_writers());
        world.until("all are matched", || matched() == [1; 3]);
        let publications = alice.publications();
        let mut of_topic = publications.iter();
        let found = of_topic.find(|it| it.data.topic_name == "Writer").unwrap();
        alice.ignore_publication(found.data.guid).unwrap();
        assert_eq!(matched(), [0, 1, 1]);
        alice.ignore_topic("Topic").unwrap();
        assert_eq!(matched(), [0, 0, 1]);
        assert_eq!(alice.publications().len(), 1);
        alice.ignore_participant(bob.guid()).unwrap();
        world.until("it is gone", || matched() == [0; 3]);
        assert!(alice.participants().is_empty() && alice.topics().is_empty());
        // The ignored participant continues to announce itself.
        bob.set_user_data(b"still here").unwrap();
        world.until("that was heard", || {
            alice.counters().announcements_ignored > 0
        });
        assert!(alice.participants().is_empty());
        assert_eq!(bob.participants().len(), 1, "which knows nothing of that");
        drop(writers);
        world.assert_balanced();
    }
}

#[test]
fn a_name_that_no_topic_can_have_is_not_ignored() {
    let (_world, alice, _bob) = World::pair(Site::memory());
    let long = "x".repeat(300);
    assert_eq!(alice.ignore_topic(&long), Err(IgnoreError::NameTooLong));
}
