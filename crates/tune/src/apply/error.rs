//! Why a plan is not carried out, or not undone.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::plan::{FormError, Identity, Step};
use crate::setting::{Setting, SettingError, Value};

/// Why a plan was not carried out. But for what [`Undone`] says is left the machine is as before.
#[derive(Debug)]
pub enum ApplyError {
    /// The plan, or the journal, is of another machine.
    Foreign {
        /// Whose it is.
        plan: Box<Identity>,
        /// This one.
        here: Box<Identity>,
    },
    /// It rests on where datagrams landed in another run of the machine: nothing was changed.
    OtherBoot {
        /// The run of the machine it was made in.
        plan: String,
        /// This one.
        here: String,
    },
    /// It holds steps, named here, that planning cannot make: nothing was changed.
    Unplanned(Vec<String>),
    /// What stands there is not what the plan was made for: nothing was changed.
    Refused(Vec<Obstacle>),
    /// It went wrong half-way, and was undone.
    Undone(Box<Undone>),
    /// The folder of the journal.
    State(StateError),
    /// The journal.
    Journal(JournalError),
    /// The plan, or the journal, is written in another form: nothing was changed.
    Form(FormError),
}

/// A plan that went wrong half-way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// At which step: its id, and its setting; `None`: between steps.
    pub step: Option<(String, Setting)>,
    /// What happened.
    pub why: Hindrance,
    /// What could not be undone; the journal is kept for it.
    pub left: Vec<Left>,
    /// All was undone, and the journal still tells of it.
    pub unclosed: Option<Unclosed>,
}

/// The journal tells of what was undone already: it could not be taken away, or added to. Until it
/// is, another rollback puts back what was found then, whatever others have set since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unclosed {
    /// The journal.
    pub path: PathBuf,
    /// What the system said.
    pub why: String,
}

impl From<StateError> for Unclosed {
    fn from(error: StateError) -> Self {
        Self {
            path: error.path,
            why: error.error.to_string(),
        }
    }
}

/// A step that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The step.
    pub id: String,
    /// What it is about.
    pub setting: Setting,
    /// What the plan says stands there.
    pub planned: Value,
    /// Why not.
    pub why: Hindrance,
}

impl Obstacle {
    pub(super) fn new(step: &Step, why: Hindrance) -> Self {
        Self {
            id: step.id.clone(),
            setting: step.setting.clone(),
            planned: step.from.clone(),
            why,
        }
    }
}

/// What is in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// Something else stands there than when the plan was made.
    Stale {
        /// What stands there.
        found: Value,
    },
    /// It was set, or relied on, and something else stood there at the end: a later step, or somebody
    /// else, has changed it.
    Overturned {
        /// What stood there.
        found: Value,
    },
    /// What it was about has another number now, under which it is not found.
    Lost {
        /// What is known of it.
        why: String,
    },
    /// What it rests on does not stand, which is told.
    Unfounded(String),
    /// It cannot be read or set.
    Unreadable(SettingError),
    /// A signal asked to stop.
    Stopped,
    /// All was set, and that could not be written to the journal, which said this.
    Unrecorded(String),
}

/// A setting that is not as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Which, for people.
    pub what: String,
    /// What was found, for people.
    pub found: String,
    /// Why it is not so again.
    pub why: String,
}

/// The folder of the journal, or something in it, cannot be used.
#[derive(Debug)]
pub struct StateError {
    /// Which file or folder.
    pub path: PathBuf,
    /// What the system said; [`io::ErrorKind::WouldBlock`]: another `tune` is at work.
    pub error: io::Error,
}

impl StateError {
    pub(super) fn of(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |error| Self {
            path: path.to_owned(),
            error,
        }
    }

    /// Whether another `tune` holds the lock.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.error.kind() == io::ErrorKind::WouldBlock
    }
}

/// Lines of the journal that cannot be read, or are missing at its end: something else than a crash has been at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalError {
    /// The journal.
    pub path: PathBuf,
    /// The lines that cannot be read, from 1.
    pub lines: Vec<usize>,
    /// Lines that were written behind the last one, and are not there.
    pub missing: usize,
}

impl From<FormError> for ApplyError {
    fn from(error: FormError) -> Self {
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

impl fmt::Display for Hindrance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { found } => write!(formatter, "it is {found} now"),
            Self::Overturned { found } => write!(
                formatter,
                "a later step or somebody else has changed it meanwhile: it is {found}"
            ),
            Self::Lost { why } | Self::Unfounded(why) => formatter.write_str(why),
            Self::Unreadable(why) => why.fmt(formatter),
            Self::Unrecorded(why) => {
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
            Self::Refused(obstacles) => {
                write!(formatter, "{} steps cannot be carried out", obstacles.len())
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
