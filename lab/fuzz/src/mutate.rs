//! Mutations without libFuzzer, reproducible from a seed on any compiler.
//!
//! They are not guided by coverage. They find bugs near saved inputs, which is most of what a change breaks; libFuzzer
//! finds the others, whose inputs are then saved.

use fastrand::Rng;

use crate::limits::MAX_INPUT_BYTES;

/// Boundary values of bytes.
const EDGES: [u8; 8] = [0, 1, 2, 0x7f, 0x80, 0xfe, 0xff, 0x20];
/// Maximum number of changes of one input.
const MAX_CHANGES: usize = 6;
/// Maximum length of an inserted, removed or copied piece.
const MAX_PIECE: usize = 48;

/// One of the inputs, or a random one, with a few changes.
#[must_use]
pub fn mutated(random: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut input = match random.usize(..=corpus.len()) {
        place if place < corpus.len() => corpus[place].clone(),
        _ => {
            let length = random.usize(..256);
            std::iter::repeat_with(|| random.u8(..))
                .take(length)
                .collect()
        }
    };
    for _ in 0..1 + random.usize(..MAX_CHANGES) {
        change(random, &mut input, corpus);
    }
    input.truncate(MAX_INPUT_BYTES);
    input
}

fn change(random: &mut Rng, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    if input.is_empty() {
        input.push(random.u8(..));
        return;
    }
    let place = random.usize(..input.len());
    let end = (place + 1 + random.usize(..MAX_PIECE)).min(input.len());
    match random.u8(..9) {
        0 => input[place] ^= 1 << random.u8(..8),
        1 => input[place] = random.u8(..),
        2 => input[place] = EDGES[random.usize(..EDGES.len())],
        3 => input[place] = input[place].wrapping_add(random.u8(..16)).wrapping_sub(8),
        4 => {
            input.drain(place..end);
        }
        5 => input.truncate(place),
        6 => {
            let piece = input[place..end].to_vec();
            input.splice(place..place, piece);
        }
        7 => {
            let count = random.usize(..MAX_PIECE);
            let piece: Vec<u8> = std::iter::repeat_with(|| random.u8(..))
                .take(count)
                .collect();
            input.splice(place..place, piece);
        }
        _ => {
            // Inserts a piece of another input.
            let Some(other) = random.choice(corpus).filter(|other| !other.is_empty()) else {
                return;
            };
            let from = random.usize(..other.len());
            let to = (from + 1 + random.usize(..4 * MAX_PIECE)).min(other.len());
            input.splice(place..end, other[from..to].iter().copied());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_inputs() {
        let corpus = [b"one".to_vec(), b"another".to_vec()];
        let some = |seed| {
            let mut random = Rng::with_seed(seed);
            (0..50)
                .map(|_| mutated(&mut random, &corpus))
                .collect::<Vec<_>>()
        };
        assert_eq!(some(1), some(1));
        assert_ne!(some(1), some(2));
        assert!(some(3).iter().all(|input| input.len() <= MAX_INPUT_BYTES));
    }
}
