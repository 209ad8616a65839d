//! Tests of content filters that readers announce, and of the samples that writers then do not send.

use isolane::{Filter, Qos, TopicType, types::BoundedString};

use crate::support::{Message, Site, World, take_numbers};

fn qos() -> Qos {
    Qos::reliable().keep_all()
}

fn below(number: &str) -> Filter<Message> {
    Filter::new("number < %0", &[number]).expect("an expression")
}

#[test]
fn what_no_reader_wants_does_not_leave() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let writer = alice.create_writer::<Message>("Messages", &qos()).unwrap();
        let reader = bob
            .create_filtered_reader("Messages", &qos(), below("5"))
            .unwrap();
        world.until_matched(&writer, &reader);
        for number in 0..30 {
            writer.write(&Message::number(number)).unwrap();
        }
        world.until("all is acknowledged", || writer.all_acknowledged());
        assert_eq!(take_numbers(&reader), [0, 1, 2, 3, 4]);
        let (sent, counted) = (writer.ledger(), reader.ledger());
        assert_eq!((sent.sent, sent.content_filtered), (5, 25), "{sent:?}");
        assert_eq!(
            (counted.content_filtered, counted.lost),
            (25, 0),
            "{counted:?}"
        );
    }
}

#[test]
fn a_writer_that_keeps_the_last_alone_holds_back_too_and_loses_nothing() {
    for site in Site::both() {
        let (world, alice, bob) = World::pair(site);
        let newest = Qos::reliable().keep_last(1);
        let writer = alice.create_writer::<Message>("Messages", &newest).unwrap();
        let reader = bob
            .create_filtered_reader("Messages", &newest, below("5"))
            .unwrap();
        world.until_matched(&writer, &reader);
        for number in 0..30 {
            writer.write(&Message::number(number)).unwrap();
            world.until("it is sent", || writer.ledger().pending == 0);
        }
        world.until("all is acknowledged", || writer.all_acknowledged());
        let (sent, counted) = (writer.ledger(), reader.ledger());
        assert_eq!((sent.sent, sent.content_filtered), (5, 25), "{sent:?}");
        assert_eq!(counted.content_filtered, 25, "{counted:?}");
        let came = counted.available + counted.evicted + counted.delivered;
        assert_eq!(came + counted.lost, 5, "{counted:?}");
        assert_eq!(take_numbers(&reader), [4]);
    }
}

#[test]
fn other_parameters_hold_from_their_announcement_on() {
    let (world, alice, bob) = World::pair(Site::memory());
    let writer = alice.create_writer::<Message>("Messages", &qos()).unwrap();
    let reader = bob
        .create_filtered_reader("Messages", &qos(), below("0"))
        .unwrap();
    world.until_matched(&writer, &reader);
    writer.write(&Message::number(7)).unwrap();
    world.until("it is done with", || writer.all_acknowledged());
    assert_eq!(writer.ledger().content_filtered, 1);

    // Announcements take some time. The former filter applies to samples that the writer sends before they arrive.
    let comes_in_the_end = |number| {
        world.until("it comes in the end", || {
            if writer.all_acknowledged() {
                writer.write(&Message::number(number)).unwrap();
            }
            take_numbers(&reader).contains(&number)
        });
        world.until("all is acknowledged", || writer.all_acknowledged());
    };
    reader.set_filter(Some(below("10"))).unwrap();
    comes_in_the_end(8);
    let content_filtered = writer.ledger().content_filtered;
    writer.write(&Message::number(99)).unwrap();
    world.until("all is acknowledged", || writer.all_acknowledged());
    assert_eq!(writer.ledger().content_filtered, content_filtered + 1);
    reader.set_filter(None).unwrap();
    comes_in_the_end(99);
}

#[derive(TopicType, Debug, Clone, PartialEq, Default)]
struct Note {
    text: BoundedString<1_000>,
}

/// Returns how many samples the reader gets and the writer filters, for a filter of this cost.
fn filtered_at_the_writer(expression: &str) -> (u64, u64) {
    let (world, alice, bob) = World::pair(Site::memory());
    let writer = alice.create_writer::<Note>("Notes", &qos()).unwrap();
    let filter = Filter::<Note>::new(expression, &[]).expect("an expression");
    let reader = bob.create_filtered_reader("Notes", &qos(), filter).unwrap();
    world.until_matched(&writer, &reader);
    for _ in 0..10 {
        let text = "a".repeat(900).as_str().try_into().unwrap();
        writer.write(&Note { text }).unwrap();
    }
    world.until("all is acknowledged", || writer.all_acknowledged());
    (
        writer.ledger().content_filtered,
        reader.ledger().content_filtered,
    )
}

#[test]
fn a_filter_that_could_cost_much_is_left_to_its_reader() {
    assert_eq!(filtered_at_the_writer("text LIKE '%b%'"), (10, 10));
    // A long pattern that must be compared at every position of the text.
    let pattern = format!("text LIKE '%{}b%'", "a".repeat(100));
    assert_eq!(filtered_at_the_writer(&pattern), (0, 10));
    let comparisons = vec!["text = 'b'"; 20].join(" OR ");
    assert_eq!(filtered_at_the_writer(&comparisons), (0, 10));
    // A member as the pattern can have any length that the writer chooses.
    assert_eq!(filtered_at_the_writer("'b' LIKE text"), (0, 10));
}

#[test]
fn readers_of_one_topic_with_and_without_a_filter_each_get_their_own() {
    let (mut world, alice, bob) = World::pair(Site::loopback());
    let carol = world.join();
    let writer = alice.create_writer::<Message>("Messages", &qos()).unwrap();
    let few = bob
        .create_filtered_reader("Messages", &qos(), below("3"))
        .unwrap();
    let all = carol.create_reader::<Message>("Messages", &qos()).unwrap();
    world.until("both match", || writer.matched_readers() == 2);
    for number in 0..20 {
        writer.write(&Message::number(number)).unwrap();
    }
    world.until("all is acknowledged", || writer.all_acknowledged());
    assert_eq!(take_numbers(&few), [0, 1, 2]);
    assert_eq!(take_numbers(&all).len(), 20);
    assert_eq!((few.ledger().content_filtered, few.ledger().lost), (17, 0));
}
