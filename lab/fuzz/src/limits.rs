//! Every bound of this crate, with its reason.

use std::time::Duration;

/// Longest input, in bytes: two datagrams of the largest size would drown what else is mutated, and
/// most of what there is to find lies in a few hundred bytes.
pub const MAX_INPUT_BYTES: usize = 4096;

/// Operations of one input at most. What takes more to go wrong is the simulator's business.
pub const MAX_OPERATIONS: usize = 64;

/// Steps of all engines that one operation may lead to. A conversation of three engines with a
/// dozen endpoints needs some hundred; an ACKNACK asks for 256 samples at most. Beyond that it is
/// taken for endless.
pub const MAX_STEPS: usize = 20_000;

/// Datagrams on their way between engines, beyond which the network loses new ones.
pub const MAX_FLYING: usize = 512;

/// Endpoints of one kind of one engine or participant: enough to reach the tables' bounds.
pub const MAX_ENDPOINTS: usize = 6;

/// How long one input may take before it counts as a hang. Most take less than a millisecond; a
/// machine that stalls is forgiven a lot.
pub const MAX_INPUT_TIME: Duration = Duration::from_secs(30);
