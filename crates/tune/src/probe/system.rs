//! Reading of the kernel, cores, scheduler, memory, rights, network stack, boot configuration and small files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use isolane_hostnet::kernel;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::process::{Resource, getrlimit};
use rustix::system::Uname;

use super::{entries, text, value, whole};
use crate::facts::{
    Boot, Cores, Firewall, IdleState, Interface, Kernel, Loader, Memory, Network, Permission,
    Rights, Scheduling,
};
use crate::kernel_lists::{number_list, ranges};
use crate::limits::{MAX_IDLE_STATES, MAX_RECORDED_CORES};
use crate::plan::isolation::unit_core_files;
use crate::setting::Document;

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

pub(super) fn kernel_facts(name: &Uname) -> Kernel {
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
        clock_is_synchronised: kernel::clock_is_synchronised().ok(),
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
    let chosen = |text: String| kernel::chosen_word(&text).map(String::from);
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

/// Capability numbers (linux/capability.h).
const NET_ADMIN: u32 = 12;
const NET_RAW: u32 = 13;
const IPC_LOCK: u32 = 14;
const SYS_NICE: u32 = 23;

pub(super) fn rights() -> Rights {
    let effective = kernel::effective_capabilities();
    let has = |capability: u32| effective.map(|set| set & (1 << capability) != 0);
    let limit = |resource| Some(getrlimit(resource).current.unwrap_or(u64::MAX));
    Rights {
        net_admin: has(NET_ADMIN),
        net_raw: has(NET_RAW),
        sys_nice: has(SYS_NICE),
        ipc_lock: has(IPC_LOCK),
        realtime_priority_limit: limit(Resource::Rtprio),
        locked_memory_limit_bytes: limit(Resource::Memlock),
        af_xdp: af_xdp(),
    }
}

/// Tests for AF_XDP by opening and closing a socket, without binding it.
fn af_xdp() -> Permission {
    match socket(AddressFamily::XDP, SocketType::RAW, None) {
        Ok(_) => Permission::Granted,
        Err(Errno::PERM | Errno::ACCESS) => Permission::Refused,
        Err(Errno::AFNOSUPPORT) => Permission::Absent,
        Err(_) => Permission::Unknown,
    }
}

pub(super) fn network() -> Network {
    let core = |name: &str| value(format!("/proc/sys/net/core/{name}"));
    let ipv4 = |name: &str| text(format!("/proc/sys/net/ipv4/{name}"));
    let local_ports = ipv4("ip_local_port_range").and_then(|text| {
        let mut ports = text.split_whitespace().map(str::parse);
        Some((ports.next()?.ok()?, ports.next()?.ok()?))
    });
    Network {
        rmem_default_bytes: core("rmem_default"),
        rmem_max_bytes: core("rmem_max"),
        netdev_max_backlog: core("netdev_max_backlog"),
        busy_read_us: core("busy_read"),
        local_ports,
        reserved_ports: ipv4("ip_local_reserved_ports")
            .map(|text| ranges(&text))
            .unwrap_or_default(),
        udp_ports: udp_ports(),
        udp_receive_buffer_errors: text("/proc/thread-self/net/snmp")
            .and_then(|text| udp_counter(&text, "RcvbufErrors")),
        firewall: firewall(),
    }
}

fn udp_ports() -> Option<Vec<u16>> {
    let mut ports = local_udp_ports(&text("/proc/thread-self/net/udp")?);
    if let Some(text) = text("/proc/thread-self/net/udp6") {
        ports.extend(local_udp_ports(&text));
    }
    ports.sort_unstable();
    ports.dedup();
    Some(ports)
}

/// Local ports in `/proc/net/udp`: a header, then lines of number, address:port, ...
fn local_udp_ports(text: &str) -> Vec<u16> {
    let port = |line: &str| {
        let (_, port) = line.split_whitespace().nth(1)?.rsplit_once(':')?;
        u16::from_str_radix(port, 16).ok()
    };
    text.lines().skip(1).filter_map(port).collect()
}

/// UDP counter in `/proc/net/snmp`: a line of names, then one of numbers.
fn udp_counter(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let position = lines
        .next()?
        .split_whitespace()
        .position(|known| known == name)?;
    lines.next()?.split_whitespace().nth(position)?.parse().ok()
}

fn firewall() -> Firewall {
    let modules = text("/proc/modules");
    let in_use = |modules: String| {
        // Fields: name, size, use count, users.
        let users = modules.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            (words.next()? == "nf_tables").then_some(())?;
            words.nth(1)?.parse::<u32>().ok()
        });
        users.is_some_and(|users| users > 0)
    };
    let tables = text("/proc/thread-self/net/ip_tables_names").unwrap_or_default();
    Firewall {
        nf_tables_in_use: modules.map(in_use),
        ip_tables: tables.lines().map(String::from).collect(),
    }
}

const ATTRIBUTES: [&str; 6] = [
    "/sys/devices/virtual/workqueue/cpumask",
    "/proc/irq/default_smp_affinity",
    "/proc/sys/kernel/watchdog_cpumask",
    "/proc/sys/vm/stat_interval",
    // Controllers of cgroup v2, and cpuset of cgroup v1.
    "/sys/fs/cgroup/cgroup.controllers",
    "/sys/fs/cgroup/cpuset/cpuset.cpus",
];
/// Files of each core, in addition to its idle states.
const OF_CORES: [&str; 2] = ["online", "topology/thread_siblings_list"];

pub(super) fn attributes(cores: &[u16], interfaces: &[Interface]) -> BTreeMap<String, String> {
    let mut paths: Vec<String> = ATTRIBUTES.map(String::from).to_vec();
    paths.extend(unit_core_files());
    for core in cores.iter().take(MAX_RECORDED_CORES) {
        let folder = format!("{CPUS}/cpu{core}");
        paths.extend(OF_CORES.map(|name| format!("{folder}/{name}")));
        for state in 0..MAX_IDLE_STATES {
            paths.push(format!("{folder}/cpuidle/state{state}/latency"));
            paths.push(format!("{folder}/cpuidle/state{state}/disable"));
        }
    }
    for interface in interfaces.iter().filter(|it| !it.is_loopback) {
        for queue in 0..interface.rx_queues.unwrap_or(0) {
            let path = format!(
                "/sys/class/net/{}/queues/rx-{queue}/rps_cpus",
                interface.name
            );
            // Folders exist only for queues in use.
            if !Path::new(&path).exists() {
                break;
            }
            paths.push(path);
        }
    }
    let known = paths
        .into_iter()
        .filter_map(|path| Some((text(&path)?, path)));
    known.map(|(text, path)| (path, text)).collect()
}

/// Texts of the existing documents, with line ends.
pub(super) fn documents() -> BTreeMap<String, String> {
    let there = Document::paths().filter_map(|path| Some((path.clone(), whole(path)?)));
    there.collect()
}

pub(super) fn boot() -> Boot {
    let has_grub = Path::new("/usr/sbin/update-grub").exists();
    let knows_loader = has_grub || Path::new("/boot").is_dir();
    let has_systemd = Path::new("/run/systemd/system").is_dir();
    Boot {
        loader: knows_loader.then_some(if has_grub {
            Loader::Grub
        } else {
            Loader::Other
        }),
        has_systemd: Some(has_systemd),
        systemd_cores: text("/proc/1/status")
            .filter(|_| has_systemd)
            .and_then(|status| cores_in(&status)),
    }
}

/// CPU affinity in a process's `/proc/PID/status`.
fn cores_in(status: &str) -> Option<Vec<u16>> {
    let mut lines = status.lines();
    let cores = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(number_list(cores.trim()))
}

#[cfg(test)]
mod network_tests {
    use super::*;

    #[test]
    fn local_ports_are_read_from_the_kernels_table() {
        let table = "  sl  local_address rem_address   st\n \
                     10: 00000000:1CE8 00000000:0000 07\n 11: 0100007F:1CF2 00000000:0000 07\n";
        assert_eq!(local_udp_ports(table), [7400, 7410]);
        assert!(local_udp_ports("").is_empty());
    }

    #[test]
    fn a_counter_is_found_by_its_name() {
        let table = "Ip: A\nIp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\n\
                     Udp: 5 6 7 8 9\n";
        assert_eq!(udp_counter(table, "RcvbufErrors"), Some(9));
        assert_eq!(udp_counter(table, "Other"), None);
        assert_eq!(udp_counter("", "RcvbufErrors"), None);
    }
}

#[cfg(test)]
mod places_tests {
    use super::*;

    #[test]
    fn the_cores_of_a_process_stand_in_its_status() {
        let status =
            "Name:\tsystemd\nCpus_allowed:\tb\nCpus_allowed_list:\t0-1,3\nMems_allowed:\t1\n";
        assert_eq!(cores_in(status), Some(vec![0, 1, 3]));
        assert_eq!(cores_in("Name:\tsystemd\n"), None);
    }
}
