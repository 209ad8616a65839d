//! Problems of a description, with location and suggestion.
//!
//! `{:#}` prints a [`Problem`] with file, line, column and the text of the line, and marks the location below it.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use crate::limits::MAX_EXCERPT_BYTES;

/// Severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The description can be used.
    Warning,
    /// The description cannot be used.
    Error,
}

/// Error or warning about a description.
#[derive(Clone)]
pub struct Problem {
    severity: Severity,
    what: String,
    help: Option<String>,
    place: Option<Place>,
}

/// Location in a text.
#[derive(Clone)]
struct Place {
    text: Arc<Text>,
    span: Range<usize>,
    label: String,
}

impl Problem {
    /// Creates a problem of the whole file: it cannot be read, or is not a description.
    pub(crate) fn of_file(what: String, help: Option<String>) -> Self {
        Self {
            severity: Severity::Error,
            what,
            help,
            place: None,
        }
    }

    /// Creates a problem at a location. The span is clamped to the text and to character boundaries.
    pub(crate) fn at(
        severity: Severity,
        text: &Arc<Text>,
        span: Range<usize>,
        what: String,
        label: String,
        help: Option<String>,
    ) -> Self {
        let content = &*text.content;
        // A mark needs a character, so a problem at the end of the text marks the last character.
        let last = content.len().saturating_sub(1);
        let start = content.floor_char_boundary(span.start.min(last));
        let end = content.ceil_char_boundary(span.end.max(start));
        let place = Place {
            text: Arc::clone(text),
            span: start..end,
            label,
        };
        Self {
            severity,
            what,
            help,
            place: Some(place),
        }
    }

    /// Severity: an error makes the description unusable, a warning does not.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// Message without the location.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Suggested correction.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Byte range in the file, on character boundaries; `None` for a problem of the whole file.
    pub fn span(&self) -> Option<Range<usize>> {
        self.place.as_ref().map(|place| place.span.clone())
    }

    /// Line, from 1.
    pub fn line(&self) -> Option<usize> {
        self.place
            .as_ref()
            .map(|place| place.text.line_of(place.span.start))
    }

    /// Column in characters, from 1.
    pub fn column(&self) -> Option<usize> {
        self.place
            .as_ref()
            .map(|place| place.text.column_of(place.span.start))
    }
}

impl fmt::Display for Problem {
    /// `{}` formats the message; `{:#}` adds location, marked excerpt of the line and suggestion, each on its own line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !formatter.alternate() {
            return formatter.write_str(&self.what);
        }
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        if let Some(Place { text, span, label }) = &self.place {
            let (line, column) = (text.line_of(span.start), text.column_of(span.start));
            writeln!(
                formatter,
                "{}:{line}:{column}: {severity}: {}",
                text.name, self.what
            )?;
            let (excerpt, mark) = text.excerpt(span);
            write!(formatter, "  {excerpt}\n  {mark} {label}")?;
        } else {
            write!(formatter, "{severity}: {}", self.what)?;
        }
        self.help
            .as_ref()
            .map_or(Ok(()), |help| write!(formatter, "\n  help: {help}"))
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self:#}")
    }
}

impl core::error::Error for Problem {}

/// Text of a file with its line index.
pub(crate) struct Text {
    pub(crate) name: Arc<str>,
    content: Arc<str>,
    /// Byte offset of the start of each line.
    line_starts: Vec<usize>,
}

impl Text {
    pub(crate) fn new(name: &str, content: &str) -> Self {
        let content: Arc<str> = Arc::from(content);
        let after_newlines = content.match_indices('\n').map(|(offset, _)| offset + 1);
        let line_starts = core::iter::once(0).chain(after_newlines).collect();
        Self {
            name: Arc::from(name),
            content,
            line_starts,
        }
    }

    /// Line of a byte offset, from 1.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        // The first line starts at 0, so at least one line starts at or before the offset.
        self.line_starts.partition_point(|start| *start <= offset)
    }

    /// Column of a byte offset in characters, from 1.
    fn column_of(&self, offset: usize) -> usize {
        let start = self.line_starts[self.line_of(offset) - 1];
        self.content[start..offset].chars().count() + 1
    }

    /// Returns the trimmed line at the start of `span`, and below it carets at the part of `span` that is in this line.
    /// Of a long line, this is the part around the start.
    fn excerpt(&self, span: &Range<usize>) -> (String, String) {
        let number = self.line_of(span.start);
        let line = self.line(number);
        // A span can start at the line break, which is not in `line`.
        let offset = |byte: usize| (byte - self.line_starts[number - 1]).min(line.len());
        let marked = offset(span.start)..offset(span.end);
        let shown = match line.len() <= MAX_EXCERPT_BYTES {
            true => {
                let first = line.len() - line.trim_start().len();
                // A line of blanks ends before its first other character.
                first..line.trim_end().len().max(first)
            }
            false => {
                let first = marked.start.saturating_sub(MAX_EXCERPT_BYTES / 2);
                let first = line.floor_char_boundary(first);
                first..line.floor_char_boundary((first + MAX_EXCERPT_BYTES).min(line.len()))
            }
        };
        let dots = |is_cut| if is_cut { "..." } else { "" };
        let is_cut = line.len() > MAX_EXCERPT_BYTES;
        let before = dots(is_cut && shown.start > 0);
        let after = dots(is_cut && shown.end < line.len());
        let part = |from: usize, to: usize| {
            let from = from.clamp(shown.start, shown.end);
            &line[from..to.clamp(from, shown.end)]
        };
        let indent = before.chars().chain(part(0, marked.start).chars());
        // A tab stays a tab, so that the mark is below its text.
        let blank = |letter| if letter == '\t' { '\t' } else { ' ' };
        let mut mark: String = indent.map(blank).collect();
        let carets = part(marked.start, marked.end).chars().count().max(1);
        mark.extend(core::iter::repeat_n('^', carets));
        // A control character would act on the terminal.
        let visible = |letter: char| match letter.is_control() && letter != '\t' {
            true => char::REPLACEMENT_CHARACTER,
            false => letter,
        };
        let shown: String = line[shown].chars().map(visible).collect();
        (format!("{before}{shown}{after}"), mark)
    }

    /// Returns the text of line number `line`, counted from 1, without its line break.
    fn line(&self, line: usize) -> &str {
        let end = self
            .line_starts
            .get(line)
            .copied()
            .unwrap_or(self.content.len());
        self.content[self.line_starts[line - 1]..end].trim_end_matches(['\r', '\n'])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the problem at `span` of the text, as `{:#}` prints it.
    fn printed(text: &str, span: Range<usize>) -> String {
        let text = Arc::new(Text::new("a.toml", text));
        let (what, label) = (String::from("it is odd"), String::from("this"));
        let help = Some(String::from("leave it out"));
        let problem = Problem::at(Severity::Warning, &text, span, what, label, help);
        format!("{problem:#}")
    }

    #[test]
    fn the_marked_part_is_below_the_line() {
        assert_eq!(
            printed("[a]\n  \tx =\t\"\u{e9}\" # y\n", 11..15),
            "a.toml:2:8: warning: it is odd\n  x =\t\"\u{e9}\" # y\n  \u{20}  \t^^^ this\n  help: leave it out"
        );
    }

    #[test]
    fn a_mark_ends_with_its_line_and_has_at_least_one_caret() {
        assert!(printed("[a\nb = 1\n", 1..9).contains("\n  [a\n   ^ this\n"));
        assert!(printed("ab\r\nc\n", 2..3).contains("\n  ab\n    ^ this\n"));
        assert!(printed("", 0..0).contains("a.toml:1:1: warning: it is odd\n  \n  ^ this\n"));
    }

    #[test]
    fn a_line_of_blanks_and_control_characters_is_printed_safely() {
        assert!(printed("\r\r\r\u{c}", 0..1).contains("a.toml:1:1: warning: it is odd\n"));
        assert!(printed("a\u{1b}[2J\n", 0..1).contains("\n  a\u{fffd}[2J\n  ^ this\n"));
    }

    #[test]
    fn of_a_long_line_the_part_around_the_mark_is_printed() {
        let text = format!("{} = 1", "\u{e9}".repeat(500));
        let lines = printed(&text, 800..804);
        let lines: Vec<_> = lines.lines().collect();
        assert!(
            lines[1].starts_with("  ...\u{e9}") && lines[1].ends_with("\u{e9}..."),
            "{lines:?}"
        );
        assert!(lines[1].len() <= MAX_EXCERPT_BYTES + 8, "{lines:?}");
        assert_eq!(lines[2], format!("  {}^^ this", " ".repeat(3 + 30)));
    }
}
