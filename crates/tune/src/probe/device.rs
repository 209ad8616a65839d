//! Reading of devices: driver data by netlink and ioctl, kernel data from sysfs.

use isolane_hostnet::ethtool::{self, Ethtool, ntuple, rss};
use isolane_hostnet::qdisc::Queueing;

use super::files::{entries, value};
use super::interrupts::interrupts;
use crate::facts::{Device, Interface};
use crate::limits::MAX_DEVICES;
use crate::machine::KernelThreads;

pub(super) fn devices(interfaces: &[Interface]) -> Vec<Device> {
    let mut sources = Sources {
        ethtool: Ethtool::open().ok(),
        queueing: Queueing::open().ok(),
        threads: KernelThreads::look(),
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
    threads: KernelThreads,
}

impl Sources {
    fn device(&mut self, interface: &Interface) -> Device {
        let name = &interface.name;
        let folder = format!("/sys/class/net/{name}");
        let mut device = Device {
            interface: name.clone(),
            driver: ethtool::driver(name).or_else(|| interface.driver.clone()),
            // Without a table nothing is spread, whatever function the driver names.
            receive_hash: rss::receive_hash(name)
                .ok()
                .filter(|hash| !hash.table.is_empty()),
            flow_rules: ntuple::rules(name).ok(),
            interrupts: interrupts(name, &self.threads),
            gro_flush_timeout_ns: value(format!("{folder}/gro_flush_timeout")),
            deferred_interrupts: value(format!("{folder}/napi_defer_hard_irqs")),
            threaded: value::<u8>(format!("{folder}/threaded")).map(|value| value != 0),
            ..Device::default()
        };
        if let Some(queueing) = &mut self.queueing {
            device.root_qdisc = queueing.root(name).ok().flatten();
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

/// Folders of a device's queues, `.../queues/rx-0`, those that receive first, each by number.
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
