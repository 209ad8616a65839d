//! What the executor has seen of each job: its times, its misses, and who was to blame.

use alloc::vec::Vec;

use super::{at, event_job, executor, observed, run};
use crate::{Executor, ExecutorConfig, JobConfig, JobId, Observed, Order};

/// A job with a deadline of 100 ns.
fn critical(executor: &mut Executor) -> JobId {
    let config = JobConfig {
        deadline_ns: Some(100),
        ..JobConfig::event("critical", 15)
    };
    executor.add(config).unwrap()
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
    let job = critical(&mut executor);
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
    let job = critical(&mut executor);
    run(&mut executor, hog, 0, 150, false);
    // The kernel's stamp says that the frame arrived long ago.
    executor.activate(job, at(10));
    run(&mut executor, job, 151, 160, false);
    assert_eq!(observed(&executor, job).running_at_miss, Some(hog));
}

#[test]
fn a_deadline_that_falls_while_nobody_runs_names_nobody() {
    let mut executor = executor();
    let job = critical(&mut executor);
    executor.activate(job, at(0));
    run(&mut executor, job, 300, 310, false);
    let seen = observed(&executor, job);
    assert_eq!((seen.deadline_misses, seen.running_at_miss), (1, None));
}

#[test]
fn finishing_at_the_deadline_is_in_time() {
    let mut executor = executor();
    let job = critical(&mut executor);
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
