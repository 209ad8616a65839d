//! Tests of releases by time: periods and minimum inter-arrival times.

use super::{at, executor, observed, run};
use crate::{Executor, JobConfig, JobId, Trigger};

/// Adds a job with a period of 100 ns and no offset.
fn cycle(executor: &mut Executor) -> JobId {
    executor
        .add(JobConfig::periodic("cycle", 9, 100, 0))
        .unwrap()
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
    let job = cycle(&mut executor);
    executor.release(at(100));
    run(&mut executor, job, 101, 105, false);
    // Due at 200, 300, 400 and 500, without a call of `release`.
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
    let job = cycle(&mut executor);
    executor.release(at(0));
    assert_eq!(executor.job(job).released_at(), Some(at(0)));
    executor.release(at(100));
    assert_eq!(observed(&executor, job).releases_missed, 1);
    assert_eq!(executor.job(job).released_at(), Some(at(0)));
}

#[test]
fn a_release_during_the_jobs_own_run_is_kept() {
    let mut executor = executor();
    let job = cycle(&mut executor);
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
