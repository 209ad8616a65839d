//! Every bound of this crate, with its reason.

/// Frames moved by one system call: enough that its cost is shared, few enough that a batch's
/// buffers stay in the cache.
pub const BATCH_FRAMES: usize = 64;

/// Receive batches taken from one direction before the relay looks at its timers again. The other
/// direction and due departures wait for at most this much work.
pub const BATCHES_PER_LOOK: usize = 4;

/// Receive batches a direction takes when it is told to stop, so that unread frames are counted: a
/// full receive buffer of short frames, and an end also under a flood that was not stopped first.
pub const FINAL_BATCHES: usize = 2048;

/// Bytes of a frame slot of the cable. An Ethernet frame of MTU 1500 with two VLAN tags has 1522;
/// anything longer was left unsegmented by its host and is dropped, counted.
pub const SLOT_BYTES: usize = 2048;

/// The longest queue of one direction, in frames. At 40 Mbit/s and full frames this is 20 s.
pub const MAX_QUEUE_FRAMES: u32 = 65_536;

/// Frames that may be on the way in one direction at a time because of delay. Configurations that
/// could exceed it are refused, so that memory is bounded and nothing is dropped for want of it.
pub const MAX_IN_FLIGHT: u64 = 65_536;

/// Kernel memory for frames that arrived at the cable and were not read yet. The relay may be held
/// up for 15 ms on a shared machine; 64 MiB are far more than two veth ends deliver in that time.
pub const CABLE_RECEIVE_BYTES: u32 = 64 << 20;

/// Kernel memory for frames the cable sent and the host has not taken yet.
pub const CABLE_SEND_BYTES: u32 = 8 << 20;

/// Frames of a steering cable that are on their way to the host, on each queue: what a veth without a
/// ring of its own lets wait on a core (`netdev_max_backlog`). A power of two.
pub const QUEUE_FRAMES: u32 = 1_024;

/// How often a steering cable asks for the queue of its device, 200 ms each time: the kernel takes its
/// time to let go of the queues of a cable that has just ended.
pub const QUEUE_OPEN_ATTEMPTS: u32 = 10;

/// Rounds the cable and the recorders stamp at most: ten minutes at 2 kHz, 48 MB of stamps.
pub const MAX_SAMPLES: u32 = 1_200_000;

/// UDP streams of a flood in one direction (definitions: 25).
pub const MAX_STREAMS: u16 = 64;

/// A flood never lasts longer than this, whatever its owner does.
pub const MAX_FLOOD_SECONDS: u32 = 900;

/// A flood never sends more datagrams than this in one direction.
pub const MAX_FLOOD_DATAGRAMS: u64 = 200_000_000;

/// UDP payload that fits an MTU of 1500 unfragmented: a flood of fragments is another disturbance.
pub const MAX_FLOOD_PAYLOAD_BYTES: u32 = 1472;

/// When a flood sender is held up longer than this, what it could not send is given up and counted
/// as missed: caught up at once it would be a burst no 25 paced streams make.
pub const FLOOD_CATCH_UP_NS: u64 = 20_000_000;

/// Kernel memory of each flood sink socket: sinks share the hosts' core with more urgent work.
pub const SINK_RECEIVE_BYTES: u32 = 4 << 20;

/// Sockets of a storm on each host: each is a descriptor, of which a process has 1,024 without asking.
pub const MAX_STORM_SOCKETS: u16 = 800;

/// Frames a second of a storm, each way: with 250 sockets each costs a core tens of microseconds, and
/// a core that does nothing else starves the machine.
pub const MAX_STORM_FRAMES_PER_S: f64 = 50_000.0;

/// Kernel memory of each socket of a storm: room for a few datagrams, since they are counted and not
/// read before the end.
pub const STORM_RECEIVE_BYTES: u32 = 8 << 10;

/// The longest line a child may print: the stamps of [`MAX_SAMPLES`] rounds seen by the cable, as
/// text.
pub const MAX_CHILD_LINE_BYTES: usize = 256 << 20;

/// How long a child has to say that it is ready: opening sockets and locking memory take
/// milliseconds; a loaded machine is given seconds.
pub const CHILD_READY_SECONDS: u64 = 20;

/// How long a child has to print its result after being asked to stop.
pub const CHILD_FINISH_SECONDS: u64 = 30;

/// A percentile is stated only with at least this many samples beyond it (definitions).
pub const SAMPLES_BEYOND_PERCENTILE: usize = 10;

/// Bytes of a frame in front of a round trip's message: Ethernet (14), IPv4 (20), UDP (8), the RTPS header (20),
/// INFO_TS (12), the head of DATA (24) and the encapsulation header (4).
pub const MESSAGE_HEADS_BYTES: u32 = 102;

/// Serialised bytes of a round trip's message at most: with RTPS (60 bytes), UDP and IP heads (28) it
/// fits an MTU of 1500. The cable knows a message in one frame only.
pub const MAX_RTT_MESSAGE_BYTES: u32 = 1_400;

/// How long the two ends of a scenario have to find each other: first announcements are 100 ms
/// apart, and a few may be lost in a flood.
pub const MATCH_SECONDS: u64 = 10;

/// The domains of runs over 127.0.0.1: not those that applications of the machine are likely to use,
/// and with ports (RTPS 2.5 §9.6.2: 27,400 to 32,400) below those the kernel gives away.
pub const LOOPBACK_DOMAINS: std::ops::Range<u32> = 80..100;

/// A ping without a pong so long after the last one was sent is lost (definitions).
pub const LOST_AFTER_MS: u64 = 500;

/// Kernel memory for frames a listener has not read yet: tens of milliseconds of a loaded link, so
/// that a terminal that scrolls loses nothing.
pub const LISTEN_BUFFER_BYTES: u32 = 16 << 20;

/// Bytes of a frame that a listener copies: the largest IP packet behind an Ethernet header with two
/// tags. Longer ones are what a host hands to segmentation hardware in one piece.
pub const LISTEN_FRAME_BYTES: usize = 65_535 + 22;
