//! Exit codes. Programs rely on these numbers. The help of every command lists them.

/// Width of help texts on a terminal of at least this width, and without a terminal.
const HELP_COLUMNS: usize = 100;

/// Result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitCode {
    Done = 0,
    /// The command ran and the answer is no: a check failed, a bound was violated, peers do not match.
    AnswerIsNo = 1,
    /// The command line or the description is invalid.
    WrongUsage = 2,
    /// The machine does not allow the command: missing permissions, kernel features or devices.
    MachineForbids = 3,
    /// A signal ended the command early.
    Interrupted = 130,
}

impl ExitCode {
    /// All codes in numerical order.
    pub(crate) const ALL: [Self; 5] = [
        Self::Done,
        Self::AnswerIsNo,
        Self::WrongUsage,
        Self::MachineForbids,
        Self::Interrupted,
    ];

    pub(crate) const fn number(self) -> u8 {
        self as u8
    }

    const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "success",
            Self::AnswerIsNo => "the answer is no",
            Self::WrongUsage => "wrong usage",
            Self::MachineForbids => "the machine forbids it",
            Self::Interrupted => "interrupted",
        }
    }

    /// Last line of every help text.
    pub(crate) fn help() -> String {
        let codes = Self::ALL.map(|code| format!("{} {}", code.number(), code.meaning()));
        format!("Exit codes: {}", codes.join("; "))
    }

    /// Help text of examples (calls with their effect), related commands and exit codes. The effect follows the call as
    /// a comment, on the same line if both fit.
    pub(crate) fn help_with_examples(examples: &[(&str, &str)], related: &str) -> String {
        let example = |(call, does): &(&str, &str)| {
            let line = format!("  {call}  # {does}");
            match line.chars().count() <= HELP_COLUMNS {
                true => line,
                false => format!("  {call}\n      # {does}"),
            }
        };
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
