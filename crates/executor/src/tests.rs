//! Tests of the executor, here of the order in which jobs run. Times are in nanoseconds.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use isolane_wire::time::Instant;

use crate::{Executor, ExecutorConfig, JobConfig, JobId, JobStatistics};

mod model;
mod observed;
mod release;
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

fn run(executor: &mut Executor, id: JobId, begin: u64, finish: u64, has_more: bool) {
    executor.begin(id, at(begin));
    executor.finish(id, at(finish), has_more);
}

/// Runs all ready jobs, a nanosecond each, and returns their order.
fn drain(executor: &mut Executor) -> Vec<JobId> {
    let mut order = Vec::new();
    while let Some(id) = executor.next() {
        run(executor, id, 1_000, 1_001, false);
        order.push(id);
    }
    order
}

fn observed(executor: &Executor, id: JobId) -> JobStatistics {
    executor.job(id).statistics
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
fn priorities_of_one_list_run_first_in_first_out() {
    let mut executor = Executor::new(ExecutorConfig {
        priority_mapping: |_| 0,
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
fn a_full_table_says_so_and_a_removed_job_makes_room() {
    let mut executor = Executor::new(ExecutorConfig {
        max_jobs: 2,
        ..ExecutorConfig::default()
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
    // The old id is stale; it does not name the new job.
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
