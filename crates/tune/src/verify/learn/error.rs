//! Errors of learning.

use std::fmt;

use super::super::landings::ProbeError;
use crate::apply::{ApplyError, Unrestored};
use crate::setting::SettingError;
use crate::steer::Contradiction;

/// Reason that learning failed. Except for [`LearnError::Unrestored`], the device is as before.
#[derive(Debug)]
pub enum LearnError {
    /// The device has no settable table.
    Table(SettingError),
    /// Learning needs at least two queues, and a table whose length is a power of two.
    Unsuitable {
        /// Number of receive queues.
        queues: u32,
        /// Number of table entries.
        entries: usize,
    },
    /// A table could not be set or restored.
    Apply(ApplyError),
    /// Settings that could not be restored.
    Unrestored(Vec<Unrestored>),
    /// The peer could not be asked.
    Probe(ProbeError),
    /// Observations contradict the Toeplitz hash.
    Contradiction(Contradiction),
    /// An earlier plan or learning was killed before its end.
    Unfinished,
    /// Stopped on request.
    Stopped,
}

impl fmt::Display for LearnError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(error) => write!(formatter, "its receive table: {error}"),
            Self::Unsuitable { queues, entries } => write!(
                formatter,
                "it has {queues} receive queues and a table of {entries} entries; it takes two queues, and a power \
                 of two of entries"
            ),
            Self::Apply(error) => error.fmt(formatter),
            Self::Unrestored(left) => {
                write!(formatter, "{} settings were not put back", left.len())
            }
            Self::Probe(ProbeError::Port(port, error)) => write!(formatter, "port {port}: {error}"),
            Self::Probe(ProbeError::Silent) => formatter.write_str("nobody answers"),
            Self::Probe(ProbeError::Restarted) => {
                formatter.write_str("the peer was started anew meanwhile")
            }
            Self::Probe(ProbeError::System(error)) => error.fmt(formatter),
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
