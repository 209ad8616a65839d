//! How well a machine's clock is kept.

use serde::{Deserialize, Serialize};

/// How well the kernel's clock is kept, as those who keep it have told the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Clock {
    /// Whether somebody keeps it.
    pub is_kept: Option<bool>,
    /// How far it may be off, in microseconds.
    pub maximum_error_us: Option<u64>,
    /// How far it is thought to be off, in microseconds.
    pub estimated_error_us: Option<u64>,
}
