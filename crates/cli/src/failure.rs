//! Why a command did not do what was asked, told to the person who asked: what happened, why, and,
//! where there is more to say than the reason says, what to do next.

use std::fmt;

use isolane_model::Problem;
use miette::MietteHandlerOpts;

use crate::exit_code::ExitCode;
use crate::limits::SHOWN_PROBLEMS;
use crate::output::count_of;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something went wrong.
    Stated(Statement),
    /// A description has problems, each with its place.
    Description(Vec<Problem>),
    /// Whoever read standard output has seen enough: nothing went wrong, and nothing is left to do.
    OutputClosed,
}

/// One thing that went wrong.
#[derive(Debug)]
pub(crate) struct Statement {
    code: ExitCode,
    what: String,
    why: String,
    remedy: Option<String>,
}

impl Failure {
    /// What happened, why, and how the command ends.
    pub(crate) fn new(code: ExitCode, what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Stated(Statement {
            code,
            what: what.into(),
            why: why.into(),
            remedy: None,
        })
    }

    /// Adds what to do next.
    pub(crate) fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        if let Self::Stated(statement) = &mut self {
            statement.remedy = Some(remedy.into());
        }
        self
    }

    /// The command line asks for something that makes no sense.
    pub(crate) fn wrong_usage(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(ExitCode::WrongUsage, what, why)
    }

    /// How the command ends.
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
            Self::OutputClosed => formatter.write_str("nobody reads the output any more"),
        }
    }
}

/// Draws the first problems of a description, each with its line of the file, and counts the rest.
///
/// Colours would be escape sequences, which do not pass `output`.
pub(crate) fn draw(problems: &[Problem]) -> String {
    // A hook that is there already is this one.
    let _ = miette::set_hook(Box::new(|_| {
        let options = MietteHandlerOpts::new().color(false);
        Box::new(options.terminal_links(false).build())
    }));
    let drawn = problems.iter().take(SHOWN_PROBLEMS);
    let drawn = drawn.map(|problem| match problem.is_drawable() {
        true => format!("{:?}", miette::Report::new(problem.clone())),
        false => format!("{problem:#}"),
    });
    let mut drawn: Vec<String> = drawn.collect();
    if let Some(more @ 1..) = problems.len().checked_sub(SHOWN_PROBLEMS) {
        drawn.push(format!("and {}", count_of(more as u64, "further problem")));
    }
    drawn.join("\n")
}
