//! Bounds of this crate, each with its reason.

use std::time::Duration;

/// Maximum bytes read of one sysfs or procfs file. The longest is `/proc/net/udp` of a busy host, 128 bytes per socket.
pub const MAX_FILE_BYTES: u64 = 4 << 20;

/// Maximum entries read of a sysfs or procfs directory: processes of a large host.
pub const MAX_ENTRIES: usize = 65_536;

/// Maximum interfaces read: container hosts have hundreds.
pub const MAX_INTERFACES: usize = 1_024;

/// Maximum interfaces checked for lanes: each check takes a dozen system calls, and container hosts have hundreds of
/// virtual interfaces.
pub const MAX_LANE_INTERFACES: usize = 16;

/// Maximum devices read: each takes a dozen driver queries.
pub const MAX_DEVICES: usize = 64;

/// Longest time in microseconds a host may not read a socket before the kernel must drop. Ordinary kernels stall 5 to
/// 15 ms (measured); the rest is margin.
pub const STALL_US: u64 = 20_000;

/// Bytes the kernel charges a receive buffer for one datagram that fits a frame: page fragment and header, rounded up.
pub const KERNEL_BYTES_PER_DATAGRAM: u64 = 2_304;

/// Idle-state exit latency in microseconds above which a finding is reported: waking then costs more than a socket
/// round trip.
pub const IDLE_LATENCY_US: u64 = 20;

/// Percentage of rmem_default that one level's burst may take before the buffer counts as too small.
pub const BUFFER_PERCENT: u64 = 80;

/// Timeout of the tools that print packet filter rules, all together. On a container host with tens of thousands of
/// rules they take below a second; a tool that waits for a lock may never end.
pub const FILTER_TOOL_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes that such a tool may say: tens of thousands of rules, of which nft's JSON has some 400 bytes each.
pub(crate) const MAX_RULES_BYTES: u64 = 32 << 20;

/// Polling interval for the end of such a tool.
pub(crate) const FILTER_TOOL_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Maximum bytes of a sysfs or procfs attribute: the kernel shows at most one page.
pub const MAX_ATTRIBUTE_BYTES: u64 = 4 << 10;

/// Maximum bytes of a document that a plan changes: units, and lists of kernel arguments.
pub const MAX_DOCUMENT_BYTES: u64 = 1 << 20;

/// Maximum characters of a text value shown in a line.
pub(crate) const MAX_SHOWN_TEXT: usize = 60;

/// Maximum characters of an error shown in a plan's text.
pub(crate) const MAX_ERROR_TEXT: usize = 300;

/// Maximum bytes of the journal: some hundred settings per plan, documents among them.
pub const MAX_JOURNAL_BYTES: u64 = 16 << 20;

/// Journal bytes reserved for the entry that ends a plan: a line of some 60 bytes, with margin. Entries for settings
/// that could not be set have their own reserve.
pub(crate) const JOURNAL_END_BYTES: u64 = 4 << 10;

/// Maximum damaged journals kept for inspection; each was reported to the user.
pub(crate) const MAX_BROKEN_JOURNALS: usize = 100;

/// Maximum passes over all settings during a restore. Changes undo one another at most in a chain of this length
/// (queues, then the table and the threads that depend on them).
pub(crate) const MAX_RESTORE_PASSES: usize = 4;

/// Longest wait of the boot part for the plan's interfaces. Network managers bring them up within seconds; units
/// ordered after `network-online.target` wait too.
pub const BOOT_INTERFACE_TIMEOUT: Duration = Duration::from_secs(30);

/// systemd timeout of the boot part, for applying and for undoing: [`BOOT_INTERFACE_TIMEOUT`] plus settings of a dozen
/// devices, each of which may take seconds to restart. A hung driver delays a boot no longer.
pub(crate) const BOOT_UNIT_TIMEOUT: Duration = Duration::from_secs(180);

/// Poll interval of the wait for interfaces at boot.
pub(crate) const BOOT_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Longest wait for a link after a change that resets its device: autonegotiation at 1 Gbit/s takes two to four
/// seconds.
pub const LINK_TIMEOUT: Duration = Duration::from_secs(10);

/// Poll interval of the wait for a link.
pub(crate) const LINK_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum entries of a receive hash table that can be learnt: the largest of common devices have 2,048.
pub const MAX_TABLE_ENTRIES: usize = 1 << 14;

/// Source port of datagrams that learn a hash. With any one bit flipped, the port stays above the privileged range and
/// is rarely in use.
pub const PROBE_SOURCE_PORT: u16 = 0xc3a5;
/// Destination port of datagrams that learn a hash, chosen like [`PROBE_SOURCE_PORT`].
pub const PROBE_DESTINATION_PORT: u16 = 0xc35a;

/// Smallest transmit ring in frames: the minimum of igb and ixgbe is 64.
pub const MIN_TRANSMIT_RING_FRAMES: u32 = 64;

/// Length in frames of a pfifo queue: 1.6 ms of maximum-size frames at 1 Gbit/s.
pub const PFIFO_FRAMES: u32 = 128;

/// Interval in seconds of a core's update of memory statistics: the value of `TuneD`'s latency profile.
pub const STATISTICS_SECONDS: u32 = 10;

/// Maximum cores whose idle states and siblings are recorded: each takes some twenty small files, and executors run on
/// one of the first 128 cores.
pub const MAX_RECORDED_CORES: usize = 128;

/// Interrupt moderation in microseconds above which `doctor` reports it: about the latency of an idle state.
pub const MODERATION_US: u32 = 20;

/// Smallest adequate receive ring in frames: 0.7 ms of minimum-size frames at 1 Gbit/s.
pub const RECEIVE_RING_FRAMES: u32 = 1_024;

/// Maximum destination or source ports probed by one verification; pairs are their product, 4,096.
pub const MAX_PROBED_PORTS: usize = 64;

/// Maximum attempts per datagram while a hash is learnt: three losses in a row are not chance.
pub(crate) const MAX_PROBE_ATTEMPTS: u32 = 3;

/// Longest wait for an answer: a hundred round trips of a loaded machine.
pub const PROBE_TIMEOUT: Duration = Duration::from_millis(200);

/// Maximum answers per second at one port. A correct asker has one question in flight, so it never exceeds one per 50
/// us round trip.
pub const MAX_ANSWERS_PER_SECOND: u32 = 20_000;

/// Maximum wake-ups of one measurement: a quarter of an hour at 1,000 per second, 8 MB.
pub const MAX_WAKE_UPS: u32 = 1_000_000;

/// Maximum datagrams per level that a verification sends: below any queue's length, so that no queue overflows.
pub const MAX_SENT_DATAGRAMS: u32 = 100;

/// Longest wait for the sent datagrams to leave: a hundred full frames at 10 Mbit/s take 121 ms.
pub const TRANSMIT_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum idle states of a core: the kernel's own bound (CPUIDLE_STATE_MAX).
pub const MAX_IDLE_STATES: u32 = 10;
