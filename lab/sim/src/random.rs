//! Pseudo-random numbers: SplitMix64 (Steele, Lea, Flood 2014), the only source of randomness.
//!
//! The generator is small, fast, and the same on every machine. [`Random::fork`] creates independent streams, so that
//! a change in the use of one does not affect the others.

use std::time::Duration;

/// Stream of numbers determined by a seed.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Creates the stream of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Derives another stream.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// Returns the next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a number from `low` to `high`, inclusive.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Returns true with this probability, 0 to 1.
    pub fn chance(&mut self, probability: f64) -> bool {
        // A float represents 53 bits exactly.
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        unit < probability
    }

    /// Returns a duration up to `longest`, inclusive.
    pub fn up_to(&mut self, longest: Duration) -> Duration {
        Duration::from_nanos(self.below(longest.as_nanos() as u64 + 1))
    }

    /// Returns one of these; the slice must not be empty.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        let mut random = Random::new(1_234_567);
        let first = [random.next(), random.next(), random.next()];
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn chances_come_about_as_often_as_they_say() {
        let mut random = Random::new(7);
        let hits = (0..10_000).filter(|_| random.chance(0.3)).count();
        assert!((2_850..3_150).contains(&hits), "{hits} of 10,000");
    }
}
