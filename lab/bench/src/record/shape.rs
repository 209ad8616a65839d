//! Shape of a run's round trips, for box plots and time series.

use serde::{Deserialize, Serialize};

use super::Rounds;
use crate::clock::{NANOS_PER_SECOND, micros};

/// Quantiles of a box plot: ends of the whiskers, edges of the box, and the median.
const QUANTILES: [f64; 5] = [0.0001, 0.25, 0.5, 0.75, 0.9999];
/// Maximum number of points beyond the whiskers that a result keeps.
const MAX_POINTS: usize = 400;
/// Bins of a time series.
const BINS: u64 = 200;

/// Shape of the round trips. Times are microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Quantiles 0.01, 25, 50, 75 and 99.99 % (nearest rank). With fewer than 10,000 round trips, the outer ones are the
    /// shortest and the longest.
    pub quantiles_us: [f64; 5],
    /// Round trips below the first or above the last of these quantiles, the longest first.
    pub beyond_us: Vec<f64>,
    /// Number of such round trips that are left out.
    pub omitted: usize,
    /// Length of a bin of the time series, in seconds.
    pub bin_s: f64,
    /// Bins from the first ping on.
    pub bins: Vec<Bin>,
}

/// Round trips of pings that were due within a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Median; null if no ping of the bin returned.
    pub median_us: Option<f64>,
    /// Maximum.
    pub max_us: Option<f64>,
    /// Pings that were sent more than half a period late: their sender was stalled.
    pub late: u32,
}

impl Shape {
    /// Shape of a run; `None` if no ping returned.
    pub fn of(rounds: &Rounds) -> Option<Shape> {
        let mut sorted = rounds.rtt_ns();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        let rank =
            |share: f64| ((sorted.len() as f64 * share).ceil() as usize).clamp(1, last + 1) - 1;
        let [low, .., high] = QUANTILES.map(rank);
        let beyond = sorted[high..].iter().skip(1).rev().chain(&sorted[..low]);
        let points = last - high + low;
        let samples: Vec<_> = rounds.samples_in_time().collect();
        let start_ns = samples.first()?.0;
        let length_ns = samples.last()?.0 - start_ns + 1;
        let bin_ns = length_ns.div_ceil(BINS).max(1);
        let in_bin = |due_ns: u64| (due_ns - start_ns) / bin_ns;
        let mut bins = vec![Bin::default(); in_bin(start_ns + length_ns - 1) as usize + 1];
        for bin in samples.chunk_by(|a, b| in_bin(a.0) == in_bin(b.0)) {
            let mut times: Vec<u64> = bin.iter().filter_map(|sample| sample.1).collect();
            times.sort_unstable();
            bins[in_bin(bin[0].0) as usize] = Bin {
                median_us: times.get(times.len() / 2).copied().map(micros),
                max_us: times.last().copied().map(micros),
                late: bin.iter().filter(|sample| sample.2).count() as u32,
            };
        }
        Some(Shape {
            quantiles_us: QUANTILES.map(|share| micros(sorted[rank(share)])),
            beyond_us: beyond.take(MAX_POINTS).map(|&ns| micros(ns)).collect(),
            omitted: points.saturating_sub(MAX_POINTS),
            bin_s: bin_ns as f64 / NANOS_PER_SECOND as f64,
            bins,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{PingRecorder, PongRecorder, StampClock};

    /// Rounds at 1 kHz that took these times; every tenth ping is sent 0.6 ms late, and 0 means lost.
    fn rounds(times_us: &[u64]) -> Rounds {
        let samples = times_us.len() as u32;
        let (mut ping, pong) = (PingRecorder::new(samples, 1), PongRecorder::new(samples, 1));
        for (id, time_us) in (0..).zip(times_us) {
            let due_ns = 1 + u64::from(id) * 1_000_000;
            let late_ns = if id % 10 == 0 { 600_000 } else { 0 };
            ping.sent(id, due_ns, due_ns + late_ns);
            if *time_us > 0 {
                ping.returned(id, ping.nonce(id), due_ns + time_us * 1_000);
            }
        }
        Rounds::merge(ping, pong, None, 1_000_000, [&StampClock::default(); 2]).expect("rounds")
    }

    #[test]
    fn whiskers_end_at_their_quantiles_and_the_points_beyond_are_kept() {
        let times: Vec<u64> = (1_000..21_000).collect();
        let shape = Shape::of(&rounds(&times)).expect("a shape");
        assert_eq!(
            shape.quantiles_us,
            [1_001.0, 5_999.0, 10_999.0, 15_999.0, 20_997.0]
        );
        assert_eq!(shape.beyond_us, [20_999.0, 20_998.0, 1_000.0]);
        assert_eq!(shape.omitted, 0);
        let few = Shape::of(&rounds(&[1_000, 3_000, 2_000])).expect("a shape");
        assert_eq!(
            few.quantiles_us,
            [1_000.0, 1_000.0, 2_000.0, 3_000.0, 3_000.0]
        );
        assert_eq!(few.beyond_us, [0.0; 0]);
        assert_eq!(Shape::of(&rounds(&[0, 0])), None);
    }

    #[test]
    fn bins_have_the_times_and_the_late_pings_of_their_part_of_the_run() {
        let mut times = vec![700; 1_000];
        (times[3], times[999]) = (9_000, 0);
        let shape = Shape::of(&rounds(&times)).expect("a shape");
        assert_eq!(shape.bins.len(), 200);
        assert!((shape.bin_s - 0.005).abs() < 1e-4, "{}", shape.bin_s);
        let first = Bin {
            median_us: Some(700.0),
            max_us: Some(9_000.0),
            late: 1,
        };
        assert_eq!(shape.bins[0], first);
        let late: u32 = shape.bins.iter().map(|bin| bin.late).sum();
        assert_eq!(late, 100);
    }
}
