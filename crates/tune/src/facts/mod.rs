//! A machine as it was found. Everything that could not be read is `None`: not knowing is a fact of
//! its own, and never a zero.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use isolane_hostnet::napi::QueueState;
use isolane_hostnet::xdp_facts::XdpFacts;
use serde::{Deserialize, Serialize};

mod attribute;
mod boot;
mod clock;
mod device;
mod ptp;

pub(crate) use attribute::port_list;
pub use boot::{Boot, Loader};
pub use clock::Clock;
pub use device::{Device, Interrupt};
pub use isolane_hostnet::ethtool::{
    Coalescing, Feature, FlowRule, FlowRules, Queues, ReceiveHash, RingSizes, Timestamps,
};
pub use isolane_hostnet::qdisc::{
    CreditShaper, EarliestTime, GateSchedule, QueueQdisc, RootQdisc, TrafficClasses,
};
pub use ptp::{DeviceClock, Ptp, PtpDelay, PtpPort, PtpState};

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Facts {
    /// Where the facts come from, for people: a recording says so here.
    pub origin: String,
    /// Its name.
    pub hostname: String,
    /// What tells it from others of that name (`/etc/machine-id`).
    pub machine_id: Option<String>,
    /// The kernel's number of this run of the machine.
    pub boot_id: Option<String>,
    /// The kernel.
    pub kernel: Kernel,
    /// The processors.
    pub cores: Cores,
    /// What this process may do.
    pub rights: Rights,
    /// What the scheduler holds back.
    pub scheduling: Scheduling,
    /// Memory.
    pub memory: Memory,
    /// Settings of the network stack.
    pub network: Network,
    /// Interfaces of this network namespace, in the kernel's order.
    pub interfaces: Vec<Interface>,
    /// The devices behind them, in the same order; interfaces without one (`lo`) are missing.
    pub devices: Vec<Device>,
    /// What lanes would stand on: the interfaces that could have some.
    pub lanes: Vec<LaneGround>,
    /// All interrupts of the machine that are in use, ascending: number, name, cores, and whether they can
    /// be moved. What else is known of those of devices stands there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<Interrupt>,
    /// Programs that run and matter here, by the name the kernel shows (15 bytes).
    pub programs: Vec<String>,
    /// How it starts.
    pub boot: Boot,
    /// How well its clock is kept.
    pub clock: Clock,
    /// What stands in other small files that a plan may change or has to know, by path. Those of which
    /// there are fields above are not repeated: [`Facts::attribute`] finds both.
    pub attributes: BTreeMap<String, String>,
    /// Files on disk that are ours, by path.
    pub documents: BTreeMap<String, String>,
}

/// What the lanes of one interface would stand on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LaneGround {
    /// Kernel, rights and interface, as far as lanes depend on them.
    pub ground: XdpFacts,
    /// How the receive work of its queues is done; empty where the kernel does not say.
    pub receive_work: Vec<QueueState>,
}

/// The kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Kernel {
    /// Its release, `6.12.5`.
    pub release: String,
    /// Whether it is fully preemptible (PREEMPT_RT).
    pub realtime: Option<bool>,
    /// Whether it runs on a hypervisor.
    pub virtual_machine: Option<bool>,
    /// What it takes the time from, `tsc`.
    pub clocksource: Option<String>,
    /// What it was started with.
    pub command_line: Option<String>,
}

/// The processors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cores {
    /// Those that run, ascending.
    pub online: Vec<u16>,
    /// Those kept free of ordinary programs (isolcpus).
    pub isolated: Option<Vec<u16>>,
    /// Those without a tick while one program runs.
    pub nohz_full: Option<Vec<u16>>,
    /// Whether two hardware threads share a core.
    pub smt_active: Option<bool>,
    /// The governor of each core's clock; empty where the clock is not governed.
    pub governors: BTreeMap<u16, String>,
    /// The idle states of the first core.
    pub idle_states: Vec<IdleState>,
}

/// A state a core sleeps in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IdleState {
    /// Its name, `C6`.
    pub name: String,
    /// How long waking takes, in microseconds.
    pub latency_us: u64,
    /// Whether it is switched off.
    pub disabled: bool,
}

/// What this process may do.
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
    /// The highest real-time priority without CAP_SYS_NICE (RLIMIT_RTPRIO).
    pub realtime_priority_limit: Option<u64>,
    /// The memory that may be locked without CAP_IPC_LOCK (RLIMIT_MEMLOCK), in bytes.
    pub locked_memory_limit_bytes: Option<u64>,
    /// Descriptors this process may have (RLIMIT_NOFILE).
    pub descriptor_limit: Option<u64>,
    /// Sockets of the family AF_XDP.
    pub af_xdp: Permission,
}

/// Whether something can be had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// It is not known.
    #[default]
    Unknown,
    /// Yes.
    Granted,
    /// The kernel has it, and this process may not use it.
    Refused,
    /// The kernel does not have it.
    Absent,
}

/// What the scheduler holds back from real-time threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scheduling {
    /// Microseconds of each period that real-time threads get; -1: all.
    pub realtime_runtime_us: Option<i64>,
    /// The period, in microseconds.
    pub realtime_period_us: Option<i64>,
    /// Nanoseconds of each period that the fair server keeps for ordinary programs, by core; empty if
    /// it cannot be seen.
    pub fair_server_runtime_ns: BTreeMap<u16, u64>,
}

/// Memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// Bytes of swap that are on.
    pub swap_bytes: Option<u64>,
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub transparent_huge_pages: Option<String>,
}

/// Settings of the network stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// The receive buffer of a socket that asks for none, in bytes.
    pub rmem_default_bytes: Option<u64>,
    /// The largest a socket may ask for, in bytes.
    pub rmem_max_bytes: Option<u64>,
    /// The same for sending, in bytes.
    pub wmem_max_bytes: Option<u64>,
    /// Packets a core queues between interface and stack.
    pub netdev_max_backlog: Option<u64>,
    /// Microseconds a socket that reads polls the interface; 0: none.
    pub busy_read_us: Option<u64>,
    /// Groups a socket may join.
    pub igmp_max_memberships: Option<u64>,
    /// First and last port the kernel gives away.
    pub local_ports: Option<(u16, u16)>,
    /// Ports it never gives away, as ranges.
    pub reserved_ports: Vec<(u16, u16)>,
    /// UDP ports that are taken, ascending; those of IPv6 sockets included, which IPv4 shares.
    pub udp_ports: Option<Vec<u16>>,
    /// Datagrams lost to full receive buffers since the machine or namespace started.
    pub udp_receive_buffer_errors: Option<u64>,
    /// What may filter packets.
    pub firewall: Firewall,
}

/// What can be seen of a firewall without the right to ask it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Firewall {
    /// Whether the kernel's module for nftables is used by somebody.
    pub nf_tables_in_use: Option<bool>,
    /// Tables of iptables.
    pub ip_tables: Vec<String>,
}

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its kind, as the kernel names it: `veth`, `bridge`, `vlan`, `bond`; `None` for hardware.
    pub kind: Option<String>,
    /// It was switched on.
    pub is_up: bool,
    /// It has a carrier.
    pub has_carrier: bool,
    /// It takes part in multicast.
    pub is_multicast: bool,
    /// It does not leave the host.
    pub is_loopback: bool,
    /// Whether it is wireless.
    pub is_wireless: bool,
    /// Its IPv4 addresses, and the leading bits of their networks.
    pub addresses: Vec<(Ipv4Addr, u8)>,
    /// Bytes of its largest packet.
    pub mtu: Option<u32>,
    /// Transmit queues.
    pub tx_queues: Option<u32>,
    /// Receive queues.
    pub rx_queues: Option<u32>,
    /// What serves it, `igb`.
    pub driver: Option<String>,
    /// Megabits a second.
    pub speed_mbps: Option<u32>,
    /// How its transmit queues are served, `mq`, `fq_codel`.
    pub qdisc: Option<String>,
    /// Whether an XDP program is attached.
    pub has_xdp_program: bool,
    /// The VLAN it is.
    pub vlan: Option<u16>,
    /// Of a VLAN: the interface that it is on, in the same network namespace.
    pub below: Option<String>,
    /// Frames it dropped on the way in since it was made.
    pub rx_dropped: Option<u64>,
}
