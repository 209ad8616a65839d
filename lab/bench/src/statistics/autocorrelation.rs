//! Dependence between the values of a series, as far as it matters for a quantile.
//!
//! The error of a sample quantile is the error of the share of values at or below it. That share is the mean of an
//! indicator series of zeros and ones, whose variance is the long-run variance of the indicator divided by the number
//! of values. The indicator of independent values has the long-run variance p (1 - p). Dependence multiplies it by the
//! *inflation*.
//!
//! The inflation is the sum of the indicator's autocorrelations under the trapezoidal flat-top lag window of Politis
//! and Romano (1995), with the bandwidth rule of Politis (2003), "Adaptive bandwidth choice", Journal of Nonparametric
//! Statistics 15. The length of bootstrap blocks follows from the same autocorrelations: Politis and White (2004),
//! "Automatic block-length selection for the dependent bootstrap", Econometric Reviews 23, as corrected by Patton,
//! Politis and White (2009), for circular blocks.
//!
//! An indicator is stored as bits, so an autocovariance of n values costs n / 64 steps.

/// Number of successive autocorrelations that must be insignificant (K in Politis 2003).
const INSIGNIFICANT_LAGS: usize = 5;
/// Largest lag examined, as a multiple of the square root of the number of values. A longer dependence is cut here.
const MAX_LAG_FACTOR: f64 = 10.0;

/// Block length as a multiple of the published rule, which balances bias and variance of the variance's estimate.
/// Coverage suffers more from the bias, and longer blocks have less.
const BLOCK_FACTOR: usize = 2;
/// Lower bound of the inflation. Negative autocorrelations could bring it near 0, and intervals would be too short.
const LEAST_INFLATION: f64 = 0.5;

/// Dependence of an indicator series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dependence {
    /// Long-run variance of the indicator divided by that of independent values, which have 1.
    pub(super) inflation: f64,
    /// Equivalent degrees of freedom of the inflation's estimate, a spectral estimate at frequency 0 (Priestley 1981,
    /// "Spectral Analysis and Time Series", section 6.2.4).
    pub(super) freedom: f64,
    /// Length of bootstrap blocks: twice that of Politis and White, and at least twice the cube root of the number of
    /// values.
    pub(super) block_length: usize,
}

impl Dependence {
    /// Dependence of the indicator `value <= threshold` over a series in time order.
    pub(super) fn of(series: &[u64], threshold: u64) -> Dependence {
        let indicator = Indicator::of(series, threshold);
        let count = series.len() as f64;
        let least = count.cbrt().ceil() as usize;
        let longest =
            ((MAX_LAG_FACTOR * count.sqrt()) as usize).clamp(1, (series.len() / 4).max(1));
        let independent = Dependence {
            inflation: 1.0,
            freedom: count,
            block_length: (BLOCK_FACTOR * least).min(longest),
        };
        let share = indicator.mean;
        let variance = share * (1.0 - share);
        if variance <= 0.0 {
            return independent;
        }
        let mut correlations = Vec::new();
        let mut correlation = |lag: usize| {
            while correlations.len() <= lag {
                correlations.push(indicator.autocovariance(correlations.len()) / variance);
            }
            correlations[lag]
        };
        let bound = 2.0 * (count.log10() / count).sqrt();
        let mut last_significant = 0;
        let mut lag = 1;
        while lag <= last_significant + INSIGNIFICANT_LAGS && lag <= longest {
            if correlation(lag).abs() >= bound {
                last_significant = lag;
            }
            lag += 1;
        }
        let bandwidth = (2 * last_significant.max(least)).min(longest);
        let (mut sum, mut slope, mut weights) = (1.0, 0.0, 1.0);
        for lag in 1..bandwidth {
            let weight = 2.0 * flat_top(lag as f64 / bandwidth as f64);
            let weighted = weight * correlation(lag);
            weights += weight;
            sum += weighted;
            slope += weighted * lag as f64;
        }
        // The estimated mean lowers each autocovariance by the long-run variance over the number of values.
        let inflation = (sum / (1.0 - weights / count)).max(LEAST_INFLATION);
        let length = (1.5 * (slope / inflation).powi(2) * count).cbrt().ceil() as usize;
        let (length, least) = (BLOCK_FACTOR * length, BLOCK_FACTOR * least);
        Dependence {
            inflation,
            freedom: (0.75 * count / bandwidth as f64).max(1.0),
            block_length: length.clamp(least.min(longest), longest),
        }
    }
}

/// Flat-top lag window: 1 up to one half, then falling to 0 at 1.
fn flat_top(share: f64) -> f64 {
    (2.0 * (1.0 - share)).clamp(0.0, 1.0)
}

/// Series of zeros and ones, a bit each.
struct Indicator {
    words: Vec<u64>,
    count: usize,
    mean: f64,
    /// Number of ones before each word.
    before: Vec<usize>,
}

impl Indicator {
    fn of(series: &[u64], threshold: u64) -> Indicator {
        let pack = |chunk: &[u64]| {
            let bits = chunk.iter().enumerate();
            bits.fold(0, |word, (at, &value)| {
                word | (u64::from(value <= threshold) << at)
            })
        };
        let words: Vec<u64> = series.chunks(64).map(pack).collect();
        let mut ones = 0;
        let mut before = Vec::with_capacity(words.len());
        for word in &words {
            before.push(ones);
            ones += word.count_ones() as usize;
        }
        Indicator {
            words,
            count: series.len(),
            mean: ones as f64 / series.len().max(1) as f64,
            before,
        }
    }

    /// Number of ones among the first `count` values.
    fn ones_before(&self, count: usize) -> usize {
        match self.words.get(count / 64) {
            Some(word) => {
                let below = (1_u64 << (count % 64)) - 1;
                self.before[count / 64] + (word & below).count_ones() as usize
            }
            None => (self.mean * self.count as f64).round() as usize,
        }
    }

    /// Biased sample autocovariance at `lag`, less than the number of values.
    fn autocovariance(&self, lag: usize) -> f64 {
        let (skipped, shift) = (lag / 64, lag % 64);
        let later = &self.words[skipped..];
        let both: usize = (0..later.len())
            .map(|at| {
                let mut shifted = later[at] >> shift;
                if let (Some(next), true) = (later.get(at + 1), shift > 0) {
                    shifted |= next << (64 - shift);
                }
                (self.words[at] & shifted).count_ones() as usize
            })
            .sum();
        let all = self.ones_before(self.count);
        let early = self.ones_before(self.count - lag) as f64;
        let late = (all - self.ones_before(lag)) as f64;
        let pairs = (self.count - lag) as f64;
        let sum = both as f64 - self.mean * (early + late) + pairs * self.mean.powi(2);
        sum / self.count as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_autocovariance_of_bits_is_that_of_numbers(
            series in prop::collection::vec(0_u64..10, 2..300),
            lag in 0_usize..200,
        ) {
            prop_assume!(lag < series.len());
            let ones: Vec<f64> = series.iter().map(|&value| f64::from(value <= 3)).collect();
            let mean = ones.iter().sum::<f64>() / ones.len() as f64;
            let products = ones.iter().zip(&ones[lag..]).map(|(one, other)| (one - mean) * (other - mean));
            let expected = products.sum::<f64>() / ones.len() as f64;
            let actual = Indicator::of(&series, 3).autocovariance(lag);
            prop_assert!((actual - expected).abs() < 1e-9, "{actual} {expected}");
        }
    }

    #[test]
    fn a_burst_of_slow_values_is_dependence() {
        let in_turn: Vec<u64> = (0..4000).map(|at| at * 7919 % 4001).collect();
        let in_a_burst: Vec<u64> = (0..4000).collect();
        let threshold = 3600;
        assert!(Dependence::of(&in_turn, threshold).inflation < 1.5);
        let burst = Dependence::of(&in_a_burst, threshold);
        assert!(
            burst.inflation > 100.0 && burst.block_length > 100,
            "{burst:?}"
        );
    }

    #[test]
    fn an_indicator_without_variation_counts_as_independent() {
        assert_eq!(Dependence::of(&[5; 100], 5).inflation, 1.0);
        assert_eq!(Dependence::of(&[5], 5).inflation, 1.0);
        assert_eq!(Dependence::of(&[], 5).inflation, 1.0);
    }
}
