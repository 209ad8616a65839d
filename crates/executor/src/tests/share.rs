//! Tests of the share that a priority has of the next higher one.

use alloc::vec::Vec;

use super::{at, drain, event_job, executor, observed, run};
use crate::{Executor, ExecutorConfig, JobId};

const DATA: u8 = 13;
const PROTOCOL: u8 = 12;
const ITEMS: u16 = 16;

/// Data and protocol jobs of a level, the latter with a share.
fn level() -> (Executor, JobId, JobId) {
    let mut executor = executor();
    executor.grant_share(PROTOCOL, ITEMS);
    let data = event_job(&mut executor, "data", DATA);
    let protocol = event_job(&mut executor, "protocol", PROTOCOL);
    (executor, data, protocol)
}

/// Runs one activation of `items` items; returns its job, and true if chosen by share.
fn run_next(executor: &mut Executor, items: u16) -> (JobId, bool) {
    let id = executor.next().unwrap();
    executor.begin(id, at(10));
    executor.set_items_handled(items);
    let by_share = executor.runs_by_share();
    executor.finish(id, at(11), true);
    (id, by_share)
}

/// Number of data activations before the first protocol activation.
fn data_before_protocol(executor: &mut Executor, protocol: JobId, items: u16) -> usize {
    let mut count = 0;
    while run_next(executor, items) != (protocol, true) {
        count += 1;
        assert!(count < 1_000, "protocol work never runs");
    }
    count
}

#[test]
fn an_endless_row_of_data_lets_protocol_work_of_its_level_in_once_a_burst_of_items() {
    for (items, expected) in [(1, 16), (4, 4), (5, 4), (16, 1), (40, 1)] {
        let (mut executor, data, protocol) = level();
        executor.activate(data, at(0));
        executor.activate(protocol, at(0));
        for _ in 0..3 {
            let count = data_before_protocol(&mut executor, protocol, items);
            assert_eq!(count, expected, "{items} items an activation");
        }
    }
}

#[test]
fn without_a_share_protocol_work_waits_until_there_is_no_data() {
    let mut executor = executor();
    let data = event_job(&mut executor, "data", DATA);
    let protocol = event_job(&mut executor, "protocol", PROTOCOL);
    executor.activate(data, at(0));
    executor.activate(protocol, at(0));
    assert!((0..1_000).all(|_| run_next(&mut executor, ITEMS) == (data, false)));
}

#[test]
fn a_share_that_is_due_waits_for_everything_more_urgent_than_its_level() {
    let (mut executor, data, protocol) = level();
    let urgent = event_job(&mut executor, "urgent", DATA + 1);
    executor.activate(data, at(0));
    executor.activate(protocol, at(0));
    assert_eq!(run_next(&mut executor, ITEMS), (data, false));
    executor.activate(urgent, at(20));
    assert_eq!(drain(&mut executor), [urgent, protocol, data]);
}

#[test]
fn items_count_only_while_protocol_work_waits() {
    let (mut executor, data, protocol) = level();
    executor.activate(data, at(0));
    for _ in 0..100 {
        run_next(&mut executor, 1);
    }
    executor.activate(protocol, at(0));
    assert_eq!(data_before_protocol(&mut executor, protocol, 1), 16);
}

#[test]
fn protocol_work_that_runs_for_want_of_data_uses_up_what_was_due() {
    let (mut executor, data, protocol) = level();
    executor.activate(data, at(0));
    executor.activate(protocol, at(0));
    run(&mut executor, data, 0, 1, false);
    assert_eq!(run_next(&mut executor, 1), (protocol, false));
    executor.activate(data, at(20));
    assert_eq!(data_before_protocol(&mut executor, protocol, 1), 16);
}

#[test]
fn data_that_waits_for_the_share_of_its_level_has_suffered_no_inversion() {
    let (mut executor, data, protocol) = level();
    let bulk = event_job(&mut executor, "bulk", PROTOCOL - 1);
    executor.activate(data, at(0));
    executor.activate(protocol, at(0));
    executor.begin(data, at(0));
    executor.set_items_handled(ITEMS);
    executor.finish(data, at(10), true);
    run(&mut executor, protocol, 20, 30, false);
    run(&mut executor, data, 40, 50, true);
    assert_eq!(observed(&executor, data).inversions, 0);
    // Without a share, this is an inversion.
    executor.activate(bulk, at(50));
    run(&mut executor, bulk, 60, 70, false);
    run(&mut executor, data, 80, 90, false);
    assert_eq!(observed(&executor, data).inversions, 1);
}

#[test]
fn between_priorities_of_one_list_a_share_changes_nothing() {
    let config = ExecutorConfig {
        priority_mapping: |_| 0,
        max_jobs: 4,
    };
    let mut executor = Executor::new(config);
    executor.grant_share(PROTOCOL, 1);
    let data = event_job(&mut executor, "data", DATA);
    let protocol = event_job(&mut executor, "protocol", PROTOCOL);
    executor.activate(data, at(0));
    executor.activate(protocol, at(0));
    let order: Vec<_> = (0..4).map(|_| run_next(&mut executor, 4)).collect();
    let in_turn = [data, protocol, data, protocol].map(|id| (id, false));
    assert_eq!(order, in_turn);
}

#[test]
fn where_pairs_of_priorities_have_a_list_a_share_lets_no_lower_list_go_first() {
    let mut executor = Executor::new(ExecutorConfig {
        priority_mapping: |priority| priority / 2,
        max_jobs: 4,
    });
    executor.grant_share(PROTOCOL, 1);
    let [data, low, high] =
        [DATA, 25, 26].map(|priority| event_job(&mut executor, "job", priority));
    executor.activate(data, at(0));
    assert_eq!(executor.next(), Some(data));
    executor.begin(data, at(10));
    // Priority 25 uses list 12, the number of the priority with the share.
    executor.activate(low, at(10));
    executor.set_items_handled(4);
    executor.finish(data, at(11), false);
    executor.activate(high, at(12));
    assert_eq!(run_next(&mut executor, 4), (high, false));
}
