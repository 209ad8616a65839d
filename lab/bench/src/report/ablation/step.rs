//! Steps of an ablation.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::report::{Order, ReceiveWork, Run, Scenario, Stage};

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

    /// Step that a run belongs to, if any. A run with the ends on separate cores is not a step.
    pub fn of_run(run: &Run) -> Option<Step> {
        if run.cores.is_some_and(|cores| cores.ping != cores.pong) {
            return None;
        }
        Step::ALL.into_iter().find(|step| {
            let (order, receive_work) = (run.order, run.receive_work);
            let scenario = step.of(Scenario::of_run(run));
            (scenario.datapath == run.datapath && scenario.stages == run.stages)
                && (scenario.order, scenario.receive_work) == (order, receive_work)
        })
    }

    /// Baselines of this step among the present rows: the nearest previous step, and for lanes also the sockets they
    /// replace.
    pub fn against(self, present: &[Step]) -> Vec<Step> {
        let is_present = |step: &Step| present.contains(step);
        let below = Step::ALL.into_iter().take_while(|&step| step != self);
        let nearest = below.filter(is_present).last();
        let alternatives: &[Step] = match self {
            Step::Lane => &[Step::NapiPriorities, Step::SocketALevel],
            Step::Budgets => &[Step::SocketALevel],
            _ => &[],
        };
        let alternatives = alternatives.iter().copied().filter(is_present);
        let mut against: Vec<Step> = nearest.into_iter().collect();
        against.extend(alternatives.filter(|&step| Some(step) != nearest));
        against
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::scenario;

    #[test]
    fn a_step_is_read_against_the_nearest_one_it_builds_on() {
        use Step::{Budgets, Lane, NapiPriorities, OneSocket, SocketALevel, Steering, Xdp};
        assert_eq!(OneSocket.against(&Step::ALL), []);
        assert_eq!(SocketALevel.against(&Step::ALL), [OneSocket]);
        assert_eq!(NapiPriorities.against(&Step::ALL), [Steering]);
        assert_eq!(Xdp.against(&Step::ALL), [NapiPriorities]);
        let of_lane = [Xdp, NapiPriorities, SocketALevel];
        assert_eq!(Lane.against(&Step::ALL), of_lane);
        let of_demo = [OneSocket, SocketALevel, NapiPriorities, Xdp, Lane, Budgets];
        assert_eq!(NapiPriorities.against(&of_demo), [SocketALevel]);
        assert_eq!(Lane.against(&of_demo), of_lane);
        assert_eq!(Lane.against(&[SocketALevel, Lane]), [SocketALevel]);
        assert_eq!(Budgets.against(&Step::ALL), [Lane, SocketALevel]);
    }

    #[test]
    fn each_step_has_the_stages_of_those_before_it() {
        let stages = |step: Step| step.of(scenario(64, None)).stages;
        for pair in Step::ALL.windows(2) {
            let (before, after) = (stages(pair[0]), stages(pair[1]));
            assert!(after.starts_with(&before), "{}", pair[1].word());
        }
    }
}
