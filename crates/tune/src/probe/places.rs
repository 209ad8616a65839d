//! Small files that a plan may change, or has to know, as they stand; and our own files on disk.

use std::collections::BTreeMap;
use std::path::Path;

use super::files::{text, whole};
use crate::facts::{Boot, Interface, Loader};
use crate::limits::MAX_PLACE_CORES;

const CPUS: &str = "/sys/devices/system/cpu";
/// Of the whole machine.
const ATTRIBUTES: [&str; 4] = [
    "/sys/devices/virtual/workqueue/cpumask",
    "/proc/irq/default_smp_affinity",
    "/proc/sys/kernel/watchdog_cpumask",
    "/proc/sys/vm/stat_interval",
];
/// Of each core; idle states beside them.
const OF_CORES: [&str; 2] = ["online", "topology/thread_siblings_list"];
const IDLE_STATES: u32 = 10;
/// Every file on disk that a plan writes.
const DOCUMENTS: [&str; 7] = [
    "/etc/default/grub.d/90-isolane.cfg",
    "/etc/security/limits.d/90-isolane.conf",
    "/etc/systemd/system/init.scope.d/50-isolane.conf",
    "/etc/systemd/system/irqbalance.service.d/50-isolane.conf",
    "/etc/systemd/system/isolane.slice",
    "/etc/systemd/system/system.slice.d/50-isolane.conf",
    "/etc/systemd/system/user.slice.d/50-isolane.conf",
];

/// What stands in the files that a plan may change, of those that are there.
pub(super) fn attributes(cores: &[u16], interfaces: &[Interface]) -> BTreeMap<String, String> {
    let mut paths: Vec<String> = ATTRIBUTES.map(String::from).to_vec();
    for core in cores.iter().take(MAX_PLACE_CORES) {
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
            // Beyond the queues in use there are none.
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

/// Our files on disk, with the ends of their lines.
pub(super) fn documents() -> BTreeMap<String, String> {
    let there = DOCUMENTS
        .iter()
        .filter_map(|path| Some((String::from(*path), whole(path)?)));
    there.collect()
}

/// How the machine starts.
pub(super) fn boot() -> Boot {
    let has_grub = Path::new("/usr/sbin/update-grub").exists();
    let knows_loader = has_grub || Path::new("/boot").is_dir();
    Boot {
        loader: knows_loader.then_some(if has_grub {
            Loader::Grub
        } else {
            Loader::Other
        }),
        has_systemd: Some(Path::new("/run/systemd/system").is_dir()),
    }
}
