//! Intervals of medians over repetitions.

/// How sure an interval is to hold, where there are repetitions enough.
const CONFIDENCE: f64 = 0.95;

/// The median; of an even number, the mean of the middle two.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// A median with the order statistics around it between which the true one lies, whatever the
/// distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: Option<f64>,
    /// `None` of fewer than two values.
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    /// The probability that the interval holds the true median: at least 0.95, or, of fewer than six
    /// values, what their whole range has.
    pub(super) confidence: Option<f64>,
}

impl Estimate {
    pub(super) fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len();
        let value = median(values.clone());
        if count < 2 {
            return Self {
                value,
                ..Self::default()
            };
        }
        let left_out = left_out(count);
        Self {
            value,
            low: Some(values[left_out]),
            high: Some(values[count - 1 - left_out]),
            confidence: Some(coverage(count, left_out)),
        }
    }
}

/// How many values at either end the shortest interval leaves out that is sure enough.
fn left_out(count: usize) -> usize {
    let candidates = (1..count / 2).take_while(|&out| coverage(count, out) >= CONFIDENCE);
    candidates.last().unwrap_or(0)
}

/// The probability that the true median lies between the values of rank `out + 1` and `count - out`:
/// the number of values below it is binomial with p = 1/2.
fn coverage(count: usize, out: usize) -> f64 {
    let mut term = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut below = 0.0;
    for rank in 0..=out {
        below += term;
        term *= (count - rank) as f64 / (rank + 1) as f64;
    }
    1.0 - 2.0 * below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_repetitions_leave_out_one_at_either_end() {
        let estimate = Estimate::of((1..=10).map(f64::from).collect());
        assert_eq!(estimate.value, Some(5.5));
        assert_eq!((estimate.low, estimate.high), (Some(2.0), Some(9.0)));
        // 1 - 2 (1 + 10) / 1024
        assert!((estimate.confidence.unwrap() - 0.978_515_625).abs() < 1e-12);
    }

    #[test]
    fn few_repetitions_have_their_range_and_say_how_sure_it_is() {
        let estimate = Estimate::of(vec![3.0, 1.0, 2.0]);
        assert_eq!((estimate.low, estimate.high), (Some(1.0), Some(3.0)));
        assert_eq!(estimate.confidence, Some(0.75));
        let six = Estimate::of(vec![1.0; 6]);
        assert!(six.confidence > Some(0.95));
        let one = Estimate::of(vec![4.0]);
        assert_eq!(
            (one.value, one.low, one.confidence),
            (Some(4.0), None, None)
        );
        assert_eq!(Estimate::of(vec![]), Estimate::default());
    }
}
