//! Both ends' stamps, merged: what each round took and where.

use super::recorder::{PingRecorder, PongRecorder, Stamp};
use super::statistics::{Statistics, Window, windows};
use crate::cable::RoundPassages;
use crate::clock::micros;

/// Why stamps of two ends do not belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// Different numbers of rounds.
    #[error("the two ends recorded different runs: {ping} and {pong} rounds")]
    DifferentRuns {
        /// Rounds reserved by the ping side.
        ping: usize,
        /// Rounds reserved by the pong side.
        pong: usize,
    },
    /// Two clocks: differences of their times mean nothing.
    #[error("the stamps of round {id} are out of order: the two ends do not have one clock")]
    NotOneClock {
        /// The first such round.
        id: usize,
    },
}

/// All rounds of a run, lost ones included. Times are of one clock, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rounds {
    ping: PingRecorder,
    pong: PongRecorder,
    passages: Option<RoundPassages>,
    period_ns: u64,
}

impl Rounds {
    /// Merges the stamps of a run whose pings were `period_ns` apart.
    pub fn merge(
        ping: PingRecorder,
        pong: PongRecorder,
        passages: Option<RoundPassages>,
        period_ns: u64,
    ) -> Result<Rounds, MergeError> {
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
            if !journey.iter().flatten().is_sorted() {
                return Err(MergeError::NotOneClock { id });
            }
        }
        Ok(Rounds {
            ping,
            pong,
            passages,
            period_ns,
        })
    }

    /// Pings scheduled.
    pub fn samples(&self) -> u64 {
        self.ping.sent_ns.len() as u64
    }

    /// Pings without a pong.
    pub fn lost(&self) -> u64 {
        self.ping
            .returned_ns
            .iter()
            .filter(|stamp| stamp.is_none())
            .count() as u64
    }

    /// Messages that arrived a second time, at either end.
    pub fn duplicates(&self) -> u64 {
        self.ping.duplicates + self.pong.duplicates
    }

    /// Messages of no round of this run, at either end.
    pub fn foreign(&self) -> u64 {
        self.ping.foreign + self.pong.foreign
    }

    /// Pings sent more than half a period after they were meant to be.
    pub fn late_sends(&self) -> u64 {
        self.sender_lateness_ns()
            .filter(|late| late * 2 > self.period_ns)
            .count() as u64
    }

    /// How late the sender was at most, in microseconds.
    pub fn sender_late_max_us(&self) -> Option<f64> {
        self.sender_lateness_ns().max().map(micros)
    }

    /// Round trips that came back, from the time they were meant to start (open loop: a sender held
    /// up by its own round trip does not hide it), in nanoseconds.
    pub fn rtt_ns(&self) -> Vec<u64> {
        self.durations(|id| self.round_trip_ns(id))
    }

    /// Pings that arrived, from the time they were meant to start, in nanoseconds. With the
    /// turnaround and the way back this is exactly the round trip.
    pub fn owd_ns(&self) -> Vec<u64> {
        self.durations(|id| between(self.ping.intended_ns[id], self.pong.received_ns[id]))
    }

    /// The cable's part of the round trips that came back, in nanoseconds; empty if the cable did
    /// not stamp.
    pub fn cable_ns(&self) -> Vec<u64> {
        self.durations(|id| {
            self.ping.returned_ns[id]?;
            self.in_cable_ns(id)
        })
    }

    /// The hosts' part: the round trip without the cable's, in nanoseconds.
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

    /// Round trips second by second.
    pub fn rtt_windows(&self) -> Vec<Window> {
        self.windows(|id| self.round_trip_ns(id))
    }

    /// The hosts' part second by second; empty if the cable did not stamp.
    pub fn host_windows(&self) -> Vec<Window> {
        self.windows(|id| self.in_hosts_ns(id))
    }

    /// By the second in which a ping was meant to leave.
    fn windows(&self, of: impl Fn(usize) -> Option<u64>) -> Vec<Window> {
        let sample = |id: usize| Some((self.ping.intended_ns[id]?.get(), of(id)?));
        let samples: Vec<(u64, u64)> = (0..self.ping.sent_ns.len()).filter_map(sample).collect();
        windows(&samples)
    }

    fn round_trip_ns(&self, id: usize) -> Option<u64> {
        between(self.ping.intended_ns[id], self.ping.returned_ns[id])
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

/// From one stamp to a later one. A ping sent ahead of its time started no earlier than meant.
fn between(from: Stamp, to: Stamp) -> Option<u64> {
    Some(to?.get().saturating_sub(from?.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cable::Passages;
    use crate::record::{nonce, stamp};

    const PERIOD_NS: u64 = 500_000;
    const SEED: u64 = 4;

    /// Rounds of 200 us each (90 there, 10 turnaround, 100 back), ids in `lost` do not come back.
    fn run(samples: u32, lost: &[u32]) -> (PingRecorder, PongRecorder) {
        let mut ping = PingRecorder::new(samples, SEED);
        let mut pong = PongRecorder::new(samples, SEED);
        for id in 0..samples {
            let start = 1_000_000 + u64::from(id) * PERIOD_NS;
            ping.sent(id, start, start + 2_000);
            pong.received(id, nonce(SEED, id), start + 90_000);
            pong.replied(id, start + 100_000);
            if !lost.contains(&id) {
                ping.returned(id, nonce(SEED, id), start + 200_000);
            }
        }
        (ping, pong)
    }

    #[test]
    fn a_round_counts_from_the_intended_time() {
        let (ping, pong) = run(100, &[3, 4]);
        let rounds = Rounds::merge(ping, pong, None, PERIOD_NS).unwrap();
        assert_eq!((rounds.samples(), rounds.lost()), (100, 2));
        assert_eq!(rounds.rtt_us().median, Some(200.0));
        assert_eq!(rounds.rtt_ns().len(), 98);
        assert_eq!(rounds.owd_us().max, Some(90.0));
        assert_eq!(rounds.owd_ns().len(), 100);
        assert_eq!(rounds.sender_late_max_us(), Some(2.0));
        assert_eq!(rounds.late_sends(), 0);
    }

    #[test]
    fn a_ping_sent_after_half_its_period_is_late_and_stays_in_the_numbers() {
        let (mut ping, pong) = run(100, &[]);
        ping.sent_ns[7] = Some(stamp(
            ping.intended_ns[7].unwrap().get() + PERIOD_NS / 2 + 1,
        ));
        ping.returned_ns[7] = Some(stamp(ping.intended_ns[7].unwrap().get() + 900_000));
        // Received before it was sent: corrected with it, or the clocks would be doubted.
        let mut pong = pong;
        pong.received_ns[7] = ping.sent_ns[7];
        pong.replied_ns[7] = ping.sent_ns[7];
        let rounds = Rounds::merge(ping, pong, None, PERIOD_NS).unwrap();
        assert_eq!(rounds.late_sends(), 1);
        assert_eq!(rounds.rtt_us().max, Some(900.0));
        assert_eq!(rounds.rtt_ns().len(), 100);
    }

    #[test]
    fn the_cables_part_and_the_hosts_part_are_the_round_trip() {
        let (ping, pong) = run(30, &[5]);
        let passages = |delay: u64| Passages {
            arrived_ns: (0..30).map(|_| Some(stamp(1_000))).collect(),
            sent_ns: (0..30).map(|_| Some(stamp(1_000 + delay))).collect(),
        };
        let passages = RoundPassages {
            a_to_b: passages(20_000),
            b_to_a: passages(30_000),
        };
        let rounds = Rounds::merge(ping, pong, Some(passages), PERIOD_NS).unwrap();
        assert_eq!(rounds.cable_us().median, Some(50.0));
        assert_eq!(rounds.host_us().median, Some(150.0));
        assert_eq!(rounds.cable_ns().len(), 29);
    }

    #[test]
    fn without_stamps_of_the_cable_its_part_is_unknown() {
        let (ping, pong) = run(30, &[]);
        let rounds = Rounds::merge(ping, pong, None, PERIOD_NS).unwrap();
        assert_eq!(rounds.cable_us(), Statistics::default());
        assert_eq!(rounds.host_us(), Statistics::default());
    }

    #[test]
    fn stamps_of_two_clocks_are_refused() {
        let (ping, mut pong) = run(3, &[]);
        pong.received_ns[1] = Some(stamp(5));
        assert_eq!(
            Rounds::merge(ping, pong, None, PERIOD_NS),
            Err(MergeError::NotOneClock { id: 1 })
        );
    }

    #[test]
    fn stamps_of_two_runs_are_refused() {
        let ((ping, _), (_, pong)) = (run(3, &[]), run(4, &[]));
        let error = Rounds::merge(ping, pong, None, PERIOD_NS);
        assert_eq!(error, Err(MergeError::DifferentRuns { ping: 3, pong: 4 }));
    }
}
