//! How well the kernel's clock is kept, as those who keep it have told the kernel.

use std::io;

/// What the kernel knows of its clock's error (adjtimex).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelClock {
    /// Whether somebody keeps it (STA_UNSYNC is clear).
    pub is_kept: bool,
    /// How far it may be from what it is kept by, in microseconds. It grows by 500 parts of a million until it is
    /// told again; some who keep the clock tell 0, whatever is so.
    pub maximum_error_us: u64,
    /// How far it is thought to be, in microseconds.
    pub estimated_error_us: u64,
    /// Seconds that TAI is ahead of UTC; 0: the kernel was not told.
    pub tai_offset_s: i32,
}

/// Nobody keeps the clock (linux/timex.h).
const UNSYNCHRONISED: libc::c_int = 0x40;

/// What the kernel knows of its clock. It is only asked, and nothing is set.
///
/// # Errors
/// What the system said.
pub fn kernel_clock() -> io::Result<KernelClock> {
    // SAFETY: all bits of `timex` are numbers, for which zero is a value; `modes` of zero sets nothing.
    let mut clock: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `clock` is a `timex` that lives and is ours to write to for the length of the call.
    if unsafe { libc::adjtimex(&raw mut clock) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let error = |microseconds: libc::c_long| u64::try_from(microseconds).unwrap_or(u64::MAX);
    Ok(KernelClock {
        is_kept: clock.status & UNSYNCHRONISED == 0,
        maximum_error_us: error(clock.maxerror),
        estimated_error_us: error(clock.esterror),
        tai_offset_s: clock.tai,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn anybody_may_ask() {
        let clock = super::kernel_clock().expect("an answer");
        // The kernel stops counting at 16 s, and calls the clock unkept then.
        assert!(clock.maximum_error_us <= 16_000_000, "{clock:?}");
    }
}
