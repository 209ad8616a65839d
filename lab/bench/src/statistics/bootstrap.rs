//! Circular block bootstrap of a quantile: Politis and Romano (1992), "A circular block-resampling procedure for
//! stationary data"; Lahiri (2003), "Resampling Methods for Dependent Data".
//!
//! A resample joins blocks of successive values that start at random positions, so it keeps the dependence within
//! blocks. A quantile depends on ranks only, and that of a resample lies close to that of the series. So the values are
//! replaced by their ranks, only the ranks near the quantile are counted one by one, and those below are counted a
//! block at a time.

use super::quantile::Quantile;

/// Half the width of the counted ranks, in standard deviations of the rank. A resample beyond it is counted in full.
const COUNTED_DEVIATIONS: f64 = 6.0;

/// Block bootstrap of one quantile of one series.
pub(super) struct BlockBootstrap<'a> {
    sorted: &'a [u64],
    /// Rank of each value in time order, counted from 0; equal values have successive ranks.
    ranks: Vec<u32>,
    /// Rank of the quantile, counted from 0.
    rank: usize,
    block_length: usize,
    /// Ranks that are counted one by one.
    low: usize,
    high: usize,
    /// For each position, the number of earlier values with a rank below `low`.
    below: Vec<u32>,
    /// Ranks from `low` to below `high`, in time order.
    near: Vec<u32>,
    /// For each position, the number of earlier values that are in `near`.
    near_before: Vec<u32>,
    /// Starts of the blocks of a resample.
    starts: Vec<usize>,
    counts: Vec<u32>,
}

impl<'a> BlockBootstrap<'a> {
    /// Prepares the bootstrap of a series in time order; `sorted_ns` is the same series sorted. `None` if the series
    /// has too few independent values for the quantile.
    pub(super) fn new(
        series_ns: &[u64],
        sorted_ns: &'a [u64],
        quantile: Quantile,
    ) -> Option<BlockBootstrap<'a>> {
        let count = series_ns.len();
        let rank = quantile.rank(count)? - 1;
        let dependence = quantile.dependence(series_ns, sorted_ns[rank])?;
        let mut order: Vec<u32> = (0..count as u32).collect();
        order.sort_unstable_by_key(|&at| (series_ns[at as usize], at));
        let mut ranks = vec![0; count];
        for (rank, at) in (0..).zip(order) {
            ranks[at as usize] = rank;
        }
        let variance = count as f64 * quantile.share() * (1.0 - quantile.share());
        let deviation = (variance * dependence.inflation.max(1.0)).sqrt();
        let half = (COUNTED_DEVIATIONS * deviation).ceil() as usize;
        let (low, high) = (rank.saturating_sub(half), (rank + half + 1).min(count));
        let (mut below, mut near_before, mut near) = (vec![0], vec![0], Vec::new());
        let mut ranks_below = 0;
        for &rank in &ranks {
            match rank as usize {
                rank if rank < low => ranks_below += 1,
                near_rank if near_rank < high => near.push(rank),
                _ => {}
            }
            below.push(ranks_below);
            near_before.push(near.len() as u32);
        }
        Some(BlockBootstrap {
            sorted: sorted_ns,
            ranks,
            rank,
            block_length: dependence.block_length,
            low,
            high,
            below,
            near,
            near_before,
            starts: Vec::new(),
            counts: Vec::new(),
        })
    }

    /// Quantile of the series.
    pub(super) fn estimate(&self) -> u64 {
        self.sorted[self.rank]
    }

    /// Quantile of a new resample.
    pub(super) fn resample(&mut self, random: &mut fastrand::Rng) -> u64 {
        let blocks = self.ranks.len().div_ceil(self.block_length);
        self.starts.clear();
        self.starts
            .extend((0..blocks).map(|_| random.usize(..self.ranks.len())));
        let rank = self.rank_near().unwrap_or_else(|| self.rank_of_all());
        self.sorted[rank]
    }

    /// Ranges of positions that a resample consists of.
    fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let count = self.ranks.len();
        let of_block = move |(number, &start): (usize, &usize)| {
            let length = self.block_length.min(count - number * self.block_length);
            let end = start + length;
            [start..end.min(count), 0..end.saturating_sub(count)]
        };
        self.starts.iter().enumerate().flat_map(of_block)
    }

    /// Rank of the resample's quantile, if it is one of the counted ranks.
    fn rank_near(&mut self) -> Option<usize> {
        let mut counts = std::mem::take(&mut self.counts);
        counts.clear();
        counts.resize(self.high - self.low, 0);
        let mut below = 0;
        for range in self.ranges() {
            below += (self.below[range.end] - self.below[range.start]) as usize;
            let near = self.near_before[range.start] as usize..self.near_before[range.end] as usize;
            for &rank in &self.near[near] {
                counts[rank as usize - self.low] += 1;
            }
        }
        let found = rank_in(&counts, below, self.rank).map(|at| self.low + at);
        self.counts = counts;
        found
    }

    /// Rank of the resample's quantile, with all ranks counted.
    fn rank_of_all(&self) -> usize {
        let mut counts = vec![0; self.ranks.len()];
        for range in self.ranges() {
            for &rank in &self.ranks[range] {
                counts[rank as usize] += 1;
            }
        }
        rank_in(&counts, 0, self.rank).unwrap_or(self.rank)
    }
}

/// Position of the value with the given rank, counted from 0, if `below` values are below the first count.
fn rank_in(counts: &[u32], below: usize, rank: usize) -> Option<usize> {
    let mut sum = below;
    if sum > rank {
        return None;
    }
    counts.iter().position(|&count| {
        sum += count as usize;
        sum > rank
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of the values slow, in bursts of 50.
    fn bursts() -> Vec<u64> {
        (0..2000_u64)
            .map(|at| at * 7919 % 2003 + if at / 50 % 2 == 0 { 0 } else { 5000 })
            .collect()
    }

    #[test]
    fn counting_near_ranks_and_counting_all_find_the_same_quantile() {
        let series = bursts();
        let mut sorted = series.clone();
        sorted.sort_unstable();
        for quantile in [Quantile::MEDIAN, Quantile::P99] {
            let mut bootstrap = BlockBootstrap::new(&series, &sorted, quantile).unwrap();
            let mut random = fastrand::Rng::with_seed(1);
            for _ in 0..100 {
                bootstrap.resample(&mut random);
                let all = bootstrap.rank_of_all();
                assert_eq!(bootstrap.rank_near().unwrap_or(all), all);
                assert_eq!(
                    bootstrap.ranges().map(|range| range.len()).sum::<usize>(),
                    2000
                );
            }
        }
    }

    #[test]
    fn a_resample_of_equal_values_has_their_value() {
        let series = [7; 100];
        let mut bootstrap = BlockBootstrap::new(&series, &series, Quantile::MEDIAN).unwrap();
        assert_eq!(bootstrap.resample(&mut fastrand::Rng::with_seed(1)), 7);
        assert!(BlockBootstrap::new(&series, &series, Quantile::P99).is_none());
    }
}
