//! Side effects of a change: settings that drivers reset, and folders.
//!
//! A new number of queues or new rings make a driver restart its queues. The driver then resets the RSS table, the
//! kernel attaches its default queueing disciplines, and files and interrupts of queues come and go.
//!
//! When a core goes offline, interrupts bound to it alone get an affinity of all cores, and keep it. Back online, the
//! core has the default governor and all idle states.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::probe::entries;
use crate::probe::{device_interrupts, queue_folders};
use crate::setting::Setting;

const CPUS: &str = "/sys/devices/system/cpu";
const INTERRUPTS: &str = "/proc/irq";

pub(super) fn side_effects(setting: &Setting) -> Vec<Setting> {
    match setting {
        Setting::Channels { interface } | Setting::Rings { interface } => queue_settings(interface),
        Setting::RootQdisc { interface } => queue_qdiscs(interface),
        Setting::Document { path } | Setting::Folder { path } => missing_folders(path),
        Setting::Attribute { path } => match switched_core(path) {
            Some(core) => of_core(core, CPUS, INTERRUPTS),
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Queueing disciplines of single queues, which disappear with their root.
fn queue_qdiscs(interface: &str) -> Vec<Setting> {
    let folders = queue_folders(interface);
    let transmit = folders.iter().filter(|folder| folder.contains("/tx-"));
    (0_u16..)
        .zip(transmit)
        .map(|(queue, _)| Setting::QueueQdisc {
            interface: interface.into(),
            queue,
        })
        .collect()
}

fn queue_settings(interface: &str) -> Vec<Setting> {
    let attribute = |path: String| Setting::Attribute { path };
    let mut settings = vec![
        Setting::RssTable {
            interface: interface.into(),
        },
        Setting::RootQdisc {
            interface: interface.into(),
        },
        Setting::Coalescing {
            interface: interface.into(),
        },
    ];
    settings.extend(queue_qdiscs(interface));
    for folder in queue_folders(interface) {
        let file = match folder.contains("/rx-") {
            true => "rps_cpus",
            false => "xps_cpus",
        };
        settings.push(attribute(format!("{folder}/{file}")));
    }
    for interrupt in device_interrupts(interface) {
        settings.push(attribute(format!(
            "/proc/irq/{interrupt}/smp_affinity_list"
        )));
    }
    settings
}

/// Core that the file takes online and offline.
fn switched_core(path: &str) -> Option<u16> {
    let rest = path.strip_prefix(CPUS)?.strip_prefix("/cpu")?;
    rest.strip_suffix("/online")?.parse().ok()
}

/// Governor and idle states of a core, and the affinity of every interrupt.
fn of_core(core: u16, cores: &str, interrupts: &str) -> Vec<Setting> {
    let folder = format!("{cores}/cpu{core}");
    let states = entries(format!("{folder}/cpuidle"));
    let mut paths = vec![format!("{folder}/cpufreq/scaling_governor")];
    paths.extend(
        states
            .iter()
            .map(|state| format!("{folder}/cpuidle/{state}/disable")),
    );
    let mut numbers: Vec<u32> = entries(interrupts)
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    numbers.sort_unstable();
    paths.extend(
        numbers
            .iter()
            .map(|number| format!("{interrupts}/{number}/smp_affinity_list")),
    );
    // Affinity files of managed interrupts are read-only; the kernel itself restores their affinity.
    let can_be_written = |path: &String| {
        let mode = std::fs::metadata(path).map(|metadata| metadata.permissions().mode());
        mode.is_ok_and(|mode| mode & 0o200 != 0)
    };
    paths.retain(can_be_written);
    let attribute = |path| Setting::Attribute { path };
    paths.into_iter().map(attribute).collect()
}

/// Missing parent folders of a file, outermost first.
fn missing_folders(path: &str) -> Vec<Setting> {
    let above = Path::new(path).ancestors().skip(1);
    let mut missing: Vec<Setting> = above
        .take_while(|folder| !folder.exists())
        .filter_map(|folder| Some(folder.to_str()?.to_owned()))
        .filter(|path| !path.is_empty())
        .map(|path| Setting::Folder { path })
        .collect();
    missing.reverse();
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_are_missing_are_made_from_the_outside() {
        let base = std::env::temp_dir();
        let base = base.to_str().expect("UTF-8").trim_end_matches('/');
        let folder = |name: &str| Setting::Folder {
            path: format!("{base}/{name}"),
        };
        let path = format!("{base}/isolane-no/such/file");
        let expected = [folder("isolane-no"), folder("isolane-no/such")];
        assert_eq!(side_effects(&Setting::Document { path }), expected);
        let path = format!("{base}/isolane-no-such-file");
        assert!(side_effects(&Setting::Document { path }).is_empty());
    }

    #[test]
    fn a_core_that_is_switched_off_takes_its_governor_idle_states_and_interrupts_along() {
        assert_eq!(
            switched_core("/sys/devices/system/cpu/cpu12/online"),
            Some(12)
        );
        for other in ["/sys/devices/system/cpu/online", "/sys/cpu1/online"] {
            assert_eq!(switched_core(other), None, "{other}");
        }
        let base = std::env::temp_dir().join(format!("isolane-core-{}", std::process::id()));
        let base = base.to_str().expect("UTF-8");
        let (cores, interrupts) = (format!("{base}/cpu"), format!("{base}/irq"));
        let file = |path: &str, mode: u32| {
            let path = Path::new(base).join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
            std::fs::write(&path, "0\n").expect("ours");
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, mode).expect("ours");
        };
        file("cpu/cpu3/cpufreq/scaling_governor", 0o644);
        file("cpu/cpu3/cpuidle/state0/disable", 0o644);
        file("cpu/cpu3/cpuidle/state1/disable", 0o644);
        file("cpu/cpu2/cpuidle/state1/disable", 0o644);
        file("irq/9/smp_affinity_list", 0o644);
        file("irq/120/smp_affinity_list", 0o644);
        file("irq/121/smp_affinity_list", 0o444);
        file("irq/default_smp_affinity", 0o644);
        let found = of_core(3, &cores, &interrupts);
        // Files of the other core, and read-only files, are no side effects.
        let expected = [
            "cpu/cpu3/cpufreq/scaling_governor",
            "cpu/cpu3/cpuidle/state0/disable",
            "cpu/cpu3/cpuidle/state1/disable",
            "irq/9/smp_affinity_list",
            "irq/120/smp_affinity_list",
        ];
        let expected = expected.map(|path| Setting::Attribute {
            path: format!("{base}/{path}"),
        });
        assert_eq!(found, expected);
        std::fs::remove_dir_all(base).expect("ours");
        // Files of the machine that runs the test, as far as they exist.
        let path = String::from("/sys/devices/system/cpu/cpu1/online");
        for setting in side_effects(&Setting::Attribute { path }) {
            let Setting::Attribute { path } = setting else {
                panic!("{setting}");
            };
            assert!(Path::new(&path).exists(), "{path}");
        }
    }

    #[test]
    fn what_is_not_about_queues_stands_alone() {
        let path = String::from("/proc/sys/net/core/busy_read");
        assert!(side_effects(&Setting::Attribute { path }).is_empty());
    }
}
