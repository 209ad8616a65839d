//! Bounds of this crate, with their reasons.

/// Frames per system call: enough to share the call's cost, few enough that a batch's buffers stay in the cache.
pub const BATCH_FRAMES: usize = 64;

/// Receive batches taken from one direction before the relay checks its timers. It bounds how long the other direction
/// and due departures wait.
pub const BATCHES_PER_LOOK: usize = 4;

/// Receive batches a direction takes when it stops, so that unread frames are counted. They suffice for a full receive
/// buffer of short frames. Without a bound, the stop would not end during a flood.
pub const FINAL_BATCHES: usize = 2048;

/// Bytes of a frame slot of the cable. An Ethernet frame of MTU 1500 with two VLAN tags has 1522. Longer frames were
/// left unsegmented by their host; they are dropped and counted.
pub const SLOT_BYTES: usize = 2048;

/// Maximum queue length of one direction, in frames: 20 s of full frames at 40 Mbit/s.
pub const MAX_QUEUE_FRAMES: u32 = 65_536;

/// Receive buffer of the cable in bytes. The relay may be delayed by 15 ms on a shared machine; 64 MiB are far more
/// than two veth ends deliver in that time.
pub const CABLE_RECEIVE_BYTES: u32 = 64 << 20;

/// Send buffer of the cable in bytes, for frames the host has not taken.
pub const CABLE_SEND_BYTES: u32 = 8 << 20;

/// Maximum number of frames in flight on each queue of a steering cable, a power of two. About as many may wait on a
/// core for a veth without a ring (`netdev_max_backlog`).
pub const QUEUE_FRAMES: u32 = 1_024;

/// Attempts of a steering cable to open a device queue, 200 ms apart: the kernel releases the queues of an ended cable
/// with a delay.
pub const QUEUE_OPEN_ATTEMPTS: u32 = 10;

/// Maximum number of timestamped rounds: 1,000 s at 10 kHz. The parent keeps 72 bytes of each, 720 MB in all.
pub const MAX_SAMPLES: u32 = 10_000_000;

/// Maximum size of a message that a system under test writes or reads, in bytes.
pub const MAX_SYSTEM_MESSAGE_BYTES: u32 = 1 << 20;

/// Rounds in a row group of a data set. The writer keeps a column of the group in memory, 1 MB.
pub const ROW_GROUP_ROUNDS: usize = 1 << 17;

/// Maximum duration of a run in seconds, one day.
pub const MAX_RUN_SECONDS: u32 = 86_400;

/// Maximum pings or samples per second. From about 100,000 on, the sender's own work determines the times. Late pings, or
/// fewer samples per second, show a rate that was not reached.
pub const MAX_RATE_HZ: u32 = 1_000_000;

/// Maximum LATENCY_BUDGET of a throughput run in microseconds, ten seconds.
pub const MAX_LATENCY_BUDGET_US: u64 = 10_000_000;

/// Minimum rate of a scenario's link in bits per second. At a lower rate a full frame is on the wire for over a second.
pub const MIN_LINK_BITS_PER_S: u64 = 10_000;

/// Maximum rate of a scenario's link in bits per second. No relay reaches a higher rate.
pub const MAX_LINK_BITS_PER_S: u64 = 100_000_000_000;

/// Minimum wire rate of a scenario's flood, as a multiple of the link's rate. A smaller one disturbs nothing.
pub const MIN_FLOOD_FACTOR: f64 = 0.01;

/// Maximum number of UDP streams of a flood in one direction (default: 25).
pub const MAX_STREAMS: u16 = 64;

/// Maximum duration of a flood, in seconds.
pub const MAX_FLOOD_SECONDS: u32 = 900;

/// Maximum number of datagrams of a flood in one direction.
pub const MAX_FLOOD_DATAGRAMS: u64 = 200_000_000;

/// UDP payload in bytes that fits an MTU of 1500 unfragmented. A flood of fragments is a different disturbance.
pub const MAX_FLOOD_PAYLOAD_BYTES: u32 = 1472;

/// Maximum lateness, in nanoseconds, at which a flood sender still sends a due datagram. Datagrams due earlier count as
/// missed. Sent at once, they would be a burst that 25 paced streams never make.
pub const FLOOD_CATCH_UP_NS: u64 = 20_000_000;

/// Receive buffer of each flood sink socket in bytes. Datagrams wait there while more urgent work uses the hosts' core.
pub const SINK_RECEIVE_BYTES: u32 = 4 << 20;

/// Maximum number of storm sockets on each host. Each is a descriptor, and a process has 1,024 by default.
pub const MAX_STORM_SOCKETS: u16 = 800;

/// Maximum storm rate in frames per second, each direction. With 250 sockets a frame costs a core tens of microseconds,
/// and a core that does nothing else starves the machine.
pub const MAX_STORM_FRAMES_PER_S: f64 = 50_000.0;

/// Receive buffer of each storm socket in bytes: room for a few datagrams, which are counted and read only at the end.
pub const STORM_RECEIVE_BYTES: u32 = 8 << 10;

/// Maximum length of a child's message in bytes: the cable's timestamps of [`MAX_SAMPLES`] rounds, 36 bytes each.
pub const MAX_CHILD_MESSAGE_BYTES: u64 = 512 << 20;

/// Time limit in seconds for a child to become ready. Opening sockets and locking memory take milliseconds; the rest is
/// for a loaded machine.
pub const CHILD_READY_SECONDS: u64 = 20;

/// Time limit in seconds for a child to hand over its result after it was stopped.
pub const CHILD_FINISH_SECONDS: u64 = 30;

/// Minimum number of samples beyond a percentile. With fewer, the percentile is not stated.
pub const SAMPLES_BEYOND_PERCENTILE: usize = 10;

/// Header bytes in front of a round trip's message: Ethernet (14), IPv4 (20), UDP (8), the RTPS header (20), INFO_TS
/// (12), the head of DATA (24) and the encapsulation header (4).
pub const MESSAGE_HEADS_BYTES: u32 = 102;

/// Maximum serialised size of a round trip's message in bytes. The cable recognises only messages in one frame. With
/// the headers of RTPS (60 bytes), UDP and IP (28), the message therefore fits an MTU of 1500.
pub const MAX_RTT_MESSAGE_BYTES: u32 = 1_400;

/// Time limit in seconds for both ends of a scenario to match. First announcements are 100 ms apart, and a flood may
/// lose a few.
pub const MATCH_SECONDS: u64 = 10;

/// Domains of runs over 127.0.0.1: unlikely to be used by the machine's applications, with ports (RTPS 2.5 §9.6.2:
/// 27,400 to 32,400) below the ephemeral range.
pub const LOOPBACK_DOMAINS: std::ops::Range<u32> = 80..100;

/// Time in milliseconds after the last ping until pings without a pong count as lost.
pub const LOST_AFTER_MS: u64 = 500;

/// Receive buffer of a capture in bytes: tens of milliseconds of a loaded link, so that a scrolling terminal loses
/// nothing.
pub const LISTEN_BUFFER_BYTES: u32 = 16 << 20;

/// Bytes of a frame that a capture copies: the largest IP packet behind an Ethernet header with two tags. Frames longer
/// than the MTU occur because the kernel hands them to segmentation hardware in one piece.
pub const LISTEN_FRAME_BYTES: usize = 65_535 + 22;

/// Maximum readers of a throughput run. A writer's datagram has a copy for each, all on one core.
pub const MAX_READERS: u8 = 16;
