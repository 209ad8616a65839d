//! Zeroed pages of the system for frames.
//!
//! The allocator is not used, because freed memory is reused, while a device may still access it. The kernel pins the
//! pages of shared memory until the last copy of a socket's descriptor is closed, including those of child processes,
//! and revokes a device's access some time after that. Unmapped pages that are still pinned belong to the kernel alone,
//! so late writes do no harm.

use std::io;
use std::ptr::{self, NonNull};

pub(super) const PAGE_BYTES: usize = 4_096;

/// The system has no memory left for frames.
#[derive(Debug, thiserror::Error)]
#[error(
    "no {bytes} bytes of memory are left for frames ({source}): raise the limit of the process (ulimit -v, or LimitAS= of \
     a systemd unit), or use fewer levels, each of which takes its own frames"
)]
pub struct NoMemory {
    /// Requested bytes.
    pub bytes: usize,
    /// Error of the system.
    pub source: io::Error,
}

/// Mapping of fresh pages, unmapped when dropped.
pub(super) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is owned; this type only stores its address and never accesses its contents.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps `bytes` bytes, rounded up to whole pages, at least one. A page is allocated at its first write.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub(super) fn new(bytes: usize) -> Result<Pages, NoMemory> {
        let bytes = bytes.max(1).checked_next_multiple_of(PAGE_BYTES);
        let bytes = bytes.expect("frames fit into the address space");
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at a place the kernel chooses touches no memory that is in use.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, rights, flags, -1, 0) };
        let start = NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED);
        match start {
            Some(start) => Ok(Pages { start, bytes }),
            None => Err(NoMemory {
                bytes,
                source: io::Error::last_os_error(),
            }),
        }
    }

    /// Page-aligned address of the first byte.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Size in bytes, a multiple of the page size.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and everything that points into it keeps this value alive.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
