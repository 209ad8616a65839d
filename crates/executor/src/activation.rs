//! An activation's way: begun behind a look, told what it handles, finished and observed.

use isolane_wire::time::Instant;

use crate::executor::Executor;
use crate::history::{Activation, Arrival, Look};
use crate::job::{Job, JobId, State};
use crate::limits::MAX_PRIORITY;
use crate::waited::Waited;

/// The activation that runs.
#[derive(Clone, Copy)]
pub(crate) struct Running {
    pub(crate) id: JobId,
    begin: Instant,
    look: Option<Look>,
    /// One more than the priority of the most urgent thing it has handled so far; 0: it was told of
    /// none, and the job's own counts.
    handled: u8,
    /// How many items it has handled.
    items: u16,
    /// It was chosen by a share, while a job of the priority right above it was ready.
    pub(crate) by_share: bool,
}

impl Executor {
    /// The loop has looked at its sources: `readable` has the bits of those that had something
    /// ([`source`](crate::JobConfig::source)), and `now` is the clock as it was read right behind.
    /// It belongs to the activation that begins next.
    #[inline]
    pub fn looked(&mut self, now: Instant, readable: u32) {
        self.look = Some(Look::new(now, readable));
    }

    /// The job runs from `now` on, until [`finish`](Self::finish). A job that was not ready
    /// counts as released now. Returns what it waited for, unless that is told by
    /// [`arrived`](Self::arrived).
    ///
    /// # Panics
    /// If a job is running already, or the id names nobody: the loop is at fault.
    #[inline]
    pub fn begin(&mut self, id: JobId, now: Instant) -> Waited {
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
        job.observed.activations += 1;
        let priority = job.config.priority;
        let has_source = job.config.source.is_some();
        let ready = &mut self.queues.ready;
        ready.remove(id.line(), priority);
        let by_share =
            self.shares.is_due_to(priority) && ready.is_occupied(usize::from(priority) + 1);
        self.running = Some(Running {
            id,
            begin: now,
            look: self.look.take(),
            // It stands in for one of the upper priority.
            handled: if by_share { priority + 2 } else { 0 },
            items: 1,
            by_share,
        });
        if has_source {
            return Waited::default();
        }
        if (self.history).is_known_not_to_have_waited(priority, release.at) {
            return Waited::default();
        }
        self.search_wait(
            id.line(),
            &Arrival {
                priority,
                at: release.at,
                counted_from: release.ready,
                source: None,
            },
        )
    }

    /// Something that the running job handles arrived at `at`, as its stamp says, and is of this
    /// priority: the job's own, or, where one source serves several, that of the item. The job
    /// counts as released then, if that is earlier. Returns what it waited for.
    ///
    /// An activation that was told of items is remembered with the priority of the most urgent.
    #[inline]
    pub fn arrived(&mut self, priority: u8, at: Instant) -> Waited {
        let Some(running) = &mut self.running else {
            return Waited::default();
        };
        running.handled = running.handled.max(priority.min(MAX_PRIORITY) + 1);
        let index = running.id.line();
        let job = self.table.at_mut(index);
        if let State::Running(release) = &mut job.state
            && at < release.at
        {
            release.at = at;
            if let Some(began) = &mut job.row_began {
                *began = at.min(*began);
            }
        }
        if self.history.is_known_not_to_have_waited(priority, at) {
            return Waited::default();
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

    /// The running job has handled so many items; one, if it is not told.
    #[inline]
    pub fn handled(&mut self, items: u16) {
        if let Some(running) = &mut self.running {
            running.items = items;
        }
    }

    /// A job that is begun without having been ready. One that was deferred no longer waits for its
    /// release.
    #[cold]
    fn release_by_hand(&mut self, id: JobId, now: Instant) -> &mut Job {
        let Some(job) = self.table.get_mut(id) else {
            panic!("{id} was removed");
        };
        if job.state == State::Deferred {
            self.queues.releases.remove(id.line());
        }
        self.queues.make_ready(id.line(), job, now.into());
        job
    }

    /// What lower priorities did between an arrival and now.
    #[cold]
    fn search_wait(&mut self, index: u16, arrival: &Arrival) -> Waited {
        let wait = self.history.wait_of(arrival);
        let observed = &mut self.table.at_mut(index).observed;
        observed.inversions += wait.waited.inversions;
        observed.kernel_late += wait.waited.kernel_late;
        let late_ns = &mut observed.kernel_late_max_ns;
        *late_ns = (*late_ns).max(wait.waited.kernel_late_max_ns);
        if let Some((blocking_ns, by)) = wait.blocking
            && blocking_ns > observed.blocking_max_ns
        {
            observed.blocking_max_ns = blocking_ns;
            observed.blocked_by = Some(by);
        }
        wait.waited
    }

    /// The job that runs has ended at `now`. With `again` it stopped at its item limit, or its
    /// source was not empty: it is ready once more, behind its equals, released now (or when
    /// an event arrived meanwhile).
    ///
    /// # Panics
    /// If that job is not the one that runs: the loop is at fault.
    // Always, since a call costs a tenth of what is done here, and this is done behind every activation.
    #[inline(always)]
    pub fn finish(&mut self, id: JobId, now: Instant, again: bool) {
        let running = match &self.running {
            Some(running) if running.id == id => running,
            _ => panic!("{id} finishes, but is not the job that is running"),
        };
        let job = self.table.at_mut(id.line());
        let released = job.released_at().unwrap_or(running.begin);
        observe_activation(job, released, running.begin, now);
        job.state = State::Idle;
        let row_began = job.row_began.take().unwrap_or(released);
        if again {
            job.observed.continued += 1;
            job.row_began = Some(row_began);
        } else {
            raise(
                &mut job.observed.drain_max_ns,
                nanos_between(row_began, now),
            );
        }
        let priority = job.config.priority;
        self.history.push(Activation {
            job: id,
            priority: running.handled.checked_sub(1).unwrap_or(priority),
            begin: running.begin,
            finish: now,
            look: running.look,
        });
        let lower_waits = self.queues.ready.is_occupied_below(priority);
        self.shares.note(priority, running.items, lower_waits);
        self.running = None;

        if job.condemned {
            self.table.vacate(id.line());
        } else if again || job.pending.is_some() {
            let release = job.pending.take().unwrap_or(now.into());
            self.queues.arrive(id.line(), job, release);
        }
    }

    /// The job that ran at an instant, of now or of the past. `None`: no job ran (the loop slept, or looked at
    /// its sources), or it is more than [`REMEMBERED_ACTIVATIONS`](crate::limits::REMEMBERED_ACTIVATIONS) ago.
    #[must_use]
    pub fn running_at(&self, instant: Instant) -> Option<JobId> {
        match &self.running {
            Some(running) if running.begin <= instant => Some(running.id),
            _ => self.history.running_at(instant).map(|past| past.job),
        }
    }
}

#[inline]
fn observe_activation(job: &mut Job, released: Instant, begin: Instant, finish: Instant) {
    let execution_ns = nanos_between(begin, finish);
    let response_ns = nanos_between(released, finish);
    let observed = &mut job.observed;
    raise(&mut observed.execution_max_ns, execution_ns);
    observed.execution_total_ns += execution_ns;
    raise(&mut observed.response_max_ns, response_ns);
}

/// A maximum is kept. Mostly it stands.
#[inline]
fn raise(maximum: &mut u64, value: u64) {
    if value > *maximum {
        *maximum = value;
    }
}

/// 0 if `end` is before `start`: stamps of different clocks may disagree by a little.
fn nanos_between(start: Instant, end: Instant) -> u64 {
    end.as_nanos().saturating_sub(start.as_nanos())
}
