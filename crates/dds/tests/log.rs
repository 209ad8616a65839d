//! Tests of the log: it reports problems in a bounded number of lines, whatever their number, and costs nothing without
//! problems.
//!
//! The process has one logger, so the tests of this file take turns.

#[path = "../../../tests/support/counting_allocator.rs"]
mod counting_allocator;
#[allow(
    dead_code,
    reason = "shared with the tests of behaviour; not all of it is used here"
)]
#[path = "behaviour/support.rs"]
mod support;

use std::{
    net::UdpSocket,
    sync::{Mutex, MutexGuard, Once, PoisonError},
    thread,
    time::{Duration, Instant},
};

use counting_allocator::allocator_calls_of;
use isolane::{DurabilityKind, Qos, TopicType};
use log::{Level, LevelFilter, Log, Metadata, Record};
use support::{Domain, Message, Site, World};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
static TURN: Mutex<()> = Mutex::new(());

/// Logger that keeps all lines.
struct Recorder;

impl Log for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        assert_eq!((record.level(), record.target()), (Level::Warn, "isolane"));
        lines().push(record.args().to_string());
    }

    fn flush(&self) {}
}

fn lines() -> MutexGuard<'static, Vec<String>> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Log lines that contain this text.
fn lines_of(what: &str) -> Vec<String> {
    let lines = lines();
    let found = lines.iter().filter(|line| line.contains(what));
    found.cloned().collect()
}

/// Gives the test exclusive use of the logger while the guard exists.
fn take_turn() -> MutexGuard<'static, ()> {
    static SET: Once = Once::new();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    SET.call_once(|| {
        log::set_logger(&Recorder).unwrap();
        log::set_max_level(LevelFilter::Warn);
    });
    lines().clear();
    turn
}

#[test]
fn a_flood_of_garbage_is_a_line_a_second_that_says_how_much_and_from_where() {
    const DATAGRAMS: usize = 60_000;
    let _turn = take_turn();
    let domain = Domain::claim();
    let victim = domain.builder().loopback().build().unwrap();
    let to = domain.first_participant();
    let begin = Instant::now();
    let flood = thread::spawn(move || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for number in 0..DATAGRAMS {
            // A full socket drops datagrams; this is reported in a separate kind of line.
            let _ = socket.send_to(b"this is not RTPS", to);
            if number % 100 == 0 {
                thread::sleep(Duration::from_millis(5));
            }
        }
        socket.local_addr().unwrap()
    });
    while !flood.is_finished() {
        victim.run_for(Duration::from_millis(50));
    }
    let from = flood.join().unwrap();
    // Includes problems that the last line has not reported yet.
    victim.run_for(Duration::from_millis(2_100));
    let seconds = begin.elapsed().as_secs() as usize;
    let malformed = lines_of("malformed");
    assert!(!malformed.is_empty(), "{:?}", lines());
    assert!(malformed.len() <= seconds + 1, "{seconds} s: {malformed:?}");
    assert!(malformed[0].contains(&from.to_string()), "{malformed:?}");
    let reported: u64 = malformed.iter().map(|line| number_in(line)).sum();
    let counters = victim.counters();
    assert_eq!(reported, counters.malformed_messages, "{malformed:?}");
    assert!(reported > 0);
}

/// Returns the first number of a line, which has thousands separators.
fn number_in(line: &str) -> u64 {
    let words = line.split_whitespace();
    let mut numbers = words.filter_map(|word| word.replace(',', "").parse().ok());
    numbers
        .next()
        .unwrap_or_else(|| panic!("no number: {line}"))
}

#[test]
fn an_incompatible_pair_is_named_once_with_its_topic_and_policy() {
    let _turn = take_turn();
    let (world, alice, bob) = World::pair(Site::memory());
    let writer = alice
        .create_writer::<Message>("Apart", &Qos::best_effort())
        .unwrap();
    let reader = bob
        .create_reader::<Message>("Apart", &Qos::reliable())
        .unwrap();
    world.run_for(Duration::from_millis(3_500));
    assert!(writer.incompatible().is_some() && reader.incompatible().is_some());
    let lines = lines_of("topic Apart");
    let (of_writer, of_reader): (Vec<_>, Vec<_>) = lines
        .iter()
        .partition(|line| line.contains("the writer here offers less"));
    assert_eq!((of_writer.len(), of_reader.len()), (1, 1), "{lines:?}");
    for line in &lines {
        assert!(line.contains("in RELIABILITY"), "{line}");
    }
    assert!(of_reader[0].contains("requests more"), "{lines:?}");
}

#[test]
fn samples_refused_for_their_encapsulation_are_a_line_a_second_that_names_topic_writer_and_encapsulation()
 {
    #[derive(TopicType, Default)]
    #[topic(appendable)]
    struct Part {
        number: u8,
    }
    #[derive(TopicType, Default)]
    #[topic(name = "Nested", appendable)]
    struct Nested {
        part: Part,
    }
    #[derive(TopicType, Default)]
    struct FinalPart {
        number: u8,
    }
    #[derive(TopicType, Default)]
    #[topic(name = "Nested")]
    struct FinalNested {
        part: FinalPart,
    }
    let _turn = take_turn();
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::best_effort();
    let writer = alice.create_writer::<Nested>("Foreign", &qos).unwrap();
    let reader = bob
        .create_view_reader::<FinalNested>("Foreign", &qos)
        .unwrap();
    reader.on_view(|_| {});
    world.until_matched(&writer, &reader);
    let begin = Instant::now();
    for _ in 0..300 {
        writer.write(&Nested::default()).unwrap();
        world.run_for(Duration::from_millis(5));
    }
    world.run_for(Duration::from_millis(2_100));
    let seconds = begin.elapsed().as_secs() as usize;
    let refused = lines_of("refused because they are not of their reader's type");
    assert!(
        !refused.is_empty() && refused.len() <= seconds + 1,
        "{refused:?}"
    );
    let reported: u64 = refused.iter().map(|line| number_in(line)).sum();
    assert_eq!(reported, reader.ledger().rejected, "{refused:?}");
    for part in [
        "topic Foreign",
        "D_CDR2_LE",
        "appendable",
        &alice.guid().prefix.to_string(),
    ] {
        assert!(refused[0].contains(part), "{part}: {refused:?}");
    }
}

#[test]
fn a_full_table_is_named_with_what_to_raise() {
    let _turn = take_turn();
    let site = Site::memory();
    let limits = isolane::Limits {
        remote_endpoints: 2,
        ..isolane::Limits::default()
    };
    let bob = site.builder().limits(limits).build().unwrap();
    let mut world = World::new(site);
    world.drive(&bob);
    let alice = world.join();
    let _writers: Vec<_> = (0..4)
        .map(|number| {
            let topic = format!("Topic {number}");
            alice.create_writer::<Message>(&topic, &Qos::best_effort())
        })
        .collect();
    world.until("it is logged", || !lines_of("peers refused").is_empty());
    assert!(lines_of("peers refused")[0].contains("--max-participants, or Builder::limits"));
}

#[test]
fn while_all_is_well_nothing_is_said_and_nothing_is_allocated() {
    let _turn = take_turn();
    let (world, alice, bob) = World::pair(Site::loopback());
    let writer = alice
        .create_writer::<Message>("Well", &Qos::best_effort())
        .unwrap();
    let reader = bob
        .create_reader::<Message>("Well", &Qos::best_effort())
        .unwrap();
    world.until_matched(&writer, &reader);
    world.run_for(Duration::from_millis(1_100));
    let calls = allocator_calls_of(|| world.run_for(Duration::from_millis(2_200)));
    assert_eq!(calls, 0);
    assert!(lines().is_empty(), "{:?}", lines());
}

#[test]
fn an_endpoint_whose_durability_takes_a_service_is_a_line_that_says_what_it_gets() {
    let _turn = take_turn();
    let participant = Site::memory().participant();
    let qos = Qos::reliable();
    let _plain = participant
        .create_writer::<Message>("Kept", &qos.clone().transient_local())
        .unwrap();
    assert_eq!(lines_of("DURABILITY"), [""; 0]);
    let persistent = qos.durability(DurabilityKind::Persistent);
    let _writer = participant
        .create_writer::<Message>("Kept", &persistent)
        .unwrap();
    let said = lines_of("the writer of Kept has DURABILITY Persistent");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("nothing keeps samples beyond their writer"));
    let _reader = participant
        .create_reader::<Message>("Kept", &persistent)
        .unwrap();
    assert_eq!(lines_of("the reader of Kept has DURABILITY").len(), 1);
}

#[test]
fn samples_that_are_too_large_are_a_line_with_topic_sizes_and_setting() {
    let _turn = take_turn();
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable().keep_last(4);
    let writer = alice.create_writer::<Message>("Large", &qos).unwrap();
    let small = qos.max_bytes(32);
    let reader = bob.create_reader::<Message>("Large", &small).unwrap();
    world.until_matched(&writer, &reader);
    let text = "a text that does not fit thirty-two bytes";
    for number in 0..3 {
        writer.write(&Message::new(number, text)).unwrap();
    }
    world.until("the writer goes on", || writer.all_acknowledged());
    world.until("it is logged", || !lines_of("too large").is_empty());
    assert_eq!(reader.ledger().too_large, 3);
    let said = &lines_of("too large")[0];
    for part in [
        "3 more",
        "topic Large",
        "the reader accepts 32",
        "Qos::max_bytes",
        "isolane.toml",
    ] {
        assert!(said.contains(part), "{said}");
    }
}
