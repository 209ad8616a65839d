//! Plan saved for the next boot, applied in two parts.
//!
//! The first part sets everything with a stable name. It may change the number of queues, which creates new interrupts
//! and NAPI instances. Only then are their numbers read, and the second part sets receive processing: interrupt
//! affinity, NAPI threads and their priorities. These settings do harm under another steering than planned; the first
//! part has set the steering by then.
//!
//! A setting whose interrupt or NAPI instance is not found again is skipped and reported: another may have the old
//! number.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Instant;

use isolane_hostnet::link::index_of;
use isolane_hostnet::napi;
use serde::{Deserialize, Serialize};

use super::state::State;
use super::{ApplyError, FailedStep, Here, RELIED_ON, StepError, journal};
use crate::limits::{BOOT_INTERFACE_TIMEOUT, BOOT_POLL_INTERVAL};
use crate::machine::napi_instance;
use crate::plan::{
    CoreAssignment, Plan, PlanError, SCHEMA as PLAN_SCHEMA, Step, When, parse_versioned,
};
use crate::probe::{device_interrupts, interrupt_names};
use crate::setting::Setting;

const SCHEMA: &str = "isolane/saved-plan/3";

/// Plan saved for the next boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedPlan {
    schema: String,
    plan: Plan,
    numbers: BootNumbers,
}

impl SavedPlan {
    /// Combines `plan` with the stable names of its interrupts and NAPI instances.
    #[must_use]
    pub fn new(plan: Plan, numbers: BootNumbers) -> Self {
        Self {
            schema: SCHEMA.into(),
            plan,
            numbers,
        }
    }

    /// Parses a saved plan from JSON.
    pub(super) fn from_json(text: &str) -> Result<Self, PlanError> {
        parse_versioned(text, "the saved plan", SCHEMA)
    }

    /// Returns whether nothing is to be set after a boot.
    pub(super) fn is_empty(&self) -> bool {
        self.plan.steps.is_empty()
    }

    /// Combines `plan` with the plan saved earlier, and keeps the steps that must be repeated after each boot. Steps
    /// for this boot only, and steps that restore kernel defaults, are dropped.
    pub(super) fn merged(plan: &Plan, earlier: Option<Self>, numbers: BootNumbers) -> Self {
        let mut own = plan.clone();
        // Steps based on measured receive queues are not repeated at boot, so their preconditions are not saved.
        if own.steps.iter().any(|step| step.when == When::ThisBoot) {
            own.preconditions.clear();
        }
        let earlier = earlier.filter(|saved| saved.plan.machine.is_same_as(&plan.machine));
        let mut whole = match earlier {
            // Interrupt and NAPI numbers of the saved plan may be of an earlier boot.
            Some(saved) => own.merge(&saved.renumbered(&numbers).0),
            None => own,
        };
        whole
            .steps
            .retain(|step| step.when != When::ThisBoot && !step.is_restoring());
        if !whole.steps.iter().any(is_receive_processing) {
            whole.preconditions.clear();
        }
        Self::new(whole, numbers)
    }

    /// Interfaces that the plan concerns.
    #[must_use]
    pub fn interfaces(&self) -> Vec<String> {
        self.interfaces_of(|_| true)
    }

    /// Interfaces that the plan configures, without those whose interrupts it only moves away.
    #[must_use]
    pub fn carriers(&self) -> Vec<String> {
        self.interfaces_of(|step| !step.is_of_other_device())
    }

    fn interfaces_of(&self, is_meant: impl Fn(&Step) -> bool) -> Vec<String> {
        let steps = self.plan.steps.iter().filter(|step| is_meant(step));
        let mut names: Vec<String> = steps
            .filter_map(|step| self.interface_of(&step.setting))
            .collect();
        names.sort();
        names.dedup();
        names
    }

    fn interface_of(&self, setting: &Setting) -> Option<String> {
        let numbered = || self.numbers.interface_of(setting);
        let name = match setting {
            Setting::Attribute { path } => {
                let rest = path.strip_prefix("/sys/class/net/");
                rest.and_then(|rest| rest.split('/').next())
                    .or_else(numbered)
            }
            Setting::Thread { .. } => numbered(),
            _ => setting.interface(),
        };
        name.map(String::from)
    }

    /// Waits until all [`carriers`](Self::carriers) are up, [`BOOT_INTERFACE_TIMEOUT`] has passed, or `is_stopped`
    /// returns true. Returns the interfaces that are still down.
    #[must_use]
    pub fn wait(&self, is_stopped: &dyn Fn() -> bool) -> Vec<String> {
        let end = Instant::now() + BOOT_INTERFACE_TIMEOUT;
        loop {
            let up = crate::probe::interfaces().unwrap_or_default();
            let is_up = |name: &String| up.iter().any(|known| known.name == *name && known.is_up);
            let mut missing = self.carriers();
            missing.retain(|name| !is_up(name));
            if missing.is_empty() || Instant::now() >= end || is_stopped() {
                return missing;
            }
            std::thread::sleep(BOOT_POLL_INTERVAL);
        }
    }

    /// First part: all steps outside receive processing.
    #[must_use]
    pub fn first_part(&self) -> Plan {
        let mut plan = self.plan.clone();
        plan.steps.retain(|step| !is_receive_processing(step));
        // No step of this part does harm if a precondition fails, and a step may set what a precondition requires.
        plan.preconditions.clear();
        plan
    }

    /// Second part with the current numbers, and the steps that are skipped because their setting was not found.
    #[must_use]
    pub fn second_part(&self, now: &BootNumbers) -> (Plan, Vec<FailedStep>) {
        let mut plan = self.clone();
        plan.plan.steps.retain(is_receive_processing);
        plan.renumbered(now)
    }

    /// Whole plan with the current numbers, and the skipped steps.
    fn renumbered(mut self, now: &BootNumbers) -> (Plan, Vec<FailedStep>) {
        let mut lost = Vec::new();
        let numbers = &self.numbers;
        self.plan.steps.retain_mut(|step| {
            match numbers.renumber(&step.setting, now) {
                Ok(setting) => step.setting = setting,
                Err(why) => {
                    lost.push(FailedStep::new(step, StepError::Lost { why }));
                    return false;
                }
            }
            true
        });
        (self.plan, lost)
    }
}

/// Returns whether a step concerns receive processing: its setting has an interrupt or NAPI number, or it creates a
/// device's NAPI threads.
fn is_receive_processing(step: &Step) -> bool {
    let makes_threads = |setting: &Setting| match setting {
        Setting::Attribute { path } => {
            path.starts_with("/sys/class/net/") && path.ends_with("/threaded")
        }
        Setting::Thread { .. } => true,
        _ => false,
    };
    has_boot_number(&step.setting) || makes_threads(&step.setting)
}

/// Numbers of interrupts and NAPI instances, which are valid until the next boot, with stable names.
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
pub(crate) fn has_boot_number(setting: &Setting) -> bool {
    numbered(setting).is_some()
}

impl BootNumbers {
    /// Reads the current numbers of this machine and of `interfaces`.
    #[must_use]
    pub fn read<'a>(interfaces: impl Iterator<Item = &'a str>) -> Self {
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

    /// Returns the setting with its current number. A setting without a number is returned unchanged. The error is the
    /// reason for which the current number was not found.
    pub(super) fn renumber(&self, setting: &Setting, now: &Self) -> Result<Setting, String> {
        let Some(Numbered {
            before,
            number,
            behind,
        }) = numbered(setting)
        else {
            return Ok(setting.clone());
        };
        let number = match number {
            Number::Interrupt(number) => self.renumber_interrupt(number, now)?,
            Number::Instance(interface, number) => {
                self.renumber_instance(interface, number, now)?
            }
        };
        let name = format!("{before}{number}{behind}");
        Ok(match setting {
            Setting::Thread { .. } => Setting::Thread { name },
            _ => Setting::Attribute { path: name },
        })
    }

    /// Returns an interrupt's current number. Interrupts of one name are matched by order, if their count is unchanged.
    fn renumber_interrupt(&self, number: u32, now: &Self) -> Result<u32, String> {
        let Some(name) = self.interrupts.get(&number) else {
            return Err(format!("the name of interrupt {number} is not recorded"));
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

    fn renumber_instance(&self, interface: &str, number: u32, now: &Self) -> Result<u32, String> {
        let of = |all: &Self| all.instances.get(interface).cloned().unwrap_or_default();
        let queue = of(self).into_iter().find(|(_, known)| *known == number);
        let Some((queue, _)) = queue else {
            return Err(format!(
                "the queue of NAPI instance {number} of {interface} is not recorded"
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

/// Plan as read from a file. It must be [admitted](Self::admit) before it can be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFile(Plan);

impl PlanFile {
    /// Parses a plan from JSON.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        parse_versioned(text, "the plan", PLAN_SCHEMA).map(Self)
    }

    /// Returns the plan, if planning can produce each of its steps. A step may also restore the original value of a
    /// setting, as in this folder's journal.
    ///
    /// # Errors
    /// [`ApplyError::Unplanned`]; or the journal cannot be read.
    pub fn admit(self, here: &Here, folder: &Path) -> Result<Plan, ApplyError> {
        let state = State::find(folder)?;
        let contents = match state {
            Some(state) => journal::read(&state)?,
            None => None,
        };
        let mut found = HashMap::new();
        if let Some(contents) = contents {
            contents.check_schema()?;
            contents.check()?;
            found.extend(contents.originals(&here.boot_id));
        }
        let Self(plan) = self;
        let steps = plan.steps.iter();
        let mut agreed = CoreAssignment::default();
        let steps = steps.filter(|step| {
            let found = found.get(&step.setting);
            !(step.is_valid(found, &here.cores) && agreed.admit(step))
        });
        let mut refused: Vec<String> = steps
            .map(|step| format!("{}: {} to {}", step.id, step.setting, step.to))
            .collect();
        let relied_on = plan.preconditions.iter().filter(|it| !it.is_valid());
        refused.extend(relied_on.map(|it| format!("{RELIED_ON}: {}", it.setting)));
        match refused.is_empty() {
            true => Ok(plan),
            false => Err(ApplyError::Unplanned(refused)),
        }
    }
}

#[cfg(test)]
mod boot_numbers_tests {
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
            assert_eq!(then.renumber(&before, &now), Ok(after));
            assert!(has_boot_number(&before));
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
            (
                attribute("/proc/irq/25/smp_affinity_list"),
                "is not recorded",
            ),
            (thread("irq/24-eth0-TxRx-1"), "and are 0 now"),
            (thread("napi/eth0-8194"), "receive queue 2"),
            (thread("napi/eth0-7"), "is not recorded"),
            (thread("napi/eth1-8193"), "is not recorded"),
        ] {
            let said = then.renumber(&lost, &now).expect_err("it is not there");
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
            assert_eq!(then.renumber(&setting, &now), Ok(setting.clone()));
            assert!(!has_boot_number(&setting), "{setting}");
        }
    }

    #[test]
    fn interrupts_of_one_name_are_distinguished_by_their_order() {
        let then = numbers(&[(39, "eth0"), (40, "eth0")], &[]);
        let path = attribute("/proc/irq/40/smp_affinity_list");
        let two = numbers(&[(51, "eth0"), (53, "eth0")], &[]);
        let expected = attribute("/proc/irq/53/smp_affinity_list");
        assert_eq!(then.renumber(&path, &two), Ok(expected));
        let one = numbers(&[(51, "eth0")], &[]);
        then.renumber(&path, &one)
            .expect_err("which of both is left?");
    }
}

#[cfg(test)]
mod plan_file_tests {
    use super::*;

    #[test]
    fn a_plan_of_another_version_is_reported_as_such() {
        let newer = r#"{"schema":"isolane/plan/9","steps":[{"something":"else"}]}"#;
        let error = PlanFile::from_json(newer).unwrap_err();
        assert!(matches!(&error, PlanError::Form(form) if form.found == "isolane/plan/9"));
        let none = format!(r#"{{"schema":"{PLAN_SCHEMA}","steps":3}}"#);
        let none = PlanFile::from_json(&none).unwrap_err();
        assert!(matches!(none, PlanError::Text(_)), "{none}");
        assert!(matches!(PlanFile::from_json("[]"), Err(PlanError::Text(_))));
    }

    #[test]
    fn what_an_error_says_of_a_long_text_is_short() {
        let long = "x".repeat(1 << 20);
        for text in [
            format!(r#"{{"schema":"{long}"}}"#),
            format!(r#"{{"schema":"{PLAN_SCHEMA}","{long}":1}}"#),
        ] {
            let error = PlanFile::from_json(&text).unwrap_err();
            assert!(
                error.to_string().len() < 400,
                "{} bytes",
                error.to_string().len()
            );
        }
    }
}

#[cfg(test)]
mod tests;
