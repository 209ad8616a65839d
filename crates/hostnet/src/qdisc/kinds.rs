//! Queueing disciplines and their options, in the form that is recorded.

use serde::{Deserialize, Serialize};

/// Root qdisc of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RootQdisc {
    /// The kernel's default: `mq`, `fq_codel`, `noqueue`, `pfifo_fast`.
    Default {
        /// Kind.
        name: String,
    },
    /// First-in, first-out queue.
    Pfifo {
        /// Limit in frames.
        frames: u32,
    },
    /// Transmit queues per traffic class (mqprio), each with a `pfifo`.
    Mqprio(TrafficClasses),
    /// Traffic classes with clock-driven gates (taprio, IEEE 802.1Qbv).
    Taprio(GateSchedule),
    /// Another kind, which is left unchanged.
    Other {
        /// Kind.
        name: String,
    },
}

/// Traffic classes and the transmit queues of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficClasses {
    /// Class of each of the kernel's sixteen priorities.
    pub class_of_priority: [u8; 16],
    /// Number and first of the queues of each class.
    pub queues: Vec<(u16, u16)>,
    /// True if the classes are offloaded to the device (`hw 1`).
    pub offloaded: bool,
}

/// Traffic classes with clock-driven gates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateSchedule {
    /// Classes; `offloaded` means that the device operates the gates.
    pub classes: TrafficClasses,
    /// Start of the first cycle in nanoseconds of TAI.
    pub base_time_ns: i64,
    /// Entries of the cycle: mask of open gates, one bit per class, and duration in nanoseconds.
    pub entries: Vec<(u32, u32)>,
}

/// Qdisc of one transmit queue, under a classful root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum QueueQdisc {
    /// First-in, first-out queue.
    Pfifo {
        /// Limit in frames; `None` for the device's queue length.
        frames: Option<u32>,
    },
    /// Credit-based shaper (cbs, IEEE 802.1Qav).
    CreditShaper(CreditShaper),
    /// Earliest TxTime first (etf).
    EarliestTime(EarliestTime),
    /// Another kind, which is left unchanged.
    Other {
        /// Kind.
        name: String,
    },
}

/// Parameters of the credit-based shaper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreditShaper {
    /// Idle slope, the reserved rate, in kbit/s.
    pub idle_slope_kbps: i32,
    /// Send slope, idle slope minus link rate, in kbit/s: negative.
    pub send_slope_kbps: i32,
    /// High credit in bytes.
    pub high_credit_bytes: i32,
    /// Low credit in bytes: negative.
    pub low_credit_bytes: i32,
    /// True if the device does the shaping.
    pub offloaded: bool,
}

/// Parameters of etf, which sends each frame at its SO_TXTIME.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarliestTime {
    /// Nanoseconds before its SO_TXTIME at which a frame is passed to the device.
    pub delta_ns: i32,
    /// Clock id; 11 is CLOCK_TAI.
    pub clock: i32,
    /// True if the device enforces the time.
    pub offloaded: bool,
}
