//! What all receivers of a host are protected with together, `[host.NAME.protect]`.

use core::num::NonZeroU32;
use core::time::Duration;

use crate::source::Sourced;

/// The budgets of a host's interface. Both absent: nothing is counted.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HostProtection {
    /// Of all topics together.
    pub topics: Option<InterfaceBudget>,
    /// Of everything that is not isolane's: the rest of the host's traffic.
    pub others: Option<OthersBudget>,
}

/// So many frames a period, of which the most critical level has a share of its own.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InterfaceBudget {
    /// Frames let through in one period.
    pub capacity: Sourced<NonZeroU32>,
    /// When it is filled up again.
    pub period: Sourced<Duration>,
    /// Frames of the capacity that only the highest level in use may have; never more than it.
    pub reserved: Sourced<u32>,
}

/// So many frames a period.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OthersBudget {
    /// Frames let through in one period.
    pub capacity: Sourced<NonZeroU32>,
    /// When it is filled up again.
    pub period: Sourced<Duration>,
}
