//! Jobs: configuration, observations, and the table with generation-checked ids.

use alloc::vec::Vec;
use core::fmt;

use heapless::String;
use isolane_wire::time::Instant;

use crate::limits::MAX_NAME_BYTES;

/// Job name for display.
pub type Name = String<MAX_NAME_BYTES>;

/// Identifies a job in the table. After removal its index can be reused; the old id is then stale.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(
    /// Index in the upper half, generation in the lower: compared and copied as one word.
    u32,
);

impl JobId {
    pub(crate) const fn new(index: u16, generation: u16) -> JobId {
        JobId((index as u32) << 16 | generation as u32)
    }

    #[inline]
    pub(crate) const fn table_index(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Number of earlier uses of the index, modulo 2^16.
    pub(crate) const fn generation(self) -> u16 {
        self.0 as u16
    }

    /// Index in the table, below `max_jobs`; usable for parallel tables.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.table_index() as usize
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {}.{}", self.table_index(), self.generation())
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Release condition of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Trigger {
    /// Event: the job is released when it is activated.
    #[default]
    Event,
    /// Time: the job is released at every instant `t` of the monotonic clock with `t = offset_ns (mod period_ns)`, from
    /// the first [`release`](crate::Executor::release) after it was added. So the offsets of all jobs refer to the same
    /// instant, whenever the jobs were added.
    Periodic {
        /// Time between releases; 0 is taken as 1.
        period_ns: u64,
        /// Phase of the releases.
        offset_ns: u64,
    },
    /// Event with a minimum inter-arrival time: an earlier event is deferred, which bounds what an event storm costs
    /// lower priorities.
    Sporadic {
        /// Minimum time between releases.
        min_interarrival_ns: u64,
    },
}

/// Job configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobConfig {
    /// Name for display and reports.
    pub name: Name,
    /// Priority 0 to 31, higher is more urgent; greater values are taken as 31.
    pub priority: u8,
    /// Release condition.
    pub trigger: Trigger,
    /// Maximum number of items of an activation. The job's code enforces the limit, and finishes with `has_more` at the
    /// limit.
    pub items: u16,
    /// Source that the job serves, 0 to 31: its bit in [`polled`](crate::Executor::polled). With a source, waits are
    /// measured from the stamps given to [`record_arrival`](crate::Executor::record_arrival); without one, from the
    /// job's releases.
    pub source: Option<u8>,
}

impl JobConfig {
    /// Creates a configuration for a job released by events, one item per activation. The name is cut to
    /// [`MAX_NAME_BYTES`].
    #[must_use]
    pub fn event(name: &str, priority: u8) -> JobConfig {
        let mut short = Name::new();
        for character in name.chars() {
            if short.push(character).is_err() {
                break;
            }
        }
        JobConfig {
            name: short,
            priority,
            trigger: Trigger::Event,
            items: 1,
            source: None,
        }
    }

    /// Creates a configuration for a periodic job, one item per activation.
    #[must_use]
    pub fn periodic(name: &str, priority: u8, period_ns: u64, offset_ns: u64) -> JobConfig {
        let trigger = Trigger::Periodic {
            period_ns,
            offset_ns,
        };
        JobConfig {
            trigger,
            ..JobConfig::event(name, priority)
        }
    }
}

/// Observations of a job since it was added, or since [`reset_statistics`](crate::Executor::reset_statistics). No
/// outliers are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobStatistics {
    /// Number of activations.
    pub activations: u64,
    /// Activations that stopped at the item limit and were continued.
    pub continued: u64,
    /// Maximum execution time of an activation, begin to finish.
    pub execution_max_ns: u64,
    /// Total execution time.
    pub execution_total_ns: u64,
    /// Maximum response time of an activation, release to finish. A continuation counts as released when the
    /// previous activation finished; see `drain_max_ns`.
    pub response_max_ns: u64,
    /// Maximum time from a first release to the finish of its last continuation.
    pub drain_max_ns: u64,
    /// Maximum blocking: wait for a lower-priority activation that began before the release.
    pub blocking_max_ns: u64,
    /// Job that caused the maximum blocking.
    pub blocked_by: Option<JobId>,
    /// Priority inversions: lower-priority activations that began between the arrival of an item and its handling.
    /// Either the poll before them showed the source as readable, or there was no poll. A job with a source counts them
    /// for each reported arrival ([`record_arrival`](crate::Executor::record_arrival)), any other job for each
    /// activation since its release. The search covers the last
    /// [`REMEMBERED_ACTIVATIONS`](crate::limits::REMEMBERED_ACTIVATIONS), and the latest of each priority. See
    /// [`PriorityInversions`](crate::PriorityInversions).
    pub inversions: u64,
    /// Lower-priority activations that began after an arrival's stamp, when the poll before them did not show the
    /// source as readable: kernel latency, counted like `inversions`.
    pub kernel_latency_events: u64,
    /// Maximum time from a stamp to a poll that did not show the source as readable.
    pub kernel_latency_max_ns: u64,
    /// Periodic releases that found the job still ready, or passed before the next call of
    /// [`release`](crate::Executor::release).
    pub releases_missed: u64,
    /// Sporadic events earlier than the minimum inter-arrival time.
    pub releases_deferred: u64,
}

/// Event of a job, or an instant of its period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    /// Time of the event: the response time counts from here.
    pub(crate) at: Instant,
    /// Start of the interval in which lower-priority activations count: `at`, or later if another job accounts for
    /// the time before.
    pub(crate) ready: Instant,
}

impl From<Instant> for Release {
    fn from(at: Instant) -> Release {
        Release { at, ready: at }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Idle,
    /// An event has arrived; its release is in the time queue (sporadic only).
    Deferred,
    /// Released, not begun.
    Ready(Release),
    /// Begun.
    Running(Release),
}

/// Job in the table.
#[derive(Clone, Debug)]
pub struct Job {
    /// Configuration.
    pub config: JobConfig,
    /// Observations.
    pub statistics: JobStatistics,
    pub(crate) state: State,
    /// True once the phase of a periodic job is known.
    pub(crate) has_phase: bool,
    pub(crate) last_release: Option<Instant>,
    /// Event that arrived while the job ran.
    pub(crate) pending: Option<Release>,
    /// Release of the first activation of a series continued with `has_more`.
    pub(crate) series_release: Option<Instant>,
    /// True if removed while running: its index is freed at the finish.
    pub(crate) removal_pending: bool,
}

impl Job {
    pub(crate) fn new(config: JobConfig) -> Job {
        Job {
            config,
            statistics: JobStatistics::default(),
            state: State::Idle,
            has_phase: false,
            last_release: None,
            pending: None,
            series_release: None,
            removal_pending: false,
        }
    }

    /// Release time of a ready or running job; for a periodic job, the instant of its period, even if the loop was
    /// late.
    #[inline]
    #[must_use]
    pub fn released_at(&self) -> Option<Instant> {
        self.release().map(|release| release.at)
    }

    #[inline]
    pub(crate) fn release(&self) -> Option<Release> {
        match self.state {
            State::Ready(release) | State::Running(release) => Some(release),
            State::Idle | State::Deferred => None,
        }
    }

    /// Returns true if the job is released and not begun.
    #[inline]
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready(_))
    }
}

struct Entry {
    /// Id of the current or the next job; changes with each use, so that old ids are stale.
    id: JobId,
    job: Option<Job>,
}

pub(crate) struct Table {
    /// Entries used so far. The capacity suffices for all, but memory is written at first use, because most
    /// participants have few jobs.
    entries: Vec<Entry>,
    /// Free entries; the last one is used next.
    free: Vec<u16>,
    max_jobs: usize,
}

impl Table {
    pub(crate) fn new(max_jobs: usize) -> Table {
        Table {
            entries: Vec::with_capacity(max_jobs),
            free: Vec::with_capacity(max_jobs),
            max_jobs,
        }
    }

    /// Maximum number of jobs.
    pub(crate) fn len(&self) -> usize {
        self.max_jobs
    }

    /// Adds a job; `None` if the table is full.
    pub(crate) fn add(&mut self, config: JobConfig) -> Option<JobId> {
        let job = Some(Job::new(config));
        if let Some(index) = self.free.pop() {
            let entry = &mut self.entries[usize::from(index)];
            entry.job = job;
            return Some(entry.id);
        }
        if self.entries.len() == self.max_jobs {
            return None;
        }
        let id = JobId::new(self.entries.len() as u16, 0);
        self.entries.push(Entry { id, job });
        Some(id)
    }

    pub(crate) fn vacate(&mut self, index: u16) {
        let entry = &mut self.entries[usize::from(index)];
        entry.job = None;
        entry.id = JobId::new(index, entry.id.generation().wrapping_add(1));
        self.free.push(index);
    }

    #[inline]
    pub(crate) fn get(&self, id: JobId) -> Option<&Job> {
        let entry = self.entries.get(id.index())?;
        match &entry.job {
            Some(job) if entry.id == id => Some(job),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: JobId) -> Option<&mut Job> {
        let entry = self.entries.get_mut(id.index())?;
        match &mut entry.job {
            Some(job) if entry.id == id => Some(job),
            _ => None,
        }
    }

    /// Returns the job at an index taken from a queue. The job exists, because `remove` takes it out of every queue.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: u16) -> &mut Job {
        match &mut self.entries[usize::from(index)].job {
            Some(job) => job,
            None => panic!("a queue names entry {index}, which has no job"),
        }
    }

    #[inline]
    pub(crate) fn id_at(&self, index: u16) -> JobId {
        self.entries[usize::from(index)].id
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (JobId, &Job)> {
        self.entries
            .iter()
            .filter_map(|entry| Some((entry.id, entry.job.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Job> {
        self.entries
            .iter_mut()
            .filter_map(|entry| entry.job.as_mut())
    }
}
