//! Executor: job table, release and choice of the next job.

use core::fmt;

use isolane_wire::time::Instant;

use crate::activation::Running;
use crate::history::{History, Look};
use crate::job::{Job, JobConfig, JobId, Observed, Release, State, Trigger};
use crate::limits::{DEFAULT_JOBS, MAX_JOBS, MAX_PRIORITY};
use crate::queues::{Queues, after};
use crate::share::Shares;
use crate::table::Table;

/// Configuration of an executor.
#[derive(Clone, Copy, Debug)]
pub struct ExecutorConfig {
    /// Ready list of each priority, at most [`MAX_PRIORITY`]. Higher lists are served first; jobs of one list run in the
    /// order in which they became ready. [`Executor::new`] calls it once for each priority. Default: the priority itself.
    /// Priorities mapped to one list are served first in, first out. A mapping other than the identity disables
    /// [shares](Executor::grant_share).
    pub priority_mapping: fn(u8) -> u8,
    /// Size of the job table, allocated at once; at most [`MAX_JOBS`].
    pub max_jobs: usize,
}

impl Default for ExecutorConfig {
    fn default() -> ExecutorConfig {
        ExecutorConfig {
            priority_mapping: |priority| priority,
            max_jobs: DEFAULT_JOBS,
        }
    }
}

/// The job table is full. Remove a job, or raise `max_jobs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the executor's table of {max_jobs} jobs is full: raise max_jobs, or remove a job")]
pub struct TableFull {
    /// Size of the job table.
    pub max_jobs: usize,
}

/// Non-preemptive fixed-priority executor: a table of jobs, one of which runs at a time. See the crate
/// documentation.
pub struct Executor {
    pub(crate) table: Table,
    pub(crate) queues: Queues,
    pub(crate) running: Option<Running>,
    /// Last poll of the sources, until the next activation begins.
    pub(crate) look: Option<Look>,
    pub(crate) history: History,
    pub(crate) shares: Shares,
}

impl Executor {
    /// Creates an executor without jobs. Allocates all the memory it ever uses.
    #[must_use]
    pub fn new(config: ExecutorConfig) -> Executor {
        let max_jobs = config.max_jobs.min(MAX_JOBS);
        Executor {
            table: Table::new(max_jobs),
            queues: Queues::new(config.priority_mapping, max_jobs),
            running: None,
            look: None,
            history: History::new(),
            shares: Shares::new(),
        }
    }

    /// Adds an idle job. A periodic one is released from the next [`release`](Self::release) on.
    ///
    /// # Errors
    /// [`TableFull`]; the table is unchanged.
    pub fn add(&mut self, mut config: JobConfig) -> Result<JobId, TableFull> {
        config.priority = config.priority.min(MAX_PRIORITY);
        let is_periodic = matches!(config.trigger, Trigger::Periodic { .. });
        let max_jobs = self.table.len();
        let id = self.table.add(config).ok_or(TableFull { max_jobs })?;
        if is_periodic {
            // Due at once: the next call of `release` computes the phase.
            self.queues.releases.insert(id.line(), Instant::new(0));
        }
        Ok(id)
    }

    /// Removes a job, ready or not; a running one is removed when it finishes. Returns false if the id is stale.
    pub fn remove(&mut self, id: JobId) -> bool {
        let Some(job) = self.table.get_mut(id) else {
            return false;
        };
        job.condemned = true;
        self.queues.releases.remove(id.line());
        match job.state {
            State::Running(_) => return true,
            State::Ready(_) => self.queues.ready.remove(id.line(), job.config.priority),
            State::Idle | State::Deferred => {}
        }
        self.table.vacate(id.line());
        true
    }

    /// Sets the item limit of the job's activations.
    pub fn set_items(&mut self, id: JobId, items: u16) {
        if let Some(job) = self.table.get_mut(id) {
            job.config.items = items;
        }
    }

    /// Grants a priority a share of the next higher one. After every `items` items that jobs of the higher priority
    /// handle while a job of the lower one is ready, one activation of the lower one runs first. Still higher
    /// priorities are unaffected. No effect unless each priority has its own ready list.
    pub fn grant_share(&mut self, lower: u8, items: u16) {
        // Shares compare neighbouring priorities, and therefore need a list for each.
        if self.queues.ready.has_list_per_priority() {
            self.shares.grant(lower, items);
        }
    }

    /// Activates a job for an event at `at`: the event's own stamp if known (that of a frame), otherwise now. A ready
    /// job keeps its first stamp. A running job becomes ready when it finishes. Stale ids are ignored: the job was
    /// removed while its event was pending.
    #[inline]
    pub fn activate(&mut self, id: JobId, at: Instant) {
        self.file(id, at.into());
    }

    /// Activates a job for an event that another job passed on at `ready`. The response time counts from `at`;
    /// waiting before `ready` is accounted for by the other job.
    pub fn activate_since(&mut self, id: JobId, at: Instant, ready: Instant) {
        self.file(id, Release { at, ready });
    }

    #[inline]
    fn file(&mut self, id: JobId, release: Release) {
        let Some(job) = self.table.get_mut(id) else {
            return;
        };
        match job.state {
            State::Idle => self.queues.arrive(id.line(), job, release),
            State::Running(_) if !job.condemned => {
                job.pending.get_or_insert(release);
            }
            State::Ready(_) | State::Deferred | State::Running(_) => {}
        }
    }

    /// Releases the jobs that are due at `now`; called before each [`next`](Self::next).
    ///
    /// A periodic job is released at the instant of its period. If several periods have passed, the job is released
    /// once, for the first, and the others are counted as missed.
    pub fn release(&mut self, now: Instant) {
        while let Some((at, index)) = self.queues.releases.pop_if(|at| at <= now) {
            let job = self.table.at_mut(index);
            match job.config.trigger {
                Trigger::Periodic {
                    period_ns,
                    offset_ns,
                } => {
                    let period_ns = period_ns.max(1);
                    if job.anchored {
                        self.release_periodic(index, at, now, period_ns);
                    } else {
                        job.anchored = true;
                        let first = first_release(now, period_ns, offset_ns);
                        self.queues.releases.insert(index, first);
                    }
                }
                Trigger::Event | Trigger::Sporadic { .. } => {
                    self.queues.make_ready(index, job, at.into());
                }
            }
        }
    }

    fn release_periodic(&mut self, index: u16, at: Instant, now: Instant, period_ns: u64) {
        let passed = (now.as_nanos() - at.as_nanos()) / period_ns;
        // `passed + 1` periods after `at` is later than now, so each job is released at most once per call.
        let next = after(at, period_ns.saturating_mul(passed + 1));
        self.queues.releases.insert(index, next);
        let job = self.table.at_mut(index);
        job.observed.releases_missed += passed;
        match job.state {
            State::Idle => self.queues.make_ready(index, job, at.into()),
            State::Running(_) if job.pending.is_none() => job.pending = Some(at.into()),
            State::Ready(_) | State::Running(_) | State::Deferred => {
                job.observed.releases_missed += 1;
            }
        }
    }

    /// Next instant at which [`release`](Self::release) has work: the limit of the loop's sleep. In the past if a
    /// periodic job was added since.
    #[inline]
    #[must_use]
    pub fn next_release(&self) -> Option<Instant> {
        self.queues.releases.first().map(|(at, _)| at)
    }

    /// Returns the job to begin now. It stays ready until [`begin`](Self::begin).
    #[inline]
    #[must_use]
    pub fn next(&self) -> Option<JobId> {
        let ready = &self.queues.ready;
        let highest = ready.highest()?;
        let by_share = match self.shares.is_due(highest) {
            true => ready.first_of(highest - 1),
            false => None,
        };
        let first = by_share.or_else(|| ready.first_of(highest));
        first.map(|index| self.table.id_at(index))
    }

    /// Returns the job with an id.
    ///
    /// # Panics
    /// If the id is stale; [`get`](Self::get) returns `None` instead.
    #[inline]
    #[must_use]
    pub fn job(&self, id: JobId) -> &Job {
        match self.get(id) {
            Some(job) => job,
            None => panic!("{id} was removed"),
        }
    }

    /// Returns the job with an id; `None` if it was removed.
    #[inline]
    #[must_use]
    pub fn get(&self, id: JobId) -> Option<&Job> {
        self.table.get(id)
    }

    /// Iterates over all jobs, in the order of their indices.
    pub fn jobs(&self) -> impl Iterator<Item = (JobId, &Job)> {
        self.table.iter()
    }

    /// Number of ready jobs.
    #[must_use]
    pub fn ready_count(&self) -> usize {
        self.queues.ready.len()
    }

    /// Running job.
    #[must_use]
    pub fn running(&self) -> Option<JobId> {
        self.running.map(|running| running.id)
    }

    /// Returns true if the running job was chosen by its share, before ready jobs of a higher priority.
    #[must_use]
    pub fn runs_by_share(&self) -> bool {
        self.running.is_some_and(|running| running.by_share)
    }

    /// Resets the observations of all jobs, to begin a measurement.
    pub fn reset_observed(&mut self) {
        for job in self.table.iter_mut() {
            job.observed = Observed::default();
        }
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("jobs", &self.jobs().count())
            .field("ready", &self.ready_count())
            .field("running", &self.running())
            .finish_non_exhaustive()
    }
}

/// First instant from `now` on that equals `offset_ns` modulo `period_ns`.
fn first_release(now: Instant, period_ns: u64, offset_ns: u64) -> Instant {
    let phase_ns = offset_ns % period_ns;
    let now_ns = now.as_nanos() % period_ns;
    let wait_ns = if phase_ns >= now_ns {
        phase_ns - now_ns
    } else {
        period_ns - now_ns + phase_ns
    };
    after(now, wait_ns)
}
