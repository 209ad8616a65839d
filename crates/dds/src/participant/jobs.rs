//! Jobs of a participant: their tasks in the executor's table.

use isolane_datapath::Lane;
use isolane_executor::{Executor, JobConfig, JobId};
use isolane_rtps::{Priority, ReaderId};
use isolane_wire::time::Instant;

use crate::{error::BuildError, listener::Endpoint, participant::event_loop::Core};

/// Period of housekeeping.
const SECOND_NS: u64 = 1_000_000_000;

/// Task of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    Receive(Lane),
    /// Executes queued protocol work.
    Work(Priority),
    /// Passes cached samples of a reader to its callback.
    Callback(ReaderId),
    Timer,
    /// Notifies an endpoint's listeners of status changes.
    Status(Endpoint),
    Discovery,
    /// Takes samples from a remote writer's ring.
    SendQueue,
    /// Takes back frames that devices have sent, and reclaims frames of bulk lanes if few are left.
    Recycle,
    /// Sends snapshots to other processes.
    Observe,
    /// Sends lists of discovered entities to other processes.
    ListDiscovered,
    /// Follows the wall clock, and makes the checks that no event triggers.
    Housekeeping,
}

/// Application's callback of a timer, called with the planned release.
pub(crate) type TimerCallback = Box<dyn FnMut(Instant)>;

/// Jobs of a participant.
pub(crate) struct Jobs {
    /// Task of each job, by [`JobId::index`]; `None` as soon as the job is removed.
    tasks: Vec<Option<Task>>,
    /// Callbacks of timers, by [`JobId::index`].
    timers: Vec<Option<TimerCallback>>,
    /// Receive jobs of the open lanes, and at [`DISCOVERED_INDEX`] the job that lists discovered entities.
    pub(crate) receive: [Option<JobId>; Lane::COUNT + 1],
    pub(crate) work: [JobId; Priority::COUNT],
    pub(crate) recycle: JobId,
}

impl Jobs {
    /// Creates the jobs that every participant has.
    pub(crate) fn new(executor: &mut Executor, max_jobs: usize) -> Result<Self, BuildError> {
        let mut tasks = vec![None; max_jobs];
        let mut work = Vec::with_capacity(Priority::COUNT);
        for priority in Priority::descending() {
            let name = format!("protocol work, priority {}", priority.get());
            let config = JobConfig::event(&name, priority.get());
            work.push(add(&mut tasks, executor, config, Task::Work(priority))?);
        }
        work.reverse();
        let urgent = JobConfig::event("recycle frames", Priority::HIGHEST.get());
        let recycle = add(&mut tasks, executor, urgent, Task::Recycle)?;
        let statistics = Priority::STATISTICS.get();
        let housekeeping = JobConfig::periodic("housekeeping", statistics, SECOND_NS, 0);
        add(&mut tasks, executor, housekeeping, Task::Housekeeping)?;
        Ok(Self {
            tasks,
            timers: (0..max_jobs).map(|_| None).collect(),
            receive: [None; Lane::COUNT + 1],
            work: work.try_into().expect("one a priority was made"),
            recycle,
        })
    }

    pub(crate) fn add(
        &mut self,
        executor: &mut Executor,
        config: JobConfig,
        task: Task,
    ) -> Result<JobId, BuildError> {
        add(&mut self.tasks, executor, config, task)
    }

    /// Removes a job, which may be the running one. Returns false if the job was removed before.
    pub(crate) fn remove(&mut self, executor: &mut Executor, job: JobId) -> bool {
        if self.task(executor, job).is_none() {
            return false;
        }
        self.tasks[job.index()] = None;
        executor.remove(job)
    }

    /// Returns the task of a job; `None` if it was removed.
    pub(crate) fn task(&self, executor: &Executor, job: JobId) -> Option<Task> {
        // The executor distinguishes ids with the same index, and does not reuse the index of a running job.
        executor.get(job)?;
        self.tasks[job.index()]
    }

    /// Returns the task of a job that the executor has just chosen.
    #[inline]
    pub(crate) fn task_of_next(&self, job: JobId) -> Option<Task> {
        self.tasks[job.index()]
    }

    /// Creates a timer.
    pub(crate) fn add_timer(
        &mut self,
        executor: &mut Executor,
        config: JobConfig,
        callback: TimerCallback,
    ) -> Result<JobId, BuildError> {
        let job = self.add(executor, config, Task::Timer)?;
        self.timers[job.index()] = Some(callback);
        Ok(job)
    }

    /// Removes a timer and returns its callback; drop it while the state is not borrowed.
    pub(crate) fn remove_timer(
        &mut self,
        executor: &mut Executor,
        job: JobId,
    ) -> Option<TimerCallback> {
        if !self.remove(executor, job) {
            return None;
        }
        self.timers[job.index()].take()
    }

    /// Removes all timers and returns their callbacks; drop them while the state is not borrowed.
    pub(crate) fn remove_timers(&mut self, executor: &mut Executor) -> Vec<Option<TimerCallback>> {
        let jobs = executor.jobs().map(|(job, _)| job);
        let timers: Vec<JobId> = jobs
            .filter(|&job| self.task(executor, job) == Some(Task::Timer))
            .collect();
        let removed = timers.iter().map(|&job| self.remove_timer(executor, job));
        removed.collect()
    }
}

fn add(
    tasks: &mut [Option<Task>],
    executor: &mut Executor,
    config: JobConfig,
    task: Task,
) -> Result<JobId, BuildError> {
    let job = executor.add(config).map_err(|_| BuildError::TooManyJobs)?;
    tasks[job.index()] = Some(task);
    Ok(job)
}

impl Core {
    pub(crate) fn run_timer(&self, now: Instant, job: JobId) -> bool {
        let (callback, release) = {
            let mut state = self.state.borrow_mut();
            let release = state.executor.job(job).released_at().unwrap_or(now);
            (state.jobs.timers[job.index()].take(), release)
        };
        let Some(mut callback) = callback else {
            return false;
        };
        callback(release);

        let state = &mut *self.state.borrow_mut();
        if state.jobs.task(&state.executor, job).is_some() {
            state.jobs.timers[job.index()] = Some(callback);
        }
        false
    }
}
