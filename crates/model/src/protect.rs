//! Budgets of all receivers of a host together, `[host.NAME.protect]`.

use core::num::NonZeroU32;
use core::time::Duration;

use crate::source::Sourced;

/// Budgets of a host's interface. If both are absent, no frames are counted.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HostProtection {
    /// Budget of all topics together.
    pub topics: Option<InterfaceBudget>,
    /// Budget of all other traffic of the host.
    pub others: Option<OthersBudget>,
}

/// Budget in frames per period, partly reserved for the most critical level.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InterfaceBudget {
    /// Frames let through in one period.
    pub capacity: Sourced<NonZeroU32>,
    /// Replenishment period.
    pub period: Sourced<Duration>,
    /// Frames of the capacity reserved for the highest level in use; at most the capacity.
    pub reserved: Sourced<u32>,
}

/// Budget in frames per period.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OthersBudget {
    /// Frames let through in one period.
    pub capacity: Sourced<NonZeroU32>,
    /// Replenishment period.
    pub period: Sourced<Duration>,
}
