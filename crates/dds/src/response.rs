//! Response deadline: from a sample's arrival to the end of its callback.

use std::time::Duration;

use isolane_executor::Name;
use isolane_rtps::ReaderId;
use isolane_wire::{cdr::TopicType, time::Instant};

use crate::{reader::DataReader, state::State};

/// Response deadline of a reader, and its misses ([`Qos::response_deadline`](crate::Qos::response_deadline)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseDeadline {
    /// Maximum time from a sample's arrival to the end of its callback, or until it is taken.
    pub deadline: Duration,
    /// Number of samples that took longer.
    pub missed: u64,
    /// Longest excess over the deadline; zero if none was missed.
    pub lateness_max: Duration,
    /// Job that ran when the last missed deadline expired. `None` if none was missed, if the loop slept, polled or was
    /// not run then, or if too many jobs have run since.
    pub missed_during: Option<Name>,
}

impl ResponseDeadline {
    pub(crate) fn new(deadline: Duration) -> Self {
        Self {
            deadline,
            missed: 0,
            lateness_max: Duration::ZERO,
            missed_during: None,
        }
    }
}

impl State {
    /// Checks the deadline of a sample whose callback has ended, or that was taken. The sample arrived at `arrived`.
    #[inline]
    pub(crate) fn note_response(
        &mut self,
        reader: ReaderId,
        arrived: Instant,
        now: impl FnOnce() -> Instant,
    ) {
        let slot = &mut self.readers[reader.index()];
        let Some(response) = &mut slot.response else {
            return;
        };
        let due = arrived + response.deadline;
        let now = now();
        if now <= due {
            return;
        }
        response.missed += 1;
        let late_ns = now.as_nanos() - due.as_nanos();
        response.lateness_max = response.lateness_max.max(Duration::from_nanos(late_ns));
        let job = self
            .executor
            .running_at(due)
            .and_then(|job| self.executor.get(job));
        response.missed_during = job.map(|job| job.config.name.clone());
    }
}

impl<T: TopicType> DataReader<T> {
    /// Returns the response deadline and its misses; `None` without a deadline.
    #[must_use]
    pub fn response_deadline(&self) -> Option<ResponseDeadline> {
        let state = self.core.state.borrow();
        state.readers[self.id.index()].response.clone()
    }
}
