//! The rows of an ablation, and what tells them from each other.

use serde::{Deserialize, Serialize};

use crate::report::{Order, ReceiveWork, Run, Scenario, Stage};

/// A row of an ablation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// One socket for all levels, jobs as they became ready: the baseline.
    OneSocket,
    /// One AF_XDP lane for all levels, jobs as they became ready: the baseline past the shared stack.
    OneLane,
    /// A socket a level, jobs by priority.
    SocketALevel,
    /// The link puts critical frames into a receive queue of their own.
    Steering,
    /// A kernel thread for each queue, at priorities around the applications'.
    NapiPriorities,
    /// AF_XDP instead of sockets, a lane a level.
    Lane,
    /// Budgets, and bulk policed by the classifier before it becomes receive work.
    Budgets,
}

impl Step {
    /// All. Each has what those before it have, but for the one lane, which stands beside the one socket.
    pub const ALL: [Step; 7] = [
        Step::OneSocket,
        Step::OneLane,
        Step::SocketALevel,
        Step::Steering,
        Step::NapiPriorities,
        Step::Lane,
        Step::Budgets,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Step::OneSocket => "one socket for all levels",
            Step::OneLane => "one AF_XDP lane for all",
            Step::SocketALevel => "a socket a level",
            Step::Steering => "+ steering",
            Step::NapiPriorities => "+ NAPI priorities",
            Step::Lane => "+ lane",
            Step::Budgets => "+ budgets",
        }
    }

    /// A scenario with this step and those before it, and no other mechanism.
    #[must_use]
    pub fn of(self, scenario: Scenario) -> Scenario {
        let receive_work = match self {
            Step::OneSocket | Step::SocketALevel => ReceiveWork::Softirq,
            // A lane is on one queue, and only a link that steers uses one queue for all frames of a class.
            Step::OneLane | Step::Steering => ReceiveWork::Steered,
            Step::NapiPriorities | Step::Lane | Step::Budgets => ReceiveWork::Threads,
        };
        let (order, stages): (Order, &[Stage]) = match self {
            Step::OneSocket => (Order::Fifo, &[]),
            Step::OneLane => (Order::Fifo, &[Stage::Xdp]),
            Step::SocketALevel | Step::Steering | Step::NapiPriorities => {
                (Order::Priority, &[Stage::Executor])
            }
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

    /// Which step a run is, if it is any: both ends receive on one core.
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

    /// What it is read against, of the rows there are: the nearest one whose mechanisms it has all, and
    /// for what is about lanes also what they are an alternative to.
    pub fn against(self, present: &[Step]) -> Vec<Step> {
        const LADDER: [Step; 6] = [
            Step::OneSocket,
            Step::SocketALevel,
            Step::Steering,
            Step::NapiPriorities,
            Step::Lane,
            Step::Budgets,
        ];
        let is_present = |step: &Step| present.contains(step);
        let below = LADDER.into_iter().take_while(|&step| step != self);
        let nearest = match self {
            Step::OneLane => Some(Step::OneSocket).filter(is_present),
            _ => below.filter(is_present).last(),
        };
        let alternatives: &[Step] = match self {
            Step::Lane => &[Step::OneLane, Step::SocketALevel],
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

    #[test]
    fn a_step_is_read_against_the_nearest_one_it_builds_on() {
        use Step::{Budgets, Lane, NapiPriorities, OneLane, OneSocket, SocketALevel, Steering};
        assert_eq!(OneSocket.against(&Step::ALL), []);
        assert_eq!(OneLane.against(&Step::ALL), [OneSocket]);
        assert_eq!(SocketALevel.against(&Step::ALL), [OneSocket]);
        assert_eq!(NapiPriorities.against(&Step::ALL), [Steering]);
        let of_demo = [OneSocket, SocketALevel, NapiPriorities, Lane, Budgets];
        assert_eq!(NapiPriorities.against(&of_demo), [SocketALevel]);
        assert_eq!(Lane.against(&of_demo), [NapiPriorities, SocketALevel]);
        assert_eq!(Lane.against(&[SocketALevel, Lane]), [SocketALevel]);
        assert_eq!(Budgets.against(&Step::ALL), [Lane, SocketALevel]);
    }
}
