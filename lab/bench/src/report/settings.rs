//! Settings of a run. Each choice has one name, used in result files and printed text.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Measure, Of, Step};
use crate::cable::Arbiter;
use crate::clock::NANOS_PER_SECOND;
use crate::experiment::Datapath;

/// Isolation mechanism. A run may have several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Stage {
    /// Jobs by priority.
    Executor,
    /// AF_XDP instead of sockets.
    Xdp,
    /// A lane per level.
    Lanes,
    /// Budgets per flow.
    Budgets,
    /// Tuned machine.
    Tune,
}

/// Caller of `write` for pings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Publisher {
    /// A thread (`WriterHandle`).
    #[default]
    Thread,
    /// A time-triggered job of the executor.
    Job,
}

/// Order in which the executor runs ready jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Order {
    /// Most critical job first.
    #[default]
    Priority,
    /// Order of readiness: the baseline.
    Fifo,
}

/// Receive path from a host's device to its sockets or lanes. Each value includes the previous ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ReceiveWork {
    /// One queue, in the softirq of the hosts' core.
    #[default]
    Softirq,
    /// A separate queue for critical frames, chosen by the link.
    Steered,
    /// A NAPI thread per queue, with a priority above the applications for the critical queue, and below for the other
    /// one.
    Threads,
}

/// Disturbance of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Disturbance {
    /// Bulk traffic through the cable.
    Flood,
    /// Heavy receive work on the hosts.
    Storm,
    /// Endpoints created and deleted in a third participant.
    Joining,
    /// A reliable bulk topic of the measured participants.
    Bulk,
    /// The bulk topic with losses and retransmissions.
    Repair,
    /// A reliable topic of the measured participants with fragmented samples of 1 MiB.
    Large,
}

/// Gives each of these enums the method `word`.
macro_rules! words {
    ($($choice:ty),*) => {
        $(impl $choice {
            /// Name in results and in printed text.
            #[must_use]
            pub fn word(self) -> &'static str {
                self.into()
            }
        })*
    };
}

words!(
    Stage,
    Publisher,
    Order,
    ReceiveWork,
    Disturbance,
    Arbiter,
    Measure,
    Of,
    Step,
    Datapath
);

/// Connection of a run's two hosts. An undisturbed run uses the connection of the runs it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The cable, slow enough that a flood fills it. Waiting for the cable is part of the measurement.
    Link,
    /// A fast cable without queueing, and a core for each end, for disturbances inside the participants.
    FastLink,
    /// One veth pair without a relay. Relaying 1 MiB would take an end's core for longer than any work in that end.
    Pair,
    /// Two devices of the machine with their connection ([`TestHosts::of_devices`]).
    ///
    /// [`TestHosts::of_devices`]: crate::namespace::TestHosts::of_devices
    #[serde(skip)]
    Devices,
}

impl Disturbance {
    /// Connection of the hosts in runs with this disturbance.
    pub fn place(self) -> Place {
        match self {
            Disturbance::Flood | Disturbance::Storm => Place::Link,
            Disturbance::Joining | Disturbance::Bulk | Disturbance::Repair => Place::FastLink,
            Disturbance::Large => Place::Pair,
        }
    }

    /// Returns whether the disturbance is work inside the participants.
    pub fn is_in_process(self) -> bool {
        self.place() != Place::Link
    }
}

/// Pings per second, as in Meszlényi et al.
pub(crate) const RATE_HZ: u32 = 2_000;

/// Settings of a run, as its result states them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSettings {
    /// Name of the datapath.
    pub datapath: String,
    /// Mechanisms in use.
    pub stages: Vec<Stage>,
    /// Receive path on the hosts.
    pub receive_work: ReceiveWork,
    /// Publisher of pings.
    pub publisher: Publisher,
    /// Job order of the executor.
    pub order: Order,
    /// Disturbance, if any.
    pub disturbance: Option<Disturbance>,
    /// Serialised size of the message in bytes, without the encapsulation header.
    pub payload_bytes: u32,
    /// Pings per second.
    pub rate_hz: u32,
    /// Bound on the round-trip time from an analysis in microseconds, if there is one.
    pub bound_us: Option<f64>,
}

impl RunSettings {
    /// Settings with jobs by priority, and with lanes where the datapath has them. With lanes, the link steers each
    /// frame into the queue of its lane. Otherwise the kernel would spread the frames over the queues, and frames on
    /// another queue would arrive by a socket.
    pub fn new(datapath: &str, payload_bytes: u32) -> RunSettings {
        let mut settings = RunSettings {
            datapath: datapath.to_owned(),
            stages: vec![Stage::Executor],
            payload_bytes,
            rate_hz: RATE_HZ,
            ..RunSettings::default()
        };
        if datapath == "xdp" {
            settings.stages.extend([Stage::Xdp, Stage::Lanes]);
            settings.receive_work = ReceiveWork::Steered;
        }
        settings
    }

    /// Time between two pings, in nanoseconds.
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
