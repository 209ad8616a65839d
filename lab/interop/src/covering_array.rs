//! Choice of combinations: the full product of the axes, or a cover of strength t (every combination of values of any t
//! axes occurs).
//!
//! Most faults need a few conditions at once, not all (Kuhn, Wallace, Gallo 2004), so a cover of strength 2 or 3 finds
//! them in few runs. The product is so small that each choice can be found by a search of all of it, without a library.

use std::collections::BTreeSet;

/// An index into each of `N` axes.
pub(super) type Choice<const N: usize> = [usize; N];

/// All combinations of axes of these lengths, the last axis changing fastest.
pub(super) fn product<const N: usize>(lengths: [usize; N]) -> Vec<Choice<N>> {
    let mut choices = vec![[0; N]];
    for (axis, length) in lengths.into_iter().enumerate() {
        choices = choices
            .iter()
            .flat_map(|choice| {
                (0..length).map(move |value| {
                    let mut longer = *choice;
                    longer[axis] = value;
                    longer
                })
            })
            .collect();
    }
    choices
}

/// Deterministic greedy cover of strength `strength`: each choice is the first of those that add most combinations. Up
/// to `filled_up_to` choices, the cover also has as many combinations of `strength + 1` axes as possible.
pub(super) fn cover<const N: usize>(
    lengths: [usize; N],
    strength: usize,
    filled_up_to: usize,
) -> Vec<Choice<N>> {
    let candidates = product(lengths);
    let all_parts = |strength| {
        let parts = candidates.iter().flat_map(|choice| parts(choice, strength));
        parts.collect::<BTreeSet<_>>()
    };
    let (mut missing, mut beyond) = (all_parts(strength), all_parts(strength + 1));
    let mut chosen = Vec::new();
    while !missing.is_empty() || (!beyond.is_empty() && chosen.len() < filled_up_to) {
        let gain = |choice: &&Choice<N>| {
            let added = |strength, missing: &BTreeSet<Part>| {
                let parts = parts(choice, strength).into_iter();
                parts.filter(|part| missing.contains(part)).count()
            };
            (added(strength, &missing), added(strength + 1, &beyond))
        };
        // `max_by_key` returns the last maximum, which in reversed order is the first.
        let best = candidates.iter().rev().max_by_key(gain);
        let best = *best.expect("what is missing comes from a candidate");
        for (strength, missing) in [(strength, &mut missing), (strength + 1, &mut beyond)] {
            for part in parts(&best, strength) {
                missing.remove(&part);
            }
        }
        chosen.push(best);
    }
    chosen
}

/// The values of some axes: four bits an axis, the value plus one; zero for an axis left open.
type Part = u64;

/// All partial assignments of `strength` axes in this choice.
fn parts<const N: usize>(choice: &Choice<N>, strength: usize) -> Vec<Part> {
    const { assert!(4 * N <= Part::BITS as usize, "an axis has four bits") };
    let sets = (0_u32..1 << N).filter(|set| set.count_ones() as usize == strength.min(N));
    let part = |set: u32| {
        let axes = (0..N).filter(|axis| set >> axis & 1 == 1);
        axes.fold(0, |part, axis| {
            part | (choice[axis] as Part + 1) << (4 * axis)
        })
    };
    sets.map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::combination::AXES;
    use crate::{CI_CELLS, CI_STRENGTH};

    #[test]
    fn the_product_has_every_combination_once() {
        let choices = product([2, 3, 2]);
        let distinct = choices.iter().collect::<BTreeSet<_>>();
        assert_eq!((choices.len(), distinct.len()), (12, 12));
        assert_eq!(
            (choices[0], choices[1], choices[11]),
            ([0, 0, 0], [0, 0, 1], [1, 2, 1])
        );
    }

    #[test]
    fn an_axis_without_values_leaves_nothing_to_run() {
        assert!(product([2, 0]).is_empty());
        assert!(cover([2, 0], 2, 9).is_empty());
    }

    /// Number of pairs of values of two axes that occur.
    fn pairs<const N: usize>(choices: &[Choice<N>]) -> usize {
        let mut pairs = BTreeSet::new();
        for choice in choices {
            for first in 0..N {
                for second in 0..first {
                    pairs.insert((first, choice[first], second, choice[second]));
                }
            }
        }
        pairs.len()
    }

    #[test]
    fn every_pair_of_values_of_every_two_axes_occurs() {
        let lengths = [2, 3, 4, 2, 3];
        assert_eq!(pairs(&cover(lengths, 2, 0)), pairs(&product(lengths)));
        let in_ci = cover(AXES, CI_STRENGTH, CI_CELLS);
        assert_eq!(pairs(&in_ci), pairs(&product(AXES)));
    }

    #[test]
    fn a_cover_is_much_smaller_than_the_product_and_has_nothing_twice() {
        let choices = cover([2, 2, 2, 2, 2, 2], 2, 0);
        assert!((4..=10).contains(&choices.len()), "{}", choices.len());
        assert_eq!(choices.iter().collect::<BTreeSet<_>>().len(), choices.len());
    }

    #[test]
    fn the_cover_of_all_axes_together_is_the_product() {
        let mut choices = cover([2, 3, 2], 3, 0);
        choices.sort_unstable();
        assert_eq!(choices, product([2, 3, 2]));
    }

    #[test]
    fn a_cover_is_filled_up_with_choices_that_add_something() {
        let lengths = [2, 2, 2, 2, 2];
        let small = cover(lengths, 2, 0);
        let filled = cover(lengths, 2, small.len() + 2);
        assert_eq!(filled[..small.len()], small);
        assert_eq!(filled.len(), small.len() + 2);
        assert_eq!(filled.iter().collect::<BTreeSet<_>>().len(), filled.len());
        // Once all combinations of three axes are covered, nothing is added.
        assert!(cover(lengths, 2, 1000).len() < product(lengths).len());
    }
}
