//! Mapping of the classifier's shared memory into this process.

use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

use super::layout::Shared;

/// Mapped value of the classifier's map. It stays mapped after the program is gone.
#[derive(Debug)]
pub(super) struct Memory(NonNull<Shared>);

impl Memory {
    /// Maps the value of `map`. The caller has checked that its size is that of [`Shared`].
    pub(super) fn map(map: BorrowedFd<'_>) -> io::Result<Memory> {
        // SAFETY: a new mapping, placed by the kernel in free address space.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size_of::<Shared>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(address.cast())
            .map(Memory)
            .ok_or_else(|| io::Error::other("the kernel mapped the classifier's memory at 0"))
    }
}

impl Deref for Memory {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        // SAFETY: mapped for as long as this value lives, page-aligned, of this size, and zeroed by
        // the kernel when it was made, which is valid. Every field that anyone writes is an atomic.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this size, and no reference outlives this value.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Shared>()) };
    }
}
