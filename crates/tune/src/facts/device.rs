//! What a network device can do and is set to.

use std::collections::BTreeMap;

use isolane_hostnet::ethtool::{
    Coalescing, Feature, FlowRules, Queues, ReceiveHash, RingSizes, Timestamps,
};
use isolane_hostnet::qdisc::RootQdisc;
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
    /// Cores that each receive queue's frames are handed to (`rps_cpus`), by queue, ascending.
    pub receive_cores: Vec<Vec<u16>>,
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
