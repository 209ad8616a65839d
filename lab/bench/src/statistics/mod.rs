//! Statistics of measured series: summaries, intervals of quantiles, and ratios between groups of runs.
//!
//! ```text
//!   series of a run, in time order --> Statistics: quantiles, intervals, variation of delay
//!   series of two groups of runs   --> quantile_ratio --> Interval --> verdict in words
//! ```
//!
//! A quantile is the nearest rank of the sorted values, and is left out with fewer than ten values beyond it. Nothing
//! is assumed about the distribution of values, and no value is trimmed. Successive values of a run depend on each
//! other, because a stall delays several of them; intervals take that from the autocorrelation (`autocorrelation`). A
//! verdict comes from an [`Interval`], never from two point estimates. Nothing here reads a clock or a random source:
//! resamples repeat with their seed.

mod autocorrelation;
mod bootstrap;
#[cfg(test)]
mod coverage;
mod interval;
mod quantile;
mod ratio;
#[cfg(test)]
mod reference;

use serde::{Deserialize, Serialize};

use crate::clock::micros;

pub use interval::Interval;
pub use quantile::Quantile;
pub use ratio::{paired_ratio, quantile_ratio, unpaired_ratio};

/// Statistics of a series in microseconds. A value that needs more samples is `None`. Results of versions that did not
/// record a value lack it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Statistics {
    /// Minimum.
    pub min: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// 95 % confidence interval of the median, as lower and upper bound.
    pub median_95: Option<[f64; 2]>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 95 % confidence interval of the 99th percentile.
    pub p99_95: Option<[f64; 2]>,
    /// 99.9th percentile.
    pub p99_9: Option<f64>,
    /// 95 % confidence interval of the 99.9th percentile.
    pub p99_9_95: Option<[f64; 2]>,
    /// 99.99th percentile.
    pub p99_99: Option<f64>,
    /// 99.999th percentile.
    pub p99_999: Option<f64>,
    /// 99.9999th percentile.
    pub p99_9999: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
    /// Maximum minus minimum.
    pub jitter: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Sample variance (divided by n - 1), in square microseconds.
    pub variance: Option<f64>,
    /// Square root of the sample variance.
    pub standard_deviation: Option<f64>,
    /// Mean packet delay variation: the absolute difference of consecutive values (RFC 3393).
    pub pdv_mean: Option<f64>,
    /// 99th percentile of the packet delay variation.
    pub pdv_p99: Option<f64>,
}

impl Statistics {
    /// Summarises all values of a series in time order, in nanoseconds.
    pub fn of(series_ns: Vec<u64>) -> Statistics {
        let mut sorted = series_ns.clone();
        sorted.sort_unstable();
        let quantile = |quantile: Quantile| quantile.of_sorted(&sorted).map(micros);
        let interval = |quantile: Quantile| {
            let bounds = quantile.interval(&series_ns, &sorted)?;
            Some(bounds.map(|bound_ns| bound_ns / 1e3))
        };
        // Sums over sorted values do not depend on the order of the series, not even in the last bit.
        let mean = mean_us(&sorted);
        let variance = mean.filter(|_| sorted.len() > 1).map(|mean| {
            let squares = sorted.iter().map(|&value| (micros(value) - mean).powi(2));
            squares.sum::<f64>() / (sorted.len() as f64 - 1.0)
        });
        let mut variations: Vec<u64> = series_ns
            .windows(2)
            .map(|pair| pair[0].abs_diff(pair[1]))
            .collect();
        variations.sort_unstable();
        let (min, max) = (sorted.first(), sorted.last());
        Statistics {
            min: min.copied().map(micros),
            median: quantile(Quantile::MEDIAN),
            median_95: interval(Quantile::MEDIAN),
            p99: quantile(Quantile::P99),
            p99_95: interval(Quantile::P99),
            p99_9: quantile(Quantile::P99_9),
            p99_9_95: interval(Quantile::P99_9),
            p99_99: quantile(Quantile::P99_99),
            p99_999: quantile(Quantile::P99_999),
            p99_9999: quantile(Quantile::P99_9999),
            max: max.copied().map(micros),
            jitter: min.zip(max).map(|(min, max)| micros(max - min)),
            mean,
            variance,
            standard_deviation: variance.map(f64::sqrt),
            pdv_mean: mean_us(&variations),
            pdv_p99: Quantile::P99.of_sorted(&variations).map(micros),
        }
    }
}

/// Arithmetic mean in microseconds; `None` without values.
fn mean_us(values_ns: &[u64]) -> Option<f64> {
    let sum: f64 = values_ns.iter().map(|&value| micros(value)).sum();
    (!values_ns.is_empty()).then(|| sum / values_ns.len() as f64)
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
        assert_eq!(all.p99_99, None);
        assert_eq!(all.max, Some(10_000.0));
        assert_eq!(all.jitter, Some(9_999.0));
        assert_eq!(all.mean, Some(5000.5));
        // n (n + 1) / 12
        let variance: f64 = 10_000.0 * 10_001.0 / 12.0;
        assert!((all.variance.unwrap() - variance).abs() < 1e-3);
        assert!((all.standard_deviation.unwrap() - variance.sqrt()).abs() < 1e-6);
        assert_eq!((all.pdv_mean, all.pdv_p99), (Some(1.0), Some(1.0)));
    }

    #[test]
    fn a_quantile_needs_ten_samples_beyond_it() {
        let of = |count: u64| Statistics::of((0..count).collect());
        assert_eq!(of(19).median, None);
        assert!(of(20).median.is_some());
        assert_eq!(of(999).p99, None);
        assert!(of(1000).p99.is_some());
        assert_eq!(of(1000).pdv_p99, None);
        assert!(of(1001).pdv_p99.is_some());
        assert_eq!(of(9_999).p99_9, None);
        assert!(of(10_000).p99_9.is_some());
        assert_eq!(of(99_999).p99_99, None);
        assert!(of(100_000).p99_99.is_some());
    }

    #[test]
    fn an_unavailable_value_is_null_and_never_zero() {
        assert_eq!(Statistics::of(vec![]), Statistics::default());
        let one = Statistics::of(vec![5000]);
        assert_eq!(
            (one.min, one.max, one.mean, one.jitter),
            (Some(5.0), Some(5.0), Some(5.0), Some(0.0))
        );
        assert_eq!((one.median, one.variance, one.pdv_mean), (None, None, None));
        let text = serde_json::to_value(Statistics::default()).unwrap();
        let members = text.as_object().unwrap();
        assert_eq!(members.len(), 17);
        assert!(members.values().all(serde_json::Value::is_null), "{text}");
    }

    #[test]
    fn results_of_earlier_versions_are_read() {
        let text = r#"{"min":1.0,"median":2.0,"p99":3.0,"p99_9":null,"max":4.0,"mean":2.5,"variance":0.5}"#;
        let read: Statistics = serde_json::from_str(text).unwrap();
        assert_eq!((read.p99, read.variance), (Some(3.0), Some(0.5)));
        assert_eq!((read.p99_95, read.jitter), (None, None));
    }

    #[test]
    fn a_burst_of_slow_values_widens_the_interval_of_a_percentile() {
        let width = |value: fn(u64) -> u64| {
            let all = Statistics::of((0..10_000).map(value).collect());
            let [low, high] = all.p99_95.unwrap();
            high - low
        };
        let scattered = width(|at| at * 7919 % 10_007);
        // Saw teeth: the slowest values follow each other.
        let in_bursts = width(|at| at % 1000 * 10 + at / 1000);
        assert!(in_bursts > 1.5 * scattered, "{in_bursts} {scattered}");
    }

    proptest! {
        #[test]
        fn the_summary_is_ordered_and_only_variation_and_intervals_depend_on_the_order(
            (series, shuffled) in prop::collection::vec(0_u64..1_000_000_000, 1000..1200)
                .prop_flat_map(|series| (Just(series.clone()), Just(series).prop_shuffle())),
        ) {
            let all = Statistics::of(series);
            let ordered = [all.min, all.median, all.p99, all.max].map(Option::unwrap);
            prop_assert!(ordered.is_sorted());
            for (value, bounds) in [(all.median, all.median_95), (all.p99, all.p99_95)] {
                if let Some([low, high]) = bounds {
                    prop_assert!([Some(low), value, Some(high)].is_sorted(), "{all:?}");
                }
            }
            let other = Statistics::of(shuffled);
            let of_order = Statistics {
                median_95: all.median_95,
                p99_95: all.p99_95,
                p99_9_95: all.p99_9_95,
                pdv_mean: all.pdv_mean,
                pdv_p99: all.pdv_p99,
                ..other
            };
            prop_assert_eq!(of_order, all);
        }
    }
}
