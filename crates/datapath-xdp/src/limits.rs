//! Bounds of this crate, each with its reason.

use std::time::Duration;

use crate::socket::BusyPoll;

/// Flows of one interface: a port and a group for each of eight levels, and 48 topics with a dedicated port.
pub const MAX_FLOWS: usize = 64;

/// Receive queues of one interface that can have lanes.
pub const MAX_QUEUES: usize = 8;

/// Lanes of one queue: one per level.
pub const MAX_LANES: usize = 8;

/// Sets of the header cache; a power of two. With [`FLOW_WAYS`] the cache holds 1,024 flows: a participant's 512
/// matches, at two levels or to two addresses each.
pub const FLOW_SETS: usize = 256;

/// Ways of a cache set. A look-up searches this many entries. If all are in use, a new flow evicts one, which costs a
/// route look-up, never a datagram.
pub const FLOW_WAYS: usize = 4;

/// Netlink datagrams applied by one call. Each is at most 32 KiB, about 200 events or 30 interfaces, so a call takes
/// less than a millisecond.
pub const MAX_FOLLOWED_DATAGRAMS: usize = 8;

/// Netlink datagrams applied by one iteration of the executor loop. An event is one datagram, and a dump continues in
/// the next iteration, so urgent work waits for a fraction of [`MAX_FOLLOWED_DATAGRAMS`].
pub const FOLLOWED_BY_A_LOOK: usize = 2;

/// Calls until all tables are read at the start: enough for 1,024 interfaces, and for twice
/// [`MAX_ROUTES`](isolane_hostnet::limits::MAX_ROUTES) and [`MAX_NEIGHBOURS`](isolane_hostnet::limits::MAX_NEIGHBOURS).
pub const MAX_STARTING_CALLS: usize = 64;

/// Neighbours confirmed by one call, about once a second. The kernel probes each at most three times, so this bounds
/// ARP to a few dozen frames a second.
pub const MAX_CONFIRMATIONS: usize = 8;

/// Entries of one AF_XDP ring: twice the largest ring of common devices, 256 KiB of descriptors.
pub const MAX_RING_ENTRIES: u32 = 16_384;

/// Smallest receive ring that a description may ask for: two bursts.
pub const MIN_RING_ENTRIES: u32 = 32;

/// Default size of a lane's receive ring.
pub const DEFAULT_RING_ENTRIES: u32 = 256;

/// Default number of a queue's frames reserved for its most critical lane: four bursts.
pub const DEFAULT_CRITICAL_RESERVE: u32 = 64;

/// Highest VLAN id: 4,095 is reserved (IEEE 802.1Q).
pub const MAX_VLAN: u32 = 4_094;

/// Busy polling, if a description enables it. The budget is four bursts of the highest level, so that other levels do
/// not wait long.
pub const BUSY_POLL: BusyPoll = BusyPoll {
    microseconds: 20,
    budget: 64,
};

/// Chunks of a UMEM, 128 MiB at the usual size: four times what the fill, completion and lane rings of one queue can
/// hold.
pub const MAX_CHUNKS: u32 = 65_536;

/// Alignment of a UMEM.
pub const PAGE_BYTES: usize = 4_096;

/// Bytes that the kernel reserves before each received frame (`XDP_PACKET_HEADROOM`).
pub const KERNEL_HEAD_ROOM_BYTES: usize = 256;

/// Time to wait for a queue bound by another socket. The kernel releases a dead process's queue after 50 to 65 ms,
/// later on a loaded machine.
pub const BIND_PATIENCE: Duration = Duration::from_millis(200);

/// Interval of the attempts within [`BIND_PATIENCE`].
pub const BIND_RETRY: Duration = Duration::from_millis(5);

/// Frames sent by one system call in copy mode (`TX_BATCH_SIZE` of the kernel).
pub const FRAMES_A_KICK: u32 = 32;

/// Additional system calls of one kick: each frame that a driver refuses ends one call. With more refusals, the rest
/// waits for the next kick.
pub const SPARE_KICKS: u32 = 8;

/// Maximum number of flows that share a port: groups of eight levels and a few sources. Each adds some nanoseconds to
/// the classifier's search, for every frame to the port.
pub const MAX_FLOWS_PER_PORT: usize = 16;

/// Shortest budget period. A timer expiry costs about one microsecond of CPU time, 1 % of this period.
pub const MIN_PERIOD: Duration = Duration::from_micros(100);

/// Longest budget period. A flood can exhaust a budget at once; the flow is then blocked for the rest of the period.
pub const MAX_PERIOD: Duration = Duration::from_secs(10);

/// Bytes of the verifier's log quoted in an error: its last lines name the instruction.
pub const VERIFIER_LOG_BYTES: usize = 600;

/// Owners of a foreign program listed in an error.
pub const MAX_NAMED_OWNERS: usize = 4;

/// Bytes reserved before the payload of a lane's transmit frame. Ethernet, one tag, IPv4 and UDP take 46; the next
/// multiple of 16 keeps payloads aligned.
pub const FRAME_HEAD_ROOM_BYTES: usize = 48;

/// Bytes of an Ethernet header with two tags, which an MTU excludes.
pub const LINK_HEADER_BYTES: usize = 14 + 2 * 4;

/// Frames of a lane for datagrams larger than its chunks. A kernel socket sends and copies these datagrams before its
/// call returns, so few are in use at a time.
pub const OVERSIZE_FRAMES: usize = 4;

/// Flows of topics with a dedicated port, over all lanes: [`MAX_FLOWS`] less a port and a group per level.
pub const MAX_TOPIC_FLOWS: usize = MAX_FLOWS - 2 * MAX_LANES;

/// Chunks returned to the device by one refill: a few bursts, so that a call stays bounded when many chunks return at
/// once.
pub const MAX_REFILL: usize = 64;

/// Completions taken by one poll of a completion ring; bounded for the same reason as [`MAX_REFILL`].
pub const MAX_COMPLETED: usize = 64;

/// Number of outstanding frames over all lanes from which a lane that sends a single frame polls for completions. This
/// amortises the fixed cost of a poll. A lane with few frames polls at a quarter of them.
pub const COMPLETED_BURST: usize = 8;

/// Returned chunks collected before a refill, while the device has most of its chunks. This amortises the fixed cost
/// of a refill; a queue has many more chunks.
pub const REFILL_BURST: usize = 8;

/// Waiting frames of less critical lanes reclaimed by one call: one burst.
pub const MAX_RECYCLED: usize = 16;

/// Bytes of the largest packet a lane can receive: the largest chunk (a page) less the kernel's head room and an
/// Ethernet header with two tags.
pub const LANE_MTU_BYTES: u32 = (4_096 - KERNEL_HEAD_ROOM_BYTES - LINK_HEADER_BYTES) as u32;

/// Attempts to load a program whose verification is interrupted. On a busy machine, a few loads in a thousand are
/// interrupted, so ten in a row practically never happen.
pub const LOAD_ATTEMPTS: usize = 10;
