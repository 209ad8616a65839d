//! Activity of the system during a run: interrupts, softirqs, context switches, and what takes time from a core.
//!
//! A run reads the activity since boot from `/proc` and `/sys` before its first ping and after its last pong, outside
//! the measured time. Its own activity is the difference. Work of other programs is included. A value that the kernel
//! does not provide is null.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, iter};

use serde::{Deserialize, Serialize};

use super::RunCores;
use crate::clock::NANOS_PER_SECOND;

/// Activity of the whole system and of the run's cores, during a run or since boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemActivity {
    /// Interrupts of all cores (`/proc/interrupts`).
    pub interrupts: Option<u64>,
    /// Interrupts of each core of the run.
    pub core_interrupts: Option<BTreeMap<usize, u64>>,
    /// Softirqs of all cores (`/proc/softirqs`).
    pub softirqs: Option<Softirqs>,
    /// Context switches of all cores (`/proc/stat`).
    pub context_switches: Option<u64>,
    /// Time that a hypervisor took from all cores, in nanoseconds (`/proc/stat`, in steps of 10 ms).
    pub steal_ns: Option<u64>,
    /// The same of each core of the run.
    pub core_steal_ns: Option<BTreeMap<usize, u64>>,
    /// Time that ready threads waited for each core of the run, in nanoseconds (`/proc/schedstat`).
    pub core_wait_ns: Option<BTreeMap<usize, u64>>,
    /// Periods in which the control group used up its processor quota (`cpu.stat`, nr_throttled).
    pub throttled_periods: Option<u64>,
    /// Reductions of the frequency because of heat, on the run's cores (`core_throttle_count`).
    pub thermal_throttles: Option<u64>,
    /// Minimum and maximum frequency of the run's cores, read before and after the run.
    pub frequency_khz: Option<Frequencies>,
}

/// Number of softirqs by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Softirqs {
    /// Receive work of network devices.
    pub net_rx: u64,
    /// Transmit work of network devices.
    pub net_tx: u64,
    /// Timers.
    pub timer: u64,
}

/// Range of frequencies in kHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frequencies {
    /// Minimum.
    pub min: u64,
    /// Maximum.
    pub max: u64,
}

impl SystemActivity {
    /// Reads the activity since boot, and the present frequencies of the run's cores. This takes about a millisecond.
    pub fn since_boot(cores: RunCores) -> SystemActivity {
        let cores = distinct(cores);
        let proc = |name: &str| fs::read_to_string(Path::new("/proc").join(name)).ok();
        let of_cores = |name: &str| -> Vec<u64> {
            let path = |core| format!("/sys/devices/system/cpu/cpu{core}/{name}");
            let texts = cores.iter().map(path).map(fs::read_to_string);
            texts
                .filter_map(|text| text.ok()?.trim().parse().ok())
                .collect()
        };
        let of_run = |mut counts: BTreeMap<usize, u64>| {
            counts.retain(|core, _| cores.contains(core));
            counts
        };
        let throttles = of_cores("thermal_throttle/core_throttle_count");
        let frequencies = of_cores("cpufreq/scaling_cur_freq");
        let frequencies = frequencies.iter().min().zip(frequencies.iter().max());
        let cpu_stat = proc("self/cgroup").and_then(|text| {
            let mut files = cpu_stat_files(&text).into_iter();
            files.find_map(|path| fs::read_to_string(path).ok())
        });
        let interrupts = proc("interrupts").as_deref().and_then(interrupts);
        let stat = proc("stat");
        let times = stat.as_deref().and_then(SystemTimes::parse);
        let tick_ns = NANOS_PER_SECOND / rustix::param::clock_ticks_per_second().max(1);
        SystemActivity {
            interrupts: interrupts.as_ref().map(|counts| counts.values().sum()),
            core_interrupts: interrupts.map(of_run),
            softirqs: proc("softirqs").as_deref().and_then(softirqs),
            context_switches: times.map(|times| times.context_switches),
            steal_ns: times.map(|times| times.steal * tick_ns),
            core_steal_ns: stat
                .as_deref()
                .map(|stat| of_run(core_steal(stat, tick_ns))),
            core_wait_ns: proc("schedstat")
                .as_deref()
                .and_then(core_wait_ns)
                .map(of_run),
            throttled_periods: cpu_stat.as_deref().and_then(throttled_periods),
            thermal_throttles: (!throttles.is_empty()).then(|| throttles.iter().sum()),
            frequency_khz: frequencies.map(|(&min, &max)| Frequencies { min, max }),
        }
    }

    /// Activity between an earlier state and this one.
    #[must_use]
    pub fn since(&self, before: &SystemActivity) -> SystemActivity {
        let softirqs = self.softirqs.zip(before.softirqs);
        let frequencies = [self.frequency_khz, before.frequency_khz];
        SystemActivity {
            interrupts: difference(self.interrupts, before.interrupts),
            core_interrupts: differences(&self.core_interrupts, &before.core_interrupts),
            softirqs: softirqs.map(|(after, before)| Softirqs {
                net_rx: after.net_rx.saturating_sub(before.net_rx),
                net_tx: after.net_tx.saturating_sub(before.net_tx),
                timer: after.timer.saturating_sub(before.timer),
            }),
            context_switches: difference(self.context_switches, before.context_switches),
            steal_ns: difference(self.steal_ns, before.steal_ns),
            core_steal_ns: differences(&self.core_steal_ns, &before.core_steal_ns),
            core_wait_ns: differences(&self.core_wait_ns, &before.core_wait_ns),
            throttled_periods: difference(self.throttled_periods, before.throttled_periods),
            thermal_throttles: difference(self.thermal_throttles, before.thermal_throttles),
            frequency_khz: frequencies
                .into_iter()
                .flatten()
                .reduce(|a, b| Frequencies {
                    min: a.min.min(b.min),
                    max: a.max.max(b.max),
                }),
        }
    }
}

/// Cores of a run, each once.
fn distinct(cores: RunCores) -> Vec<usize> {
    let mut distinct = vec![cores.ping, cores.pong, cores.cable, cores.receive_work];
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}

fn difference(after: Option<u64>, before: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

fn differences(
    after: &Option<BTreeMap<usize, u64>>,
    before: &Option<BTreeMap<usize, u64>>,
) -> Option<BTreeMap<usize, u64>> {
    let (after, before) = (after.as_ref()?, before.as_ref()?);
    let during = after
        .iter()
        .filter_map(|(core, count)| Some((*core, count.saturating_sub(*before.get(core)?))));
    Some(during.collect())
}

/// Times and context switches of all cores together since boot (`/proc/stat`, proc_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemTimes {
    /// Sum of all times, in ticks.
    pub all: u64,
    /// Steal time, in ticks.
    pub steal: u64,
    /// User time, including that of nice processes, in ticks.
    pub user: u64,
    /// Context switches.
    pub context_switches: u64,
}

impl SystemTimes {
    /// Reads the present values; `None` if the kernel does not provide them.
    pub fn read() -> Option<SystemTimes> {
        SystemTimes::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Parses the content of `/proc/stat`.
    pub fn parse(stat: &str) -> Option<SystemTimes> {
        let value = |key: &str| stat.lines().find_map(|line| line.strip_prefix(key));
        // The columns are user nice system idle iowait irq softirq steal. User and nice include the guests' columns.
        let times: Vec<u64> = numbers(value("cpu ")?).take(8).collect();
        let &[user, nice, .., steal] = &times[..] else {
            return None;
        };
        (times.len() == 8).then_some(SystemTimes {
            all: times.iter().sum(),
            steal,
            user: user + nice,
            context_switches: numbers(value("ctxt ")?).next()?,
        })
    }
}

/// Steal time of each core in `/proc/stat`, in nanoseconds.
fn core_steal(stat: &str, tick_ns: u64) -> BTreeMap<usize, u64> {
    let of_core = |line: &str| {
        let (core, times) = line.strip_prefix("cpu")?.split_once(' ')?;
        Some((core.parse().ok()?, numbers(times).nth(7)? * tick_ns))
    };
    stat.lines().filter_map(of_core).collect()
}

/// Numbers at the start of a text.
fn numbers(text: &str) -> impl Iterator<Item = u64> {
    text.split_whitespace().map_while(|word| word.parse().ok())
}

/// Rows of a table whose header names cores ("CPU0 CPU1"): name, and the number for each core. Rows without a number
/// for each core are omitted.
fn core_rows(table: &str) -> Option<Vec<(&str, BTreeMap<usize, u64>)>> {
    let (header, rows) = table.split_once('\n')?;
    let core = |word: &str| word.strip_prefix("CPU")?.parse().ok();
    let cores: Vec<usize> = header.split_whitespace().map(core).collect::<Option<_>>()?;
    let row = |line| -> Option<(&str, BTreeMap<usize, u64>)> {
        let (name, values): (&str, &str) = str::split_once(line, ':')?;
        let row: BTreeMap<usize, u64> = iter::zip(cores.iter().copied(), numbers(values)).collect();
        (row.len() == cores.len()).then(|| (name.trim(), row))
    };
    Some(rows.lines().filter_map(row).collect())
}

/// Interrupts of each core in `/proc/interrupts`.
fn interrupts(text: &str) -> Option<BTreeMap<usize, u64>> {
    let mut sums = BTreeMap::new();
    for (core, count) in core_rows(text)?.into_iter().flat_map(|(_, row)| row) {
        *sums.entry(core).or_default() += count;
    }
    Some(sums)
}

/// Softirqs of all cores in `/proc/softirqs`.
fn softirqs(text: &str) -> Option<Softirqs> {
    let rows = core_rows(text)?;
    let sum = |kind| {
        let row = rows.iter().find(|(name, _)| *name == kind);
        row.map(|(_, row)| row.values().sum())
    };
    Some(Softirqs {
        net_rx: sum("NET_RX")?,
        net_tx: sum("NET_TX")?,
        timer: sum("TIMER")?,
    })
}

/// Waiting time of ready threads for each core in `/proc/schedstat`, in nanoseconds (sched-stats.rst, cpu field 8).
fn core_wait_ns(text: &str) -> Option<BTreeMap<usize, u64>> {
    let of_line = |line: &str| {
        let (core, values) = line.strip_prefix("cpu")?.split_once(' ')?;
        Some((core.parse().ok()?, numbers(values).nth(7)?))
    };
    let waits: BTreeMap<usize, u64> = text.lines().filter_map(of_line).collect();
    (!waits.is_empty()).then_some(waits)
}

/// Places of `cpu.stat` for the control group in `/proc/self/cgroup`: version 2, and version 1.
fn cpu_stat_files(cgroup: &str) -> Vec<PathBuf> {
    let of_line = |line: &str| {
        let (_, entry) = line.split_once(':')?;
        let (controllers, path) = entry.split_once(':')?;
        let is_of_cpu = controllers.is_empty() || controllers.split(',').any(|one| one == "cpu");
        let group = Path::new("/sys/fs/cgroup").join(controllers);
        is_of_cpu.then(|| group.join(path.trim_start_matches('/')).join("cpu.stat"))
    };
    cgroup.lines().filter_map(of_line).collect()
}

/// Value of nr_throttled in `cpu.stat`.
fn throttled_periods(cpu_stat: &str) -> Option<u64> {
    let value = |line: &str| numbers(line.strip_prefix("nr_throttled ")?).next();
    cpu_stat.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORES: RunCores = RunCores {
        ping: 0,
        pong: 2,
        cable: 2,
        receive_work: 0,
    };

    const INTERRUPTS: &str = "           CPU0       CPU2       \n \
         24:          1          0  IO-APIC   5-edge      ACPI:Ged\n\
         LOC:        100        200   Local timer interrupts\n\
         ERR:          7\n";

    #[test]
    fn interrupts_are_summed_for_each_core_that_is_online() {
        let expected = BTreeMap::from([(0, 101), (2, 200)]);
        assert_eq!(interrupts(INTERRUPTS), Some(expected));
        assert_eq!(interrupts("no table"), None);
    }

    #[test]
    fn softirqs_are_found_by_name() {
        let text = "    CPU0  CPU1\n  HI: 9 9\n TIMER: 1 2\n NET_TX: 3 4\n NET_RX: 50 60\n";
        let expected = Softirqs {
            net_rx: 110,
            net_tx: 7,
            timer: 3,
        };
        assert_eq!(softirqs(text), Some(expected));
        assert_eq!(softirqs("    CPU0\n  HI: 9\n"), None);
    }

    #[test]
    fn times_are_the_columns_that_proc_stat_names() {
        let stat = "cpu  100 20 30 400 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nctxt 4711\n";
        let expected = SystemTimes {
            all: 576,
            steal: 8,
            user: 120,
            context_switches: 4711,
        };
        assert_eq!(SystemTimes::parse(stat), Some(expected));
        assert_eq!(SystemTimes::parse("cpu  1 2 3\nctxt 1\n"), None);
    }

    #[test]
    fn the_wait_for_a_core_is_the_eighth_field_of_its_line() {
        let text = "version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 777 888 9\ndomain0 3 1 2\ncpu2 0 0 0 0 0 0 1 2 3\n";
        assert_eq!(core_wait_ns(text), Some(BTreeMap::from([(0, 888), (2, 2)])));
        assert_eq!(core_wait_ns("version 15\n"), None);
    }

    #[test]
    fn the_quota_of_a_control_group_is_found_in_both_versions() {
        let paths = |text| -> Vec<String> {
            let files = cpu_stat_files(text).into_iter();
            files.map(|path| path.display().to_string()).collect()
        };
        assert_eq!(paths("0::/a/b\n"), ["/sys/fs/cgroup/a/b/cpu.stat"]);
        assert_eq!(
            paths("4:memory:/m\n3:cpuset:/s\n2:cpu,cpuacct:/c\n"),
            ["/sys/fs/cgroup/cpu,cpuacct/c/cpu.stat"]
        );
        assert_eq!(throttled_periods("nr_periods 4\nnr_throttled 3\n"), Some(3));
        assert_eq!(throttled_periods("usage_usec 4\n"), None);
    }

    #[test]
    fn activity_is_the_difference_and_null_where_a_state_has_no_value() {
        let range = |min, max| Some(Frequencies { min, max });
        let before = SystemActivity {
            interrupts: Some(301),
            core_interrupts: interrupts(INTERRUPTS),
            throttled_periods: Some(2),
            frequency_khz: range(1_000, 3_000),
            ..SystemActivity::default()
        };
        let after = SystemActivity {
            interrupts: Some(316),
            core_interrupts: Some(BTreeMap::from([(0, 111), (2, 205)])),
            throttled_periods: Some(2),
            core_wait_ns: Some(BTreeMap::from([(0, 1)])),
            frequency_khz: range(2_000, 2_000),
            ..SystemActivity::default()
        };
        let expected = SystemActivity {
            interrupts: Some(15),
            core_interrupts: Some(BTreeMap::from([(0, 10), (2, 5)])),
            throttled_periods: Some(0),
            frequency_khz: range(1_000, 3_000),
            ..SystemActivity::default()
        };
        assert_eq!(after.since(&before), expected);
    }

    #[test]
    fn this_machine_has_interrupts_and_context_switches() {
        let before = SystemActivity::since_boot(CORES);
        std::thread::sleep(std::time::Duration::from_millis(50));
        let activity = SystemActivity::since_boot(CORES).since(&before);
        assert!(activity.interrupts > Some(0), "{activity:?}");
        assert!(activity.context_switches > Some(0), "{activity:?}");
        assert!(activity.softirqs.is_some(), "{activity:?}");
    }
}
