//! Why nothing was learnt.

use std::fmt;

use super::super::landings::PlaceError;
use crate::apply::{ApplyError, Left};
use crate::setting::SettingError;
use crate::steer::Contradiction;

/// Why nothing was learnt. But for [`LearnError::Left`] the device is as before.
#[derive(Debug)]
pub enum LearnError {
    /// The device has no table that can be set.
    Table(SettingError),
    /// Queues are told apart by at least two of them, and tables are a power of two long.
    Unfit {
        /// Queues that receive.
        queues: u32,
        /// Entries of the table.
        entries: usize,
    },
    /// A table could not be set, or not put back.
    Apply(ApplyError),
    /// The table could not be put back.
    Left(Vec<Left>),
    /// Nobody could be asked.
    Place(PlaceError),
    /// What was seen cannot be of the hash that devices have.
    Contradiction(Contradiction),
    /// An earlier plan, or an earlier learning, was killed half-way.
    Unfinished,
    /// It was told to stop.
    Stopped,
}

impl fmt::Display for LearnError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(error) => write!(formatter, "its receive table: {error}"),
            Self::Unfit { queues, entries } => write!(
                formatter,
                "it has {queues} receive queues and a table of {entries} entries; it takes two queues, and a power \
                 of two of entries"
            ),
            Self::Apply(error) => error.fmt(formatter),
            Self::Left(left) => write!(formatter, "{} settings were not put back", left.len()),
            Self::Place(PlaceError::Port(port, error)) => write!(formatter, "port {port}: {error}"),
            Self::Place(PlaceError::Silent) => formatter.write_str("nobody answers"),
            Self::Place(PlaceError::Restarted) => {
                formatter.write_str("the peer was started anew meanwhile")
            }
            Self::Place(PlaceError::System(error)) => error.fmt(formatter),
            Self::Contradiction(contradiction) => contradiction.fmt(formatter),
            Self::Unfinished => formatter.write_str(
                "an earlier `isolane tune` was killed half-way, and what it set stands still",
            ),
            Self::Stopped => formatter.write_str("it was told to stop"),
        }
    }
}

impl std::error::Error for LearnError {}

impl From<ApplyError> for LearnError {
    fn from(error: ApplyError) -> Self {
        Self::Apply(error)
    }
}
