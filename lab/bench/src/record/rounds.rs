//! Merged timestamps of both ends, and the durations derived from them.

#[cfg(test)]
mod tests;

use super::one_way::{OneWay, Parts, StampClock};
use super::recorder::{PingRecorder, PongRecorder, Stamp};
use super::statistics::{Statistics, Window, windows};
use crate::cable::RoundPassages;
use crate::clock::micros;

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
    /// The ends report one clock, and their timestamps contradict it: differences are invalid.
    #[error("the stamps of round {id} are out of order: the two ends do not have one clock")]
    NotOneClock {
        /// First such round.
        id: usize,
    },
    /// An end's own timestamps go backwards: even round trips are invalid.
    #[error("the stamps of round {id} are out of order at one end: its clock was set back")]
    SetBack {
        /// First such round.
        id: usize,
    },
}

/// All rounds of a run, lost ones included. Times are in nanoseconds, of a shared clock or of each end's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rounds {
    ping: PingRecorder,
    pong: PongRecorder,
    passages: Option<RoundPassages>,
    period_ns: u64,
    /// Clock of both ends, or the reason why they do not share one.
    clock: Result<String, String>,
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
        let clock = ping_clock.shared_with(pong_clock);
        if ping.sent_ns.len() != pong.received_ns.len() {
            return Err(MergeError::DifferentRuns {
                ping: ping.sent_ns.len(),
                pong: pong.received_ns.len(),
            });
        }
        for id in 0..ping.sent_ns.len() {
            let journey = [
                ping.sent_ns[id],
                pong.received_ns[id],
                pong.replied_ns[id],
                ping.returned_ns[id],
            ];
            let [sent, received, replied, returned] = journey;
            let in_order = |stamps: &[Stamp]| stamps.iter().flatten().is_sorted();
            if !in_order(&[sent, returned]) || !in_order(&[received, replied]) {
                return Err(MergeError::SetBack { id });
            }
            if clock.is_ok() && !in_order(&journey) {
                return Err(MergeError::NotOneClock { id });
            }
        }
        Ok(Rounds {
            ping,
            pong,
            passages,
            period_ns,
            clock,
        })
    }

    /// Number of scheduled pings.
    pub fn samples(&self) -> u64 {
        self.ping.sent_ns.len() as u64
    }

    /// Number of pings without a pong.
    pub fn lost(&self) -> u64 {
        self.ping
            .returned_ns
            .iter()
            .filter(|stamp| stamp.is_none())
            .count() as u64
    }

    /// Repeated messages, at both ends.
    pub fn duplicates(&self) -> u64 {
        self.ping.duplicates + self.pong.duplicates
    }

    /// Messages that belong to no round of this run, at both ends.
    pub fn foreign(&self) -> u64 {
        self.ping.foreign + self.pong.foreign
    }

    /// Number of pings sent more than half a period after their due time.
    pub fn late_sends(&self) -> u64 {
        self.sender_lateness_ns()
            .filter(|late| late * 2 > self.period_ns)
            .count() as u64
    }

    /// Maximum lateness of the sender, in microseconds.
    pub fn sender_late_max_us(&self) -> Option<f64> {
        self.sender_lateness_ns().max().map(micros)
    }

    /// Durations of the returned round trips in nanoseconds, from the scheduled start. With this open loop, a sender
    /// delayed by its own round trip does not hide the delay.
    pub fn rtt_ns(&self) -> Vec<u64> {
        self.durations(|id| self.round_trip_ns(id))
    }

    /// Forward durations of the pings that arrived, from the scheduled start, in nanoseconds. They are delays only if
    /// both ends share a clock (see [`Rounds::one_way`]).
    pub fn owd_ns(&self) -> Vec<u64> {
        self.durations(|id| between(self.ping.intended_ns[id], self.pong.received_ns[id]))
    }

    /// Components of the returned round trips, if one-way delays are valid.
    pub fn one_way(&self) -> OneWay {
        let came_back =
            (0..self.ping.sent_ns.len()).filter(|&id| self.ping.returned_ns[id].is_some());
        let rounds: Vec<(usize, Option<Parts>)> =
            came_back.map(|id| (id, self.parts(id))).collect();
        OneWay::of(&self.clock, &rounds)
    }

    /// Time in the cable of the returned round trips, in nanoseconds; empty without cable timestamps.
    pub fn cable_ns(&self) -> Vec<u64> {
        self.durations(|id| {
            self.ping.returned_ns[id]?;
            self.in_cable_ns(id)
        })
    }

    /// Round-trip times without the cable's share, in nanoseconds.
    pub fn host_ns(&self) -> Vec<u64> {
        self.durations(|id| self.in_hosts_ns(id))
    }

    /// Summary of [`Rounds::rtt_ns`].
    pub fn rtt_us(&self) -> Statistics {
        Statistics::of(self.rtt_ns())
    }

    /// Summary of [`Rounds::owd_ns`].
    pub fn owd_us(&self) -> Statistics {
        Statistics::of(self.owd_ns())
    }

    /// Summary of [`Rounds::cable_ns`].
    pub fn cable_us(&self) -> Statistics {
        Statistics::of(self.cable_ns())
    }

    /// Summary of [`Rounds::host_ns`].
    pub fn host_us(&self) -> Statistics {
        Statistics::of(self.host_ns())
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
        let sample = |id: usize| Some((self.ping.intended_ns[id]?.get(), of(id)?));
        let samples: Vec<(u64, u64)> = (0..self.ping.sent_ns.len()).filter_map(sample).collect();
        windows(&samples)
    }

    fn round_trip_ns(&self, id: usize) -> Option<u64> {
        between(self.ping.intended_ns[id], self.ping.returned_ns[id])
    }

    fn parts(&self, id: usize) -> Option<Parts> {
        let (received, replied) = (self.pong.received_ns[id], self.pong.replied_ns[id]);
        Some(Parts {
            there_ns: between(self.ping.intended_ns[id], received)?,
            turnaround_ns: between(received, replied)?,
            back_ns: between(replied, self.ping.returned_ns[id])?,
            round_trip_ns: self.round_trip_ns(id)?,
        })
    }

    fn in_hosts_ns(&self, id: usize) -> Option<u64> {
        self.round_trip_ns(id)?.checked_sub(self.in_cable_ns(id)?)
    }

    fn in_cable_ns(&self, id: usize) -> Option<u64> {
        self.passages.as_ref()?.duration_ns(id as u32)
    }

    fn sender_lateness_ns(&self) -> impl Iterator<Item = u64> {
        let both = self.ping.intended_ns.iter().zip(&self.ping.sent_ns);
        both.filter_map(|(&intended, &sent)| between(intended, sent))
    }

    fn durations(&self, of: impl Fn(usize) -> Option<u64>) -> Vec<u64> {
        (0..self.ping.sent_ns.len()).filter_map(of).collect()
    }
}

/// Duration between two stamps; 0 for a ping that was sent before its due time.
fn between(from: Stamp, to: Stamp) -> Option<u64> {
    Some(to?.get().saturating_sub(from?.get()))
}
