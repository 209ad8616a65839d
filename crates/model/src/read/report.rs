//! Where the problems of one file are gathered.

use core::ops::Range;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::problem::{Problem, Severity, Text};
use crate::source::Source;

/// What is wrong at a place, before the place is known.
#[derive(Debug)]
pub(crate) struct Wrong {
    what: String,
    label: String,
    help: Option<String>,
}

impl Wrong {
    /// `what` is the headline, `label` stands at the place.
    pub(super) fn new(what: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            label: label.into(),
            help: None,
        }
    }

    /// Adds what to do.
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Puts the setting's name in front of the headline.
    pub(super) fn about(mut self, subject: &str) -> Self {
        self.what = format!("{subject} {}", self.what);
        self
    }
}

/// The problems of one file so far.
pub(crate) struct Report {
    text: Arc<Text>,
    problems: Vec<Problem>,
    /// Lines with an error of syntax. What the parser made up there is not worth a second message.
    broken_lines: BTreeSet<usize>,
    /// A broken `[header]` puts the lines below it into a wrong table: only syntax is reported.
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

    /// The line of a span, as the source of a value.
    pub(super) fn source(&self, span: &Range<usize>) -> Source {
        Source::File {
            name: Arc::clone(&self.text.name),
            line: self.text.line_of(span.start),
        }
    }

    /// An error of syntax; of a table's header, if `in_header`.
    pub(super) fn syntax(&mut self, span: Range<usize>, wrong: Wrong, in_header: bool) {
        self.push(Severity::Error, span.clone(), wrong);
        self.broken_lines.insert(self.text.line_of(span.start));
        self.broken_header |= in_header;
    }

    /// An error in what the text means.
    pub(super) fn error(&mut self, span: Range<usize>, wrong: Wrong) {
        // The parser puts a value it could not read at 0..0.
        let made_up = span == (0..0) && !self.broken_lines.is_empty();
        let on_broken_line = self.broken_lines.contains(&self.text.line_of(span.start));
        if !made_up && !on_broken_line && !self.broken_header {
            self.push(Severity::Error, span, wrong);
        }
    }

    /// Something that is absent. After an error of syntax it may well be there, unread.
    pub(super) fn missing(&mut self, span: Range<usize>, wrong: Wrong) {
        if self.broken_lines.is_empty() {
            self.error(span, wrong);
        }
    }

    /// Something allowed that is probably not meant.
    pub(super) fn warning(&mut self, span: Range<usize>, wrong: Wrong) {
        self.push(Severity::Warning, span, wrong);
    }

    pub(super) fn has_errors(&self) -> bool {
        self.problems
            .iter()
            .any(|problem| problem.severity() == Severity::Error)
    }

    /// The problems in the order of the file.
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
