//! Reading of network devices and interrupts: driver data by netlink and ioctl, kernel data from sysfs and procfs.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use isolane_hostnet::ethtool::{self, Ethtool, ntuple, rss};
use isolane_hostnet::link::index_of;
use isolane_hostnet::netdev::Netdev;
use isolane_hostnet::qdisc::Queueing;

use super::{entries, text, value};
use crate::facts::{Device, Interface, Interrupt};
use crate::kernel_lists::number_list;
use crate::limits::MAX_DEVICES;
use crate::machine::{KernelThreads, class};

pub(super) fn devices(interfaces: &[Interface]) -> Vec<Device> {
    let mut sources = Sources {
        ethtool: Ethtool::open().ok(),
        queueing: Queueing::open().ok(),
        netdev: Netdev::open().ok(),
        threads: KernelThreads::list(),
    };
    let with_device = interfaces.iter().filter(|interface| !interface.is_loopback);
    with_device
        .take(MAX_DEVICES)
        .map(|interface| sources.device(interface))
        .collect()
}

struct Sources {
    ethtool: Option<Ethtool>,
    queueing: Option<Queueing>,
    netdev: Option<Netdev>,
    threads: KernelThreads,
}

impl Sources {
    fn device(&mut self, interface: &Interface) -> Device {
        let name = &interface.name;
        let folder = format!("/sys/class/net/{name}");
        let mut device = Device {
            interface: name.clone(),
            driver: ethtool::driver(name).or_else(|| interface.driver.clone()),
            // Without a table the device distributes no frames, whatever hash function the driver reports.
            receive_hash: rss::receive_hash(name)
                .ok()
                .filter(|hash| !hash.table.is_empty()),
            flow_rules: ntuple::rules(name).ok(),
            interrupts: interrupts(name, &self.threads),
            gro_flush_timeout_ns: value(format!("{folder}/gro_flush_timeout")),
            napi_defer_hard_irqs: value(format!("{folder}/napi_defer_hard_irqs")),
            threaded: value::<u8>(format!("{folder}/threaded")).map(|value| value != 0),
            ..Device::default()
        };
        if let Some(queueing) = &mut self.queueing {
            device.root_qdisc = queueing.root(name).ok().flatten();
        }
        // Drivers report the features of a device that is up.
        if let (Some(netdev), true, Ok(index)) = (&mut self.netdev, interface.is_up, index_of(name))
        {
            device.xdp_features = netdev.xdp_features(index).ok().flatten();
        }
        if let Some(ethtool) = &mut self.ethtool {
            by_ethtool(&mut device, ethtool);
        }
        device
    }
}

fn by_ethtool(device: &mut Device, ethtool: &mut Ethtool) {
    let name = device.interface.clone();
    if let Ok(Some((queues, most))) = ethtool.queues(&name) {
        (device.queues, device.queues_max) = (Some(queues), Some(most));
    }
    if let Ok(Some((rings, most))) = ethtool.rings(&name) {
        (device.rings, device.rings_max) = (Some(rings), Some(most));
    }
    device.coalescing = ethtool.coalescing(&name).ok().flatten();
    device.features = ethtool.features(&name).unwrap_or_default();
    device.timestamps = ethtool.timestamps(&name).ok().flatten();
}

/// Folders of a device's queues, `.../queues/rx-0`: receive queues first, in the order of their numbers.
pub(crate) fn queue_folders(interface: &str) -> Vec<String> {
    let folder = format!("/sys/class/net/{interface}/queues");
    let mut names = entries(&folder);
    let number = |name: &String| {
        let (kind, number) = name.split_once('-').unwrap_or((name, ""));
        (kind.to_owned(), number.parse::<u32>().unwrap_or(u32::MAX))
    };
    names.sort_by_key(number);
    names
        .into_iter()
        .map(|name| format!("{folder}/{name}"))
        .collect()
}

/// Numbers of a device's interrupts, ascending: those of its bus device or, for virtio, of that device's parent, and
/// those named after the interface (platform devices).
pub(crate) fn device_interrupts(interface: &str) -> Vec<u32> {
    let device = format!("/sys/class/net/{interface}/device");
    let of_bus = [
        format!("{device}/msi_irqs"),
        format!("{device}/../msi_irqs"),
    ]
    .iter()
    .map(entries)
    .find(|numbers| !numbers.is_empty())
    .unwrap_or_default();
    let mut numbers: Vec<u32> = of_bus
        .iter()
        .filter_map(|number| number.parse().ok())
        // Reserved interrupts that are unused have no folder.
        .filter(|number: &u32| std::fs::exists(format!("/proc/irq/{number}")).unwrap_or(false))
        .collect();
    let named = text("/proc/interrupts").unwrap_or_default();
    numbers.extend(numbers_named(&named, interface));
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Numbers of `/proc/interrupts` lines whose name is the interface's, alone or as a prefix.
fn numbers_named(table: &str, interface: &str) -> Vec<u32> {
    let number = |line: &str| {
        let (number, _) = line.split_once(':')?;
        let names = line.split_whitespace().rev().take(2);
        let is_its = names
            .into_iter()
            .any(|name| belongs(name.trim_end_matches(','), interface));
        is_its.then(|| number.trim().parse().ok()).flatten()
    };
    table.lines().filter_map(number).collect()
}

/// Returns whether an interrupt is named after the interface: for `eth0`, `eth0-TxRx-1` and `eth0:rx`, but not `eth01`.
fn belongs(name: &str, interface: &str) -> bool {
    let rest = name.strip_prefix(interface);
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
}

/// Interrupts of a device, with all readable details.
pub(super) fn interrupts(interface: &str, threads: &KernelThreads) -> Vec<Interrupt> {
    let numbers = device_interrupts(interface);
    let interrupt = |number: u32| {
        let name = text(format!("/sys/kernel/irq/{number}/actions")).unwrap_or_default();
        let (cores, is_managed) = cores(number);
        let thread = threads.with_prefix(&format!("irq/{number}-"));
        Interrupt {
            number,
            queue: queue(&name),
            name,
            cores,
            is_managed,
            thread: thread.map(|(process, name)| {
                let class = class(process).ok();
                (name.to_owned(), class.and_then(|class| class.fifo))
            }),
        }
    };
    numbers.into_iter().map(interrupt).collect()
}

/// Names of all interrupts in use, by number.
pub(crate) fn interrupt_names() -> BTreeMap<u32, String> {
    entries("/sys/kernel/irq")
        .into_iter()
        .filter_map(|number| {
            let name = text(format!("/sys/kernel/irq/{number}/actions"))?;
            Some((number.parse().ok()?, name))
        })
        .filter(|(_, name)| !name.is_empty())
        .collect()
}

/// All interrupts in use: number, name, affinity. Further details are in their device's list.
pub(super) fn all_interrupts() -> Vec<Interrupt> {
    let interrupt = |(number, name): (u32, String)| {
        let (cores, is_managed) = cores(number);
        Interrupt {
            number,
            name,
            cores,
            is_managed,
            ..Interrupt::default()
        }
    };
    interrupt_names().into_iter().map(interrupt).collect()
}

/// Affinity of an interrupt, and whether it is managed.
fn cores(number: u32) -> (Vec<u16>, bool) {
    let list = format!("/proc/irq/{number}/smp_affinity_list");
    let mode = std::fs::metadata(&list).map(|metadata| metadata.permissions().mode());
    let cores = text(&list).map(|list| number_list(&list));
    // The affinity file of a managed interrupt is read-only.
    let is_managed = mode.is_ok_and(|mode| mode & 0o200 == 0);
    (cores.unwrap_or_default(), is_managed)
}

/// Queue number in an interrupt's name: `eth0-TxRx-1`, `virtio0-input.1`, `mlx5_comp1@pci:0000:03:00.0`. A bare number
/// is not a queue: `eth0` is the whole device.
fn queue(name: &str) -> Option<u32> {
    let name = name.split('@').next()?;
    let words = [
        "TxRx-", "rx-", "Rx-", "tx-", "input.", "output.", "comp", "fp-",
    ];
    words.iter().find_map(|word| {
        let (_, rest) = name.rsplit_once(word)?;
        rest.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_read_from_the_names_drivers_give() {
        assert_eq!(queue("eth0-TxRx-1"), Some(1));
        assert_eq!(queue("enp1s0-rx-3"), Some(3));
        assert_eq!(queue("virtio0-input.0"), Some(0));
        assert_eq!(queue("mlx5_comp12@pci:0000:03:00.0"), Some(12));
        assert_eq!(queue("eth0"), None);
        assert_eq!(queue("mlx5_async0@pci:0000:03:00.0"), None);
    }

    #[test]
    fn a_device_without_a_bus_is_known_by_its_name() {
        let table = "           CPU0       CPU1\n \
                     24:   1   0   IR-PCI-MSI 1-edge      eth0-TxRx-0\n \
                     25:   1   0   IR-PCI-MSI 2-edge      eth01\n \
                     39:   1   0   GICv2  39 Level     eth0\n\
                     NMI:  0   0   Non-maskable interrupts\n";
        assert_eq!(numbers_named(table, "eth0"), [24, 39]);
        assert!(numbers_named(table, "eth").is_empty());
    }
}
