//! Timed policies of one matched writer, as a reader monitors them.

use core::time::Duration;

use isolane_wire::{qos::QosPolicies, time::Instant};

use super::{lifespan::LeastAge, liveliness::Lease, period};
use crate::reader::Reader;

/// State of a matched writer's timed policies.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProxyClock {
    /// True if its samples are checked against policies on arrival.
    pub(crate) is_watched: bool,
    pub(crate) lifespan: Option<Duration>,
    /// Minimum age of its samples with a LIFESPAN on arrival.
    pub(crate) least_age: LeastAge,
    pub(crate) lease: Option<Lease>,
    /// OWNERSHIP_STRENGTH.
    pub(crate) strength: i32,
}

impl ProxyClock {
    pub(crate) fn of(reader: &Reader, offered: &QosPolicies, now: Instant) -> Self {
        let kind = offered.liveliness.kind;
        let lease = period(offered.liveliness.lease);
        let lease = lease.map(|duration| Lease::new(kind, duration, now));
        let lifespan = offered.lifespan.to_core();
        Self {
            is_watched: reader.judges() || lifespan.is_some() || lease.is_some(),
            lifespan,
            least_age: LeastAge::default(),
            lease,
            strength: offered.ownership_strength,
        }
    }

    /// Applies the policies of a later announcement.
    pub(crate) fn followed_by(self, next: Self) -> Self {
        let lease = next.lease.map(|next| match self.lease {
            Some(lease) => lease.changed_to(next),
            None => next,
        });
        Self {
            lease,
            least_age: self.least_age,
            ..next
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.lease.is_none_or(|lease| lease.is_alive)
    }

    /// Returns whether the writer is not alive and has not been heard since.
    pub(crate) fn is_silent(&self) -> bool {
        self.lease.is_some_and(|lease| lease.is_silent)
    }
}
