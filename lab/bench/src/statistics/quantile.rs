//! Quantiles of a series, and their intervals from order statistics.

use std::fmt;

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use statrs::function::beta::beta_reg;

use super::autocorrelation::Dependence;
use crate::limits::SAMPLES_BEYOND_PERCENTILE;

/// Variance of the binomial count above which its normal approximation is used. The ranks then differ by less than 0.02
/// standard deviations, and the continued fraction of the beta function would need many terms.
const NORMAL_FROM_VARIANCE: f64 = 1000.0;

/// Minimum effective number of values beyond a quantile with an interval. With fewer, the dependence between them
/// cannot be estimated from the series, and intervals are too short.
const MIN_EFFECTIVE_BEYOND: f64 = 5.0;

/// Share of a distribution, exact in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantile {
    millionths: u32,
}

impl Quantile {
    /// Half of the values.
    pub const MEDIAN: Quantile = Quantile::of_millionths(500_000);
    /// 99 %.
    pub const P99: Quantile = Quantile::of_millionths(990_000);
    /// 99.9 %.
    pub const P99_9: Quantile = Quantile::of_millionths(999_000);
    /// 99.99 %.
    pub const P99_99: Quantile = Quantile::of_millionths(999_900);
    /// 99.999 %.
    pub const P99_999: Quantile = Quantile::of_millionths(999_990);
    /// 99.9999 %.
    pub const P99_9999: Quantile = Quantile::of_millionths(999_999);

    const fn of_millionths(millionths: u32) -> Quantile {
        assert!(0 < millionths && millionths < 1_000_000);
        Quantile { millionths }
    }

    /// The share as a number between 0 and 1.
    pub(super) fn share(self) -> f64 {
        f64::from(self.millionths) / 1e6
    }

    /// Rank of the quantile among `count` values, counted from 1: the smallest that at least this share does not
    /// exceed. `None` if fewer than [`SAMPLES_BEYOND_PERCENTILE`] values lie beyond it.
    pub(super) fn rank(self, count: usize) -> Option<usize> {
        let rank = (count as u128 * u128::from(self.millionths)).div_ceil(1_000_000) as usize;
        (count - rank >= SAMPLES_BEYOND_PERCENTILE).then_some(rank)
    }

    /// Quantile of sorted values (nearest rank); `None` if fewer than [`SAMPLES_BEYOND_PERCENTILE`] lie beyond it.
    pub(crate) fn of_sorted(self, sorted_ns: &[u64]) -> Option<u64> {
        self.rank(sorted_ns.len()).map(|rank| sorted_ns[rank - 1])
    }

    /// Dependence between the values of a series around its quantile `estimate`. `None` if too few independent values
    /// lie beyond it for an interval.
    pub(super) fn dependence(self, series_ns: &[u64], estimate: u64) -> Option<Dependence> {
        let dependence = Dependence::of(series_ns, estimate);
        let effective = series_ns.len() as f64 / dependence.inflation;
        let beyond = effective * (1.0 - self.share());
        (beyond >= MIN_EFFECTIVE_BEYOND).then_some(dependence)
    }

    /// 95 % confidence interval in nanoseconds of this quantile of the distribution that a series in time order comes
    /// from. `sorted_ns` is the same series sorted. `None` without the quantile itself, with fewer than five
    /// effective values beyond it, or if the interval would reach beyond the extreme values.
    ///
    /// The bounds are order statistics, so no distribution is assumed. The number of values at or below the true
    /// quantile is binomial; the ranks are fractional as in Hutson (1999), "Calculating nonparametric confidence
    /// intervals for quantiles using fractional order statistics", Journal of Applied Statistics 26. For dependent
    /// values, the binomial count has the effective number of values, which is their number divided by the inflation
    /// (see [`Dependence`]); ranks are scaled back. Student's quantile replaces the normal one to cover the error of
    /// the inflation's estimate.
    pub(super) fn interval(self, series_ns: &[u64], sorted_ns: &[u64]) -> Option<[f64; 2]> {
        let estimate = self.of_sorted(sorted_ns)?;
        let dependence = self.dependence(series_ns, estimate)?;
        let tail = tail_for(dependence.freedom)?;
        let count = sorted_ns.len() as f64;
        let effective = count / dependence.inflation;
        let [low, high] = [1.0 - tail, tail].map(|probability| {
            let rank = fractional_rank(effective, self.share(), probability)?;
            at_rank(sorted_ns, rank * (count + 1.0) / (effective + 1.0))
        });
        Some([low?, high?])
    }
}

/// Probability of each tail of a normal variable with the bound of a 95 % interval of Student's distribution.
pub(super) fn tail_for(freedom: f64) -> Option<f64> {
    let bound = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.975);
    Some(Normal::standard().sf(bound))
}

impl fmt::Display for Quantile {
    /// The percentile, such as `p99.9`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "p{}", f64::from(self.millionths) / 1e4)
    }
}

/// Fractional rank r among `count` values whose order statistic is below the quantile `share` with `probability`:
/// I(share; r, count + 1 - r) = probability, with the regularised incomplete beta function I. `None` if the rank would
/// be below 1 or above `count`.
pub(super) fn fractional_rank(count: f64, share: f64, probability: f64) -> Option<f64> {
    let variance = count * share * (1.0 - share);
    let rank = if variance > NORMAL_FROM_VARIANCE {
        let deviations = Normal::standard().inverse_cdf(probability);
        (count + 1.0) * share - deviations * variance.sqrt()
    } else {
        let below = |rank: f64| beta_reg(rank, count + 1.0 - rank, share);
        // The probability falls as the rank rises.
        let (mut low, mut high) = (1.0, count);
        if count <= 1.0 || below(low) < probability || below(high) > probability {
            return None;
        }
        while high - low > 1e-6 * count.min(1e3) {
            let middle = f64::midpoint(low, high);
            if below(middle) > probability {
                low = middle;
            } else {
                high = middle;
            }
        }
        f64::midpoint(low, high)
    };
    (1.0..=count).contains(&rank).then_some(rank)
}

/// Order statistic of a fractional rank, linear between its neighbours; `None` outside the sample.
fn at_rank(sorted: &[u64], rank: f64) -> Option<f64> {
    if !(1.0..=sorted.len() as f64).contains(&rank) {
        return None;
    }
    let below = sorted[rank as usize - 1] as f64;
    let above = sorted[(rank.ceil() as usize) - 1] as f64;
    Some(below + (above - below) * rank.fract())
}
