//! Ratios of p99 values and their confidence intervals.
//!
//! A row's values are the p99s of its repetitions, or, with one repetition, of its seconds. Noise of the machine
//! multiplies the times, so logarithms are compared. The noise is the variance within rows, pooled over all rows of a
//! block because two or three values say little; the two compared rows' own variance is used if larger. The interval is
//! Student's for a difference of two means (95 %). Seconds of one run are not independent, so an interval from seconds
//! is narrower than one from repetitions.

use serde::{Deserialize, Serialize};

/// Minimum number of values per row. With two, the interval spans orders of magnitude.
const MIN_VALUES: usize = 3;

/// Time span of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A whole run.
    Repetition,
    /// A second of a run.
    Second,
}

/// Ratio with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Point estimate.
    pub value: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl Interval {
    /// Returns whether the interval excludes 1.
    pub fn is_difference(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }

    /// Description in words.
    pub fn words(&self) -> String {
        let Interval { value, low, high } = *self;
        if low > 1.0 {
            format!("{value:.2} times longer ({low:.2} to {high:.2})")
        } else if high < 1.0 {
            let [times, least, most] = [value, high, low].map(f64::recip);
            format!("{times:.2} times shorter ({least:.2} to {most:.2})")
        } else {
            format!("no difference seen ({low:.2} to {high:.2})")
        }
    }
}

/// Ratio of `row` to `base`, both with positive values, with the noise of `all` rows. `None` if a row has fewer than
/// [`MIN_VALUES`].
pub(super) fn ratio(row: &[f64], base: &[f64], all: &[Vec<f64>]) -> Option<Interval> {
    if row.len().min(base.len()) < MIN_VALUES {
        return None;
    }
    let (row, base) = (Logarithms::of(row)?, Logarithms::of(base)?);
    let rows: Vec<Logarithms> = all.iter().filter_map(|row| Logarithms::of(row)).collect();
    let pooled = Noise::of(&rows)?;
    let own = Noise::of(&[row, base]);
    // The degrees of freedom are always the pooled ones. A larger variance of the two rows can only widen the interval.
    let variance = own.map_or(pooled.variance, |own| own.variance.max(pooled.variance));
    let spread = (variance * (1.0 / row.count + 1.0 / base.count)).sqrt();
    let half = student(pooled.freedom) * spread;
    let difference = row.mean - base.mean;
    Some(Interval {
        value: difference.exp(),
        low: (difference - half).exp(),
        high: (difference + half).exp(),
    })
}

/// Mean ratio of pairs, from their positive ratios. `None` if there are too few to estimate the noise.
pub(super) fn paired(ratios: &[f64]) -> Option<Interval> {
    let pairs = Logarithms::of(ratios)?;
    let noise = Noise::of(&[pairs])?;
    let half = student(noise.freedom) * (noise.variance / pairs.count).sqrt();
    Some(Interval {
        value: pairs.mean.exp(),
        low: (pairs.mean - half).exp(),
        high: (pairs.mean + half).exp(),
    })
}

/// Values of a row on a logarithmic scale.
#[derive(Clone, Copy)]
struct Logarithms {
    count: f64,
    mean: f64,
    /// Sum of squared deviations from the mean.
    squares: f64,
}

impl Logarithms {
    /// Logarithms of a row; `None` without values, or if one is not positive.
    fn of(values: &[f64]) -> Option<Logarithms> {
        if values.is_empty() || values.iter().any(|&value| value <= 0.0) {
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
}

/// Variance within rows, with its degrees of freedom.
struct Noise {
    variance: f64,
    freedom: usize,
}

impl Noise {
    fn of(rows: &[Logarithms]) -> Option<Noise> {
        let freedom: f64 = rows.iter().map(|row| row.count - 1.0).sum();
        let squares: f64 = rows.iter().map(|row| row.squares).sum();
        (freedom >= 1.0).then(|| Noise {
            variance: squares / freedom,
            freedom: freedom as usize,
        })
    }
}

/// Student's t, 97.5 % quantile, for `freedom` degrees of freedom.
fn student(freedom: usize) -> f64 {
    const FROM_ONE: [f64; 20] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    ];
    // Beyond the table, its last value makes the interval slightly too wide, never too narrow.
    let last = FROM_ONE.len();
    FROM_ONE[freedom.clamp(1, last) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_within_the_noise_is_not_seen() {
        let rows = [vec![100.0, 150.0, 120.0], vec![110.0, 160.0, 115.0]];
        let interval = ratio(&rows[1], &rows[0], &rows).unwrap();
        assert!(!interval.is_difference(), "{interval:?}");
        assert!(
            interval.words().starts_with("no difference seen ("),
            "{}",
            interval.words()
        );
    }

    #[test]
    fn a_difference_beyond_the_noise_is_reported_in_its_direction() {
        let rows = [vec![100.0, 102.0, 98.0], vec![200.0, 204.0, 196.0]];
        let longer = ratio(&rows[1], &rows[0], &rows).unwrap();
        assert!(
            longer.words().starts_with("2.00 times longer (1."),
            "{}",
            longer.words()
        );
        let shorter = ratio(&rows[0], &rows[1], &rows).unwrap();
        assert!(
            shorter.words().starts_with("2.00 times shorter (1."),
            "{}",
            shorter.words()
        );
        assert!(shorter.low < 0.5 && 0.5 < shorter.high);
    }

    #[test]
    fn the_noise_of_other_rows_widens_what_few_values_say() {
        let pair = [vec![100.0, 101.0, 100.0], vec![130.0, 131.0, 130.0]];
        let noisy = [pair[0].clone(), pair[1].clone(), vec![100.0, 400.0]];
        assert!(ratio(&pair[1], &pair[0], &pair).unwrap().is_difference());
        assert!(!ratio(&pair[1], &pair[0], &noisy).unwrap().is_difference());
    }

    #[test]
    fn of_pairs_their_ratios_alone_are_compared() {
        // Student's t for two degrees of freedom is 4.303, the deviation ln 2 / sqrt 3.
        let interval = paired(&[1.0, 2.0, 4.0]).unwrap();
        assert!((interval.value - 2.0).abs() < 1e-9);
        let half = 4.303 * 2.0_f64.ln() / 3.0_f64.sqrt();
        assert!(
            (interval.high - 2.0 * half.exp()).abs() < 1e-9,
            "{interval:?}"
        );
        assert!(!interval.is_difference());
        assert_eq!(paired(&[2.0]), None);
        assert_eq!(paired(&[2.0, 0.0]), None);
    }

    #[test]
    fn fewer_than_three_values_a_row_carry_no_verdict() {
        for values in 0..3 {
            let rows = [vec![100.0; 3], vec![900.0; values]];
            assert_eq!(ratio(&rows[1], &rows[0], &rows), None);
            assert_eq!(ratio(&rows[0], &rows[1], &rows), None);
        }
        let zero = [0.0, 1.0, 1.0];
        assert_eq!(ratio(&zero, &[1.0, 2.0, 1.0], &[vec![1.0, 2.0]]), None);
    }
}
