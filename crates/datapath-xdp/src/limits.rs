//! Every bound of this crate, with its reason.

use std::time::Duration;

/// Flows of one interface: a port and a group for each of eight levels, and 48 topics with a port
/// of their own.
pub const MAX_FLOWS: usize = 64;

/// Receive queues of one interface that lanes are on.
pub const MAX_QUEUES: usize = 8;

/// Lanes of one queue: one a level.
pub const MAX_LANES: usize = 8;

/// Sets of flows whose headers are remembered; a power of two. With [`FLOW_WAYS`] 1,024 flows: the
/// engine's 512 matches, at two levels or to two addresses each.
pub const FLOW_SETS: usize = 256;

/// Flows of a set. A flow looks for itself among so many, and takes another's place when all are
/// taken: that costs a look-up, never the datagram.
pub const FLOW_WAYS: usize = 4;

/// Netlink datagrams taken in by one call: of 32 KiB at most, some 200 events or 30 interfaces
/// each, so that a call stays below a millisecond.
pub const MAX_FOLLOWED_DATAGRAMS: usize = 8;

/// Of these, those that one look of the loop takes in: an event is a datagram, and a table's answer
/// goes on with the next look, so that what became urgent meanwhile waits for a fraction of that.
pub const FOLLOWED_BY_A_LOOK: usize = 2;

/// Calls until everything is known at the start: room for 1,024 interfaces, [`MAX_ROUTES`](isolane_hostnet::limits::MAX_ROUTES) and
/// [`MAX_NEIGHBOURS`](isolane_hostnet::limits::MAX_NEIGHBOURS) twice over.
pub const MAX_STARTING_CALLS: usize = 64;

/// Neighbours that the kernel is asked to confirm by one call, about once a second: it asks each at
/// most three times, so this bounds ARP to some dozen frames a second.
pub const MAX_CONFIRMATIONS: usize = 8;

/// Entries of one AF_XDP ring at most: twice the largest ring of common devices, 256 KiB of
/// descriptors.
pub const MAX_RING_ENTRIES: u32 = 16_384;

/// Chunks of memory shared with the kernel at most, 128 MiB of the usual size: four times what fill,
/// completion and all lanes' rings of one queue can hold.
pub const MAX_CHUNKS: u32 = 65_536;

/// Memory shared with the kernel begins on pages of this size.
pub const PAGE_BYTES: usize = 4_096;

/// Bytes that the kernel leaves free in front of each received frame (`XDP_PACKET_HEADROOM`).
pub const KERNEL_HEAD_ROOM_BYTES: usize = 256;

/// How long a queue is waited for that another socket has: the kernel lets go of a dead program's
/// queue 50 to 65 ms after its end, later on a loaded machine.
pub const BIND_PATIENCE: Duration = Duration::from_millis(200);

/// How often it is tried meanwhile.
pub const BIND_RETRY: Duration = Duration::from_millis(5);

/// Frames that one system call sends in copy mode (`TX_BATCH_SIZE` of the kernel).
pub const FRAMES_A_KICK: u32 = 32;

/// System calls of one kick beyond those that its frames take: each frame that a driver refuses ends
/// one. With more refusals than that, the rest waits for the next kick.
pub const SPARE_KICKS: u32 = 8;

/// Flows that share a port: groups of eight levels and a few sources. Each is a step of the
/// classifier's search, of some nanoseconds, for every frame to the port.
pub const MAX_FLOWS_PER_PORT: usize = 16;

/// The shortest period of a budget. A timer that fires takes about a microsecond of a processor: a
/// hundredth of this period.
pub const MIN_PERIOD: Duration = Duration::from_micros(100);

/// The longest period of a budget. A flood may use up a budget at once, and the flow is then without
/// for so long.
pub const MAX_PERIOD: Duration = Duration::from_secs(10);

/// Bytes of the verifier's log that an error quotes: its last lines name the instruction.
pub const VERIFIER_LOG_BYTES: usize = 600;

/// Processes that are named as owners of a foreign program.
pub const MAX_NAMED_OWNERS: usize = 4;

/// Bytes kept free in front of what is filled into a frame that a lane sends: Ethernet, one tag, IPv4
/// and UDP are 46; the next multiple of 16 keeps payloads aligned.
pub const FRAME_HEAD_ROOM_BYTES: usize = 48;

/// Bytes of Ethernet and two tags, which an MTU does not count.
pub const LINK_HEADER_BYTES: usize = 14 + 2 * 4;

/// Frames of a lane for datagrams that do not fit its chunks: they leave by the kernel socket, whose
/// call returns when it has copied them, so a burst of protocol work needs no more at a time.
pub const OVERSIZE_FRAMES: usize = 4;

/// Flows of topics with a port of their own, of all lanes: what [`MAX_FLOWS`] leaves when each level
/// has a port and a group.
pub const MAX_TOPIC_FLOWS: usize = MAX_FLOWS - 2 * MAX_LANES;

/// Chunks that one refill gives back to the device at most: a few bursts, so that a call stays
/// bounded when many frames come home at once.
pub const MAX_REFILL: usize = 64;

/// Sent frames taken back by one look at a completion ring, likewise.
pub const MAX_COMPLETED: usize = 64;

/// Frames that the device has, of all lanes, before one that sends a single frame looks for those that
/// are done: what a look costs besides is shared by so many. A lane of few frames looks when the device has
/// a quarter of as many.
pub const COMPLETED_BURST: usize = 8;

/// Chunks that come home before they are given back to a device that has most of its chunks: what
/// giving costs besides is shared by so many, and they are few of a queue's.
pub const REFILL_BURST: usize = 8;

/// Waiting frames of less critical lanes that one call takes back at most: as many as a burst.
pub const MAX_RECYCLED: usize = 16;

/// Bytes of the largest packet a lane can receive: what is left of the largest chunk, a page, behind
/// the kernel's head room and the Ethernet header with two tags.
pub const LANE_MTU_BYTES: u32 = (4_096 - KERNEL_HEAD_ROOM_BYTES - LINK_HEADER_BYTES) as u32;

/// How often the kernel is asked to take a program whose verification was interrupted: that happens to
/// a few of a thousand on a busy machine, so to this many in a row never.
pub const LOAD_ATTEMPTS: usize = 10;
