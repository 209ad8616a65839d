//! Counting allocator for the tests that check that a path does not allocate.
//!
//! Each of these tests includes the file by path, since a program has one global allocator. Every thread has its own
//! count, so parallel tests do not disturb each other. Frees count like allocations: memory that the hot path frees
//! was allocated on it earlier.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static HELD_BYTES: Cell<isize> = const { Cell::new(0) };
}

/// System allocator that counts the calls of each thread.
struct Counting;

/// Counts a call that allocates `taken` bytes and frees `given_back` bytes.
fn count(taken: usize, given_back: usize) {
    CALLS.set(CALLS.get() + 1);
    HELD_BYTES.set(HELD_BYTES.get() + taken.cast_signed() - given_back.cast_signed());
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches a thread-local
// without a destructor, which allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, bytes: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(bytes, layout, size) }
    }

    unsafe fn dealloc(&self, bytes: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(bytes, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls of the allocator by this thread so far.
pub(crate) fn allocator_calls() -> u64 {
    CALLS.get()
}

/// Calls of the allocator by this thread while `run` runs.
pub(crate) fn allocator_calls_of(run: impl FnOnce()) -> u64 {
    let before = allocator_calls();
    run();
    allocator_calls() - before
}

/// Bytes that this thread has allocated and not freed since an earlier call, whose result is `before`; the first call
/// takes 0. The number is negative if the thread has freed memory of another thread.
#[allow(dead_code, reason = "most tests that include this ask for calls alone")]
pub(crate) fn held_bytes_since(before: isize) -> isize {
    HELD_BYTES.get() - before
}

#[test]
fn the_allocator_counts() {
    assert!(allocator_calls_of(|| drop(vec![1, 2, 3])) >= 2);
    let before = held_bytes_since(0);
    let held = vec![0_u8; 1_000];
    assert_eq!(held_bytes_since(before), held.len().cast_signed());
}
