//! Activations: begin, handled items, finish and observation.

use isolane_wire::time::Instant;

use crate::executor::Executor;
use crate::history::{Activation, Arrival, Look};
use crate::job::{Job, JobId, State};
use crate::limits::MAX_PRIORITY;
use crate::waited::Waited;

#[derive(Clone, Copy)]
pub(crate) struct Running {
    pub(crate) id: JobId,
    begin: Instant,
    look: Option<Look>,
    /// Highest priority of the items handled so far, plus one; 0 if none was reported, and the job's priority
    /// applies.
    handled: u8,
    items: u16,
    /// True if chosen by a share, while a job of the next higher priority was ready.
    pub(crate) by_share: bool,
}

impl Executor {
    /// Records that the loop has polled its sources. `readable` has the bits of the readable ones
    /// ([`source`](crate::JobConfig::source)); `now` was read directly after the poll. The poll belongs to the next
    /// activation.
    #[inline]
    pub fn looked(&mut self, now: Instant, readable: u32) {
        self.look = Some(Look::new(now, readable));
    }

    /// Begins an activation of the job at `now`; [`finish`](Self::finish) ends it. A job that was not ready counts
    /// as released now. Returns what the job waited for, unless [`arrived`](Self::arrived) reports its arrivals.
    ///
    /// # Panics
    /// If a job is already running, or the id is stale: an error in the loop.
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
            // It runs in place of a job of the higher priority.
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

    /// Records the arrival of an item that the running job handles: its stamp `at` and its priority. The priority
    /// is the job's, or the item's if one source serves several. The release is moved back to `at` if that is
    /// earlier. Returns what the item waited for.
    ///
    /// The history records the activation with the highest priority of its items.
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

    /// Sets the number of items that the running job has handled; the default is one.
    #[inline]
    pub fn handled(&mut self, items: u16) {
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
            self.queues.releases.remove(id.line());
        }
        self.queues.make_ready(id.line(), job, now.into());
        job
    }

    /// Accounts for lower-priority activations between an arrival and now.
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

    /// Ends the running activation at `now`. With `again`, the job stopped at its item limit or its source is not
    /// empty: it becomes ready after the others of its priority, released now (or at the stamp of an event that
    /// arrived meanwhile).
    ///
    /// # Panics
    /// If that job is not the running one: an error in the loop.
    // Inlined because the call costs a tenth of the work here, after every activation.
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

#[inline]
fn observe_activation(job: &mut Job, released: Instant, begin: Instant, finish: Instant) {
    let execution_ns = nanos_between(begin, finish);
    let response_ns = nanos_between(released, finish);
    let observed = &mut job.observed;
    raise(&mut observed.execution_max_ns, execution_ns);
    observed.execution_total_ns += execution_ns;
    raise(&mut observed.response_max_ns, response_ns);
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
