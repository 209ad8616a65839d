//! Wake-up latency of a real-time thread on a core: the delay that kernel, interrupts and other work cause before a
//! critical job's first instruction.
//!
//! A thread repeatedly sleeps until a time on the monotonic clock, and records how much later it runs, as cyclictest
//! does. The result is a measurement, not a bound: a rare, longer delay may not occur in the test.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, thread};

use isolane_hostnet::napi::{Policy, Scheduling};
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::{Timespec, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::limits::MAX_WAKE_UPS;
use crate::probe::{entries, text};

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
    pub activity: CoreActivity,
}

/// Measures on a separate thread. Setting `stop` ends the test early, with the samples so far. `None` without any
/// sample.
///
/// # Errors
/// The core does not exist, or the priority requires CAP_SYS_NICE.
pub fn measure_wake_up(what: LatencyTest, stop: &AtomicBool) -> io::Result<Option<LatencyReport>> {
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
            let activity = CoreSample::at(what.core).since(&before, own);
            Ok(summary(what.core, late, activity))
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

fn summary(core: u16, mut late: Vec<u64>, activity: CoreActivity) -> Option<LatencyReport> {
    late.sort_unstable();
    // Nearest rank: the smallest sample such that at least this share of the samples is not longer.
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
        activity,
    })
}

/// Activity on a core.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreActivity {
    /// New interrupts, by the kernel's label and name.
    pub interrupts: BTreeMap<String, u64>,
    /// New soft interrupts (`NET_RX`, `TIMER`).
    pub soft_interrupts: BTreeMap<String, u64>,
    /// Threads that ran, and whose last core was this one, by descending run time.
    pub threads: Vec<ThreadActivity>,
}

/// Thread that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadActivity {
    /// Thread id.
    pub thread: u32,
    /// Thread name.
    pub name: String,
    /// Run time on all cores in nanoseconds.
    pub run_ns: u64,
}

/// Sample of a core's counters.
#[derive(Clone, Debug, Default)]
pub struct CoreSample {
    core: u16,
    interrupts: BTreeMap<String, u64>,
    soft_interrupts: BTreeMap<String, u64>,
    threads: BTreeMap<u32, ThreadSample>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ThreadSample {
    name: String,
    core: u16,
    run_ns: u64,
}

impl CoreSample {
    /// Samples this machine. Unreadable parts are empty.
    pub fn at(core: u16) -> Self {
        let table = |path: &str| table(&text(path).unwrap_or_default(), core);
        Self {
            core,
            interrupts: table("/proc/interrupts"),
            soft_interrupts: table("/proc/softirqs"),
            threads: threads(),
        }
    }

    /// Activity since the earlier sample `before` of the same core, without the thread `own`.
    pub fn since(&self, before: &Self, own: u32) -> CoreActivity {
        let mut threads: Vec<ThreadActivity> = self
            .threads
            .iter()
            .filter(|(thread, now)| now.core == self.core && **thread != own)
            .filter_map(|(thread, now)| {
                // A new thread has run only since the earlier sample.
                let before = before.threads.get(thread).map_or(0, |before| before.run_ns);
                let run_ns = now.run_ns.checked_sub(before)?;
                (run_ns > 0).then(|| ThreadActivity {
                    thread: *thread,
                    name: now.name.clone(),
                    run_ns,
                })
            })
            .collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.run_ns));
        CoreActivity {
            interrupts: more(&before.interrupts, &self.interrupts),
            soft_interrupts: more(&before.soft_interrupts, &self.soft_interrupts),
            threads,
        }
    }
}

fn more(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    now.iter()
        .filter_map(|(name, count)| {
            let before = before.get(name).copied().unwrap_or(0);
            let more = count.checked_sub(before)?;
            (more > 0).then(|| (name.clone(), more))
        })
        .collect()
}

/// Column of one core in `/proc/interrupts` or `/proc/softirqs`: a header with the cores, then lines of number or name,
/// counts and (interrupts) description.
fn table(text: &str, core: u16) -> BTreeMap<String, u64> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let wanted = format!("CPU{core}");
    let Some(column) = head.iter().position(|name| *name == wanted) else {
        return BTreeMap::new();
    };
    let row = |line: &str| {
        let (label, rest) = line.split_once(':')?;
        let mut words = rest.split_whitespace();
        let counts: Vec<&str> = words.by_ref().take(head.len()).collect();
        // Some lines (`ERR`) have one count for all cores.
        let count = counts.get(column)?.parse().ok()?;
        let about: Vec<&str> = words.collect();
        let label = label.trim();
        let name = match about.as_slice() {
            [] => label.to_owned(),
            about => format!("{label} {}", about.join(" ")),
        };
        Some((name, count))
    };
    lines.filter_map(row).collect()
}

fn threads() -> BTreeMap<u32, ThreadSample> {
    let numbers = |path: &str| {
        let names = entries(path).into_iter();
        names.filter_map(|name| name.parse::<u32>().ok())
    };
    let mut found = BTreeMap::new();
    for process in numbers("/proc") {
        let tasks = format!("/proc/{process}/task");
        for thread in numbers(&tasks) {
            // Unreadable once the thread has ended.
            let file = |name: &str| text(format!("{tasks}/{thread}/{name}")).unwrap_or_default();
            if let Some(look) = thread_look(&file("stat"), &file("schedstat")) {
                found.insert(thread, look);
            }
        }
    }
    found
}

/// Parses `stat` (proc_pid_stat(5): the name in parentheses may contain anything; field 39 is the core) and `schedstat`
/// (first number: run time in nanoseconds).
fn thread_look(state: &str, time: &str) -> Option<ThreadSample> {
    let (_, name) = state.split_once('(')?;
    let (name, fields) = name.rsplit_once(')')?;
    // The first field after the name is the third.
    let core = fields.split_whitespace().nth(39 - 3)?.parse().ok()?;
    Some(ThreadSample {
        name: name.to_owned(),
        core,
        run_ns: time.split_whitespace().next()?.parse().ok()?,
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

#[cfg(test)]
mod core_use_tests {
    use super::*;

    const INTERRUPTS: &str = "            CPU0       CPU2
  24:          1          7  IO-APIC   5-edge      ACPI:Ged
  31:          0         14  PCI-MSIX-0000:01:00.0   1-edge      eth0-TxRx-1
 LOC:     121989     142346   Local timer interrupts
 ERR:          3
";

    #[test]
    fn a_column_is_found_by_the_core_and_not_by_its_place() {
        let second = table(INTERRUPTS, 2);
        assert_eq!(second.get("24 IO-APIC 5-edge ACPI:Ged"), Some(&7));
        assert_eq!(second.get("LOC Local timer interrupts"), Some(&142_346));
        assert_eq!(
            second.len(),
            3,
            "a line without a core's count is left out: {second:?}"
        );
        assert_eq!(table(INTERRUPTS, 1), BTreeMap::new());
        assert_eq!(table("", 0), BTreeMap::new());
    }

    #[test]
    fn a_thread_may_be_called_anything() {
        let mut fields: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
        fields[39 - 4] = String::from("1");
        let state = format!("77 (a) (b) R {}", fields.join(" "));
        let look = thread_look(&state, "500 20 3").expect("a thread");
        assert_eq!(
            (look.name.as_str(), look.core, look.run_ns),
            ("a) (b", 1, 500)
        );
        assert_eq!(thread_look("77 (gone", "500"), None);
        assert_eq!(thread_look(&state, ""), None);
    }

    #[test]
    fn only_what_became_more_on_the_core_ran_there() {
        let thread = |name: &str, core, run_ns| ThreadSample {
            name: name.into(),
            core,
            run_ns,
        };
        let before = CoreSample {
            core: 1,
            interrupts: table(INTERRUPTS, 2),
            threads: BTreeMap::from([(1, thread("idle", 1, 9)), (2, thread("busy", 0, 5))]),
            ..CoreSample::default()
        };
        let mut after = before.clone();
        after.interrupts = table(&INTERRUPTS.replace("142346", "142350"), 2);
        after.threads = BTreeMap::from([
            (1, thread("idle", 1, 9)),
            (2, thread("busy", 1, 8)),
            (3, thread("new", 1, 4)),
            (4, thread("elsewhere", 0, 4)),
            (5, thread("self", 1, 100)),
        ]);
        let used = after.since(&before, 5);
        let timer = String::from("LOC Local timer interrupts");
        assert_eq!(used.interrupts, BTreeMap::from([(timer, 4)]));
        let names: Vec<&str> = used.threads.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["new", "busy"], "the longest first");
        assert_eq!(used.threads[1].run_ns, 3);
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let before = CoreSample::at(0);
        assert!(before.threads.len() > 1, "at least this test's");
        let used = CoreSample::at(0).since(&before, 0);
        assert!(used.threads.iter().all(|thread| thread.run_ns > 0));
    }
}
