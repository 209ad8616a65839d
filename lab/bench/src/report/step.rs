//! Steps of an ablation.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{ReceiveWork, Stage};

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

    /// Mechanisms of this step and the previous ones.
    pub fn stages(self) -> Vec<Stage> {
        let introduced = [
            (Step::SocketALevel, Stage::Executor),
            (Step::Xdp, Stage::Xdp),
            (Step::Lane, Stage::Lanes),
            (Step::Budgets, Stage::Budgets),
        ];
        let has = introduced.into_iter().filter(|(step, _)| *step <= self);
        has.map(|(_, stage)| stage).collect()
    }

    /// Receive path of this step.
    pub fn receive_work(self) -> ReceiveWork {
        match self {
            Step::OneSocket | Step::SocketALevel => ReceiveWork::Softirq,
            Step::Steering => ReceiveWork::Steered,
            Step::NapiPriorities | Step::Xdp | Step::Lane | Step::Budgets => ReceiveWork::Threads,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_the_stages_of_those_before_it() {
        for pair in Step::ALL.windows(2) {
            let (before, after) = (pair[0].stages(), pair[1].stages());
            assert!(after.starts_with(&before), "{}", pair[1].word());
        }
    }
}
