//! Errors of applying a plan and of undoing it.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::plan::{Identity, SchemaError, Step};
use crate::setting::{Setting, SettingError, Value};

/// Reason that a plan was not carried out. The machine is as before, except for what [`Undone`] lists.
#[derive(Debug, Error)]
pub enum ApplyError {
    /// The plan or the journal is of another machine.
    #[error("it is for machine {}, and this machine is {}", plan.hostname, here.hostname)]
    Foreign {
        /// Machine of the plan or journal.
        plan: Box<Identity>,
        /// Identity of this machine.
        here: Box<Identity>,
    },
    /// The plan uses receive-queue measurements from another boot; nothing was changed.
    #[error("it uses receive-queue measurements from a previous boot; measure again")]
    OtherBoot {
        /// Boot id of the plan.
        plan: String,
        /// Boot id of this machine.
        here: String,
    },
    /// The plan contains these steps, which planning cannot produce; nothing was changed.
    #[error("{} steps are not steps that `isolane tune plan` makes", .0.len())]
    Unplanned(Vec<String>),
    /// Settings differ from the plan's assumptions; nothing was changed.
    #[error("{} steps cannot be carried out", .0.len())]
    Refused(Vec<FailedStep>),
    /// A step failed, and the plan was undone.
    #[error("{}", .0.why)]
    Undone(Box<Undone>),
    /// The journal folder cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The journal is damaged.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The plan or journal has another format version; nothing was changed.
    #[error(transparent)]
    Form(#[from] SchemaError),
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
    /// Set if all settings were restored but the journal could not record that.
    pub journal_not_closed: Option<JournalNotClosed>,
}

/// Journal that lists settings already restored, because it could not be removed or appended to. Until the journal is
/// removed, a rollback sets these values again and overwrites later changes.
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

/// Reason that a step or precondition fails.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StepError {
    /// The value differs from the one at planning time.
    #[error("its value is {found} now")]
    Stale {
        /// Current value.
        found: Value,
    },
    /// The value was set or relied on, and differs at the end: a later step or another program changed it.
    #[error("a later step or another program has changed it: its value is {found}")]
    ChangedMeanwhile {
        /// Value found at the end.
        found: Value,
    },
    /// The setting's number changed, and its new number was not found.
    #[error("{why}")]
    Lost {
        /// Details, as text.
        why: String,
    },
    /// A setting that the step relies on has another value, which the text names.
    #[error("{0}")]
    PreconditionFailed(String),
    /// The setting cannot be read or set.
    #[error("{0}")]
    Unreadable(SettingError),
    /// A signal requested a stop.
    #[error("it was stopped on request")]
    Stopped,
    /// All steps succeeded, but the journal could not be written; holds the system error.
    #[error("cannot append to the journal: {0}")]
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
#[derive(Debug, Error)]
#[error("{}: {error}", path.display())]
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

/// Damaged journal: lines are unreadable, or missing at its end. A crash alone causes neither.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", self.sentence())]
pub struct JournalError {
    /// Path of the journal.
    pub path: PathBuf,
    /// Unreadable lines, from 1.
    pub lines: Vec<usize>,
    /// Number of lines missing after the last one.
    pub missing: usize,
}

impl JournalError {
    fn sentence(&self) -> String {
        let path = self.path.display();
        let lines: Vec<String> = self.lines.iter().map(usize::to_string).collect();
        let unreadable = match lines.is_empty() {
            true => Vec::new(),
            false => vec![format!("cannot be read in line {}", lines.join(", "))],
        };
        let missing = match self.missing {
            0 => Vec::new(),
            missing => vec![format!("lacks at least {missing} lines at its end")],
        };
        format!("{path} {}", [unreadable, missing].concat().join(", and "))
    }
}
