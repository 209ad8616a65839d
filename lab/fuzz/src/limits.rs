//! Bounds of this crate, with their reasons.

use std::time::Duration;

/// Maximum length of an input in bytes. Datagrams of the largest size would dominate mutation, and most bugs need a few
/// hundred bytes.
pub const MAX_INPUT_BYTES: usize = 4096;

/// Maximum number of operations of one input; the simulator covers longer runs.
pub const MAX_OPERATIONS: usize = 64;

/// Maximum number of steps of all local participants per operation; more counts as endless. A conversation of three
/// participants with a dozen endpoints needs a few hundred, and an ACKNACK requests at most 256 samples.
pub const MAX_STEPS: usize = 20_000;

/// Maximum number of datagrams in flight between local participants; the network loses further ones.
pub const MAX_FLYING: usize = 512;

/// Maximum number of endpoints of a kind per participant: enough to fill the tables.
pub const MAX_ENDPOINTS: usize = 6;

/// Time limit of one input before it counts as a hang. Most take less than a millisecond; the rest is for machines that
/// stall.
pub const MAX_INPUT_TIME: Duration = Duration::from_secs(30);
