//! Queues of jobs: ready jobs, and jobs that wait for a release time.

use isolane_wire::time::Instant;

use crate::job::{Job, Release, State, Trigger};
use crate::ready::ReadyQueue;
use crate::time_queue::TimeQueue;

pub(crate) struct Queues {
    pub(crate) ready: ReadyQueue,
    /// Periodic jobs by next release, and deferred sporadic ones.
    pub(crate) releases: TimeQueue,
}

impl Queues {
    pub(crate) fn new(priority_mapping: fn(u8) -> u8, max_jobs: usize) -> Queues {
        Queues {
            ready: ReadyQueue::new(priority_mapping, max_jobs),
            releases: TimeQueue::new(max_jobs),
        }
    }

    /// Handles an event of an idle job: ready at once, or deferred if it is sporadic and too early.
    #[inline]
    pub(crate) fn arrive(&mut self, index: u16, job: &mut Job, release: Release) {
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
        self.make_ready(index, job, release);
    }

    #[inline]
    pub(crate) fn make_ready(&mut self, index: u16, job: &mut Job, release: Release) {
        job.state = State::Ready(release);
        job.last_release = Some(release.at);
        self.ready.push(index, job.config.priority);
    }
}

/// Saturating addition.
pub(crate) fn after(instant: Instant, nanos: u64) -> Instant {
    Instant::new(instant.as_nanos().saturating_add(nanos))
}
