//! System calls without a safe wrapper elsewhere, each behind a safe function or type.
//!
//! Apart from `namespace` (setns in threads, the hook between fork and exec) this is the only module of the crate with
//! unsafe code. No file here depends on cables or floods.

pub(crate) mod packet;
pub(crate) mod queues;
pub(crate) mod socket;

use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::{io, ptr};

/// Result of a system call that returns a number, or -1 and sets errno.
fn count(result: impl TryInto<usize>) -> io::Result<usize> {
    result.try_into().map_err(|_| io::Error::last_os_error())
}

/// Result of a system call that does not wait; `None` if nothing is available.
fn available(result: impl TryInto<usize>) -> io::Result<Option<usize>> {
    match count(result) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        result => result.map(Some),
    }
}

/// Sets SCHED_FIFO at `priority` for the calling thread.
pub(crate) fn set_fifo(priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: libc::c_int::from(priority),
    };
    // SAFETY: process 0 is the calling thread; `parameters` outlives the call.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    count(result).map(drop)
}

/// Blocks SIGTERM, SIGINT and SIGHUP for the calling thread and returns a descriptor that becomes readable when one
/// arrives. Threads started later inherit the block; call this before starting any.
///
/// An ignored SIGHUP (nohup(1)) stays ignored; if blocked, it would be read here.
pub(crate) fn terminations() -> io::Result<OwnedFd> {
    let mut signals = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set before anything reads it; all pointers outlive the
    // calls; a null old mask is allowed.
    let descriptor = unsafe {
        libc::sigemptyset(signals.as_mut_ptr());
        libc::sigaddset(signals.as_mut_ptr(), libc::SIGTERM);
        libc::sigaddset(signals.as_mut_ptr(), libc::SIGINT);
        if !is_ignored(libc::SIGHUP) {
            libc::sigaddset(signals.as_mut_ptr(), libc::SIGHUP);
        }
        let blocked = libc::pthread_sigmask(libc::SIG_BLOCK, signals.as_ptr(), ptr::null_mut());
        if blocked != 0 {
            return Err(io::Error::from_raw_os_error(blocked));
        }
        libc::signalfd(-1, signals.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    count(descriptor)?;
    // SAFETY: signalfd returned a new descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Returns whether this process ignores the signal.
fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null new action changes nothing; the old one is read only where the call has written it.
    unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
