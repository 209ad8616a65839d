//! Reading of small files that a plan may change or needs, and of documents that isolane owns.

use std::collections::BTreeMap;
use std::path::Path;

use super::files::{number_list, text, whole};
use crate::facts::{Boot, Interface, Loader};
use crate::limits::MAX_RECORDED_CORES;
use crate::plan::slices;

const CPUS: &str = "/sys/devices/system/cpu";
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
const IDLE_STATES: u32 = 10;
/// Every document that a plan writes.
const DOCUMENTS: [&str; 9] = [
    "/etc/default/grub.d/90-isolane.cfg",
    "/etc/security/limits.d/90-isolane.conf",
    "/etc/systemd/system.conf.d/50-isolane.conf",
    "/etc/systemd/system/init.scope.d/50-isolane.conf",
    "/etc/systemd/system/irqbalance.service.d/50-isolane.conf",
    "/etc/systemd/system/isolane.slice",
    "/etc/systemd/system/machine.slice.d/50-isolane.conf",
    "/etc/systemd/system/system.slice.d/50-isolane.conf",
    "/etc/systemd/system/user.slice.d/50-isolane.conf",
];

pub(super) fn attributes(cores: &[u16], interfaces: &[Interface]) -> BTreeMap<String, String> {
    let mut paths: Vec<String> = ATTRIBUTES.map(String::from).to_vec();
    paths.extend(slices::bounds());
    for core in cores.iter().take(MAX_RECORDED_CORES) {
        let folder = format!("{CPUS}/cpu{core}");
        paths.extend(OF_CORES.map(|name| format!("{folder}/{name}")));
        for state in 0..IDLE_STATES {
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
    let there = DOCUMENTS
        .iter()
        .filter_map(|path| Some((String::from(*path), whole(path)?)));
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
mod tests {
    use super::*;

    #[test]
    fn the_cores_of_a_process_stand_in_its_status() {
        let status =
            "Name:\tsystemd\nCpus_allowed:\tb\nCpus_allowed_list:\t0-1,3\nMems_allowed:\t1\n";
        assert_eq!(cores_in(status), Some(vec![0, 1, 3]));
        assert_eq!(cores_in("Name:\tsystemd\n"), None);
    }
}
