//! Timestamps of round trips, and the statistics derived from them.
//!
//! Each end fills its own recorder, reserved before the start. The ping side records when a message was due, sent and
//! returned; the pong side records when it was received and answered. The timestamps of both ends, and of the cable if
//! any, are then merged by id into [`Rounds`]. A [`Dataset`] stores the rounds of each run in a file.
//!
//! Each timestamp has an array, and percentiles come from sorting exact values: a run has some ten thousand samples, so
//! a histogram would save nothing and blur the tail. A [`Distribution`] serves figures. No sample is ever trimmed.

mod dataset;
mod recorder;
mod rounds;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::clock::{NANOS_PER_SECOND, micros};
use crate::limits::SAMPLES_BEYOND_PERCENTILE;

pub use dataset::{Dataset, DatasetError};
pub(crate) use recorder::stamp;
pub use recorder::{PingRecorder, PongRecorder, Stamp, Verdict, nonce};
pub use rounds::{MergeError, OneWay, Rounds, StampClock};

/// Statistics in microseconds. A value that needs more samples is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Minimum.
    pub min: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p99_9: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Sample variance (divided by n - 1), in square microseconds.
    pub variance: Option<f64>,
}

impl Statistics {
    /// Summarises all samples, in nanoseconds and in any order.
    pub fn of(mut samples_ns: Vec<u64>) -> Statistics {
        samples_ns.sort_unstable();
        let count = samples_ns.len() as f64;
        let mean = (!samples_ns.is_empty())
            .then(|| samples_ns.iter().map(|&sample| micros(sample)).sum::<f64>() / count);
        let variance = mean.filter(|_| samples_ns.len() > 1).map(|mean| {
            let squares = samples_ns
                .iter()
                .map(|&sample| (micros(sample) - mean).powi(2));
            squares.sum::<f64>() / (count - 1.0)
        });
        Statistics {
            min: samples_ns.first().copied().map(micros),
            median: percentile_us(&samples_ns, 500),
            p99: percentile_us(&samples_ns, 990),
            p99_9: percentile_us(&samples_ns, 999),
            max: samples_ns.last().copied().map(micros),
            mean,
            variance,
        }
    }
}

/// Nearest-rank percentile of sorted samples in microseconds: the smallest sample that at least `per_mille`/1000 of the
/// samples do not exceed. `None` if fewer than [`SAMPLES_BEYOND_PERCENTILE`] samples lie beyond it.
pub(crate) fn percentile_us(sorted_ns: &[u64], per_mille: usize) -> Option<f64> {
    let rank = (sorted_ns.len() * per_mille).div_ceil(1000);
    let beyond = sorted_ns.len() - rank;
    if rank == 0 || beyond < SAMPLES_BEYOND_PERCENTILE {
        return None;
    }
    Some(micros(sorted_ns[rank - 1]))
}

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
            median: percentile_us(&values, 500),
            p99: percentile_us(&values, 990),
            max: values.last().copied().map(micros),
        }
    };
    let seconds = ordered.chunk_by(|a, b| number(a.0) == number(b.0));
    seconds.map(of_second).collect()
}

/// Median of the p99s of one-second windows. It describes a typical second on a machine whose stalls dominate the p99
/// of the whole run. Windows without a p99 are ignored.
pub fn window_p99_median_us(windows: &[Window]) -> Option<f64> {
    let mut p99s: Vec<f64> = windows.iter().filter_map(|window| window.p99).collect();
    p99s.sort_unstable_by(f64::total_cmp);
    let middle = p99s.len() / 2;
    match p99s.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(p99s[middle]),
        _ => Some((p99s[middle - 1] + p99s[middle]) / 2.0),
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
    fn known_values() {
        let all = Statistics::of((1..=10_000).map(|sample| sample * 1000).collect());
        assert_eq!(all.min, Some(1.0));
        assert_eq!(all.median, Some(5000.0));
        assert_eq!(all.p99, Some(9900.0));
        assert_eq!(all.p99_9, Some(9990.0));
        assert_eq!(all.max, Some(10_000.0));
        assert_eq!(all.mean, Some(5000.5));
        // n (n + 1) / 12
        assert!((all.variance.unwrap() - 10_000.0 * 10_001.0 / 12.0).abs() < 1e-3);
    }

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let of = |count: u64| Statistics::of((0..count).collect());
        assert_eq!(of(19).median, None);
        assert!(of(20).median.is_some());
        assert_eq!(of(999).p99, None);
        assert!(of(1000).p99.is_some());
        assert_eq!(of(9_999).p99_9, None);
        assert!(of(10_000).p99_9.is_some());
    }

    #[test]
    fn what_cannot_be_said_is_null_and_never_zero() {
        assert_eq!(Statistics::of(vec![]), Statistics::default());
        let one = Statistics::of(vec![5000]);
        assert_eq!(
            (one.min, one.max, one.mean),
            (Some(5.0), Some(5.0), Some(5.0))
        );
        assert_eq!((one.median, one.variance), (None, None));
        let text = serde_json::to_value(Statistics::default()).unwrap();
        for key in ["min", "median", "p99", "p99_9", "max", "mean", "variance"] {
            assert!(text.as_object().unwrap()[key].is_null(), "{key}");
        }
    }

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

    proptest! {
        #[test]
        fn the_summary_is_ordered_and_does_not_depend_on_the_order(
            mut samples in prop::collection::vec(0_u64..1_000_000_000, 1000..1200),
        ) {
            let all = Statistics::of(samples.clone());
            let ordered = [all.min, all.median, all.p99, all.max].map(Option::unwrap);
            prop_assert!(ordered.is_sorted());
            samples.reverse();
            prop_assert_eq!(Statistics::of(samples), all);
        }
    }
}

#[cfg(test)]
mod distribution_tests {
    use super::*;
    use proptest::prelude::*;

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
