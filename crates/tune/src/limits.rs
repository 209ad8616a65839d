//! Bounds of this crate, each with its reason.

use std::time::Duration;

/// Maximum bytes read of one sysfs or procfs file. The longest is `/proc/net/udp` of a busy host, 128 bytes per socket.
pub const MAX_FILE_BYTES: u64 = 4 << 20;

/// Maximum entries read of a sysfs or procfs directory. The longest is `/proc` of a host with many processes.
pub const MAX_ENTRIES: usize = 65_536;

/// Maximum interfaces read: container hosts have hundreds.
pub const MAX_INTERFACES: usize = 1_024;

/// Maximum interfaces checked for lanes: each check takes a dozen system calls, and container hosts have hundreds of
/// virtual interfaces.
pub const MAX_LANE_INTERFACES: usize = 16;

/// Maximum devices read: each takes a dozen driver queries.
pub const MAX_DEVICES: usize = 64;

/// Longest stall in microseconds, in which no socket is read and receive buffers must hold all datagrams. Ordinary
/// kernels stall for 5 to 15 ms (measured); the rest is margin.
pub const STALL_US: u64 = 20_000;

/// Bytes that one datagram takes in a receive buffer if it fits an Ethernet frame: page fragment and header.
pub const KERNEL_BYTES_PER_DATAGRAM: u64 = 2_304;

/// Idle-state exit latency in microseconds above which `doctor` warns: a wake-up from such a state takes longer than a
/// round trip over sockets.
pub const IDLE_LATENCY_US: u64 = 20;

/// Maximum percentage of `rmem_default` that one level's datagrams of a stall may fill; above it `doctor` warns.
pub const BUFFER_PERCENT: u64 = 80;

/// Time limit for all tools that print packet filter rules, together. They print tens of thousands of rules, as of a
/// container host, within a second. A tool that waits for a lock may never end.
pub const FILTER_TOOL_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum bytes that a packet filter tool may print: tens of thousands of rules, some 400 bytes each in nft's JSON.
pub(crate) const MAX_RULES_BYTES: u64 = 32 << 20;

/// Interval at which isolane checks whether a packet filter tool has ended.
pub(crate) const FILTER_TOOL_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Maximum bytes of a sysfs or procfs attribute: the kernel shows at most one page.
pub const MAX_ATTRIBUTE_BYTES: u64 = 4 << 10;

/// Maximum bytes of a document that a plan writes: a systemd unit, kernel arguments, or the saved plan.
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

/// Maximum passes over all settings during a restore. A restored setting may reset others: queues reset the RSS table
/// and threads. Chains of such resets are no longer than this.
pub(crate) const MAX_RESTORE_PASSES: usize = 4;

/// Longest wait at boot for the interfaces of the saved plan. Network managers bring interfaces up within seconds.
/// Units ordered after `network-online.target` wait equally long.
pub const BOOT_INTERFACE_TIMEOUT: Duration = Duration::from_secs(30);

/// systemd timeout for start and stop of the unit that applies the saved plan: [`BOOT_INTERFACE_TIMEOUT`], plus the
/// restarts of a dozen devices, seconds each. A hung driver delays a boot by at most this time.
pub(crate) const BOOT_UNIT_TIMEOUT: Duration = Duration::from_secs(180);

/// Poll interval of the wait for interfaces at boot.
pub(crate) const BOOT_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Longest wait for a link after a change that resets its device: autonegotiation at 1 Gbit/s takes two to four
/// seconds.
pub const LINK_TIMEOUT: Duration = Duration::from_secs(10);

/// Poll interval of the wait for a link.
pub(crate) const LINK_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum entries of an RSS indirection table whose hash can be learnt. Common devices have at most 2,048.
pub const MAX_TABLE_ENTRIES: usize = 1 << 14;

/// Source port of the datagrams from which a receive hash is learnt. With any one bit flipped, the port remains above
/// the privileged range and is rarely in use.
pub const PROBE_SOURCE_PORT: u16 = 0xc3a5;
/// Destination port of the datagrams from which a receive hash is learnt, chosen like [`PROBE_SOURCE_PORT`].
pub const PROBE_DESTINATION_PORT: u16 = 0xc35a;

/// Smallest transmit ring in frames: the minimum of igb and ixgbe is 64.
pub const MIN_TRANSMIT_RING_FRAMES: u32 = 64;

/// Length in frames of a pfifo queue: 1.6 ms of maximum-size frames at 1 Gbit/s.
pub const PFIFO_FRAMES: u32 = 128;

/// Interval in seconds of a core's update of memory statistics: the value of `TuneD`'s latency profile.
pub const STATISTICS_SECONDS: u32 = 10;

/// Maximum cores whose idle states and siblings are recorded. Some twenty small files are read for each core, and
/// executors run on one of the first 128 cores.
pub const MAX_RECORDED_CORES: usize = 128;

/// Interrupt moderation in microseconds above which `doctor` warns. It is about the exit latency of an idle state.
pub const MODERATION_US: u32 = 20;

/// Smallest adequate receive ring in frames: it holds 0.7 ms of minimum-size frames at 1 Gbit/s.
pub const RECEIVE_RING_FRAMES: u32 = 1_024;

/// Maximum source ports, and maximum destination ports, that one verification probes: at most 4,096 pairs.
pub const MAX_PROBED_PORTS: usize = 64;

/// Maximum attempts per datagram while a hash is learnt: three losses in a row are not chance.
pub(crate) const MAX_PROBE_ATTEMPTS: u32 = 3;

/// Longest wait for the answer to a probe: a hundred round trips of a loaded machine.
pub const PROBE_TIMEOUT: Duration = Duration::from_millis(200);

/// Maximum answers per second at one port: a client has one question in flight, and a round trip takes 50 us or more.
pub const MAX_ANSWERS_PER_SECOND: u32 = 20_000;

/// Maximum wake-ups of one measurement: a quarter of an hour at 1,000 per second, 8 MB.
pub const MAX_WAKE_UPS: u32 = 1_000_000;

/// Maximum datagrams per level that a verification sends. Queueing disciplines hold more, so none overflows.
pub const MAX_SENT_DATAGRAMS: u32 = 100;

/// Longest wait for the sent datagrams to leave: a hundred full frames at 10 Mbit/s take 121 ms.
pub const TRANSMIT_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum idle states of a core: the kernel's own bound (CPUIDLE_STATE_MAX).
pub const MAX_IDLE_STATES: u32 = 10;
