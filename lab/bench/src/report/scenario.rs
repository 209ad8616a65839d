//! What is chosen for a run. Each choice has a word, the same in results and for people.

use serde::{Deserialize, Serialize};

use crate::clock::NANOS_PER_SECOND;

/// A mechanism of isolation; those of a run are cumulative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Jobs by priority.
    Executor,
    /// AF_XDP instead of sockets.
    Xdp,
    /// A lane a level.
    Lanes,
    /// Budgets a flow.
    Budgets,
    /// The machine set up.
    Tune,
}

/// Who calls `write` for pings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Publisher {
    /// A thread of its own (`RemoteWriter`).
    Thread,
    /// A time-triggered job on the executor.
    Job,
}

/// In which order the executor takes ready jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The most critical first.
    Priority,
    /// As they became ready: the baseline.
    Fifo,
}

/// How frames come from a host's device to what receives them. Each has what those before it have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReceiveWork {
    /// All through one queue, in the softirq of the core that the hosts have.
    #[default]
    Softirq,
    /// The link puts critical frames into a queue of their own.
    Steered,
    /// A thread a queue, the critical queue's above the applications, the other one's below them
    /// (NAPI threads).
    Threads,
}

/// What went on beside the round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Disturbance {
    /// Bulk through the cable.
    Flood,
    /// Heavy receive work on the hosts.
    Storm,
    /// Endpoints appear and leave inside the participant.
    Joining,
    /// A reliable bulk topic inside the participant.
    Bulk,
    /// The same with losses to repair.
    Repair,
    /// A reliable topic inside the participant whose samples have a mebibyte: they leave in fragments.
    Large,
}

impl Stage {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Stage::Executor => "executor",
            Stage::Xdp => "xdp",
            Stage::Lanes => "lanes",
            Stage::Budgets => "budgets",
            Stage::Tune => "tune",
        }
    }
}

impl Publisher {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Publisher::Thread => "thread",
            Publisher::Job => "job",
        }
    }
}

/// What joins the two hosts of a run. An undisturbed run is made in the place of what is read against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The cable, slow enough that a flood fills it: what waits for it is part of what is measured.
    Link,
    /// A cable that nothing waits for, and a core for each end, since the participants themselves disturb.
    FastLink,
    /// One veth pair: no process relays frames, which for a mebibyte would take the core of an end from it
    /// for longer than anything in that end takes.
    Pair,
    /// Whatever joins two devices of the machine that the hosts have ([`Testbed::of_devices`]).
    ///
    /// [`Testbed::of_devices`]: crate::namespace::Testbed::of_devices
    Devices,
}

impl Order {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Order::Priority => "priority",
            Order::Fifo => "fifo",
        }
    }
}

impl ReceiveWork {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            ReceiveWork::Softirq => "softirq",
            ReceiveWork::Steered => "steered",
            ReceiveWork::Threads => "threads",
        }
    }
}

impl Disturbance {
    /// What joins the hosts of runs that it disturbs.
    pub fn place(self) -> Place {
        match self {
            Disturbance::Flood | Disturbance::Storm => Place::Link,
            Disturbance::Joining | Disturbance::Bulk | Disturbance::Repair => Place::FastLink,
            Disturbance::Large => Place::Pair,
        }
    }

    /// Whether it is work of the participants themselves.
    pub fn is_inside(self) -> bool {
        self.place() != Place::Link
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Disturbance::Flood => "flood",
            Disturbance::Storm => "storm",
            Disturbance::Joining => "joining",
            Disturbance::Bulk => "bulk",
            Disturbance::Repair => "repair",
            Disturbance::Large => "large",
        }
    }
}

/// What is chosen for a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// By name.
    pub datapath: String,
    /// Mechanisms in use.
    pub stages: Vec<Stage>,
    /// How frames are received on the hosts.
    pub receive_work: ReceiveWork,
    /// Who publishes.
    pub publisher: Publisher,
    /// The executor's order.
    pub order: Order,
    /// What goes on beside.
    pub disturbance: Option<Disturbance>,
    /// The serialised size of the message, without encapsulation header.
    pub payload_bytes: u32,
    /// Pings a second.
    pub rate_hz: u32,
    /// The bound the analysis gives, if it gives one.
    pub bound_us: Option<f64>,
}

impl Scenario {
    /// What was chosen for a run.
    pub fn of_run(run: &super::Run) -> Scenario {
        Scenario {
            datapath: run.datapath.clone(),
            stages: run.stages.clone(),
            receive_work: run.receive_work,
            publisher: run.publisher,
            order: run.order,
            disturbance: run.disturbance,
            payload_bytes: run.payload_bytes,
            rate_hz: run.rate_hz,
            bound_us: run.bound_us,
        }
    }

    /// The same with that order of jobs: as they became ready means without any mechanism.
    #[must_use]
    pub fn in_order(mut self, order: Order) -> Scenario {
        self.order = order;
        match order {
            Order::Fifo => self.stages.clear(),
            Order::Priority if self.stages.is_empty() => self.stages.push(Stage::Executor),
            Order::Priority => {}
        }
        self
    }

    /// The time between two pings, in nanoseconds.
    pub fn period_ns(&self) -> u64 {
        NANOS_PER_SECOND / u64::from(self.rate_hz.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_schema() {
        fn in_schema(value: impl Serialize) -> String {
            serde_json::to_value(value)
                .unwrap()
                .as_str()
                .unwrap()
                .into()
        }
        use Disturbance::{Bulk, Flood, Joining, Large, Repair, Storm};
        use Stage::{Budgets, Executor, Lanes, Tune, Xdp};
        for stage in [Executor, Xdp, Lanes, Budgets, Tune] {
            assert_eq!(stage.word(), in_schema(stage));
        }
        for disturbance in [Flood, Storm, Joining, Bulk, Repair, Large] {
            assert_eq!(disturbance.word(), in_schema(disturbance));
        }
        for publisher in [Publisher::Thread, Publisher::Job] {
            assert_eq!(publisher.word(), in_schema(publisher));
        }
        for order in [Order::Priority, Order::Fifo] {
            assert_eq!(order.word(), in_schema(order));
        }
        use ReceiveWork::{Softirq, Steered, Threads};
        for receive_work in [Softirq, Steered, Threads] {
            assert_eq!(receive_work.word(), in_schema(receive_work));
        }
    }
}
