//! Tests of full tables and memory: every refusal has a name and a counter.

use std::time::{Duration, Instant};

use isolane::{
    BuildError, Limits, Network, Qos, TopicType, Waiting, WriteError, types::MemberLength,
};
use isolane_datapath::{Lane, PoolConfig, memory::MemoryConfig};

use crate::support::{Message, PATIENCE, Site, World, level, take_numbers};

/// Type of a topic that both sides declare with different bounds, which matching does not compare.
#[derive(TopicType, Debug, Clone, PartialEq, Default)]
#[topic(name = "Blob")]
struct Blob {
    #[topic(bound = 4096)]
    bytes: Vec<u8>,
}

#[derive(TopicType, Debug, Clone, PartialEq, Default)]
#[topic(name = "Blob")]
struct SmallBlob {
    #[topic(bound = 100)]
    bytes: Vec<u8>,
}

fn blob(bytes: usize) -> Blob {
    Blob {
        bytes: vec![7; bytes],
    }
}

/// Expected error for a blob of 300 bytes.
fn too_large(limit: usize) -> WriteError {
    let longest = Some(MemberLength {
        name: "bytes",
        length: 300,
        bound: Some(4_096),
    });
    WriteError::TooLarge { limit, longest }
}

#[test]
fn a_sample_larger_than_max_bytes_is_refused_with_the_limit_by_every_kind_of_writer() {
    for qos in [Qos::best_effort(), Qos::reliable()] {
        let mut world = World::new(Site::memory());
        let alice = world.join();
        let qos = qos.max_bytes(256);
        let writer = alice.create_writer::<Blob>("Large", &qos).unwrap();
        assert_eq!(writer.write(&blob(300)), Err(too_large(256)));
        assert_eq!(writer.ledger().refused, 1);
        writer.write(&blob(200)).unwrap();
        let mut remote = alice.create_writer_handle::<Blob>("Large", &qos).unwrap();
        // More often than there are frames, so a refusal must not use one up.
        for _ in 0..40 {
            assert_eq!(remote.write(&blob(300)), Err(too_large(256)));
        }
        remote.write(&blob(200)).unwrap();
        world.until("both are written", || {
            alice
                .report()
                .writers
                .iter()
                .all(|writer| writer.ledger.written == 1)
        });
        world.assert_balanced();
    }
}

#[test]
fn a_sample_larger_than_the_readers_max_bytes_is_acknowledged_and_counted() {
    for qos in [Qos::best_effort(), Qos::reliable()] {
        for site in Site::both() {
            let (world, alice, bob) = World::pair(site);
            let writer = alice
                .create_writer::<Blob>("Large", &qos.clone().keep_last(4))
                .unwrap();
            let small = qos.clone().keep_last(4).max_bytes(128);
            let reader = bob.create_reader::<Blob>("Large", &small).unwrap();
            world.until_matched(&writer, &reader);
            for bytes in [50, 500, 60] {
                writer.write(&blob(bytes)).unwrap();
            }
            world.until("all are accounted for", || reader.ledger().accounted == 3);
            assert_eq!(
                (reader.ledger().available, reader.ledger().too_large),
                (2, 1)
            );
            world.until("all is acknowledged", || writer.all_acknowledged());
            world.assert_balanced();
        }
    }
}

/// Type with an unbounded member.
#[derive(TopicType, Debug, Clone, PartialEq, Default)]
struct Image {
    number: u32,
    pixels: Vec<u8>,
}

/// Older version of an appendable type, to which a newer writer appends a member.
#[derive(TopicType, Debug, Clone, PartialEq, Default)]
#[topic(name = "Grows", appendable)]
struct Older {
    number: u32,
}

#[derive(TopicType, Debug, Clone, PartialEq)]
#[topic(name = "Grows", appendable)]
struct Newer {
    number: u32,
    more: [u64; 100],
}

#[test]
fn samples_of_a_type_without_bounds_may_have_64_kib_unless_the_setting_says_otherwise() {
    for qos in [Qos::best_effort(), Qos::reliable()] {
        for site in Site::both() {
            let (world, alice, bob) = World::pair(site);
            let writer = alice.create_writer::<Image>("Image", &qos).unwrap();
            let reader = bob.create_reader::<Image>("Image", &qos).unwrap();
            world.until_matched(&writer, &reader);
            for pixels in [4_000, 65_500, 1] {
                let image = Image {
                    number: 1,
                    pixels: vec![9; pixels],
                };
                writer.write(&image).unwrap();
                world.until("it arrives", || reader.available() == 1);
                assert_eq!(reader.take().unwrap().unwrap().value, Some(image));
            }
            let camera = Image {
                number: 2,
                pixels: vec![9; 921_600],
            };
            let said = writer.write(&camera).unwrap_err().to_string();
            for part in ["65536 bytes", "\"pixels\"", "921600", "Qos::max_bytes"] {
                assert!(said.contains(part), "{said}");
            }
            let large = qos.clone().max_bytes(1_000_000);
            let writer = alice.create_writer::<Image>("Camera", &large).unwrap();
            let reader = bob.create_reader::<Image>("Camera", &large).unwrap();
            world.until_matched(&writer, &reader);
            writer.write(&camera).unwrap();
            world.until("it arrives", || reader.available() == 1);
            assert!(reader.take().unwrap().unwrap().value == Some(camera));
            world.assert_balanced();
        }
    }
}

#[test]
fn a_bounded_type_knows_its_size_and_another_threads_writer_keeps_to_its_frame() {
    let alice = Site::memory().participant();
    let qos = Qos::reliable();
    let writer = alice.create_writer::<SmallBlob>("Small", &qos).unwrap();
    let bytes = vec![1; 100];
    writer.write(&SmallBlob { bytes }).unwrap();
    let of_type = isolane::types::max_payload_bytes::<SmallBlob>().unwrap();
    assert_eq!(of_type, 4 + 4 + 100);
    let again = writer.qos();
    assert!(
        writer.set_qos(&qos).is_ok(),
        "the default is that of the type"
    );
    assert!(writer.set_qos(&again).is_ok());
    assert!(writer.set_qos(&again.max_bytes(64)).is_err());

    let mut remote = alice.create_writer_handle::<Image>("Remote", &qos).unwrap();
    let pixels = vec![1; 70_000];
    let refused = remote.write(&Image { number: 1, pixels });
    assert!(matches!(
        refused,
        Err(WriteError::TooLarge { limit: 65_000, .. })
    ));
}

#[test]
fn what_a_newer_writer_has_appended_fits_an_older_reader() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable();
    let writer = alice.create_writer::<Newer>("Grows", &qos).unwrap();
    let reader = bob.create_reader::<Older>("Grows", &qos).unwrap();
    world.until("they match", || writer.matched_readers() == 1);
    let number = 7;
    writer
        .write(&Newer {
            number,
            more: [1; 100],
        })
        .unwrap();
    world.until("it arrives", || reader.available() == 1);
    assert_eq!(
        reader.take().unwrap().unwrap().value,
        Some(Older { number })
    );
}

#[test]
fn a_sequence_beyond_the_local_bound_is_rejected_and_counted() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable().keep_last(4);
    let writer = alice.create_writer::<Blob>("Bound", &qos).unwrap();
    let takes_more = qos.clone().max_bytes(4_096);
    let reader = bob.create_reader::<SmallBlob>("Bound", &takes_more);
    let reader = reader.unwrap();
    world.until("they match", || writer.matched_readers() == 1);
    writer.write(&blob(101)).unwrap();
    writer.write(&blob(100)).unwrap();
    world.until("both arrive", || reader.available() == 2);
    assert!(reader.take().is_err());
    assert_eq!(
        reader.take().unwrap().unwrap().value.unwrap().bytes.len(),
        100
    );
    let ledger = reader.ledger();
    assert_eq!((ledger.delivered, ledger.rejected), (1, 1));

    let small = alice.create_writer::<SmallBlob>("Own bound", &qos).unwrap();
    let bytes = vec![0; 101];
    let refused = small.write(&SmallBlob { bytes }).unwrap_err();
    let member = MemberLength {
        name: "bytes",
        length: 101,
        bound: Some(100),
    };
    assert_eq!(refused, WriteError::BoundExceeded(member));
    let said = refused.to_string();
    assert!(
        said.contains("\"bytes\" has a length of 101") && said.contains("#[topic(bound = N)]"),
        "{said}"
    );
    assert_eq!(small.ledger().refused, 1);
    world.assert_balanced();
}

#[test]
fn a_topic_whose_samples_fit_no_frame_is_refused_at_creation() {
    let alice = Site::memory().participant();
    let whole = Qos::reliable().max_bytes(70_000).max_datagram_bytes(70_000);
    let Err(refused) = alice.create_writer::<Blob>("Huge", &whole) else {
        panic!("70,000 bytes fit no datagram");
    };
    assert!(refused.to_string().contains("65000 bytes"), "{refused}");

    let small_frames = MemoryConfig {
        pool: PoolConfig {
            frame_bytes: 2_048,
            ..PoolConfig::default()
        },
        ..MemoryConfig::new(1)
    };
    let site = Site::Memory(Network::with_config(small_frames));
    let alice = site.participant();
    let qos = Qos::best_effort().max_bytes(4_096);
    let refused = alice.create_writer_handle::<Blob>("Huge", &qos);
    assert!(matches!(
        refused,
        Err(BuildError::SampleTooLarge { asked: 4_096, .. })
    ));
    assert!(alice.report().writers.is_empty());
}

#[test]
fn as_many_readers_as_the_limits_allow_have_their_callbacks() {
    const READERS: u16 = 300;
    let limits = Limits {
        local_endpoints: READERS,
        matches: READERS + 8,
        ..Limits::default()
    };
    let network = Network::new(1);
    let builder = Site::Memory(network).builder();
    let alice = builder.limits(limits).build().unwrap();
    let qos = Qos::best_effort().max_bytes(64);
    let writer = alice.create_writer::<Message>("Crowd", &qos).unwrap();
    let calls = std::rc::Rc::new(std::cell::Cell::new(0));
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let reader = alice.create_view_reader::<Message>("Crowd", &qos).unwrap();
            let counted = std::rc::Rc::clone(&calls);
            reader.on_view(move |_| counted.set(counted.get() + 1));
            reader
        })
        .collect();
    assert!(alice.create_view_reader::<Message>("Crowd", &qos).is_err());
    writer.write(&Message::number(1)).unwrap();
    assert!(alice.run_until(PATIENCE, || calls.get() == READERS));
    drop(readers);
    assert!(alice.report().readers.is_empty());
}

#[test]
fn without_a_free_frame_a_write_is_refused_and_protocol_work_waits_without_spinning() {
    let mut pool = PoolConfig::default();
    pool.transmit_frames[Lane::Level(level(2)).index()] = 0;
    let config = MemoryConfig {
        pool,
        ..MemoryConfig::new(1)
    };
    let (world, alice, bob) = World::pair(Site::Memory(Network::with_config(config)));
    let best_effort = Qos::best_effort().level(level(2));
    let writer = alice
        .create_writer::<Message>("No frame", &best_effort)
        .unwrap();
    assert_eq!(writer.write(&Message::number(1)), Err(WriteError::NoFrame));
    assert_eq!(writer.ledger().refused, 1);

    // Samples to be sent later wait for a frame, and are tried about once a millisecond.
    let reliable = Qos::reliable().level(level(2));
    let kept = alice.create_writer::<Message>("Waits", &reliable).unwrap();
    kept.write(&Message::number(1)).unwrap();
    alice.run_for(Duration::from_millis(100));
    let report = alice.report();
    assert!(
        (2..=200).contains(&report.no_frame),
        "{} tries",
        report.no_frame
    );
    assert_eq!(kept.ledger().pending, 1);

    // A publisher has its own frames. The level has free frames now, and waiting samples are sent.
    let remote = alice
        .create_writer_handle::<Message>("Lends", &best_effort)
        .unwrap();
    drop(remote);
    world.until("the work is done", || kept.ledger().pending == 0);
    drop(bob);
    world.assert_balanced();
}

#[test]
fn a_spinning_participant_does_the_same_without_sleeping() {
    for site in Site::both() {
        let spinning = site.builder().waiting(Waiting::Spin).build().unwrap();
        let mut world = World::new(site);
        world.drive(&spinning);
        let other = world.join();
        let writer = other
            .create_writer::<Message>("Spin", &Qos::reliable())
            .unwrap();
        let reader = spinning
            .create_reader::<Message>("Spin", &Qos::reliable())
            .unwrap();
        world.until_matched(&writer, &reader);
        writer.write(&Message::number(3)).unwrap();
        world.until("it arrives", || reader.available() == 1);
        assert_eq!(take_numbers(&reader), [3]);

        // `run_for` ends in time even if nothing wakes it.
        let begin = Instant::now();
        spinning.run_for(Duration::from_millis(20));
        assert!(begin.elapsed() >= Duration::from_millis(20));
        world.assert_balanced();
    }
}

#[test]
fn a_participant_has_sample_memory_for_many_endpoints_that_keep_all() {
    let alice = Site::memory().participant();
    let qos = Qos::reliable().keep_all();
    let endpoints: Vec<_> = (0..32)
        .map(|number| {
            let topic = format!("Topic{number}");
            let writer = alice.create_writer::<Message>(&topic, &qos).unwrap();
            let reader = alice.create_reader::<Message>(&topic, &qos).unwrap();
            (writer, reader)
        })
        .collect();
    assert_eq!(endpoints.len(), 32);
}
