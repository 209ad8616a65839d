//! Every bound of the world, with its reason.

use std::time::Duration;

/// Bytes of the largest datagram a node can make or send: what UDP over IPv4 carries.
pub const MAX_DATAGRAM_BYTES: usize = isolane_engine::limits::MAX_DATAGRAM_BYTES;

/// Datagrams a lane of a node holds before it drops: as many small ones as a socket buffer of
/// default size (208 KiB) holds of 1 KiB with the kernel's overhead, rounded down.
pub const LANE_DATAGRAMS: usize = 128;

/// Nodes of one world: addresses 10.0.0.1 to 10.0.255.250.
pub const MAX_NODES: usize = 256 * 250;

/// How long the loop back to the sending node itself takes.
pub const LOOPBACK_DELAY: Duration = Duration::from_micros(2);

/// How long [`World::until_matched`](crate::World::until_matched) waits. Several announcement
/// periods and SEDP repairs at a loss of one half fit in it many times.
pub const MATCH_PATIENCE: Duration = Duration::from_secs(120);

/// Failing seeds after which [`seeds::for_each`](crate::seeds::for_each) starts no further one.
pub const FAILURES_SHOWN: usize = 3;

/// Seeds after which a long run of them says how far it is: every few seconds.
pub const PROGRESS_SEEDS: u64 = 50;
