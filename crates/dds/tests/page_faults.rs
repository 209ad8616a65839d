//! Test that the first samples cause no page faults, if the reserved memory was touched before the start.

#[allow(
    dead_code,
    reason = "shared with the tests of behaviour; not all of it is used here"
)]
#[path = "behaviour/support.rs"]
mod support;

use std::{cell::Cell, rc::Rc};

use isolane::{DataWriter, Qos, TopicType};
use support::{PATIENCE, Site, level};

const SAMPLES: u64 = 1_024;

/// Number of samples in flight, each of which uses a slot.
const ROW: u64 = 64;

/// Maximum number of other page faults of the first samples: program pages that were not executed before, the stack,
/// the allocator, and tables of a few bytes for each sample. The memory of the samples has a hundred times as many
/// pages.
const OTHER_FAULTS: u64 = 16;

/// Size at which each slot has its own pages.
const BYTES: usize = 32_000;

#[derive(TopicType, Debug, Clone, PartialEq, Default)]
struct Picture {
    number: u32,
    #[topic(bound = 40_000)]
    pixels: Vec<u8>,
}

/// Minor page faults of this thread so far (field 10 of its stat, behind the name).
fn minor_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let behind_name = stat.rsplit(')').next().unwrap();
    let field = behind_name.split_whitespace().nth(7);
    field.unwrap().parse().unwrap()
}

/// Minor page faults of the first samples, which are written, received and taken a row at a time.
fn faults_of_first_samples(prefault: bool, datagram_bytes: usize) -> u64 {
    let site = Site::loopback();
    let alice = site.builder().prefault(prefault).build().unwrap();
    let qos = Qos::reliable()
        .keep_all()
        .max_samples(128)
        .max_bytes(BYTES + 100)
        .max_datagram_bytes(datagram_bytes)
        .max_blocking_time(PATIENCE)
        .level(level(7));
    let writer: DataWriter<Picture> = alice.create_writer("Pictures", &qos).unwrap();
    let reader = alice.create_reader::<Picture>("Pictures", &qos).unwrap();
    let seen = Rc::new(Cell::new(0));
    let counted = Rc::clone(&seen);
    let value = Picture {
        number: 0,
        pixels: vec![1; BYTES],
    };
    let on_sample = move |_: isolane::Sample<&Picture>| counted.set(counted.get() + 1);
    reader.on_sample(value.clone(), on_sample).unwrap();
    assert!(alice.run_until(PATIENCE, || writer.matched_readers() == 1));

    let before = minor_faults();
    for row in 1..=SAMPLES / ROW {
        for _ in 0..ROW {
            writer.write(&value).unwrap();
        }
        assert!(alice.run_until(PATIENCE, || seen.get() == row * ROW));
    }
    minor_faults() - before
}

#[test]
fn what_was_touched_before_start_costs_the_first_samples_no_page_faults() {
    // Each sample as one datagram, and in fragments.
    for datagram_bytes in [BYTES + 100, 1_400] {
        let faults = faults_of_first_samples(true, datagram_bytes);
        assert!(faults <= OTHER_FAULTS, "{faults} page faults");
    }
}

#[test]
fn without_that_they_pay_for_every_page() {
    let faults = faults_of_first_samples(false, BYTES + 100);
    assert!(faults > 40 * OTHER_FAULTS, "{faults} page faults");
}
