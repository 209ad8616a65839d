//! Bounds of the world, each with its reason.

use std::time::Duration;

/// Maximum datagram size in bytes: that of UDP over IPv4.
pub const MAX_DATAGRAM_BYTES: usize = isolane_engine::limits::MAX_DATAGRAM_BYTES;

/// Datagrams that a lane of a node holds before it drops. A socket buffer of the default size (208 KiB) holds as many
/// of 1 KiB with the kernel's overhead, rounded down.
pub const LANE_DATAGRAMS: usize = 128;

/// Maximum nodes of a world: addresses 10.0.0.1 to 10.0.255.250.
pub const MAX_NODES: usize = 256 * 250;

/// Delay of datagrams that a node sends to itself.
pub const LOOPBACK_DELAY: Duration = Duration::from_micros(2);

/// Timeout of [`World::until_matched`](crate::World::until_matched): many announcement periods and SEDP repairs, even
/// at a loss of one half.
pub const MATCH_PATIENCE: Duration = Duration::from_secs(120);

/// Number of failed seeds after which [`seeds::for_each`](crate::seeds::for_each) starts no further one.
pub const FAILURES_SHOWN: usize = 3;

/// Number of seeds between two progress messages of a long run: every few seconds.
pub const PROGRESS_SEEDS: u64 = 50;
