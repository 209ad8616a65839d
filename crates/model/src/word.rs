//! Keyword settings, and suggestions for misspelled words.

use crate::limits::MAX_SUGGESTION_BYTES;

/// Setting with a fixed set of keywords.
pub trait Word: Copy + PartialEq + Sized + 'static {
    /// Keywords and their values, in display order.
    const WORDS: &'static [(&'static str, Self)];

    /// Returns the value of a keyword; `None` if unknown.
    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(known, _)| *known == word)
            .map(|(_, meaning)| *meaning)
    }

    /// Returns the keyword of the value.
    fn word(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, meaning)| *meaning == self)
            .map(|(word, _)| *word)
            .expect("WORDS lists every value of the type")
    }
}

/// Formats a list of words: `a, b or c`, each in the given quotes.
pub(crate) fn list(words: &[&str], quote: &str) -> String {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| format!("{quote}{word}{quote}"))
        .collect();
    match quoted.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}

/// Returns the known word closest to `written`, if they differ in at most a third of the known word's letters, or in
/// one letter. A transposition counts as one difference; case is ignored.
pub(crate) fn closest<'w>(
    written: &str,
    known: impl IntoIterator<Item = &'w str>,
) -> Option<&'w str> {
    if written.len() > MAX_SUGGESTION_BYTES {
        return None;
    }
    let written = written.to_lowercase();
    known
        .into_iter()
        .map(|word| {
            (
                strsim::damerau_levenshtein(&written, &word.to_lowercase()),
                word,
            )
        })
        // A word of one letter is at distance 1 from every other letter, so it needs distance 0.
        .filter(|(distance, word)| *distance <= (word.len() / 3).max(1) && *distance < word.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        let known = ["deadline", "period", "level"];
        assert_eq!(closest("dealine", known), Some("deadline"));
        assert_eq!(closest("Period", known), Some("period"));
        assert_eq!(closest("elvel", known), Some("level"));
    }

    #[test]
    fn a_different_word_gets_no_suggestion() {
        assert_eq!(closest("colour", ["deadline", "period", "level"]), None);
        assert_eq!(closest(&"x".repeat(10_000), ["xxxx"]), None);
    }

    #[test]
    fn words_are_listed_for_people() {
        assert_eq!(list(&["a"], "`"), "`a`");
        assert_eq!(list(&["a", "b", "c"], "`"), "`a`, `b` or `c`");
    }
}
