//! Deferrable servers of the classifier's budgets. This module sets them and the program consumes them. Kernel timers
//! or this module replenish them.

use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Duration;

use isolane_datapath::flow::{Budget, InterfaceRateLimit, OverBudget, RateLimit, RateLimitError};

use super::shared_memory::{
    DEMOTE, DROP, INTERFACE_RESERVE, INTERFACE_SHARED, OTHERS, SERVERS, Shared, UNLIMITED,
};
use crate::limits::{MAX_PERIOD, MIN_PERIOD};

/// Component that replenishes the budgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Replenisher {
    /// One kernel timer per budget, independent of user space.
    KernelTimer,
    /// The caller of [`Classifier::replenish`](super::Classifier::replenish), if the kernel has no BPF timers (before
    /// 5.15) or the configuration disables them.
    UserSpace,
}

impl std::fmt::Display for Replenisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Replenisher::KernelTimer => "kernel timers",
            Replenisher::UserSpace => "user space",
        })
    }
}

/// Configures a server with a full budget.
fn set(shared: &Shared, server: usize, capacity: u32, period: Duration) {
    let server = &shared.servers[server];
    server.capacity.store(i64::from(capacity), Relaxed);
    server.left.store(i64::from(capacity), Relaxed);
    server.next_ns.store(0, Relaxed);
    // Fits: at most MAX_PERIOD.
    let period_ns = period.as_nanos() as u64;
    server.period_ns.store(period_ns, Release);
}

/// Stops the replenishment of a server: its timer is not restarted.
fn clear(shared: &Shared, server: usize) {
    shared.servers[server].period_ns.store(0, Relaxed);
}

/// Checks that the period is within [`MIN_PERIOD`] and [`MAX_PERIOD`].
pub(crate) fn check(budget: &Budget) -> Result<(), RateLimitError> {
    let period = budget.period;
    if !(MIN_PERIOD..=MAX_PERIOD).contains(&period) {
        return Err(RateLimitError::Period { period });
    }
    Ok(())
}

/// Applies a flow's checked rate limit; returns the server to replenish.
pub(super) fn set_rate_limit(
    shared: &Shared,
    place: usize,
    rate_limit: Option<&RateLimit>,
) -> Option<usize> {
    let over = &shared.flows[place].over;
    let Some(RateLimit {
        budget,
        over: wanted,
    }) = rate_limit
    else {
        over.store(UNLIMITED, Relaxed);
        clear(shared, place);
        return None;
    };
    set(shared, place, budget.capacity.get(), budget.period);
    let wanted = match wanted {
        OverBudget::Drop => DROP,
        OverBudget::Demote => DEMOTE,
    };
    // Release: a frame that sees the budget sees it full.
    over.store(wanted, Release);
    Some(place)
}

/// Checks the interface's budgets.
pub(crate) fn check_interface(rate_limit: &InterfaceRateLimit) -> Result<(), RateLimitError> {
    if let Some((budget, reserved)) = &rate_limit.topics {
        check(budget)?;
        let capacity = budget.capacity.get();
        if *reserved >= capacity {
            return Err(RateLimitError::Reserve {
                reserved: *reserved,
                capacity,
            });
        }
    }
    rate_limit.foreign.as_ref().map_or(Ok(()), check)
}

/// Applies the interface's checked rate limits; returns the servers to replenish.
pub(super) fn set_interface_rate_limit(
    shared: &Shared,
    rate_limit: &InterfaceRateLimit,
) -> impl Iterator<Item = usize> + use<> {
    let settings = &shared.settings;
    if let Some((budget, reserved)) = &rate_limit.topics {
        let capacity = budget.capacity.get();
        set(shared, INTERFACE_SHARED, capacity - reserved, budget.period);
        set(shared, INTERFACE_RESERVE, *reserved, budget.period);
        settings.limits_interface.store(1, Release);
    } else {
        settings.limits_interface.store(0, Relaxed);
        clear(shared, INTERFACE_SHARED);
        clear(shared, INTERFACE_RESERVE);
    }
    if let Some(budget) = &rate_limit.foreign {
        set(shared, OTHERS, budget.capacity.get(), budget.period);
        settings.limits_others.store(1, Release);
    } else {
        settings.limits_others.store(0, Relaxed);
        clear(shared, OTHERS);
    }
    let flows = rate_limit
        .topics
        .map(|_| [INTERFACE_SHARED, INTERFACE_RESERVE]);
    let others = rate_limit.foreign.map(|_| OTHERS);
    flows.into_iter().flatten().chain(others)
}

/// Replenishes the servers due at `now_ns` and returns the next due time. A server's first period starts at the first
/// call that sees it. A server more than one period late starts afresh: missed periods are not caught up.
pub(super) fn replenish(shared: &Shared, now_ns: u64) -> Option<u64> {
    let servers = shared.servers.iter().take(SERVERS);
    let due = servers.filter_map(|server| {
        let period_ns = server.period_ns.load(Relaxed);
        if period_ns == 0 {
            return None;
        }
        let mut next_ns = server.next_ns.load(Relaxed);
        if next_ns == 0 {
            next_ns = now_ns + period_ns;
        } else if next_ns <= now_ns {
            let capacity = server.capacity.load(Relaxed);
            server.left.store(capacity, Relaxed);
            next_ns += period_ns;
            if next_ns <= now_ns {
                next_ns = now_ns + period_ns;
            }
        }
        server.next_ns.store(next_ns, Relaxed);
        Some(next_ns)
    });
    due.min()
}
