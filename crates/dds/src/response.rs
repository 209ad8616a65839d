//! Response deadline: from a sample's arrival to the end of its callback.

use std::time::Duration;

use isolane_executor::Name;
use isolane_wire::cdr::TopicType;

use crate::reader::DataReader;

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

impl<T: TopicType> DataReader<T> {
    /// Returns the response deadline and its misses; `None` without a deadline.
    #[must_use]
    pub fn response_deadline(&self) -> Option<ResponseDeadline> {
        let state = self.core.state.borrow();
        state.reader_slots[self.id.index()].response.clone()
    }
}
