//! Evaluation of a bound condition on a sample, without errors or allocation.

use std::cmp::Ordering;

use isolane_wire::cdr::FieldValue;

use super::{
    bind::{Bound, Side, Value},
    token::Relation,
};

/// Returns whether a condition is true for the sample whose members `field` returns.
pub(super) fn holds<'v>(
    condition: &'v Bound,
    field: &impl Fn(&str) -> Option<FieldValue<'v>>,
) -> bool {
    match condition {
        Bound::Not(inner) => !holds(inner, field),
        Bound::All(conditions) => conditions.iter().all(|one| holds(one, field)),
        Bound::Any(conditions) => conditions.iter().any(|one| holds(one, field)),
        Bound::Compare(left, relation, right) => {
            let value = |side: &'v Side| match side {
                Side::Member(name) => field(name),
                Side::Value(value) => Some(value.view()),
            };
            match (value(left), value(right)) {
                (Some(left), Some(right)) => relation.holds(left, right),
                _ => false,
            }
        }
    }
}

impl Value {
    fn view(&self) -> FieldValue<'_> {
        match self {
            Self::Integer(value) => FieldValue::Integer(*value),
            Self::Float(value) => FieldValue::Float(*value),
            Self::Boolean(value) => FieldValue::Boolean(*value),
            Self::Character(value) => FieldValue::Character(*value),
            Self::Text(value) => FieldValue::Text(value),
        }
    }
}

impl Relation {
    fn holds(self, left: FieldValue<'_>, right: FieldValue<'_>) -> bool {
        if self == Self::Like {
            return match (left, right) {
                (FieldValue::Text(text), FieldValue::Text(pattern)) => is_like(text, pattern),
                _ => false,
            };
        }
        order(left, right).is_some_and(|order| match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::More => order.is_gt(),
            Self::AtLeast => order.is_ge(),
            Self::Like => false,
        })
    }
}

/// Returns the order of two values; `None` if they have no order.
fn order(left: FieldValue<'_>, right: FieldValue<'_>) -> Option<Ordering> {
    use FieldValue::{Boolean, Character, Float, Integer, Text};
    match (left, right) {
        (Integer(left), Integer(right)) => Some(left.cmp(&right)),
        (Float(left), Float(right)) => left.partial_cmp(&right),
        (Integer(left), Float(right)) => order_of_mixed(left, right),
        (Float(left), Integer(right)) => order_of_mixed(right, left).map(Ordering::reverse),
        (Boolean(left), Boolean(right)) => Some(left.cmp(&right)),
        (Character(left), Character(right)) => Some(left.cmp(&right)),
        (Text(left), Text(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

/// Compares exactly, since a 64-bit integer has more digits than an `f64` holds.
fn order_of_mixed(integer: i128, float: f64) -> Option<Ordering> {
    let rounded = (integer as f64).partial_cmp(&float)?;
    Some(match rounded {
        // So `float` is within the range of an integer on the wire.
        Ordering::Equal => integer.cmp(&(float as i128)),
        order => order,
    })
}

/// Matches a LIKE pattern, in which `%` is any text and `_` any character. Backtracking to the last `%` suffices, since
/// it can match whatever an earlier `%` could. The work is at most the product of both lengths.
fn is_like(text: &str, pattern: &str) -> bool {
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    // Text and pattern after the last `%`. The text begins where the text matched by `%` ends at present.
    let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let before = (text.clone(), pattern.clone());
        match (text.next(), pattern.next()) {
            (_, Some('%')) => {
                text = before.0;
                retry = Some((text.clone(), pattern.clone()));
            }
            (Some(_), Some('_')) => {}
            (Some(one), Some(other)) if one == other => {}
            (None, None) => return true,
            (None, Some(_)) => return false,
            (Some(_), _) => match &mut retry {
                None => return false,
                Some((taken, behind)) => {
                    taken.next();
                    (text, pattern) = (taken.clone(), behind.clone());
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_exactly_across_their_types() {
        use FieldValue::{Float, Integer};
        let beyond = (1_i128 << 53) + 1;
        assert_eq!(
            order(Integer(beyond), Float(9_007_199_254_740_992.0)),
            Some(Ordering::Greater)
        );
        assert_eq!(order(Float(0.5), Integer(1)), Some(Ordering::Less));
        assert_eq!(
            order(Float(f64::INFINITY), Integer(u64::MAX.into())),
            Some(Ordering::Greater)
        );
        assert_eq!(order(Integer(3), Float(3.0)), Some(Ordering::Equal));
        assert_eq!(order(Integer(3), Float(f64::NAN)), None);
        assert_eq!(order(Integer(3), FieldValue::Text("3")), None);
    }

    #[test]
    fn what_has_no_order_fulfils_no_relation() {
        let nan = FieldValue::Float(f64::NAN);
        for relation in [
            Relation::Equal,
            Relation::NotEqual,
            Relation::Less,
            Relation::AtLeast,
        ] {
            assert!(!relation.holds(nan, FieldValue::Float(1.0)), "{relation}");
        }
    }

    #[test]
    fn a_pattern_takes_any_text_for_percent_and_any_character_for_underscore() {
        for (text, pattern) in [
            ("RED", "RED"),
            ("RED", "R%"),
            ("RED", "%D"),
            ("RED", "_E_"),
            ("RED", "%"),
            ("", "%"),
            ("aXbXc", "%X%c"),
            ("abcbc", "a%bc"),
            ("grün", "gr_n"),
            ("50%", "50%"),
        ] {
            assert!(is_like(text, pattern), "{text} LIKE {pattern}");
        }
        for (text, pattern) in [
            ("RED", "red"),
            ("RED", "R"),
            ("RED", "__"),
            ("", "_"),
            ("abc", "a%bd"),
            ("RED", ""),
            ("REDD", "%E_"),
        ] {
            assert!(!is_like(text, pattern), "{text} LIKE {pattern}");
        }
    }

    #[test]
    fn a_pattern_of_many_percents_costs_no_more_than_the_product_of_the_lengths() {
        let text = "a".repeat(2_000);
        let pattern = format!("{}b", "%a".repeat(1_000));
        // Backtracking to every `%` would take practically forever.
        assert!(!is_like(&text, &pattern));
    }
}
