//! Test that jobs allocate nothing: all memory is taken in `Executor::new`.

#[path = "../../../tests/support/counting_allocator.rs"]
mod counting_allocator;

use counting_allocator::allocator_calls_of;
use isolane_executor::{Executor, ExecutorConfig, JobConfig, JobId, Trigger};
use isolane_wire::time::Instant;

const JOBS: usize = 64;

/// A full table of all kinds, run for some time, with jobs that come and go.
fn exercise(executor: &mut Executor) -> u64 {
    let mut activations = 0;
    let mut ids = [None::<JobId>; JOBS];
    for step in 0..10_000_u64 {
        let now = Instant::new(step * 100);
        let place = (step * 7 % JOBS as u64) as usize;
        if let Some(id) = ids[place].take_if(|_| step % 11 == 0) {
            executor.remove(id);
        } else if let Some(id) = ids[place] {
            executor.activate(id, now);
        } else {
            let trigger = match step % 3 {
                0 => Trigger::Event,
                1 => Trigger::Periodic {
                    period_ns: 1_000 + step,
                    offset_ns: 0,
                },
                _ => Trigger::Sporadic {
                    min_interarrival_ns: 5_000,
                },
            };
            let config = JobConfig {
                trigger,
                ..JobConfig::event("job", (step % 32) as u8)
            };
            ids[place] = executor.add(config).ok();
        }
        executor.release(now);
        if let Some(id) = executor.next() {
            executor.polled(now, step as u32);
            executor.begin(id, now);
            executor.record_arrival((step % 32) as u8, Instant::new(step * 90));
            executor.finish(id, Instant::new(step * 100 + 60), step % 5 == 0);
            activations += 1;
        }
    }
    activations
}

#[test]
fn nothing_is_allocated_after_new() {
    let mappings: [fn(u8) -> u8; 2] = [|priority| priority, |_| 0];
    for priority_mapping in mappings {
        let config = ExecutorConfig {
            priority_mapping,
            max_jobs: JOBS,
        };
        let mut executor = None;
        let calls = allocator_calls_of(|| executor = Some(Executor::new(config)));
        assert!(calls > 0, "the table is allocated by new");
        let mut executor = executor.expect("just made");
        let mut activations = 0;
        let calls = allocator_calls_of(|| activations = exercise(&mut executor));
        assert_eq!(calls, 0);
        assert!(activations > 1_000, "{activations} activations");
    }
}
