//! Scheduling policy of the calling thread.

use std::io;

/// Sets SCHED_FIFO at `priority` for the calling thread.
pub(crate) fn set_fifo(priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: libc::c_int::from(priority),
    };
    // SAFETY: process 0 is the calling thread; `parameters` outlives the call.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
