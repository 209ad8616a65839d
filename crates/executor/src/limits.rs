//! Every bound of this crate, with its reason.

/// Priorities: 0 to 31. Data, protocol, discovery and statistics take 16; callbacks of a user
/// may be placed around them; and the ready set is one word.
pub const PRIORITIES: usize = 32;

/// The most urgent priority.
pub const MAX_PRIORITY: u8 = PRIORITIES as u8 - 1;

/// Bytes of a job's name: "receive level 7" or a topic's name, shortened.
pub const MAX_NAME_BYTES: usize = 48;

/// Jobs in one table at most: lists are linked by 16-bit indexes, one value means "none".
pub const MAX_JOBS: usize = u16::MAX as usize;

/// Jobs of a default table: 16 levels of receiving and sending, and some 200 topics.
pub const DEFAULT_JOBS: usize = 256;

/// Past activations remembered, to say who was running at an instant that is learnt of late (an
/// arrival stamped by the kernel, a deadline), and how many of lower priority began since. More
/// than any burst of activations between two looks at the sources, and few enough to be searched
/// where there is something to count.
pub const REMEMBERED_ACTIVATIONS: usize = 64;
