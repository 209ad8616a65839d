//! Tests of waits, classified by stamps and polls.

use super::{at, event_job, executor, observed, run};
use crate::limits::REMEMBERED_ACTIVATIONS;
use crate::{Executor, JobConfig, JobId, PriorityInversions};

const CRITICAL: u8 = 15;
const SOURCE: u8 = 3;

fn receive_job(executor: &mut Executor) -> JobId {
    let config = JobConfig {
        source: Some(SOURCE),
        ..JobConfig::event("receive", CRITICAL)
    };
    executor.add(config).unwrap()
}

/// Runs a lower-priority activation of 10 ns at `now`, after a poll that found these sources readable.
fn run_bulk(executor: &mut Executor, bulk: JobId, now: u64, readable: Option<u32>) {
    if let Some(readable) = readable {
        executor.polled(at(now), readable);
    }
    run(executor, bulk, now, now + 10, false);
}

/// Handles, from 100 to 105, an item that arrived at `stamp`.
fn receive(executor: &mut Executor, job: JobId, stamp: u64) -> PriorityInversions {
    executor.polled(at(100), 1 << SOURCE);
    executor.activate(job, at(100));
    executor.begin(job, at(100));
    let waited = executor.record_arrival(CRITICAL, at(stamp));
    executor.finish(job, at(105), false);
    waited
}

fn counts(waited: PriorityInversions) -> (u64, u64, u64) {
    let late_ns = waited.kernel_latency_max_ns;
    (waited.inversions, waited.kernel_latency_events, late_ns)
}

#[test]
fn a_lower_activation_that_began_although_the_source_was_readable_is_an_inversion() {
    let mut executor = executor();
    let (bulk, job) = (
        event_job(&mut executor, "bulk", 1),
        receive_job(&mut executor),
    );
    run_bulk(&mut executor, bulk, 50, Some(1 << SOURCE | 1));
    assert_eq!(counts(receive(&mut executor, job, 40)), (1, 0, 0));
    assert_eq!(observed(&executor, job).inversions, 1);
}

#[test]
fn what_is_not_stamped_is_as_old_as_the_look_that_showed_it() {
    for (readable, inversions) in [(1 << SOURCE | 1, 1), (1, 0)] {
        let mut executor = executor();
        let (bulk, job) = (
            event_job(&mut executor, "bulk", 1),
            receive_job(&mut executor),
        );
        run_bulk(&mut executor, bulk, 50, Some(readable));
        let waited = receive(&mut executor, job, 50);
        assert_eq!(waited.inversions, inversions, "{readable:b}");
    }
}

#[test]
fn a_lower_activation_without_a_look_before_it_is_an_inversion() {
    let mut executor = executor();
    let (bulk, job) = (
        event_job(&mut executor, "bulk", 1),
        receive_job(&mut executor),
    );
    // The first activation uses up this poll.
    run_bulk(&mut executor, bulk, 50, Some(0));
    run_bulk(&mut executor, bulk, 60, None);
    assert_eq!(counts(receive(&mut executor, job, 55)), (1, 0, 0));
}

#[test]
fn a_stamp_before_a_look_that_did_not_show_it_is_the_kernels_delay() {
    let mut executor = executor();
    let (bulk, job) = (
        event_job(&mut executor, "bulk", 1),
        receive_job(&mut executor),
    );
    // Another source was readable.
    run_bulk(&mut executor, bulk, 50, Some(1));
    run_bulk(&mut executor, bulk, 60, Some(1));
    assert_eq!(counts(receive(&mut executor, job, 47)), (0, 2, 13));
    let seen = observed(&executor, job);
    assert_eq!((seen.inversions, seen.kernel_latency_events), (0, 2));
    assert_eq!(seen.kernel_latency_max_ns, 13);
}

#[test]
fn what_began_before_the_stamp_is_blocking_and_what_is_as_urgent_is_nothing() {
    let mut executor = executor();
    let (bulk, job) = (
        event_job(&mut executor, "bulk", 1),
        receive_job(&mut executor),
    );
    let equal = event_job(&mut executor, "equal", CRITICAL);
    run_bulk(&mut executor, bulk, 50, Some(0));
    run_bulk(&mut executor, equal, 70, Some(1 << SOURCE));
    assert_eq!(
        receive(&mut executor, job, 52),
        PriorityInversions::default()
    );
    let seen = observed(&executor, job);
    assert_eq!((seen.blocking_max_ns, seen.blocked_by), (8, Some(bulk)));
    assert_eq!(seen.response_max_ns, 53, "from the stamp");
}

#[test]
fn each_arrival_counts_for_itself_and_the_earliest_is_the_release() {
    let mut executor = executor();
    let (bulk, job) = (
        event_job(&mut executor, "bulk", 1),
        receive_job(&mut executor),
    );
    run_bulk(&mut executor, bulk, 50, Some(1 << SOURCE));
    executor.activate(job, at(90));
    executor.begin(job, at(90));
    let stamps = [45, 40, 55].map(at);
    let waited = stamps.map(|stamp| executor.record_arrival(CRITICAL, stamp).inversions);
    assert_eq!(waited, [1, 1, 0]);
    assert_eq!(executor.job(job).released_at(), Some(at(40)));
    executor.finish(job, at(95), false);
    assert_eq!(observed(&executor, job).inversions, 2);
    assert_eq!(observed(&executor, job).drain_max_ns, 55);
}

#[test]
fn an_activation_is_as_urgent_as_its_most_urgent_item() {
    let mut executor = executor();
    let shared = receive_job(&mut executor);
    for (begin, items) in [(10, &[3, 7][..]), (30, &[3][..]), (50, &[][..])] {
        executor.begin(shared, at(begin));
        for &priority in items {
            executor.record_arrival(priority, at(begin));
        }
        executor.finish(shared, at(begin + 10), false);
    }
    executor.begin(shared, at(90));
    // The second activation handled priority 3, below 7. The third reported no items and has the job's own priority 15.
    assert_eq!(executor.record_arrival(7, at(5)).inversions, 1);
    assert_eq!(executor.record_arrival(8, at(5)).inversions, 2);
    assert_eq!(executor.record_arrival(3, at(5)).inversions, 0);
}

#[test]
fn what_follows_from_another_job_responds_from_the_arrival_and_waits_from_there_on() {
    let mut executor = executor();
    let bulk = event_job(&mut executor, "bulk", 1);
    let callback = event_job(&mut executor, "callback", CRITICAL);
    run_bulk(&mut executor, bulk, 20, Some(0));
    // A sample stamped 15 was read at 40: the reading job accounted for the time before.
    executor.activate_since(callback, at(15), at(40));
    run_bulk(&mut executor, bulk, 50, Some(0));
    let waited = executor.begin(callback, at(70));
    executor.finish(callback, at(75), false);
    assert_eq!(counts(waited), (1, 0, 0), "no poll is needed to know of it");
    let seen = observed(&executor, callback);
    assert_eq!((seen.inversions, seen.response_max_ns), (1, 60));
}

#[test]
fn that_there_was_an_inversion_is_not_forgotten_behind_many_activations() {
    let mut executor = executor();
    let (bulk, job) = (
        event_job(&mut executor, "bulk", 1),
        receive_job(&mut executor),
    );
    let other = event_job(&mut executor, "other", CRITICAL);
    run_bulk(&mut executor, bulk, 20, Some(1 << SOURCE));
    for _ in 0..2 * REMEMBERED_ACTIVATIONS {
        run(&mut executor, other, 40, 41, false);
    }
    assert_eq!(counts(receive(&mut executor, job, 10)), (1, 0, 0));
}

#[test]
fn an_arrival_while_nothing_runs_has_no_effect() {
    assert_eq!(
        executor().record_arrival(CRITICAL, at(5)),
        PriorityInversions::default()
    );
}
