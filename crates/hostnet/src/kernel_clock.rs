//! Error bounds of the kernel's clock, as its synchroniser reports them (adjtimex(2)).

use std::io;

/// Error bounds of the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelClock {
    /// True if a program synchronises the clock (STA_UNSYNC is clear).
    pub is_kept: bool,
    /// Maximum error in microseconds. The kernel adds 500 ppm until the next report; some synchronisers always report
    /// 0.
    pub maximum_error_us: u64,
    /// Estimated error in microseconds.
    pub estimated_error_us: u64,
    /// TAI minus UTC in seconds; 0 if unknown to the kernel.
    pub tai_offset_s: i32,
}

/// STA_UNSYNC (linux/timex.h).
const UNSYNCHRONISED: libc::c_int = 0x40;

/// Reads the error bounds; sets nothing.
///
/// # Errors
/// The system's error.
pub fn kernel_clock() -> io::Result<KernelClock> {
    // SAFETY: all bits of `timex` are numbers, for which zero is a value; `modes` of zero sets nothing.
    let mut clock: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `clock` is a `timex` that lives and is exclusively borrowed for the length of the call.
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
        // The kernel stops counting at 16 s, and sets STA_UNSYNC.
        assert!(clock.maximum_error_us <= 16_000_000, "{clock:?}");
    }
}
