//! All memory is taken in `Executor::new`: whatever jobs do afterwards allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use isolane_executor::{Executor, ExecutorConfig, JobConfig, JobId, Order, Trigger};
use isolane_wire::time::Instant;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, which counts for each thread.
struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing. The
// other methods' defaults come here.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, bytes: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(bytes, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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
                deadline_ns: Some(150),
                ..JobConfig::event("job", (step % 32) as u8)
            };
            ids[place] = executor.add(config).ok();
        }
        executor.release(now);
        if let Some(id) = executor.next() {
            executor.begin(id, now);
            executor.finish(id, Instant::new(step * 100 + 60), step % 5 == 0);
            activations += 1;
        }
    }
    activations
}

#[test]
fn nothing_is_allocated_after_new() {
    for order in [Order::Priority, Order::Fifo] {
        let before_new = ALLOCATIONS.get();
        let mut executor = Executor::new(ExecutorConfig {
            order,
            max_jobs: JOBS,
        });
        let before = ALLOCATIONS.get();
        assert!(before > before_new, "the table is allocated by new");
        let activations = exercise(&mut executor);
        assert_eq!(ALLOCATIONS.get(), before);
        assert!(activations > 1_000, "{activations} activations");
    }
}
