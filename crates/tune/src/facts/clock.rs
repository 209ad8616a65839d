//! How well a machine's clock is kept.

use serde::{Deserialize, Serialize};

use super::ptp::{DeviceClock, Ptp};

/// How well the kernel's clock is kept: as those who keep it have told the kernel, as ptp4l tells, and as was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Clock {
    /// Whether somebody keeps it.
    pub is_kept: Option<bool>,
    /// How far it may be off, in microseconds.
    pub maximum_error_us: Option<u64>,
    /// How far it is thought to be off, in microseconds.
    pub estimated_error_us: Option<u64>,
    /// Seconds that the kernel was told TAI is ahead of UTC; 0: it was told nothing.
    pub tai_offset_s: Option<i32>,
    /// What ptp4l tells.
    pub ptp: Option<Ptp>,
    /// Why ptp4l, which runs, tells nothing.
    pub ptp_silence: Option<String>,
    /// Devices' clocks that could be read.
    pub devices: Vec<DeviceClock>,
}
