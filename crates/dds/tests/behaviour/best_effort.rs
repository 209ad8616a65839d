//! Tests of best-effort samples: by view, by cache, by callback.

use std::{cell::RefCell, rc::Rc};

use isolane::Qos;

use crate::support::{Message, Site, World, take_numbers};

#[test]
fn a_view_callback_sees_every_sample_with_strings_borrowed_from_the_frame() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::best_effort();
        let writer = alice.create_writer::<Message>("Views", &qos).unwrap();
        let reader = bob.create_view_reader::<Message>("Views", &qos).unwrap();
        let seen = Rc::new(RefCell::new(Vec::new()));
        let of_callback = Rc::clone(&seen);
        reader.on_view(move |sample| {
            let view = sample.value.expect("a value");
            let text: &str = view.text;
            of_callback.borrow_mut().push((view.number, text.len()));
        });
        world.until_matched(&writer, &reader);

        for number in 0..10 {
            writer.write(&Message::new(number, "borrowed")).unwrap();
        }
        world.until("all are seen", || seen.borrow().len() == 10);

        let expected: Vec<_> = (0..10).map(|number| (number, 8)).collect();
        assert_eq!(*seen.borrow(), expected);
        assert_eq!(reader.ledger().delivered, 10);
        assert_eq!(reader.available(), 0, "a view reader keeps nothing");
        world.assert_balanced();
    }
}

#[test]
fn a_keep_last_cache_holds_the_newest_and_counts_those_pushed_out() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::best_effort().keep_last(2);
        let writer = alice.create_writer::<Message>("Newest", &qos).unwrap();
        let reader = bob.create_reader::<Message>("Newest", &qos).unwrap();
        world.until_matched(&writer, &reader);

        for number in 1..=5 {
            writer.write(&Message::number(number)).unwrap();
        }
        world.until("all arrive", || reader.ledger().accounted == 5);

        assert_eq!(reader.ledger().evicted, 3);
        assert_eq!(take_numbers(&reader), [4, 5]);
        world.assert_balanced();
    }
}

#[test]
fn reading_leaves_a_sample_in_the_cache_and_marks_it() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::best_effort().keep_last(4);
    let writer = alice.create_writer::<Message>("Read", &qos).unwrap();
    let reader = bob.create_reader::<Message>("Read", &qos).unwrap();
    world.until_matched(&writer, &reader);
    writer.write(&Message::number(7)).unwrap();
    world.until("it arrives", || reader.available() == 1);

    let (sample, was_read) = reader.read(0).unwrap().unwrap();
    assert_eq!((sample.value.unwrap().number, was_read), (7, false));
    let (_, was_read) = reader.read(0).unwrap().unwrap();
    assert!(was_read);
    assert!(reader.read(1).unwrap().is_none());

    let mut into = Message::default();
    assert!(reader.take_into(&mut into).unwrap().is_some());
    assert_eq!(into.number, 7);
    assert!(reader.take_into(&mut into).unwrap().is_none());
    world.assert_balanced();
}

#[test]
fn a_sample_callback_gets_what_the_cache_holds_one_by_one() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::best_effort().keep_last(8);
        let writer = alice.create_writer::<Message>("Callback", &qos).unwrap();
        let reader = bob.create_reader::<Message>("Callback", &qos).unwrap();
        world.until_matched(&writer, &reader);
        // The callback also gets the samples that arrived before it was set.
        writer.write(&Message::new(0, "early")).unwrap();
        world.until("it arrives", || reader.available() == 1);

        let seen = Rc::new(RefCell::new(Vec::new()));
        let of_callback = Rc::clone(&seen);
        let callback = move |sample: isolane::Sample<&Message>| {
            of_callback.borrow_mut().push(sample.value.unwrap().number);
        };
        reader.on_sample(Message::default(), callback).unwrap();
        for number in 1..5 {
            writer.write(&Message::new(number, "late")).unwrap();
        }
        world.until("all are seen", || seen.borrow().len() == 5);

        assert_eq!(*seen.borrow(), [0, 1, 2, 3, 4]);
        assert_eq!(reader.ledger().delivered, 5);
        world.assert_balanced();
    }
}

#[test]
fn a_sample_without_a_matched_reader_counts_as_unmatched() {
    for site in Site::both() {
        let mut world = World::new(site);
        let alice = world.join();
        let writer = alice
            .create_writer::<Message>("Unread", &Qos::best_effort())
            .unwrap();
        writer.write(&Message::number(1)).unwrap();
        assert_eq!((writer.ledger().written, writer.ledger().unmatched), (1, 1));
        assert!(writer.all_acknowledged(), "best effort waits for no reader");
        world.assert_balanced();
    }
}

#[test]
fn every_reader_of_a_topic_gets_every_sample_also_in_the_same_participant() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let qos = Qos::best_effort().keep_last(8);
        let writer = alice.create_writer::<Message>("Many", &qos).unwrap();
        let readers = [&alice, &bob, &bob]
            .map(|participant| participant.create_reader::<Message>("Many", &qos).unwrap());
        world.until("all match", || writer.matched_readers() == readers.len());
        for number in 0..4 {
            writer.write(&Message::number(number)).unwrap();
        }
        world.until("all arrive", || {
            readers.iter().all(|reader| reader.available() == 4)
        });
        for reader in &readers {
            assert_eq!(take_numbers(reader), [0, 1, 2, 3]);
        }
        world.assert_balanced();
    }
}
