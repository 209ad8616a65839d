//! How far a machine's clock may be from those of other machines: what one-way delays between hosts
//! are worth.
//!
//! A delay between two hosts is the difference of two clocks. It means something only beyond the sum
//! of both clocks' errors; below it, or where an error is not known, only round trips do.

use serde::Serialize;

use crate::facts::Facts;

/// What is known of a clock's error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "known")]
pub enum ClockError {
    /// At most so much, against what the clock is kept by.
    Bound {
        /// In microseconds.
        microseconds: u64,
        /// Who says so.
        keeper: String,
    },
    /// Somebody keeps the clock, and tells nobody how well.
    Untold {
        /// Who keeps it.
        keepers: Vec<String>,
        /// How it can be asked.
        ask: String,
    },
    /// Nobody keeps the clock: it drifts by up to 100 microseconds a second.
    Unkept,
    /// It cannot be seen.
    Unknown,
}

/// Programs that keep the kernel's clock, by the name the kernel shows; whether they tell the kernel how well.
const KEEPERS: [(&str, bool); 5] = [
    ("chronyd", true),
    ("ntpd", true),
    // These set the error to zero each time, so that the kernel does not call the clock unkept.
    ("systemd-timesyn", false),
    ("phc2sys", false),
    ("ptp4l", false),
];

/// What is known of the error of a machine's clock.
pub fn clock_error(facts: &Facts) -> ClockError {
    let runs = |name: &str| facts.programs.iter().any(|program| program == name);
    let running = KEEPERS.iter().filter(|(name, _)| runs(name));
    let keepers: Vec<&(&str, bool)> = running.collect();
    if facts.clock.is_kept == Some(false) {
        return ClockError::Unkept;
    }
    let telling = keepers.iter().find(|(_, tells)| *tells);
    let all_tell = keepers.iter().all(|(_, tells)| *tells);
    match (telling, facts.clock.maximum_error_us) {
        (Some((name, _)), Some(microseconds)) if all_tell && facts.clock.is_kept == Some(true) => {
            ClockError::Bound {
                microseconds,
                keeper: (*name).to_owned(),
            }
        }
        _ if keepers.is_empty() => match facts.clock.is_kept {
            Some(true) => ClockError::Unknown,
            _ if facts.programs.is_empty() && facts.clock.is_kept.is_none() => ClockError::Unknown,
            _ => ClockError::Unkept,
        },
        _ => ClockError::Untold {
            keepers: keepers.iter().map(|(name, _)| (*name).to_owned()).collect(),
            ask: how_to_ask(&keepers),
        },
    }
}

fn how_to_ask(keepers: &[&(&str, bool)]) -> String {
    let has = |name: &str| keepers.iter().any(|(known, _)| *known == name);
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
            "chronyc tracking (root delay / 2 + root dispersion)",
        ),
        ("ntpd", "ntpq -c rv (rootdelay / 2 + rootdisp)"),
    ];
    let ways = ways.iter().filter(|(name, _)| has(name));
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
            },
            ..Facts::default()
        })
    }

    #[test]
    fn what_chrony_tells_the_kernel_is_a_bound() {
        assert_eq!(
            of(&["chronyd"], Some(true)),
            ClockError::Bound {
                microseconds: 850,
                keeper: String::from("chronyd")
            }
        );
    }

    #[test]
    fn what_ptp_tells_the_kernel_is_none() {
        let ClockError::Untold { keepers, ask } = of(&["ptp4l", "phc2sys"], Some(true)) else {
            panic!("a bound that nobody stated");
        };
        assert_eq!(keepers, ["phc2sys", "ptp4l"]);
        assert!(ask.contains("TIME_STATUS_NP"), "{ask}");
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
