//! What a reader watches at one matched writer: what the writer has announced, and what was heard of it.

use core::time::Duration;

use isolane_wire::{qos::QosPolicies, time::Instant};

use super::{lifespan::LeastAge, liveliness::Lease, period};
use crate::reader::Reader;

/// What a reader watches at one matched writer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProxyClock {
    /// Its samples are judged when they come.
    pub(crate) is_watched: bool,
    pub(crate) lifespan: Option<Duration>,
    /// How old its samples with a LIFESPAN are at least when they arrive.
    pub(crate) least_age: LeastAge,
    pub(crate) lease: Option<Lease>,
    /// OWNERSHIP_STRENGTH.
    pub(crate) strength: i32,
}

impl ProxyClock {
    /// What a reader watches at a writer that announces these policies, heard of now.
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

    /// The same after the writer has announced itself again.
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

    /// Whether the writer is not alive, and was not heard since.
    pub(crate) fn is_silent(&self) -> bool {
        self.lease.is_some_and(|lease| lease.is_silent)
    }
}
