//! Interval of a ratio. A verdict comes from an interval and from nothing else.

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
}
