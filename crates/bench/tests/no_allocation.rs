//! Round trips allocate nothing after their start.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use isolane_bench::report::Publisher;
use isolane_bench::scenario::plan;
use isolane_bench::scenario::rtt::MemoryRun;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is the system allocator's own; counting touches a thread-local without a
// destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn round_trips_allocate_nothing_after_their_start() {
    let scenario = plan::scenario("memory", Publisher::Job, 1_024, None);
    let run = MemoryRun::new(&plan::config(scenario, 1)).expect("both ends");
    let before = ALLOCATIONS.get();
    assert!(before > 0, "the counter counts");
    run.measure();
    assert_eq!(ALLOCATIONS.get() - before, 0);
    let outcome = run.finish().expect("a result");
    assert_eq!((outcome.run.samples, outcome.run.lost), (2_000, 0));
}
