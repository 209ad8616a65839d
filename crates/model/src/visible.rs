//! Escaping of untrusted text for terminals.

use core::fmt::Write;
use std::borrow::Cow;

/// Escapes terminal control and invisible characters as `\uXXXX`, which JSON and TOML can read back.
///
/// Escaped are control characters (Unicode category Cc) other than line feed and tab, line and paragraph separators,
/// and invisible characters that change direction or joins of the text around them.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && c != '\t' && is_obeyed(c))
}

/// Escapes line feeds and tabs as well as the characters of `visible`, so that the text stays on one line.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_obeyed)
}

fn is_obeyed(c: char) -> bool {
    let hidden = ['\u{61c}', '\u{feff}'].contains(&c);
    c.is_control()
        || hidden
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            // Writing to a string does not fail.
            let _ = write!(written, "\\u{:04x}", u32::from(c));
        } else {
            written.push(c);
        }
    }
    Cow::Owned(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_terminals_become_text() {
        let text = "\x1b[2J\x1b]0;title\x07 \u{9b}31m \x7f \r \u{202e}abc\u{202c} é ─ 日本\n\tend";
        let said = visible(text);
        assert_eq!(
            said,
            "\\u001b[2J\\u001b]0;title\\u0007 \\u009b31m \\u007f \\u000d \\u202eabc\\u202c é ─ 日本\n\tend"
        );
        assert_eq!(visible_line("a\n\tb"), "a\\u000a\\u0009b");
        assert!(matches!(visible("as it is\n"), Cow::Borrowed(_)));
    }
}
