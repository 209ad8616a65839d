//! What makes a lane readable while datagrams are kept back: nothing else would wake the reader.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// An eventfd, readable while it is rung.
pub(super) struct Bell {
    fd: OwnedFd,
    is_rung: bool,
}

impl Bell {
    pub(super) fn new() -> io::Result<Bell> {
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Bell { fd, is_rung: false })
    }

    /// A system call only where something changes.
    pub(super) fn set(&mut self, is_rung: bool) {
        if self.is_rung == is_rung {
            return;
        }
        let mut count = 1_u64;
        let bytes = (&raw mut count).cast();
        let fd = self.fd.as_raw_fd();
        // A counter of 0 or 1 can always be written, one of 1 be read.
        if is_rung {
            // SAFETY: eight bytes, for the time of the call.
            unsafe { libc::write(fd, bytes, size_of::<u64>()) };
        } else {
            // SAFETY: as above.
            unsafe { libc::read(fd, bytes, size_of::<u64>()) };
        }
        self.is_rung = is_rung;
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
