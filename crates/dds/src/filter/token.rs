//! Tokeniser of filter expressions.

use std::fmt;

use super::FilterError;

/// Comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    NotEqual,
    Less,
    AtMost,
    More,
    AtLeast,
    Like,
}

/// Literal value in an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Integer(i128),
    Float(f64),
    /// Text between single quotes: a text, a character, or an enumerator.
    Quoted(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    And,
    Or,
    Not,
    Between,
    Relation(Relation),
    Open,
    Close,
    /// Member, enumerator, TRUE or FALSE.
    Name(String),
    Literal(Literal),
    /// Parameter `%n`.
    Parameter(usize),
}

/// Word and its position in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) at: usize,
    pub(super) word: Word,
}

impl fmt::Display for Relation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
            Self::Like => "LIKE",
        })
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(formatter),
            Self::Float(value) => value.fmt(formatter),
            Self::Quoted(text) => write!(formatter, "'{text}'"),
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::And => formatter.write_str("AND"),
            Self::Or => formatter.write_str("OR"),
            Self::Not => formatter.write_str("NOT"),
            Self::Between => formatter.write_str("BETWEEN"),
            Self::Relation(relation) => relation.fmt(formatter),
            Self::Open => formatter.write_str("("),
            Self::Close => formatter.write_str(")"),
            Self::Name(name) => formatter.write_str(name),
            Self::Literal(literal) => literal.fmt(formatter),
            Self::Parameter(number) => write!(formatter, "%{number}"),
        }
    }
}

pub(super) fn tokens(expression: &str) -> Result<Vec<Token>, FilterError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        let rest = &expression[at..];
        let blank = rest.len() - rest.trim_start().len();
        at += blank;
        let rest = &rest[blank..];
        if rest.is_empty() {
            return Ok(tokens);
        }
        let (word, length) = word(rest).map_err(|expected| FilterError::Unexpected {
            at,
            expected,
            found: excerpt(rest),
        })?;
        tokens.push(Token { at, word });
        at += length;
    }
}

/// Returns the first word of `rest` and its length. `rest` is empty or starts with a word. An error says what was
/// expected.
fn word(rest: &str) -> Result<(Word, usize), &'static str> {
    const SIGNS: [(&str, Word); 9] = [
        ("<=", Word::Relation(Relation::AtMost)),
        (">=", Word::Relation(Relation::AtLeast)),
        ("<>", Word::Relation(Relation::NotEqual)),
        ("!=", Word::Relation(Relation::NotEqual)),
        ("<", Word::Relation(Relation::Less)),
        (">", Word::Relation(Relation::More)),
        ("=", Word::Relation(Relation::Equal)),
        ("(", Word::Open),
        (")", Word::Close),
    ];
    for (sign, word) in SIGNS {
        if rest.starts_with(sign) {
            return Ok((word, sign.len()));
        }
    }
    let first = rest.chars().next().unwrap_or_default();
    match first {
        '\'' => quoted(&rest[1..]),
        '%' => parameter(&rest[1..]),
        '0'..='9' | '+' | '-' | '.' => number(rest),
        'a'..='z' | 'A'..='Z' | '_' => Ok(name(rest)),
        _ => Err("a member, a value, a relation or a parenthesis"),
    }
}

fn quoted(rest: &str) -> Result<(Word, usize), &'static str> {
    let (text, _) = rest
        .split_once('\'')
        .ok_or("a text with a quote at its end")?;
    let word = Word::Literal(Literal::Quoted(text.into()));
    Ok((word, text.len() + 2))
}

fn parameter(rest: &str) -> Result<(Word, usize), &'static str> {
    let digits = length_while(rest, |character| character.is_ascii_digit());
    // Annex B has parameters 0 to 99.
    let is_one = (1..=2).contains(&digits);
    let number = rest[..digits].parse().ok().filter(|_| is_one);
    let number = number.ok_or("a parameter from %0 to %99")?;
    Ok((Word::Parameter(number), digits + 1))
}

fn number(rest: &str) -> Result<(Word, usize), &'static str> {
    let mut length = 0;
    let mut before = ' ';
    for character in rest.chars() {
        let is_sign = matches!(character, '+' | '-');
        let belongs = match is_sign {
            true => length == 0 || matches!(before, 'e' | 'E'),
            false => character.is_ascii_alphanumeric() || character == '.',
        };
        if !belongs {
            break;
        }
        before = character;
        length += 1;
    }
    let literal = literal_number(&rest[..length]).ok_or("a number")?;
    Ok((Word::Literal(literal), length))
}

/// Parses a signed decimal or hexadecimal (`0x`) integer, or a floating-point number.
fn literal_number(text: &str) -> Option<Literal> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    let hexadecimal = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    if let Some(digits) = hexadecimal {
        let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let value = u64::from_str_radix(digits, 16).ok().filter(|_| is_number)?;
        return Some(Literal::Integer(sign * i128::from(value)));
    }
    if digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Some(Literal::Integer(sign * digits.parse::<i128>().ok()?));
    }
    let value: f64 = digits.parse().ok()?;
    Some(Literal::Float(sign as f64 * value))
}

fn name(rest: &str) -> (Word, usize) {
    let length = length_while(rest, |character| {
        character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '[' | ']')
    });
    let name = &rest[..length];
    let words = [
        ("and", Word::And),
        ("or", Word::Or),
        ("not", Word::Not),
        ("between", Word::Between),
        ("like", Word::Relation(Relation::Like)),
    ];
    let known = words
        .into_iter()
        .find(|(word, _)| word.eq_ignore_ascii_case(name));
    let word = known.map_or_else(|| Word::Name(name.into()), |(_, word)| word);
    (word, length)
}

/// Returns the length in bytes of the leading characters for which `is_one` holds, all of them ASCII.
fn length_while(text: &str, is_one: impl Fn(char) -> bool) -> usize {
    text.find(|character| !is_one(character))
        .unwrap_or(text.len())
}

/// Returns the start of an unexpected text, for an error message.
fn excerpt(text: &str) -> String {
    const CHARACTERS: usize = 12;
    let mut excerpt: String = text.chars().take(CHARACTERS).collect();
    if excerpt.len() < text.len() {
        excerpt.push('…');
    }
    format!("`{excerpt}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(expression: &str) -> Vec<Word> {
        let tokens = tokens(expression).unwrap();
        tokens.into_iter().map(|token| token.word).collect()
    }

    #[test]
    fn words_need_no_blanks_where_signs_part_them() {
        let name = |name: &str| Word::Name(name.into());
        let expected = [
            name("a.b[1]"),
            Word::Relation(Relation::AtMost),
            Word::Literal(Literal::Integer(-3)),
            Word::And,
            Word::Not,
            Word::Open,
            name("x"),
            Word::Relation(Relation::NotEqual),
            Word::Parameter(12),
            Word::Close,
        ];
        assert_eq!(words("a.b[1]<=-3 AND not(x<>%12)"), expected);
        assert_eq!(words("  a.b[1] <= -3\tand NOT ( x != %12 ) "), expected);
    }

    #[test]
    fn numbers_are_decimal_hexadecimal_or_floating() {
        let literals = [
            ("0", Literal::Integer(0)),
            ("+18446744073709551615", Literal::Integer(u64::MAX.into())),
            ("-0x7F", Literal::Integer(-127)),
            ("1.5e-3", Literal::Float(0.0015)),
            ("-.5", Literal::Float(-0.5)),
            ("2E+2", Literal::Float(200.0)),
        ];
        for (text, literal) in literals {
            assert_eq!(words(text), [Word::Literal(literal)], "{text}");
        }
    }

    #[test]
    fn what_is_no_word_is_named_with_its_place() {
        for (expression, place) in [
            ("x = 'open", 4),
            ("x = %", 4),
            ("x = %100", 4),
            ("x = 12ab", 4),
            ("x = 0xZZ", 4),
            ("x = --1", 4),
            ("x = 1.2.3", 4),
            ("x ; y", 2),
            ("ä = 1", 0),
            ("x = 1 ä", 6),
        ] {
            match tokens(expression) {
                Err(FilterError::Unexpected { at, .. }) => assert_eq!(at, place, "{expression}"),
                other => panic!("{expression}: {other:?}"),
            }
        }
    }
}
