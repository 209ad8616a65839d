//! Queueing disciplines that are read and set, and their options.

use serde::{Deserialize, Serialize};

/// How frames wait to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RootQdisc {
    /// What the kernel takes of itself, by its name: `mq`, `fq_codel`, `noqueue`, `pfifo_fast`.
    Default {
        /// Its name.
        name: String,
    },
    /// A first-in, first-out queue.
    Pfifo {
        /// Frames it holds.
        frames: u32,
    },
    /// A queue of the device for each traffic class (mqprio); what waits in each is a `pfifo`.
    Mqprio(TrafficClasses),
    /// The same, with gates that open and close by the clock (taprio, IEEE 802.1Qbv).
    Taprio(GateSchedule),
    /// Another one, as somebody set it: it is left alone.
    Other {
        /// Its name.
        name: String,
    },
}

/// Traffic classes, and the transmit queues of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficClasses {
    /// The class of each of the sixteen priorities of the kernel.
    pub class_of_priority: [u8; 16],
    /// Number and first of the queues of each class.
    pub queues: Vec<(u16, u16)>,
    /// Whether the device knows of it (`hw 1`).
    pub offloaded: bool,
}

/// Traffic classes whose gates open and close by the clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateSchedule {
    /// The classes; `offloaded` says whether the device opens the gates.
    pub classes: TrafficClasses,
    /// When the first cycle begins, in nanoseconds of TAI.
    pub base_time_ns: i64,
    /// The open gates, a bit a class, and for how many nanoseconds: one after the other, and again.
    pub entries: Vec<(u32, u32)>,
}

/// How frames wait for one transmit queue, below a root that has classes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum QueueQdisc {
    /// A first-in, first-out queue; `None`: as long as the device's queue.
    Pfifo {
        /// Frames it holds.
        frames: Option<u32>,
    },
    /// No more than a share of the link (cbs, IEEE 802.1Qav).
    CreditShaper(CreditShaper),
    /// Each frame at its own time (etf).
    EarliestTime(EarliestTime),
    /// Another one: it is left alone.
    Other {
        /// Its name.
        name: String,
    },
}

/// A share of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreditShaper {
    /// The share, in kilobits a second.
    pub idle_slope_kbps: i32,
    /// The share less the link's rate: negative.
    pub send_slope_kbps: i32,
    /// The most credit, in bytes.
    pub high_credit_bytes: i32,
    /// The least, in bytes: negative.
    pub low_credit_bytes: i32,
    /// Whether the device does it.
    pub offloaded: bool,
}

/// Frames that leave at a time of their own (SO_TXTIME).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarliestTime {
    /// How long before its time a frame is handed to the device, in nanoseconds.
    pub delta_ns: i32,
    /// The kernel's number of the clock: 11 is TAI.
    pub clock: i32,
    /// Whether the device keeps the time.
    pub offloaded: bool,
}
