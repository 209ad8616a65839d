//! Statements about the executor. Times are in nanoseconds.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use isolane_wire::time::Instant;

use crate::{Executor, ExecutorConfig, JobConfig, JobId, Observed, Order, Trigger};

mod share;
mod waits;

fn at(nanos: u64) -> Instant {
    Instant::new(nanos)
}

fn executor() -> Executor {
    Executor::new(ExecutorConfig::default())
}

fn event_job(executor: &mut Executor, name: &str, priority: u8) -> JobId {
    executor.add(JobConfig::event(name, priority)).unwrap()
}

/// Runs one activation.
fn run(executor: &mut Executor, id: JobId, begin: u64, finish: u64, again: bool) {
    executor.begin(id, at(begin));
    executor.finish(id, at(finish), again);
}

/// Runs whatever is ready, a nanosecond each, and says in which order.
fn drain(executor: &mut Executor) -> Vec<JobId> {
    let mut order = Vec::new();
    while let Some(id) = executor.next() {
        run(executor, id, 1_000, 1_001, false);
        order.push(id);
    }
    order
}

fn observed(executor: &Executor, id: JobId) -> Observed {
    executor.job(id).observed
}

#[test]
fn the_highest_ready_priority_runs_first() {
    let mut executor = executor();
    let ids: Vec<JobId> = [3, 31, 0, 14, 15]
        .into_iter()
        .map(|priority| event_job(&mut executor, "job", priority))
        .collect();
    for &id in &ids {
        executor.activate(id, at(0));
    }
    let expected = vec![ids[1], ids[4], ids[3], ids[0], ids[2]];
    assert_eq!(drain(&mut executor), expected);
}

#[test]
fn equals_run_in_the_order_of_their_release() {
    let mut executor = executor();
    let first = event_job(&mut executor, "first", 5);
    let second = event_job(&mut executor, "second", 5);
    let third = event_job(&mut executor, "third", 5);
    for id in [third, first, second] {
        executor.activate(id, at(0));
    }
    assert_eq!(drain(&mut executor), [third, first, second]);
}

#[test]
fn in_fifo_order_priorities_mean_nothing() {
    let mut executor = Executor::new(ExecutorConfig {
        order: Order::Fifo,
        max_jobs: 4,
    });
    let low = event_job(&mut executor, "low", 1);
    let high = event_job(&mut executor, "high", 15);
    let middle = event_job(&mut executor, "middle", 7);
    for id in [low, high, middle] {
        executor.activate(id, at(0));
    }
    assert_eq!(drain(&mut executor), [low, high, middle]);
}

#[test]
fn a_job_released_meanwhile_runs_after_the_activation_that_runs_and_before_the_rest() {
    let mut executor = executor();
    let bulk = event_job(&mut executor, "bulk", 1);
    let critical = event_job(&mut executor, "critical", 15);
    executor.activate(bulk, at(0));
    executor.begin(bulk, at(10));
    executor.activate(critical, at(12));
    executor.finish(bulk, at(20), true);
    assert_eq!(drain(&mut executor), [critical, bulk]);
}

#[test]
fn again_goes_behind_equals_and_never_before_a_higher_priority() {
    let mut executor = executor();
    let first = event_job(&mut executor, "first", 5);
    let second = event_job(&mut executor, "second", 5);
    executor.activate(first, at(0));
    executor.activate(second, at(0));
    run(&mut executor, first, 0, 1, true);
    assert_eq!(executor.next(), Some(second));
    run(&mut executor, second, 1, 2, false);
    assert_eq!(executor.next(), Some(first));
    assert_eq!(observed(&executor, first).continued, 1);
}

#[test]
fn a_ready_job_keeps_its_first_stamp() {
    let mut executor = executor();
    let job = event_job(&mut executor, "job", 5);
    executor.activate(job, at(100));
    executor.activate(job, at(150));
    assert_eq!(executor.ready_count(), 1);
    run(&mut executor, job, 200, 230, false);
    assert_eq!(observed(&executor, job).response_max_ns, 130);
    assert_eq!(executor.next(), None);
}

#[test]
fn an_event_during_a_run_makes_the_job_ready_when_it_finishes() {
    let mut executor = executor();
    let job = event_job(&mut executor, "job", 5);
    executor.activate(job, at(0));
    executor.begin(job, at(0));
    executor.activate(job, at(4));
    assert_eq!(executor.next(), None);
    executor.finish(job, at(10), false);
    assert_eq!(executor.next(), Some(job));
    assert_eq!(executor.job(job).released_at(), Some(at(4)));
}

#[test]
fn periodic_jobs_keep_their_phase_to_one_another_whenever_they_were_added() {
    let mut executor = executor();
    let early = executor
        .add(JobConfig::periodic("early", 5, 100, 10))
        .unwrap();
    executor.release(at(1_050));
    let late = executor
        .add(JobConfig::periodic("late", 5, 100, 30))
        .unwrap();
    executor.release(at(1_077));
    assert_eq!(executor.ready_count(), 0);
    assert_eq!(executor.next_release(), Some(at(1_110)));
    executor.release(at(1_110));
    assert_eq!(executor.job(early).released_at(), Some(at(1_110)));
    executor.release(at(1_135));
    assert_eq!(executor.job(late).released_at(), Some(at(1_130)));
    assert_eq!(executor.next_release(), Some(at(1_210)));
}

#[test]
fn a_late_look_at_the_clock_releases_once_and_names_the_releases_missed() {
    let mut executor = executor();
    let job = executor
        .add(JobConfig::periodic("cycle", 9, 100, 0))
        .unwrap();
    executor.release(at(100));
    run(&mut executor, job, 101, 105, false);
    // Due at 200, 300, 400 and 500; nobody looked.
    executor.release(at(550));
    assert_eq!(executor.ready_count(), 1);
    assert_eq!(executor.job(job).released_at(), Some(at(200)));
    assert_eq!(observed(&executor, job).releases_missed, 3);
    assert_eq!(executor.next_release(), Some(at(600)));
    run(&mut executor, job, 550, 560, false);
    assert_eq!(observed(&executor, job).response_max_ns, 360);
}

#[test]
fn a_release_that_finds_the_job_still_ready_is_missed_by_name() {
    let mut executor = executor();
    let job = executor
        .add(JobConfig::periodic("cycle", 9, 100, 0))
        .unwrap();
    executor.release(at(0));
    assert_eq!(executor.job(job).released_at(), Some(at(0)));
    executor.release(at(100));
    assert_eq!(observed(&executor, job).releases_missed, 1);
    assert_eq!(executor.job(job).released_at(), Some(at(0)));
}

#[test]
fn a_release_during_the_jobs_own_run_is_kept() {
    let mut executor = executor();
    let job = executor
        .add(JobConfig::periodic("cycle", 9, 100, 0))
        .unwrap();
    executor.release(at(0));
    executor.begin(job, at(10));
    executor.release(at(100));
    executor.finish(job, at(120), false);
    assert_eq!(executor.job(job).released_at(), Some(at(100)));
    assert_eq!(observed(&executor, job).releases_missed, 0);
}

#[test]
fn sporadic_events_are_never_released_closer_than_agreed() {
    let mut executor = executor();
    let trigger = Trigger::Sporadic {
        min_interarrival_ns: 100,
    };
    let job = executor
        .add(JobConfig {
            trigger,
            ..JobConfig::event("sporadic", 5)
        })
        .unwrap();
    executor.activate(job, at(50));
    run(&mut executor, job, 51, 55, false);
    executor.activate(job, at(60));
    executor.activate(job, at(61));
    assert_eq!(executor.next(), None);
    assert_eq!(executor.next_release(), Some(at(150)));
    executor.release(at(150));
    assert_eq!(executor.next(), Some(job));
    assert_eq!(observed(&executor, job).releases_deferred, 1);
    run(&mut executor, job, 151, 152, false);
    executor.activate(job, at(400));
    assert_eq!(executor.next(), Some(job));
}

#[test]
fn maxima_are_kept_and_violations_counted() {
    let mut executor = executor();
    let job = executor
        .add(JobConfig {
            wcet_ns: Some(20),
            bound_ns: Some(50),
            ..JobConfig::event("job", 5)
        })
        .unwrap();
    for (release, begin, finish) in [(0, 5, 15), (100, 130, 155), (200, 201, 202)] {
        executor.activate(job, at(release));
        run(&mut executor, job, begin, finish, false);
    }
    let seen = observed(&executor, job);
    assert_eq!(seen.activations, 3);
    assert_eq!(seen.execution_max_ns, 25);
    assert_eq!(seen.execution_total_ns, 36);
    assert_eq!(seen.response_max_ns, 55);
    assert_eq!((seen.wcet_violations, seen.bound_violations), (1, 1));
    executor.reset_observed();
    assert_eq!(observed(&executor, job), Observed::default());
}

#[test]
fn what_again_continues_is_measured_an_activation_at_a_time_and_as_a_whole() {
    let mut executor = executor();
    let job = event_job(&mut executor, "job", 5);
    executor.activate(job, at(0));
    run(&mut executor, job, 10, 20, true);
    run(&mut executor, job, 20, 32, true);
    run(&mut executor, job, 32, 40, false);
    let seen = observed(&executor, job);
    assert_eq!(seen.response_max_ns, 20);
    assert_eq!(seen.drain_max_ns, 40);
}

#[test]
fn a_missed_deadline_names_the_job_that_was_running_when_it_fell() {
    let mut executor = executor();
    let hog = event_job(&mut executor, "hog", 1);
    let other = event_job(&mut executor, "other", 2);
    let job = executor
        .add(JobConfig {
            deadline_ns: Some(100),
            ..JobConfig::event("critical", 15)
        })
        .unwrap();
    executor.activate(hog, at(0));
    executor.begin(hog, at(0));
    executor.activate(job, at(10));
    executor.activate(other, at(10));
    executor.finish(hog, at(150), false);
    run(&mut executor, job, 151, 160, false);
    run(&mut executor, other, 160, 170, false);
    let seen = observed(&executor, job);
    assert_eq!(seen.deadline_misses, 1);
    assert_eq!(seen.running_at_miss, Some(hog));
    assert_eq!(seen.lateness_max_ns, Some(50));
}

#[test]
fn a_deadline_learnt_of_late_still_names_the_job() {
    let mut executor = executor();
    let hog = event_job(&mut executor, "hog", 1);
    let job = executor
        .add(JobConfig {
            deadline_ns: Some(100),
            ..JobConfig::event("critical", 15)
        })
        .unwrap();
    run(&mut executor, hog, 0, 150, false);
    // The kernel's stamp says that the frame arrived long ago.
    executor.activate(job, at(10));
    run(&mut executor, job, 151, 160, false);
    assert_eq!(observed(&executor, job).running_at_miss, Some(hog));
}

#[test]
fn a_deadline_that_falls_while_nobody_runs_names_nobody() {
    let mut executor = executor();
    let job = executor
        .add(JobConfig {
            deadline_ns: Some(100),
            ..JobConfig::event("critical", 15)
        })
        .unwrap();
    executor.activate(job, at(0));
    run(&mut executor, job, 300, 310, false);
    let seen = observed(&executor, job);
    assert_eq!((seen.deadline_misses, seen.running_at_miss), (1, None));
}

#[test]
fn finishing_at_the_deadline_is_in_time() {
    let mut executor = executor();
    let job = executor
        .add(JobConfig {
            deadline_ns: Some(100),
            ..JobConfig::event("critical", 15)
        })
        .unwrap();
    executor.activate(job, at(0));
    run(&mut executor, job, 50, 100, false);
    let seen = observed(&executor, job);
    assert_eq!((seen.deadline_misses, seen.lateness_max_ns), (0, Some(0)));
}

#[test]
fn blocking_is_the_rest_of_the_lower_activation_that_had_begun() {
    let mut executor = executor();
    let bulk = event_job(&mut executor, "bulk", 1);
    let critical = event_job(&mut executor, "critical", 15);
    run(&mut executor, bulk, 0, 40, true);
    executor.activate(critical, at(15));
    run(&mut executor, critical, 41, 45, false);
    let seen = observed(&executor, critical);
    assert_eq!((seen.blocking_max_ns, seen.blocked_by), (25, Some(bulk)));
    assert_eq!(seen.inversions, 0);
}

#[test]
fn fifo_order_inverts_priorities_and_priority_order_does_not() {
    let inversions_of = |order| {
        let mut executor = Executor::new(ExecutorConfig { order, max_jobs: 8 });
        let bulk: Vec<JobId> = (0..5)
            .map(|_| event_job(&mut executor, "bulk", 1))
            .collect();
        let critical = event_job(&mut executor, "critical", 15);
        for &id in &bulk {
            executor.activate(id, at(0));
        }
        executor.activate(critical, at(1));
        let mut now = 2;
        while let Some(id) = executor.next() {
            run(&mut executor, id, now, now + 10, false);
            now += 10;
        }
        observed(&executor, critical).inversions
    };
    assert_eq!(inversions_of(Order::Fifo), 5);
    assert_eq!(inversions_of(Order::Priority), 0);
}

#[test]
fn a_full_table_says_so_and_a_removed_job_makes_room() {
    let mut executor = Executor::new(ExecutorConfig {
        order: Order::Priority,
        max_jobs: 2,
    });
    let first = event_job(&mut executor, "first", 1);
    event_job(&mut executor, "second", 1);
    let full = executor.add(JobConfig::event("third", 1)).unwrap_err();
    assert_eq!(full.max_jobs, 2);
    assert!(full.to_string().contains("raise max_jobs"));

    executor.activate(first, at(0));
    assert!(executor.remove(first));
    let third = event_job(&mut executor, "third", 1);
    assert_eq!(third.index(), first.index());
    // The old id names nobody, not the new job in its place.
    assert!(executor.get(first).is_none());
    executor.activate(first, at(0));
    assert_eq!(executor.ready_count(), 0);
    assert!(!executor.remove(first));
}

#[test]
fn a_job_may_be_removed_while_it_runs() {
    let mut executor = executor();
    let job = event_job(&mut executor, "job", 1);
    executor.activate(job, at(0));
    executor.begin(job, at(0));
    assert!(executor.remove(job));
    executor.activate(job, at(1));
    executor.finish(job, at(2), true);
    assert!(executor.get(job).is_none());
    assert_eq!(executor.ready_count(), 0);
    assert_eq!(executor.jobs().count(), 0);
}

#[test]
#[should_panic(expected = "while another job is running")]
fn two_jobs_never_run_at_once() {
    let mut executor = executor();
    let first = event_job(&mut executor, "first", 1);
    let second = event_job(&mut executor, "second", 1);
    executor.begin(first, at(0));
    executor.begin(second, at(0));
}

#[test]
fn names_too_long_are_cut_at_a_character() {
    let name = "ä".repeat(40);
    let config = JobConfig::event(&name, 40);
    assert_eq!(config.name.as_str(), "ä".repeat(24));
    let mut executor = executor();
    let id = executor.add(config).unwrap();
    assert_eq!(executor.job(id).config.priority, 31);
}

/// A deterministic generator, so that a failure repeats.
fn next_random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// The lists and heaps against the obvious model: scan all jobs.
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

/// The heap of releases against a list of the periods.
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
