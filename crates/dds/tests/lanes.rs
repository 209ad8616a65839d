//! Tests of participants with AF_XDP lanes, on hosts in network namespaces of this program. They need root, and print a
//! message without it.

#[path = "../../datapath-xdp/tests/hosts/mod.rs"]
#[allow(unreachable_pub)]
mod hosts;
#[path = "../../datapath-xdp/tests/xdp/network.rs"]
#[allow(dead_code)]
mod network;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use isolane::{
    Builder, DATAPATHS, DataReader, DataWriter, Interfaces, Level, Participant, Qos, Report,
    System, TopicType, UdpOptions, Waiting, XdpOptions,
};
use isolane_datapath::{Event, Lane};
use isolane_datapath_xdp::xdp::counters;
use network::{Host, INTERFACE, Segment};

const DEADLINE: Duration = Duration::from_secs(30);
const LEVEL: Level = Level::ALL[7];
const LANE: Lane = Lane::ALL[8];

#[derive(TopicType, Debug, Clone, PartialEq)]
struct Block {
    #[topic(key)]
    number: u32,
    #[topic(bound = 210_000)]
    bytes: Vec<u8>,
}

fn block(number: u32, bytes: usize) -> Block {
    let bytes = (0..bytes).map(|place| (place as u32 ^ number) as u8);
    Block {
        number,
        bytes: bytes.collect(),
    }
}

fn on_lanes() -> Builder {
    Participant::builder(0)
        .interfaces(Interfaces::Named(vec![INTERFACE.to_owned()]))
        .datapath(XdpOptions::default())
}

/// Runs two hosts, each on a thread inside its namespace, until `end` is set.
fn on_two_hosts(left: impl FnOnce(&AtomicBool) + Send, right: impl FnOnce(&AtomicBool) + Send) {
    let mut segment = Segment::new();
    let [one, other]: [Host; 2] = [(); 2].map(|()| segment.add_host());
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        let end = &end;
        let left = scope.spawn(move || one.enter(|| left(end)));
        let right = scope.spawn(move || other.enter(|| right(end)));
        for side in [left, right] {
            if let Err(panic) = side.join() {
                end.store(true, Ordering::SeqCst);
                std::panic::resume_unwind(panic);
            }
        }
    });
}

/// Endpoints of one side of an exchange: a writer of one topic, a reader of the other, and an idle writer of a critical
/// topic, for which the device is opened.
fn ends(
    participant: &Participant,
    qos: &Qos,
    to: &str,
    from: &str,
) -> (DataWriter<Block>, DataReader<Block>, DataWriter<Block>) {
    let writer = participant.create_writer(to, qos);
    let reader = participant.create_reader(from, qos);
    let idle = Qos::best_effort().level(LEVEL).max_bytes(64);
    let idle = participant.create_writer("Brake", &idle);
    (
        writer.expect("a writer"),
        reader.expect("a reader"),
        idle.expect("a writer"),
    )
}

/// Sends back every sample until the other side has received all.
fn echo(builder: Builder, qos: &Qos, end: &AtomicBool) {
    let participant = builder.build().expect("lanes can be had");
    let (writer, reader, _idle) = ends(&participant, qos, "Pong", "Ping");
    participant.run_until(2 * DEADLINE, || {
        while let Some(sample) = reader.take().expect("a sample that was written") {
            if let Some(value) = &sample.value {
                writer.write(value).expect("room for an answer");
            }
        }
        end.load(Ordering::SeqCst)
    });
    balanced(&participant.report());
}

/// Writes one block after the other, each when the previous one has come back.
fn rounds(builder: Builder, qos: &Qos, sizes: &[usize]) -> Report {
    let participant = builder.build().expect("lanes can be had");
    let (writer, reader, _idle) = ends(&participant, qos, "Ping", "Pong");
    let is_refused =
        |warning: &String| warning.contains("not used") || warning.contains("no lanes");
    let warnings = participant.warnings();
    assert!(!warnings.iter().any(is_refused), "{warnings:?}");
    let matched = || writer.matched_readers() == 1 && participant.participants().len() == 1;
    assert!(participant.run_until(DEADLINE, matched), "no peer is there");
    // The answering writer must have matched its reader, too.
    participant.run_for(Duration::from_millis(300));
    for (number, bytes) in (0..).zip(sizes) {
        let sent = block(number, *bytes);
        writer.write(&sent).expect("room for a sample");
        let came = participant.run_until(DEADLINE, || reader.available() > 0);
        assert!(came, "{bytes} bytes: {}", participant.report().datagrams);
        let answer = reader.take().expect("a sample").expect("it is there");
        assert_eq!(answer.value, Some(sent));
    }
    let report = participant.report();
    balanced(&report);
    report
}

fn balanced(report: &Report) {
    assert_eq!(report.balance(), Ok(()), "{}", report.datagrams);
}

const SIZES: [usize; 8] = [0, 64, 1_300, 1_472, 1_900, 2_100, 9_000, 60_000];

fn exchange(qos: &Qos, builder: fn() -> Builder, sizes: &[usize]) -> Report {
    let report = std::sync::Mutex::new(None);
    on_two_hosts(
        |end| {
            *report.lock().expect("one thread") = Some(rounds(builder(), qos, sizes));
            end.store(true, Ordering::SeqCst);
        },
        |end| echo(builder(), qos, end),
    );
    report.into_inner().expect("one thread").expect("it ended")
}

#[test]
fn best_effort_samples_of_any_size_go_round_by_lane_or_by_the_kernel() {
    let qos = Qos::best_effort()
        .level(LEVEL)
        .max_bytes(65_000)
        .max_datagram_bytes(65_000);
    let report = exchange(&qos, on_lanes, &SIZES);
    let counts = report.datagrams.lane(LANE).events;
    assert!(
        counts.get(counters::SENT_BY_LANE) >= 3,
        "{}",
        report.datagrams
    );
    assert!(
        counts.get(counters::KERNEL_TOO_LONG) >= 4,
        "{}",
        report.datagrams
    );
    assert!(counts.get(counters::RECEIVED_BY_LANE) >= 3);
    assert_eq!(
        counts.get(counters::DESTINATION_COPY),
        0,
        "no payload is copied"
    );
}

#[test]
fn reliable_samples_of_any_size_go_round_by_lane_or_by_the_kernel() {
    let qos = Qos::reliable()
        .keep_all()
        .level(LEVEL)
        .max_bytes(65_000)
        .max_datagram_bytes(65_000);
    let report = exchange(&qos, on_lanes, &SIZES);
    let counts = report.datagrams.lane(LANE).events;
    assert!(
        counts.get(counters::SENT_BY_LANE) >= 3,
        "{}",
        report.datagrams
    );
    assert!(
        counts.get(counters::KERNEL_TOO_LONG) >= 4,
        "{}",
        report.datagrams
    );
    assert_eq!(report.counters.buffer_too_small, 0);
}

#[test]
fn samples_longer_than_a_frame_go_by_lane_in_fragments() {
    for qos in [Qos::best_effort(), Qos::reliable().keep_all()] {
        let sizes = [0, 1_300, 1_472, 9_000, 60_000, 200_000];
        let report = exchange(&qos.level(LEVEL).max_bytes(211_000), on_lanes, &sizes);
        let counts = report.datagrams.lane(LANE).events;
        assert!(
            counts.get(counters::SENT_BY_LANE) >= 200,
            "{}",
            report.datagrams
        );
        assert_eq!(
            counts.get(counters::KERNEL_TOO_LONG),
            0,
            "{}",
            report.datagrams
        );
        assert!(counts.get(counters::RECEIVED_BY_LANE) >= 200);
    }
}

#[test]
fn a_loop_that_spins_sees_what_comes_by_lane_and_what_comes_by_socket() {
    let qos = Qos::best_effort()
        .level(LEVEL)
        .max_bytes(65_000)
        .max_datagram_bytes(65_000);
    let sizes: Vec<usize> = (0..200)
        .map(|round| if round % 50 == 0 { 20_000 } else { 64 })
        .collect();
    let spinning = || on_lanes().waiting(Waiting::Spin);
    let report = exchange(&qos, spinning, &sizes);
    let counts = report.datagrams.lane(LANE).events;
    assert!(
        counts.get(counters::SENT_BY_LANE) >= 190,
        "{}",
        report.datagrams
    );
    assert!(counts.get(counters::RECEIVED_BY_LANE) >= 190);
}

#[test]
fn another_threads_samples_leave_by_lane_from_the_frames_they_were_written_to() {
    const SAMPLES: u32 = 200;
    let qos = Qos::best_effort().level(LEVEL);
    on_two_hosts(
        |end| {
            let participant = on_lanes().build().expect("lanes can be had");
            let mut writer = participant
                // A device frame has room for it, but not for 64 KiB, the default without bounds.
                .create_writer_handle::<Block>("Ping", &qos.clone().max_bytes(1_400))
                .expect("a writer");
            let has_reader = || {
                let report = participant.report();
                report.writers.iter().any(|writer| writer.matched == 1)
            };
            assert!(
                participant.run_until(DEADLINE, has_reader),
                "no reader is there"
            );
            participant.run_for(Duration::from_millis(300));
            let publisher = thread::spawn(move || {
                for number in 0..SAMPLES {
                    while writer.write(&block(number, 500)).is_err() {
                        thread::sleep(Duration::from_micros(200));
                    }
                    thread::sleep(Duration::from_micros(100));
                }
                writer
            });
            participant.run_until(DEADLINE, || end.load(Ordering::SeqCst));
            drop(publisher.join());
            let report = participant.report();
            balanced(&report);
            let counts = report.datagrams.lane(LANE).events;
            assert!(
                counts.get(counters::SENT_BY_LANE) >= u64::from(SAMPLES),
                "{}",
                report.datagrams
            );
            assert_eq!(counts.get(counters::DESTINATION_COPY), 0);
        },
        |end| {
            let participant = on_lanes().build().expect("lanes can be had");
            let reader = participant
                .create_reader::<Block>("Ping", &qos)
                .expect("a reader");
            let mut seen = 0;
            let all = participant.run_until(DEADLINE, || {
                while let Some(sample) = reader.take().expect("a sample that was written") {
                    seen += u32::from(sample.value.is_some());
                }
                seen == SAMPLES
            });
            end.store(true, Ordering::SeqCst);
            assert!(
                all,
                "{seen} of {SAMPLES}: {}",
                participant.report().datagrams
            );
        },
    );
}

#[test]
fn auto_takes_lanes_where_they_work_and_sockets_elsewhere_with_a_warning() {
    let mut segment = Segment::new();
    let host = segment.add_host();
    host.enter(|| {
        let auto = |interfaces| {
            Participant::builder(0)
                .interfaces(interfaces)
                .datapaths(vec![
                    Box::new(XdpOptions::default()),
                    Box::new(UdpOptions::default()),
                ])
                .build()
                .expect("sockets work")
        };
        let with_lanes = auto(Interfaces::Named(vec![INTERFACE.to_owned()]));
        assert_eq!(with_lanes.warnings(), Vec::<String>::new());
        let without = auto(Interfaces::Loopback);
        let warnings = without.warnings();
        assert!(
            warnings
                .iter()
                .any(|warning| warning.contains("xdp is not used")),
            "{warnings:?}"
        );
    });
}

/// A description in which `auto` takes lanes for the critical topics, and sockets for the large ones.
fn described() -> (Builder, Qos) {
    let text = format!(
        r#"
        [host.any]
        interface = "{INTERFACE}"
        sample_memory = 67108864
        [topic.Ping]
        type = "Block"
        keyed = true
        level = 2
        max_bytes = 210000
        reliability = "reliable"
        history = "all"
        from = ["any"]
        to = ["any"]
        [topic.Brake]
        type = "Brake"
        level = 7
        max_bytes = 64
        reliability = "best-effort"
        from = ["any"]
        to = ["any"]
        "#
    );
    let system = System::from_toml(&text, "isolane.toml", DATAPATHS).expect("a valid description");
    let builder = Builder::from_description(&system, Some("any"), None).expect("described");
    let qos = Qos::from_description(&system, "Ping").expect("described");
    (builder, qos)
}

#[test]
fn auto_takes_sockets_and_segmented_bursts_for_a_level_of_large_samples() {
    let (_, qos) = described();
    let report = exchange(&qos, || described().0, &[1_300, 9_000, 200_000]);
    let lane = report.datagrams.lane(Lane::Level(Level::ALL[2]));
    let counts = lane.events;
    assert_eq!(counts.get(counters::SENT_BY_LANE), 0, "{lane:?}");
    assert_eq!(counts.get(counters::RECEIVED_BY_LANE), 0, "{lane:?}");
    let segmented = counts.get(Event::SEGMENTED);
    assert!(segmented > 0, "{lane:?}");
    assert!(
        lane.transmit.sent > 100 && segmented * 8 < lane.transmit.sent,
        "{lane:?}"
    );
}
