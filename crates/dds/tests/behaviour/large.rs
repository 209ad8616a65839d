//! Tests of samples longer than a datagram.

use std::{
    cell::RefCell,
    iter,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use isolane::{
    BuildError, DataWriter, Participant, Qos, TopicType, WriteError,
    limits::{HANDLE_QUEUE, MAX_SAMPLE_BYTES},
    types::Loan,
};

use crate::support::{Message, PATIENCE, Site, World, level, take_numbers};

#[derive(TopicType, Debug, Clone, PartialEq, Default)]
#[topic(name = "Scan")]
struct Scan {
    number: u32,
    #[topic(bound = 4_000_000)]
    points: Vec<u8>,
}

fn scan(number: u32, points: usize) -> Scan {
    let points = (0..points).map(|place| ((place as u32 / 3) ^ number) as u8);
    Scan {
        number,
        points: points.collect(),
    }
}

/// Sizes around the bounds of an Ethernet frame and a UDP datagram, and far beyond.
const SIZES: [usize; 8] = [0, 100, 1_380, 1_400, 10_000, 65_000, 70_000, 1 << 20];

fn qos_of_both_kinds() -> [Qos; 2] {
    [Qos::best_effort(), Qos::reliable()].map(|qos| qos.max_bytes((1 << 20) + 64))
}

#[test]
fn samples_of_every_size_arrive_whole_at_caches_and_at_views() {
    for site in Site::both() {
        for qos in qos_of_both_kinds() {
            let (world, alice, bob) = World::pair(site.clone());
            let writer = alice.create_writer::<Scan>("Scans", &qos).unwrap();
            let reader = bob.create_reader::<Scan>("Scans", &qos).unwrap();
            world.until_matched(&writer, &reader);
            for (number, &size) in SIZES.iter().enumerate() {
                let sent = scan(number as u32, size);
                writer.write(&sent).unwrap();
                world.until("it arrives", || reader.available() == 1);
                let came = reader.take().unwrap().expect("one");
                assert!(came.value == Some(sent), "{size} bytes: another value");
            }
            world.until("all is acknowledged", || writer.all_acknowledged());
            assert!(writer.ledger().fragments > 800, "{:?}", writer.ledger());
            world.assert_balanced();
        }
    }
}

/// [`Scan`] whose points are written in place.
#[derive(TopicType, Debug)]
#[topic(name = "Scan")]
struct LoanedScan {
    number: u32,
    #[topic(bound = 4_000_000)]
    points: Loan,
}

fn loaned_scan(number: u32, length: usize, filled: &Arc<AtomicU32>) -> LoanedScan {
    let filled = Arc::clone(filled);
    let points = Loan::new(length, move |points| {
        filled.fetch_add(1, Ordering::Relaxed);
        points.copy_from_slice(&scan(number, points.len()).points);
    });
    LoanedScan { number, points }
}

#[test]
fn a_loan_is_filled_once_for_each_sample_and_arrives_as_an_ordinary_sequence() {
    let site = Site::memory();
    for qos in qos_of_both_kinds() {
        let (world, alice, bob) = World::pair(site.clone());
        let writer = alice.create_writer::<LoanedScan>("Scans", &qos).unwrap();
        let reader = bob.create_reader::<Scan>("Scans", &qos).unwrap();
        world.until_matched(&writer, &reader);
        for (number, &size) in (0..).zip(&SIZES) {
            let filled = Arc::new(AtomicU32::new(0));
            writer.write(&loaned_scan(number, size, &filled)).unwrap();
            assert_eq!(filled.load(Ordering::Relaxed), 1, "{size} bytes");
            world.until("it arrives", || reader.available() == 1);
            let came = reader.take().unwrap().expect("one");
            assert!(came.value == Some(scan(number, size)), "{size} bytes");
        }
        let (filled, limit) = (Arc::new(AtomicU32::new(0)), 1 << 20);
        let refused = writer.write(&loaned_scan(0, limit + 65, &filled));
        assert!(
            matches!(refused, Err(WriteError::TooLarge { .. })),
            "{refused:?}"
        );
        assert_eq!(filled.load(Ordering::Relaxed), 0, "nothing was filled");
        world.assert_balanced();
    }
}

#[test]
fn a_loan_whose_function_panics_writes_nothing_and_takes_no_memory() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable().keep_all().max_samples(4).max_bytes(60_000);
    let mut handle = alice
        .create_writer_handle::<LoanedScan>("Scans", &qos)
        .unwrap();
    let writer = alice.create_writer::<LoanedScan>("Scans", &qos).unwrap();
    let reader = bob.create_reader::<Scan>("Scans", &qos).unwrap();
    world.until("they match", || {
        let writers = alice.report().writers;
        writers.iter().all(|writer| writer.matched == 1) && reader.matched_writers() == 2
    });
    let panicking = LoanedScan {
        number: 1,
        points: Loan::new(50_000, |_| panic!("no picture")),
    };
    for _ in 0..2 * HANDLE_QUEUE {
        let written = catch_unwind(AssertUnwindSafe(|| writer.write(&panicking)));
        let handed = catch_unwind(AssertUnwindSafe(|| handle.write(&panicking)));
        assert!(written.is_err() && handed.is_err());
    }
    let filled = Arc::default();
    for number in 0..2 {
        writer.write(&loaned_scan(number, 50_000, &filled)).unwrap();
        handle.write(&loaned_scan(number, 50_000, &filled)).unwrap();
    }
    world.until("all arrive", || reader.available() == 4);
}

#[test]
fn a_view_of_a_large_sample_is_shown_once_and_the_reader_goes_on_when_its_callback_panics() {
    let (world, alice, bob) = World::pair(Site::memory());
    let [qos, _] = qos_of_both_kinds();
    let writer = alice.create_writer::<Scan>("Scans", &qos).unwrap();
    let reader = bob.create_view_reader::<Scan>("Scans", &qos).unwrap();
    world.until_matched(&writer, &reader);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let show = |reader: &isolane::DataReader<Scan>| {
        let of_callback = Rc::clone(&seen);
        reader.on_view(move |sample| {
            let view = sample.value.expect("a value");
            assert_ne!(view.number, 13, "it panics");
            let points: Vec<u8> = view.points.iter().collect();
            let is_right = points == scan(view.number, points.len()).points;
            of_callback
                .borrow_mut()
                .push((view.number, points.len(), is_right));
        });
    };
    show(&reader);
    for round in 0..6 {
        writer.write(&scan(round, 20_000)).unwrap();
        world.until("it is shown", || seen.borrow().len() as u32 == round + 1);
        writer.write(&scan(13, 20_000)).unwrap();
        let panics = || world.until("it panics", || false);
        let panicked = catch_unwind(AssertUnwindSafe(panics));
        assert!(panicked.is_err());
        show(&reader);
    }
    let expected = Vec::from_iter((0..6).map(|round| (round, 20_000, true)));
    assert_eq!(*seen.borrow(), expected);
}

#[test]
fn what_is_written_behind_a_large_best_effort_sample_stays_behind_it() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::best_effort().keep_all().max_bytes(300_000);
    let writer = alice.create_writer::<Scan>("Scans", &qos).unwrap();
    let reader = bob.create_reader::<Scan>("Scans", &qos).unwrap();
    world.until_matched(&writer, &reader);
    // A short sample leaves at once if none is queued before it.
    writer.write(&scan(0, 10)).unwrap();
    assert_eq!(writer.ledger().pending, 0);
    for (number, size) in [(1, 200_000), (2, 10), (3, 5_000), (4, 10)] {
        writer.write(&scan(number, size)).unwrap();
    }
    assert_eq!(writer.ledger().pending, 4);
    world.until("all arrive", || reader.available() == 5);
    let numbers = (0..5).map(|_| reader.take().unwrap().unwrap().value.unwrap().number);
    assert_eq!(numbers.collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_sample_of_the_same_level_is_not_kept_waiting_by_a_large_one() {
    let (world, alice, bob) = World::pair(Site::memory());
    for highest in [level(3), level(7)] {
        let bulk = Qos::reliable().level(highest).max_bytes((1 << 20) + 64);
        let brake = Qos::reliable().level(highest);
        let large = alice.create_writer::<Scan>("Bulk", &bulk).unwrap();
        let large_reader = bob.create_reader::<Scan>("Bulk", &bulk).unwrap();
        let small = alice.create_writer::<Message>("Brake", &brake).unwrap();
        let small_reader = bob.create_reader::<Message>("Brake", &brake).unwrap();
        world.until_matched(&large, &large_reader);
        world.until_matched(&small, &small_reader);
        large.write(&scan(1, 1 << 20)).unwrap();
        small.write(&Message::number(1)).unwrap();
        world.until("the small one arrives", || small_reader.available() == 1);
        let sent = large.ledger().fragments;
        assert!(sent < 100, "{sent} of 800 fragments went before it");
        world.until("the large one arrives", || large_reader.available() == 1);
        assert_eq!(take_numbers(&small_reader), [1]);
    }
}

#[test]
fn another_thread_writes_what_fits_a_frame_of_the_datapath_and_it_leaves_in_fragments() {
    for site in Site::both() {
        for qos in [Qos::best_effort(), Qos::reliable()] {
            let (world, alice, bob) = World::pair(site.clone());
            let qos = qos.keep_all().max_bytes(60_000);
            let mut writer = alice.create_writer_handle::<Scan>("Scans", &qos).unwrap();
            let reader = bob.create_reader::<Scan>("Scans", &qos).unwrap();
            world.until("they match", || {
                alice
                    .report()
                    .writers
                    .iter()
                    .any(|writer| writer.matched == 1)
                    && reader.matched_writers() == 1
            });
            for (number, size) in (0..).zip([10, 50_000, 10, 3_000]) {
                writer.write(&scan(number, size)).unwrap();
            }
            world.until("all arrive", || reader.available() == 4);
            for number in 0..4 {
                assert_eq!(
                    reader.take().unwrap().unwrap().value.unwrap().number,
                    number
                );
            }
            drop(writer);
            world.run_for(Duration::from_millis(10));
            let refused = alice.create_writer_handle::<Scan>("Huge", &qos.max_bytes(1 << 20));
            assert!(matches!(refused, Err(BuildError::SampleTooLarge { .. })));
        }
    }
}

#[test]
fn datagrams_may_be_larger_where_that_is_requested() {
    for site in Site::both() {
        for qos in [Qos::best_effort(), Qos::reliable()] {
            let (world, alice, bob) = World::pair(site.clone());
            let whole = qos.clone().max_bytes(60_000).max_datagram_bytes(60_000);
            let writer = alice.create_writer::<Scan>("Scans", &whole).unwrap();
            let reader = bob.create_reader::<Scan>("Scans", &whole).unwrap();
            world.until_matched(&writer, &reader);
            writer.write(&scan(1, 50_000)).unwrap();
            world.until("it arrives", || reader.available() == 1);
            assert_eq!(writer.ledger().fragments, 0);
        }
    }
}

#[test]
fn sizes_that_cannot_be_had_are_refused_with_the_bound() {
    let alice = Site::memory().participant();
    let refusal = |qos: Qos| match alice.create_writer::<Scan>("Huge", &qos) {
        Err(refused) => refused.to_string(),
        Ok(_) => panic!("it was created"),
    };
    let huge = refusal(Qos::reliable().max_bytes(MAX_SAMPLE_BYTES + 1));
    assert!(huge.contains("16777216 bytes"), "{huge}");
    let wide = Qos::reliable().max_bytes(80_000).max_datagram_bytes(70_000);
    let wide = refusal(wide);
    assert!(wide.contains("65000 bytes"), "{wide}");

    let qos = Qos::best_effort().max_bytes(10_000);
    let writer = alice.create_writer::<Scan>("Scans", &qos).unwrap();
    let refused = writer.write(&scan(1, 10_000));
    assert!(matches!(
        refused,
        Err(WriteError::TooLarge { limit: 10_000, .. })
    ));
    assert_eq!(writer.ledger().refused, 1);
    assert!(alice.run_until(PATIENCE, || true));
}

/// Type without bounds. Its long samples share memory, enough for four of maximum size.
#[derive(TopicType, Debug, Clone, PartialEq, Default)]
struct Cloud {
    number: u32,
    points: Vec<u8>,
}

fn cloud(number: u32) -> Cloud {
    let points = vec![number as u8; 60_000];
    Cloud { number, points }
}

#[test]
fn a_sample_that_is_refused_for_its_size_leaves_the_history_and_the_next_sample_as_they_are() {
    let alice = Site::memory().participant();
    let qos = Qos::reliable().keep_last(16).transient_local();
    let writer = alice.create_writer::<Cloud>("Clouds", &qos).unwrap();
    for number in 0..4 {
        writer.write(&cloud(number)).unwrap();
    }
    let too_long = Cloud {
        number: 4,
        points: vec![0xaa; 100_000],
    };
    let refused = writer.write(&too_long);
    assert!(
        matches!(refused, Err(WriteError::TooLarge { .. })),
        "{refused:?}"
    );
    let short = Cloud {
        number: 5,
        points: vec![5; 10],
    };
    writer.write(&short).unwrap();
    let reader = alice.create_reader::<Cloud>("Clouds", &qos).unwrap();
    let mut taken = Vec::new();
    assert!(alice.run_until(PATIENCE, || {
        while let Some(sample) = reader.take().unwrap() {
            taken.extend(sample.value);
        }
        taken.len() == 5
    }));
    assert_eq!(taken[..4], [0, 1, 2, 3].map(cloud));
    assert_eq!(taken[4], short);
}

#[test]
fn long_samples_of_a_type_without_bounds_wait_for_memory_where_their_writer_may_wait() {
    let alice = Site::memory().participant();
    let qos = Qos::reliable().keep_all();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let reader = alice.create_reader::<Cloud>("Clouds", &qos).unwrap();
    let of_callback = Rc::clone(&seen);
    let on_sample = move |sample: isolane::Sample<&Cloud>| {
        // The end of an instance by a deleted writer has no value.
        let Some(cloud) = sample.value else { return };
        assert_eq!(cloud.points.len(), 60_000);
        of_callback.borrow_mut().push(cloud.number);
    };
    reader.on_sample(Cloud::default(), on_sample).unwrap();

    let may_wait = qos.clone().max_blocking_time(PATIENCE);
    let writer = alice.create_writer::<Cloud>("Clouds", &may_wait).unwrap();
    assert!(alice.run_until(PATIENCE, || writer.matched_readers() == 1));
    for number in 0..12 {
        writer.write(&cloud(number)).unwrap();
    }
    assert_eq!(writer.ledger().refused, 0, "a retry is no refusal");
    assert!(alice.run_until(PATIENCE, || seen.borrow().len() == 12));
    drop(writer);

    // A writer of another thread does not wait, but its samples do.
    let mut remote = alice.create_writer_handle::<Cloud>("Clouds", &qos).unwrap();
    assert!(alice.run_until(PATIENCE, || reader.matched_writers() == 1));
    for number in 12..24 {
        remote.write(&cloud(number)).unwrap();
    }
    assert!(alice.run_until(PATIENCE, || seen.borrow().len() == 24));
    assert_eq!(*seen.borrow(), Vec::from_iter(0..24));
}

fn cloud_of(points: usize) -> Cloud {
    Cloud {
        number: 0,
        points: vec![1; points],
    }
}

/// Creates a KEEP_ALL writer of clouds with this `max_blocking_time`, and a matched reader with room for one sample.
/// The reader takes one sample after the other time, and no further one. So then the writer's first sample is
/// acknowledged.
fn writer_whose_reader_takes_one(
    alice: &Participant,
    samples: u16,
    waits: Duration,
    takes_after: Duration,
) -> DataWriter<Cloud> {
    let qos = Qos::reliable().keep_all();
    let of_reader = qos.clone().max_samples(1);
    let reader = alice.create_reader::<Cloud>("Clouds", &of_reader).unwrap();
    let of_writer = qos.max_samples(samples).max_blocking_time(waits);
    let writer = alice.create_writer::<Cloud>("Clouds", &of_writer).unwrap();
    assert!(alice.run_until(PATIENCE, || writer.matched_readers() == 1));
    writer.write(&cloud_of(10)).unwrap();
    assert!(writer.wait_for_acknowledgments(PATIENCE));
    let (begin, mut has_taken) = (Instant::now(), false);
    let take_one = move |_| {
        if !has_taken && begin.elapsed() >= takes_after {
            has_taken = reader.take().unwrap().is_some();
        }
    };
    let period = Duration::from_millis(5);
    alice
        .create_timer("take", level(0), period, Duration::ZERO, take_one)
        .unwrap();
    writer
}

#[test]
fn a_sample_waits_for_memory_for_itself_and_not_for_the_longest() {
    let alice = Site::memory().participant();
    let waits = Duration::from_secs(1);
    let writer = writer_whose_reader_takes_one(&alice, 64, waits, waits / 10);
    let others = iter::repeat_n(60_000, 32).chain([62_000, 62_000]);
    for points in iter::once(20_000).chain(others) {
        writer.write(&cloud_of(points)).unwrap();
    }
    // There is memory for this sample as soon as the first one is acknowledged, but not for a longer one.
    let written = writer.write(&cloud_of(19_000));
    assert!(written.is_ok(), "{written:?}");
    assert!(writer.write(&cloud_of(19_000)).is_err());
}

#[test]
fn a_sample_waits_for_a_slot_and_for_memory_no_longer_than_max_blocking_time() {
    let alice = Site::memory().participant();
    let waits = Duration::from_secs(2);
    let writer = writer_whose_reader_takes_one(&alice, 5, waits, waits * 3 / 4);
    for points in [10, 60_000, 60_000, 60_000, 60_000] {
        writer.write(&cloud_of(points)).unwrap();
    }
    let begin = Instant::now();
    let refused = writer.write(&cloud_of(60_000));
    assert!(refused.is_err(), "there is a slot and no memory");
    let waited = begin.elapsed();
    assert!(waited >= waits && waited < waits * 3 / 2, "{waited:?}");
    assert_eq!(writer.ledger().refused, 1);
}

#[test]
fn a_filtered_reader_of_a_type_without_bounds_has_memory_for_some_long_samples_and_not_for_all() {
    let alice = Site::memory().builder().sample_memory(2 << 20).build();
    let alice = alice.unwrap();
    let separation = Duration::from_millis(50);
    let qos = Qos::reliable().keep_all().time_based_filter(separation);
    let reader = alice.create_reader::<Cloud>("Clouds", &qos).unwrap();
    let writer = alice
        .create_writer::<Cloud>("Clouds", &Qos::reliable().keep_last(1))
        .unwrap();
    assert!(alice.run_until(PATIENCE, || writer.matched_readers() == 1));
    for number in 0..3 {
        writer.write(&cloud(number)).unwrap();
        assert!(writer.wait_for_acknowledgments(PATIENCE));
    }
    let mut taken = Vec::new();
    assert!(alice.run_until(PATIENCE, || {
        while let Some(sample) = reader.take().unwrap() {
            taken.extend(sample.value);
        }
        taken.last() == Some(&cloud(2))
    }));
    assert_eq!(taken.first(), Some(&cloud(0)));
}

#[test]
fn endpoints_share_the_sample_memory_and_give_it_back() {
    let site = Site::memory();
    let alice = site.builder().sample_memory(1 << 20).build().unwrap();
    let qos = Qos::reliable()
        .keep_all()
        .max_samples(8)
        .max_bytes(64 << 10);
    let writer = alice.create_writer::<Scan>("Scans", &qos).unwrap();
    let Err(refused) = alice.create_writer::<Scan>("Scans", &qos) else {
        panic!("two have no room");
    };
    let said = refused.to_string();
    for part in ["take 655360 bytes", "393216", "1048576", "sample_memory"] {
        assert!(said.contains(part), "{said}");
    }
    drop(writer);
    assert!(alice.create_writer::<Scan>("Scans", &qos).is_ok());
}

#[test]
fn an_endpoint_without_limits_has_memory_for_large_samples_or_says_how_to_get_it() {
    let alice = Site::memory().participant();
    let qos = Qos::reliable().keep_all().max_bytes(1 << 20);
    let writer = alice.create_writer::<Cloud>("Clouds", &qos).unwrap();
    let reader = alice.create_reader::<Cloud>("Clouds", &qos).unwrap();
    drop((writer, reader));
    let qos = Qos::reliable().keep_all();
    let pairs = (0..10).map(|_| {
        let writer = alice.create_writer::<Cloud>("Clouds", &qos).unwrap();
        (
            writer,
            alice.create_reader::<Cloud>("Clouds", &qos).unwrap(),
        )
    });
    assert_eq!(pairs.collect::<Vec<_>>().len(), 10);
    let qos = qos.max_bytes(MAX_SAMPLE_BYTES);
    let refusals = [
        alice.create_writer::<Cloud>("Clouds", &qos).err(),
        alice.create_reader::<Cloud>("Clouds", &qos).err(),
    ];
    // Four samples, and a reader has four places for fragments.
    for (refused, bytes) in refusals.into_iter().zip([64 << 20, 128 << 20]) {
        let said = refused.expect("more than 16 MiB").to_string();
        let mut words = said.split(' ');
        let asked = words.find_map(|word| word.parse::<usize>().ok()).unwrap();
        assert!((bytes..bytes + (1 << 20)).contains(&asked), "{said}");
        assert!(said.contains("raise sample_memory"), "{said}");
    }
}
