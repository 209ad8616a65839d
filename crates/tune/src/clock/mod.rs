//! How far a machine's clock may be from those of other machines: what one-way delays between hosts
//! are worth.
//!
//! A delay between two hosts is the difference of two clocks. It means something only beyond the sum
//! of both clocks' errors; below it, or where an error is not known, only round trips do. Who would tell such
//! a delay asks [`one_way_bound`] first.
//!
//! Only of PTP there is a bound, by linuxptp. What chrony and ntpd tell the kernel is none: it leaves out the offset that
//! they are still correcting, and says nothing of whose time it is. Two hosts may each follow a server that follows nobody.

mod one_way;
pub(crate) mod ptp;

use std::fmt;

use serde::Serialize;

use crate::facts::Facts;

pub use one_way::{OneWayBound, OneWayRefusal, one_way_bound};

/// What is known of a clock's error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "known")]
pub enum ClockError {
    /// At most so much, against what the clock is kept by.
    Bound {
        /// In nanoseconds.
        nanoseconds: u64,
        /// Who says so.
        keeper: String,
        /// What the clock is kept by: errors add up between clocks that are kept by the same only.
        against: String,
        /// What has to be so for the bound to hold, and cannot be seen from here.
        provided: Option<String>,
    },
    /// Somebody keeps the clock, and how well is not known.
    Untold {
        /// Who keeps it.
        keepers: Vec<String>,
        /// Why it is not known.
        why: String,
        /// How it can be asked.
        ask: String,
    },
    /// The clock is not kept: it drifts by up to 100 microseconds a second.
    Unkept,
    /// It cannot be seen.
    Unknown,
}

impl fmt::Display for ClockError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bound {
                nanoseconds,
                keeper,
                against,
                provided,
            } => {
                write!(
                    formatter,
                    "it is within {} of {against}, according to {keeper}",
                    duration(*nanoseconds)
                )?;
                match provided {
                    Some(provided) => write!(formatter, ", if {provided}"),
                    None => Ok(()),
                }
            }
            Self::Untold { keepers, why, .. } => write!(
                formatter,
                "it is kept by {}, and how far it may be off is not known: {why}",
                keepers.join(", ")
            ),
            Self::Unkept => formatter.write_str("it is not kept"),
            Self::Unknown => formatter.write_str("who keeps it cannot be seen"),
        }
    }
}

/// A duration for people: below a microsecond in nanoseconds.
pub(crate) fn duration(nanoseconds: u64) -> String {
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        _ if nanoseconds.is_multiple_of(1_000) => format!("{} us", nanoseconds / 1_000),
        1_000..100_000 => format!("{:.1} us", nanoseconds as f64 / 1e3),
        _ => format!("{:.0} us", nanoseconds as f64 / 1e3),
    }
}

/// Programs that keep the kernel's clock, by the name the kernel shows.
const KEEPERS: [&str; 5] = ["chronyd", "ntpd", "systemd-timesyn", "phc2sys", "ptp4l"];

/// Those that keep it together. What they do is asked and measured: they tell the kernel an error of zero.
const BY_PTP: [&str; 2] = ["phc2sys", "ptp4l"];

/// What is known of the error of a machine's clock.
pub fn clock_error(facts: &Facts) -> ClockError {
    let runs = |name: &&str| facts.programs.iter().any(|program| program == name);
    let keepers: Vec<&str> = KEEPERS.into_iter().filter(runs).collect();
    match keepers.as_slice() {
        [] => match facts.clock.is_kept {
            Some(true) => ClockError::Unknown,
            None if facts.programs.is_empty() => ClockError::Unknown,
            _ => ClockError::Unkept,
        },
        both if both == BY_PTP => by_ptp(facts, both, "ptp4l and phc2sys"),
        ["ptp4l"] if ptp::keeps_the_kernels(facts) => by_ptp(facts, &["ptp4l"], "ptp4l"),
        _ if facts.clock.is_kept == Some(false) => ClockError::Unkept,
        several => ClockError::Untold {
            keepers: owned(several),
            why: why_untold(several, facts.clock.maximum_error_us),
            ask: how_to_ask(several),
        },
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| String::from(*name)).collect()
}

fn by_ptp(facts: &Facts, keepers: &[&str], keeper: &str) -> ClockError {
    match ptp::bound(facts) {
        Ok(bound) => bound.error(keeper),
        Err(doubt) => ClockError::Untold {
            keepers: owned(keepers),
            why: doubt.to_string(),
            ask: String::from(doubt.ask()),
        },
    }
}

fn why_untold(keepers: &[&str], maximum_error_us: Option<u64>) -> String {
    match (keepers, maximum_error_us) {
        (["chronyd" | "ntpd"], Some(microseconds)) => format!(
            "what it tells the kernel ({microseconds} us) leaves out the offset that it still corrects, and whose time it is"
        ),
        ([_], _) => String::from("it keeps that to itself"),
        _ => String::from("they keep that to themselves"),
    }
}

fn how_to_ask(keepers: &[&str]) -> String {
    let ways = [
        (
            "ptp4l",
            "pmc -u -b 0 'GET TIME_STATUS_NP' (master_offset, in ns; as root)",
        ),
        ("phc2sys", "journalctl -u 'phc2sys*' (offset, in ns)"),
        (
            "systemd-timesyn",
            "timedatectl timesync-status (offset, jitter)",
        ),
        (
            "chronyd",
            "chronyc tracking (system time + root delay / 2 + root dispersion; Reference ID: whose time it is)",
        ),
        (
            "ntpd",
            "ntpq -c rv (offset + rootdelay / 2 + rootdisp; refid: whose time it is)",
        ),
    ];
    let ways = ways.iter().filter(|(name, _)| keepers.contains(name));
    ways.map(|(_, way)| *way).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Clock;

    fn of(programs: &[&str], is_kept: Option<bool>) -> ClockError {
        clock_error(&Facts {
            programs: programs.iter().map(|name| String::from(*name)).collect(),
            clock: Clock {
                is_kept,
                maximum_error_us: Some(850),
                estimated_error_us: Some(20),
                ..Clock::default()
            },
            ..Facts::default()
        })
    }

    #[test]
    fn what_chrony_and_ntpd_tell_the_kernel_is_no_bound() {
        for (program, asked) in [("chronyd", "Reference ID"), ("ntpd", "refid")] {
            let untold = of(&[program], Some(true));
            let ClockError::Untold { why, ask, .. } = &untold else {
                panic!("a bound against nobody knows whom: {untold:?}");
            };
            assert!(
                why.contains("850 us") && why.contains("whose time"),
                "{why}"
            );
            assert!(ask.contains(asked), "{ask}");
            // Each may follow a server of its own, minutes apart.
            assert!(one_way_bound(&untold, &untold).is_err());
        }
    }

    #[test]
    fn what_ptp_tells_the_kernel_is_none() {
        let untold = of(&["ptp4l", "phc2sys"], Some(true));
        let ClockError::Untold { keepers, why, .. } = untold else {
            panic!("a bound that nobody stated: {untold:?}");
        };
        assert_eq!(keepers, ["phc2sys", "ptp4l"]);
        assert!(why.contains("it was not asked"), "{why}");
        let alone = of(&["ptp4l"], Some(true));
        assert!(matches!(alone, ClockError::Untold { ask, .. } if ask.contains("TIME_STATUS_NP")));
        // Beside it chrony's number may have been overwritten.
        assert!(matches!(
            of(&["chronyd", "phc2sys"], Some(true)),
            ClockError::Untold { .. }
        ));
    }

    #[test]
    fn a_clock_that_nobody_keeps_is_no_measure() {
        assert_eq!(of(&[], Some(false)), ClockError::Unkept);
        assert_eq!(
            of(&["chronyd"], Some(false)),
            ClockError::Unkept,
            "it has not found a server yet"
        );
        assert_eq!(of(&[], None), ClockError::Unknown);
    }
}
