//! Components of a round trip: the forward delay, the turnaround and the return delay.
//!
//! One-way delays are differences between timestamps of two ends, valid only if both use the same clock. Each end
//! reports its clock ([`StampClock`]), and [`Rounds::merge`](super::Rounds::merge) checks the order of all timestamps.
//! The three components must also add up to the round trip. This holds for any two clocks; the check finds missing
//! timestamps, and arrivals before the ping was due. Otherwise no one-way delays are reported, and the result gives the
//! reason.

use std::fs;

use serde::{Deserialize, Serialize};

use super::Statistics;

/// Identity of an end's `CLOCK_MONOTONIC`. The clock starts with the boot of a kernel and has an offset in time
/// namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StampClock {
    /// Boot id of the kernel.
    pub boot: Option<String>,
    /// Time namespace; `None` if the kernel has none.
    pub time_namespace: Option<String>,
}

impl StampClock {
    /// Clock of the calling process.
    pub fn of_this_process() -> StampClock {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        let namespace = fs::read_link("/proc/self/ns/time").ok();
        StampClock {
            boot: boot.map(|boot| boot.trim().to_owned()),
            time_namespace: namespace.map(|path| path.to_string_lossy().into_owned()),
        }
    }

    /// Name of the clock that both ends share, or the reason why they do not.
    pub(crate) fn shared_with(&self, other: &StampClock) -> Result<String, String> {
        let refused = |why: &str| {
            Err(format!(
                "no one-way delays: {why}; round trips are right, for both of their stamps are of one end"
            ))
        };
        match (&self.boot, &other.boot) {
            (Some(one), Some(another)) if one != another => refused(
                "the ends stamp by the monotonic clocks of two machines, which begin at different times",
            ),
            (Some(_), Some(_)) if self.time_namespace != other.time_namespace => {
                refused("the ends are in two time namespaces, whose monotonic clocks may be apart")
            }
            (Some(boot), Some(_)) => Ok(format!("CLOCK_MONOTONIC of one machine, boot {boot}")),
            _ => refused(
                "an end could not tell on which machine it is (/proc/sys/kernel/random/boot_id)",
            ),
        }
    }
}

/// Components of the round trips that returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OneWay {
    /// Name of the shared clock; null if the ends do not share one.
    pub clock: Option<String>,
    /// Reason why there are no one-way delays; null if there are.
    pub refused: Option<String>,
    /// Round trips that returned, each with all timestamps in order.
    pub rounds: u64,
    /// Forward delay from the scheduled time of sending, in microseconds.
    pub there_us: Statistics,
    /// Time from a ping's arrival until its pong's `write`, by the pong end's clock.
    pub turnaround_us: Statistics,
    /// Return delay in microseconds.
    pub back_us: Statistics,
}

/// Components of one round trip, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) there_ns: u64,
    pub(super) turnaround_ns: u64,
    pub(super) back_ns: u64,
    pub(super) round_trip_ns: u64,
}

impl Parts {
    fn are_whole(self) -> bool {
        let both_ways = self.there_ns.checked_add(self.back_ns);
        both_ways.and_then(|ways| ways.checked_add(self.turnaround_ns)) == Some(self.round_trip_ns)
    }
}

impl OneWay {
    /// Summarises the components of the rounds that returned; `None` marks a round without all timestamps. `clock` is
    /// the shared clock, or the reason why there is none.
    pub(super) fn of(clock: &Result<String, String>, rounds: &[(usize, Option<Parts>)]) -> OneWay {
        let refused = |clock: Option<String>, why: String| OneWay {
            clock,
            refused: Some(why),
            rounds: rounds.len() as u64,
            there_us: Statistics::default(),
            turnaround_us: Statistics::default(),
            back_us: Statistics::default(),
        };
        let clock = match clock {
            Ok(clock) => clock.clone(),
            Err(why) => return refused(None, why.clone()),
        };
        let mut parts = Vec::with_capacity(rounds.len());
        for &(id, of_round) in rounds {
            match of_round {
                Some(whole) if whole.are_whole() => parts.push(whole),
                Some(_) => {
                    return refused(
                        Some(clock),
                        format!(
                            "no one-way delays: in round {id} both ways and the turnaround are not the round trip"
                        ),
                    );
                }
                None => {
                    return refused(
                        Some(clock),
                        format!(
                            "no one-way delays: round {id} came back, and the other end has no stamps of it"
                        ),
                    );
                }
            }
        }
        let statistics = |of: fn(&Parts) -> u64| Statistics::of(parts.iter().map(of).collect());
        OneWay {
            clock: Some(clock),
            refused: None,
            rounds: parts.len() as u64,
            there_us: statistics(|parts| parts.there_ns),
            turnaround_us: statistics(|parts| parts.turnaround_ns),
            back_us: statistics(|parts| parts.back_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(boot: &str, namespace: &str) -> StampClock {
        StampClock {
            boot: Some(boot.to_owned()),
            time_namespace: Some(namespace.to_owned()),
        }
    }

    #[test]
    fn two_processes_of_a_machine_have_one_clock() {
        let here = StampClock::of_this_process();
        let shared = here.shared_with(&here.clone()).expect("one clock");
        assert!(
            shared.contains(here.boot.as_deref().expect("a boot")),
            "{shared}"
        );
    }

    #[test]
    fn ends_of_two_machines_or_time_namespaces_have_two_clocks() {
        let one = clock("a", "time:[1]");
        let why = |other: &StampClock| one.shared_with(other).expect_err("two clocks");
        assert!(why(&clock("b", "time:[1]")).contains("two machines"));
        assert!(why(&clock("a", "time:[2]")).contains("time namespaces"));
        assert!(why(&StampClock::default()).contains("could not tell"));
        let silent = StampClock::default();
        assert!(silent.shared_with(&one).is_err());
        let alike = silent.shared_with(&silent);
        assert!(
            alike.is_err(),
            "two that cannot tell are not alike: {alike:?}"
        );
    }

    #[test]
    fn one_round_whose_parts_are_not_the_whole_takes_all_delays_with_it() {
        let whole = Parts {
            there_ns: 90,
            turnaround_ns: 10,
            back_ns: 100,
            round_trip_ns: 200,
        };
        let off = Parts {
            round_trip_ns: 201,
            ..whole
        };
        let of = |rounds: &[(usize, Option<Parts>)]| OneWay::of(&Ok(String::from("one")), rounds);
        let good = of(&[(0, Some(whole)), (2, Some(whole))]);
        assert_eq!((good.rounds, good.refused), (2, None));
        assert_eq!(good.back_us.max, Some(0.1));
        for (bad, said) in [(Some(off), "round 2"), (None, "no stamps of it")] {
            let refused = of(&[(0, Some(whole)), (2, bad)]);
            assert!(refused.refused.expect("a reason").contains(said));
            assert_eq!(refused.there_us, Statistics::default());
        }
        let endless = Parts {
            there_ns: u64::MAX,
            ..whole
        };
        assert!(of(&[(0, Some(endless))]).refused.is_some());
    }
}
