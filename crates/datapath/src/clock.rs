//! The clock that instants of this crate belong to: CLOCK_MONOTONIC.
//!
//! The kernel stamps arriving datagrams with the wall clock. What NTP and PTP slew, they slew for
//! both clocks, so their distance is constant but for *steps*: somebody sets the wall clock, a
//! leap second, a suspended machine. An [`ArrivalClock`] reads both clocks for every burst, so it
//! follows a step, and it notices one: stamps that may be from before the step are not turned
//! into instants.

use isolane_wire::time::Instant;

use crate::limits::{CLOCK_READINGS, CLOCK_STEP_NS};

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

/// Offset of the wall clock from the monotonic one, in nanoseconds modulo 2^64. Each try reads the wall clock between two
/// readings of the monotonic one; the try that took least counts, so an interrupt does not shift the offset.
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

/// Both clocks, read one directly after the other.
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

    /// How far the wall clock is ahead. Negative where nobody ever set it.
    fn distance_ns(&self) -> i64 {
        self.wall_ns.wrapping_sub(self.monotonic_ns) as i64
    }
}

/// Turns stamps of the wall clock, taken a short while ago, into instants.
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
    /// Reads both clocks; steps are noticed from now on.
    #[must_use]
    pub fn new() -> ArrivalClock {
        ArrivalClock {
            last: Reading::now(),
            steps: 0,
        }
    }

    /// Reads both clocks again, by the vDSO: no system call on the usual clock sources.
    pub fn look(&mut self) {
        self.take(Reading::now);
    }

    /// A thread that was interrupted between the two clocks also reads another distance, but not
    /// again and again: only what repeats is a step.
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

    /// How often the wall clock was stepped, as far as was noticed, modulo 2^32. A stamp from
    /// before a step that was noticed later means nothing.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// The instant at which the wall clock showed `wall_ns`, never later than the last look.
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

/// A timespec in nanoseconds; seconds from before the clock's start count as none. The kernel's
/// nanoseconds are below a second, and its seconds fit until the year 2554.
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
