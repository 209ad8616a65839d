//! Value parsers shared by several options, with their error messages.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use isolane_model::{DurationError, Word, parse_duration};
use isolane_wire::level::Level;

use crate::limits::MAX_SECONDS;

pub(super) fn seconds() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=MAX_SECONDS)
}

pub(super) fn count() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..)
}

pub(super) fn duration(text: &str) -> Result<std::time::Duration, String> {
    parse_duration(text).map_err(|error| match error {
        DurationError::Zero => format!("{error}: leave the option out if there is none"),
        error => format!("{error}: {}", error.help()),
    })
}

pub(super) fn level(text: &str) -> Result<Level, String> {
    let level = text.parse().ok().and_then(Level::new);
    level.ok_or_else(|| String::from("a level is a number from 0 to 7, 7 the most critical"))
}

/// Parses one of a set of words, with shell completion and suggestions for misspelt words. The option's own help
/// explains the words.
pub(super) fn word<W: Word + Send + Sync>() -> impl TypedValueParser<Value = W> {
    PossibleValuesParser::new(W::WORDS.iter().map(|(word, _)| *word))
        .map(|word| W::from_word(&word).expect("the parser lets only these through"))
}
