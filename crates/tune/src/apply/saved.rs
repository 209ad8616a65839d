//! A plan as it is saved for the next boot, and as it is carried out then: in two parts.
//!
//! First all that has a lasting name. Among it may be another number of queues, which gives a device new
//! interrupts and new NAPI instances. Only then their numbers are looked up, and what is about receive
//! work follows: where interrupts go, whether it runs in threads, and their priorities. That part also is
//! the one that does harm on other steering than it was planned for, and by then the steering is set.
//!
//! What is not found again is left out, and told: under its old number it would be something else.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::numbers::{Numbers, has_number};
use super::{Hindrance, Obstacle};
use crate::limits::{BOOT_LOOK, BOOT_PATIENCE};
use crate::plan::{Plan, Step, When};
use crate::setting::Setting;

const SCHEMA: &str = "isolane/saved-plan/1";

/// A plan as it is saved for the next boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedPlan {
    schema: String,
    plan: Plan,
    numbers: Numbers,
}

impl SavedPlan {
    /// A plan, with what its numbers stand for now.
    #[must_use]
    pub fn new(plan: Plan, numbers: Numbers) -> Self {
        Self {
            schema: SCHEMA.into(),
            plan,
            numbers,
        }
    }

    /// What of a plan, behind the one that was saved earlier, is to be set again after each boot: not what holds
    /// for this boot only, nor what is put back to what the kernel does of itself.
    pub(super) fn following(plan: &Plan, earlier: Option<Self>, numbers: Numbers) -> Self {
        let mut own = plan.clone();
        // What rests on where datagrams landed is not repeated, and with it what that relied on.
        if own.steps.iter().any(|step| step.when == When::ThisBoot) {
            own.relies_on.clear();
        }
        let earlier = earlier.filter(|saved| saved.plan.machine.is_same_as(&plan.machine));
        let mut whole = match earlier {
            // The numbers it was saved with may be those of another boot.
            Some(saved) => own.following(&saved.renumbered(&numbers).0),
            None => own,
        };
        whole
            .steps
            .retain(|step| step.when != When::ThisBoot && !step.puts_back());
        if !whole.steps.iter().any(is_about_receive_work) {
            whole.relies_on.clear();
        }
        Self::new(whole, numbers)
    }

    /// The interfaces it is about.
    #[must_use]
    pub fn interfaces(&self) -> Vec<String> {
        let of = |step: &Step| self.interface_of(&step.setting);
        let mut names: Vec<String> = self.plan.steps.iter().filter_map(of).collect();
        names.sort();
        names.dedup();
        names
    }

    fn interface_of(&self, setting: &Setting) -> Option<String> {
        let of_path = |path: &str| {
            let rest = path.strip_prefix("/sys/class/net/")?;
            rest.split('/').next().map(String::from)
        };
        match setting {
            Setting::Channels { interface }
            | Setting::Rings { interface }
            | Setting::Coalescing { interface }
            | Setting::Feature { interface, .. }
            | Setting::RssTable { interface }
            | Setting::UdpHash { interface }
            | Setting::FlowRule { interface, .. }
            | Setting::RootQdisc { interface }
            | Setting::QueueQdisc { interface, .. } => Some(interface.clone()),
            Setting::Attribute { path } => {
                let of_number = || self.numbers.interface_of(setting).map(String::from);
                of_path(path).or_else(of_number)
            }
            Setting::Thread { .. } => self.numbers.interface_of(setting).map(String::from),
            Setting::Document { .. } | Setting::Folder { .. } => None,
        }
    }

    /// Waits until all of them are up, or [`BOOT_PATIENCE`] is over; those that are not.
    #[must_use]
    pub fn wait(&self) -> Vec<String> {
        let end = Instant::now() + BOOT_PATIENCE;
        loop {
            let up = crate::probe::interfaces().unwrap_or_default();
            let is_up = |name: &String| up.iter().any(|known| known.name == *name && known.is_up);
            let mut missing = self.interfaces();
            missing.retain(|name| !is_up(name));
            if missing.is_empty() || Instant::now() >= end {
                return missing;
            }
            std::thread::sleep(BOOT_LOOK);
        }
    }

    /// What is carried out first: all that is not about receive work.
    #[must_use]
    pub fn first_part(&self) -> Plan {
        let mut plan = self.plan.clone();
        plan.steps.retain(|step| !is_about_receive_work(step));
        // Nothing of it does harm without; and what it is may be set by these very steps.
        plan.relies_on.clear();
        plan
    }

    /// What is carried out behind it, with the numbers of now; and what is left out, since it is not found.
    #[must_use]
    pub fn second_part(&self, now: &Numbers) -> (Plan, Vec<Obstacle>) {
        let mut plan = self.clone();
        plan.plan.steps.retain(is_about_receive_work);
        plan.renumbered(now)
    }

    /// The whole plan with the numbers of now, and what is left out.
    fn renumbered(mut self, now: &Numbers) -> (Plan, Vec<Obstacle>) {
        let mut lost = Vec::new();
        let numbers = &self.numbers;
        self.plan.steps.retain_mut(|step| {
            match numbers.again(&step.setting, now) {
                Ok(setting) => step.setting = setting,
                Err(why) => {
                    lost.push(Obstacle::new(step, Hindrance::Lost { why }));
                    return false;
                }
            }
            true
        });
        (self.plan, lost)
    }
}

/// Whether a step is about interrupts, or threads of receive work: with a number in its name, or what makes
/// the threads of a device.
fn is_about_receive_work(step: &Step) -> bool {
    let makes_threads = |setting: &Setting| match setting {
        Setting::Attribute { path } => {
            path.starts_with("/sys/class/net/") && path.ends_with("/threaded")
        }
        Setting::Thread { .. } => true,
        _ => false,
    };
    has_number(&step.setting) || makes_threads(&step.setting)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::facts::Queues;
    use crate::plan::{Identity, Reliance};
    use crate::setting::{ThreadClass, Value};

    fn attribute(path: &str) -> Setting {
        Setting::Attribute { path: path.into() }
    }

    fn thread(name: &str) -> Setting {
        Setting::Thread { name: name.into() }
    }

    fn channels() -> Setting {
        Setting::Channels {
            interface: "eth0".into(),
        }
    }

    fn step(setting: Setting, from: Value, to: Value) -> Step {
        Step {
            id: setting.to_string(),
            setting,
            from,
            to,
            why: String::new(),
            topics: Vec::new(),
            costs: String::new(),
            undo: String::new(),
            when: When::Now,
        }
    }

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    fn fifo(priority: u8) -> Value {
        Value::Thread(ThreadClass {
            fifo: Some(priority),
            cores: Vec::new(),
        })
    }

    fn plan(steps: Vec<Step>) -> Plan {
        Plan {
            schema: crate::plan::SCHEMA.into(),
            machine: Identity::default(),
            origin: String::from("test"),
            profile: String::from("test"),
            boot_id: None,
            steps,
            refusals: Vec::new(),
            relies_on: Vec::new(),
        }
    }

    fn reliance() -> Reliance {
        Reliance {
            setting: Setting::UdpHash {
                interface: "eth0".into(),
            },
            value: Value::Switch(true),
        }
    }

    /// A device with one queue, whose interrupt and instance have these numbers.
    fn numbers(interrupt: u32, instance: u32) -> Numbers {
        Numbers {
            interrupts: BTreeMap::from([(interrupt, "eth0-TxRx-1".into())]),
            devices: BTreeMap::from([("eth0".into(), vec![interrupt])]),
            instances: BTreeMap::from([("eth0".into(), BTreeMap::from([(1, instance)]))]),
        }
    }

    fn affinity(interrupt: u32) -> Step {
        let path = format!("/proc/irq/{interrupt}/smp_affinity_list");
        step(attribute(&path), text("0-3"), text("1"))
    }

    fn settings(plan: &Plan) -> Vec<String> {
        plan.steps
            .iter()
            .map(|step| step.setting.to_string())
            .collect()
    }

    #[test]
    fn numbers_are_looked_up_behind_the_steps_that_give_new_ones() {
        let queues = |combined| {
            Value::Queues(Queues {
                combined,
                ..Queues::default()
            })
        };
        let threaded = attribute("/sys/class/net/eth0/threaded");
        let mut whole = plan(vec![
            step(channels(), queues(4), queues(2)),
            affinity(24),
            affinity(25),
            step(threaded, text("0"), text("1")),
            step(thread("napi/eth0-8193"), fifo(50), fifo(75)),
            step(
                attribute("/proc/sys/vm/stat_interval"),
                text("1"),
                text("10"),
            ),
        ]);
        whole.relies_on = vec![reliance()];
        let saved = SavedPlan::new(whole, numbers(24, 8_193));
        assert_eq!(saved.interfaces(), ["eth0"]);
        let first = saved.first_part();
        assert_eq!(
            settings(&first),
            ["queues of eth0", "/proc/sys/vm/stat_interval"]
        );
        assert!(first.relies_on.is_empty());
        // The device has its new queues by now.
        let (second, lost) = saved.second_part(&numbers(57, 8_201));
        assert_eq!(
            settings(&second),
            [
                "/proc/irq/57/smp_affinity_list",
                "/sys/class/net/eth0/threaded",
                "thread napi/eth0-8201"
            ]
        );
        assert_eq!(second.relies_on, [reliance()]);
        // Of which interrupt 25 was nothing is known: it is told, and no other one is set.
        let lost: Vec<String> = lost
            .iter()
            .map(|lost| format!("{}: {}", lost.id, lost.why))
            .collect();
        assert_eq!(
            lost,
            ["/proc/irq/25/smp_affinity_list: which interrupt 25 was is not known"]
        );
    }

    #[test]
    fn an_interface_is_waited_for_though_only_its_interrupts_are_set() {
        let saved = SavedPlan::new(plan(vec![affinity(24)]), numbers(24, 8_193));
        assert_eq!(saved.interfaces(), ["eth0"]);
    }

    #[test]
    fn what_was_saved_in_an_earlier_boot_is_renumbered_before_more_is_saved() {
        let earlier = SavedPlan::new(plan(vec![affinity(24)]), numbers(24, 8_193));
        let steps = vec![step(
            attribute("/proc/sys/vm/stat_interval"),
            text("1"),
            text("10"),
        )];
        let saved = SavedPlan::following(&plan(steps), Some(earlier), numbers(57, 8_201));
        let now = numbers(57, 8_201);
        assert_eq!(
            settings(&saved.second_part(&now).0),
            ["/proc/irq/57/smp_affinity_list"]
        );
    }

    #[test]
    fn what_is_put_back_is_not_set_again_after_a_boot() {
        let statistics = attribute("/proc/sys/vm/stat_interval");
        let set = step(statistics.clone(), text("1"), text("10"));
        let earlier = SavedPlan::new(plan(vec![set, affinity(24)]), numbers(24, 8_193));
        // Found with other white space than it was planned from: that is no other value.
        let mut back = step(statistics, text("10"), text("1 "));
        back.id = String::from("restore.statistics");
        let saved = SavedPlan::following(&plan(vec![back]), Some(earlier), numbers(24, 8_193));
        assert_eq!(settings(&saved.plan), ["/proc/irq/24/smp_affinity_list"]);
    }

    #[test]
    fn what_holds_for_this_boot_is_not_saved_and_nothing_relies_on_it() {
        let mut of_this_boot = affinity(24);
        of_this_boot.when = When::ThisBoot;
        // This one keeps an interrupt off a core, wherever datagrams land.
        let mut plan = plan(vec![of_this_boot, affinity(25)]);
        plan.relies_on = vec![reliance()];
        let saved = SavedPlan::following(&plan, None, Numbers::default());
        assert_eq!(settings(&saved.plan), ["/proc/irq/25/smp_affinity_list"]);
        assert!(saved.plan.relies_on.is_empty());
    }

    #[test]
    fn what_rests_on_rules_is_saved_with_what_it_relies_on() {
        let mut by_rules = plan(vec![affinity(24)]);
        by_rules.relies_on = vec![reliance()];
        let saved = SavedPlan::following(&by_rules, None, numbers(24, 8_193));
        assert_eq!(saved.plan.relies_on, [reliance()], "an interrupt alone");
        by_rules.steps = vec![step(channels(), Value::Absent, Value::Absent)];
        let saved = SavedPlan::following(&by_rules, None, Numbers::default());
        assert!(saved.plan.relies_on.is_empty(), "nothing does harm");
    }
}
