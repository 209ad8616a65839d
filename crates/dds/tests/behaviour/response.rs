//! Tests of response deadlines, which count samples that take longer from their arrival to the end of their callback.

use std::{thread, time::Duration};

use isolane::{BuildError, Qos, ResponseDeadline};

use crate::support::{Message, Site, World};

const SHORT: Duration = Duration::from_micros(200);
const SAMPLES: u32 = 5;

/// Callback that takes longer than [`SHORT`].
fn dawdle() {
    thread::sleep(2 * SHORT);
}

/// Sends samples to a reader with a callback, one at a time; returns the counts of its response deadline.
fn observed(site: Site, deadline: Duration, is_view: bool) -> ResponseDeadline {
    let (world, alice, bob) = World::pair(site);
    let writer = alice
        .create_writer::<Message>("Brake", &Qos::best_effort())
        .unwrap();
    let qos = Qos::best_effort().response_deadline(deadline);
    let reader = if is_view {
        let reader = bob.create_view_reader::<Message>("Brake", &qos).unwrap();
        reader.on_view(|_| dawdle());
        reader
    } else {
        let reader = bob.create_reader::<Message>("Brake", &qos).unwrap();
        reader.on_sample(Message::default(), |_| dawdle()).unwrap();
        reader
    };
    world.until_matched(&writer, &reader);
    for number in 0..SAMPLES {
        writer.write(&Message::number(number)).unwrap();
        world.until("it was handled", || {
            reader.ledger().delivered == u64::from(number) + 1
        });
    }
    world.assert_balanced();
    reader.response_deadline().expect("it was created with one")
}

#[test]
fn each_sample_whose_callback_ends_too_late_is_counted_with_the_job_that_ran() {
    for site in Site::both() {
        for (is_view, job) in [(false, "callback Brake"), (true, "receive level 0")] {
            let seen = observed(site.clone(), SHORT, is_view);
            assert_eq!(seen.missed, u64::from(SAMPLES), "{seen:?}");
            assert_eq!(seen.missed_during.as_deref(), Some(job));
            assert!(seen.lateness_max >= SHORT, "{seen:?}");
        }
        let in_time = observed(site, Duration::from_secs(3_600), false);
        assert_eq!((in_time.missed, in_time.missed_during), (0, None));
        assert_eq!(in_time.lateness_max, Duration::ZERO);
    }
}

#[test]
fn a_sample_that_is_taken_too_late_is_counted() {
    let (world, alice, bob) = World::pair(Site::memory());
    let writer = alice
        .create_writer::<Message>("Brake", &Qos::best_effort())
        .unwrap();
    let qos = Qos::best_effort().response_deadline(SHORT);
    let reader = bob.create_reader::<Message>("Brake", &qos).unwrap();
    world.until_matched(&writer, &reader);
    writer.write(&Message::number(1)).unwrap();
    world.until("it came", || reader.available() == 1);
    dawdle();
    assert!(reader.take().unwrap().is_some());
    let report = bob.report();
    let seen = report.readers[0].response.as_ref().expect("it has one");
    assert_eq!((seen.deadline, seen.missed), (SHORT, 1));
}

#[test]
fn a_deadline_of_zero_is_refused_by_its_name() {
    let (_world, alice, _) = World::pair(Site::memory());
    for (qos, named) in [
        (Qos::reliable().deadline(Duration::ZERO), "deadline"),
        (
            Qos::reliable().response_deadline(Duration::ZERO),
            "response_deadline",
        ),
    ] {
        let refused = alice.create_reader::<Message>("Brake", &qos).map(drop);
        let setting = match refused {
            Err(BuildError::ZeroDeadline { setting }) => setting,
            other => panic!("{named}: {other:?}"),
        };
        assert_eq!(setting, named);
        assert!(alice.create_writer::<Message>("Brake", &qos).is_err());
    }
}
