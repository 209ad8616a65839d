//! Capabilities and settings of a network device.

use std::collections::BTreeMap;

use isolane_hostnet::ethtool::{
    Coalescing, Feature, FlowRules, Queues, ReceiveHash, RingSizes, Timestamps,
};
use isolane_hostnet::qdisc::RootQdisc;
use serde::{Deserialize, Serialize};

/// Network device; supplements its [`Interface`](super::Interface). A field is `None` if the driver lacks it or does
/// not report it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Device {
    /// Interface name.
    pub interface: String,
    /// Driver name as in ethtool: `igb`, `veth`.
    pub driver: Option<String>,
    /// Queues in use.
    pub queues: Option<Queues>,
    /// Maximum number of queues.
    pub queues_max: Option<Queues>,
    /// Ring sizes in frames.
    pub rings: Option<RingSizes>,
    /// Maximum ring sizes in frames.
    pub rings_max: Option<RingSizes>,
    /// Interrupt coalescing.
    pub coalescing: Option<Coalescing>,
    /// Offloads by kernel name; those missing do not exist.
    pub features: BTreeMap<String, Feature>,
    /// Distribution of received frames over queues.
    pub receive_hash: Option<ReceiveHash>,
    /// Flow rules; `None` if the device has none (no ntuple), or they cannot be read.
    pub flow_rules: Option<FlowRules>,
    /// Root queueing discipline.
    pub root_qdisc: Option<RootQdisc>,
    /// Interrupts of the device.
    pub interrupts: Vec<Interrupt>,
    /// Hardware time stamps, and the hardware clock.
    pub timestamps: Option<Timestamps>,
    /// Maximum time in nanoseconds that GRO holds received frames (`gro_flush_timeout`).
    pub gro_flush_timeout_ns: Option<u64>,
    /// Idle polls before interrupts are enabled again (`napi_defer_hard_irqs`).
    pub deferred_interrupts: Option<u32>,
    /// True if receive processing runs in NAPI threads.
    pub threaded: Option<bool>,
}

/// An interrupt of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Interrupt {
    /// Interrupt number.
    pub number: u32,
    /// Name that the driver gave it: `eth0-TxRx-1`.
    pub name: String,
    /// Queue that it serves, if the name contains it.
    pub queue: Option<u32>,
    /// CPU affinity, ascending.
    pub cores: Vec<u16>,
    /// True if the kernel manages its affinity, so that it cannot be moved.
    pub is_managed: bool,
    /// Name of its thread (`irq/24-eth0-TxRx-1`), and the thread's `SCHED_FIFO` priority.
    pub thread: Option<(String, Option<u8>)>,
}

impl Interrupt {
    /// Returns whether the interrupt serves transmission alone, judged by its name: `eth0-tx-1`, `virtio0-output.1`.
    /// Interrupts of queue pairs (`eth0-TxRx-1`) and with other names serve reception too.
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
