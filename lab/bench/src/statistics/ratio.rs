//! Ratios between two groups of runs, with 95 % intervals.
//!
//! Disturbances of a machine multiply times, so logarithms are compared. What an interval is computed from depends on
//! the number of runs:
//!
//! | runs of each group | interval |
//! | --- | --- |
//! | 1 | percentiles of a block bootstrap; covers the variation within the two runs, not between repetitions |
//! | the same number, at least 2 | Student's of the logarithms of the pairs' ratios |
//! | different numbers, each at least 3 | Welch's of the logarithms of the runs' quantiles |
//!
//! The bootstrap's percentiles also cover where a quantile lies between two modes, such as undisturbed round trips and
//! stalls. Symmetric, smoothed and order-statistic intervals of the ratio fail there. The percentiles cover 95.9 % if
//! both groups are independent and alike with only 20 values beyond the quantile. With autocorrelation, they cover only
//! 92 % if one group with 20 values beyond the quantile dominates the error. `coverage.rs` measures coverage.
//!
//! With several runs, the variation between repetitions contains that within runs, so runs are not resampled. A nested
//! bootstrap of repetitions and blocks counts the variation within runs twice, and estimates that between five
//! repetitions too small by a fifth: Davison and Hinkley (1997), "Bootstrap Methods and their Application", section
//! 3.8. Its intervals cover too often where runs differ little, and too rarely where they differ much. Student's
//! interval of pairs is also the interval of Hartung and Knapp (2001), "On tests of the overall treatment effect in
//! meta-analysis", Statistics in Medicine 20, for runs of equal weight.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::bootstrap::BlockBootstrap;
use super::{Interval, Quantile};

/// Resamples of a block bootstrap.
const RESAMPLES: usize = 1000;
/// Minimum number of unpaired values in a group. With two, the interval spans orders of magnitude.
const MIN_UNPAIRED: usize = 3;

/// Ratio of a quantile between two groups of runs. A run is a series in time order, in nanoseconds. Groups with the
/// same number of runs are pairs in the given order: run n of both groups is repetition n, measured close in time. The
/// same `seed` gives the same interval.
///
/// The value is the geometric mean of the pairs' ratios, or the ratio of the geometric means of unpaired runs. `None`
/// if a run is too short for the quantile, a quantile is 0, or the groups are too small (see the module's table).
pub fn quantile_ratio(
    dividend: &[&[u64]],
    divisor: &[&[u64]],
    quantile: Quantile,
    seed: u64,
) -> Option<Interval> {
    if let ([dividend], [divisor]) = (dividend, divisor) {
        return single_ratio(dividend, divisor, quantile, seed);
    }
    let of_runs = |runs: &[&[u64]]| -> Option<Vec<f64>> {
        let of_run = |run: &&[u64]| Some(quantile.of_sorted(&sorted(run))? as f64);
        runs.iter().map(of_run).collect()
    };
    let (dividends, divisors) = (of_runs(dividend)?, of_runs(divisor)?);
    if dividends.len() == divisors.len() {
        let pairs = dividends.iter().zip(&divisors);
        paired_ratio(&pairs.map(|(one, other)| one / other).collect::<Vec<f64>>())
    } else {
        unpaired_ratio(&dividends, &divisors)
    }
}

/// Ratio between two runs. The interval is that of the bootstrap's percentiles.
fn single_ratio(
    dividend: &[u64],
    divisor: &[u64],
    quantile: Quantile,
    seed: u64,
) -> Option<Interval> {
    let all_sorted = [sorted(dividend), sorted(divisor)];
    let mut dividend = BlockBootstrap::new(dividend, &all_sorted[0], quantile)?;
    let mut divisor = BlockBootstrap::new(divisor, &all_sorted[1], quantile)?;
    if divisor.estimate() == 0 {
        return None;
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| dividend.resample(&mut random) as f64 / divisor.resample(&mut random) as f64)
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    // 2.5 % of the resamples on each side, the bound included.
    let beyond = RESAMPLES / 40;
    let interval = Interval {
        value: dividend.estimate() as f64 / divisor.estimate() as f64,
        low: ratios[beyond - 1],
        high: ratios[RESAMPLES - beyond],
    };
    (interval.low > 0.0 && interval.high.is_finite()).then_some(interval)
}

/// Geometric mean of the ratios of pairs, with Student's interval of their logarithms. `None` with fewer than two
/// pairs, or if a ratio is not positive.
pub fn paired_ratio(ratios: &[f64]) -> Option<Interval> {
    let pairs = Logarithms::of(ratios)?;
    let freedom = pairs.count - 1.0;
    exponential(pairs.mean, pairs.mean_variance()?.sqrt(), freedom)
}

/// Ratio of the geometric means of two groups of values, with Welch's interval of their logarithms. `None` if a group
/// has fewer than three values, or one that is not positive.
pub fn unpaired_ratio(dividend: &[f64], divisor: &[f64]) -> Option<Interval> {
    if dividend.len().min(divisor.len()) < MIN_UNPAIRED {
        return None;
    }
    let groups = [Logarithms::of(dividend)?, Logarithms::of(divisor)?];
    let [one, other] = [groups[0].mean_variance()?, groups[1].mean_variance()?];
    let variance = one + other;
    let share = |part: f64, group: &Logarithms| part.powi(2) / (group.count - 1.0);
    let shares = share(one, &groups[0]) + share(other, &groups[1]);
    let freedom = if shares > 0.0 {
        variance.powi(2) / shares
    } else {
        1.0
    };
    exponential(groups[0].mean - groups[1].mean, variance.sqrt(), freedom)
}

/// Interval of a ratio from the mean of its logarithm and the mean's standard error.
fn exponential(mean: f64, error: f64, freedom: f64) -> Option<Interval> {
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let half = student.inverse_cdf(0.975) * error;
    Some(Interval {
        value: mean.exp(),
        low: (mean - half).exp(),
        high: (mean + half).exp(),
    })
}

/// Values on a logarithmic scale.
struct Logarithms {
    count: f64,
    mean: f64,
    /// Sum of squared deviations from the mean.
    squares: f64,
}

impl Logarithms {
    /// Logarithms of a group; `None` without values, or if one is not positive.
    fn of(values: &[f64]) -> Option<Logarithms> {
        if values.is_empty()
            || values
                .iter()
                .any(|&value| value <= 0.0 || !value.is_finite())
        {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().map(|value| value.ln()).sum::<f64>() / count;
        let squares = values.iter().map(|value| (value.ln() - mean).powi(2)).sum();
        Some(Logarithms {
            count,
            mean,
            squares,
        })
    }

    /// Variance of the mean; `None` for one value.
    fn mean_variance(&self) -> Option<f64> {
        (self.count > 1.0).then(|| self.squares / (self.count - 1.0) / self.count)
    }
}

fn sorted(series: &[u64]) -> Vec<u64> {
    let mut sorted = series.to_vec();
    sorted.sort_unstable();
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Series of independent values, uniform from `least_ns` to twice that.
    fn series(least_ns: u64, seed: u64) -> Vec<u64> {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..2000)
            .map(|_| random.u64(least_ns..2 * least_ns))
            .collect()
    }

    #[test]
    fn a_ratio_repeats_with_its_seed() {
        let (one, other) = (series(200_000, 1), series(100_000, 2));
        let ratio = |seed| quantile_ratio(&[&one], &[&other], Quantile::P99, seed).unwrap();
        assert_eq!(ratio(7), ratio(7));
        assert_ne!(ratio(7), ratio(8));
        assert!((ratio(7).value - 2.0).abs() < 0.02, "{:?}", ratio(7));
    }

    #[test]
    fn two_series_of_one_distribution_show_no_difference() {
        let (one, other) = (series(100_000, 1), series(100_000, 2));
        for quantile in [Quantile::MEDIAN, Quantile::P99] {
            let ratio = quantile_ratio(&[&one], &[&other], quantile, 1).unwrap();
            assert!(!ratio.is_difference(), "{ratio:?}");
        }
        let same = quantile_ratio(&[&one, &other], &[&one, &other], Quantile::P99, 1).unwrap();
        assert!(!same.is_difference());
    }

    #[test]
    fn what_multiplies_both_runs_of_a_pair_cancels() {
        let runs: Vec<[Vec<u64>; 2]> = (1..=5)
            .map(|noise| {
                [
                    series(noise * 150_000, noise),
                    series(noise * 100_000, 9 + noise),
                ]
            })
            .collect();
        let group = |of: usize| -> Vec<&[u64]> { runs.iter().map(|pair| &*pair[of]).collect() };
        let paired = quantile_ratio(&group(0), &group(1), Quantile::MEDIAN, 1).unwrap();
        assert!(
            paired.is_difference() && (paired.value - 1.5).abs() < 0.1,
            "{paired:?}"
        );
        let unpaired = quantile_ratio(&group(0), &group(1)[..4], Quantile::MEDIAN, 1).unwrap();
        assert!(!unpaired.is_difference(), "{unpaired:?}");
    }

    #[test]
    fn too_little_is_no_ratio() {
        let one = series(100_000, 1);
        let short = &one[..500];
        let ratio = |dividend: &[&[u64]], divisor: &[&[u64]]| {
            quantile_ratio(dividend, divisor, Quantile::P99, 1)
        };
        assert_eq!(ratio(&[&one], &[short]), None);
        assert_eq!(ratio(&[&one], &[&one, &one, &one]), None);
        assert_eq!(ratio(&[&*one; 2], &[&*one; 3]), None);
        assert_eq!(ratio(&[], &[]), None);
        assert_eq!(ratio(&[&one], &[&[0; 2000]]), None);
    }

    #[test]
    fn of_pairs_their_ratios_alone_are_compared() {
        // Student's t for two degrees of freedom is 4.303, the deviation ln 2 / sqrt 3.
        let interval = paired_ratio(&[1.0, 2.0, 4.0]).unwrap();
        assert!((interval.value - 2.0).abs() < 1e-9);
        let half = 4.302_653 * 2.0_f64.ln() / 3.0_f64.sqrt();
        assert!(
            (interval.high - 2.0 * half.exp()).abs() < 1e-5,
            "{interval:?}"
        );
        assert!(!interval.is_difference());
        assert_eq!(paired_ratio(&[2.0]), None);
        assert_eq!(paired_ratio(&[2.0, 0.0]), None);
    }

    #[test]
    fn a_difference_is_seen_beyond_the_noise_of_unpaired_values_only() {
        let noisy = unpaired_ratio(&[110.0, 160.0, 115.0], &[100.0, 150.0, 120.0]).unwrap();
        assert!(!noisy.is_difference(), "{noisy:?}");
        let (slow, fast) = ([200.0, 204.0, 196.0], [100.0, 102.0, 98.0]);
        let longer = unpaired_ratio(&slow, &fast).unwrap();
        assert!(longer.low > 1.0 && longer.is_difference(), "{longer:?}");
        assert!((longer.value - 2.0).abs() < 1e-9, "{longer:?}");
        let shorter = unpaired_ratio(&fast, &slow).unwrap();
        assert!(shorter.high < 1.0 && shorter.is_difference(), "{shorter:?}");
        assert_eq!(unpaired_ratio(&slow, &fast[..2]), None);
        assert_eq!(unpaired_ratio(&slow, &[0.0, 1.0, 1.0]), None);
    }
}
