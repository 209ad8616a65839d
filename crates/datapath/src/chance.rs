//! A seeded generator of chances, for what is to go wrong on purpose.

/// Out of so many.
const MILLION: u64 = 1_000_000;

/// Draws repeat with the seed (xorshift, 64 bits).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generator(u64);

impl Generator {
    /// Each pair of seed and stream is a sequence of its own.
    pub(crate) fn new(seed: u64, stream: u64) -> Generator {
        // Neighbouring seeds are spread over all bits (the finaliser of MurmurHash3); the state
        // must not be 0, which the generator never leaves.
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

    /// Of a million calls, so many are true on average. Nothing is drawn where nothing can
    /// happen, so that what is not asked for does not change what is.
    pub(crate) fn happens(&mut self, per_million: u32) -> bool {
        per_million > 0 && self.next() % MILLION < u64::from(per_million)
    }

    /// A number below `bound`; 0 if there is none.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        match bound {
            0 => 0,
            // The bounds in use are tiny against 2^64: the remainder is as good as even.
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
