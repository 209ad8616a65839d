//! Histogram of the latencies of a reader's samples, while somebody observes. [`LatencySample`] defines a latency.

use isolane_wire::time::Instant;

use super::schema::LatencySample;

/// Base-2 logarithm of the number of buckets per power of two. The ends of a bucket differ by at most 1/32 (3.2 %).
const BUCKET_BITS: u32 = 5;

/// Longest latency that has a bucket of its own, 68 s. Longer ones count as this one.
const LONGEST_NS: u64 = (1 << 36) - 1;

/// Buckets from 0 to [`LONGEST_NS`].
const BUCKETS: usize = bucket_of(LONGEST_NS) + 1;

/// Histogram of the latencies of one reader in an interval. The width of a bucket grows with its values.
#[derive(Debug)]
pub(crate) struct LatencyHistogram {
    since: Instant,
    samples: u64,
    max_ns: u64,
    buckets: [u32; BUCKETS],
}

impl LatencyHistogram {
    pub(crate) const fn new(since: Instant) -> Self {
        Self {
            since,
            samples: 0,
            max_ns: 0,
            buckets: [0; BUCKETS],
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, arrived: Instant, now: Instant) {
        let ns = now.as_nanos().saturating_sub(arrived.as_nanos());
        self.samples += 1;
        self.max_ns = self.max_ns.max(ns);
        let count = &mut self.buckets[bucket_of(ns.min(LONGEST_NS))];
        *count = count.saturating_add(1);
    }

    /// Returns the percentiles of the interval that ends now, and begins the next interval. Each bucket is read once.
    pub(super) fn end_interval(&mut self, now: Instant) -> LatencySample {
        let us = |ns: u64| ns as f64 / 1e3;
        let ranks = [50, 99].map(|per_cent| nearest_rank(self.samples, per_cent));
        let (mut percentiles, mut counted) = ([None; 2], 0);
        for (bucket, count) in self.buckets.iter().enumerate() {
            counted += u64::from(*count);
            for (percentile, rank) in percentiles.iter_mut().zip(ranks) {
                if counted >= rank && percentile.is_none() {
                    *percentile = Some(us(upper_end(bucket).min(self.max_ns)));
                }
            }
            if counted == self.samples {
                break;
            }
        }
        let [median_us, p99_us] = percentiles;
        let sample = LatencySample {
            interval_us: us(now.as_nanos().saturating_sub(self.since.as_nanos())),
            samples: self.samples,
            median_us,
            p99_us,
            max_us: (self.samples > 0).then_some(us(self.max_ns)),
        };
        self.buckets.fill(0);
        (self.since, self.samples, self.max_ns) = (now, 0, 0);
        sample
    }
}

/// Rank of a percentile, from 1: the value with this rank is the least that `per_cent` of the samples do not exceed.
fn nearest_rank(samples: u64, per_cent: u64) -> u64 {
    (samples * per_cent).div_ceil(100).max(1)
}

/// Bucket of a latency. Values below 2^[`BUCKET_BITS`] have a bucket each.
#[inline]
const fn bucket_of(ns: u64) -> usize {
    let shift = (ns | 1 << BUCKET_BITS).ilog2() - BUCKET_BITS;
    ((shift as usize) << BUCKET_BITS) + (ns >> shift) as usize
}

/// Largest latency of a bucket.
const fn upper_end(bucket: usize) -> u64 {
    let shift = (bucket >> BUCKET_BITS).saturating_sub(1);
    let first = (bucket - (shift << BUCKET_BITS)) as u64;
    ((first + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: Instant = Instant::new(1_000);

    fn of(latencies: impl IntoIterator<Item = u64>) -> LatencySample {
        let mut histogram = LatencyHistogram::new(BEGIN);
        for ns in latencies {
            histogram.record(BEGIN, Instant::new(1_000 + ns));
        }
        let sample = histogram.end_interval(Instant::new(5_000));
        let next = histogram.end_interval(Instant::new(6_000));
        assert_eq!((next.samples, next.interval_us), (0, 1.0));
        assert_eq!([next.median_us, next.p99_us, next.max_us], [None; 3]);
        assert!(histogram.buckets.iter().all(|count| *count == 0));
        sample
    }

    #[test]
    fn a_percentile_is_at_most_a_thirty_second_above_the_latency() {
        for ns in (0..LONGEST_NS.ilog2()).flat_map(|bit| [0, 1, 2].map(|more| (1 << bit) + more)) {
            let end = upper_end(bucket_of(ns));
            assert!(end >= ns && end - ns <= ns / 32, "{ns} {end}");
        }
        assert_eq!(upper_end(BUCKETS - 1), LONGEST_NS);
    }

    #[test]
    fn percentiles_have_the_nearest_rank_and_the_maximum_is_exact() {
        let hundred = of((1..=100).map(|ms| ms * 1_000_000));
        assert_eq!((hundred.samples, hundred.interval_us), (100, 4.0));
        let is_about = |seen: Option<f64>, us: f64| {
            let seen = seen.expect("there are samples");
            assert!(seen >= us && seen <= us * 33.0 / 32.0, "{seen} {us}");
        };
        is_about(hundred.median_us, 50_000.0);
        is_about(hundred.p99_us, 99_000.0);
        assert_eq!(hundred.max_us, Some(100_000.0));
        let one = of([7_001]);
        assert_eq!([one.median_us, one.p99_us, one.max_us], [Some(7.001); 3]);
        let none = of([]);
        assert_eq!([none.median_us, none.p99_us, none.max_us], [None; 3]);
        // A longer latency is counted as the longest, but the maximum is exact.
        let long = of([LONGEST_NS * 2]);
        assert_eq!(long.max_us, Some((LONGEST_NS * 2) as f64 / 1e3));
    }

    #[test]
    fn stamps_after_the_end_count_as_no_latency() {
        let mut histogram = LatencyHistogram::new(BEGIN);
        histogram.record(Instant::new(9), Instant::new(5));
        assert_eq!(histogram.end_interval(BEGIN).max_us, Some(0.0));
    }
}
