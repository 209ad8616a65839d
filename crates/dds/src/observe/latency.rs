//! Latencies of a reader's samples, from their arrival at this host to their handling, while somebody observes.
//!
//! A latency begins at the kernel's receive stamp of the sample's datagram, the last one of a sample in fragments;
//! without stamps, when the loop begins to read the datagram. It ends with the sample's callback, or when the sample is
//! taken. Both times are of this host's monotonic clock: the network and the writer have no part in it. A sample that
//! waits for an earlier one to be repaired waits within its latency.

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
    max_ns: u64,
    buckets: [u32; BUCKETS],
}

impl LatencyHistogram {
    pub(crate) const fn new(since: Instant) -> Self {
        Self {
            since,
            max_ns: 0,
            buckets: [0; BUCKETS],
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, arrived: Instant, now: Instant) {
        let ns = now.as_nanos().saturating_sub(arrived.as_nanos());
        self.max_ns = self.max_ns.max(ns);
        let count = &mut self.buckets[bucket_of(ns.min(LONGEST_NS))];
        *count = count.saturating_add(1);
    }

    /// Returns the percentiles of the interval that ends now.
    pub(super) fn sample(&self, now: Instant) -> LatencySample {
        let samples = self.buckets.iter().map(|count| u64::from(*count)).sum();
        let us = |ns: u64| ns as f64 / 1e3;
        let per_cent = |part| self.percentile(samples, part).map(us);
        LatencySample {
            interval_us: us(now.as_nanos().saturating_sub(self.since.as_nanos())),
            samples,
            median_us: per_cent(50),
            p99_us: per_cent(99),
            max_us: (samples > 0).then_some(us(self.max_ns)),
        }
    }

    /// Returns the upper end of the bucket with the least latency that `per_cent` of the samples do not exceed (nearest
    /// rank); `None` without samples.
    fn percentile(&self, samples: u64, per_cent: u64) -> Option<u64> {
        let rank = (samples * per_cent).div_ceil(100).max(1);
        let mut counted = 0;
        let bucket = self.buckets.iter().position(|count| {
            counted += u64::from(*count);
            counted >= rank
        });
        Some(upper_end(bucket?).min(self.max_ns))
    }
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
        histogram.sample(Instant::new(5_000))
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
        assert_eq!(histogram.sample(BEGIN).max_us, Some(0.0));
    }
}
