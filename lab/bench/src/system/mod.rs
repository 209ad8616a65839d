//! System calls without a safe wrapper elsewhere, each behind a safe function or type.
//!
//! Apart from `namespace` (setns in threads, the hook between fork and exec) this is the only module of the crate with
//! unsafe code. No file here depends on cables or floods.

pub(crate) mod batch;
pub(crate) mod listen;
pub(crate) mod option;
pub(crate) mod packet;
pub(crate) mod queues;
pub(crate) mod scheduler;
pub(crate) mod signal;
