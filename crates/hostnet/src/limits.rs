//! Every bound of this crate, with its reason.

use std::time::Duration;

/// Bytes of one netlink datagram: the most the kernel fills at once.
pub const NETLINK_DATAGRAM_BYTES: usize = 32 << 10;

/// Datagrams of one answer: a list of the queues of hundreds of devices, some 100 to a datagram.
pub const MAX_NETLINK_DATAGRAMS: usize = 1_024;

/// How long a datagram of an answer by netlink is waited for: one that never comes. It does not end the kernel's own
/// work: questions are answered while they are sent, and the parts of lists while they are received, both perhaps
/// behind the lock of all devices; a driver that hangs with it keeps this process, as it keeps `ip` and `ethtool`.
pub const NETLINK_PATIENCE: Duration = Duration::from_secs(20);

/// How often a list is asked for that changes while it is told: container hosts make devices by the
/// second, and a list takes milliseconds.
pub const MAX_NETLINK_QUESTIONS: usize = 8;

/// Netlink datagrams of one answer about queues or NAPI instances: of 32 KiB each, room for
/// thousands of queues.
pub const MAX_NETDEV_ANSWERS: usize = 64;

/// NAPI instances of one device that are looked at: one a queue, on servers as many as cores.
pub const MAX_NAPI_INSTANCES: usize = 256;

/// The longest a frame may wait for a poll where interrupts are put off: beyond a millisecond no
/// critical topic has a use for it.
pub const MAX_POLL_WAIT: Duration = Duration::from_millis(1);

/// Polls without a frame before interrupts come again: with [`MAX_POLL_WAIT`] a tenth of a second
/// after the last frame at most, so that an idle device costs nothing.
pub const MAX_IDLE_POLLS: u32 = 100;

/// How long to look for the threads of NAPI instances that were just switched on: the kernel starts
/// them within the call.
pub const NAPI_THREAD_PATIENCE: Duration = Duration::from_millis(200);

/// Entries of a receive hash's table: devices have 16 to 2,048.
pub const MAX_HASH_ENTRIES: u32 = 16_384;

/// Bytes of its key: devices have 40 to 52.
pub const MAX_HASH_KEY_BYTES: u32 = 1_024;

/// Steering rules of a device that are looked at: the largest tables have 8,192, and mostly empty. So many places
/// are taken for there, too, where a driver does not say how many it has.
pub const MAX_STEERING_RULES: u32 = 8_192;

/// Queues whose landings are told apart: a socket each for every port that is looked at. What lands on
/// others is counted as landing on none that is known.
pub const MAX_LANDING_QUEUES: u32 = 64;
