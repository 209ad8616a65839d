//! Bounds of the world, each with its reason.

use std::time::Duration;

/// Maximum size of a datagram in bytes: that of UDP over IPv4.
pub const MAX_DATAGRAM_BYTES: usize = isolane_rtps::limits::MAX_DATAGRAM_BYTES;

/// Capacity of a node's lane in datagrams, in the order of a default socket buffer: 208 KiB for 90 datagrams of 1 KiB.
pub const LANE_DATAGRAMS: usize = 128;

/// Maximum number of nodes: addresses 10.0.0.1 to 10.0.255.250.
pub const MAX_NODES: usize = 256 * 250;

/// Delay of the loopback path of a node.
pub const LOOPBACK_DELAY: Duration = Duration::from_micros(2);

/// Time limit of [`World::until_matched`](crate::World::until_matched). Many announcement periods and SEDP repairs at a
/// loss of one half fit in it.
pub const MATCH_PATIENCE: Duration = Duration::from_secs(120);

/// Number of failing seeds after which [`seeds::for_each`](crate::seeds::for_each) starts no further one.
pub const FAILURES_SHOWN: usize = 3;

/// Number of seeds between two progress messages of a long run.
pub const PROGRESS_SEEDS: u64 = 50;
