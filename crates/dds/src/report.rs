//! Report on a participant's work, for people and for tests.

use std::fmt;

use isolane_datapath::{Imbalance, Lane, Ledger, Warning, udp::SMALL_RECEIVE_BUFFER};
use isolane_executor::JobStatistics;
use isolane_rtps::{
    Counters, Priority, ReaderId, ReaderLedger, UnreadableSamples, WorkKind, WriterLedger,
};
use isolane_wire::level::Level;

use crate::{
    monitoring::LevelReport, participant::state::State, reader::ResponseDeadline,
    writer::handle::SendQueue,
};

/// Job of the executor.
#[derive(Debug, Clone, PartialEq)]
pub struct JobReport {
    /// Name.
    pub name: String,
    /// Priority.
    pub priority: u8,
    /// Maximum number of items per activation: datagrams, samples, steps.
    pub items: u16,
    /// Measurements of the executor.
    pub statistics: JobStatistics,
}

/// Steps of one kind of protocol work at one priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkReport {
    /// Kind.
    pub kind: WorkKind,
    /// Priority.
    pub priority: u8,
    /// Number of steps.
    pub steps: u64,
    /// Longest activation in nanoseconds that ended with such a step; at the highest level in use this may be a burst
    /// of steps.
    pub execution_max_ns: u64,
}

/// Sockets of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketReport {
    /// Name of the lane, such as "discovery" or "level 7".
    pub lane: String,
    /// Receive buffer in bytes that the kernel granted, the smallest of the lane's sockets.
    pub receive_buffer_bytes: usize,
}

/// Writer or reader of this participant, including writer handles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointReport<L> {
    /// Topic name.
    pub topic: String,
    /// Level.
    pub level: Level,
    /// Number of matched endpoints. A writer counts only readers that are confirmed to receive samples.
    pub matched: usize,
    /// Number of a writer's matched reliable readers that have never responded. Readers get no samples before their
    /// first response.
    pub silent: usize,
    /// Account of all samples.
    pub ledger: L,
    /// Response deadline of a reader, and the samples that missed it.
    pub response: Option<ResponseDeadline>,
    /// Samples that a reader rejected because they are not of its type; `None` without any.
    pub refused: Option<UnreadableSamples>,
    /// Reader; `None` for a writer.
    pub(crate) reader: Option<ReaderId>,
}

/// Jobs, ledgers and counters of a participant. `Display` prints a table of its jobs.
///
/// ```
/// use std::time::Duration;
/// use isolane::{Network, Participant};
///
/// let network = Network::new(1);
/// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
/// participant.run_for(Duration::from_millis(2));
///
/// let report = participant.report();
/// report.balance()?; // nothing was lost without a name
/// let discovery = report.jobs.iter().find(|job| job.name == "receive discovery").unwrap();
/// println!("priority {}, {:?}", discovery.priority, discovery.statistics);
/// println!("{report}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Report {
    /// Jobs.
    pub jobs: Vec<JobReport>,
    /// Priority inversions of each level in use, most critical first.
    pub levels: Vec<LevelReport>,
    /// Kinds of protocol work done so far.
    pub work: Vec<WorkReport>,
    /// Writers.
    pub writers: Vec<EndpointReport<WriterLedger>>,
    /// Readers.
    pub readers: Vec<EndpointReport<ReaderLedger>>,
    /// Ledger of datagrams.
    pub datagrams: Ledger,
    /// Lanes with sockets.
    pub sockets: Vec<SocketReport>,
    /// Counters of the RTPS participant.
    pub counters: Counters,
    /// Number of times that protocol work found no free frame and had to wait.
    pub no_frame: u64,
    /// Frames outside the pool: `frames_armed`, `frames_lent` and those in flight.
    pub frames_out: usize,
    /// Frames outside the pool for reception: waiting in the datapath, or being read.
    pub frames_armed: usize,
    /// Frames outside the pool that are lent to threads of writer handles.
    pub frames_lent: usize,
}

impl State {
    /// Returns, as sentences, the features that are missing on this machine.
    pub(crate) fn warnings(&self) -> Vec<String> {
        // If the application chose no size, a smaller receive buffer deserves no warning.
        let is_news = |warning: &&Warning| {
            self.monitoring.has_asked_for_buffer || warning.code != SMALL_RECEIVE_BUFFER
        };
        let warnings = self.io.datapath.warnings().iter().filter(is_news);
        let warnings = self.monitoring.not_used.iter().chain(warnings);
        let lonely = self.protocol.announce_to().is_empty().then(|| {
            "this participant announces itself to nobody, for no interface in use takes part in \
             multicast and no peer is named: only participants that name this host find it. Name \
             peers (Builder::peer), or use an interface with multicast"
                .to_owned()
        });
        let budgets = self.budgets_not_enforced().map(str::to_owned);
        let all = warnings.map(ToString::to_string).chain(lonely);
        all.chain(self.monitoring.limit_not_enforced.clone())
            .chain(budgets)
            .chain(self.monitoring.not_observable.clone())
            .chain(self.monitoring.not_placed.iter().cloned())
            .collect()
    }
}

impl Report {
    pub(crate) fn of(state: &State) -> Self {
        let jobs = state.executor.jobs().map(|(_, job)| JobReport {
            name: job.config.name.as_str().into(),
            priority: job.config.priority,
            items: job.config.items,
            statistics: job.statistics,
        });
        let work = Priority::descending().flat_map(|priority| {
            WorkKind::ALL.into_iter().map(move |kind| {
                let observed = state.monitoring.work[usize::from(priority.get())][kind.index()];
                WorkReport {
                    kind,
                    priority: priority.get(),
                    steps: observed.steps,
                    execution_max_ns: observed.execution_max_ns,
                }
            })
        });
        let protocol = &state.protocol;
        let writers = protocol.local_writers().filter_map(|id| {
            Some(EndpointReport {
                topic: protocol.writer_data(id)?.topic_name.as_str().into(),
                level: Level::clamp(protocol.writer_data(id)?.qos.transport_priority),
                matched: protocol.matched_readers(id),
                silent: protocol.silent_readers(id),
                ledger: protocol.writer_ledger(id)?,
                response: None,
                refused: None,
                reader: None,
            })
        });
        let readers = protocol.local_readers().filter_map(|id| {
            Some(EndpointReport {
                topic: protocol.reader_data(id)?.topic_name.as_str().into(),
                level: Level::clamp(protocol.reader_data(id)?.qos.transport_priority),
                matched: protocol.matched_writers(id),
                silent: 0,
                ledger: protocol.reader_ledger(id)?,
                response: state.reader_slots[id.index()].response.clone(),
                refused: protocol.unreadable_samples(id),
                reader: Some(id),
            })
        });
        let sockets = Lane::ALL.into_iter().filter_map(|lane| {
            Some(SocketReport {
                lane: lane.to_string(),
                receive_buffer_bytes: state.io.datapath.receive_buffer(lane)?,
            })
        });
        Self {
            writers: writers.collect(),
            readers: readers.collect(),
            jobs: jobs.collect(),
            levels: state.monitoring.inversions.report(),
            work: work.filter(|work| work.steps > 0).collect(),
            datagrams: state.io.datapath.ledger(),
            sockets: sockets.collect(),
            counters: *state.protocol.counters(),
            no_frame: state.io.no_frame,
            frames_out: state.io.pool.outstanding(),
            frames_armed: state.io.frames_armed(),
            frames_lent: state.send_queues.iter().map(SendQueue::lent).sum(),
        }
    }

    /// Returns the priority inversions of all levels, 0 with the default mappings of levels and priorities. See
    /// [`LevelReport`].
    #[must_use]
    pub fn inversions(&self) -> u64 {
        self.levels.iter().map(|level| level.inversions).sum()
    }

    /// Returns the number of activations that ran before a more critical datagram, because the kernel had stamped the
    /// datagram but not made the socket readable yet.
    #[must_use]
    pub fn kernel_late(&self) -> u64 {
        self.levels.iter().map(|level| level.kernel_late).sum()
    }

    /// Checks that every datagram is accounted for.
    ///
    /// # Errors
    /// The lane that does not balance, and the difference.
    pub fn balance(&self) -> Result<(), Imbalance> {
        self.datagrams.balance()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<40} {:>4} {:>11} {:>12} {:>12}",
            "job", "prio", "activations", "longest us", "response us"
        )?;
        for job in &self.jobs {
            if job.statistics.activations == 0 {
                continue;
            }
            writeln!(
                f,
                "{:<40} {:>4} {:>11} {:>12.1} {:>12.1}",
                job.name,
                job.priority,
                job.statistics.activations,
                job.statistics.execution_max_ns as f64 / 1e3,
                job.statistics.response_max_ns as f64 / 1e3
            )?;
        }
        for work in &self.work {
            writeln!(
                f,
                "  of these: {:<28} {:>4} {:>11} {:>12.1}",
                work.kind.name(),
                work.priority,
                work.steps,
                work.execution_max_ns as f64 / 1e3
            )?;
        }
        for level in &self.levels {
            writeln!(
                f,
                "level {}: {} datagrams, {} priority inversions, {} late by the kernel (at most {:.1} us)",
                level.level.get(),
                level.datagrams,
                level.inversions,
                level.kernel_late,
                level.kernel_late_max_ns as f64 / 1e3
            )?;
        }
        Ok(())
    }
}
