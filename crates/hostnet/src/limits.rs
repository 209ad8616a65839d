//! Bounds of this crate, each with its reason.

use std::time::Duration;

/// Bytes of one netlink datagram: the most the kernel fills at once.
pub const NETLINK_DATAGRAM_BYTES: usize = 32 << 10;

/// Datagrams of one answer: the queues of hundreds of devices, some 100 to a datagram.
pub const MAX_NETLINK_DATAGRAMS: usize = 1_024;

/// Time without a datagram after which an answer is given up. It does not bound the kernel's own
/// work, which is done within the calls that send and receive, perhaps behind the lock of all
/// devices: a driver that hangs with the lock keeps this process, as it keeps `ip` and `ethtool`.
pub const NETLINK_PATIENCE: Duration = Duration::from_secs(20);

/// Attempts at a dump that changes meanwhile. Container hosts make devices by the second; a dump
/// takes milliseconds.
pub const MAX_NETLINK_DUMPS: usize = 8;

/// IPv4 routes that are followed, with those of the table `local`. A host with more is a router,
/// whose traffic takes the kernel's way. A look-up that is not cached passes them all, about a
/// microsecond.
pub const MAX_ROUTES: usize = 512;

/// Neighbours of a link that are followed: the number above which the kernel itself collects them
/// at once (`gc_thresh3`).
pub const MAX_NEIGHBOURS: usize = 1_024;

/// IPv4 addresses of a link: in practice one a network.
pub const MAX_ADDRESSES: usize = 16;

/// NAPI instances of a device: one a queue, on servers as many as cores.
pub const MAX_NAPI_INSTANCES: usize = 256;

/// Longest wait of a frame for a poll where interrupts are deferred: no critical topic can use more.
pub const MAX_POLL_WAIT: Duration = Duration::from_millis(1);

/// Polls without a frame before interrupts are enabled again: with [`MAX_POLL_WAIT`] at most a tenth
/// of a second after the last frame, so that an idle device costs nothing.
pub const MAX_IDLE_POLLS: u32 = 100;

/// Wait for the threads of NAPI instances that were just switched: the kernel starts them within
/// the call.
pub const NAPI_THREAD_PATIENCE: Duration = Duration::from_millis(200);

/// Entries of an RSS indirection table: devices have 16 to 2,048.
pub const MAX_HASH_ENTRIES: u32 = 16_384;

/// Bytes of an RSS key: devices have 40 to 52.
pub const MAX_HASH_KEY_BYTES: u32 = 1_024;

/// Ntuple rules of a device: the largest tables have 8,192 places, mostly empty. Also the capacity
/// assumed where a driver reports none.
pub const MAX_STEERING_RULES: u32 = 8_192;

/// Receive queues that a probe socket distinguishes, one socket each. A datagram of any other counts
/// as one of no known queue.
pub const MAX_PROBED_QUEUES: u32 = 64;
