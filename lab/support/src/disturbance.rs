//! Disturbance of a measurement by other users of the processor: steal time, other processes, stalls.
//!
//! Steal and user time come from `/proc/stat` ([`SystemTimes`]). The measured programs are children that have ended, so
//! their user time is cutime in `/proc/self/stat` (proc_pid_stat(5)). Kernel threads have no user time, so their work
//! for the measured programs does not count as that of other processes. On each core, a thread at SCHED_FIFO sleeps
//! repeatedly for `PERIOD`. If it sleeps longer by `STALL` or more, that is a stall.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use isolane_bench::process::{Cores, pin_to_core, run_first_in_first_out};
use isolane_bench::report::SystemTimes;
use serde::Serialize;

use crate::Result;

/// Sleep of the threads that detect stalls. Shorter sleeps would disturb the measurement.
const PERIOD: Duration = Duration::from_millis(10);
/// Minimum delay of a wake-up that counts as a stall. Without a stall, a timer is late by less than 1 ms.
const STALL: Duration = Duration::from_millis(2);
/// Share of the processors' time above which steal time or other processes disturb a measurement.
const MAX_SHARE: f64 = 0.01;

/// Disturbance of one measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Disturbance {
    /// Steal time, as a share of the processors' time.
    pub steal: f64,
    /// User time of other processes than the measured ones, as a share of the processors' time.
    pub others: f64,
    /// Longest stall of a core, in microseconds; `None` if real-time scheduling is not permitted.
    pub longest_stall_us: Option<u64>,
    /// Load average of the last minute before the end.
    pub load: f64,
}

impl Disturbance {
    /// Returns true if the measurement must be repeated.
    pub fn is_too_much(&self) -> bool {
        self.steal > MAX_SHARE || self.others > MAX_SHARE
    }
}

/// Observation of the disturbance during one measurement. Dropping it ends its threads.
pub struct Watch {
    before: Times,
    is_over: Arc<AtomicBool>,
    longest_ns: Arc<AtomicU64>,
    /// Threads that detect stalls; a thread returns false if it could not.
    threads: Vec<JoinHandle<bool>>,
}

impl Watch {
    /// Starts to observe these cores.
    pub fn begin(cores: Cores) -> Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let longest_ns = Arc::new(AtomicU64::new(0));
        let threads = [cores.hosts, cores.cable].map(|core| {
            let (is_over, longest_ns) = (Arc::clone(&is_over), Arc::clone(&longest_ns));
            thread::spawn(move || watch_stalls(core, &is_over, &longest_ns))
        });
        Ok(Self {
            before: Times::now()?,
            is_over,
            longest_ns,
            threads: threads.into(),
        })
    }

    /// Ends the observation, and returns the disturbance.
    pub fn end(mut self) -> Result<Disturbance> {
        let since = Times::now()?.since(self.before);
        let load = fs::read_to_string("/proc/loadavg")?;
        let load = load.split_whitespace().next().unwrap_or_default();
        let is_watched = self.join();
        let longest_ns = self.longest_ns.load(Ordering::Relaxed);
        Ok(Disturbance {
            longest_stall_us: is_watched.then_some(longest_ns / 1_000),
            load: load.parse()?,
            ..since.disturbance()
        })
    }

    /// Ends the threads; returns true if all of them could detect stalls.
    fn join(&mut self) -> bool {
        self.is_over.store(true, Ordering::Relaxed);
        // A panic has been printed already.
        let watched = self.threads.drain(..).map(|thread| thread.join());
        watched.fold(true, |all, watched| all & watched.unwrap_or(false))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.join();
    }
}

/// Detects stalls of a core; returns false if the thread cannot have this core or real-time scheduling.
fn watch_stalls(core: usize, is_over: &AtomicBool, longest_ns: &AtomicU64) -> bool {
    // Without SCHED_FIFO, this thread would also wait for the measured programs.
    if pin_to_core(core).is_err() || run_first_in_first_out(1).is_err() {
        return false;
    }
    while !is_over.load(Ordering::Relaxed) {
        let begin = Instant::now();
        thread::sleep(PERIOD);
        let late = begin.elapsed().saturating_sub(PERIOD);
        if late >= STALL {
            let late_ns = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
            longest_ns.fetch_max(late_ns, Ordering::Relaxed);
        }
    }
    true
}

/// Times since the boot, in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Times {
    /// Time of all processors together.
    all: u64,
    steal: u64,
    /// User time, including that of nice processes.
    user: u64,
    /// User time of this process and of its children that have ended.
    own_user: u64,
}

impl Times {
    fn now() -> Result<Self> {
        let own = fs::read_to_string("/proc/self/stat")?;
        let own_user = own_user(&own).ok_or("/proc/self/stat cannot be read")?;
        let system = SystemTimes::read().ok_or("/proc/stat cannot be read")?;
        Ok(Self {
            all: system.all,
            steal: system.steal,
            user: system.user,
            own_user,
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            all: self.all.saturating_sub(before.all),
            steal: self.steal.saturating_sub(before.steal),
            user: self.user.saturating_sub(before.user),
            own_user: self.own_user.saturating_sub(before.own_user),
        }
    }

    /// Computes the shares of these times.
    fn disturbance(self) -> Disturbance {
        let all = self.all.max(1) as f64;
        Disturbance {
            steal: self.steal as f64 / all,
            others: self.user.saturating_sub(self.own_user) as f64 / all,
            ..Disturbance::default()
        }
    }
}

/// User time of a process and of its children that have ended, in `/proc/self/stat`.
fn own_user(own: &str) -> Option<u64> {
    // The second field, the name in parentheses, may have any character. Field 3 follows it.
    let mut fields = own.rsplit_once(')')?.1.split_whitespace();
    let user = fields.nth(14 - 3)?.parse::<u64>().ok()?;
    let children = fields.nth(1)?.parse::<u64>().ok()?;
    Some(user + children)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_user_time_includes_that_of_ended_children() {
        let own = "77 (a) b) S 1 2 3 4 5 6 7 8 9 10 41 15 42 17 18 19";
        assert_eq!(own_user(own), Some(83));
        assert_eq!(own_user("77 (a) S 1"), None);
    }

    #[test]
    fn user_time_of_other_processes_disturbs_and_that_of_the_ends_does_not() {
        let before = Times {
            all: 1_000,
            steal: 10,
            user: 300,
            own_user: 200,
        };
        let ended = Times {
            all: 1_400,
            user: 500,
            own_user: 400,
            ..before
        };
        assert_eq!(
            ended.since(before).disturbance(),
            Disturbance::default(),
            "the ends alone"
        );
        let other = Times { user: 520, ..ended };
        let disturbance = other.since(before).disturbance();
        assert_eq!((disturbance.others, disturbance.steal), (0.05, 0.0));
        assert!(disturbance.is_too_much());
        let stolen = Times { steal: 30, ..ended };
        let disturbance = stolen.since(before).disturbance();
        assert_eq!((disturbance.others, disturbance.steal), (0.0, 0.05));
        assert!(disturbance.is_too_much());
    }

    #[test]
    fn a_core_that_cannot_be_watched_has_no_stalls() {
        let nowhere = Cores {
            hosts: usize::MAX,
            cable: usize::MAX,
        };
        let watch = Watch::begin(nowhere).expect("a watch");
        let disturbance = watch.end().expect("times");
        assert_eq!(disturbance.longest_stall_us, None);
        let json = serde_json::to_value(disturbance).expect("JSON");
        assert!(json["longest_stall_us"].is_null());
    }
}
