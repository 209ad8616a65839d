//! Tests of the observations: times, and which job delayed another.

use alloc::vec::Vec;

use super::{at, event_job, executor, observed, run};
use crate::{Executor, ExecutorConfig, JobId, JobStatistics};

#[test]
fn maxima_are_kept() {
    let mut executor = executor();
    let job = event_job(&mut executor, "job", 5);
    for (release, begin, finish) in [(0, 5, 15), (100, 130, 155), (200, 201, 202)] {
        executor.activate(job, at(release));
        run(&mut executor, job, begin, finish, false);
    }
    let seen = observed(&executor, job);
    assert_eq!(seen.activations, 3);
    assert_eq!(seen.execution_max_ns, 25);
    assert_eq!(seen.execution_total_ns, 36);
    assert_eq!(seen.response_max_ns, 55);
    executor.reset_statistics();
    assert_eq!(observed(&executor, job), JobStatistics::default());
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
fn the_job_that_ran_at_an_instant_is_named_while_it_runs_and_later() {
    let mut executor = executor();
    let hog = event_job(&mut executor, "hog", 1);
    executor.activate(hog, at(0));
    executor.begin(hog, at(10));
    assert_eq!(executor.running_at(at(9)), None, "nothing ran before it");
    assert_eq!(executor.running_at(at(100)), Some(hog));
    executor.finish(hog, at(150), false);
    let job = event_job(&mut executor, "job", 15);
    executor.begin(job, at(160));
    assert_eq!(executor.running_at(at(100)), Some(hog));
    assert_eq!(
        executor.running_at(at(155)),
        None,
        "the loop looked at its sources"
    );
    assert_eq!(executor.running_at(at(170)), Some(job));
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
    let inversions_of = |priority_mapping| {
        let mut executor = Executor::new(ExecutorConfig {
            priority_mapping,
            max_jobs: 8,
        });
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
    assert_eq!(inversions_of(|_| 0), 5);
    assert_eq!(inversions_of(|priority| priority), 0);
}
