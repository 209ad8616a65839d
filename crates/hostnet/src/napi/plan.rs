//! What is wanted of a device's receive work.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::NapiError;
use crate::limits::{MAX_IDLE_POLLS, MAX_POLL_WAIT};

/// Polling instead of interrupts: after an interrupt, the queue is polled every `wait`, and
/// interrupts come again after `idle_polls` polls that found nothing. So a frame waits for at most
/// `wait`, or, on an idle queue, for an interrupt as ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Polling {
    /// Between two polls: the longest a frame waits because interrupts are put off.
    pub wait: Duration,
    /// Polls without a frame before interrupts come again; 0: interrupts only.
    pub idle_polls: u32,
}

impl Polling {
    /// As a driver begins: interrupts only.
    pub const OFF: Polling = Polling {
        wait: Duration::ZERO,
        idle_polls: 0,
    };
}

/// How one queue's receive work is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePlan {
    /// The device's receive queue.
    pub queue: u32,
    /// The thread's SCHED_FIFO priority, 1 to 98.
    pub priority: u8,
    /// The core it stays on; `None`: where it may run now.
    pub core: Option<usize>,
    /// Polling; `None`: as it is now.
    pub polling: Option<Polling>,
}

/// How the receive work of a device is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Queues with a thread; others stay as they are.
    pub queues: Vec<QueuePlan>,
}

impl Plan {
    /// The critical queue's thread goes as far above the applications.
    pub const ABOVE: u8 = 5;
    /// The bulk queues' threads go as far below them.
    pub const BELOW: u8 = 10;

    /// Threads around applications of this SCHED_FIFO priority: those of critical queues above, of
    /// bulk queues below them.
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

    /// Whether it can do no harm.
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
