//! Which combinations of the axes run.

/// An index into each of `N` axes.
pub(super) type Choice<const N: usize> = [usize; N];

/// Every combination of axes of these lengths, the last axis changing fastest.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

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
    }
}
