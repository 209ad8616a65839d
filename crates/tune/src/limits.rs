//! Every bound of this crate, with its reason.

use std::time::Duration;

/// Bytes of one file of sysfs or procfs that are read: the longest, `/proc/net/udp` of a busy host,
/// has a line of 128 bytes a socket.
pub const MAX_FILE_BYTES: u64 = 4 << 20;

/// Entries of a directory of sysfs or procfs that are looked at: processes of a large host.
pub const MAX_ENTRIES: usize = 65_536;

/// Interfaces that are looked at: container hosts have hundreds.
pub const MAX_INTERFACES: usize = 1_024;

/// Interfaces whose fitness for lanes is looked at: each takes some dozen system calls, and container
/// hosts have hundreds that nobody means.
pub const MAX_LANE_GROUNDS: usize = 16;

/// How long a host may be kept from reading a socket before the kernel must drop, in microseconds:
/// what an ordinary kernel's longest stalls take (5 to 15 ms were measured), with room.
pub const STALL_US: u64 = 20_000;

/// What the kernel counts against a receive buffer for one datagram that fits a frame: its page
/// fragment and its header, rounded up.
pub const KERNEL_BYTES_A_DATAGRAM: u64 = 2_304;

/// Microseconds a core may take to wake from an idle state before it is worth a word: beyond it,
/// waking costs more than a whole round trip over sockets does on this core.
pub const IDLE_LATENCY_US: u64 = 20;

/// Percent of rmem_default that one level's burst may take before the buffer counts as too short.
pub const BUFFER_PERCENT: u64 = 80;

/// Chains of a packet filter that enter one another: the kernel allows 16.
pub const MAX_CHAIN_DEPTH: usize = 16;

/// How long the tools that tell the rules of packet filters may take, all together. Those of a container host with
/// tens of thousands take below a second; longer takes one that waits for a lock, and may wait for ever.
pub const FILTER_TOOL_PATIENCE: Duration = Duration::from_secs(5);

/// Bytes that such a tool may say: tens of thousands of rules, of which nft's JSON has some 400 bytes each.
pub(crate) const MAX_RULES_BYTES: u64 = 32 << 20;

/// How long one that was killed is waited for.
pub(crate) const FILTER_TOOL_END: Duration = Duration::from_secs(1);

/// Between two looks whether such a tool has ended.
pub(crate) const FILTER_TOOL_LOOK: Duration = Duration::from_millis(5);
