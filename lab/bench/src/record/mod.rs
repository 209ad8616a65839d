//! Timestamps of round trips, and the durations and windows derived from them.
//!
//! Each end fills its own recorder, reserved before the start. The ping side records when a message was due, sent and
//! returned; the pong side records when it was received and answered. The timestamps of both ends, and of the cable if
//! any, are then merged by id into [`Rounds`]. A [`Dataset`] stores the rounds of each run in a file.
//!
//! Each timestamp has an array, and [`crate::statistics`] sorts exact values: a run has some ten thousand samples, so a
//! histogram would save nothing and blur the tail. A [`Distribution`] serves figures. No sample is ever trimmed.

mod dataset;
mod recorder;
mod rounds;
mod shape;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::clock::{NANOS_PER_SECOND, micros};
use crate::statistics::Quantile;

pub use dataset::{Dataset, DatasetError};
pub(crate) use recorder::stamp;
pub use recorder::{PingRecorder, PongRecorder, Stamp, Verdict, nonce};
pub use rounds::{MergeError, OneWay, Rounds, StampClock};
pub use shape::{Bin, Shape};

/// Statistics of one second of a series, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Median.
    pub median: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
}

/// Splits a series of (time, value) samples in nanoseconds into one-second windows from the first time. Seconds without
/// samples have no window.
pub fn windows(samples: &[(u64, u64)]) -> Vec<Window> {
    let Some(start_ns) = samples.iter().map(|&(time, _)| time).min() else {
        return Vec::new();
    };
    let number = |time_ns: u64| (time_ns - start_ns) / NANOS_PER_SECOND;
    let mut ordered = samples.to_vec();
    ordered.sort_unstable();
    let of_second = |second: &[(u64, u64)]| {
        let mut values: Vec<u64> = second.iter().map(|&(_, value)| value).collect();
        values.sort_unstable();
        Window {
            median: Quantile::MEDIAN.of_sorted(&values).map(micros),
            p99: Quantile::P99.of_sorted(&values).map(micros),
            max: values.last().copied().map(micros),
        }
    };
    let seconds = ordered.chunk_by(|a, b| number(a.0) == number(b.0));
    seconds.map(of_second).collect()
}

/// Median of the p99s of one-second windows. It describes a typical second on a machine whose stalls dominate the p99
/// of the whole run. Windows without a p99 are ignored.
pub fn window_p99_median_us(windows: &[Window]) -> Option<f64> {
    median(windows.iter().filter_map(|window| window.p99))
}

/// Median of values; the mean of the two middle ones if their number is even.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// Buckets per decade; each ends at 1.06 times its start.
const PER_DECADE: i32 = 40;

/// Histogram of a series: its buckets with samples, as [start in us, end in us, samples], in ascending order. The
/// counts add up to the series, without exception.
///
/// All buckets are equally wide on a logarithmic axis. Those of an HDR histogram double their width at each power of
/// two, which a figure would show as a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution(pub Vec<(f64, f64, u64)>);

impl Distribution {
    /// Histogram of samples in nanoseconds, in any order; `None` if there are none.
    pub fn of(samples_ns: &[u64]) -> Option<Distribution> {
        let mut counts = BTreeMap::new();
        for &sample_ns in samples_ns {
            *counts.entry(bucket(sample_ns)).or_default() += 1;
        }
        let start_us = |bucket: i32| 10_f64.powf(f64::from(bucket) / f64::from(PER_DECADE));
        let buckets = counts.into_iter();
        let buckets = buckets.map(|(one, count)| (start_us(one), start_us(one + 1), count));
        (!samples_ns.is_empty()).then(|| Distribution(buckets.collect()))
    }
}

/// Bucket number of a sample, counted from 1 us. Samples below a nanosecond share the lowest bucket.
fn bucket(sample_ns: u64) -> i32 {
    let decades = (sample_ns.max(1) as f64 / 1e3).log10();
    (decades * f64::from(PER_DECADE)).floor() as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_bad_second_of_three_is_not_the_median_window() {
        let samples: Vec<(u64, u64)> = (0..6000_u64)
            .map(|id| {
                (
                    7 + id * 500_000,
                    if (2000..4000).contains(&id) {
                        9_000_000
                    } else {
                        200_000
                    },
                )
            })
            .collect();
        let typical_p99 = |samples: &[(u64, u64)]| window_p99_median_us(&windows(samples));
        assert_eq!(typical_p99(&samples), Some(200.0));
        assert_eq!(typical_p99(&samples[..4000]), Some((200.0 + 9000.0) / 2.0));
        assert_eq!(typical_p99(&samples[..100]), None);
        assert_eq!(typical_p99(&[]), None);
        let maxima = windows(&samples)
            .iter()
            .map(|window| window.max)
            .collect::<Vec<_>>();
        assert_eq!(maxima, [Some(200.0), Some(9000.0), Some(200.0)]);
    }

    #[test]
    fn a_sample_is_in_the_bucket_that_starts_below_it() {
        let one = Distribution::of(&[215_000]).unwrap();
        let [(start_us, end_us, 1)] = one.0[..] else {
            panic!("{one:?}");
        };
        assert!(start_us <= 215.0 && end_us > 215.0, "{one:?}");
    }

    #[test]
    fn of_no_samples_there_is_no_distribution() {
        assert_eq!(Distribution::of(&[]), None);
    }

    proptest! {
        #[test]
        fn every_sample_is_counted_once(samples in prop::collection::vec(any::<u64>(), 1..300)) {
            let all = Distribution::of(&samples).unwrap();
            let counts = all.0.iter().map(|&(_, _, count)| count);
            prop_assert_eq!(counts.sum::<u64>() as usize, samples.len());
            prop_assert!(all.0.iter().all(|&(_, _, count)| count > 0));
            prop_assert!(all.0.is_sorted_by(|one, next| one.1 <= next.0));
        }
    }
}
