//! Merged timestamps of both ends, and the durations derived from them: round trips, and their components (forward
//! delay, turnaround, return delay).
//!
//! One-way delays are differences between timestamps of two ends, valid only if both use the same clock. Each end
//! reports its clock ([`StampClock`]), and [`Rounds::merge`] checks the order of all timestamps. The three components
//! must also add up to the round trip. They do for any two clocks, so this check finds only missing timestamps, and
//! arrivals before the ping was due. If a check fails, no one-way delays are reported, and the result gives the reason.
//!
//! [`Rounds`] has a column for each event. A [`Dataset`](super::Dataset) stores the columns in a file.

use std::fs;

use serde::{Deserialize, Serialize};

use super::recorder::{PingRecorder, PongRecorder, Stamp};
use super::{Window, windows};
use crate::cable::{Passages, RoundPassages};
use crate::clock::micros;
use crate::statistics::Statistics;

/// Reasons why the timestamps of two ends cannot be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// The ends have different numbers of rounds.
    #[error("the two ends recorded different runs: {ping} and {pong} rounds")]
    DifferentRuns {
        /// Rounds reserved by the ping side.
        ping: usize,
        /// Rounds reserved by the pong side.
        pong: usize,
    },
    /// The ends report one clock, and their timestamps in this round contradict it: differences are invalid.
    #[error("the stamps of round {0} are out of order: the two ends do not have one clock")]
    NotOneClock(usize),
    /// An end's own timestamps of this round go backwards: even round trips are invalid.
    #[error("the stamps of round {0} are out of order at one end: its clock was set back")]
    SetBack(usize),
}

/// All rounds of a run, lost ones included, as columns of equal length. Times are in nanoseconds, of a shared clock or
/// of each end's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Scheduled times of the pings, by the ping end.
    pub(super) intended_ns: Vec<Stamp>,
    /// Times of the pings' `write`, by the ping end.
    pub(super) sent_ns: Vec<Stamp>,
    /// Arrivals of the pings, by the pong end.
    pub(super) received_ns: Vec<Stamp>,
    /// Times of the pongs' `write`, by the pong end.
    pub(super) replied_ns: Vec<Stamp>,
    /// Arrivals of the pongs, by the ping end.
    pub(super) returned_ns: Vec<Stamp>,
    /// Durations in the cable, there and back; `None` without a cable.
    pub(super) cable_ns: Option<[Vec<Option<u64>>; 2]>,
    /// Repeated messages, at both ends.
    pub(super) duplicates: u64,
    pub(super) period_ns: u64,
    /// Clock of both ends, or the reason why they do not share one.
    pub(super) clock: Result<String, String>,
}

impl Rounds {
    /// Merges the timestamps of a run with pings every `period_ns`. Timestamps of different ends are compared only if
    /// both ends share a clock; otherwise only round trips are available.
    pub fn merge(
        ping: PingRecorder,
        pong: PongRecorder,
        passages: Option<RoundPassages>,
        period_ns: u64,
        [ping_clock, pong_clock]: [&StampClock; 2],
    ) -> Result<Rounds, MergeError> {
        let (rounds, of_pong) = (ping.sent_ns.len(), pong.replied_ns.len());
        if rounds != of_pong {
            return Err(MergeError::DifferentRuns {
                ping: rounds,
                pong: of_pong,
            });
        }
        let durations = |one: &Passages| (0..rounds).map(|id| one.duration_ns(id)).collect();
        let rounds = Rounds {
            duplicates: ping.returned.duplicates + pong.received.duplicates,
            intended_ns: ping.intended_ns,
            sent_ns: ping.sent_ns,
            received_ns: pong.received.first_ns,
            replied_ns: pong.replied_ns,
            returned_ns: ping.returned.first_ns,
            cable_ns: passages.map(|both| [&both.a_to_b, &both.b_to_a].map(durations)),
            period_ns,
            clock: ping_clock.shared_with(pong_clock),
        };
        rounds.check_order()?;
        Ok(rounds)
    }

    /// No rounds, for a run without round trips.
    pub fn none() -> Rounds {
        Rounds {
            duplicates: 0,
            intended_ns: Vec::new(),
            sent_ns: Vec::new(),
            received_ns: Vec::new(),
            replied_ns: Vec::new(),
            returned_ns: Vec::new(),
            cable_ns: None,
            period_ns: 1,
            clock: StampClock::default().shared_with(&StampClock::default()),
        }
    }

    /// Checks that the timestamps of each round are in order.
    pub(super) fn check_order(&self) -> Result<(), MergeError> {
        let in_order = |stamps: &[Stamp]| stamps.iter().flatten().is_sorted();
        for id in 0..self.sent_ns.len() {
            let [sent, received, replied, returned] = [
                self.sent_ns[id],
                self.received_ns[id],
                self.replied_ns[id],
                self.returned_ns[id],
            ];
            if !in_order(&[sent, returned]) || !in_order(&[received, replied]) {
                return Err(MergeError::SetBack(id));
            }
            if self.clock.is_ok() && !in_order(&[sent, received, replied, returned]) {
                return Err(MergeError::NotOneClock(id));
            }
        }
        Ok(())
    }

    /// Number of scheduled pings.
    pub fn samples(&self) -> u64 {
        self.sent_ns.len() as u64
    }

    /// Number of pings without a pong.
    pub fn lost(&self) -> u64 {
        let lost = self.returned_ns.iter().filter(|stamp| stamp.is_none());
        lost.count() as u64
    }

    /// Repeated messages, at both ends.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Number of pings sent more than half a period after their due time.
    pub fn late_sends(&self) -> u64 {
        let late = (0..self.sent_ns.len()).filter(|&id| self.is_late(id));
        late.count() as u64
    }

    /// Maximum lateness of the sender, in microseconds.
    pub fn sender_late_max_us(&self) -> Option<f64> {
        self.durations(|id| self.lateness_ns(id))
            .into_iter()
            .max()
            .map(micros)
    }

    /// Durations of the returned round trips in nanoseconds, from the scheduled start. With this open loop, a sender
    /// delayed by its own round trip does not hide the delay.
    pub fn rtt_ns(&self) -> Vec<u64> {
        self.durations(|id| self.round_trip_ns(id))
    }

    /// Forward durations of the pings that arrived, from the scheduled start, in nanoseconds. They are delays only if
    /// both ends share a clock (see [`Rounds::one_way`]).
    pub fn owd_ns(&self) -> Vec<u64> {
        self.durations(|id| between(self.intended_ns[id], self.received_ns[id]))
    }

    /// Components of the returned round trips, if one-way delays are valid.
    pub fn one_way(&self) -> OneWay {
        let came_back = (0..self.sent_ns.len()).filter(|&id| self.returned_ns[id].is_some());
        let rounds: Vec<(usize, Option<Parts>)> =
            came_back.map(|id| (id, self.parts(id))).collect();
        OneWay::of(&self.clock, &rounds)
    }

    /// Time in the cable of the returned round trips, in nanoseconds; empty without cable timestamps.
    pub fn cable_ns(&self) -> Vec<u64> {
        self.durations(|id| {
            self.returned_ns[id]?;
            self.in_cable_ns(id)
        })
    }

    /// Round-trip times without the cable's share, in nanoseconds.
    pub fn host_ns(&self) -> Vec<u64> {
        self.durations(|id| self.in_hosts_ns(id))
    }

    /// Round-trip times in windows of one second.
    pub fn rtt_windows(&self) -> Vec<Window> {
        self.windows(|id| self.round_trip_ns(id))
    }

    /// The hosts' share in windows of one second; empty without cable timestamps.
    pub fn host_windows(&self) -> Vec<Window> {
        self.windows(|id| self.in_hosts_ns(id))
    }

    /// Groups values into windows by the second in which a ping was due.
    fn windows(&self, of: impl Fn(usize) -> Option<u64>) -> Vec<Window> {
        let sample = |id: usize| Some((self.intended_ns[id]?.get(), of(id)?));
        let samples: Vec<(u64, u64)> = (0..self.sent_ns.len()).filter_map(sample).collect();
        windows(&samples)
    }

    /// Due time, round trip (if it returned) and lateness of each ping, in the order of the pings.
    pub(super) fn samples_in_time(&self) -> impl Iterator<Item = (u64, Option<u64>, bool)> {
        let sample = |id: usize| {
            let due_ns = self.intended_ns[id]?.get();
            Some((due_ns, self.round_trip_ns(id), self.is_late(id)))
        };
        (0..self.sent_ns.len()).filter_map(sample)
    }

    fn round_trip_ns(&self, id: usize) -> Option<u64> {
        between(self.intended_ns[id], self.returned_ns[id])
    }

    fn parts(&self, id: usize) -> Option<Parts> {
        let (received, replied) = (self.received_ns[id], self.replied_ns[id]);
        Some(Parts {
            there_ns: between(self.intended_ns[id], received)?,
            turnaround_ns: between(received, replied)?,
            back_ns: between(replied, self.returned_ns[id])?,
            round_trip_ns: self.round_trip_ns(id)?,
        })
    }

    fn in_hosts_ns(&self, id: usize) -> Option<u64> {
        self.round_trip_ns(id)?.checked_sub(self.in_cable_ns(id)?)
    }

    fn in_cable_ns(&self, id: usize) -> Option<u64> {
        let [there, back] = self.cable_ns.as_ref()?;
        there[id]?.checked_add(back[id]?)
    }

    fn lateness_ns(&self, id: usize) -> Option<u64> {
        between(self.intended_ns[id], self.sent_ns[id])
    }

    /// Returns whether ping `id` was sent more than half a period after its due time.
    pub(super) fn is_late(&self, id: usize) -> bool {
        let late_ns = self.lateness_ns(id);
        late_ns.is_some_and(|late_ns| late_ns > self.period_ns / 2)
    }

    fn durations(&self, of: impl Fn(usize) -> Option<u64>) -> Vec<u64> {
        (0..self.sent_ns.len()).filter_map(of).collect()
    }
}

/// Duration between two stamps; 0 for a ping that was sent before its due time.
fn between(from: Stamp, to: Stamp) -> Option<u64> {
    Some(to?.get().saturating_sub(from?.get()))
}

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
                "no one-way delays: {why}; round trips are valid, because both of their timestamps come from one end"
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
            _ => refused("the boot id of an end is unknown (/proc/sys/kernel/random/boot_id)"),
        }
    }
}

/// Components of the round trips that returned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
            ..OneWay::default()
        };
        let clock = match clock {
            Ok(clock) => clock.clone(),
            Err(why) => return refused(None, why.clone()),
        };
        let whole = |&(id, parts): &(usize, Option<Parts>)| match parts {
            Some(parts) if parts.are_whole() => Ok(parts),
            Some(_) => Err(format!(
                "no one-way delays: in round {id} both ways and the turnaround are not the round trip"
            )),
            None => Err(format!(
                "no one-way delays: round {id} came back, and the other end has no stamps of it"
            )),
        };
        let parts: Vec<Parts> = match rounds.iter().map(whole).collect::<Result<_, String>>() {
            Ok(parts) => parts,
            Err(why) => return refused(Some(clock), why),
        };
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
mod tests;
