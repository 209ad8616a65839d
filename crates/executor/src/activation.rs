//! An activation's way: begun behind a look, told what it handles, finished and observed.

use isolane_wire::time::Instant;

use crate::executor::{Executor, after};
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
    /// The priority of the most urgent thing it has handled so far; `None`: the job's own.
    handled: Option<u8>,
    /// How many items it has handled.
    items: u16,
    /// It was chosen by a share, while a job of the priority right above it was ready.
    pub(crate) by_share: bool,
}

impl Executor {
    /// The loop has looked at its sources: `readable` has the bits of those that had something
    /// ([`source`](crate::JobConfig::source)), and `now` is the clock as it was read right behind.
    /// It belongs to the activation that begins next.
    pub fn looked(&mut self, now: Instant, readable: u32) {
        self.look = Some(Look { at: now, readable });
    }

    /// The job runs from `now` on, until [`finish`](Self::finish). A job that was not ready
    /// counts as released now. Returns what it waited for, unless that is told by
    /// [`arrived`](Self::arrived).
    ///
    /// # Panics
    /// If a job is running already, or the id names nobody: the loop is at fault.
    pub fn begin(&mut self, id: JobId, now: Instant) -> Waited {
        assert!(
            self.running.is_none(),
            "{id} begins while another job is running"
        );
        self.settle_deadlines(now);
        let index = id.index;
        if !self.job(id).is_ready() {
            self.release_by_hand(index, now);
        }
        let job = self.at_mut(index);
        let priority = job.config.priority;
        let release = job.release().unwrap_or(now.into());
        job.state = State::Running(release);
        job.observed.activations += 1;
        let has_source = job.config.source.is_some();
        self.ready.remove(index, priority);
        let by_share =
            self.shares.is_due_to(priority) && self.ready.is_occupied(usize::from(priority) + 1);
        self.running = Some(Running {
            id,
            begin: now,
            look: self.look.take(),
            // It stands in for one of the upper priority.
            handled: by_share.then_some(priority + 1),
            items: 1,
            by_share,
        });
        if has_source {
            return Waited::default();
        }
        self.observe_wait(
            index,
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
    pub fn arrived(&mut self, priority: u8, at: Instant) -> Waited {
        let Some(running) = &mut self.running else {
            return Waited::default();
        };
        running.handled = running.handled.max(Some(priority.min(MAX_PRIORITY)));
        let index = running.id.index;
        let job = self.at_mut(index);
        let source = job.config.source;
        if let State::Running(release) = &mut job.state
            && at < release.at
        {
            release.at = at;
            job.row_began = job.row_began.map(|began| began.min(at));
            if let Some(deadline_ns) = job.config.deadline_ns {
                self.deadlines.insert(index, after(at, deadline_ns));
            }
        }
        self.observe_wait(
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
    pub fn handled(&mut self, items: u16) {
        if let Some(running) = &mut self.running {
            running.items = items;
        }
    }

    /// A job that is begun without having been ready. One that was deferred no longer waits for its
    /// release.
    #[cold]
    fn release_by_hand(&mut self, index: u16, now: Instant) {
        if self.at_mut(index).state == State::Deferred {
            self.releases.remove(index);
        }
        self.make_ready(index, now.into());
    }

    /// What lower priorities did between an arrival and now.
    #[inline]
    fn observe_wait(&mut self, index: u16, arrival: &Arrival) -> Waited {
        match self.history.is_known_not_to_have_waited(arrival) {
            true => Waited::default(),
            false => self.search_wait(index, arrival),
        }
    }

    #[cold]
    fn search_wait(&mut self, index: u16, arrival: &Arrival) -> Waited {
        let wait = self.history.wait_of(arrival);
        let observed = &mut self.at_mut(index).observed;
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
    pub fn finish(&mut self, id: JobId, now: Instant, again: bool) {
        let running = self.running.filter(|running| running.id == id);
        let Some(Running {
            begin,
            look,
            handled,
            items,
            ..
        }) = running
        else {
            panic!("{id} finishes, but is not the job that is running");
        };
        self.settle_deadlines(now);
        self.running = None;
        self.deadlines.remove(id.index);

        let job = self.at_mut(id.index);
        let released = job.released_at().unwrap_or(begin);
        observe_activation(job, released, begin, now);
        job.state = State::Idle;
        let priority = job.config.priority;
        let activation = Activation {
            job: id,
            priority: handled.unwrap_or(priority),
            begin,
            finish: now,
            look,
        };
        let row_began = job.row_began.unwrap_or(released);
        let pending = job.pending.take();
        if again {
            job.observed.continued += 1;
        } else {
            let drain_ns = nanos_between(row_began, now);
            job.observed.drain_max_ns = job.observed.drain_max_ns.max(drain_ns);
            job.row_began = None;
        }
        let condemned = job.condemned;
        self.history.push(activation);
        let lower_waits = priority > 0 && self.ready.is_occupied(usize::from(priority) - 1);
        self.shares.note(priority, items, lower_waits);

        if condemned {
            self.vacate(id.index);
        } else if let Some(release) = pending {
            self.arrive(id.index, release);
        } else if again {
            self.arrive(id.index, now.into());
        }
    }

    /// Counts the deadlines that fell before `now`, while it is known who was running.
    #[inline]
    fn settle_deadlines(&mut self, now: Instant) {
        if self.deadlines.first().is_some_and(|(first, _)| first < now) {
            self.settle_missed(now);
        }
    }

    #[cold]
    fn settle_missed(&mut self, now: Instant) {
        while let Some((deadline, index)) = self.deadlines.pop_if(|deadline| deadline < now) {
            let running = match self.running {
                Some(running) if running.begin <= deadline => Some(running.id),
                _ => self.history.running_at(deadline).map(|past| past.job),
            };
            let observed = &mut self.at_mut(index).observed;
            observed.deadline_misses += 1;
            observed.running_at_miss = running;
        }
    }
}

fn observe_activation(job: &mut Job, released: Instant, begin: Instant, finish: Instant) {
    let execution_ns = nanos_between(begin, finish);
    let response_ns = nanos_between(released, finish);
    let Job {
        config, observed, ..
    } = job;
    observed.execution_max_ns = observed.execution_max_ns.max(execution_ns);
    observed.execution_total_ns = observed.execution_total_ns.saturating_add(execution_ns);
    observed.response_max_ns = observed.response_max_ns.max(response_ns);
    if config.wcet_ns.is_some_and(|wcet_ns| execution_ns > wcet_ns) {
        observed.wcet_violations += 1;
    }
    if config
        .bound_ns
        .is_some_and(|bound_ns| response_ns > bound_ns)
    {
        observed.bound_violations += 1;
    }
    if let Some(deadline_ns) = config.deadline_ns {
        let lateness_ns = signed(response_ns).saturating_sub(signed(deadline_ns));
        let worst_ns = observed.lateness_max_ns.unwrap_or(i64::MIN);
        observed.lateness_max_ns = Some(worst_ns.max(lateness_ns));
    }
}

fn signed(nanos: u64) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

/// 0 if `end` is before `start`: stamps of different clocks may disagree by a little.
fn nanos_between(start: Instant, end: Instant) -> u64 {
    end.as_nanos().saturating_sub(start.as_nanos())
}
