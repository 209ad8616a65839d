//! Systems that suffer: participants crash, leave and come back, at the same address, under a new or under their
//! old GUID prefix; the network is cut in both directions or in one, loses more one way than the other, doubles
//! and overtakes; topics of several kinds go on meanwhile, some of them in fragments.
//!
//! A seed is one such system ([`ordeal`]). What must hold of it ([`verdict`]):
//!
//! - in each match a reader is handed what came of a writer in order, nothing twice, and all of it as it was
//!   written;
//! - what a reliable KEEP_ALL writer wrote after it was notified of a match came, all of it, as long as
//!   that match lasted;
//! - left in peace, each endpoint is matched with those that are there, and with none that is gone;
//! - what is written then comes everywhere, and who joins late has the history;
//! - all ledgers balance, after every single thing that happens.
//!
//! `cargo test` runs [`SHARE`] seeds, `cargo xtask test` fewer, `cargo xtask seeds` a thousand; all say what they went
//! through.

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

/// Seeds of an ordinary run, of the thousand of a long one: some ten seconds on two slow cores.
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
    // Fewer seeds need not have met with everything.
    if count as u64 >= SHARE {
        assert_eq!(sum.unmet(), None, "of {count} seeds none has met with it");
    }
}

/// What a panic said.
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
    // And it is the same every time.
    let words = said(|| endure(planted));
    assert!(words.contains("seed 3"), "{words}");
    assert_eq!(words, said(|| endure(planted)));
}
