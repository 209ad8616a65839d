//! Failures of a command, explained to the user: what failed, why, and what to do next.

use std::fmt;

use isolane_model::Problem;

use crate::exit_code::ExitCode;
use crate::limits::SHOWN_PROBLEMS;
use crate::output::count_of;

/// Reason why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Error with its exit code and reason, and perhaps a remedy.
    Stated(Statement),
    /// Problems of a description, each with its location.
    Description(Vec<Problem>),
    /// The reader of standard output closed the pipe. This is no error, and no message is printed.
    OutputClosed,
}

/// Error with its exit code, its reason, and perhaps a remedy.
#[derive(Debug)]
pub(crate) struct Statement {
    code: ExitCode,
    what: String,
    why: String,
    remedy: Option<String>,
}

impl Failure {
    /// Creates a failure from the exit code, what failed, and why.
    pub(crate) fn new(code: ExitCode, what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Stated(Statement {
            code,
            what: what.into(),
            why: why.into(),
            remedy: None,
        })
    }

    pub(crate) fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        if let Self::Stated(statement) = &mut self {
            statement.remedy = Some(remedy.into());
        }
        self
    }

    /// Creates a failure for an invalid command line.
    pub(crate) fn wrong_usage(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(ExitCode::WrongUsage, what, why)
    }

    /// Creates a failure for something that the machine does not allow, such as a missing right.
    pub(crate) fn forbidden(what: impl Into<String>, why: impl ToString) -> Self {
        Self::new(ExitCode::MachineForbids, what, why.to_string())
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Stated(statement) => statement.code,
            Self::Description(_) => ExitCode::WrongUsage,
            Self::OutputClosed => ExitCode::Done,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stated(Statement {
                what, why, remedy, ..
            }) => {
                write!(formatter, "isolane: {what}\n  why:     {why}")?;
                match remedy {
                    Some(remedy) => write!(formatter, "\n  to do:   {remedy}"),
                    None => Ok(()),
                }
            }
            Self::Description(problems) => formatter.write_str(&draw(problems)),
            Self::OutputClosed => formatter.write_str("the reader of the output has closed it"),
        }
    }
}

/// Formats the first problems of a description with their source lines, and counts the rest.
pub(crate) fn draw(problems: &[Problem]) -> String {
    let drawn = problems.iter().take(SHOWN_PROBLEMS);
    let mut drawn: Vec<String> = drawn.map(|problem| format!("{problem:#}")).collect();
    if let Some(more @ 1..) = problems.len().checked_sub(SHOWN_PROBLEMS) {
        drawn.push(format!("and {}", count_of(more as u64, "further problem")));
    }
    drawn.join("\n")
}
