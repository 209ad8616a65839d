//! Interim.
use serde::{Deserialize, Serialize};
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}
impl Interval {
    pub fn is_difference(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}
#[derive(Clone, Copy, Debug)]
pub struct Quantile(f64);
impl Quantile {
    pub const MEDIAN: Quantile = Quantile(0.5);
    pub const P99: Quantile = Quantile(0.99);
    pub const P99_9: Quantile = Quantile(0.999);
}
pub fn ratio(pairs: &[[&[u64]; 2]], q: Quantile) -> Option<Interval> {
    let of = |s: &[u64]| {
        let mut s = s.to_vec();
        s.sort_unstable();
        s.get((s.len() as f64 * q.0) as usize)
            .copied()
            .map(|v| v as f64)
    };
    let r: Vec<f64> = pairs
        .iter()
        .filter_map(|[a, b]| Some(of(a)? / of(b)?))
        .collect();
    (!r.is_empty()).then(|| {
        let m = r.iter().sum::<f64>() / r.len() as f64;
        Interval {
            value: m,
            low: m,
            high: m,
        }
    })
}
