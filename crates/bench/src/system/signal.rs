//! SIGTERM and SIGINT as something that can be polled.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr;

/// Blocks SIGTERM and SIGINT for the calling thread and returns a descriptor that is readable when
/// one arrives. Threads started later inherit the block; call this before starting any.
pub(crate) fn terminations() -> io::Result<OwnedFd> {
    let mut signals = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set before anything reads it; all pointers outlive the
    // calls; a null old mask is allowed.
    let descriptor = unsafe {
        libc::sigemptyset(signals.as_mut_ptr());
        libc::sigaddset(signals.as_mut_ptr(), libc::SIGTERM);
        libc::sigaddset(signals.as_mut_ptr(), libc::SIGINT);
        let blocked = libc::pthread_sigmask(libc::SIG_BLOCK, signals.as_ptr(), ptr::null_mut());
        if blocked != 0 {
            return Err(io::Error::from_raw_os_error(blocked));
        }
        libc::signalfd(-1, signals.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: signalfd returned a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
