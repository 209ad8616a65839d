//! Bounds of this crate, with their reasons.

use std::time::Duration;

/// Maximum length of an input in bytes. Most bugs need a few hundred bytes. In much longer inputs, most mutations would
/// change nothing of interest.
pub const MAX_INPUT_BYTES: usize = 4096;

/// Maximum number of operations of one input. The simulator tests longer runs.
pub const MAX_OPERATIONS: usize = 64;

/// Maximum number of steps of all local participants per operation; more steps count as an endless loop. Three
/// participants with a dozen endpoints need a few hundred steps, and an ACKNACK requests at most 256 samples.
pub const MAX_STEPS: usize = 20_000;

/// Maximum number of datagrams in flight between local participants; the network loses further datagrams.
pub const MAX_FLYING: usize = 512;

/// Maximum number of writers, and of readers, of each participant: enough to fill the tables.
pub const MAX_ENDPOINTS: usize = 6;

/// Time after which an input counts as a hang. Most inputs take less than a millisecond, but machines stall.
pub const MAX_INPUT_TIME: Duration = Duration::from_secs(30);
