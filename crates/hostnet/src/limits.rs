//! Bounds of this crate, each with its reason.

use std::time::Duration;

/// Bytes of one netlink datagram: the most the kernel fills at once.
pub const NETLINK_DATAGRAM_BYTES: usize = 32 << 10;

/// Maximum datagrams of one answer: the queues of hundreds of devices, some 100 per datagram.
pub const MAX_NETLINK_DATAGRAMS: usize = 1_024;

/// Longest wait for the next datagram of an answer. It does not bound the kernel's own work in the send and receive
/// calls, which may wait for the lock of all devices. A driver that hangs with that lock blocks this process, as it
/// blocks `ip` and `ethtool`.
pub const NETLINK_PATIENCE: Duration = Duration::from_secs(20);

/// Maximum attempts at a dump whose table changes meanwhile. Container hosts create devices every second; a dump takes
/// milliseconds.
pub const MAX_NETLINK_DUMPS: usize = 8;

/// Maximum IPv4 routes in the snapshot, including the table `local`. A host with more is a router, whose traffic takes
/// the kernel's path. An uncached look-up scans them all, in about a microsecond.
pub const MAX_ROUTES: usize = 512;

/// Maximum neighbours of a link in the snapshot: the kernel's own hard limit (`gc_thresh3`).
pub const MAX_NEIGHBOURS: usize = 1_024;

/// Maximum IPv4 addresses of a link: in practice one per network.
pub const MAX_ADDRESSES: usize = 16;

/// Maximum NAPI instances of a device: one per queue, on servers as many as cores.
pub const MAX_NAPI_INSTANCES: usize = 256;

/// Longest wait of a frame for a poll while interrupts are deferred: critical topics cannot tolerate more.
pub const MAX_POLL_WAIT: Duration = Duration::from_millis(1);

/// Maximum polls without a frame before interrupts are enabled again. With [`MAX_POLL_WAIT`], polling ends at most a
/// tenth of a second after the last frame, so an idle device costs nothing.
pub const MAX_IDLE_POLLS: u32 = 100;

/// Longest wait for the threads of NAPI instances after the switch: the kernel starts them within the call.
pub const NAPI_THREAD_PATIENCE: Duration = Duration::from_millis(200);

/// Maximum entries of an RSS indirection table: devices have 16 to 2,048.
pub const MAX_HASH_ENTRIES: u32 = 16_384;

/// Maximum bytes of an RSS key: devices have 40 to 52.
pub const MAX_HASH_KEY_BYTES: u32 = 1_024;

/// Maximum ntuple rules of a device: the largest tables have 8,192 locations, mostly empty. Also the capacity assumed
/// if a driver reports none.
pub const MAX_STEERING_RULES: u32 = 8_192;

/// Maximum receive queues that a probe socket distinguishes, with one socket each. Datagrams of other queues count as
/// of unknown queue.
pub const MAX_PROBED_QUEUES: u32 = 64;
