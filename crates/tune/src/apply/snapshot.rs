//! Inspection before applying: reads every setting of the plan, and every setting that the plan's changes may reset.

use std::collections::HashMap;

use super::journal::Found;
use super::{Applied, ApplyError, FailedStep, RELIED_ON, StepError};
use crate::plan::{Plan, Precondition, Step, When};
use crate::setting::{Machine, Setting, SettingError, Value};

/// Result of the inspection.
pub(super) struct Snapshot<'a> {
    pub(super) to_change: Vec<&'a Step>,
    /// Original values of all settings that may change, in the order of the changes; restored in reverse order.
    pub(super) found: Vec<Found>,
    pub(super) preconditions: Vec<&'a Precondition>,
    pub(super) applied: Applied,
}

impl Snapshot<'_> {
    /// Records that a step is skipped because the machine refused it.
    pub(super) fn skip(&mut self, step: &Step, why: SettingError) {
        let is_another = |id: &String| *id != step.id;
        self.applied.changed.retain(is_another);
        self.applied.unexpected.retain(is_another);
        let failed = FailedStep::new(step, StepError::Unreadable(why));
        self.applied.left_out.push(failed);
    }

    pub(super) fn is_skipped(&self, step: &Step) -> bool {
        let mut left_out = self.applied.left_out.iter();
        left_out.any(|it| it.setting == step.setting)
    }

    /// Original and current values of settings whose steps were skipped.
    pub(super) fn skipped_values(&self) -> impl Iterator<Item = (&Found, Value)> {
        self.found.iter().filter_map(|found| {
            found.to.as_ref()?;
            let mut left_out = self.applied.left_out.iter();
            let failed = left_out.find(|it| it.setting == found.setting)?;
            let stands = match &failed.why {
                StepError::Unreadable(SettingError::Gone) => Value::Absent,
                StepError::Unreadable(SettingError::Ignored { found }) => (**found).clone(),
                _ => found.value.clone(),
            };
            Some((found, stands))
        })
    }
}

/// Reads all settings of the plan. Refuses the plan if their values differ from its assumptions.
pub(super) fn take_snapshot<'a>(
    machine: &mut dyn Machine,
    plan: &'a Plan,
    boot_id: &str,
    is_boot: bool,
) -> Result<Snapshot<'a>, ApplyError> {
    let mut snapshot = Snapshot {
        to_change: Vec::new(),
        found: Vec::new(),
        preconditions: plan.preconditions.iter().collect(),
        applied: Applied::default(),
    };
    let mut failed_steps = Vec::new();
    let failed_precondition = match is_boot {
        true => failed_precondition(machine, plan),
        false => None,
    };
    if failed_precondition.is_some() {
        snapshot.preconditions.clear();
    }
    // Values that earlier steps of this plan will have set.
    let mut expected: HashMap<&Setting, &Value> = HashMap::new();
    for step in &plan.steps {
        let mut fail = |snapshot: &mut Snapshot<'_>, why| {
            let failed = FailedStep::new(step, why);
            match is_boot || step.is_of_other_device() {
                true => snapshot.applied.left_out.push(failed),
                false => failed_steps.push(failed),
            }
        };
        if let Some(why) = failed_precondition
            .as_ref()
            .filter(|_| step.is_of_topic_interface())
        {
            fail(&mut snapshot, StepError::PreconditionFailed(why.clone()));
            continue;
        }
        let found = match expected.get(&step.setting) {
            Some(value) => (*value).clone(),
            None => match read_or_absent(machine, step) {
                Ok(value) => value,
                Err(why) => {
                    fail(&mut snapshot, StepError::Unreadable(why));
                    continue;
                }
            },
        };
        // A setting that an earlier step resets is set again, even if it has the right value now.
        let is_reset = snapshot
            .found
            .iter()
            .any(|known| known.setting == step.setting);
        if !is_reset && step.to.matches(&step.setting, &found) {
            snapshot.applied.already.push(step.id.clone());
            continue;
        }
        let is_planned = |planned: &Value| planned.matches(&step.setting, &found);
        let is_unexpected = !is_planned(&step.from) && !is_planned(&step.to);
        if is_unexpected && !is_boot {
            fail(&mut snapshot, StepError::Stale { found });
            continue;
        }
        let side_effects = side_effects(machine, &snapshot, step);
        if let Some(lost) = unrestorable_qdisc(step, &side_effects, &found) {
            let why = format!("{lost} is set, and could not be restored");
            let why = SettingError::System(why);
            fail(&mut snapshot, StepError::Unreadable(why));
            continue;
        }
        if is_unexpected {
            snapshot.applied.unexpected.push(step.id.clone());
        }
        record(&mut snapshot, (boot_id, step), side_effects, found);
        expected.insert(&step.setting, &step.to);
    }
    for precondition in &snapshot.preconditions {
        let is_set = expected
            .get(&precondition.setting)
            .is_some_and(|to| precondition.value.matches(&precondition.setting, to));
        let stands = |found: &Value| precondition.value.matches(&precondition.setting, found);
        let why = match machine.read(&precondition.setting) {
            _ if is_set => continue,
            Ok(found) if stands(&found) => continue,
            Ok(found) => StepError::Stale { found },
            Err(why) => StepError::Unreadable(why),
        };
        failed_steps.push(FailedStep {
            id: String::from(RELIED_ON),
            setting: precondition.setting.clone(),
            planned: precondition.value.clone(),
            why,
        });
    }
    match failed_steps.is_empty() {
        true => Ok(snapshot),
        false => Err(ApplyError::Refused(failed_steps)),
    }
}

/// First precondition that does not hold, as text. At boot no new plan can be made, so the steps that do not depend on
/// preconditions are still carried out.
fn failed_precondition(machine: &mut dyn Machine, plan: &Plan) -> Option<String> {
    plan.preconditions
        .iter()
        .find_map(|Precondition { setting, value }| {
            let found = match machine.read(setting) {
                Ok(found) if value.matches(setting, &found) => return None,
                Ok(found) => found.to_string(),
                Err(why) => why.to_string(),
            };
            Some(format!(
                "it requires {setting} to be {value}, and it is {found}"
            ))
        })
}

/// Queueing discipline that a step would replace and that could not be restored.
fn unrestorable_qdisc<'a>(
    step: &Step,
    side_effects: &'a [(Setting, Value)],
    found: &'a Value,
) -> Option<&'a Value> {
    let is_of_queueing = matches!(
        step.setting,
        Setting::RootQdisc { .. } | Setting::QueueQdisc { .. }
    );
    let mut values = side_effects.iter().map(|(_, value)| value).chain([found]);
    values.find(|value| is_of_queueing && !value.can_be_set())
}

/// Current values of settings that the step may change as a side effect, and that are not recorded yet.
fn side_effects(
    machine: &mut dyn Machine,
    snapshot: &Snapshot<'_>,
    step: &Step,
) -> Vec<(Setting, Value)> {
    let mut side_effects = machine.side_effects(&step.setting);
    side_effects.retain(|setting| !snapshot.found.iter().any(|known| known.setting == *setting));
    // An unreadable setting cannot be restored, and most likely does not exist.
    let read = |setting: Setting| {
        let value = machine.read(&setting).ok()?;
        Some((setting, value))
    };
    side_effects.into_iter().filter_map(read).collect()
}

/// Records a step, preceded by its side effects.
fn record<'a>(
    snapshot: &mut Snapshot<'a>,
    (boot_id, step): (&str, &'a Step),
    side_effects: Vec<(Setting, Value)>,
    found: Value,
) {
    let found_of = |setting, value, to| Found {
        boot_id: boot_id.to_owned(),
        id: step.id.clone(),
        setting,
        value,
        to,
    };
    let side_effects = side_effects.into_iter();
    let side_effects = side_effects.map(|(setting, value)| found_of(setting, value, None));
    snapshot.found.extend(side_effects);
    // Of a setting that is changed twice, the first value is restored.
    let change = found_of(step.setting.clone(), found, Some(step.to.clone()));
    snapshot.found.push(change);
    snapshot.to_change.push(step);
    let ids = &mut snapshot.applied;
    ids.changed.push(step.id.clone());
    if step.when == When::Reboot {
        ids.after_reboot.push(step.id.clone());
    }
}

/// Reads the current value. A setting that an earlier step creates (a queue's file, a thread) counts as absent if the
/// step expects it so.
fn read_or_absent(machine: &mut dyn Machine, step: &Step) -> Result<Value, SettingError> {
    match machine.read(&step.setting) {
        Err(SettingError::Gone) if step.from == Value::Absent => Ok(Value::Absent),
        read => read,
    }
}
