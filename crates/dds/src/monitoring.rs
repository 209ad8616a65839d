//! Observation of a participant: counters, warnings, priority inversions, and the server for observers.
//!
//! # Priority inversions
//!
//! A datagram arrives at the time of its stamp. The executor counts the activations of lower priority that began
//! between that time and the activation that reads the datagram (see [`PriorityInversions`]). For a callback that takes
//! a cached sample, it counts from the time at which the datagram was read. Both counts are summed by level.
//!
//! The level of a datagram is that of its lane. On a lane shared by several levels
//! ([`Builder::level_mapping`](crate::Builder::level_mapping)) it is the level of the most critical reader that
//! received a sample from the datagram. On such a lane, a datagram without samples is not counted, and an activation
//! has the level of the most critical sample that it read.

use isolane_datapath::Warning;
use isolane_executor::PriorityInversions;
use isolane_rtps::{Priority, WorkKind};
use isolane_wire::level::Level;

use crate::{
    observe::{DiscoveredServer, Observer},
    warning_log::WarningLog,
};

/// Observed maxima of one kind of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WorkObserved {
    pub(crate) steps: u64,
    pub(crate) execution_max_ns: u64,
}

/// Observation of a participant: counters, warnings, and the server for observers.
#[derive(Default)]
pub(crate) struct Monitoring {
    pub(crate) work: [[WorkObserved; WorkKind::ALL.len()]; Priority::COUNT],
    pub(crate) inversions: InversionCounts,
    pub(crate) warning_log: WarningLog,
    /// Server for observers in other processes, if they are allowed.
    pub(crate) observer: Option<Box<Observer>>,
    /// Server of the list of discovered entities, if observers are allowed.
    pub(crate) discovered: Option<Box<DiscoveredServer>>,
    /// True if the application chose the receive buffer size, so that a smaller one deserves a note.
    pub(crate) has_asked_for_buffer: bool,
    /// Preferred datapaths that cannot be used.
    pub(crate) not_used: Vec<Warning>,
    /// Reason why the budget of the interface, set when the participant was built, is not enforced.
    pub(crate) limit_not_enforced: Option<String>,
    /// Scheduling options that were refused, with the reason.
    pub(crate) not_placed: Vec<String>,
    /// Warnings that were passed to the application.
    pub(crate) reported: Vec<String>,
    /// Reason why observation is unavailable although it is allowed.
    pub(crate) not_observable: Option<String>,
}

impl Monitoring {
    pub(crate) fn new(not_used: Vec<Warning>, not_placed: Vec<String>) -> Self {
        Self {
            warning_log: WarningLog::new(),
            not_used,
            not_placed,
            ..Self::default()
        }
    }
}

/// Priority inversions of one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelReport {
    /// Level.
    pub level: Level,
    /// Datagrams checked for inversions.
    pub datagrams: u64,
    /// Activations of lower priority that began while a datagram or sample of this level waited.
    ///
    /// A datagram waits from its arrival (the kernel's stamp, or the time at which the loop saw the socket readable)
    /// until it is read. A cached sample waits until the callback takes it. The activation counts if the previous poll
    /// saw the socket readable, or if there was no poll. It counts once for each waiting sample. The value is 0 unless
    /// levels share a lane or priorities share a ready list.
    pub inversions: u64,
    /// Activations of lower priority after a poll that did not see the socket readable, although the stamp is earlier
    /// than the clock read after the poll. The kernel had stamped the datagram, but not yet put it into the socket.
    pub kernel_late: u64,
    /// Longest time in nanoseconds from a stamp to a poll that did not see the datagram.
    pub kernel_late_max_ns: u64,
}

/// Sums by level.
#[derive(Debug, Default)]
pub(crate) struct InversionCounts {
    levels: [(u64, PriorityInversions); Level::ALL.len()],
}

impl InversionCounts {
    #[inline]
    pub(crate) fn note_datagram(&mut self, level: Level, waited: PriorityInversions) {
        let (datagrams, sum) = &mut self.levels[usize::from(level.get())];
        *datagrams += 1;
        if !waited.is_none() {
            *sum += waited;
        }
    }

    /// Adds the wait of a sample for its callback.
    pub(crate) fn note_callback(&mut self, level: Level, waited: PriorityInversions) {
        self.levels[usize::from(level.get())].1 += waited;
    }

    /// Returns the levels with datagrams, most critical first.
    pub(crate) fn report(&self) -> Vec<LevelReport> {
        let levels = Level::ALL.into_iter().zip(&self.levels).rev();
        let used = levels.filter(|(_, (datagrams, _))| *datagrams > 0);
        used.map(|(level, (datagrams, waited))| LevelReport {
            level,
            datagrams: *datagrams,
            inversions: waited.inversions,
            kernel_late: waited.kernel_latency_events,
            kernel_late_max_ns: waited.kernel_latency_max_ns,
        })
        .collect()
    }
}
