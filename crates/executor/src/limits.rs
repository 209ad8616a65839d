//! Bounds of this crate, each with its reason.

/// Number of priorities. Data, protocol, discovery and statistics use 16, which leaves room for user callbacks;
/// the ready set fits one word.
pub const PRIORITIES: usize = 32;

/// Highest priority.
pub const MAX_PRIORITY: u8 = PRIORITIES as u8 - 1;

/// Maximum length of a job name in bytes: "receive level 7", or a shortened topic name.
pub const MAX_NAME_BYTES: usize = 48;

/// Maximum number of jobs in a table: lists use 16-bit indices, one of which means "none".
pub const MAX_JOBS: usize = u16::MAX as usize;

/// Default number of jobs: 16 levels of receiving and sending, and about 200 topics.
pub const DEFAULT_JOBS: usize = 256;

/// Number of past activations kept. They show which job ran at an earlier instant (a kernel's receive stamp, a
/// deadline), and the lower-priority activations since. The number exceeds a burst of activations between two polls,
/// and is small enough to search.
pub const REMEMBERED_ACTIVATIONS: usize = 64;
