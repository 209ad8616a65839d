//! Wake-up latency of a real-time thread on a core: the delay that kernel, interrupts and other work cause before a
//! critical job's first instruction.
//!
//! A thread repeatedly sleeps until a time on the monotonic clock, and records how much later it runs, as cyclictest
//! does. The result is a measurement, not a bound: rare delays come rarely.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use isolane_hostnet::napi::{Policy, Scheduling};
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::{Timespec, clock_gettime};
use serde::{Deserialize, Serialize};

use super::core_use::{CoreActivity, CoreSample};
use crate::limits::MAX_WAKE_UPS;

/// Parameters of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct LatencyTest {
    /// Core to measure.
    pub core: u16,
    /// `SCHED_FIFO` priority of the thread.
    pub priority: u8,
    /// Time between two wake-ups.
    pub period: Duration,
    /// Number of wake-ups, capped at [`MAX_WAKE_UPS`].
    pub count: u32,
}

/// Wake-up latencies in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyReport {
    /// Measured core.
    pub core: u16,
    /// Number of samples.
    pub samples: u32,
    /// Minimum.
    pub min_ns: u64,
    /// Median.
    pub median_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p99_9_ns: u64,
    /// Maximum.
    pub max_ns: u64,
    /// Activity on the core during the measurement.
    pub used_by: CoreActivity,
}

/// Measures on a separate thread. Setting `stop` ends it early, with the samples so far; `None` without any sample.
///
/// # Errors
/// The core does not exist, or the priority requires CAP_SYS_NICE.
pub fn wake_up(what: LatencyTest, stop: &AtomicBool) -> io::Result<Option<LatencyReport>> {
    thread::scope(|scope| {
        let measured = scope.spawn(|| {
            let policy = Policy::Fifo(what.priority);
            let cores = Some(vec![usize::from(what.core)]);
            Scheduling { policy, cores }.apply(0)?;
            let own = rustix::thread::gettid()
                .as_raw_nonzero()
                .get()
                .unsigned_abs();
            let before = CoreSample::at(what.core);
            let late = samples(what, stop);
            let used_by = CoreSample::at(what.core).since(&before, own);
            Ok(summary(what.core, late, used_by))
        });
        measured
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the measuring thread panicked")))
    })
}

fn samples(what: LatencyTest, stop: &AtomicBool) -> Vec<u64> {
    let count = what.count.min(MAX_WAKE_UPS);
    // Touches all pages, so that no page fault is measured.
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
        // A signal interrupts the sleep.
        while clock_nanosleep_absolute(ClockId::Monotonic, &time).is_err() {}
        *place = now().saturating_sub(next).as_nanos() as u64;
        taken += 1;
        next += what.period;
        // Missed wake-ups are skipped, so that one delay counts once.
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

fn summary(core: u16, mut late: Vec<u64>, used_by: CoreActivity) -> Option<LatencyReport> {
    late.sort_unstable();
    // Nearest rank: the smallest of n values that at least this share does not exceed.
    let quantile = |per_mille: usize| {
        let rank = (late.len() * per_mille).div_ceil(1_000).max(1);
        late.get(rank - 1).copied()
    };
    Some(LatencyReport {
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
        let found = summary(3, late, CoreActivity::default()).expect("samples");
        let of = [
            found.min_ns,
            found.median_ns,
            found.p99_ns,
            found.p99_9_ns,
            found.max_ns,
        ];
        assert_eq!(of, [1, 500, 990, 999, 1_000]);
        assert_eq!((found.core, found.samples), (3, 1_000));
        let one = summary(0, vec![7], CoreActivity::default()).expect("a sample");
        assert_eq!((one.min_ns, one.p99_9_ns, one.max_ns), (7, 7, 7));
        assert_eq!(summary(0, Vec::new(), CoreActivity::default()), None);
    }

    #[test]
    fn a_thread_sleeps_until_its_time_and_never_wakes_before() {
        let what = LatencyTest {
            core: 0,
            priority: 1,
            period: Duration::from_millis(1),
            count: 20,
        };
        // Without the permission for a priority, sampling is the same.
        let late = samples(what, &AtomicBool::new(false));
        assert_eq!(late.len(), 20);
        assert!(samples(what, &AtomicBool::new(true)).is_empty());
    }
}
