//! Histogram with logarithmic buckets: a few hundred numbers that suffice to draw a series and its tail.

use serde::{Deserialize, Serialize};

/// Buckets per decade; each ends at 1.06 times its start.
const PER_DECADE: u32 = 40;

/// Sample counts per bucket. The counts add up to the series, without exception.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// Buckets per decade.
    pub per_decade: u32,
    /// Number of the first bucket, counted from 1 us: bucket n starts at 10^(n / `per_decade`) us.
    pub first: i32,
    /// Samples of each bucket from the first on.
    pub counts: Vec<u32>,
}

impl Distribution {
    /// Histogram of samples in nanoseconds, in any order; `None` if there are none.
    pub fn of(samples_ns: &[u64]) -> Option<Distribution> {
        let buckets = || {
            samples_ns
                .iter()
                .map(|&sample_ns| bucket(sample_ns, PER_DECADE))
        };
        let (first, last) = (buckets().min()?, buckets().max()?);
        let mut counts = vec![0; (last - first + 1) as usize];
        for bucket in buckets() {
            counts[(bucket - first) as usize] += 1;
        }
        Some(Distribution {
            per_decade: PER_DECADE,
            first,
            counts,
        })
    }

    /// Total number of samples.
    pub fn count(&self) -> u64 {
        self.counts.iter().copied().map(u64::from).sum()
    }

    /// Start of the bucket at index `at` of `counts`, in microseconds.
    pub fn start_us(&self, at: usize) -> f64 {
        bucket_start_us(self.first + at as i32, self.per_decade)
    }

    /// Complementary cumulative distribution: for each bucket's start in microseconds, the share of samples at or above
    /// it. It begins with 1 and falls.
    pub fn tail(&self) -> Vec<(f64, f64)> {
        let all = self.count().max(1) as f64;
        let mut left = self.count();
        let point = |(at, &count): (usize, &u32)| {
            let share = left as f64 / all;
            left -= u64::from(count);
            (self.start_us(at), share)
        };
        self.counts.iter().enumerate().map(point).collect()
    }
}

/// Bucket number of a sample, counted from 1 us. Samples below a nanosecond share the lowest bucket.
pub(crate) fn bucket(sample_ns: u64, per_decade: u32) -> i32 {
    let decades = (sample_ns.max(1) as f64 / 1e3).log10();
    (decades * f64::from(per_decade)).floor() as i32
}

/// Start of bucket `number`, in microseconds.
pub(crate) fn bucket_start_us(number: i32, per_decade: u32) -> f64 {
    10_f64.powf(f64::from(number) / f64::from(per_decade))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sample_is_in_the_bucket_that_starts_below_it() {
        let one = Distribution::of(&[215_000]).unwrap();
        assert_eq!(one.counts, [1]);
        assert!(one.start_us(0) <= 215.0 && one.start_us(1) > 215.0);
    }

    #[test]
    fn the_tail_says_which_share_is_not_below() {
        let two = Distribution::of(&[100_000, 100_000, 100_000, 200_000]).unwrap();
        let tail = two.tail();
        assert_eq!(tail.first().map(|point| point.1), Some(1.0));
        assert_eq!(tail.last().map(|point| point.1), Some(0.25));
        assert_eq!(tail.len(), two.counts.len());
    }

    #[test]
    fn of_no_samples_there_is_no_distribution() {
        assert_eq!(Distribution::of(&[]), None);
    }

    proptest! {
        #[test]
        fn every_sample_is_counted_once(samples in prop::collection::vec(any::<u64>(), 1..300)) {
            let all = Distribution::of(&samples).unwrap();
            prop_assert_eq!(all.count(), samples.len() as u64);
            prop_assert!(all.counts.first() > Some(&0) && all.counts.last() > Some(&0));
            prop_assert!(all.tail().windows(2).all(|pair| pair[0].1 >= pair[1].1));
        }
    }
}
