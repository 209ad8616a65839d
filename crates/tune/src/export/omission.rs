//! Steps omitted from an export.

use crate::plan::{Plan, Step, When, shell, steered_interface};
use crate::setting::{Setting, Value};

use super::names;

/// Reason that a step is omitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Omission {
    /// No system tool can do it: single RSS table entries.
    NoTool,
    /// The step uses receive-queue measurements of this boot, and an export is applied at other boots.
    ThisBoot,
    /// The step does harm if critical datagrams arrive on another queue, and no system tool steers them.
    NoSteering,
    /// The setting has a number that changes with each boot, and no name.
    NoName,
}

impl Omission {
    /// Text that completes a sentence starting with "left out, for".
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::NoTool => "no tool of the system does it",
            Self::ThisBoot => "it rests on this boot's measurement",
            Self::NoSteering => {
                "it does harm where critical datagrams come to another queue, and no tool steers them"
            }
            Self::NoName => "its number is another one after a boot, and no name tells which it is",
        }
    }
}

/// Command of a step, or the reason that there is none.
pub(super) fn line(plan: &Plan, step: &Step) -> Result<String, Omission> {
    if step.when == When::ThisBoot {
        return Err(Omission::ThisBoot);
    }
    let line = names::line(plan, step, &step.to)?;
    match needs_steering(step) && !is_whole(plan) {
        true => Err(Omission::NoSteering),
        false => Ok(line),
    }
}

/// Returns whether system tools can steer critical datagrams to their queue, and set all priorities that depend on it.
fn is_whole(plan: &Plan) -> bool {
    let steps = plan.steps.iter().map(|step| (&step.setting, &step.to));
    let relies_on = plan.relies_on.iter().map(|it| (&it.setting, &it.value));
    let mut steering = steps
        .chain(relies_on)
        .filter(|(setting, _)| steered_interface(setting).is_some());
    let mut rest = plan.steps.iter().filter(|step| needs_steering(step));
    steering.all(|(setting, value)| shell::line(setting, value).is_some())
        && rest.all(|step| names::line(plan, step, &step.to).is_ok())
}

/// Returns whether a step does harm if a critical flow arrives on a bulk queue: priorities of receive threads, and an
/// interrupt pinned to one core.
pub(super) fn needs_steering(step: &Step) -> bool {
    match (&step.setting, &step.to) {
        (Setting::Thread { .. }, _) => true,
        (Setting::Attribute { path }, Value::Text(cores)) => {
            // Interrupts of other devices are only kept off a core.
            let is_alone = !cores.contains([',', '-']) && !step.is_of_other_device();
            path.ends_with("/threaded") || (path.ends_with("/smp_affinity_list") && is_alone)
        }
        _ => false,
    }
}
