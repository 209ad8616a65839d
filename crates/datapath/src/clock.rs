//! The clock that instants of this crate belong to: CLOCK_MONOTONIC.
//!
//! The kernel stamps arriving datagrams with the wall clock, which may be set; the difference of
//! the two clocks is therefore read anew for every burst, not once.

use isolane_wire::time::Instant;

/// Now, on the monotonic clock. Two calls never go backwards.
#[must_use]
pub fn monotonic_now() -> Instant {
    Instant::new(read(libc::CLOCK_MONOTONIC))
}

/// Now, on the wall clock, in nanoseconds since 1970-01-01.
#[must_use]
pub fn wall_now_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// How to turn stamps of the wall clock into instants, for stamps taken a short while ago.
#[derive(Clone, Copy, Debug)]
pub struct WallToMonotonic {
    wall_ns: u64,
    monotonic_ns: u64,
}

impl WallToMonotonic {
    /// Reads both clocks, within some ten nanoseconds of one another.
    #[must_use]
    pub fn now() -> WallToMonotonic {
        WallToMonotonic {
            wall_ns: wall_now_ns(),
            monotonic_ns: read(libc::CLOCK_MONOTONIC),
        }
    }

    /// The instant at which the wall clock showed `wall_ns`. Never later than the reading: a
    /// stamp of the future means that the wall clock was set back, and counts as now.
    #[must_use]
    pub fn instant_of(&self, wall_ns: u64) -> Instant {
        let age_ns = self.wall_ns.saturating_sub(wall_ns);
        Instant::new(self.monotonic_ns.saturating_sub(age_ns))
    }
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec for the call; these two clocks always exist.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    nanos_of(&time)
}

/// A timespec at or after the clock's start, in nanoseconds.
pub(crate) fn nanos_of(time: &libc::timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const READING: WallToMonotonic = WallToMonotonic {
        wall_ns: 1_000_000,
        monotonic_ns: 5_000,
    };

    #[test]
    fn a_stamp_is_as_old_on_either_clock() {
        assert_eq!(READING.instant_of(999_000), Instant::new(4_000));
    }

    #[test]
    fn a_stamp_of_the_future_counts_as_now() {
        assert_eq!(READING.instant_of(2_000_000), Instant::new(5_000));
    }

    #[test]
    fn the_monotonic_clock_does_not_go_backwards() {
        let first = monotonic_now();
        assert!(monotonic_now() >= first);
    }
}
