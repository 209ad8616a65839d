//! The table of jobs, and a job's way through it.

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
    /// Ready list of each priority, at most [`MAX_PRIORITY`]. Higher lists are served first; jobs of
    /// one list run in the order in which they became ready. Called once for each priority, by
    /// [`Executor::new`]. Default: the priority itself. Priorities mapped to one list are served
    /// first in, first out, and [shares](Executor::grant_share) between them have no effect.
    pub priority_mapping: fn(u8) -> u8,
    /// Lines of the table; memory for all of them is taken at once. More than
    /// [`MAX_JOBS`] is taken as that.
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

/// Every line of the table is taken: remove a job, or make the executor with more `max_jobs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the executor's table of {max_jobs} jobs is full: raise max_jobs, or remove a job")]
pub struct TableFull {
    /// Lines of the table.
    pub max_jobs: usize,
}

/// One table of jobs, of which one at a time runs. See the crate's head.
pub struct Executor {
    pub(crate) table: Table,
    pub(crate) queues: Queues,
    pub(crate) running: Option<Running>,
    /// The last look at the sources, until an activation begins.
    pub(crate) look: Option<Look>,
    pub(crate) history: History,
    pub(crate) shares: Shares,
}

impl Executor {
    /// An empty table. All memory it will ever use is taken here.
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

    /// Adds a job, idle. A periodic one is released from the next [`release`](Self::release) on.
    ///
    /// # Errors
    /// [`TableFull`], and the table is as it was.
    pub fn add(&mut self, mut config: JobConfig) -> Result<JobId, TableFull> {
        config.priority = config.priority.min(MAX_PRIORITY);
        let is_periodic = matches!(config.trigger, Trigger::Periodic { .. });
        let max_jobs = self.table.len();
        let id = self.table.add(config).ok_or(TableFull { max_jobs })?;
        if is_periodic {
            // Due at once: the first look at the clock finds the phase.
            self.queues.releases.insert(id.line(), Instant::new(0));
        }
        Ok(id)
    }

    /// Removes a job, ready or not; the one that runs is removed when it finishes. False if the
    /// id names nobody.
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

    /// Changes how many items an activation of the job may handle.
    pub fn set_items(&mut self, id: JobId, items: u16) {
        if let Some(job) = self.table.get_mut(id) {
            job.config.items = items;
        }
    }

    /// Gives a priority a share of the one right above it: after each `items` items that jobs of the
    /// upper one have handled while a job of the lower one was ready, one activation of the lower one
    /// runs before the next of the upper one. Those in between are not touched, there are none; more
    /// urgent ones come first as ever.
    pub fn grant_share(&mut self, lower: u8, items: u16) {
        self.shares.grant(lower, items);
    }

    /// An event of the job arrived at `at`: when it happened if that is known (a frame's time
    /// stamp), otherwise now. Nothing changes while the job is ready: the first stamp counts.
    /// An event that arrives while the job runs makes it ready when it finishes. Ids that name
    /// nobody are ignored: the event was on its way when the job was removed.
    #[inline]
    pub fn activate(&mut self, id: JobId, at: Instant) {
        self.file(id, at.into());
    }

    /// The same for an event that follows from another job's: what happened at `at` is this job's
    /// from `ready` on. Responses count from `at`; what came before `ready` is accounted for by the
    /// job that handled it until then.
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

    /// Releases what time has made due: to be called with the clock before each
    /// [`next`](Self::next).
    ///
    /// A periodic job is released as of the instant of its period. If several have passed, it is
    /// released once, as of the first, and the others are counted as missed.
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
        // `passed + 1` periods after `at` is later than now, so each job is released once a call.
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

    /// When [`release`](Self::release) has something to do: the loop sleeps no longer. An
    /// instant of the past if a periodic job was added since.
    #[inline]
    #[must_use]
    pub fn next_release(&self) -> Option<Instant> {
        self.queues.releases.first().map(|(at, _)| at)
    }

    /// The job to begin now; it stays ready until it has begun.
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

    /// The job of an id.
    ///
    /// # Panics
    /// If the id names nobody; [`get`](Self::get) does not.
    #[inline]
    #[must_use]
    pub fn job(&self, id: JobId) -> &Job {
        match self.get(id) {
            Some(job) => job,
            None => panic!("{id} was removed"),
        }
    }

    /// The job of an id, unless it was removed.
    #[inline]
    #[must_use]
    pub fn get(&self, id: JobId) -> Option<&Job> {
        self.table.get(id)
    }

    /// All jobs, in the order of their lines.
    pub fn jobs(&self) -> impl Iterator<Item = (JobId, &Job)> {
        self.table.iter()
    }

    /// Jobs released and not yet begun.
    #[must_use]
    pub fn ready_count(&self) -> usize {
        self.queues.ready.len()
    }

    /// The job that runs.
    #[must_use]
    pub fn running(&self) -> Option<JobId> {
        self.running.map(|running| running.id)
    }

    /// Whether the job that runs was chosen by its share, in front of more urgent ones that wait.
    #[must_use]
    pub fn runs_by_share(&self) -> bool {
        self.running.is_some_and(|running| running.by_share)
    }

    /// Forgets what was observed of every job: a measurement begins.
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

/// The first instant from `now` on that is `offset_ns` modulo `period_ns`.
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
