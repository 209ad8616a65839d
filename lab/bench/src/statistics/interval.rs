//! Interval of a ratio, and the words for it. A verdict comes from an interval and from nothing else.

use serde::{Deserialize, Serialize};

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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(value: f64, low: f64, high: f64) -> String {
        Interval { value, low, high }.words()
    }

    #[test]
    fn an_interval_around_1_is_no_difference_seen() {
        assert_eq!(words(1.5, 0.9, 2.5), "no difference seen (0.90 to 2.50)");
        assert_eq!(words(1.0, 1.0, 1.0), "no difference seen (1.00 to 1.00)");
    }

    #[test]
    fn a_difference_is_described_in_its_direction() {
        assert_eq!(words(2.0, 1.6, 2.5), "2.00 times longer (1.60 to 2.50)");
        assert_eq!(words(0.5, 0.4, 0.625), "2.00 times shorter (1.60 to 2.50)");
    }
}
