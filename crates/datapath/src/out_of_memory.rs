//! Failed allocations: an allocator that ends the program, and fallible allocation of zeroed memory.

use std::alloc::{GlobalAlloc, Layout, System, alloc_zeroed};
use std::io::Write as _;
use std::ptr;

/// Size in bytes from which failed requests for zeroed memory return null.
const LARGE_BYTES: usize = 128 << 10;
/// Exit code for a missing resource of the machine.
const NOT_ALLOWED: i32 = 3;
/// Maximum length of the message in bytes.
const MESSAGE_BYTES: usize = 200;

/// System allocator for `#[global_allocator]`. A failed allocation prints its size to standard error and exits with
/// code 3, where Rust's default aborts. Failed requests for 128 KiB and more of zeroed memory return null
/// ([`zeroed`]). A failed `try_reserve` exits.
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

// SAFETY: each call is passed to the system's allocator unchanged, and its result is returned.
unsafe impl GlobalAlloc for ExitWithoutMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        Self::checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let start = unsafe { System.alloc_zeroed(layout) };
        match layout.size() {
            LARGE_BYTES.. => start,
            bytes => Self::checked(start, bytes),
        }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        Self::checked(unsafe { System.realloc(start, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) }
    }
}

/// Ends the program without allocating.
#[cold]
fn end(bytes: usize) -> ! {
    let mut message = [0; MESSAGE_BYTES];
    let mut room = &mut message[..];
    // The message fits.
    let _ = writeln!(
        room,
        "error: no {bytes} bytes of memory are left: raise the limit of the process (ulimit -v, LimitAS= of a service)"
    );
    let length = MESSAGE_BYTES - room.len();
    // SAFETY: `length` bytes of `message` are initialised. If standard error is closed, the message is lost.
    unsafe { libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), length) };
    // No destructors run: one could allocate, or wait for a lock that this thread holds.
    // SAFETY: the call touches no memory of the program.
    unsafe { libc::_exit(NOT_ALLOWED) }
}

/// Allocates `bytes` bytes of zeroed memory; `None` if the system has none left. Large blocks take memory page by page,
/// at the first write.
#[must_use]
pub fn zeroed(bytes: usize) -> Option<Box<[u8]>> {
    if bytes == 0 {
        return Some(Box::default());
    }
    let layout = Layout::array::<u8>(bytes).ok()?;
    // SAFETY: the layout has a size other than zero.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return None;
    }
    let memory = ptr::slice_from_raw_parts_mut(start, bytes);
    // SAFETY: the global allocator returned `bytes` zeroed bytes with the layout of such a slice, and they have no
    // other owner.
    Some(unsafe { Box::from_raw(memory) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_and_more_than_there_can_be_is_none() {
        assert!(
            zeroed(100_000).is_some_and(|it| it.len() == 100_000 && it.iter().all(|&b| b == 0))
        );
        assert!(zeroed(0).is_some_and(|it| it.is_empty()));
        assert!(zeroed(usize::MAX / 2 - 4_096).is_none());
        assert!(zeroed(usize::MAX).is_none());
    }
}
