//! Bit window of sequence numbers, processed by words: a run of numbers in a message costs the words it spans, not the
//! numbers.

use core::{iter, ops::Range};

use crate::limits::WINDOW;

/// Words of a window.
pub(crate) const WORDS: usize = (WINDOW / 64) as usize;

/// Iterates over the words that a run of numbers spans, each with the bits of its numbers. The bit of a number is
/// (number mod [`WINDOW`]); a run is no longer than the window.
pub(crate) fn words(numbers: Range<i64>) -> impl Iterator<Item = (usize, u64)> {
    debug_assert!(numbers.end.saturating_sub(numbers.start) <= i64::from(WINDOW));
    let Range { mut start, end } = numbers;
    iter::from_fn(move || {
        let left = u64::try_from(end.checked_sub(start)?).ok()?;
        let bit = start as u64 % u64::from(WINDOW);
        let (word, first) = ((bit / 64) as usize, bit % 64);
        let count = left.min(64 - first);
        if count == 0 {
            return None;
        }
        start += count as i64;
        Some((word, u64::MAX >> (64 - count) << first))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_numbers_has_the_bits_of_its_numbers() {
        let window = i64::from(WINDOW);
        for start in [1, 63, 64, 65, 200, 255, 256, 1_000_003, i64::MAX - window] {
            for length in [0, 1, 2, 63, 64, 65, 128, 255, 256] {
                let mut bits = [0; WORDS];
                for (word, mask) in words(start..start + length) {
                    assert_eq!(bits[word] & mask, 0, "each number once");
                    bits[word] |= mask;
                }
                let mut expected = [0; WORDS];
                for number in start..start + length {
                    let bit = (number % window) as usize;
                    expected[bit / 64] |= 1 << (bit % 64);
                }
                assert_eq!(bits, expected, "{start} + {length}");
            }
        }
        let (start, end) = (5, 3);
        assert_eq!(
            words(start..end).count(),
            0,
            "one that has ended before it begins"
        );
    }
}
