//! Scheduler: release of jobs, choice of the next one, and its activation.
//!
//! # Choice
//!
//! Each priority has a bit and a list of its ready jobs in the order of release. Inserting, choosing and removing a job
//! take constant time. Nothing allocates.
//!
//! # Shares
//!
//! Protocol work is less urgent than samples, and yet samples can depend on it. A writer with a full history waits for
//! its reader's acknowledgment, which the reader does not send while it has samples to deliver. A share of a priority
//! for the next lower one bounds that wait. While a job of the lower priority is ready, the items handled at the higher
//! one are counted. After a number of them, one activation of the lower priority runs. Higher priorities are
//! unaffected, because a share is used only when a job of the higher priority would be chosen.

use alloc::boxed::Box;
use alloc::vec;
use core::fmt;

use isolane_wire::time::Instant;

use crate::inversions::{Activation, Arrival, History, Poll, PriorityInversions};
use crate::job::{Job, JobConfig, JobId, JobStatistics, Release, State, Table, Trigger};
use crate::limits::{DEFAULT_JOBS, MAX_JOBS, MAX_PRIORITY, PRIORITIES};
use crate::time_queue::TimeQueue;

/// Configuration of an executor.
#[derive(Clone, Copy, Debug)]
pub struct ExecutorConfig {
    /// Function from a priority to its ready list, at most [`MAX_PRIORITY`]. Higher lists are served first; jobs of one
    /// list run in the order in which they became ready. [`Executor::new`] calls the function once for each priority.
    /// Default: the priority itself. A mapping other than the identity disables [shares](Executor::grant_share).
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

#[derive(Clone, Copy)]
struct Running {
    id: JobId,
    begin: Instant,
    poll: Option<Poll>,
    /// Highest priority of the items handled so far, plus one; 0 if none was reported: then the job's priority applies.
    handled: u8,
    items: u16,
    /// True if chosen by a share, while a job of the next higher priority was ready.
    by_share: bool,
}

/// Non-preemptive fixed-priority executor: a table of jobs, one of which runs at a time. See the crate
/// documentation.
pub struct Executor {
    table: Table,
    queues: Queues,
    running: Option<Running>,
    /// Last poll of the sources, until the next activation begins.
    poll: Option<Poll>,
    history: History,
    shares: Shares,
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
            poll: None,
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
            self.queues
                .releases
                .insert(id.table_index(), Instant::new(0));
        }
        Ok(id)
    }

    /// Removes a job, ready or not; a running one is removed when it finishes. Returns false if the id is stale.
    pub fn remove(&mut self, id: JobId) -> bool {
        let Some(job) = self.table.get_mut(id) else {
            return false;
        };
        job.removal_pending = true;
        self.queues.releases.remove(id.table_index());
        match job.state {
            State::Running(_) => return true,
            State::Ready(_) => self
                .queues
                .ready
                .remove(id.table_index(), job.config.priority),
            State::Idle | State::Deferred => {}
        }
        self.table.vacate(id.table_index());
        true
    }

    /// Sets the item limit of the job's activations.
    pub fn set_items(&mut self, id: JobId, items: u16) {
        if let Some(job) = self.table.get_mut(id) {
            job.config.items = items;
        }
    }

    /// Grants a priority a share of the next higher one. While a job of the lower priority is ready, one of its
    /// activations runs after every `items` items of the higher priority. Even higher priorities are unaffected. No
    /// effect unless each priority has its own ready list.
    pub fn grant_share(&mut self, lower: u8, items: u16) {
        // Shares compare neighbouring priorities, and therefore need a list for each.
        if self.queues.ready.has_list_per_priority() {
            self.shares.grant(lower, items);
        }
    }

    /// Activates a job for an event at `at`: the event's own stamp if known (such as a frame's), otherwise now. A ready
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
            State::Idle => self.queues.arrive(id.table_index(), job, release),
            State::Running(_) if !job.removal_pending => {
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
                    if job.has_phase {
                        self.release_periodic(index, at, now, period_ns);
                    } else {
                        job.has_phase = true;
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
        job.statistics.releases_missed += passed;
        match job.state {
            State::Idle => self.queues.make_ready(index, job, at.into()),
            State::Running(_) if job.pending.is_none() => job.pending = Some(at.into()),
            State::Ready(_) | State::Running(_) | State::Deferred => {
                job.statistics.releases_missed += 1;
            }
        }
    }

    /// Next instant at which [`release`](Self::release) has work: the limit of the loop's sleep. The instant is in the
    /// past if a periodic job was added after the last call of `release`.
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
    pub fn reset_statistics(&mut self) {
        for job in self.table.iter_mut() {
            job.statistics = JobStatistics::default();
        }
    }

    /// Records that the loop has polled its sources. `readable` has the bits of the readable sources
    /// ([`source`](crate::JobConfig::source)); `now` was read directly after the poll. The poll belongs to the next
    /// activation.
    #[inline]
    pub fn polled(&mut self, now: Instant, readable: u32) {
        self.poll = Some(Poll::new(now, readable));
    }

    /// Begins an activation of the job at `now`; [`finish`](Self::finish) ends it. A job that was not ready counts as
    /// released now. Returns the job's priority inversions, unless [`record_arrival`](Self::record_arrival) reports its
    /// arrivals.
    ///
    /// # Panics
    /// If a job is already running, or the id is stale: an error in the loop.
    #[inline]
    pub fn begin(&mut self, id: JobId, now: Instant) -> PriorityInversions {
        assert!(
            self.running.is_none(),
            "{id} begins while another job is running"
        );
        let job = match self.table.get_mut(id) {
            Some(job) if job.is_ready() => job,
            _ => self.release_by_hand(id, now),
        };
        let release = job.release().unwrap_or(now.into());
        job.state = State::Running(release);
        job.statistics.activations += 1;
        let priority = job.config.priority;
        let has_source = job.config.source.is_some();
        let ready = &mut self.queues.ready;
        ready.remove(id.table_index(), priority);
        let by_share =
            self.shares.is_due_to(priority) && ready.is_occupied(usize::from(priority) + 1);
        self.running = Some(Running {
            id,
            begin: now,
            poll: self.poll.take(),
            // A job that runs by its share takes the turn of a job of the next higher priority.
            handled: if by_share { priority + 2 } else { 0 },
            items: 1,
            by_share,
        });
        if has_source {
            return PriorityInversions::default();
        }
        if (self.history).is_known_not_to_have_waited(priority, release.at) {
            return PriorityInversions::default();
        }
        self.search_wait(
            id.table_index(),
            &Arrival {
                priority,
                at: release.at,
                counted_from: release.ready,
                source: None,
            },
        )
    }

    /// Records the arrival of an item that the running job handles: its stamp `at` and its priority. The priority is
    /// the job's, or the item's if one source serves several priorities. If `at` is earlier than the release, the
    /// release is moved back to `at`. Returns the item's priority inversions.
    ///
    /// The history records the activation with the highest priority of its items.
    #[inline]
    pub fn record_arrival(&mut self, priority: u8, at: Instant) -> PriorityInversions {
        let Some(running) = &mut self.running else {
            return PriorityInversions::default();
        };
        running.handled = running.handled.max(priority.min(MAX_PRIORITY) + 1);
        let index = running.id.table_index();
        let job = self.table.at_mut(index);
        if let State::Running(release) = &mut job.state
            && at < release.at
        {
            release.at = at;
            if let Some(began) = &mut job.series_release {
                *began = at.min(*began);
            }
        }
        if self.history.is_known_not_to_have_waited(priority, at) {
            return PriorityInversions::default();
        }
        let source = job.config.source;
        self.search_wait(
            index,
            &Arrival {
                priority,
                at,
                counted_from: at,
                source,
            },
        )
    }

    /// Sets the number of items that the running job has handled; the default is one.
    #[inline]
    pub fn set_items_handled(&mut self, items: u16) {
        if let Some(running) = &mut self.running {
            running.items = items;
        }
    }

    /// Releases a job that begins without being ready. A deferred release is cancelled.
    #[cold]
    fn release_by_hand(&mut self, id: JobId, now: Instant) -> &mut Job {
        let Some(job) = self.table.get_mut(id) else {
            panic!("{id} was removed");
        };
        if job.state == State::Deferred {
            self.queues.releases.remove(id.table_index());
        }
        self.queues.make_ready(id.table_index(), job, now.into());
        job
    }

    /// Accounts for lower-priority activations between an arrival and now.
    #[cold]
    fn search_wait(&mut self, index: u16, arrival: &Arrival) -> PriorityInversions {
        let wait = self.history.wait_of(arrival);
        let statistics = &mut self.table.at_mut(index).statistics;
        statistics.inversions += wait.waited.inversions;
        statistics.kernel_latency_events += wait.waited.kernel_latency_events;
        let late_ns = &mut statistics.kernel_latency_max_ns;
        *late_ns = (*late_ns).max(wait.waited.kernel_latency_max_ns);
        if let Some((blocking_ns, by)) = wait.blocking
            && blocking_ns > statistics.blocking_max_ns
        {
            statistics.blocking_max_ns = blocking_ns;
            statistics.blocked_by = Some(by);
        }
        wait.waited
    }

    /// Ends the running activation at `now`. With `has_more`, the job stopped at its item limit, or its source is not
    /// empty. It becomes ready after the others of its priority. Its release is now, or the stamp of an event that
    /// arrived meanwhile.
    ///
    /// # Panics
    /// If that job is not the running one: an error in the loop.
    // Inlined, because a call after every activation would cost a tenth of the work here.
    #[inline(always)]
    pub fn finish(&mut self, id: JobId, now: Instant, has_more: bool) {
        let running = match &self.running {
            Some(running) if running.id == id => running,
            _ => panic!("{id} finishes, but is not the job that is running"),
        };
        let job = self.table.at_mut(id.table_index());
        let released = job.released_at().unwrap_or(running.begin);
        observe_activation(job, released, running.begin, now);
        job.state = State::Idle;
        let series_release = job.series_release.take().unwrap_or(released);
        if has_more {
            job.statistics.continued += 1;
            job.series_release = Some(series_release);
        } else {
            raise(
                &mut job.statistics.drain_max_ns,
                nanos_between(series_release, now),
            );
        }
        let priority = job.config.priority;
        self.history.push(Activation {
            job: id,
            priority: running.handled.checked_sub(1).unwrap_or(priority),
            begin: running.begin,
            finish: now,
            poll: running.poll,
        });
        let lower_waits = self.queues.ready.is_occupied_below(priority);
        self.shares.note(priority, running.items, lower_waits);
        self.running = None;

        if job.removal_pending {
            self.table.vacate(id.table_index());
        } else if has_more || job.pending.is_some() {
            let release = job.pending.take().unwrap_or(now.into());
            self.queues.arrive(id.table_index(), job, release);
        }
    }

    /// Returns the job that ran at an instant, current or past. `None` if no job ran (the loop slept or polled), or it
    /// was more than [`REMEMBERED_ACTIVATIONS`](crate::limits::REMEMBERED_ACTIVATIONS) activations ago.
    #[must_use]
    pub fn running_at(&self, instant: Instant) -> Option<JobId> {
        match &self.running {
            Some(running) if running.begin <= instant => Some(running.id),
            _ => self.history.running_at(instant).map(|past| past.job),
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

#[inline]
fn observe_activation(job: &mut Job, released: Instant, begin: Instant, finish: Instant) {
    let execution_ns = nanos_between(begin, finish);
    let response_ns = nanos_between(released, finish);
    let statistics = &mut job.statistics;
    raise(&mut statistics.execution_max_ns, execution_ns);
    statistics.execution_total_ns += execution_ns;
    raise(&mut statistics.response_max_ns, response_ns);
}

/// Raises a maximum; writes only if it changes, which is rare.
#[inline]
fn raise(maximum: &mut u64, value: u64) {
    if value > *maximum {
        *maximum = value;
    }
}

/// Nanoseconds from `start` to `end`; 0 if reversed, as stamps of different clocks can be by a little.
fn nanos_between(start: Instant, end: Instant) -> u64 {
    end.as_nanos().saturating_sub(start.as_nanos())
}

/// Saturating addition.
fn after(instant: Instant, nanos: u64) -> Instant {
    Instant::new(instant.as_nanos().saturating_add(nanos))
}

/// Jobs that are ready, and jobs that wait for a release time.
struct Queues {
    ready: ReadyQueue,
    /// Periodic jobs by next release, and deferred sporadic ones.
    releases: TimeQueue,
}

impl Queues {
    fn new(priority_mapping: fn(u8) -> u8, max_jobs: usize) -> Queues {
        Queues {
            ready: ReadyQueue::new(priority_mapping, max_jobs),
            releases: TimeQueue::new(max_jobs),
        }
    }

    /// Handles an event of an idle job: ready at once, or deferred if it is sporadic and too early.
    #[inline]
    fn arrive(&mut self, index: u16, job: &mut Job, release: Release) {
        if let Trigger::Sporadic {
            min_interarrival_ns,
        } = job.config.trigger
            && let Some(last) = job.last_release
            && release.at < after(last, min_interarrival_ns)
        {
            job.state = State::Deferred;
            job.statistics.releases_deferred += 1;
            self.releases
                .insert(index, after(last, min_interarrival_ns));
            return;
        }
        self.make_ready(index, job, release);
    }

    #[inline]
    fn make_ready(&mut self, index: u16, job: &mut Job, release: Release) {
        job.state = State::Ready(release);
        job.last_release = Some(release.at);
        self.ready.push(index, job.config.priority);
    }
}

/// End of a list.
const NONE: u16 = u16::MAX;

/// Head and tail of a non-empty list.
#[derive(Clone, Copy)]
struct List {
    head: u16,
    tail: u16,
}

#[derive(Clone, Copy)]
struct Link {
    before: u16,
    behind: u16,
}

/// Queue of ready jobs: an occupancy bit and an intrusive doubly linked list per priority, in the order of release.
struct ReadyQueue {
    /// List of each priority.
    list_of: [u8; PRIORITIES],
    /// Bit *l*: list *l* is not empty.
    occupied: u32,
    lists: [List; PRIORITIES],
    links: Box<[Link]>,
    count: usize,
}

impl ReadyQueue {
    fn new(priority_mapping: fn(u8) -> u8, max_jobs: usize) -> ReadyQueue {
        let link = Link {
            before: NONE,
            behind: NONE,
        };
        let list = List {
            head: NONE,
            tail: NONE,
        };
        ReadyQueue {
            list_of: core::array::from_fn(|priority| {
                priority_mapping(priority as u8).min(MAX_PRIORITY)
            }),
            occupied: 0,
            lists: [list; PRIORITIES],
            links: vec![link; max_jobs].into_boxed_slice(),
            count: 0,
        }
    }

    /// Returns whether the mapping of priorities to lists is the identity.
    fn has_list_per_priority(&self) -> bool {
        (0..)
            .zip(&self.list_of)
            .all(|(priority, list)| priority == *list)
    }

    #[inline]
    fn list_of(&self, priority: u8) -> usize {
        // Priorities are below PRIORITIES: the remainder only spares a bounds check.
        usize::from(self.list_of[usize::from(priority) % PRIORITIES])
    }

    fn len(&self) -> usize {
        self.count
    }

    /// Appends a job that is in no list.
    #[inline]
    fn push(&mut self, index: u16, priority: u8) {
        let list = self.list_of(priority);
        let before = match self.is_occupied(list) {
            true => self.lists[list].tail,
            false => NONE,
        };
        if before == NONE {
            self.lists[list].head = index;
            self.occupied |= 1 << list;
        } else {
            self.links[usize::from(before)].behind = index;
        }
        self.links[usize::from(index)] = Link {
            before,
            behind: NONE,
        };
        self.lists[list].tail = index;
        self.count += 1;
    }

    /// Highest non-empty list.
    #[inline]
    fn highest(&self) -> Option<usize> {
        Some(self.occupied.checked_ilog2()? as usize)
    }

    #[inline]
    fn is_occupied(&self, list: usize) -> bool {
        self.occupied >> list & 1 == 1
    }

    /// First job of a list; `None` if empty.
    #[inline]
    fn first_of(&self, list: usize) -> Option<u16> {
        self.is_occupied(list).then(|| self.lists[list].head)
    }

    /// Returns true if a job of the next lower priority is ready.
    #[inline]
    fn is_occupied_below(&self, priority: u8) -> bool {
        self.occupied & (1 << priority >> 1) != 0
    }

    #[inline]
    fn remove(&mut self, index: u16, priority: u8) {
        let list = self.list_of(priority);
        let Link { before, behind } = self.links[usize::from(index)];
        self.count -= 1;
        if before == NONE && behind == NONE {
            self.occupied &= !(1 << list);
            return;
        }
        if before == NONE {
            self.lists[list].head = behind;
        } else {
            self.links[usize::from(before)].behind = behind;
        }
        if behind == NONE {
            self.lists[list].tail = before;
        } else {
            self.links[usize::from(behind)].before = before;
        }
    }
}

/// Granted shares, indexed by the higher priority.
struct Shares {
    /// Bit *p*: the priority below *p* has a share of *p*.
    granted: u32,
    /// Bit *p*: enough items were handled; the lower priority is next.
    due: u32,
    /// Items after which a share becomes due.
    after: [u16; PRIORITIES],
    /// Items handled while the lower priority was ready.
    passed: [u16; PRIORITIES],
    /// Bit *p*: `passed` of *p* is not zero.
    counting: u32,
}

impl Shares {
    const fn new() -> Shares {
        Shares {
            granted: 0,
            due: 0,
            after: [1; PRIORITIES],
            passed: [0; PRIORITIES],
            counting: 0,
        }
    }

    fn grant(&mut self, lower: u8, after_items: u16) {
        let upper = usize::from(lower) + 1;
        if upper < PRIORITIES {
            self.granted |= 1 << upper;
            self.after[upper] = after_items.max(1);
        }
    }

    /// Returns true if the priority below `upper` is due.
    fn is_due(&self, upper: usize) -> bool {
        self.due >> upper & 1 == 1
    }

    /// Returns true if the next activation of priority `lower` may use a share.
    #[inline]
    fn is_due_to(&self, lower: u8) -> bool {
        self.due & 2 << lower != 0
    }

    /// Records an activation of `priority` with `items` items; `lower_waits` is true if a job of the next lower
    /// priority is ready.
    #[inline]
    fn note(&mut self, priority: u8, items: u16, lower_waits: bool) {
        // Fast path: no job waits and no count is pending.
        let (own, upper) = (1_u32 << priority, 2_u32 << priority);
        if lower_waits || (self.counting | self.due) & (own | upper) != 0 {
            self.count(usize::from(priority), items, lower_waits);
        }
    }

    fn count(&mut self, own: usize, items: u16, lower_waits: bool) {
        if own + 1 < PRIORITIES {
            // An activation of the lower priority settles the count, whether by share or not.
            self.forget(own + 1);
            self.due &= !(1 << (own + 1));
        }
        if self.granted >> own & 1 == 0 {
            return;
        }
        if !lower_waits {
            self.forget(own);
            return;
        }
        self.counting |= 1 << own;
        self.passed[own] = self.passed[own].saturating_add(items);
        if self.passed[own] >= self.after[own] {
            self.due |= 1 << own;
        }
    }

    fn forget(&mut self, upper: usize) {
        self.counting &= !(1 << upper);
        self.passed[upper] = 0;
    }
}
