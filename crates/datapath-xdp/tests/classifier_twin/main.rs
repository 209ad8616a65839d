//! Comparison of the loaded classifier with its reference model: both must decide alike.
//!
//! A seed determines a sequence of frames of all kinds, and between them changes of everything that can change while
//! frames arrive. Both sides get the same configuration and the same frames. Each verdict is compared, and from time to
//! time all counters and budgets. BPF_PROG_TEST_RUN runs the program in the kernel, as the driver would, with the queue
//! of its context.
//!
//! `ISOLANE_TEST_SEED=N` repeats a sequence. The kernel must allow loading programs (root). Otherwise the tests print a
//! message, and fail in CI.

mod frames;
mod mistakes;
mod world;

use std::time::Instant;

use isolane_datapath_xdp::classifier::twin::Twin;
use isolane_datapath_xdp::classifier::{Action, Counts, FlowReason, OthersReason};

use crate::mistakes::{MISTAKES, Mistake, Mistaken};
use crate::world::{Sequence, World};

/// Number of frames of the comparison.
const FRAMES: u64 = 1_000_000;

/// Number of frames within which a mistake of the reference model must be found.
const FRAMES_FOR_A_MISTAKE: u64 = 100_000;

fn seed() -> u64 {
    let given = std::env::var("ISOLANE_TEST_SEED").ok();
    given.map_or_else(|| fastrand::u64(..), |seed| seed.parse().expect("a number"))
}

#[test]
fn a_million_frames_are_decided_as_the_twin_decides_and_every_reason_is_reached() {
    let Some(mut world) = World::new() else {
        return;
    };
    let seed = seed();
    println!("ISOLANE_TEST_SEED={seed}");
    let begin = Instant::now();
    let mut twin = Twin::new();
    let mut sequence = Sequence::new(seed);
    let compared = sequence.run(&mut world, &mut twin, FRAMES);
    let frames = compared.unwrap_or_else(|difference| panic!("seed {seed}: {difference}"));
    assert_eq!(frames, FRAMES);

    let counts = world.counts();
    print(&counts);
    println!("{sequence}in {:.1} s", begin.elapsed().as_secs_f64());
    assert_eq!(counts.total(), FRAMES, "each frame is counted once");
    for reason in OthersReason::ALL {
        assert!(counts.others.get(*reason) > 0, "{reason:?}: seed {seed}");
    }
    for reason in FlowReason::ALL {
        assert!(
            of_all_flows(&counts, *reason) > 0,
            "{reason:?}: seed {seed}"
        );
    }
    for action in [Action::Drop, Action::Pass, Action::Redirect] {
        assert!(
            sequence.actions_seen.contains(&action),
            "{action:?}: seed {seed}"
        );
    }
    assert!(
        counts.touched_fill > 0 && counts.touched_reserve > 0,
        "seed {seed}"
    );
}

#[test]
fn every_mistake_of_the_twin_is_found() {
    let seed = seed();
    println!("ISOLANE_TEST_SEED={seed}");
    for (mistake, about) in MISTAKES {
        let Some(mut world) = World::new() else {
            return;
        };
        let mut twin = Mistaken::new(*mistake);
        let mut sequence = Sequence::new(seed);
        match (
            mistake,
            sequence.run(&mut world, &mut twin, FRAMES_FOR_A_MISTAKE),
        ) {
            (Mistake::Nothing, Ok(_)) => println!("{about}: no difference"),
            (Mistake::Nothing, Err(difference)) => panic!("seed {seed}: {difference}"),
            (_, Ok(_)) => panic!("seed {seed}: {mistake:?} was not found"),
            (_, Err(difference)) => {
                let end = difference.find(": [").unwrap_or(difference.len());
                println!("{about}: found, {}", &difference[..end]);
            }
        }
    }
}

fn of_all_flows(counts: &Counts, reason: FlowReason) -> u64 {
    counts.flows.iter().map(|flow| flow.get(reason)).sum()
}

fn print(counts: &Counts) {
    println!("of no flow:");
    for (name, frames) in counts.others.named() {
        println!("  {name:<28} {frames:>8}");
    }
    println!("of a flow:");
    for reason in FlowReason::ALL {
        let frames = of_all_flows(counts, *reason);
        println!("  {:<28} {frames:>8}", reason.name());
    }
    println!("not enforced:");
    println!(
        "  {:<28} {:>8}",
        "touched the fill reserve", counts.touched_fill
    );
    println!(
        "  {:<28} {:>8}",
        "touched the budget reserve", counts.touched_reserve
    );
}
