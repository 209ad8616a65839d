//! Reading of kernel, cores, scheduler, memory and programs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rustix::system::Uname;

use super::files::{entries, number_list, text, value};
use crate::facts::{Cores, IdleState, Kernel, Memory, Scheduling};

const CPUS: &str = "/sys/devices/system/cpu";

/// Relevant programs, by process name (at most 15 bytes: `systemd-network` is systemd-networkd).
const PROGRAMS: [&str; 12] = [
    "irqbalance",
    "NetworkManager",
    "systemd-network",
    "chronyd",
    "ntpd",
    "systemd-timesyn",
    "ptp4l",
    "phc2sys",
    "dockerd",
    "containerd",
    "tuned",
    "power-profiles-",
];

pub(super) fn kernel(name: &Uname) -> Kernel {
    let flag = value::<u8>("/sys/kernel/realtime").map(|flag| flag == 1);
    let version = name.version().to_string_lossy();
    let processor = text("/proc/cpuinfo");
    let has_hypervisor = |text: &String| {
        let mut flags = text.lines().filter(|line| line.starts_with("flags"));
        let flags = flags.next()?;
        Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
    };
    Kernel {
        release: name.release().to_string_lossy().into_owned(),
        realtime: flag.or(Some(version.contains("PREEMPT_RT"))),
        virtual_machine: processor.as_ref().and_then(has_hypervisor),
        clocksource: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        clock_is_synchronised: isolane_hostnet::kernel_clock::is_synchronised().ok(),
        command_line: text("/proc/cmdline"),
    }
}

pub(super) fn cores() -> Cores {
    let list = |name: &str| text(format!("{CPUS}/{name}")).map(|text| number_list(&text));
    let online = list("online").unwrap_or_default();
    let governors = online.iter().filter_map(|core| {
        let path = format!("{CPUS}/cpu{core}/cpufreq/scaling_governor");
        Some((*core, text(path)?))
    });
    Cores {
        isolated: list("isolated"),
        nohz_full: list("nohz_full"),
        smt_active: value::<u8>(format!("{CPUS}/smt/active")).map(|flag| flag == 1),
        governors: governors.collect(),
        idle_states: online.first().map(idle_states).unwrap_or_default(),
        online,
    }
}

/// All cores of the machine, online or not.
pub(super) fn present_cores() -> Vec<u16> {
    let present = text(format!("{CPUS}/present"));
    present.map_or_else(Vec::new, |text| number_list(&text))
}

fn idle_states(core: &u16) -> Vec<IdleState> {
    let folder = PathBuf::from(format!("{CPUS}/cpu{core}/cpuidle"));
    let state = |name: &String| {
        let folder = folder.join(name);
        Some(IdleState {
            name: text(folder.join("name"))?,
            latency_us: value(folder.join("latency"))?,
            disabled: value::<u8>(folder.join("disable")) == Some(1),
        })
    };
    entries(&folder).iter().filter_map(state).collect()
}

pub(super) fn scheduling() -> Scheduling {
    const SERVERS: &str = "/sys/kernel/debug/sched/fair_server";
    let runtime = |name: &String| {
        let core = name.strip_prefix("cpu")?.parse().ok()?;
        Some((core, value(format!("{SERVERS}/{name}/runtime"))?))
    };
    Scheduling {
        realtime_runtime_us: value("/proc/sys/kernel/sched_rt_runtime_us"),
        realtime_period_us: value("/proc/sys/kernel/sched_rt_period_us"),
        fair_server_runtime_ns: entries(SERVERS)
            .iter()
            .filter_map(runtime)
            .collect::<BTreeMap<_, _>>(),
    }
}

pub(super) fn memory() -> Memory {
    let swaps = text("/proc/swaps").map(|text| {
        // A header, then: name, type, size in KiB, used, priority.
        let sizes = text
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok());
        sizes.sum::<u64>() * 1024
    });
    let huge_pages = text("/sys/kernel/mm/transparent_hugepage/enabled");
    let chosen = |text: String| {
        let (_, rest) = text.split_once('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    };
    Memory {
        swap_bytes: swaps,
        transparent_huge_pages: huge_pages.and_then(chosen),
    }
}

/// Programs of [`PROGRAMS`] that run in this PID namespace.
pub(super) fn programs() -> Vec<String> {
    let processes = entries("/proc");
    let names = processes
        .iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter_map(|process| text(format!("/proc/{process}/comm")));
    let mut found: Vec<String> = names
        .filter(|name| PROGRAMS.contains(&name.as_str()))
        .collect();
    found.sort();
    found.dedup();
    found
}
