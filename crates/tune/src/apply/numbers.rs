//! Kernel numbers that change with a boot or a new number of queues: of interrupts and NAPI instances. Interrupt names
//! and queue indices are stable, so with them a setting is found again under its new number.

use std::collections::BTreeMap;

use isolane_hostnet::link::index_of;
use isolane_hostnet::napi;
use serde::{Deserialize, Serialize};

use crate::machine::napi_instance;
use crate::probe::{device_interrupts, interrupt_names};
use crate::setting::Setting;

/// Kernel numbers valid until the next boot, with their stable names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootNumbers {
    /// Names of all interrupts, by number.
    pub interrupts: BTreeMap<u32, String>,
    /// Interrupts of each interface's device.
    pub devices: BTreeMap<String, Vec<u32>>,
    /// NAPI instances of each interface, by receive queue.
    pub instances: BTreeMap<String, BTreeMap<u32, u32>>,
}

/// Number within a setting's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number<'a> {
    Interrupt(u32),
    /// Interface and NAPI instance.
    Instance(&'a str, u32),
}

/// Setting name, split around its number.
struct Numbered<'a> {
    before: &'a str,
    number: Number<'a>,
    behind: &'a str,
}

/// Splits a setting's name around an interrupt or NAPI number, if it has one.
fn numbered(setting: &Setting) -> Option<Numbered<'_>> {
    let interrupt = |text: &'static str, name: &'_ str, end: char| {
        let rest = name.strip_prefix(text)?;
        let number = rest.split(end).next()?;
        Some((number.parse::<u32>().ok()?, number.len()))
    };
    let (name, start, end) = match setting {
        Setting::Attribute { path } => (path, "/proc/irq/", '/'),
        Setting::Thread { name } => (name, "irq/", '-'),
        _ => return None,
    };
    if let Some((number, digits)) = interrupt(start, name, end) {
        return Some(Numbered {
            before: &name[..start.len()],
            number: Number::Interrupt(number),
            behind: &name[start.len() + digits..],
        });
    }
    // `napi/eth0-8193`
    if !matches!(setting, Setting::Thread { .. }) {
        return None;
    }
    let (interface, instance) = napi_instance(name)?;
    Some(Numbered {
        before: &name[..=name.rfind('-')?],
        number: Number::Instance(interface, instance),
        behind: "",
    })
}

/// Returns whether a setting's name contains a number that changes with a boot.
pub(crate) fn has_number(setting: &Setting) -> bool {
    numbered(setting).is_some()
}

impl BootNumbers {
    /// Reads the current numbers of this machine and of `interfaces`.
    #[must_use]
    pub fn look<'a>(interfaces: impl Iterator<Item = &'a str>) -> Self {
        let mut numbers = Self {
            interrupts: interrupt_names(),
            ..Self::default()
        };
        for interface in interfaces {
            let index = index_of(interface).ok();
            let queues = index.and_then(|index| napi::state(index).ok());
            let queues = queues.unwrap_or_default();
            let instances = queues.iter().map(|queue| (queue.queue, queue.instance));
            let name = || interface.to_owned();
            numbers.instances.insert(name(), instances.collect());
            let interrupts = device_interrupts(interface);
            numbers.devices.insert(name(), interrupts);
        }
        numbers
    }

    /// Interface of the device whose interrupt or NAPI instance the setting names.
    pub(super) fn interface_of<'a>(&'a self, setting: &'a Setting) -> Option<&'a str> {
        match numbered(setting)?.number {
            Number::Instance(interface, _) => Some(interface),
            Number::Interrupt(number) => {
                let mut devices = self.devices.iter();
                let (interface, _) = devices.find(|(_, own)| own.contains(&number))?;
                Some(interface)
            }
        }
    }

    /// Returns the setting under its current number; a setting without a number is returned unchanged. If it is not
    /// found, the error is the reason: the old number may belong to something else.
    pub(super) fn again(&self, setting: &Setting, now: &Self) -> Result<Setting, String> {
        let Some(Numbered {
            before,
            number,
            behind,
        }) = numbered(setting)
        else {
            return Ok(setting.clone());
        };
        let number = match number {
            Number::Interrupt(number) => self.interrupt_again(number, now)?,
            Number::Instance(interface, number) => self.instance_again(interface, number, now)?,
        };
        let name = format!("{before}{number}{behind}");
        Ok(match setting {
            Setting::Thread { .. } => Setting::Thread { name },
            _ => Setting::Attribute { path: name },
        })
    }

    /// Interrupts that share a name are matched by their order, if their count is unchanged.
    fn interrupt_again(&self, number: u32, now: &Self) -> Result<u32, String> {
        let Some(name) = self.interrupts.get(&number) else {
            return Err(format!("which interrupt {number} was is not known"));
        };
        let own = self.named(name);
        let others = now.named(name);
        let place = own.iter().position(|known| *known == number);
        match place.and_then(|place| others.get(place)) {
            Some(number) if own.len() == others.len() => Ok(*number),
            _ => Err(format!(
                "interrupt {number} was {name}, of which there were {}, and are {} now",
                own.len(),
                others.len()
            )),
        }
    }

    fn instance_again(&self, interface: &str, number: u32, now: &Self) -> Result<u32, String> {
        let of = |all: &Self| all.instances.get(interface).cloned().unwrap_or_default();
        let queue = of(self).into_iter().find(|(_, known)| *known == number);
        let Some((queue, _)) = queue else {
            return Err(format!(
                "which queue of {interface} instance {number} served is not known"
            ));
        };
        of(now)
            .get(&queue)
            .copied()
            .ok_or_else(|| format!("{interface} has no instance for receive queue {queue}"))
    }

    fn named(&self, name: &str) -> Vec<u32> {
        let all = self.interrupts.iter();
        all.filter(|(_, known)| *known == name)
            .map(|(number, _)| *number)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(path: &str) -> Setting {
        Setting::Attribute { path: path.into() }
    }

    fn thread(name: &str) -> Setting {
        Setting::Thread { name: name.into() }
    }

    fn numbers(interrupts: &[(u32, &str)], instances: &[(u32, u32)]) -> BootNumbers {
        let names = interrupts
            .iter()
            .map(|(number, name)| (*number, (*name).into()));
        let of_eth0 = interrupts
            .iter()
            .filter(|(_, name)| name.starts_with("eth0"));
        BootNumbers {
            interrupts: names.collect(),
            devices: BTreeMap::from([(
                "eth0".into(),
                of_eth0.map(|(number, _)| *number).collect(),
            )]),
            instances: BTreeMap::from([("eth0".into(), instances.iter().copied().collect())]),
        }
    }

    #[test]
    fn numbers_of_the_kernel_follow_what_they_stand_for() {
        let then = numbers(&[(24, "eth0-TxRx-1"), (9, "acpi")], &[(1, 8_193)]);
        let now = numbers(&[(57, "eth0-TxRx-1"), (24, "nvme0q1")], &[(1, 8_201)]);
        for (before, after) in [
            (
                attribute("/proc/irq/24/smp_affinity_list"),
                attribute("/proc/irq/57/smp_affinity_list"),
            ),
            (thread("irq/24-eth0-TxRx-1"), thread("irq/57-eth0-TxRx-1")),
            (thread("napi/eth0-8193"), thread("napi/eth0-8201")),
        ] {
            assert_eq!(then.again(&before, &now), Ok(after));
            assert!(has_number(&before));
            assert_eq!(then.interface_of(&before), Some("eth0"));
        }
    }

    #[test]
    fn what_is_not_found_again_keeps_no_old_number() {
        let then = numbers(
            &[(24, "eth0-TxRx-1"), (9, "acpi")],
            &[(1, 8_193), (2, 8_194)],
        );
        let now = numbers(&[(24, "nvme0q1")], &[(1, 8_201)]);
        for (lost, why) in [
            (attribute("/proc/irq/24/smp_affinity_list"), "eth0-TxRx-1"),
            (attribute("/proc/irq/25/smp_affinity_list"), "is not known"),
            (thread("irq/24-eth0-TxRx-1"), "and are 0 now"),
            (thread("napi/eth0-8194"), "receive queue 2"),
            (thread("napi/eth0-7"), "is not known"),
            (thread("napi/eth1-8193"), "is not known"),
        ] {
            let said = then.again(&lost, &now).expect_err("it is not there");
            assert!(said.contains(why), "{lost}: {said}");
        }
    }

    #[test]
    fn places_without_such_numbers_stay() {
        let (then, now) = (BootNumbers::default(), BootNumbers::default());
        for setting in [
            attribute("/proc/irq/default_smp_affinity"),
            attribute("/sys/class/net/eth0/queues/rx-0/rps_cpus"),
            thread("ksoftirqd/1"),
        ] {
            assert_eq!(then.again(&setting, &now), Ok(setting.clone()));
            assert!(!has_number(&setting), "{setting}");
        }
    }

    #[test]
    fn interrupts_of_one_name_are_told_apart_by_their_order() {
        let then = numbers(&[(39, "eth0"), (40, "eth0")], &[]);
        let path = attribute("/proc/irq/40/smp_affinity_list");
        let two = numbers(&[(51, "eth0"), (53, "eth0")], &[]);
        let expected = attribute("/proc/irq/53/smp_affinity_list");
        assert_eq!(then.again(&path, &two), Ok(expected));
        let one = numbers(&[(51, "eth0")], &[]);
        then.again(&path, &one).expect_err("which of both is left?");
    }
}
