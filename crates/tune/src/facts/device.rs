//! What a network device can do and is set to.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// A network device, beside what its [`Interface`](super::Interface) says. What the driver does not
/// have, or does not say, is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Device {
    /// Its interface.
    pub interface: String,
    /// Its driver, as ethtool names it: `igb`, `veth`.
    pub driver: Option<String>,
    /// Queues in use.
    pub queues: Option<Queues>,
    /// The most there can be.
    pub queues_max: Option<Queues>,
    /// Frames its rings hold.
    pub rings: Option<RingSizes>,
    /// The most they can.
    pub rings_max: Option<RingSizes>,
    /// When it interrupts.
    pub coalescing: Option<Coalescing>,
    /// Offloads by the kernel's name; those missing do not exist.
    pub features: BTreeMap<String, Feature>,
    /// How received frames are spread over queues.
    pub receive_hash: Option<ReceiveHash>,
    /// Steering rules; `None`: the device has none (no ntuple), or they cannot be read.
    pub flow_rules: Option<FlowRules>,
    /// How frames wait to be sent.
    pub root_qdisc: Option<RootQdisc>,
    /// Its interrupts.
    pub interrupts: Vec<Interrupt>,
    /// Time stamps of the hardware, and its clock.
    pub timestamps: Option<Timestamps>,
    /// Nanoseconds after which received frames are given on at the latest (`gro_flush_timeout`).
    pub gro_flush_timeout_ns: Option<u64>,
    /// Idle polls before interrupts are switched on again (`napi_defer_hard_irqs`).
    pub deferred_interrupts: Option<u32>,
    /// Whether receive work runs in threads.
    pub threaded: Option<bool>,
}

/// Queues of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Queues {
    /// That receive only.
    pub rx: u32,
    /// That transmit only.
    pub tx: u32,
    /// Pairs of both.
    pub combined: u32,
}

/// Frames of a device's rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RingSizes {
    /// Of a receive ring.
    pub rx: u32,
    /// Of a transmit ring.
    pub tx: u32,
}

/// When a device interrupts. A field that its driver does not have is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Coalescing {
    /// Microseconds after a received frame.
    pub rx_usecs: Option<u32>,
    /// Received frames.
    pub rx_frames: Option<u32>,
    /// Microseconds after a sent frame.
    pub tx_usecs: Option<u32>,
    /// Sent frames.
    pub tx_frames: Option<u32>,
    /// Whether the driver moves the receiving ones with the load.
    pub adaptive_rx: Option<bool>,
    /// Whether it moves the sending ones.
    pub adaptive_tx: Option<bool>,
}

/// An offload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Feature {
    /// It is on.
    pub is_on: bool,
    /// It can be switched.
    pub is_changeable: bool,
}

/// How a device spreads received frames over its queues (RSS).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReceiveHash {
    /// The function: `toeplitz`, `xor`, `crc32`; `None`: not said.
    pub function: Option<String>,
    /// The key of it; `None`: it cannot be read.
    pub key: Option<Vec<u8>>,
    /// The queue of each entry.
    pub table: Vec<u32>,
    /// Whether both directions of a flow are made the same before they are hashed: the function and
    /// the key alone do not tell the queue then.
    pub symmetric: bool,
    /// Whether the UDP ports of IPv4 are hashed, or addresses only; `None`: not said, or neither.
    pub udp4_hashes_ports: Option<bool>,
}

/// Rules that steer received frames (ntuple).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlowRules {
    /// How many there can be; where the driver does not say, as many as are looked at.
    pub capacity: u32,
    /// Those there are, by their place.
    pub rules: BTreeMap<u32, FlowRule>,
    /// Places of rules of other forms, which somebody else has set.
    pub others: Vec<u32>,
}

/// A rule that steers received frames to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum FlowRule {
    /// UDP datagrams of IPv4.
    Port {
        /// To this address; `None`: to any.
        destination: Option<Ipv4Addr>,
        /// To this port.
        destination_port: u16,
        /// The queue they go to.
        queue: u32,
    },
    /// Frames with a tag of IEEE 802.1Q of this priority (PCP), in whatever VLAN.
    Priority {
        /// The priority, 0 to 7.
        vlan_priority: u8,
        /// The queue they go to.
        queue: u32,
    },
}

impl FlowRule {
    /// The queue that frames go to.
    pub fn queue(&self) -> u32 {
        match self {
            Self::Port { queue, .. } | Self::Priority { queue, .. } => *queue,
        }
    }
}

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

/// An interrupt of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Interrupt {
    /// Its number.
    pub number: u32,
    /// What it is for, as the driver names it: `eth0-TxRx-1`.
    pub name: String,
    /// The queue it serves, where its name tells.
    pub queue: Option<u32>,
    /// The cores it may go to, ascending.
    pub cores: Vec<u16>,
    /// Whether the kernel keeps others from moving it.
    pub is_managed: bool,
    /// The thread it runs in, by its name (`irq/24-eth0-TxRx-1`), and its SCHED_FIFO priority.
    pub thread: Option<(String, Option<u8>)>,
}

impl Interrupt {
    /// Whether it is for sent frames alone, as its name says: `eth0-tx-1`, `virtio0-output.1`. Those of pairs
    /// (`eth0-TxRx-1`) and those whose name says nothing are for received ones too.
    #[must_use]
    pub fn only_transmits(&self) -> bool {
        let name = self.name.split('@').next().unwrap_or_default();
        let Some((name, number)) = name.rsplit_once(['-', '.']) else {
            return false;
        };
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let word = name.rsplit(|c: char| !c.is_ascii_alphabetic()).next();
        let is_of_sent = |word: &str| {
            ["tx", "output"]
                .iter()
                .any(|it| word.eq_ignore_ascii_case(it))
        };
        is_number && word.is_some_and(is_of_sent)
    }
}

/// Time stamps of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timestamps {
    /// The hardware stamps sent frames.
    pub hardware_tx: bool,
    /// The hardware stamps received frames.
    pub hardware_rx: bool,
    /// The number of its clock: `/dev/ptpN`.
    pub clock: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_of_sent_frames_are_known_by_the_names_drivers_give() {
        let only_transmits = |name: &str| {
            let name = String::from(name);
            let interrupt = Interrupt {
                name,
                ..Interrupt::default()
            };
            interrupt.only_transmits()
        };
        for name in [
            "eth0-tx-1",
            "eth0:tx-0",
            "virtio0-output.1",
            "hns3-0000:7d:00.0-Tx-3",
        ] {
            assert!(only_transmits(name), "{name}");
        }
        for name in [
            "eth0-rx-1",
            "eth0-TxRx-1",
            "eth0-Tx-Rx-1",
            "eth0-txrx-1",
            "vmxnet-rxtx-0",
            "virtio0-input.1",
            "mlx5_comp12@pci:0000:03:00.0",
            "tx",
            "eth-tx-",
            "",
        ] {
            assert!(!only_transmits(name), "{name}");
        }
    }
}
