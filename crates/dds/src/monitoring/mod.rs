//! Observation of a participant: counters, warnings, and the server for observers.

pub(crate) mod inversions;

use isolane_datapath::Warning;
use isolane_rtps::{Priority, WorkKind};

use crate::{monitoring::inversions::InversionCounts, observe::Observer, warning_log::WarningLog};

/// Observed maxima of one kind of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WorkObserved {
    pub(crate) steps: u64,
    pub(crate) execution_max_ns: u64,
}

/// Observation of a participant: counters, warnings, and the server for observers.
pub(crate) struct Monitoring {
    pub(crate) work: [[WorkObserved; WorkKind::ALL.len()]; Priority::COUNT],
    pub(crate) inversions: InversionCounts,
    pub(crate) warning_log: WarningLog,
    /// Server for observers in other processes, if they are allowed.
    pub(crate) observer: Option<Box<Observer>>,
    /// True if the application chose the receive buffer size, so that a smaller one deserves a note.
    pub(crate) has_asked_for_buffer: bool,
    /// Preferred datapaths that cannot be used.
    pub(crate) not_used: Vec<Warning>,
    /// Reason why the budget of the interface, set when the participant was built, is not enforced.
    pub(crate) limit_not_enforced: Option<String>,
    /// Scheduling options that were refused, with the reason.
    pub(crate) not_placed: Vec<String>,
    /// Reason why observation is unavailable although it is allowed.
    pub(crate) not_observable: Option<String>,
}

impl Monitoring {
    pub(crate) fn new(not_used: Vec<Warning>, not_placed: Vec<String>) -> Self {
        Self {
            work: Default::default(),
            inversions: InversionCounts::default(),
            warning_log: WarningLog::new(),
            observer: None,
            has_asked_for_buffer: false,
            not_used,
            limit_not_enforced: None,
            not_placed,
            not_observable: None,
        }
    }
}
