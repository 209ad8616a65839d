//! Tests of an interface that disappears while a participant uses it: unsent datagrams are counted, nothing panics, and
//! the loop continues to sleep. If only the address changes, peers follow, and no reliable sample is lost.
//!
//! The test runs itself again inside its own network namespace, where it may create and delete interfaces. Where the
//! system does not allow that, it prints a message, and fails in CI.

#[path = "../../../tests/support/own_namespace.rs"]
mod own_namespace;

use std::net::SocketAddrV4;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use isolane::{Interfaces, Participant, Qos, Report, StaticDescription, Timing, TopicType};
use log::{LevelFilter, Log, Metadata, Record};
use own_namespace::{in_namespace, ip};

#[derive(TopicType, Debug, Clone, PartialEq, Default)]
struct Tick {
    number: u32,
}

fn refused(report: &Report) -> u64 {
    report.datagrams.total().transmit.refused_total()
}

fn activations(report: &Report) -> u64 {
    let jobs = report.jobs.iter();
    jobs.map(|job| job.statistics.activations).sum()
}

fn inside() {
    ip("link add gone0 type veth peer name gone1");
    ip("address add 10.9.0.1/24 dev gone0");
    ip("link set gone0 up");
    ip("link set gone1 up");
    let timing = Timing {
        announce_period: Duration::from_millis(100),
        ..Timing::default()
    };
    let participant = Participant::builder(0)
        .interfaces(Interfaces::Named(vec!["gone0".to_owned()]))
        .timing(timing)
        .build()
        .unwrap();
    let writer = participant
        .create_writer::<Tick>("Ticks", &Qos::best_effort())
        .unwrap();
    participant.run_for(Duration::from_millis(300));
    assert_eq!(refused(&participant.report()), 0);

    ip("link delete gone0");
    let before = activations(&participant.report());
    let begin = Instant::now();
    participant.run_for(Duration::from_millis(2_500));
    writer.write(&Tick { number: 1 }).unwrap();
    let report = participant.report();
    assert!(refused(&report) > 0, "{}", report.datagrams);
    assert_eq!(report.balance(), Ok(()));
    // Expected activations: an announcement every 100 ms, and housekeeping. A loop that does not sleep would run a
    // million.
    let tenths = begin.elapsed().as_millis() as u64 / 100;
    let ran = activations(&report) - before;
    assert!(ran < 20 * (tenths + 5), "{ran} activations\n{report}");
}

#[test]
fn an_interface_that_goes_away_is_counted_and_the_loop_goes_on_sleeping() {
    in_namespace(
        "an_interface_that_goes_away_is_counted_and_the_loop_goes_on_sleeping",
        inside,
    );
}

/// A participant on one interface that sends announcements to the other one's first address.
fn on(interface: &str, peer: [u8; 4]) -> Participant {
    Participant::builder(0)
        .interfaces(Interfaces::Named(vec![interface.to_owned()]))
        .peer(peer.into())
        .build()
        .unwrap()
}

fn an_address_changes() {
    for (name, address) in [("stays", "10.9.0.1/24"), ("moves", "10.9.1.2/24")] {
        ip(&format!("link add {name} type veth peer name {name}-end"));
        ip(&format!("address add {address} dev {name}"));
        ip(&format!("link set {name} up"));
        ip(&format!("link set {name}-end up"));
    }
    let (stays, moves) = (on("stays", [10, 9, 1, 2]), on("moves", [10, 9, 0, 1]));
    let qos = Qos::reliable().keep_all().max_samples(32);
    // One flow in each direction, so that both a writer and a reader move.
    let writers = [&stays, &moves].map(|it| it.create_writer::<Tick>("Ticks", &qos).unwrap());
    let readers = [&moves, &stays].map(|it| it.create_reader::<Tick>("Ticks", &qos).unwrap());
    let run = || {
        stays.run_for(Duration::from_millis(5));
        moves.run_for(Duration::from_millis(5));
    };
    let begin = Instant::now();
    while writers.iter().any(|writer| writer.matched_readers() < 2) {
        run();
        assert!(begin.elapsed() < Duration::from_secs(20), "no match");
    }
    const SAMPLES: u32 = 1_000;
    let (mut written, mut taken) = ([0; 2], [Vec::new(), Vec::new()]);
    let begin = Instant::now();
    let mut is_moved = false;
    // Each reader gets the samples of both writers.
    while taken.iter().any(|taken| taken.len() < 2 * SAMPLES as usize) {
        for (writer, number) in writers.iter().zip(&mut written) {
            while *number < SAMPLES && writer.write(&Tick { number: *number }).is_ok() {
                *number += 1;
            }
        }
        run();
        for (reader, taken) in readers.iter().zip(&mut taken) {
            while let Some(sample) = reader.take().unwrap() {
                taken.extend(sample.value.map(|tick| tick.number));
            }
        }
        if !is_moved && taken.iter().all(|taken| taken.len() > 300) {
            ip("address del 10.9.1.2/24 dev moves");
            ip("address add 10.9.1.77/24 dev moves");
            is_moved = true;
        }
        let waited = begin.elapsed();
        let counts = taken.each_ref().map(Vec::len);
        assert!(
            waited < Duration::from_secs(60),
            "{written:?} written, {counts:?} taken"
        );
    }
    assert!(is_moved);
    for writer in &writers {
        let status = writer.publication_matched_status();
        assert_eq!(
            (status.total_count, status.current_count),
            (2, 2),
            "no match was lost"
        );
    }
}

#[test]
fn an_address_that_changes_is_followed_and_loses_no_reliable_sample() {
    in_namespace(
        "an_address_that_changes_is_followed_and_loses_no_reliable_sample",
        an_address_changes,
    );
}

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Logger that keeps all lines of the library.
struct Recorder;

impl Log for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        LINES.lock().unwrap().push(record.args().to_string());
    }

    fn flush(&self) {}
}

fn a_described_address_changes() {
    log::set_logger(&Recorder).unwrap();
    log::set_max_level(LevelFilter::Info);
    ip("link add fixed0 type veth peer name fixed1");
    ip("address add 10.9.2.1/24 dev fixed0");
    ip("link set fixed0 up");
    ip("link set fixed1 up");
    let at = |host| SocketAddrV4::new([10, 9, 2, host].into(), 7_000);
    let qos = Qos::best_effort();
    let participant = Participant::builder(0)
        .interfaces(Interfaces::Named(vec!["fixed0".to_owned()]))
        .described_as(StaticDescription::new("own", at(1)).writer::<Tick>("Ticks", &qos))
        .described_peer(StaticDescription::new("peer", at(2)).reader::<Tick>("Ticks", &qos))
        .build()
        .unwrap();
    participant.run_for(Duration::from_millis(100));
    ip("address del 10.9.2.1/24 dev fixed0");
    ip("address add 10.9.2.77/24 dev fixed0");
    let is_said = |words: &str| {
        LINES
            .lock()
            .unwrap()
            .iter()
            .any(|line| line.contains(words))
    };
    let is_reported = || is_said("10.9.2.77 now") && is_said("do not follow");
    let is_in_time = participant.run_until(Duration::from_secs(20), is_reported);
    assert!(is_in_time, "{:?}", LINES.lock().unwrap());
}

#[test]
fn a_described_participant_whose_address_changes_says_that_peers_do_not_follow() {
    in_namespace(
        "a_described_participant_whose_address_changes_says_that_peers_do_not_follow",
        a_described_address_changes,
    );
}
