//! What of a plan is left out of other forms, and why.

use crate::plan::{Plan, Step, When, shell, steers};
use crate::setting::{Setting, Value};

use super::names;

/// Why a step is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Omission {
    /// No tool of the system does it: single entries of a receive table.
    NoTool,
    /// It rests on where datagrams were seen to land since the machine started; what is exported is carried out at
    /// boots.
    ThisBoot,
    /// It does harm where critical datagrams come to another queue, and no tool steers them.
    NoSteering,
    /// What it is about is told by a number that is another one after a boot, and by no name.
    NoName,
}

impl Omission {
    /// For people: the end of a sentence that begins with "left out, for".
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

/// What does a step; or why nothing does.
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

/// Whether tools of the system can have critical datagrams come to their queue, and set all priorities that go with it.
fn is_whole(plan: &Plan) -> bool {
    let steps = plan.steps.iter().map(|step| (&step.setting, &step.to));
    let relies_on = plan.relies_on.iter().map(|it| (&it.setting, &it.value));
    let mut steering = steps
        .chain(relies_on)
        .filter(|(setting, _)| steers(setting).is_some());
    let mut rest = plan.steps.iter().filter(|step| needs_steering(step));
    steering.all(|(setting, value)| shell::line(setting, value).is_some())
        && rest.all(|step| names::line(plan, step, &step.to).is_ok())
}

/// Whether a step does harm where a critical flow comes to a bulk queue: priorities of receive work, and an interrupt on
/// one core alone.
pub(super) fn needs_steering(step: &Step) -> bool {
    match (&step.setting, &step.to) {
        (Setting::Thread { .. }, _) => true,
        (Setting::Attribute { path }, Value::Text(cores)) => {
            // Those of other devices are only kept off a core.
            let is_alone = !cores.contains([',', '-']) && !step.is_of_other_device();
            path.ends_with("/threaded") || (path.ends_with("/smp_affinity_list") && is_alone)
        }
        _ => false,
    }
}
