//! How late a thread of the applications' priority wakes on a core: what the kernel, interrupts and others
//! cost a critical job before its first instruction.
//!
//! A thread sleeps until a time on the monotonic clock, again and again, and notes how much later it
//! runs: what cyclictest does. It says what was, not what can be: rare delays come rarely.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use isolane_hostnet::napi::{Policy, Scheduling};
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::{Timespec, clock_gettime};
use serde::{Deserialize, Serialize};

use super::core_use::{CoreLook, CoreUse};
use crate::limits::MAX_WAKE_UPS;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct WakeUp {
    /// On this core.
    pub core: u16,
    /// With this priority of SCHED_FIFO.
    pub priority: u8,
    /// Between two wake-ups.
    pub period: Duration,
    /// How many; those beyond [`MAX_WAKE_UPS`] are left out.
    pub count: u32,
}

/// How late a thread woke, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WokenUp {
    /// The core.
    pub core: u16,
    /// How often it woke.
    pub samples: u32,
    /// The least.
    pub min_ns: u64,
    /// The median.
    pub median_ns: u64,
    /// Of a hundred, the one that only one exceeds.
    pub p99_ns: u64,
    /// Of a thousand.
    pub p99_9_ns: u64,
    /// The most.
    pub max_ns: u64,
    /// What ran on the core meanwhile.
    pub used_by: CoreUse,
}

/// Measures, on a thread of its own. Ends early at `stop`, with what there is.
///
/// # Errors
/// The core is not there; the priority takes CAP_SYS_NICE. `None` where not one sample was taken.
pub fn wake_up(what: WakeUp, stop: &AtomicBool) -> io::Result<Option<WokenUp>> {
    thread::scope(|scope| {
        let measured = scope.spawn(|| {
            let policy = Policy::Fifo(what.priority);
            let cores = Some(vec![usize::from(what.core)]);
            Scheduling { policy, cores }.apply(0)?;
            let own = rustix::thread::gettid()
                .as_raw_nonzero()
                .get()
                .unsigned_abs();
            let before = CoreLook::at(what.core);
            let late = samples(what, stop);
            let used_by = CoreLook::at(what.core).since(&before, own);
            Ok(summary(what.core, late, used_by))
        });
        measured
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the measuring thread panicked")))
    })
}

fn samples(what: WakeUp, stop: &AtomicBool) -> Vec<u64> {
    let count = what.count.min(MAX_WAKE_UPS);
    // Pages are touched now: a page fault later would be measured too.
    let mut late = vec![u64::MAX; count as usize];
    let mut taken = 0;
    let mut next = now() + what.period;
    for place in &mut late {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let time = Timespec {
            tv_sec: next.as_secs() as i64,
            tv_nsec: next.subsec_nanos().into(),
        };
        // A signal wakes too early; it is slept on.
        while clock_nanosleep_absolute(ClockId::Monotonic, &time).is_err() {}
        *place = now().saturating_sub(next).as_nanos() as u64;
        taken += 1;
        next += what.period;
        // What would have been woken for meanwhile is left out, or one delay would count as many.
        while next < now() {
            next += what.period;
        }
    }
    late.truncate(taken);
    late
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn summary(core: u16, mut late: Vec<u64>, used_by: CoreUse) -> Option<WokenUp> {
    late.sort_unstable();
    // Nearest rank: of n values the smallest that at least this share does not exceed.
    let quantile = |per_mille: usize| {
        let rank = (late.len() * per_mille).div_ceil(1_000).max(1);
        late.get(rank - 1).copied()
    };
    Some(WokenUp {
        core,
        samples: late.len() as u32,
        min_ns: *late.first()?,
        median_ns: quantile(500)?,
        p99_ns: quantile(990)?,
        p99_9_ns: quantile(999)?,
        max_ns: *late.last()?,
        used_by,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let late = (1..=1_000).rev().collect();
        let found = summary(3, late, CoreUse::default()).expect("samples");
        let of = [
            found.min_ns,
            found.median_ns,
            found.p99_ns,
            found.p99_9_ns,
            found.max_ns,
        ];
        assert_eq!(of, [1, 500, 990, 999, 1_000]);
        assert_eq!((found.core, found.samples), (3, 1_000));
        let one = summary(0, vec![7], CoreUse::default()).expect("a sample");
        assert_eq!((one.min_ns, one.p99_9_ns, one.max_ns), (7, 7, 7));
        assert_eq!(summary(0, Vec::new(), CoreUse::default()), None);
    }

    #[test]
    fn a_thread_sleeps_until_its_time_and_never_wakes_before() {
        let what = WakeUp {
            core: 0,
            priority: 1,
            period: Duration::from_millis(1),
            count: 20,
        };
        // Without the right to a priority the sampling itself is the same.
        let late = samples(what, &AtomicBool::new(false));
        assert_eq!(late.len(), 20);
        assert!(samples(what, &AtomicBool::new(true)).is_empty());
    }
}
