//! Problems of a description, with location and suggestion.
//!
//! A [`Problem`] is a miette [`Diagnostic`], so miette's handler can draw it in the source text. `{:#}` prints it
//! without miette, with line number, column and the text of the line.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

pub use miette::Severity;

use crate::limits::{MAX_DRAWN_BYTES, MAX_EXCERPT_BYTES};

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

    /// Returns true if the lines around the location are short enough to be drawn.
    ///
    /// A drawing repeats the lines of the location, the line before and the line after. miette panics if a line has
    /// more than 65,535 columns.
    pub fn is_drawable(&self) -> bool {
        self.place.as_ref().is_none_or(|Place { text, span, .. }| {
            let last = (text.line_of(span.end) + 1).min(text.line_starts.len());
            let mut lines = text.line_of(span.start).saturating_sub(1).max(1)..=last;
            lines
                .try_fold(0, |bytes, line| {
                    let bytes = bytes + text.line(line).len();
                    (bytes <= MAX_DRAWN_BYTES).then_some(bytes)
                })
                .is_some()
        })
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
    /// `{}` formats the message; `{:#}` adds location, excerpt of the line and suggestion, each on its own line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !formatter.alternate() {
            return formatter.write_str(&self.what);
        }
        let severity = if self.severity == Severity::Error {
            "error"
        } else {
            "warning"
        };
        if let Some(Place { text, span, label }) = &self.place {
            let (line, column) = (text.line_of(span.start), text.column_of(span.start));
            writeln!(
                formatter,
                "{}:{line}:{column}: {severity}: {}",
                text.name, self.what
            )?;
            write!(formatter, "  {} ({label})", text.excerpt(span.start))?;
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

impl Diagnostic for Problem {
    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help
            .as_ref()
            .map(|help| Box::new(help) as Box<dyn fmt::Display + 'a>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.place
            .as_ref()
            .map(|place| &place.text.named as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let place = self.place.as_ref()?;
        let label = LabeledSpan::new_with_span(Some(place.label.clone()), place.span.clone());
        Some(Box::new(core::iter::once(label)))
    }
}

/// Text of a file with its line index.
pub(crate) struct Text {
    pub(crate) name: Arc<str>,
    content: Arc<str>,
    /// Same content as `content`, in miette's type.
    named: NamedSource<Arc<str>>,
    /// Byte offset of the start of each line.
    line_starts: Vec<usize>,
}

impl Text {
    pub(crate) fn new(name: &str, content: &str) -> Self {
        let content: Arc<str> = Arc::from(content);
        let after_newlines = content.match_indices('\n').map(|(offset, _)| offset + 1);
        let line_starts = core::iter::once(0).chain(after_newlines).collect();
        let named = NamedSource::new(name, Arc::clone(&content)).with_language("TOML");
        Self {
            name: Arc::from(name),
            content,
            named,
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

    /// Returns the trimmed line at a byte offset; of a long line, the part around the offset.
    fn excerpt(&self, offset: usize) -> String {
        let number = self.line_of(offset);
        let line = self.line(number);
        if line.len() <= MAX_EXCERPT_BYTES {
            return line.trim().to_owned();
        }
        let at = (offset - self.line_starts[number - 1]).min(line.len());
        let first = line.floor_char_boundary(at.saturating_sub(MAX_EXCERPT_BYTES / 2));
        let last = line.floor_char_boundary((first + MAX_EXCERPT_BYTES).min(line.len()));
        let dots = |is_cut| if is_cut { "..." } else { "" };
        format!(
            "{}{}{}",
            dots(first > 0),
            &line[first..last],
            dots(last < line.len())
        )
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
