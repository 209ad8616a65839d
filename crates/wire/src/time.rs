//! Time types: [`Instant`] of the local monotonic clock, which is never sent; [`Timestamp`] and [`Duration`] of RTPS.
//!
//! RTPS counts in units of 2⁻³² s. Nanoseconds are rounded up to these units, and the units are rounded down to
//! nanoseconds. So nanoseconds are unchanged after both conversions.

use core::fmt;

use crate::{
    Error,
    bytes::{Reader, Writer},
};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Converts nanoseconds below one second to a fraction, rounded up; the result is below 2³².
#[expect(
    clippy::manual_div_ceil,
    reason = "the sum cannot overflow, and div_ceil would look at the remainder as well"
)]
const fn fraction_of(nanos: u64) -> u32 {
    (((nanos << 32) + (NANOS_PER_SECOND - 1)) / NANOS_PER_SECOND) as u32
}

/// Converts a fraction to nanoseconds below one second, rounded down.
const fn nanos_of(fraction: u32) -> u64 {
    (fraction as u64 * NANOS_PER_SECOND) >> 32
}

/// Point in time of a monotonic clock, in nanoseconds. The clock's origin is arbitrary; only differences matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// Creates the instant `nanos` nanoseconds after the clock's origin.
    #[inline]
    #[must_use]
    pub const fn new(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's origin.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to this instant; zero if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> core::time::Duration {
        core::time::Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Saturates at the end of the clock's range, 584 years after its origin.
impl core::ops::Add<core::time::Duration> for Instant {
    type Output = Self;

    #[inline]
    fn add(self, duration: core::time::Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

/// Wall-clock time on the wire: seconds since 1970-01-01 UTC and fractions of 2⁻³² s (`Time_t`, RTPS 2.5
/// §9.3.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Whole seconds since the epoch.
    pub seconds: u32,
    /// Fraction of a second, in units of 2⁻³² s.
    pub fraction: u32,
}

impl Timestamp {
    /// Epoch.
    pub const ZERO: Self = Self {
        seconds: 0,
        fraction: 0,
    };
    /// TIME_INVALID.
    pub const INVALID: Self = Self {
        seconds: u32::MAX,
        fraction: u32::MAX,
    };
    /// TIME_INFINITE: later than every other valid timestamp.
    pub const INFINITE: Self = Self {
        seconds: u32::MAX,
        fraction: u32::MAX - 1,
    };

    /// Converts nanoseconds since the epoch. Saturates at the end of the range of `seconds`, in the year 2106.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        let seconds = nanos / NANOS_PER_SECOND;
        if seconds >= u32::MAX as u64 {
            return Self {
                seconds: u32::MAX - 1,
                fraction: u32::MAX,
            };
        }
        Self {
            seconds: seconds as u32,
            fraction: fraction_of(nanos % NANOS_PER_SECOND),
        }
    }

    /// Returns nanoseconds since the epoch. [`INVALID`](Self::INVALID) and [`INFINITE`](Self::INFINITE) are
    /// converted like other values, so the caller must check for them before.
    #[inline]
    #[must_use]
    pub const fn to_nanos(self) -> u64 {
        self.seconds as u64 * NANOS_PER_SECOND + nanos_of(self.fraction)
    }

    #[inline]
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            seconds: reader.u32()?,
            fraction: reader.u32()?,
        })
    }

    #[inline]
    pub(crate) fn write(self, writer: &mut Writer<'_>) {
        writer.u32(self.seconds);
        writer.u32(self.fraction);
    }
}

/// Time span on the wire: seconds and fractions of 2⁻³² s (`Duration_t`, RTPS 2.5 §9.3.2.2).
/// [`INFINITE`](Self::INFINITE) is greater than all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    /// Whole seconds.
    pub seconds: i32,
    /// Fraction of a second, in units of 2⁻³² s.
    pub fraction: u32,
}

impl Duration {
    /// Zero duration.
    pub const ZERO: Self = Self {
        seconds: 0,
        fraction: 0,
    };
    /// Infinite duration.
    pub const INFINITE: Self = Self {
        seconds: i32::MAX,
        fraction: u32::MAX,
    };

    /// Converts milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u32) -> Self {
        Self {
            seconds: (millis / 1000) as i32,
            fraction: fraction_of((millis % 1000) as u64 * 1_000_000),
        }
    }

    /// Converts to Rust's duration; `None` if infinite. A negative value, which is invalid for every policy, becomes
    /// zero.
    #[must_use]
    pub fn to_core(self) -> Option<core::time::Duration> {
        if self.seconds == i32::MAX {
            return None;
        }
        let Ok(seconds) = u64::try_from(self.seconds) else {
            return Some(core::time::Duration::ZERO);
        };
        Some(core::time::Duration::new(
            seconds,
            nanos_of(self.fraction) as u32,
        ))
    }

    /// Reads a duration. Implementations send different fractions of an infinite duration, so only `seconds` decides.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let read = Self {
            seconds: reader.i32()?,
            fraction: reader.u32()?,
        };
        Ok(if read.seconds == i32::MAX {
            Self::INFINITE
        } else {
            read
        })
    }

    pub(crate) fn write(self, writer: &mut Writer<'_>) {
        writer.i32(self.seconds);
        writer.u32(self.fraction);
    }
}

/// Durations of 68 years and more become [`Duration::INFINITE`].
impl From<core::time::Duration> for Duration {
    fn from(duration: core::time::Duration) -> Self {
        match i32::try_from(duration.as_secs()) {
            Ok(seconds) if seconds < i32::MAX => Self {
                seconds,
                fraction: fraction_of(u64::from(duration.subsec_nanos())),
            },
            _ => Self::INFINITE,
        }
    }
}

/// `None` for an infinite duration; see [`Duration::to_core`].
impl From<Duration> for Option<core::time::Duration> {
    fn from(duration: Duration) -> Self {
        duration.to_core()
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_core() {
            Some(duration) => write!(formatter, "{duration:?}"),
            None => formatter.write_str("infinite"),
        }
    }
}
