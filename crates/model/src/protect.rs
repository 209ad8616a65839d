//! Budgets that all receivers of a host share, `[host.NAME.protect]`.

use core::num::NonZeroU32;
use core::time::Duration;

use crate::source::Sourced;

/// Budgets of a host's interface. If both budgets are absent, frames are not counted.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HostProtection {
    /// Budget that all topics of the host share.
    pub topics: Option<InterfaceBudget>,
    /// Budget of all other traffic of the host.
    pub others: Option<OthersBudget>,
}

/// Budget in frames per period, partly reserved for the most critical level.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InterfaceBudget {
    /// Number of frames that may pass in one period.
    pub capacity: Sourced<NonZeroU32>,
    /// Replenishment period.
    pub period: Sourced<Duration>,
    /// Number of frames of the capacity that are reserved for the highest level in use; at most the capacity.
    pub reserved: Sourced<u32>,
}

/// Budget in frames per period.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OthersBudget {
    /// Number of frames that may pass in one period.
    pub capacity: Sourced<NonZeroU32>,
    /// Replenishment period.
    pub period: Sourced<Duration>,
}
