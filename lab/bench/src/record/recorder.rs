//! Timestamp recorders of both ends of a round trip.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::cable::mix;

/// Monotonic time in nanoseconds, or `None` if the event did not happen.
pub type Stamp = Option<NonZeroU64>;

/// Converts a time to a stamp. The clock is zero only at boot, so no measured time is zero.
pub(crate) fn stamp(time_ns: u64) -> NonZeroU64 {
    NonZeroU64::new(time_ns).unwrap_or(NonZeroU64::MIN)
}

/// Nonce of message `id`, which distinguishes it from other data.
pub fn nonce(seed: u64, id: u32) -> u32 {
    (mix(seed ^ mix(u64::from(id) + 1)) >> 32) as u32
}

/// Result of recording a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// First arrival; stamped.
    First,
    /// Repeated arrival; the first stamp stays, and the duplicate is counted.
    Duplicate,
    /// Message of another run: unknown id or wrong nonce. Counted.
    Foreign,
}

/// First arrivals of an end's messages, by id, with the counts of all other arrivals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Arrivals {
    seed: u64,
    pub(super) first_ns: Vec<Stamp>,
    /// Number of first arrivals.
    arrived: u32,
    pub(super) duplicates: u64,
    pub(super) foreign: u64,
}

impl Arrivals {
    fn new(samples: u32, seed: u64) -> Arrivals {
        Arrivals {
            seed,
            first_ns: vec![None; samples as usize],
            arrived: 0,
            duplicates: 0,
            foreign: 0,
        }
    }

    fn record(&mut self, id: u32, claimed: u32, now_ns: u64) -> Verdict {
        match self.first_ns.get_mut(id as usize) {
            Some(place) if claimed == nonce(self.seed, id) => {
                if place.is_some() {
                    self.duplicates += 1;
                    return Verdict::Duplicate;
                }
                *place = Some(stamp(now_ns));
                self.arrived += 1;
                Verdict::First
            }
            _ => {
                self.foreign += 1;
                Verdict::Foreign
            }
        }
    }
}

/// Recorder of the ping side: scheduled, sent and returned times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingRecorder {
    pub(super) intended_ns: Vec<Stamp>,
    pub(super) sent_ns: Vec<Stamp>,
    pub(super) returned: Arrivals,
}

impl PingRecorder {
    /// Reserves all stamps of `samples` rounds, ids 0 to `samples` - 1.
    pub fn new(samples: u32, seed: u64) -> PingRecorder {
        PingRecorder {
            intended_ns: vec![None; samples as usize],
            sent_ns: vec![None; samples as usize],
            returned: Arrivals::new(samples, seed),
        }
    }

    /// Nonce of the ping with `id`.
    pub fn nonce(&self, id: u32) -> u32 {
        nonce(self.returned.seed, id)
    }

    /// Records a ping that was due at `intended_ns` and passed to `write` at `sent_ns`. Ids without a reserved stamp
    /// are ignored.
    pub fn sent(&mut self, id: u32, intended_ns: u64, sent_ns: u64) {
        let index = id as usize;
        if index < self.sent_ns.len() {
            self.intended_ns[index] = Some(stamp(intended_ns));
            self.sent_ns[index] = Some(stamp(sent_ns));
        }
    }

    /// Records a returned pong.
    pub fn returned(&mut self, id: u32, nonce: u32, now_ns: u64) -> Verdict {
        self.returned.record(id, nonce, now_ns)
    }

    /// Returns whether all rounds have returned.
    pub fn is_complete(&self) -> bool {
        // An end calls this between its jobs, so it does not visit all stamps.
        self.returned.arrived as usize == self.returned.first_ns.len()
    }
}

/// Recorder of the pong side: received and replied times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PongRecorder {
    pub(super) received: Arrivals,
    pub(super) replied_ns: Vec<Stamp>,
}

impl PongRecorder {
    /// Reserves all stamps of `samples` rounds.
    pub fn new(samples: u32, seed: u64) -> PongRecorder {
        PongRecorder {
            received: Arrivals::new(samples, seed),
            replied_ns: vec![None; samples as usize],
        }
    }

    /// Records a received ping.
    pub fn received(&mut self, id: u32, nonce: u32, now_ns: u64) -> Verdict {
        self.received.record(id, nonce, now_ns)
    }

    /// Records the `write` of a pong. Ids without a reserved stamp are ignored.
    pub fn replied(&mut self, id: u32, now_ns: u64) {
        if let Some(place) = self.replied_ns.get_mut(id as usize) {
            place.get_or_insert(stamp(now_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pong_counts_once_and_only_with_its_nonce() {
        let mut ping = PingRecorder::new(2, 9);
        ping.sent(0, 100, 101);
        assert_eq!(ping.returned(0, ping.nonce(0) ^ 1, 150), Verdict::Foreign);
        assert_eq!(ping.returned(2, nonce(9, 2), 150), Verdict::Foreign);
        assert_eq!(ping.returned(0, ping.nonce(0), 150), Verdict::First);
        assert_eq!(ping.returned(0, ping.nonce(0), 160), Verdict::Duplicate);
        assert_eq!((ping.returned.duplicates, ping.returned.foreign), (1, 2));
        assert_eq!(ping.returned.first_ns[0], Some(stamp(150)));
        assert!(!ping.is_complete());
    }

    #[test]
    fn nonces_differ_between_ids_and_between_runs() {
        let of_run = |seed| {
            (0..1000)
                .map(|id| nonce(seed, id))
                .collect::<std::collections::HashSet<_>>()
        };
        assert_eq!(of_run(1).len(), 1000);
        assert!(of_run(1).is_disjoint(&of_run(2)));
    }

    #[test]
    fn an_id_outside_the_run_is_ignored() {
        let mut ping = PingRecorder::new(1, 0);
        ping.sent(1, 5, 5);
        let mut pong = PongRecorder::new(1, 0);
        pong.replied(1, 5);
        assert_eq!(ping, PingRecorder::new(1, 0));
        assert_eq!(pong, PongRecorder::new(1, 0));
    }
}
