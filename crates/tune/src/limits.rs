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

/// Devices that are looked at: each takes some dozen questions to its driver.
pub const MAX_DEVICES: usize = 64;

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

/// How long the tools that tell the rules of packet filters may take, all together. Those of a container host with
/// tens of thousands take below a second; longer takes one that waits for a lock, and may wait for ever.
pub const FILTER_TOOL_PATIENCE: Duration = Duration::from_secs(5);

/// Bytes that such a tool may say: tens of thousands of rules, of which nft's JSON has some 400 bytes each.
pub(crate) const MAX_RULES_BYTES: u64 = 32 << 20;

/// Between two looks whether such a tool has ended.
pub(crate) const FILTER_TOOL_LOOK: Duration = Duration::from_millis(5);

/// Bytes of an attribute of sysfs or procfs that is a setting: the kernel shows at most a page.
pub const MAX_ATTRIBUTE_BYTES: u64 = 4 << 10;

/// Bytes of a document that a plan changes: units, and lists of kernel arguments.
pub const MAX_DOCUMENT_BYTES: u64 = 1 << 20;

/// Characters of a text that are shown where a value stands in a line.
pub(crate) const MAX_SHOWN_TEXT: usize = 60;

/// Characters that are shown of an error in a plan's text, in which any of it may stand.
pub(crate) const MAX_ERROR_TEXT: usize = 300;

/// Bytes of an interface's name (IFNAMSIZ, without the end).
pub(crate) const MAX_INTERFACE_NAME: usize = 15;

/// Bytes of one netlink datagram: the most the kernel fills at once.
pub(crate) const NETLINK_DATAGRAM_BYTES: usize = 32 << 10;

/// Datagrams of one answer: a list of the queues of hundreds of devices, some 100 to a datagram.
pub(crate) const MAX_NETLINK_DATAGRAMS: usize = 1_024;

/// How long a datagram of an answer by netlink is waited for: one that never comes. It does not end the kernel's own
/// work: questions are answered while they are sent, and the parts of lists while they are received, both perhaps
/// behind the lock of all devices; a driver that hangs with it keeps this process, as it keeps `ip` and `ethtool`.
pub(crate) const NETLINK_PATIENCE: Duration = Duration::from_secs(20);

/// How often a list is asked for that changes while it is told: container hosts make devices by the
/// second, and a list takes milliseconds.
pub(crate) const MAX_NETLINK_QUESTIONS: usize = 8;

/// Bytes of the journal of what was found: some hundreds of settings a plan, among them documents.
pub const MAX_JOURNAL_BYTES: u64 = 16 << 20;

/// Bytes of the journal that are kept for how a plan ends, beside those for what could not be set: a line of some
/// 60 bytes, with room.
pub(crate) const JOURNAL_END_BYTES: u64 = 4 << 10;

/// Damaged journals that are kept for people: each is one they have been told of.
pub(crate) const MAX_BROKEN_JOURNALS: usize = 100;

/// How often all settings are looked at while they are put back: one change undoes another at most
/// one after the other (queues, then the table and the threads that hang on them).
pub(crate) const MAX_RESTORING_PASSES: usize = 4;

/// How long the boot part waits for the interfaces of its plan to be up: network managers switch
/// them on within seconds, and whoever needs the network waits meanwhile.
pub const BOOT_PATIENCE: Duration = Duration::from_secs(30);

/// How long systemd lets the boot part work, and then undo what it did: [`BOOT_PATIENCE`], and settings of a dozen
/// devices, for each of which a driver may start its device anew (seconds). A driver that hangs keeps a boot no longer.
pub(crate) const BOOT_TIMEOUT: Duration = Duration::from_secs(180);

/// Between two looks whether they are.
pub(crate) const BOOT_LOOK: Duration = Duration::from_millis(100);

/// How long a link may take to come back behind a change that resets its device: autonegotiation at 1 Gbit/s
/// takes two to four seconds.
pub const LINK_PATIENCE: Duration = Duration::from_secs(10);

/// Between two looks whether it is back.
pub(crate) const LINK_LOOK: Duration = Duration::from_millis(50);

/// Entries of a receive hash's table that can be learnt: the largest of common devices have 2,048.
pub const MAX_TABLE_ENTRIES: usize = 1 << 14;

/// The ports of datagrams that learn a hash: with any one of their bits changed they stay above those that need
/// rights, and are hardly anybody's.
pub const PROBE_SOURCE_PORT: u16 = 0xc3a5;
/// Where they go: likewise.
pub const PROBE_DESTINATION_PORT: u16 = 0xc35a;

/// Frames of a transmit ring that no device goes below: igb's and ixgbe's least is 64.
pub const MIN_TRANSMIT_RING_FRAMES: u32 = 64;

/// Frames that wait in a queue in the order they came: 1.6 ms of the longest frames at 1 Gbit/s.
pub const PFIFO_FRAMES: u32 = 128;

/// Seconds between two times that a core adds up its counters of memory: what `TuneD` takes for latency.
pub const STATISTICS_SECONDS: u32 = 10;

/// Cores whose idle states and siblings are recorded: the executor's is one of the first 128 of any machine it is
/// meant for, and each takes some twenty small files.
pub const MAX_PLACE_CORES: usize = 128;

/// Microseconds that an interrupt may be put off before it is worth a word: what an idle state may take.
pub const MODERATION_US: u32 = 20;

/// Frames that a receive ring should hold: 0.7 ms of the shortest ones at 1 Gbit/s.
pub const RECEIVE_RING_FRAMES: u32 = 1_024;

/// Ports that one run of a verification asks at, and from: pairs are their product, 4,096.
pub const MAX_PROBED_PORTS: usize = 64;

/// How often one datagram of a hash that is learnt is asked for: what is lost three times is not lost by chance.
pub(crate) const MAX_QUESTIONS_A_PROBE: u32 = 3;

/// How long an answer may take: a hundred round trips of a loaded machine.
pub const ANSWER_PATIENCE: Duration = Duration::from_millis(200);

/// Questions that are answered in a second at one port: one is on the way at a time, so that no honest asker is faster
/// than a round trip of 50 us.
pub const MAX_ANSWERS_A_SECOND: u32 = 20_000;

/// Wake-ups of one measurement: a quarter of an hour at a thousand a second, 8 MB.
pub const MAX_WAKE_UPS: u32 = 1_000_000;

/// Datagrams of each level that a verification sends: below what any queue holds, so that none is dropped for that.
pub const MAX_SENT_DATAGRAMS: u32 = 100;

/// How long those may take to leave: a hundred full frames at 10 Mbit/s take 121 ms.
pub const TRANSMIT_PATIENCE: Duration = Duration::from_millis(500);
