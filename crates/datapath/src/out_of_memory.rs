//! The end of a program that finds no memory for something small.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write as _;
use std::process::{abort, exit};
use std::sync::atomic::{AtomicBool, Ordering};

/// From so many bytes on a failed request for zeroed memory is left to the one who asks: [`zeroed`](crate::zeroed).
const LARGE_BYTES: usize = 128 << 10;
/// Exit code of a program for which the machine has not what it needs.
const NOT_ALLOWED: i32 = 3;
/// The longest message.
const MESSAGE_BYTES: usize = 200;

/// The system's allocator, for `#[global_allocator]` of a program. Where it has no memory left, the program ends with a line
/// on standard error that has the amount, and exit code 3; with Rust's own it aborts. Memory for frames and samples is not
/// concerned: its lack is an error of [`zeroed`](crate::zeroed).
#[derive(Debug)]
pub struct ExitWithoutMemory;

impl ExitWithoutMemory {
    fn checked(start: *mut u8, bytes: usize) -> *mut u8 {
        if start.is_null() {
            end(bytes);
        }
        start
    }
}

// SAFETY: each call goes to the system's allocator as it came, and what that returns is returned.
unsafe impl GlobalAlloc for ExitWithoutMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        Self::checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let start = unsafe { System.alloc_zeroed(layout) };
        match layout.size() {
            LARGE_BYTES.. => start,
            bytes => Self::checked(start, bytes),
        }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        Self::checked(unsafe { System.realloc(start, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(start, layout) }
    }
}

/// Takes no memory.
#[cold]
fn end(bytes: usize) -> ! {
    static ENDS: AtomicBool = AtomicBool::new(false);
    if ENDS.swap(true, Ordering::Relaxed) {
        abort();
    }
    let mut message = [0; MESSAGE_BYTES];
    let mut room = &mut message[..];
    // It is shorter.
    let _ = writeln!(
        room,
        "error: no {bytes} bytes of memory are left: raise the limit of the process (ulimit -v, LimitAS= of a service)"
    );
    let length = MESSAGE_BYTES - room.len();
    // SAFETY: so many bytes of it are there. Where standard error is closed nobody is told.
    unsafe { libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), length) };
    exit(NOT_ALLOWED)
}
