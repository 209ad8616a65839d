//! Devices behind interfaces: what their drivers say by netlink and ioctl, and what the kernel keeps
//! of them in sysfs.

use std::path::Path;

use isolane_hostnet::ethtool::{self, Ethtool, ntuple, rss};
use isolane_hostnet::qdisc::Queueing;

use super::files::{entries, text, value};
use super::interrupts::interrupts;
use crate::facts::{Device, Interface};
use crate::limits::MAX_DEVICES;
use crate::machine::KernelThreads;

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
            receive_cores: receive_cores(name),
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

fn receive_cores(interface: &str) -> Vec<Vec<u16>> {
    queue_folders(interface)
        .iter()
        .filter(|folder| folder.contains("/rx-"))
        .filter_map(|folder| text(Path::new(folder).join("rps_cpus")))
        .map(|mask| cores_of_mask(&mask))
        .collect()
}

/// Cores of a mask as the kernel writes it: groups of 32 bits, most significant first.
fn cores_of_mask(mask: &str) -> Vec<u16> {
    let digits = mask.bytes().filter(u8::is_ascii_hexdigit).rev();
    let digits = digits.map(|digit| char::from(digit).to_digit(16).unwrap_or(0));
    (0_u16..)
        .zip(digits)
        .flat_map(|(place, digit)| {
            (0..4)
                .filter(move |bit| digit & (1 << bit) != 0)
                .map(move |bit| 4 * place + bit)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_a_set_of_cores() {
        assert_eq!(cores_of_mask("00000000,00000003"), [0, 1]);
        assert_eq!(cores_of_mask("2,00000000"), [33]);
        assert!(cores_of_mask("0").is_empty());
    }
}
