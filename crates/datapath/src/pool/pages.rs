//! Whole pages of the system, zeroed, for frames to lie in.
//!
//! Not the allocator's: what is given back to it, it gives to others, and a device may not be done by
//! then. The kernel pins the pages of shared memory until the last copy of a socket's descriptor is
//! closed, one that a child process was born with included, and takes them from a device that reads
//! and writes them itself some time after that. Pages that were unmapped meanwhile are the kernel's
//! alone: what is still written there, nobody has for something else.

use std::io;
use std::ptr::{self, NonNull};

/// Bytes of a page, which every mapping begins with.
pub(super) const PAGE_BYTES: usize = 4_096;

/// The system has no memory left for frames.
#[derive(Debug, thiserror::Error)]
#[error(
    "no {bytes} bytes of memory are left for frames ({source}): raise the limit of the process (ulimit -v, or LimitAS= of \
     a systemd unit), or use fewer levels, each of which takes frames of its own"
)]
pub struct NoMemory {
    /// Bytes asked for.
    pub bytes: usize,
    /// What the system said.
    pub source: io::Error,
}

/// A mapping of fresh pages, given back when dropped.
pub(super) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is owned; this type reads and writes nothing of it, and says where it lies.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// So many bytes and what is missing to a whole page, at least one. A page takes memory when it is
    /// written to for the first time.
    ///
    /// # Errors
    /// [`NoMemory`]: memory for frames is taken before the start.
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

    /// The first byte, at the beginning of a page.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// A number of whole pages.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own; whoever points into it keeps it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
