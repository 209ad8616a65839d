//! Seeded random generator for injected faults.

/// Denominator of the probabilities.
const MILLION: u64 = 1_000_000;

/// Generator of reproducible random numbers (xorshift, 64 bits).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generator(u64);

impl Generator {
    /// Creates a generator; each pair of seed and stream gives a different sequence.
    pub(crate) fn new(seed: u64, stream: u64) -> Generator {
        // The finaliser of MurmurHash3 spreads neighbouring seeds over all bits. A state of 0 would be a fixed point.
        let mut mixed = seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        Generator((mixed ^ (mixed >> 33)) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns true with a probability of `per_million` in a million. A probability of zero draws no number, so
    /// disabled faults do not change the sequence of others.
    pub(crate) fn happens(&mut self, per_million: u32) -> bool {
        per_million > 0 && self.next() % MILLION < u64::from(per_million)
    }

    /// Returns a number below `bound`; 0 if `bound` is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        match bound {
            0 => 0,
            // Bounds are tiny against 2^64, so the bias of the remainder is negligible.
            _ => (self.next() % bound as u64) as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_as_frequent_as_asked() {
        for seed in 0..10 {
            let mut generator = Generator::new(seed, 0);
            let happened = (0..100_000).filter(|_| generator.happens(100_000)).count();
            assert!(
                (9_500..10_500).contains(&happened),
                "{happened}: seed {seed}"
            );
        }
    }

    #[test]
    fn seeds_and_streams_are_sequences_of_their_own() {
        let first = |seed, stream| Generator::new(seed, stream).next();
        assert_eq!(first(1, 1), first(1, 1));
        let all = [first(0, 0), first(0, 1), first(1, 0), first(1, 1)];
        for (place, one) in all.iter().enumerate() {
            assert!(!all[..place].contains(one));
        }
    }

    #[test]
    fn numbers_stay_below_their_bound() {
        let mut generator = Generator::new(3, 0);
        assert!((0..1_000).all(|_| generator.below(7) < 7));
        assert_eq!(generator.below(0), 0);
    }
}
