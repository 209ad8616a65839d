//! The one clock of a measurement: `CLOCK_MONOTONIC`, in nanoseconds, the same in every process
//! and namespace of a machine, so that stamps of both ends and of the cable can be subtracted.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds in a second.
pub const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The monotonic time in nanoseconds since an arbitrary start (in practice: since boot).
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * NANOS_PER_SECOND + time.tv_nsec as u64
}

/// The monotonic time now, and what to subtract from times of the real-time clock, such as the
/// kernel's stamps on frames, to have them in monotonic time.
pub(crate) fn now_and_realtime_offset_ns() -> (u64, u64) {
    let now = now_ns();
    let real = clock_gettime(ClockId::Realtime);
    let real_ns = real.tv_sec as u64 * NANOS_PER_SECOND + real.tv_nsec as u64;
    (now, real_ns.saturating_sub(now))
}

/// A duration in nanoseconds as the kernel takes it.
pub(crate) fn timespec(duration_ns: u64) -> Timespec {
    Timespec {
        tv_sec: (duration_ns / NANOS_PER_SECOND) as i64,
        tv_nsec: (duration_ns % NANOS_PER_SECOND) as i64,
    }
}

/// Nanoseconds as the microseconds of reports.
pub fn micros(duration_ns: u64) -> f64 {
    duration_ns as f64 / 1e3
}
