//! Whether a one-way delay between two machines may be told.
//!
//! Where both ends have one clock there is nothing to ask. Between two machines a delay is the difference of
//! two clocks, and any number comes of that: so it is refused unless it is known how far both clocks are from
//! one and the same reference, and unless the delay is beyond the sum of that.

use std::fmt;

use super::{ClockError, duration};

/// How much of a difference between two machines' clocks may be the clocks, where both errors hold: what they are
/// provided with ([`ClockError::Bound`]) is for whoever runs the network to see to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneWayBound {
    nanoseconds: u64,
}

impl OneWayBound {
    /// In nanoseconds, either way.
    pub fn nanoseconds(self) -> u64 {
        self.nanoseconds
    }

    /// Whether a delay that was measured is one at all.
    ///
    /// # Errors
    /// It is not beyond the bound: it may be zero, or twice as long.
    pub fn carries(self, delay_ns: u64) -> Result<(), OneWayRefusal> {
        match delay_ns > self.nanoseconds {
            true => Ok(()),
            false => Err(OneWayRefusal::BelowBound {
                delay_ns,
                bound_ns: self.nanoseconds,
            }),
        }
    }
}

/// Why a one-way delay between two machines is not told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OneWayRefusal {
    /// How far a clock may be off is not known.
    Unknown {
        /// What is known of it.
        error: ClockError,
    },
    /// Both errors are known, against different references, whose distance is not.
    References {
        /// What one clock is kept by.
        one: String,
        /// What the other is kept by.
        other: String,
    },
    /// The clocks may be as far apart as the delay is long.
    BelowBound {
        /// What was measured.
        delay_ns: u64,
        /// The sum of both clocks' errors.
        bound_ns: u64,
    },
}

impl fmt::Display for OneWayRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("no one-way delay between these machines is told: ")?;
        match self {
            Self::Unknown { error } => {
                write!(
                    formatter,
                    "of the clock of one of them it is not known how far it is off ({error}), and the delay would be off by \
                     as much; "
                )?;
                match error {
                    ClockError::Untold { ask, .. } if !ask.is_empty() => {
                        write!(formatter, "ask: {ask}; ")?;
                    }
                    _ => formatter
                        .write_str("keep the clocks of both by PTP (linuxptp: ptp4l, phc2sys); ")?,
                }
            }
            Self::References { one, other } => write!(
                formatter,
                "their clocks are kept by different sources ({one}; {other}), and how far these are apart is not known; \
                 keep both by the same source; "
            )?,
            Self::BelowBound { delay_ns, bound_ns } => write!(
                formatter,
                "it would be {}, and the clocks may be {} apart; keep them closer (PTP, with interfaces that stamp in \
                 hardware); ",
                duration(*delay_ns),
                duration(*bound_ns)
            )?,
        }
        formatter.write_str("or measure round trips, which take one clock")
    }
}

impl std::error::Error for OneWayRefusal {}

/// How far the clocks of two machines may be apart: what a one-way delay between them has to be beyond. For
/// two ends of one machine it is not to be asked: they have one clock.
///
/// # Errors
/// It is not known: no one-way delay between them means anything.
pub fn one_way_bound(one: &ClockError, other: &ClockError) -> Result<OneWayBound, OneWayRefusal> {
    let known = |error: &ClockError| match error {
        ClockError::Bound {
            nanoseconds,
            against,
            ..
        } => Ok((*nanoseconds, against.clone())),
        error => Err(OneWayRefusal::Unknown {
            error: error.clone(),
        }),
    };
    let ((one_ns, one), (other_ns, other)) = (known(one)?, known(other)?);
    match one == other {
        true => Ok(OneWayBound {
            nanoseconds: one_ns.saturating_add(other_ns),
        }),
        false => Err(OneWayRefusal::References { one, other }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(nanoseconds: u64, against: &str) -> ClockError {
        ClockError::Bound {
            nanoseconds,
            keeper: String::from("somebody"),
            against: String::from(against),
            provided: None,
        }
    }

    #[test]
    fn errors_of_clocks_that_are_kept_by_the_same_add_up() {
        let bound = one_way_bound(&kept(300, "grandmaster"), &kept(40_000, "grandmaster"))
            .expect("a bound");
        assert_eq!(bound.nanoseconds(), 40_300);
        assert_eq!(bound.carries(40_301), Ok(()));
        let refusal = bound
            .carries(40_300)
            .expect_err("as long as the clocks are apart");
        let said = refusal.to_string();
        for part in ["40.3 us", "keep them closer", "round trips"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn an_error_that_is_not_known_carries_no_delay_however_long() {
        let untold = ClockError::Untold {
            keepers: vec![String::from("systemd-timesyn")],
            why: String::from("it keeps that to itself"),
            ask: String::from("timedatectl timesync-status"),
        };
        for unknown in [untold, ClockError::Unkept, ClockError::Unknown] {
            for (one, other) in [
                (kept(1, "grandmaster"), unknown.clone()),
                (unknown.clone(), kept(1, "grandmaster")),
            ] {
                let refusal = one_way_bound(&one, &other).expect_err("not known");
                let expected = OneWayRefusal::Unknown {
                    error: unknown.clone(),
                };
                assert_eq!(refusal, expected);
                assert!(
                    refusal.to_string().contains("not known how far"),
                    "{refusal}"
                );
            }
        }
    }

    #[test]
    fn two_sources_of_time_are_no_common_one() {
        let (one, other) = (kept(200, "grandmaster a"), kept(200, "grandmaster b"));
        let refusal = one_way_bound(&one, &other).expect_err("two islands of time");
        let said = refusal.to_string();
        assert!(said.contains("grandmaster a; grandmaster b"), "{said}");
        assert!(said.contains("the same source"), "{said}");
    }
}
