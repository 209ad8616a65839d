//! Simulated systems with faults. Participants crash, leave and return at the same address, with a new or their old
//! GUID prefix. The network is partitioned in one or both directions, loses more in one direction than in the other,
//! duplicates and reorders. Meanwhile topics of several kinds send samples, some of them in fragments.
//!
//! A seed determines one such system ([`ordeal`]). These properties must hold ([`verdict`]):
//!
//! - In each match, a reader gets a writer's samples in order, none twice, and each as it was written.
//! - All samples that a reliable KEEP_ALL writer wrote after the notification of a match arrive while that match lasts.
//! - After the last fault, each endpoint matches all existing endpoints of its topic, and none that is gone.
//! - Samples written then arrive at all readers, and late joiners get the history.
//! - All ledgers balance after every event.
//!
//! `cargo test` runs [`SHARE`] seeds, `cargo xtask test` fewer, `cargo xtask seeds` a thousand. Each prints the faults
//! that occurred.

mod ordeal;
mod tally;
mod topics;
mod verdict;

use std::panic::{AssertUnwindSafe, catch_unwind};

use isolane_sim::seeds;

use crate::{
    ordeal::{Ordeal, Plant},
    tally::Tally,
};

/// Seeds of `cargo test`, which take some ten seconds on two slow cores. `cargo xtask seeds` runs a thousand.
const SHARE: u64 = 300;

fn endure(seed: u64) -> Tally {
    Ordeal::new(seed, Plant::Nothing).endure()
}

#[test]
fn whatever_happens_samples_come_once_and_in_order_and_a_system_in_peace_is_whole() {
    let tallies = seeds::for_each(0..SHARE, endure);
    let count = tallies.len();
    let sum = tallies.into_iter().fold(Tally::default(), Tally::plus);
    eprintln!("{count} seeds:\n{sum}");
    // With fewer seeds, some situations may not have occurred.
    if count as u64 >= SHARE {
        assert_eq!(sum.unmet(), None, "of {count} seeds none has met with it");
    }
}

/// Returns the message of a panic.
fn said(run: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("it fails");
    let said = panic.downcast::<String>();
    *said.expect("a panic with words")
}

#[test]
fn a_sample_that_is_lost_on_purpose_fails_and_says_how_to_run_that_seed_again() {
    let planted = 3;
    let endure = |seed| {
        let plant = if seed == planted {
            Plant::ForgetsOneSample
        } else {
            Plant::Nothing
        };
        Ordeal::new(seed, plant).endure();
    };
    let summary = said(|| drop(seeds::for_each(planted - 1..planted + 2, endure)));
    let command = summary.lines().last().map(str::trim).unwrap_or_default();
    let (variable, rest) = command
        .split_once(' ')
        .expect("a variable, and what to run");
    assert_eq!(variable, format!("{}={planted}", seeds::SEED_VARIABLE));
    assert!(
        rest.contains("cargo test -p isolane-sim --test seeds a_sample_that_is_lost_on_purpose"),
        "{command}"
    );
    // The failure is the same in every run.
    let words = said(|| endure(planted));
    assert!(words.contains("seed 3"), "{words}");
    assert_eq!(words, said(|| endure(planted)));
}
