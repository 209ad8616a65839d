//! The system calls for which no safe wrapper exists, each behind a safe function or type.
//!
//! This is the only place of the crate with unsafe code, apart from `namespace` (threads that change
//! theirs, the hook between fork and exec). Each file wraps one thing and knows nothing of cables or floods.

pub(crate) mod batch;
pub(crate) mod listen;
pub(crate) mod option;
pub(crate) mod packet;
pub(crate) mod queues;
pub(crate) mod scheduler;
pub(crate) mod signal;
