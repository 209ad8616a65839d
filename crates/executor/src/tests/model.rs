//! Randomized tests of the queues against simple models.

use alloc::vec::Vec;

use super::{at, drain, event_job, executor, run};
use crate::{JobConfig, JobId};

/// Deterministic generator, so that failures repeat.
fn next_random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Compares the choice with a scan of all jobs.
#[test]
fn the_choice_equals_a_scan_of_all_jobs() {
    for seed in 1..200_u64 {
        let mut random = seed;
        let mut executor = executor();
        // (id, priority, release order while ready)
        let mut model: Vec<(JobId, u8, Option<u64>)> = Vec::new();
        for step in 0..200_u64 {
            let pick = next_random(&mut random) as usize;
            match next_random(&mut random) % 4 {
                0 => {
                    let priority = (pick % 32) as u8;
                    model.push((event_job(&mut executor, "job", priority), priority, None));
                }
                1 if !model.is_empty() => {
                    let chosen = pick % model.len();
                    let (id, _, ready) = &mut model[chosen];
                    executor.activate(*id, at(step));
                    ready.get_or_insert(step);
                }
                2 if !model.is_empty() => {
                    let chosen = pick % model.len();
                    assert!(executor.remove(model.swap_remove(chosen).0));
                }
                _ => {
                    let expected = model
                        .iter_mut()
                        .filter(|(_, _, ready)| ready.is_some())
                        .min_by_key(|(_, priority, ready)| (31 - *priority, *ready));
                    assert_eq!(
                        executor.next(),
                        expected.as_ref().map(|(id, ..)| *id),
                        "seed {seed}, step {step}"
                    );
                    if let Some((id, _, ready)) = expected {
                        *ready = None;
                        run(&mut executor, *id, step, step, false);
                    }
                }
            }
        }
    }
}

/// Compares the time queue with a list of the periods.
#[test]
fn every_periodic_release_happens_at_its_instant() {
    for seed in 1..50_u64 {
        let mut random = seed;
        let mut executor = executor();
        let jobs: Vec<(JobId, u64)> = (0..20)
            .map(|_| {
                let period = 10 + next_random(&mut random) % 90;
                let config = JobConfig::periodic("cycle", 3, period, 0);
                (executor.add(config).unwrap(), period)
            })
            .collect();
        executor.release(at(1));
        for now in 2..500 {
            executor.release(at(now));
            let due: Vec<JobId> = jobs
                .iter()
                .filter(|(_, period)| now % period == 0)
                .map(|(id, _)| *id)
                .collect();
            let mut released = drain(&mut executor);
            released.sort();
            assert_eq!(released, due, "seed {seed}, at {now}");
        }
    }
}
