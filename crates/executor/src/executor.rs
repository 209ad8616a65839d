//! The table of jobs, and a job's way through it.

use alloc::vec::Vec;
use core::fmt;

use isolane_wire::time::Instant;

use crate::activation::Running;
use crate::history::{History, Look};
use crate::job::{Job, JobConfig, JobId, Observed, Release, State, Trigger};
use crate::limits::{DEFAULT_JOBS, MAX_JOBS, MAX_PRIORITY};
use crate::ready::{Order, ReadyQueue};
use crate::share::Shares;
use crate::time_queue::TimeQueue;

/// How an executor is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutorConfig {
    /// Which of the ready jobs is chosen.
    pub order: Order,
    /// Lines of the table; memory for all of them is taken at once. More than
    /// [`MAX_JOBS`] is taken as that.
    pub max_jobs: usize,
}

impl Default for ExecutorConfig {
    fn default() -> ExecutorConfig {
        ExecutorConfig {
            order: Order::Priority,
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

struct Line {
    /// How often the line was given away, so that an old id names nobody.
    generation: u16,
    job: Option<Job>,
}

/// One table of jobs, of which one at a time runs. See the crate's head.
pub struct Executor {
    lines: Vec<Line>,
    /// Lines without a job; the last one is given away next.
    free: Vec<u16>,
    pub(crate) ready: ReadyQueue,
    /// Periodic jobs by their next release, sporadic ones deferred.
    pub(crate) releases: TimeQueue,
    /// Ready and running jobs that have a deadline, by that.
    pub(crate) deadlines: TimeQueue,
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
        let line = |_| Line {
            generation: 0,
            job: None,
        };
        Executor {
            lines: (0..max_jobs).map(line).collect(),
            free: (0..max_jobs as u16).rev().collect(),
            ready: ReadyQueue::new(config.order, max_jobs),
            releases: TimeQueue::new(max_jobs),
            deadlines: TimeQueue::new(max_jobs),
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
        let Some(index) = self.free.pop() else {
            return Err(TableFull {
                max_jobs: self.lines.len(),
            });
        };
        config.priority = config.priority.min(MAX_PRIORITY);
        if let Trigger::Periodic { .. } = config.trigger {
            // Due at once: the first look at the clock finds the phase.
            self.releases.insert(index, Instant::new(0));
        }
        let line = &mut self.lines[usize::from(index)];
        line.job = Some(Job::new(config));
        Ok(JobId {
            index,
            generation: line.generation,
        })
    }

    /// Removes a job, ready or not; the one that runs is removed when it finishes. False if the
    /// id names nobody.
    pub fn remove(&mut self, id: JobId) -> bool {
        let Some(job) = self.get_mut(id) else {
            return false;
        };
        let (state, priority) = (job.state, job.config.priority);
        job.condemned = true;
        self.releases.remove(id.index);
        self.deadlines.remove(id.index);
        match state {
            State::Running(_) => {}
            State::Ready(_) => {
                self.ready.remove(id.index, priority);
                self.vacate(id.index);
            }
            State::Idle | State::Deferred => self.vacate(id.index),
        }
        true
    }

    pub(crate) fn vacate(&mut self, index: u16) {
        let line = &mut self.lines[usize::from(index)];
        line.job = None;
        line.generation = line.generation.wrapping_add(1);
        self.free.push(index);
    }

    /// Changes how many items an activation of the job may handle.
    pub fn set_items(&mut self, id: JobId, items: u16) {
        if let Some(job) = self.get_mut(id) {
            job.config.items = items;
        }
    }

    /// Gives a priority a share of the one right above it: after each `items` items that jobs of the
    /// upper one have handled while a job of the lower one was ready, one activation of the lower one
    /// runs before the next of the upper one. Those in between are not touched, there are none; more
    /// urgent ones come first as ever. It means nothing in the order of arrival.
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
        let Some(job) = self.get_mut(id) else {
            return;
        };
        match job.state {
            State::Idle => self.arrive(id.index, release),
            State::Running(_) if !job.condemned => {
                job.pending.get_or_insert(release);
            }
            State::Ready(_) | State::Deferred | State::Running(_) => {}
        }
    }

    /// An idle job's event: ready at once, or later if it is sporadic and too early.
    #[inline]
    pub(crate) fn arrive(&mut self, index: u16, release: Release) {
        let job = self.at_mut(index);
        if let Trigger::Sporadic {
            min_interarrival_ns,
        } = job.config.trigger
            && let Some(last) = job.last_release
            && release.at < after(last, min_interarrival_ns)
        {
            job.state = State::Deferred;
            job.observed.releases_deferred += 1;
            self.releases
                .insert(index, after(last, min_interarrival_ns));
            return;
        }
        self.make_ready(index, release);
    }

    #[inline]
    pub(crate) fn make_ready(&mut self, index: u16, release: Release) {
        let at = release.at;
        let job = self.at_mut(index);
        job.state = State::Ready(release);
        job.last_release = Some(at);
        job.row_began.get_or_insert(at);
        let (priority, deadline_ns) = (job.config.priority, job.config.deadline_ns);
        if let Some(deadline_ns) = deadline_ns {
            self.deadlines.insert(index, after(at, deadline_ns));
        }
        self.ready.push(index, priority);
    }

    /// Releases what time has made due: to be called with the clock before each
    /// [`next`](Self::next).
    ///
    /// A periodic job is released as of the instant of its period. If several have passed, it is
    /// released once, as of the first, and the others are counted as missed.
    pub fn release(&mut self, now: Instant) {
        while let Some((at, index)) = self.releases.pop_if(|at| at <= now) {
            let job = self.at_mut(index);
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
                        self.releases.insert(index, first);
                    }
                }
                Trigger::Event | Trigger::Sporadic { .. } => self.make_ready(index, at.into()),
            }
        }
    }

    fn release_periodic(&mut self, index: u16, at: Instant, now: Instant, period_ns: u64) {
        let passed = (now.as_nanos() - at.as_nanos()) / period_ns;
        // `passed + 1` periods after `at` is later than now, so each job is released once a call.
        let next = after(at, period_ns.saturating_mul(passed + 1));
        self.releases.insert(index, next);
        let job = self.at_mut(index);
        job.observed.releases_missed += passed;
        match job.state {
            State::Idle => self.make_ready(index, at.into()),
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
        self.releases.first().map(|(at, _)| at)
    }

    /// The job to begin now; it stays ready until it has begun.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Option<JobId> {
        let highest = self.ready.highest()?;
        let by_share = match self.shares.is_due(highest) {
            true => self.ready.first_of(highest - 1),
            false => None,
        };
        let first = by_share.or_else(|| self.ready.first_of(highest));
        first.map(|index| self.id_at(index))
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
        let line = self.lines.get(id.index())?;
        line.job
            .as_ref()
            .filter(|_| line.generation == id.generation)
    }

    #[inline]
    fn get_mut(&mut self, id: JobId) -> Option<&mut Job> {
        let line = self.lines.get_mut(id.index())?;
        line.job
            .as_mut()
            .filter(|_| line.generation == id.generation)
    }

    /// The job of a line that some queue names: it is there, since `remove` withdraws a job from
    /// every queue.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: u16) -> &mut Job {
        match &mut self.lines[usize::from(index)].job {
            Some(job) => job,
            None => panic!("a queue names line {index}, which has no job"),
        }
    }

    pub(crate) fn id_at(&self, index: u16) -> JobId {
        JobId {
            index,
            generation: self.lines[usize::from(index)].generation,
        }
    }

    /// All jobs, in the order of their lines.
    pub fn jobs(&self) -> impl Iterator<Item = (JobId, &Job)> {
        (0..)
            .zip(&self.lines)
            .filter_map(|(index, line)| Some((self.id_at(index), line.job.as_ref()?)))
    }

    /// Jobs released and not yet begun.
    #[must_use]
    pub fn ready_count(&self) -> usize {
        self.ready.len()
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
        for job in self.lines.iter_mut().filter_map(|line| line.job.as_mut()) {
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

/// Saturating: a deadline of 2^64 ns is none.
pub(crate) fn after(instant: Instant, nanos: u64) -> Instant {
    Instant::new(instant.as_nanos().saturating_add(nanos))
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
