//! Disturbance of a repetition by other users of the processor: steal time, other processes, stalls.
//!
//! Steal and user time come from `/proc/stat` (proc_stat(5)), the user time of the ends from `/proc/self/stat` (cutime
//! of proc_pid_stat(5): they are children that have ended). Kernel threads have no user time, so their work for the
//! ends is not counted as another process's. A thread at SCHED_FIFO on each core sleeps repeatedly for `PERIOD`;
//! oversleeping by more than `STALL` is a stall.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use isolane_bench::process::{Cores, pin_to_core, run_first_in_first_out};
use serde::Serialize;

use crate::Result;

/// Sleep of the threads that detect stalls. Shorter sleeps would disturb the measurement.
const PERIOD: Duration = Duration::from_millis(10);
/// Oversleep from which on a sleep is a stall: an ordinary timer is late by less than 1 ms.
const STALL: Duration = Duration::from_millis(2);
/// Share of the processors' time above which steal or other processes disturb a repetition.
const MAX_SHARE: f64 = 0.01;

/// Disturbance of a repetition of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Disturbance {
    /// Steal time, as a share of the processors' time.
    pub steal: f64,
    /// User time of processes that are not the ends, as a share of the processors' time.
    pub others: f64,
    /// Longest stall of a core, in microseconds; `None` without the right to real-time scheduling.
    pub longest_stall_us: Option<u64>,
    /// Load average of the last minute, at the end.
    pub load: f64,
}

impl Disturbance {
    /// Returns true when the repetition must be run again.
    pub fn is_too_much(&self) -> bool {
        self.steal > MAX_SHARE || self.others > MAX_SHARE
    }
}

/// Watch over one repetition of a case; dropping it ends its threads.
pub struct Watch {
    before: Times,
    is_over: Arc<AtomicBool>,
    longest_ns: Arc<AtomicU64>,
    /// Threads that detect stalls; each returns false if it could not.
    threads: Vec<JoinHandle<bool>>,
}

impl Watch {
    /// Starts a watch over these cores.
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

    /// Stops the watch, and returns the disturbance.
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

    /// Ends the threads; returns true when all could watch.
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

/// Detects stalls of a core; returns false if it cannot.
fn watch_stalls(core: usize, is_over: &AtomicBool, longest_ns: &AtomicU64) -> bool {
    // An ordinary thread's stalls would include the ends' own use of the core.
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
    /// All processors' time.
    all: u64,
    steal: u64,
    /// User time, of nice processes too.
    user: u64,
    /// User time of this process and of its children that have ended.
    own_user: u64,
}

impl Times {
    fn now() -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat")?;
        let own = fs::read_to_string("/proc/self/stat")?;
        Self::parse(&stat, &own).ok_or_else(|| "/proc/stat cannot be read".into())
    }

    fn parse(stat: &str, own: &str) -> Option<Self> {
        let numbers = |text: &str| -> Option<Vec<u64>> {
            text.split_whitespace()
                .map(|word| word.parse().ok())
                .collect()
        };
        let times = numbers(stat.lines().next()?.strip_prefix("cpu ")?)?;
        // user nice system idle iowait irq softirq steal, then the guests', which user and nice contain.
        let all = times.get(..8)?.iter().sum();
        // The name, in parentheses, may hold anything; the first field after it is the third.
        let mut fields = own.rsplit_once(')')?.1.split_whitespace();
        let user = fields.nth(14 - 3)?.parse::<u64>().ok()?;
        let children = fields.nth(1)?.parse::<u64>().ok()?;
        Some(Self {
            all,
            steal: times[7],
            user: times[0] + times[1],
            own_user: user + children,
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

    /// Shares of these times.
    fn disturbance(self) -> Disturbance {
        let all = self.all.max(1) as f64;
        Disturbance {
            steal: self.steal as f64 / all,
            others: self.user.saturating_sub(self.own_user) as f64 / all,
            ..Disturbance::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_the_fields_that_proc_names() {
        let stat = "cpu  100 20 30 400 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        let own = "77 (a) b) S 1 2 3 4 5 6 7 8 9 10 41 15 42 17 18 19";
        let times = Times::parse(stat, own).expect("times");
        let expected = Times {
            all: 576,
            steal: 8,
            user: 120,
            own_user: 83,
        };
        assert_eq!(times, expected);
        assert_eq!(Times::parse("cpu  1 2 3", own), None);
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
