//! CLOCK_MONOTONIC, and conversion of the kernel's receive stamps to it.
//!
//! The kernel stamps datagrams with CLOCK_REALTIME. NTP and PTP slew both clocks alike, so the offset between the
//! clocks changes only in *steps*: a set clock, a leap second, a suspended machine. An [`ArrivalClock`] reads both
//! clocks for every burst, detects steps and follows them. Stamps that may precede a step are not converted.

use isolane_wire::time::Instant;

use crate::limits::{CLOCK_READINGS, CLOCK_STEP_NS};

/// Current time of the monotonic clock.
#[must_use]
pub fn monotonic_now() -> Instant {
    Instant::new(read(libc::CLOCK_MONOTONIC))
}

/// Current wall-clock time in nanoseconds since 1970-01-01.
#[must_use]
pub fn wall_now_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// Offset of the wall clock from the monotonic clock, in nanoseconds modulo 2^64. Each try reads the wall clock between
/// two readings of the monotonic one. The shortest try is used, so an interrupt does not shift the offset.
#[must_use]
pub fn wall_offset_ns() -> u64 {
    let tries = (0..CLOCK_READINGS).map(|_| {
        let begin = read(libc::CLOCK_MONOTONIC);
        let wall = wall_now_ns();
        let took = read(libc::CLOCK_MONOTONIC).saturating_sub(begin);
        (took, wall.wrapping_sub(begin + took / 2))
    });
    tries
        .min_by_key(|&(took, _)| took)
        .map_or(0, |(_, offset)| offset)
}

/// Both clocks, read in immediate succession.
#[derive(Clone, Copy, Debug)]
struct Reading {
    monotonic_ns: u64,
    wall_ns: u64,
}

impl Reading {
    fn now() -> Reading {
        Reading {
            monotonic_ns: read(libc::CLOCK_MONOTONIC),
            wall_ns: wall_now_ns(),
        }
    }

    /// Offset of the wall clock; negative if the wall clock was never set.
    fn distance_ns(&self) -> i64 {
        self.wall_ns.wrapping_sub(self.monotonic_ns) as i64
    }
}

/// Converter from recent wall-clock stamps to instants.
#[derive(Clone, Copy, Debug)]
pub struct ArrivalClock {
    last: Reading,
    steps: u32,
}

impl Default for ArrivalClock {
    fn default() -> ArrivalClock {
        ArrivalClock::new()
    }
}

impl ArrivalClock {
    /// Reads both clocks; detects steps from now on.
    #[must_use]
    pub fn new() -> ArrivalClock {
        ArrivalClock {
            last: Reading::now(),
            steps: 0,
        }
    }

    /// Reads both clocks again, through the vDSO: no system call with the usual clock sources.
    pub fn look(&mut self) {
        self.take(Reading::now);
    }

    /// Detects a step. An interrupt between the two readings also changes the offset, but not repeatedly, so a step
    /// must show in several readings.
    fn take(&mut self, mut read: impl FnMut() -> Reading) {
        let known = self.last.distance_ns();
        for _ in 0..CLOCK_READINGS {
            self.last = read();
            if self.last.distance_ns().abs_diff(known) <= CLOCK_STEP_NS {
                return;
            }
        }
        self.steps = self.steps.wrapping_add(1);
    }

    /// Number of detected steps, modulo 2^32. A stamp from before a step is meaningless after the step.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Converts a wall-clock time to an instant, never later than the last reading.
    #[must_use]
    pub fn instant_of(&self, wall_ns: u64) -> Instant {
        let age_ns = self.last.wall_ns.saturating_sub(wall_ns);
        Instant::new(self.last.monotonic_ns.saturating_sub(age_ns))
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

/// Converts a timespec to nanoseconds; negative seconds count as zero. The kernel's nanoseconds are below a second, and
/// its seconds fit until 2554.
#[inline]
pub(crate) fn nanos_of(time: &libc::timespec) -> u64 {
    let seconds = time.tv_sec.max(0) as u64;
    seconds
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn at(monotonic_ns: u64, wall_ns: u64) -> Reading {
        Reading {
            monotonic_ns,
            wall_ns,
        }
    }

    fn clock() -> ArrivalClock {
        ArrivalClock {
            last: at(5 * SECOND_NS, 1_000 * SECOND_NS),
            steps: 0,
        }
    }

    #[test]
    fn a_stamp_is_as_old_on_either_clock() {
        let stamp = 1_000 * SECOND_NS - 7;
        assert_eq!(clock().instant_of(stamp), Instant::new(5 * SECOND_NS - 7));
    }

    #[test]
    fn a_stamp_of_the_future_counts_as_now() {
        let stamp = 1_000 * SECOND_NS + 7;
        assert_eq!(clock().instant_of(stamp), Instant::new(5 * SECOND_NS));
    }

    #[test]
    fn time_that_passes_on_both_clocks_is_no_step() {
        let mut clock = clock();
        clock.take(|| at(3_605 * SECOND_NS + 40, 4_600 * SECOND_NS));
        assert_eq!(clock.steps(), 0);
        let stamp = 4_600 * SECOND_NS - 100;
        let expected = Instant::new(3_605 * SECOND_NS - 60);
        assert_eq!(clock.instant_of(stamp), expected);
    }

    #[test]
    fn a_step_either_way_is_noticed_and_followed() {
        for wall_ns in [1_000 * SECOND_NS + 100_000, 3 * SECOND_NS] {
            let mut clock = clock();
            clock.take(|| at(5 * SECOND_NS, wall_ns));
            assert_eq!(clock.steps(), 1);
            let expected = Instant::new(5 * SECOND_NS - 10);
            assert_eq!(clock.instant_of(wall_ns - 10), expected);
            clock.take(|| at(6 * SECOND_NS, wall_ns + SECOND_NS));
            assert_eq!(clock.steps(), 1, "once");
        }
    }

    #[test]
    fn an_interruption_between_the_two_clocks_is_no_step() {
        let mut clock = clock();
        let mut lates_ns = [0, 2_000_000].into_iter().rev();
        clock.take(|| {
            let late_ns = lates_ns.next().unwrap_or(0);
            at(6 * SECOND_NS, 1_001 * SECOND_NS + late_ns)
        });
        assert_eq!(clock.steps(), 0);
        let expected = Instant::new(6 * SECOND_NS);
        assert_eq!(clock.instant_of(1_001 * SECOND_NS), expected);
    }

    #[test]
    fn the_monotonic_clock_does_not_go_backwards() {
        let first = monotonic_now();
        assert!(monotonic_now() >= first);
    }
}
