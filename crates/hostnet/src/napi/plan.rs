//! Plan for a device's receive processing, and the errors of carrying it out.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::{MAX_IDLE_POLLS, MAX_POLL_WAIT};

/// Polling instead of interrupts. After an interrupt the queue is polled every `wait`; interrupts are enabled again
/// after `idle_polls` polls without a frame. A frame waits for at most `wait`, or, on an idle queue, for an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Polling {
    /// Time between two polls: the longest wait of a frame while interrupts are deferred.
    pub wait: Duration,
    /// Polls without a frame before interrupts are enabled again; 0 for interrupts only.
    pub idle_polls: u32,
}

impl Polling {
    /// Interrupts only, as a driver starts.
    pub const OFF: Polling = Polling {
        wait: Duration::ZERO,
        idle_polls: 0,
    };
}

/// Plan for one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePlan {
    /// Number of the receive queue.
    pub queue: u32,
    /// SCHED_FIFO priority of the thread, 1 to 98.
    pub priority: u8,
    /// Core of the thread; `None` for unchanged.
    pub core: Option<usize>,
    /// Polling; `None` for unchanged.
    pub polling: Option<Polling>,
}

/// Plan for the receive processing of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Queues with a thread; others are unchanged.
    pub queues: Vec<QueuePlan>,
}

impl Plan {
    /// Distance of a critical queue's priority above the applications.
    pub const ABOVE: u8 = 5;
    /// Distance of a bulk queue's priority below the applications.
    pub const BELOW: u8 = 10;

    /// Plan around applications of this SCHED_FIFO priority: threads of critical queues above, of bulk queues below
    /// them.
    #[must_use]
    pub fn around(applications: u8, critical: &[u32], bulk: &[u32]) -> Plan {
        let plan = |queue: &u32, priority| QueuePlan {
            queue: *queue,
            priority,
            core: None,
            polling: None,
        };
        let above = applications.saturating_add(Plan::ABOVE);
        let below = applications.saturating_sub(Plan::BELOW);
        let critical = critical.iter().map(|queue| plan(queue, above));
        let bulk = bulk.iter().map(|queue| plan(queue, below));
        Plan {
            queues: critical.chain(bulk).collect(),
        }
    }

    /// Refuses a plan that could starve other work.
    pub(super) fn check(&self) -> Result<(), NapiError> {
        for plan in &self.queues {
            if !(1..=98).contains(&plan.priority) {
                let priority = plan.priority;
                return Err(NapiError::Priority { priority });
            }
            if let Some(Polling { wait, idle_polls }) = plan.polling
                && (wait > MAX_POLL_WAIT || idle_polls > MAX_IDLE_POLLS)
            {
                return Err(NapiError::Polling { wait, idle_polls });
            }
        }
        Ok(())
    }
}

/// Error of setting NAPI threads or polling.
#[derive(Debug, thiserror::Error)]
pub enum NapiError {
    /// No such interface.
    #[error(
        "there is no interface with the index {index} in this network namespace: it was deleted, or \
         moved to another one (ip link shows those that are here)"
    )]
    NoInterface {
        /// Index of the interface.
        index: u32,
    },
    /// The driver has no NAPI instance for the queue, in general or at present.
    #[error(
        "{interface} has no NAPI instance for queue {queue}: a veth pair has them only while an XDP \
         program is attached or GRO is on (attach first), and queues are numbered from 0 (ethtool -l \
         {interface})"
    )]
    NoInstance {
        /// Name of the interface.
        interface: String,
        /// Number of the queue.
        queue: u32,
    },
    /// The kernel cannot run NAPI in threads, or has not started one.
    #[error(
        "the kernel started no thread for queue {queue} of {interface}: threads take Linux 5.12 or \
         newer, and an interface that is up. Without them everything works, and the queues' receive \
         work has no priorities"
    )]
    NoThread {
        /// Name of the interface.
        interface: String,
        /// Number of the queue.
        queue: u32,
    },
    /// Priority outside the real-time range, or too close to its ends.
    #[error(
        "priority {priority} is no real-time priority from 1 to 98: receive work of the ordinary \
         class blocks its core for milliseconds once it was starved. Choose the applications' \
         priority from 11 to 93"
    )]
    Priority {
        /// The priority.
        priority: u8,
    },
    /// Polling beyond [`MAX_POLL_WAIT`] or [`MAX_IDLE_POLLS`].
    #[error(
        "polling every {wait:?}, {idle_polls} times without a frame, is out of bounds: wait at most \
         {MAX_POLL_WAIT:?} and poll at most {MAX_IDLE_POLLS} times"
    )]
    Polling {
        /// Time between two polls.
        wait: Duration,
        /// Polls without a frame.
        idle_polls: u32,
    },
    /// A capability is missing.
    #[error(
        "not permitted to {action}: this takes {capability}. Run the program as root, or give it the \
         capability: setcap {capability}+ep PROGRAM"
    )]
    Denied {
        /// The step that failed.
        action: &'static str,
        /// The capability.
        capability: &'static str,
    },
    /// Any other system error.
    #[error("could not {action}: {source}")]
    System {
        /// The step that failed.
        action: &'static str,
        /// System error.
        source: io::Error,
    },
}

impl NapiError {
    /// Classifies the error of a step by what the user can do about it.
    pub(super) fn of<E: Into<io::Error>>(
        action: &'static str,
        capability: &'static str,
    ) -> impl FnOnce(E) -> NapiError {
        move |source| match source.into() {
            source if source.kind() == io::ErrorKind::PermissionDenied => {
                NapiError::Denied { action, capability }
            }
            source => NapiError::System { action, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_applications_stand_between_critical_and_bulk_receive_work() {
        let plan = Plan::around(70, &[0], &[1, 2]);
        let priorities: Vec<_> = plan
            .queues
            .iter()
            .map(|plan| (plan.queue, plan.priority))
            .collect();
        assert_eq!(priorities, [(0, 75), (1, 60), (2, 60)]);
        assert!(plan.check().is_ok());
    }

    #[test]
    fn nothing_is_ever_put_into_the_ordinary_class() {
        for applications in [0, 5, 10, 94, 99, 255] {
            let plan = Plan::around(applications, &[0], &[1]);
            let error = plan.check().expect_err("no such priority");
            assert!(error.to_string().contains("from 11 to 93"), "{error}");
        }
        for applications in [11, 93] {
            assert!(Plan::around(applications, &[0], &[1]).check().is_ok());
        }
    }

    #[test]
    fn polling_has_bounds() {
        let mut plan = Plan::around(70, &[0], &[]);
        let polling = Polling {
            wait: MAX_POLL_WAIT,
            idle_polls: MAX_IDLE_POLLS,
        };
        plan.queues[0].polling = Some(polling);
        assert!(plan.check().is_ok());
        for beyond in [
            Polling {
                wait: MAX_POLL_WAIT + Duration::from_nanos(1),
                ..polling
            },
            Polling {
                idle_polls: MAX_IDLE_POLLS + 1,
                ..polling
            },
        ] {
            plan.queues[0].polling = Some(beyond);
            assert!(matches!(plan.check(), Err(NapiError::Polling { .. })));
        }
    }
}
