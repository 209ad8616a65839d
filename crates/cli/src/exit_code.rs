//! How the command ends. Programs rely on these numbers; they are part of every command's help.

/// How the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitCode {
    /// Done.
    Done,
    /// It ran, and the answer is no: a check failed, a bound was violated, peers do not match.
    AnswerIsNo,
    /// The command line or the description is wrong.
    WrongUsage,
    /// The machine does not allow it: rights, kernel, device.
    MachineForbids,
    /// Somebody stopped it before it was done.
    Interrupted,
}

impl ExitCode {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 5] = [
        Self::Done,
        Self::AnswerIsNo,
        Self::WrongUsage,
        Self::MachineForbids,
        Self::Interrupted,
    ];

    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::AnswerIsNo => 1,
            Self::WrongUsage => 2,
            Self::MachineForbids => 3,
            Self::Interrupted => 130,
        }
    }

    const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::AnswerIsNo => "it ran and the answer is no",
            Self::WrongUsage => "wrong usage or configuration",
            Self::MachineForbids => "the machine does not allow it",
            Self::Interrupted => "interrupted",
        }
    }

    /// The line that ends every help text.
    pub(crate) fn help() -> String {
        let codes = Self::ALL.map(|code| format!("{} {}", code.number(), code.meaning()));
        format!("Exit codes: {}", codes.join("; "))
    }

    /// The same behind examples (calls, each with what it does) and related commands.
    pub(crate) fn help_with_examples(examples: &[(&str, &str)], related: &str) -> String {
        let example = |(call, does): &(&str, &str)| format!("  {call}\n      {does}");
        let examples: Vec<String> = examples.iter().map(example).collect();
        format!(
            "Examples:\n{}\n\nSee also: {related}\n\n{}",
            examples.join("\n"),
            Self::help()
        )
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.number())
    }
}
