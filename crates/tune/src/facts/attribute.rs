//! Facts by file path: the value of any file that a plan may write, whichever field stores it.

use super::{Device, Facts, Interrupt, LanePrerequisites};
use crate::kernel_lists::{list, number_list, range_list, ranges};

const CPUS: &str = "/sys/devices/system/cpu/cpu";
const FAIR_SERVERS: &str = "/sys/kernel/debug/sched/fair_server/cpu";
const INTERFACES: &str = "/sys/class/net/";
const INTERRUPTS: &str = "/proc/irq/";

impl Facts {
    /// Content of a sysfs or procfs file; `None` if it does not exist or was not read.
    pub fn attribute(&self, path: &str) -> Option<String> {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        match path {
            "/proc/sys/kernel/sched_rt_runtime_us" => {
                self.scheduling.realtime_runtime_us.map(|it| it.to_string())
            }
            "/sys/kernel/mm/transparent_hugepage/enabled" => {
                self.memory.transparent_huge_pages.clone()
            }
            "/proc/sys/net/core/rmem_default" => number(self.network.rmem_default_bytes),
            "/proc/sys/net/core/rmem_max" => number(self.network.rmem_max_bytes),
            "/proc/sys/net/core/busy_read" => number(self.network.busy_read_us),
            "/proc/sys/net/ipv4/ip_local_reserved_ports" => {
                let known = self.network.local_ports.is_some();
                known.then(|| range_list(&self.network.reserved_ports))
            }
            _ => self
                .of_core(path)
                .or_else(|| self.of_interrupt(path))
                .or_else(|| self.of_interface(path))
                .or_else(|| self.attributes.get(path).cloned()),
        }
    }

    /// Records a new content of a file.
    pub(crate) fn set_attribute(&mut self, path: &str, text: &str) {
        let number = || text.parse().ok();
        match path {
            "/proc/sys/kernel/sched_rt_runtime_us" => {
                self.scheduling.realtime_runtime_us = text.parse().ok();
            }
            "/sys/kernel/mm/transparent_hugepage/enabled" => {
                self.memory.transparent_huge_pages = Some(text.to_owned());
            }
            "/proc/sys/net/core/rmem_default" => self.network.rmem_default_bytes = number(),
            "/proc/sys/net/core/rmem_max" => self.network.rmem_max_bytes = number(),
            "/proc/sys/net/core/busy_read" => self.network.busy_read_us = number(),
            "/proc/sys/net/ipv4/ip_local_reserved_ports" => {
                self.network.reserved_ports = ranges(text);
            }
            _ => {
                if !(self.set_core(path, text)
                    || self.set_interrupt(path, text)
                    || self.set_interface(path, text))
                {
                    self.attributes.insert(path.to_owned(), text.to_owned());
                }
            }
        }
    }

    fn of_core(&self, path: &str) -> Option<String> {
        if let Some(core) = between(path, FAIR_SERVERS, "/runtime") {
            let runtime = self.scheduling.fair_server_runtime_ns.get(&core)?;
            return Some(runtime.to_string());
        }
        let core = between(path, CPUS, "/cpufreq/scaling_governor")?;
        self.cores.governors.get(&core).cloned()
    }

    fn set_core(&mut self, path: &str, text: &str) -> bool {
        if let Some(core) = between(path, FAIR_SERVERS, "/runtime")
            && let Ok(runtime) = text.parse()
        {
            let servers = &mut self.scheduling.fair_server_runtime_ns;
            servers.insert(core, runtime);
            return true;
        }
        if let Some(core) = between(path, CPUS, "/cpufreq/scaling_governor") {
            self.cores.governors.insert(core, text.to_owned());
            return true;
        }
        if let Some(core) = between(path, CPUS, "/online") {
            // An offline core leaves the set, but its file remains.
            self.cores.online.retain(|online| *online != core);
            if text == "1" {
                self.cores.online.push(core);
                self.cores.online.sort_unstable();
            } else {
                self.send_anywhere();
            }
        }
        false
    }

    /// Lets movable interrupts without an online core go to any core. The kernel shuts down managed ones
    /// (`irq_migrate_all_off_this_cpu`).
    fn send_anywhere(&mut self) {
        let online = self.cores.online.clone();
        for interrupt in self.interrupts_mut() {
            let cores = &interrupt.cores;
            let has_one = cores.is_empty() || cores.iter().any(|core| online.contains(core));
            if !has_one && !interrupt.is_managed {
                interrupt.cores.clone_from(&online);
            }
        }
    }

    fn of_interrupt(&self, path: &str) -> Option<String> {
        let number: u32 = between(path, INTERRUPTS, "/smp_affinity_list")?;
        let of_devices = self.devices.iter().flat_map(|device| &device.interrupts);
        let mut all = of_devices.chain(&self.interrupts);
        Some(list(&all.find(|it| it.number == number)?.cores))
    }

    fn set_interrupt(&mut self, path: &str, text: &str) -> bool {
        let Some(number) = between::<u32>(path, INTERRUPTS, "/smp_affinity_list") else {
            return false;
        };
        let mut is_known = false;
        for interrupt in self.interrupts_mut().filter(|it| it.number == number) {
            interrupt.cores = number_list(text);
            is_known = true;
        }
        is_known
    }

    /// All interrupts of the facts; a device's interrupts are in two lists.
    fn interrupts_mut(&mut self) -> impl Iterator<Item = &mut Interrupt> {
        let of_devices = self.devices.iter_mut();
        let of_devices = of_devices.flat_map(|device| &mut device.interrupts);
        of_devices.chain(&mut self.interrupts)
    }

    /// Marks the interrupt of this affinity file as managed, so that it cannot be moved.
    pub(crate) fn mark_managed(&mut self, path: &str) {
        let number: Option<u32> = between(path, INTERRUPTS, "/smp_affinity_list");
        for interrupt in self.interrupts_mut() {
            interrupt.is_managed |= Some(interrupt.number) == number;
        }
    }

    fn of_interface(&self, path: &str) -> Option<String> {
        let (name, key) = path.strip_prefix(INTERFACES)?.split_once('/')?;
        let device = self.device(name)?;
        match key {
            "threaded" => device.threaded.map(|on| u8::from(on).to_string()),
            "gro_flush_timeout" => device.gro_flush_timeout_ns.map(|it| it.to_string()),
            "napi_defer_hard_irqs" => device.napi_defer_hard_irqs.map(|it| it.to_string()),
            _ => None,
        }
    }

    fn set_interface(&mut self, path: &str, text: &str) -> bool {
        let place = path.strip_prefix(INTERFACES);
        let Some((name, key)) = place.and_then(|place| place.split_once('/')) else {
            return false;
        };
        let mut devices = self.devices.iter_mut();
        let Some(device) = devices.find(|device| device.interface == name) else {
            return false;
        };
        match key {
            "threaded" => device.threaded = Some(text == "1"),
            "gro_flush_timeout" => device.gro_flush_timeout_ns = text.parse().ok(),
            "napi_defer_hard_irqs" => device.napi_defer_hard_irqs = text.parse().ok(),
            _ => return false,
        }
        true
    }

    /// Returns whether a program runs, by its name in `/proc`.
    pub(crate) fn runs(&self, program: &str) -> bool {
        self.programs.iter().any(|known| known == program)
    }

    /// Receive processing and prerequisites of an interface's lanes.
    pub(crate) fn lanes_of(&self, interface: &str) -> Option<&LanePrerequisites> {
        self.lanes.iter().find(|lanes| lanes.interface == interface)
    }

    /// Device of an interface.
    pub fn device(&self, interface: &str) -> Option<&Device> {
        let mut devices = self.devices.iter();
        devices.find(|device| device.interface == interface)
    }
}

/// Number between a prefix and a suffix of a path.
fn between<T: std::str::FromStr>(path: &str, start: &str, end: &str) -> Option<T> {
    let number = path.strip_prefix(start)?.strip_suffix(end)?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Interrupt;

    #[test]
    fn what_is_set_by_its_path_is_found_by_it_and_in_its_field() {
        let mut facts = Facts::default();
        facts.network.local_ports = Some((32_768, 60_999));
        facts.devices.push(Device {
            interface: String::from("eth0"),
            interrupts: vec![Interrupt {
                number: 24,
                ..Interrupt::default()
            }],
            ..Device::default()
        });
        for number in [9, 24] {
            facts.interrupts.push(Interrupt {
                number,
                ..Interrupt::default()
            });
        }
        for (path, text) in [
            ("/proc/sys/kernel/sched_rt_runtime_us", "-1"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
            ("/proc/sys/net/core/rmem_max", "4096"),
            (
                "/proc/sys/net/ipv4/ip_local_reserved_ports",
                "7000-7007,9000",
            ),
            ("/proc/irq/24/smp_affinity_list", "0-1,3"),
            ("/proc/irq/9/smp_affinity_list", "2"),
            ("/sys/class/net/eth0/threaded", "1"),
            ("/sys/class/net/eth0/gro_flush_timeout", "0"),
            (
                "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor",
                "performance",
            ),
            ("/sys/kernel/debug/sched/fair_server/cpu2/runtime", "0"),
            ("/proc/sys/vm/stat_interval", "10"),
        ] {
            facts.set_attribute(path, text);
            assert_eq!(facts.attribute(path).as_deref(), Some(text), "{path}");
        }
        assert_eq!(facts.attributes.len(), 1, "{:?}", facts.attributes);
        assert_eq!(facts.devices[0].interrupts[0].cores, [0, 1, 3]);
        assert_eq!(facts.interrupts[1].cores, [0, 1, 3], "the same one");
        assert_eq!(facts.attribute("/proc/irq/25/smp_affinity_list"), None);
    }

    #[test]
    fn a_core_that_is_switched_off_is_no_longer_among_those_that_run() {
        let mut facts = Facts::default();
        facts.cores.online = vec![0, 1, 2];
        for (cores, is_managed) in [(vec![2], false), (vec![1, 2], false), (vec![2], true)] {
            facts.interrupts.push(Interrupt {
                cores,
                is_managed,
                ..Interrupt::default()
            });
        }
        facts.set_attribute("/sys/devices/system/cpu/cpu2/online", "0");
        assert_eq!(facts.cores.online, [0, 1]);
        let cores: Vec<&[u16]> = facts.interrupts.iter().map(|it| &it.cores[..]).collect();
        assert_eq!(
            cores,
            [&[0, 1][..], &[1, 2], &[2]],
            "the kernel sends the first to any core that runs; the last is its own"
        );
        facts.set_attribute("/sys/devices/system/cpu/cpu2/online", "1");
        assert_eq!(facts.cores.online, [0, 1, 2]);
    }
}
