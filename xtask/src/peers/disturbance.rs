//! Whether something else used the processor while a repetition ran: steal time, other processes, stalls.
//!
//! Steal and user time come from `/proc/stat` (proc_stat(5)), the user time of the ends from
//! `/proc/self/stat` (cutime of proc_pid_stat(5): they are children that have ended). The kernel's threads
//! have no user time, so their work for the ends is not taken for another process's. A thread at SCHED_FIFO
//! on each core sleeps for [`PERIOD`] again and again: what it oversleeps beyond [`STALL`] is a stall.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use isolane_bench::process::{Cores, pin_to_core, run_first_in_first_out};
use serde::Serialize;

use crate::Result;

/// Sleep of the threads that look for stalls. Short sleeps would disturb what is measured.
const PERIOD: Duration = Duration::from_millis(10);
/// A sleep that is longer than asked for by this is a stall: an ordinary timer is late by less than 1 ms.
const STALL: Duration = Duration::from_millis(2);
/// Share of the processors' time above which steal or other processes disturb a repetition.
const MAX_SHARE: f64 = 0.01;

/// What disturbed a repetition of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Disturbance {
    /// Steal time, as a share of the processors' time.
    pub(super) steal: f64,
    /// User time of processes that are not the ends, as a share of the processors' time.
    pub(super) others: f64,
    /// The longest stall of a core, in microseconds.
    pub(super) longest_stall_us: u64,
    /// Load average of the last minute, at the end.
    pub(super) load: f64,
}

impl Disturbance {
    /// Whether the repetition is to be run again.
    pub(super) fn is_too_much(&self) -> bool {
        self.steal > MAX_SHARE || self.others > MAX_SHARE
    }
}

/// A watch over one repetition of a case; dropped, its threads end.
pub(super) struct Watch {
    before: Times,
    is_over: Arc<AtomicBool>,
    longest_ns: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Watch {
    /// Begins to watch these cores.
    pub(super) fn begin(cores: Cores) -> Result<Self> {
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

    /// Ends, and tells what disturbed.
    pub(super) fn end(self) -> Result<Disturbance> {
        let since = Times::now()?.since(self.before);
        let all = since.all.max(1) as f64;
        let load = fs::read_to_string("/proc/loadavg")?;
        let load = load.split_whitespace().next().unwrap_or_default();
        Ok(Disturbance {
            steal: since.steal as f64 / all,
            others: since.user.saturating_sub(since.own_user) as f64 / all,
            longest_stall_us: self.longest_ns.load(Ordering::Relaxed) / 1_000,
            load: load.parse()?,
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn watch_stalls(core: usize, is_over: &AtomicBool, longest_ns: &AtomicU64) {
    // Without these the stalls of an ordinary thread are told, which contain the ends' own use of the core.
    if pin_to_core(core).is_err() || run_first_in_first_out(1).is_err() {
        return;
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
    fn a_process_beside_the_ends_is_seen() {
        let cores = Cores { hosts: 0, cable: 0 };
        let watch = Watch::begin(cores).expect("a watch");
        // A child that has not ended is no end of a measurement.
        let mut busy = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .expect("sh");
        thread::sleep(Duration::from_millis(500));
        let disturbance = watch.end();
        busy.kill().expect("kill");
        busy.wait().expect("wait");
        assert!(disturbance.expect("told").is_too_much());
    }
}
