//! Why a command did not do what was asked, told to the person who asked: what happened, why, and
//! what to do next.

use std::fmt;

use isolane_model::Problem;

use crate::exit_code::ExitCode;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something went wrong.
    Stated(Statement),
    /// A description has problems, each with its place.
    Description(Vec<Problem>),
}

/// One thing that went wrong.
#[derive(Debug)]
pub(crate) struct Statement {
    code: ExitCode,
    what: String,
    why: String,
    remedy: String,
}

impl Failure {
    /// What happened, why, what to do next, and how the command ends.
    pub(crate) fn new(
        code: ExitCode,
        what: impl Into<String>,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (what, why, remedy) = (what.into(), why.into(), remedy.into());
        Self::Stated(Statement {
            code,
            what,
            why,
            remedy,
        })
    }

    /// The command line asks for something that makes no sense.
    pub(crate) fn wrong_usage(
        what: impl Into<String>,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(ExitCode::WrongUsage, what, why, remedy)
    }

    /// How the command ends.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Stated(statement) => statement.code,
            Self::Description(_) => ExitCode::WrongUsage,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stated(Statement {
                what, why, remedy, ..
            }) => {
                write!(
                    formatter,
                    "isolane: {what}\n  why:     {why}\n  to do:   {remedy}"
                )
            }
            Self::Description(problems) => formatter.write_str(&draw(problems)),
        }
    }
}

/// Problems of a description as people read them: each with its line of the file, marked.
pub(crate) fn draw(problems: &[Problem]) -> String {
    let drawn = problems
        .iter()
        .map(|problem| format!("{:?}", miette::Report::new(problem.clone())));
    drawn.collect::<Vec<_>>().join("\n")
}
