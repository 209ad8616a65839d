//! Steps of an ablation.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Order, ReceiveWork, Scenario, Stage};

/// Step of an ablation.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// One socket for all levels and FIFO jobs: the baseline.
    #[strum(serialize = "one socket for all levels")]
    OneSocket,
    /// A socket per level, and jobs by priority.
    #[strum(serialize = "a socket a level")]
    SocketALevel,
    /// The link steers critical frames into a separate receive queue.
    #[strum(serialize = "+ steering")]
    Steering,
    /// A kernel thread per queue, with priorities above and below the applications'.
    #[strum(serialize = "+ NAPI priorities")]
    NapiPriorities,
    /// AF_XDP instead of sockets: one lane for all levels, on the critical queue.
    #[strum(serialize = "+ AF_XDP")]
    Xdp,
    /// A lane per level: the participants' bulk has a separate ring, queue and class.
    #[strum(serialize = "+ lane")]
    Lane,
    /// Budgets: the classifier polices bulk before it becomes receive work.
    #[strum(serialize = "+ budgets")]
    Budgets,
}

impl Step {
    /// All steps. Each includes the previous ones, except for what it replaces: the single lane replaces the socket per
    /// level.
    pub const ALL: [Step; 7] = [
        Step::OneSocket,
        Step::SocketALevel,
        Step::Steering,
        Step::NapiPriorities,
        Step::Xdp,
        Step::Lane,
        Step::Budgets,
    ];

    /// Scenario with this step and the previous ones, and no other mechanism.
    #[must_use]
    pub fn of(self, scenario: Scenario) -> Scenario {
        let receive_work = match self {
            Step::OneSocket | Step::SocketALevel => ReceiveWork::Softirq,
            Step::Steering => ReceiveWork::Steered,
            Step::NapiPriorities | Step::Xdp | Step::Lane | Step::Budgets => ReceiveWork::Threads,
        };
        let (order, stages): (Order, &[Stage]) = match self {
            Step::OneSocket => (Order::Fifo, &[]),
            Step::SocketALevel | Step::Steering | Step::NapiPriorities => {
                (Order::Priority, &[Stage::Executor])
            }
            Step::Xdp => (Order::Priority, &[Stage::Executor, Stage::Xdp]),
            Step::Lane => (
                Order::Priority,
                &[Stage::Executor, Stage::Xdp, Stage::Lanes],
            ),
            Step::Budgets => (
                Order::Priority,
                &[Stage::Executor, Stage::Xdp, Stage::Lanes, Stage::Budgets],
            ),
        };
        let datapath = match stages.contains(&Stage::Xdp) {
            true => "xdp",
            false => "udp",
        };
        Scenario {
            datapath: datapath.to_owned(),
            stages: stages.to_vec(),
            receive_work,
            order,
            ..scenario
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::scenario;

    #[test]
    fn each_step_has_the_stages_of_those_before_it() {
        let stages = |step: Step| step.of(scenario(64, None)).stages;
        for pair in Step::ALL.windows(2) {
            let (before, after) = (stages(pair[0]), stages(pair[1]));
            assert!(after.starts_with(&before), "{}", pair[1].word());
        }
    }
}
