//! Grammar of filter expressions. NOT binds more tightly than AND, and AND more tightly than OR.

use super::{
    FilterError,
    token::{Literal, Relation, Token, Word, tokens},
};
use crate::limits::{MAX_FILTER_BYTES, MAX_FILTER_DEPTH};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    /// Member; or, as the other operand of a member, an enumerator, TRUE or FALSE.
    Name(String),
    Literal(Literal),
    Parameter(usize),
}

/// Condition on a sample, with unresolved names.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    Compare {
        /// Position in bytes.
        at: usize,
        left: Operand,
        relation: Relation,
        right: Operand,
    },
    Not(Box<Condition>),
    /// Conjunction; at least one condition.
    All(Vec<Condition>),
    /// Disjunction; at least one condition.
    Any(Vec<Condition>),
}

pub(super) fn parse(expression: &str) -> Result<Condition, FilterError> {
    if expression.len() > MAX_FILTER_BYTES {
        return Err(FilterError::TooLong(expression.len()));
    }
    let tokens = tokens(expression)?;
    let mut parser = Parser {
        tokens: &tokens,
        end: expression.len(),
        depth: 0,
    };
    let condition = parser.any()?;
    match parser.tokens {
        [] => Ok(condition),
        // Annex B allows ORDER BY in queries; isolane does not support it.
        [token, ..] if matches!(&token.word, Word::Name(name) if name.eq_ignore_ascii_case("order")) => {
            Err(FilterError::OrderBy(token.at))
        }
        _ => Err(parser.unexpected("AND, OR or the end")),
    }
}

struct Parser<'t> {
    /// Tokens not parsed yet.
    tokens: &'t [Token],
    /// Length of the expression in bytes.
    end: usize,
    depth: usize,
}

impl Parser<'_> {
    /// Parses `all OR all …`.
    fn any(&mut self) -> Result<Condition, FilterError> {
        let first = self.all()?;
        let mut conditions = vec![first];
        while self.accept(&Word::Or) {
            conditions.push(self.all()?);
        }
        Ok(one_or(conditions, Condition::Any))
    }

    /// Parses `single AND single …`.
    fn all(&mut self) -> Result<Condition, FilterError> {
        let first = self.single()?;
        let mut conditions = vec![first];
        while self.accept(&Word::And) {
            conditions.push(self.single()?);
        }
        Ok(one_or(conditions, Condition::All))
    }

    /// Parses `NOT single`, `( any )` or a predicate.
    fn single(&mut self) -> Result<Condition, FilterError> {
        if self.depth == MAX_FILTER_DEPTH {
            return Err(FilterError::TooDeep(self.at()));
        }
        self.depth += 1;
        let condition = if self.accept(&Word::Not) {
            Condition::Not(Box::new(self.single()?))
        } else if self.accept(&Word::Open) {
            let condition = self.any()?;
            self.expect(&Word::Close, "`)`")?;
            condition
        } else {
            self.predicate()?
        };
        self.depth -= 1;
        Ok(condition)
    }

    fn predicate(&mut self) -> Result<Condition, FilterError> {
        let at = self.at();
        let left = self.operand()?;
        let is_not = self.accept(&Word::Not);
        if self.accept(&Word::Between) {
            return self.range(at, left, is_not);
        }
        let Some(Word::Relation(relation)) = self.word().cloned() else {
            return Err(self.unexpected("=, <>, <, <=, >, >=, LIKE or BETWEEN"));
        };
        if is_not && relation != Relation::Like {
            return Err(self.unexpected("LIKE or BETWEEN"));
        }
        self.advance();
        let right = self.operand()?;
        let compare = Condition::Compare {
            at,
            left,
            relation,
            right,
        };
        Ok(match is_not {
            true => Condition::Not(Box::new(compare)),
            false => compare,
        })
    }

    /// Parses `… BETWEEN low AND high`, which includes both (Annex B).
    fn range(&mut self, at: usize, field: Operand, is_not: bool) -> Result<Condition, FilterError> {
        let low = self.operand()?;
        self.expect(&Word::And, "AND and the upper end of the range")?;
        let high = self.operand()?;
        let compare = |left: Operand, relation, right| Condition::Compare {
            at,
            left,
            relation,
            right,
        };
        // BETWEEN and NOT BETWEEN are both false for a value without order (NaN).
        Ok(match is_not {
            false => Condition::All(vec![
                compare(field.clone(), Relation::AtLeast, low),
                compare(field, Relation::AtMost, high),
            ]),
            true => Condition::Any(vec![
                compare(field.clone(), Relation::Less, low),
                compare(field, Relation::More, high),
            ]),
        })
    }

    fn operand(&mut self) -> Result<Operand, FilterError> {
        let operand = match self.word() {
            Some(Word::Name(name)) => Operand::Name(name.clone()),
            Some(Word::Literal(literal)) => Operand::Literal(literal.clone()),
            Some(Word::Parameter(number)) => Operand::Parameter(*number),
            _ => return Err(self.unexpected("a member, a value or a parameter")),
        };
        self.advance();
        Ok(operand)
    }

    fn word(&self) -> Option<&Word> {
        self.tokens.first().map(|token| &token.word)
    }

    fn at(&self) -> usize {
        self.tokens.first().map_or(self.end, |token| token.at)
    }

    fn advance(&mut self) {
        self.tokens = self.tokens.get(1..).unwrap_or_default();
    }

    fn accept(&mut self, word: &Word) -> bool {
        let is_next = self.word() == Some(word);
        if is_next {
            self.advance();
        }
        is_next
    }

    fn expect(&mut self, word: &Word, expected: &'static str) -> Result<(), FilterError> {
        match self.accept(word) {
            true => Ok(()),
            false => Err(self.unexpected(expected)),
        }
    }

    fn unexpected(&self, expected: &'static str) -> FilterError {
        let found = match self.word() {
            None => "the end".into(),
            Some(word) => format!("`{word}`"),
        };
        FilterError::Unexpected {
            at: self.at(),
            expected,
            found,
        }
    }
}

fn one_or(mut conditions: Vec<Condition>, several: fn(Vec<Condition>) -> Condition) -> Condition {
    match conditions.len() {
        1 => conditions.remove(0),
        _ => several(conditions),
    }
}
