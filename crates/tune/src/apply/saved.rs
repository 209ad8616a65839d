//! Plan saved for the next boot, applied in two parts.
//!
//! The first part sets everything with a stable name. It may change the number of queues, which creates new interrupts
//! and NAPI instances. Only then are the current numbers read, and the second part sets receive processing: interrupt
//! affinity, NAPI threads and their priorities. The second part is also the one that does harm under other steering
//! than planned, and the first has set the steering by then.
//!
//! A setting that is not found again is skipped and reported: its old number may belong to something else.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::numbers::{BootNumbers, has_number};
use super::{FailedStep, StepError};
use crate::limits::{BOOT_INTERFACE_TIMEOUT, BOOT_POLL_INTERVAL};
use crate::plan::{Plan, PlanError, Step, When, parse_versioned};
use crate::setting::Setting;

const SCHEMA: &str = "isolane/saved-plan/2";

/// Plan saved for the next boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedPlan {
    schema: String,
    plan: Plan,
    numbers: BootNumbers,
}

impl SavedPlan {
    /// Saves `plan` with the stable names of its numbers.
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

    /// Combines `plan` with the plan saved earlier, and keeps what must be set again after each boot. Dropped are steps
    /// for this boot only, and steps that restore kernel defaults.
    pub(super) fn following(plan: &Plan, earlier: Option<Self>, numbers: BootNumbers) -> Self {
        let mut own = plan.clone();
        // Steps based on measured receive queues are not repeated, so neither is what they relied on.
        if own.steps.iter().any(|step| step.when == When::ThisBoot) {
            own.relies_on.clear();
        }
        let earlier = earlier.filter(|saved| saved.plan.machine.is_same_as(&plan.machine));
        let mut whole = match earlier {
            // The saved numbers may be of an earlier boot.
            Some(saved) => own.following(&saved.renumbered(&numbers).0),
            None => own,
        };
        whole
            .steps
            .retain(|step| step.when != When::ThisBoot && !step.is_restoring());
        if !whole.steps.iter().any(is_receive_processing) {
            whole.relies_on.clear();
        }
        Self::new(whole, numbers)
    }

    /// Interfaces that the plan concerns.
    #[must_use]
    pub fn interfaces(&self) -> Vec<String> {
        self.interfaces_of(|_| true)
    }

    /// Interfaces that the plan configures: without those whose interrupts are only moved away.
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

    /// Waits until all [`carriers`](Self::carriers) are up, [`BOOT_INTERFACE_TIMEOUT`] has passed, or `is_stopped` returns true.
    /// Returns those still down.
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
        // No step of this part does harm without it, and these steps may set it.
        plan.relies_on.clear();
        plan
    }

    /// Second part, under the current numbers, and the steps skipped because their setting was not found.
    #[must_use]
    pub fn second_part(&self, now: &BootNumbers) -> (Plan, Vec<FailedStep>) {
        let mut plan = self.clone();
        plan.plan.steps.retain(is_receive_processing);
        plan.renumbered(now)
    }

    /// Whole plan under the current numbers, and the skipped steps.
    fn renumbered(mut self, now: &BootNumbers) -> (Plan, Vec<FailedStep>) {
        let mut lost = Vec::new();
        let numbers = &self.numbers;
        self.plan.steps.retain_mut(|step| {
            match numbers.again(&step.setting, now) {
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

/// Returns whether a step concerns receive processing: its name has an interrupt or NAPI number, or it creates a
/// device's NAPI threads.
fn is_receive_processing(step: &Step) -> bool {
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
