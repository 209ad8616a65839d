//! Running a test over many seeds on all cores, with instructions to replay a failing one.

use std::{
    env,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    thread,
};

use crate::limits::{FAILURES_SHOWN, PROGRESS_SEEDS};

/// Environment variable with the only seed to run.
pub const SEED_VARIABLE: &str = "ISOLANE_SEED";

/// Environment variable with a factor for the length of every range of seeds, for overnight runs.
pub const FACTOR_VARIABLE: &str = "ISOLANE_SEED_FACTOR";

/// Environment variable with the maximum length of each range, for short runs.
pub const LIMIT_VARIABLE: &str = "ISOLANE_SEED_LIMIT";

/// Environment variable with the number of seeds of each range, which also makes [`for_each`] print its progress.
pub const COUNT_VARIABLE: &str = "ISOLANE_SEED_COUNT";

/// Runs a test with each seed of a range, or with the one in [`SEED_VARIABLE`], and returns the results in the order of
/// the seeds.
///
/// # Panics
/// If the test panics with a seed; the message has the seed and the command to replay it. If a variable is not a
/// number.
pub fn for_each<T: Send>(seeds: Range<u64>, test: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let count = number_in(COUNT_VARIABLE);
    let seeds = match (number_in(SEED_VARIABLE), count) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(count)) => seeds.start..seeds.start + count,
        (None, None) => {
            let factor = number_in(FACTOR_VARIABLE).unwrap_or(1);
            let limit = number_in(LIMIT_VARIABLE).unwrap_or(u64::MAX);
            let count = (seeds.end - seeds.start).saturating_mul(factor);
            seeds.start..seeds.start + count.min(limit)
        }
    };
    let next = AtomicU64::new(seeds.start);
    let done = AtomicU64::new(0);
    let failures = AtomicUsize::new(0);
    let work = || {
        let (mut passed, mut failed) = (Vec::new(), Vec::new());
        while failures.load(Ordering::Relaxed) < FAILURES_SHOWN {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            match catch_unwind(AssertUnwindSafe(|| test(seed))) {
                Ok(result) => passed.push((seed, result)),
                Err(_) => {
                    failures.fetch_add(1, Ordering::Relaxed);
                    failed.push(seed);
                }
            }
            let done = 1 + done.fetch_add(1, Ordering::Relaxed);
            if count.is_some() && done.is_multiple_of(PROGRESS_SEEDS) {
                eprintln!("{done} of {} seeds", seeds.end - seeds.start);
            }
        }
        (passed, failed)
    };
    let (mut passed, mut failed) = (Vec::new(), Vec::new());
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            let (some_passed, some_failed) = thread.join().expect("panics were caught");
            passed.extend(some_passed);
            failed.extend(some_failed);
        }
    });
    failed.sort_unstable();
    assert!(
        failed.is_empty(),
        "failed with seeds {failed:?}; run one again with\n  {}",
        replay(failed[0])
    );
    passed.sort_unstable_by_key(|&(seed, _)| seed);
    passed.into_iter().map(|(_, result)| result).collect()
}

fn number_in(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|error| panic!("{variable} is {text:?}: {error}")))
}

/// Command that runs this test with one seed and prints each datagram.
fn replay(seed: u64) -> String {
    let executable = env::current_exe().unwrap_or_default();
    // Cargo appends a hash to the name of a test.
    let name = executable.file_stem().unwrap_or_default().to_string_lossy();
    let binary = name.rsplit_once('-').map_or(&*name, |(binary, _)| binary);
    let current = thread::current();
    let test = current.name().filter(|&name| name != "main").unwrap_or("");
    format!(
        "{SEED_VARIABLE}={seed} ISOLANE_TRACE=1 cargo test -p isolane-sim --test {binary} {test} -- --nocapture"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_seeds() {
        assert_eq!(for_each(0..100, |seed| seed * 2)[10..12], [20, 22]);
    }

    #[test]
    fn a_failure_says_how_to_run_it_again() {
        let run = || for_each(0..20, |seed| assert_ne!(seed, 17));
        let message = *catch_unwind(run).unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("ISOLANE_SEED=17"), "{message}");
        assert!(message.contains("a_failure_says_how_to_run_it_again"));
    }
}
