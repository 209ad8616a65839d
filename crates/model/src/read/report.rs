//! Collector of the problems of one file.

use core::ops::Range;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::problem::{Problem, Severity, Text};
use crate::source::Source;

/// Problem without its location.
#[derive(Debug)]
pub(crate) struct Wrong {
    what: String,
    label: String,
    help: Option<String>,
}

impl Wrong {
    /// Creates a problem from its message and the label at its location.
    pub(super) fn new(what: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            label: label.into(),
            help: None,
        }
    }

    /// Adds a suggestion.
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a suggestion if there is none.
    pub(super) fn or_help(mut self, help: &str) -> Self {
        self.help.get_or_insert_with(|| help.to_owned());
        self
    }

    /// Prefixes the message with the setting's name.
    pub(super) fn about(mut self, subject: &str) -> Self {
        self.what = format!("{subject} {}", self.what);
        self
    }
}

/// Problems of one file.
pub(crate) struct Report {
    text: Arc<Text>,
    problems: Vec<Problem>,
    /// Lines with a syntax error. A value that the parser recovered on such a line is not reported again.
    broken_lines: BTreeSet<usize>,
    /// True after a syntax error in a `[header]`. The keys below are in the wrong table, so only syntax is reported.
    broken_header: bool,
}

impl Report {
    pub(super) fn new(text: Arc<Text>) -> Self {
        Self {
            text,
            problems: Vec::new(),
            broken_lines: BTreeSet::new(),
            broken_header: false,
        }
    }

    /// Returns the source of a value at this span.
    pub(super) fn source(&self, span: &Range<usize>) -> Source {
        Source::File {
            name: Arc::clone(&self.text.name),
            line: self.text.line_of(span.start),
        }
    }

    /// Reports a syntax error; `in_header` if it is in a table's header.
    pub(super) fn syntax(&mut self, span: Range<usize>, wrong: Wrong, in_header: bool) {
        self.push(Severity::Error, span.clone(), wrong);
        self.broken_lines.insert(self.text.line_of(span.start));
        self.broken_header |= in_header;
    }

    /// Reports an invalid value.
    pub(super) fn error(&mut self, span: Range<usize>, wrong: Wrong) {
        // The parser gives the span 0..0 to values that it could not read.
        let made_up = span == (0..0) && !self.broken_lines.is_empty();
        let on_broken_line = self.broken_lines.contains(&self.text.line_of(span.start));
        if !made_up && !on_broken_line && !self.broken_header {
            self.push(Severity::Error, span, wrong);
        }
    }

    /// Reports a missing value, unless a syntax error could have hidden it.
    pub(super) fn missing(&mut self, span: Range<usize>, wrong: Wrong) {
        if self.broken_lines.is_empty() {
            self.error(span, wrong);
        }
    }

    /// Reports a value that is valid but probably unintended.
    pub(super) fn warning(&mut self, span: Range<usize>, wrong: Wrong) {
        self.push(Severity::Warning, span, wrong);
    }

    pub(super) fn has_errors(&self) -> bool {
        self.problems
            .iter()
            .any(|problem| problem.severity() == Severity::Error)
    }

    /// Returns the problems in the order of the file.
    pub(super) fn into_problems(mut self) -> Vec<Problem> {
        self.problems
            .sort_by_key(|problem| problem.span().map(|span| span.start));
        self.problems
    }

    fn push(&mut self, severity: Severity, span: Range<usize>, wrong: Wrong) {
        let Wrong { what, label, help } = wrong;
        self.problems
            .push(Problem::at(severity, &self.text, span, what, label, help));
    }
}
