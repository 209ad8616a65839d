//! Facts about a machine. A value that could not be read is `None`, never zero.

mod attribute;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

pub use isolane_hostnet::ethtool::{
    Coalescing, Feature, FlowRule, FlowRules, Queues, ReceiveHash, RingSizes, Timestamps,
};
use isolane_hostnet::napi::QueueState;
use isolane_hostnet::netdev::XdpFeatures;
pub use isolane_hostnet::qdisc::{
    CreditShaper, EarliestTime, GateSchedule, QueueQdisc, RootQdisc, TrafficClasses,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Facts about a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Facts {
    /// Origin of the facts, for messages: probed, recorded or invented.
    pub origin: String,
    /// Host name.
    pub hostname: String,
    /// Machine id (`/etc/machine-id`), which distinguishes machines of the same name.
    pub machine_id: Option<String>,
    /// Boot id of the kernel.
    pub boot_id: Option<String>,
    /// Kernel.
    pub kernel: Kernel,
    /// Processor cores.
    pub cores: Cores,
    /// Rights of this process.
    pub rights: Rights,
    /// Scheduler limits on real-time threads.
    pub scheduling: Scheduling,
    /// Memory.
    pub memory: Memory,
    /// Settings of the network stack.
    pub network: Network,
    /// Interfaces of this network namespace, in the kernel's order.
    pub interfaces: Vec<Interface>,
    /// Devices of the interfaces, in the same order; an interface without a device (`lo`) has none.
    pub devices: Vec<Device>,
    /// Lane prerequisites of the interfaces that could have lanes.
    pub lanes: Vec<LanePrerequisites>,
    /// All interrupts in use, ascending: number, name, affinity, and whether they can be moved. Further fields are set
    /// only in their device's list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<Interrupt>,
    /// Relevant running programs, by their name in `/proc` (at most 15 bytes).
    pub programs: Vec<String>,
    /// Boot configuration.
    pub boot: Boot,
    /// Contents of other small files that a plan may change or must know, by path. Files with a field above are not
    /// repeated: [`Facts::attribute`] finds both.
    pub attributes: BTreeMap<String, String>,
    /// Files on disk that isolane owns, by path.
    pub documents: BTreeMap<String, String>,
}

/// Lane prerequisites of one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LanePrerequisites {
    /// Interface name.
    pub interface: String,
    /// Facts on which the requirements of each kind of datapath depend, by the kind's name, in the kind's own form.
    pub facts: BTreeMap<String, Value>,
    /// Receive processing of each queue; empty if the kernel does not report it.
    pub napi: Vec<QueueState>,
}

/// Kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Kernel {
    /// Release, `6.12.5`.
    pub release: String,
    /// True if the kernel is PREEMPT_RT.
    pub realtime: Option<bool>,
    /// True if the kernel runs under a hypervisor.
    pub virtual_machine: Option<bool>,
    /// Clock source, `tsc`.
    pub clocksource: Option<String>,
    /// Kernel clock is synchronised (adjtimex: `STA_UNSYNC` is clear).
    pub clock_is_synchronised: Option<bool>,
    /// Kernel command line.
    pub command_line: Option<String>,
}

impl Kernel {
    /// Kernel command line; empty if unknown.
    pub(crate) fn arguments(&self) -> &str {
        self.command_line.as_deref().unwrap_or_default()
    }
}

/// Processor cores.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cores {
    /// Online cores, ascending.
    pub online: Vec<u16>,
    /// Isolated cores (isolcpus).
    pub isolated: Option<Vec<u16>>,
    /// Cores without a tick while one program runs (nohz_full).
    pub nohz_full: Option<Vec<u16>>,
    /// True if SMT siblings are online.
    pub smt_active: Option<bool>,
    /// cpufreq governor of each core; empty without cpufreq.
    pub governors: BTreeMap<u16, String>,
    /// Idle states of the first core.
    pub idle_states: Vec<IdleState>,
}

/// Idle state of a core.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IdleState {
    /// State name, `C6`.
    pub name: String,
    /// Exit latency in microseconds.
    pub latency_us: u64,
    /// True if the state is disabled.
    pub disabled: bool,
}

/// Rights of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rights {
    /// CAP_NET_ADMIN.
    pub net_admin: Option<bool>,
    /// CAP_NET_RAW.
    pub net_raw: Option<bool>,
    /// CAP_SYS_NICE.
    pub sys_nice: Option<bool>,
    /// CAP_IPC_LOCK.
    pub ipc_lock: Option<bool>,
    /// Highest real-time priority without CAP_SYS_NICE (RLIMIT_RTPRIO).
    pub realtime_priority_limit: Option<u64>,
    /// Lockable memory without CAP_IPC_LOCK (RLIMIT_MEMLOCK), in bytes.
    pub locked_memory_limit_bytes: Option<u64>,
    /// AF_XDP sockets.
    pub af_xdp: Permission,
}

/// Availability of a kernel facility.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// Unknown.
    #[default]
    Unknown,
    /// Available.
    Granted,
    /// Present in the kernel, but not permitted to this process.
    Refused,
    /// Absent from the kernel.
    Absent,
}

/// Scheduler limits on real-time threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scheduling {
    /// Microseconds of each period available to real-time threads; -1 for all.
    pub realtime_runtime_us: Option<i64>,
    /// Period in microseconds.
    pub realtime_period_us: Option<i64>,
    /// Nanoseconds of each period that the fair server reserves for ordinary programs, by core; empty if unreadable.
    pub fair_server_runtime_ns: BTreeMap<u16, u64>,
}

/// Memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// Active swap in bytes.
    pub swap_bytes: Option<u64>,
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub transparent_huge_pages: Option<String>,
}

/// Settings of the network stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// Default receive buffer of a socket in bytes.
    pub rmem_default_bytes: Option<u64>,
    /// Maximum receive buffer that a socket may request, in bytes.
    pub rmem_max_bytes: Option<u64>,
    /// Maximum packets in a core's backlog between interface and stack.
    pub netdev_max_backlog: Option<u64>,
    /// Microseconds that a reading socket polls the interface; 0 for none.
    pub busy_read_us: Option<u64>,
    /// First and last ephemeral port.
    pub local_ports: Option<(u16, u16)>,
    /// Ports excluded from the ephemeral range, as ranges.
    pub reserved_ports: Vec<(u16, u16)>,
    /// UDP ports in use, ascending. Ports of IPv6 sockets are included, because IPv4 sockets share them.
    pub udp_ports: Option<Vec<u16>>,
    /// Datagrams dropped at full receive buffers since the machine or namespace started.
    pub udp_receive_buffer_errors: Option<u64>,
    /// Packet filters.
    pub firewall: Firewall,
}

/// Signs of a packet filter that are visible without capabilities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Firewall {
    /// True if the kernel's nftables module is in use.
    pub nf_tables_in_use: Option<bool>,
    /// Tables of iptables.
    pub ip_tables: Vec<String>,
}

/// Network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Interface {
    /// Interface name.
    pub name: String,
    /// Kind as the kernel names it: `veth`, `bridge`, `vlan`, `bond`; `None` for hardware.
    pub kind: Option<String>,
    /// True if it is administratively up.
    pub is_up: bool,
    /// True if it has a carrier.
    pub has_carrier: bool,
    /// True if multicast is enabled.
    pub is_multicast: bool,
    /// True if it is a loopback interface.
    pub is_loopback: bool,
    /// True if it is wireless.
    pub is_wireless: bool,
    /// IPv4 addresses with prefix lengths.
    pub addresses: Vec<(Ipv4Addr, u8)>,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// Number of transmit queues.
    pub tx_queues: Option<u32>,
    /// Number of receive queues.
    pub rx_queues: Option<u32>,
    /// Driver name, `igb`.
    pub driver: Option<String>,
    /// Link speed in Mbit/s.
    pub speed_mbps: Option<u32>,
    /// Root queueing discipline, `mq`, `fq_codel`.
    pub qdisc: Option<String>,
    /// True if an XDP program is attached.
    pub has_xdp_program: bool,
    /// VLAN id of a VLAN interface.
    pub vlan: Option<u16>,
    /// Parent of a VLAN interface in the same network namespace.
    pub parent: Option<String>,
    /// Received frames dropped since the interface was created.
    pub rx_dropped: Option<u64>,
}

/// Boot loader and service manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Boot {
    /// Source of the kernel's arguments; `None` if unknown.
    pub loader: Option<Loader>,
    /// True if systemd is the service manager.
    pub has_systemd: Option<bool>,
    /// CPU affinity of systemd, which all its services inherit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub systemd_cores: Option<Vec<u16>>,
}

/// Boot loader, by how kernel arguments can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loader {
    /// GRUB with `update-grub` and a settings folder (`/etc/default/grub.d`), as in Debian and Ubuntu.
    Grub,
    /// Any other boot loader.
    Other,
}

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
    /// Offloads by kernel name; an offload that is missing here does not exist.
    pub features: BTreeMap<String, Feature>,
    /// XDP features of the driver, where the kernel reports them (Linux 6.7).
    pub xdp_features: Option<XdpFeatures>,
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
    pub napi_defer_hard_irqs: Option<u32>,
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
