//! Every bound of this crate, with its reason.

/// Flows of one interface: a port and a group for each of eight levels, and 48 topics with a port
/// of their own.
pub const MAX_FLOWS: usize = 64;

/// Receive queues of one interface that lanes are on.
pub const MAX_QUEUES: usize = 8;

/// Lanes of one queue: one a level.
pub const MAX_LANES: usize = 8;
