//! Errors of applying a plan and of undoing it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::plan::{Identity, SchemaError, Step};
use crate::setting::{Setting, SettingError, Value};

/// Reason that a plan was not carried out. The machine is as before, except for what [`Undone`] lists.
#[derive(Debug)]
pub enum ApplyError {
    /// The plan or the journal is of another machine.
    Foreign {
        /// Machine of the plan or journal.
        plan: Box<Identity>,
        /// Identity of this machine.
        here: Box<Identity>,
    },
    /// The plan uses receive-queue measurements from another boot; nothing was changed.
    OtherBoot {
        /// Boot id of the plan.
        plan: String,
        /// Boot id of this machine.
        here: String,
    },
    /// The plan contains these steps, which planning cannot produce; nothing was changed.
    Unplanned(Vec<String>),
    /// Settings differ from the plan's assumptions; nothing was changed.
    Refused(Vec<FailedStep>),
    /// A step failed, and the plan was undone.
    Undone(Box<Undone>),
    /// The journal folder cannot be used.
    State(StateError),
    /// The journal is damaged.
    Journal(JournalError),
    /// The plan or journal has another format version; nothing was changed.
    Form(SchemaError),
}

/// Plan that failed after its first change, and was undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// Id and setting of the failed step; `None` if it failed between steps.
    pub step: Option<(String, Setting)>,
    /// Reason of the failure.
    pub why: StepError,
    /// Settings that could not be restored; the journal is kept for them.
    pub left: Vec<Unrestored>,
    /// Set if all settings were restored but the journal could not record it.
    pub journal_not_closed: Option<JournalNotClosed>,
}

/// Journal that lists settings already restored, because it could not be removed or appended to. Until it is removed, a
/// rollback restores those values again, over any later change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalNotClosed {
    /// Path of the journal.
    pub path: PathBuf,
    /// System error.
    pub why: String,
}

impl From<StateError> for JournalNotClosed {
    fn from(error: StateError) -> Self {
        Self {
            path: error.path,
            why: error.error.to_string(),
        }
    }
}

/// Step that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedStep {
    /// Step id.
    pub id: String,
    /// Setting of the step.
    pub setting: Setting,
    /// Value that the plan assumes.
    pub planned: Value,
    /// Reason.
    pub why: StepError,
}

impl FailedStep {
    pub(super) fn new(step: &Step, why: StepError) -> Self {
        Self {
            id: step.id.clone(),
            setting: step.setting.clone(),
            planned: step.from.clone(),
            why,
        }
    }
}

/// Reason that a step or reliance fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepError {
    /// The value differs from the one at planning time.
    Stale {
        /// Current value.
        found: Value,
    },
    /// The value was set or relied on, and differs at the end: a later step or another program changed it.
    ChangedMeanwhile {
        /// Value found at the end.
        found: Value,
    },
    /// The setting's number changed, and its new number was not found.
    Lost {
        /// Details, as text.
        why: String,
    },
    /// A setting that the step relies on has another value, as described.
    PreconditionFailed(String),
    /// The setting cannot be read or set.
    Unreadable(SettingError),
    /// A signal requested a stop.
    Stopped,
    /// All steps succeeded, but the journal could not be written; holds the system error.
    JournalNotWritten(String),
}

/// Setting that was not restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrestored {
    /// Setting, as text.
    pub what: String,
    /// Original value, as text.
    pub found: String,
    /// Reason.
    pub why: String,
}

/// Failed access to the journal folder or a file in it.
#[derive(Debug)]
pub struct StateError {
    /// Path of the file or folder.
    pub path: PathBuf,
    /// System error; [`io::ErrorKind::WouldBlock`] if another `tune` holds the lock.
    pub error: io::Error,
}

impl StateError {
    pub(super) fn of(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |error| Self {
            path: path.to_owned(),
            error,
        }
    }

    /// Returns whether another `tune` holds the lock.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.error.kind() == io::ErrorKind::WouldBlock
    }
}

/// Damaged journal: lines are unreadable, or missing at its end, which a crash alone cannot cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalError {
    /// Path of the journal.
    pub path: PathBuf,
    /// Unreadable lines, from 1.
    pub lines: Vec<usize>,
    /// Number of lines missing after the last one.
    pub missing: usize,
}

impl From<SchemaError> for ApplyError {
    fn from(error: SchemaError) -> Self {
        Self::Form(error)
    }
}

impl From<StateError> for ApplyError {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

impl From<JournalError> for ApplyError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { found } => write!(formatter, "it is {found} now"),
            Self::ChangedMeanwhile { found } => write!(
                formatter,
                "a later step or somebody else has changed it meanwhile: it is {found}"
            ),
            Self::Lost { why } | Self::PreconditionFailed(why) => formatter.write_str(why),
            Self::Unreadable(why) => why.fmt(formatter),
            Self::JournalNotWritten(why) => {
                write!(formatter, "the journal could not be added to: {why}")
            }
            Self::Stopped => formatter.write_str("it was asked to stop"),
        }
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path.display(), self.error)
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        let lines: Vec<String> = self.lines.iter().map(usize::to_string).collect();
        let lines = lines.join(", ");
        match (lines.is_empty(), self.missing) {
            (true, missing) => write!(
                formatter,
                "{path} was cut short: lines are missing at its end, {missing} at least"
            ),
            (false, 0) => write!(formatter, "{path} cannot be read in line {lines}"),
            (false, missing) => write!(
                formatter,
                "{path} cannot be read in line {lines}, and lines are missing at its end, {missing} at least"
            ),
        }
    }
}

impl fmt::Display for ApplyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign { plan, here } => write!(
                formatter,
                "it is for the machine {}, and this is {}",
                plan.hostname, here.hostname
            ),
            Self::OtherBoot { .. } => formatter.write_str(
                "it rests on where datagrams landed before the last boot of the machine",
            ),
            Self::Unplanned(steps) => {
                write!(
                    formatter,
                    "{} steps are none that planning makes",
                    steps.len()
                )
            }
            Self::Refused(failed_steps) => {
                write!(
                    formatter,
                    "{} steps cannot be carried out",
                    failed_steps.len()
                )
            }
            Self::Undone(undone) => undone.why.fmt(formatter),
            Self::State(error) => error.fmt(formatter),
            Self::Journal(error) => error.fmt(formatter),
            Self::Form(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for ApplyError {}
impl std::error::Error for StateError {}
impl std::error::Error for JournalError {}
