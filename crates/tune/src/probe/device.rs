//! Devices behind interfaces: what their drivers say by netlink and ioctl, and what the kernel keeps
//! of them in sysfs.

use isolane_datapath_xdp::steering::{self, Placed};

use super::files::{entries, value};
use super::interrupts::interrupts;
use crate::ethtool::Ethtool;
use crate::facts::{Device, FlowRules, Interface, ReceiveHash};
use crate::limits::MAX_DEVICES;
use crate::machine::KernelThreads;
use crate::qdisc::Queueing;

/// The devices behind interfaces: all but loopback.
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
            driver: steering::driver(name).or_else(|| interface.driver.clone()),
            receive_hash: receive_hash(name),
            flow_rules: flow_rules(name),
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

fn receive_hash(interface: &str) -> Option<ReceiveHash> {
    let hash = steering::receive_hash(interface).ok()?;
    // Without a table nothing is spread, whatever function the driver names.
    if hash.table.is_empty() {
        return None;
    }
    let function = match hash.function {
        1 => Some("toeplitz"),
        2 => Some("xor"),
        4 => Some("crc32"),
        _ => None,
    };
    Some(ReceiveHash {
        function: function.map(String::from),
        key: Some(hash.key).filter(|key| !key.is_empty()),
        table: hash.table,
        symmetric: hash.transform != 0,
        udp4_hashes_ports: steering::udp4_hashes_ports(interface).ok(),
    })
}

fn flow_rules(interface: &str) -> Option<FlowRules> {
    let rules = steering::rules(interface).ok()?;
    let mut flow_rules = FlowRules {
        capacity: rules.capacity,
        ..FlowRules::default()
    };
    for (place, placed) in rules.placed {
        match placed {
            Placed::Known(rule) => {
                flow_rules.rules.insert(place, rule.into());
            }
            Placed::Other => flow_rules.others.push(place),
        }
    }
    Some(flow_rules)
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
