//! Binding of a parsed condition to the topic's type: names become members or enumerators. Literals and parameters
//! become values of the other operand's type.

use std::fmt;

use isolane_wire::cdr::FieldKind;

use super::{
    FilterError,
    parse::{Condition, Operand},
    token::{Literal, Relation, Word, tokens},
};

/// Constant value in an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Integer(i128),
    Float(f64),
    Boolean(bool),
    Character(char),
    Text(String),
}

/// Operand of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Side {
    Member(String),
    Value(Value),
}

/// Condition on a sample, with all names resolved.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Bound {
    Compare(Side, Relation, Side),
    Not(Box<Bound>),
    All(Vec<Bound>),
    Any(Vec<Bound>),
}

impl Bound {
    /// Returns the number of comparisons and the total length of LIKE patterns in bytes, unbounded if a member is the
    /// pattern.
    pub(super) fn cost(&self) -> (usize, usize) {
        match self {
            Self::Not(inner) => inner.cost(),
            Self::All(all) | Self::Any(all) => all.iter().fold((0, 0), |sum, one| {
                let cost = one.cost();
                (sum.0 + cost.0, sum.1.saturating_add(cost.1))
            }),
            Self::Compare(_, Relation::Like, pattern) => match pattern {
                Side::Value(Value::Text(pattern)) => (1, pattern.len()),
                _ => (1, usize::MAX),
            },
            Self::Compare(..) => (1, 0),
        }
    }
}

/// Operand with a known kind.
enum Given {
    Member(String, FieldKind),
    Literal(Literal),
    /// Word that is no member: an enumerator, TRUE or FALSE.
    Symbol(String),
    /// Text of a parameter, which need not be a single word.
    Free(String),
}

type KindOf = fn(&str) -> Option<FieldKind>;

pub(super) fn bind(
    condition: &Condition,
    parameters: &[String],
    kind_of: KindOf,
) -> Result<Bound, FilterError> {
    let all = |conditions: &[Condition]| -> Result<Vec<Bound>, FilterError> {
        let bound = conditions.iter();
        bound.map(|one| bind(one, parameters, kind_of)).collect()
    };
    Ok(match condition {
        Condition::Not(inner) => Bound::Not(Box::new(bind(inner, parameters, kind_of)?)),
        Condition::All(conditions) => Bound::All(all(conditions)?),
        Condition::Any(conditions) => Bound::Any(all(conditions)?),
        Condition::Compare {
            at,
            left,
            relation,
            right,
        } => {
            let left = given(left, parameters, kind_of)?;
            let right = given(right, parameters, kind_of)?;
            compare(*at, left, *relation, right)?
        }
    })
}

fn given(operand: &Operand, parameters: &[String], kind_of: KindOf) -> Result<Given, FilterError> {
    Ok(match operand {
        Operand::Literal(literal) => Given::Literal(literal.clone()),
        Operand::Name(name) => match kind_of(name) {
            Some(kind) => Given::Member(name.clone(), kind),
            None => Given::Symbol(name.clone()),
        },
        Operand::Parameter(asked) => {
            let text = parameters
                .get(*asked)
                .ok_or(FilterError::MissingParameter {
                    asked: *asked,
                    given: parameters.len(),
                })?;
            parameter(text)
        }
    })
}

/// Parses a parameter as a literal if possible, and otherwise as plain text.
fn parameter(text: &str) -> Given {
    let words = tokens(text).unwrap_or_default();
    match words.first().map(|token| &token.word) {
        Some(Word::Literal(literal)) if words.len() == 1 => Given::Literal(literal.clone()),
        _ => Given::Free(text.into()),
    }
}

fn compare(at: usize, left: Given, relation: Relation, right: Given) -> Result<Bound, FilterError> {
    let incomparable = |why| FilterError::Incomparable {
        left: left.to_string(),
        right: right.to_string(),
        why,
    };
    let (left_side, right_side, kind) = match (&left, &right) {
        (Given::Member(one, kind), Given::Member(other, other_kind)) => {
            if !have_order(*kind, *other_kind) {
                return Err(incomparable(
                    "members of such types have no order among each other",
                ));
            }
            (
                Side::Member(one.clone()),
                Side::Member(other.clone()),
                *kind,
            )
        }
        (Given::Member(name, kind), value) => {
            let value = value.as_of(*kind).map_err(incomparable)?;
            (Side::Member(name.clone()), Side::Value(value), *kind)
        }
        (value, Given::Member(name, kind)) => {
            let value = value.as_of(*kind).map_err(incomparable)?;
            (Side::Value(value), Side::Member(name.clone()), *kind)
        }
        (Given::Symbol(name), _) | (_, Given::Symbol(name)) => {
            return Err(FilterError::UnknownMember(name.clone()));
        }
        _ => return Err(FilterError::NoMember(at)),
    };
    if relation == Relation::Like && kind != FieldKind::Text {
        return Err(incomparable("LIKE is for texts"));
    }
    Ok(Bound::Compare(left_side, relation, right_side))
}

/// Returns whether values of two kinds can be compared.
fn have_order(one: FieldKind, other: FieldKind) -> bool {
    let is_number = |kind| {
        matches!(
            kind,
            FieldKind::Integer | FieldKind::Float | FieldKind::Enumeration(_)
        )
    };
    one == other || (is_number(one) && is_number(other))
}

impl Given {
    /// Converts the operand to a value of the other operand's kind; an error says which kind is needed.
    fn as_of(&self, kind: FieldKind) -> Result<Value, &'static str> {
        match kind {
            FieldKind::Integer | FieldKind::Float => self.number().ok_or("the member is a number"),
            FieldKind::Boolean => self.boolean().ok_or("the member is TRUE or FALSE"),
            FieldKind::Character => self
                .character()
                .ok_or("the member is a character of ISO 8859-1, in single quotes"),
            FieldKind::Text => self.text().ok_or("the member is text, in single quotes"),
            FieldKind::Enumeration(enumerators) => self
                .enumerator(enumerators)
                .ok_or("the member is an enumeration, and this none of its enumerators"),
        }
    }

    fn number(&self) -> Option<Value> {
        match self {
            Self::Literal(Literal::Integer(value)) => Some(Value::Integer(*value)),
            Self::Literal(Literal::Float(value)) => Some(Value::Float(*value)),
            _ => None,
        }
    }

    fn boolean(&self) -> Option<Value> {
        let value = match self {
            Self::Literal(Literal::Integer(0)) => false,
            Self::Literal(Literal::Integer(1)) => true,
            Self::Symbol(word) | Self::Free(word) if word.eq_ignore_ascii_case("true") => true,
            Self::Symbol(word) | Self::Free(word) if word.eq_ignore_ascii_case("false") => false,
            _ => return None,
        };
        Some(Value::Boolean(value))
    }

    fn character(&self) -> Option<Value> {
        let character = match self {
            Self::Literal(Literal::Integer(value)) => char::from(u8::try_from(*value).ok()?),
            Self::Literal(Literal::Quoted(text)) | Self::Free(text) => {
                let mut characters = text.chars();
                let first = characters.next()?;
                (characters.next().is_none() && u8::try_from(first).is_ok()).then_some(first)?
            }
            _ => return None,
        };
        Some(Value::Character(character))
    }

    fn text(&self) -> Option<Value> {
        match self {
            Self::Literal(Literal::Quoted(text)) | Self::Free(text) => {
                Some(Value::Text(text.clone()))
            }
            _ => None,
        }
    }

    fn enumerator(&self, enumerators: &[(&str, i32)]) -> Option<Value> {
        let value = match self {
            Self::Literal(Literal::Integer(value)) => *value,
            Self::Literal(Literal::Quoted(word)) | Self::Symbol(word) | Self::Free(word) => {
                let known = enumerators.iter().find(|(name, _)| name == word);
                known.map(|(_, value)| i128::from(*value))?
            }
            _ => return None,
        };
        Some(Value::Integer(value))
    }
}

impl fmt::Display for Given {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(word, _) | Self::Symbol(word) | Self::Free(word) => {
                formatter.write_str(word)
            }
            Self::Literal(literal) => literal.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;

    const GEARS: &[(&str, i32)] = &[("Neutral", 0), ("Drive", 4)];

    fn kind_of(name: &str) -> Option<FieldKind> {
        Some(match name {
            "x" => FieldKind::Integer,
            "speed" => FieldKind::Float,
            "is_on" => FieldKind::Boolean,
            "letter" => FieldKind::Character,
            "color" => FieldKind::Text,
            "gear" => FieldKind::Enumeration(GEARS),
            _ => return None,
        })
    }

    fn bound(expression: &str, parameters: &[&str]) -> Result<Bound, FilterError> {
        let parameters: Vec<String> = parameters.iter().copied().map(String::from).collect();
        bind(&parse(expression)?, &parameters, kind_of)
    }

    fn value(expression: &str, parameters: &[&str]) -> Value {
        match bound(expression, parameters) {
            Ok(Bound::Compare(Side::Member(_), _, Side::Value(value))) => value,
            other => panic!("{expression}: {other:?}"),
        }
    }

    #[test]
    fn a_literal_becomes_a_value_of_what_it_is_compared_with() {
        assert_eq!(value("x = 7", &[]), Value::Integer(7));
        assert_eq!(value("speed > 7", &[]), Value::Integer(7));
        assert_eq!(value("is_on = true", &[]), Value::Boolean(true));
        assert_eq!(value("is_on = 0", &[]), Value::Boolean(false));
        assert_eq!(value("letter = 'a'", &[]), Value::Character('a'));
        assert_eq!(value("letter = 97", &[]), Value::Character('a'));
        assert_eq!(value("color = 'RED'", &[]), Value::Text("RED".into()));
        assert_eq!(value("gear = Drive", &[]), Value::Integer(4));
        assert_eq!(value("gear = 'Drive'", &[]), Value::Integer(4));
        assert_eq!(value("gear = 3", &[]), Value::Integer(3));
    }

    #[test]
    fn a_parameter_stands_for_its_text_with_quotes_or_without() {
        assert_eq!(
            value("color = %1", &["", "'RED'"]),
            Value::Text("RED".into())
        );
        assert_eq!(
            value("color = %0", &["RED and more"]),
            Value::Text("RED and more".into())
        );
        assert_eq!(value("x = %0", &["-12"]), Value::Integer(-12));
        assert_eq!(value("gear = %0", &["Drive"]), Value::Integer(4));
        assert_eq!(value("is_on = %0", &["FALSE"]), Value::Boolean(false));
        let missing = bound("x = %1", &["1"]);
        assert_eq!(
            missing,
            Err(FilterError::MissingParameter { asked: 1, given: 1 })
        );
    }

    #[test]
    fn what_cannot_be_compared_is_refused_and_says_why() {
        for (expression, why) in [
            ("x = 'seven'", "a number"),
            ("is_on = 2", "TRUE or FALSE"),
            ("letter = 'ab'", "a character"),
            ("letter = '€'", "a character"),
            ("color = 7", "text"),
            ("gear = Reverse", "none of its enumerators"),
            ("color < x", "no order"),
            ("x LIKE 7", "LIKE is for texts"),
        ] {
            let error = bound(expression, &[]).unwrap_err();
            assert!(
                matches!(error, FilterError::Incomparable { .. }),
                "{expression}: {error}"
            );
            assert!(error.to_string().contains(why), "{expression}: {error}");
        }
        assert_eq!(bound("7 = 7", &[]), Err(FilterError::NoMember(0)));
        let unknown = bound("x = 1 AND hue = 7", &[]);
        assert_eq!(unknown, Err(FilterError::UnknownMember("hue".into())));
    }
}
