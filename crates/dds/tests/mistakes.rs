//! Tests that common mistakes end in a message that says what to do, in programs without a logger.
//!
//! Each test runs this program again as a child that makes one mistake, and looks at the child's standard error.

use std::{env, process::Command, time::Duration};

use isolane::{Limits, Participant, Qos, TopicType};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

const MISTAKE: &str = "ISOLANE_MISTAKE";

#[derive(TopicType, Debug, Default)]
struct Speed {
    metres_per_second: f32,
}

#[derive(TopicType, Debug, Default)]
struct Image {
    pixels: Vec<u8>,
}

#[derive(TopicType, Debug, Default)]
#[topic(name = "other::Speed")]
struct OtherSpeed {
    metres_per_second: f32,
}

/// Runs the mistake of this test in a child, and asserts that its standard error contains each text.
fn says(mistake: &str, texts: &[&str]) {
    let program = env::current_exe().expect("this program");
    let output = Command::new(program)
        .args(["--exact", "child", "--nocapture"])
        .env(MISTAKE, mistake)
        .output()
        .expect("it is started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{mistake}: {said}");
    for text in texts {
        assert!(said.contains(text), "{mistake}: no {text:?} in {said:?}");
    }
}

fn participant(domain: u32) -> Participant {
    let builder = Participant::builder(domain).loopback();
    builder.build().expect("a participant on loopback")
}

/// Runs both participants for some seconds.
fn run(one: &Participant, other: &Participant, seconds: u32) {
    for _ in 0..seconds * 50 {
        one.run_for(Duration::from_millis(10));
        other.run_for(Duration::from_millis(10));
    }
}

#[test]
fn child() {
    let Ok(mistake) = env::var(MISTAKE) else {
        return;
    };
    let reliable = Qos::reliable();
    match mistake.as_str() {
        "never driven" => {
            let participant = participant(211);
            let reader = participant
                .create_reader::<Speed>("Speed", &reliable)
                .unwrap();
            assert!(reader.take().unwrap().is_none());
            assert!(reader.take().unwrap().is_none());
        }
        "no longer driven" => {
            let participant = participant(212);
            let reader = participant
                .create_reader::<Speed>("Speed", &reliable)
                .unwrap();
            participant.run_for(Duration::from_millis(10));
            assert_eq!(reader.available(), 0);
            std::thread::sleep(Duration::from_millis(3_100));
            assert_eq!(reader.available(), 0);
        }
        "dropped participant" => {
            let (writer, reader) = {
                let participant = participant(213);
                let writer = participant.create_writer::<Speed>("Speed", &reliable);
                let reader = participant.create_reader::<Speed>("Speed", &reliable);
                (writer.unwrap(), reader.unwrap())
            };
            eprintln!("{}", writer.write(&Speed::default()).unwrap_err());
            assert!(reader.take().unwrap().is_none());
            assert!(reader.take().unwrap().is_none());
        }
        "oversized sample" => {
            let (one, other) = (participant(214), participant(214));
            let large = Qos::reliable().max_bytes(100_000);
            let writer = one.create_writer::<Image>("Image", &large).unwrap();
            let small = Qos::reliable().max_bytes(4_000);
            let _reader = other.create_reader::<Image>("Image", &small).unwrap();
            run(&one, &other, 1);
            let pixels = vec![0; 8_000];
            writer.write(&Image { pixels }).unwrap();
            let pixels = vec![0; 200_000];
            eprintln!("{}", writer.write(&Image { pixels }).unwrap_err());
            run(&one, &other, 2);
        }
        "wrong type" => {
            let (one, other) = (participant(215), participant(215));
            let _writer = one.create_writer::<OtherSpeed>("Speed", &reliable).unwrap();
            let _reader = other.create_reader::<Speed>("Speed", &reliable).unwrap();
            run(&one, &other, 12);
        }
        "wrong partition" => {
            let limits = Limits {
                local_endpoints: 128,
                ..Limits::default()
            };
            let one = Participant::builder(223).loopback().limits(limits);
            let (one, other) = (one.build().unwrap(), participant(223));
            let _others: Vec<_> = (0..100)
                .map(|number| format!("Other {number}"))
                .map(|topic| one.create_writer::<Speed>(&topic, &reliable).unwrap())
                .collect();
            let (left, right) = (
                reliable.clone().partition("left"),
                reliable.partition("right"),
            );
            let _writer = one.create_writer::<Speed>("Speed", &left).unwrap();
            let _reader = other.create_reader::<Speed>("Speed", &right).unwrap();
            run(&one, &other, 12);
        }
        "wrong QoS" => {
            let (one, other) = (participant(216), participant(216));
            let _writer = one
                .create_writer::<Speed>("Speed", &Qos::best_effort())
                .unwrap();
            let _reader = other.create_reader::<Speed>("Speed", &reliable).unwrap();
            run(&one, &other, 3);
        }
        "wrong domain" => {
            let (one, other) = (participant(217), participant(218));
            let _writer = one.create_writer::<Speed>("Speed", &reliable).unwrap();
            let _reader = other.create_reader::<Speed>("Speed", &reliable).unwrap();
            run(&one, &other, 12);
        }
        "missing rights" => {
            // Without CAP_SYS_NICE, and with a limit of 0.
            let none = Some(0);
            setrlimit(
                Resource::Rtprio,
                Rlimit {
                    current: none,
                    maximum: none,
                },
            )
            .unwrap();
            let mut without = capabilities(None).unwrap();
            without.effective.remove(CapabilitySet::SYS_NICE);
            set_capabilities(None, without).unwrap();
            let builder = Participant::builder(219).loopback().realtime(40);
            eprintln!("{}", builder.build().err().unwrap());
            let optional = Participant::builder(219)
                .loopback()
                .realtime(40)
                .require_placement(false);
            optional.build().unwrap();
        }
        "no description" => {
            env::set_current_dir("/").unwrap();
            eprintln!(
                "{}",
                isolane::Builder::from_environment(None).err().unwrap()
            );
        }
        other => panic!("unknown mistake {other:?}"),
    }
}

#[test]
fn a_reader_that_is_never_driven() {
    says(
        "never driven",
        &[
            "topic Speed",
            "has not run yet",
            "take_timeout",
            "Participant::spawn",
        ],
    );
}

#[test]
fn a_reader_that_is_no_longer_driven() {
    says(
        "no longer driven",
        &["topic Speed", "has not run for", "take_timeout"],
    );
}

#[test]
fn endpoints_of_a_dropped_participant() {
    let keep = "as long as its writers write";
    says(
        "dropped participant",
        &[keep, "was dropped, so its loop does not run"],
    );
}

#[test]
fn a_sample_that_is_too_large() {
    let (of_reader, of_writer) = (
        "samples too large for their reader",
        "maximum of 100000 bytes",
    );
    says(
        "oversized sample",
        &[of_reader, of_writer, "Qos::max_bytes"],
    );
}

#[test]
fn a_writer_of_another_type() {
    says(
        "wrong type",
        &[
            "has the type \"other::Speed\"",
            "Give both the same type name",
        ],
    );
}

#[test]
fn a_writer_in_another_partition_among_many_writers() {
    let differs = "topic Speed: the reader here differs from the writer";
    let remedy = "in PARTITION, so they do not match. Give both the same PARTITION";
    says("wrong partition", &[differs, remedy]);
}

#[test]
fn a_writer_that_offers_less() {
    says(
        "wrong QoS",
        &["topic Speed", "RELIABILITY", "they do not match"],
    );
}

#[test]
fn a_writer_in_another_domain() {
    let nobody = "0 other participants are known in domain 218";
    says("wrong domain", &[nobody, "isolane why Speed"]);
}

#[test]
fn a_priority_without_the_right() {
    let refused = "SCHED_FIFO with priority 40 is not permitted";
    says(
        "missing rights",
        &[refused, "isolane: SCHED_FIFO", "CAP_SYS_NICE"],
    );
}

#[test]
fn a_program_without_its_description() {
    says(
        "no description",
        &[
            "ISOLANE_CONFIG names no description",
            "isolane config --example",
        ],
    );
}
