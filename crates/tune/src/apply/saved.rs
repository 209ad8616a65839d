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
use crate::plan::{Plan, PlanError, Step, When, of_form};
use crate::setting::Setting;

const SCHEMA: &str = "isolane/saved-plan/2";

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

    /// Reads one as it is saved, in JSON.
    ///
    /// # Errors
    /// [`PlanError`].
    pub(super) fn from_json(text: &str) -> Result<Self, PlanError> {
        of_form(text, "the saved plan", SCHEMA)
    }

    /// Whether there is nothing to set after a boot.
    pub(super) fn is_empty(&self) -> bool {
        self.plan.steps.is_empty()
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
        self.interfaces_of(|_| true)
    }

    /// Those that are set up: without others, of which interrupts are moved if they are there.
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

    /// Waits until all [`carriers`](Self::carriers) are up, [`BOOT_PATIENCE`] is over, or it is stopped; those that are not.
    #[must_use]
    pub fn wait(&self, is_stopped: &dyn Fn() -> bool) -> Vec<String> {
        let end = Instant::now() + BOOT_PATIENCE;
        loop {
            let up = crate::probe::interfaces().unwrap_or_default();
            let is_up = |name: &String| up.iter().any(|known| known.name == *name && known.is_up);
            let mut missing = self.carriers();
            missing.retain(|name| !is_up(name));
            if missing.is_empty() || Instant::now() >= end || is_stopped() {
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
mod tests;
