//! Clock of all measurements: `CLOCK_MONOTONIC` in nanoseconds. All processes and namespaces of a machine share it, so
//! timestamps of both ends and of the cable can be subtracted.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds per second.
pub const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Monotonic time in nanoseconds since an arbitrary start (in practice the boot).
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * NANOS_PER_SECOND + time.tv_nsec as u64
}

/// Monotonic time, and the offset to subtract from real-time timestamps, such as the kernel's receive timestamps, to
/// convert them to monotonic time.
pub(crate) fn now_and_realtime_offset_ns() -> (u64, u64) {
    let now = now_ns();
    let real = clock_gettime(ClockId::Realtime);
    let real_ns = real.tv_sec as u64 * NANOS_PER_SECOND + real.tv_nsec as u64;
    (now, real_ns.saturating_sub(now))
}

pub(crate) fn timespec(duration_ns: u64) -> Timespec {
    Timespec {
        tv_sec: (duration_ns / NANOS_PER_SECOND) as i64,
        tv_nsec: (duration_ns % NANOS_PER_SECOND) as i64,
    }
}

/// Converts nanoseconds to the microseconds used in reports.
pub fn micros(duration_ns: u64) -> f64 {
    duration_ns as f64 / 1e3
}
