//! Inspection before applying: reads every setting of the plan, and every setting that its changes reset as a side
//! effect.

use std::collections::HashMap;

use super::{Applied, ApplyError, Hindrance, Obstacle, RELIED_ON};
use crate::plan::{Plan, Reliance, Step, When};
use crate::setting::{Machine, Setting, SettingError, Value};

/// Result of the inspection.
pub(super) struct Looked<'a> {
    pub(super) to_change: Vec<&'a Step>,
    /// Original values of all settings that may change, in order of change; they are restored backwards.
    pub(super) found: Vec<Found>,
    pub(super) relies_on: Vec<&'a Reliance>,
    pub(super) applied: Applied,
}

pub(super) struct Found {
    pub(super) id: String,
    pub(super) setting: Setting,
    pub(super) value: Value,
    pub(super) to: Option<Value>,
}

impl Looked<'_> {
    /// Records a step that the machine refused, and that is skipped.
    pub(super) fn leave_out(&mut self, step: &Step, why: SettingError) {
        let is_another = |id: &String| *id != step.id;
        self.applied.changed.retain(is_another);
        self.applied.unexpected.retain(is_another);
        let obstacle = Obstacle::new(step, Hindrance::Unreadable(why));
        self.applied.left_out.push(obstacle);
    }

    pub(super) fn is_left_out(&self, step: &Step) -> bool {
        let mut left_out = self.applied.left_out.iter();
        left_out.any(|it| it.setting == step.setting)
    }

    /// Original and current values of settings whose steps were skipped.
    pub(super) fn staying(&self) -> impl Iterator<Item = (&Found, Value)> {
        self.found.iter().filter_map(|found| {
            found.to.as_ref()?;
            let mut left_out = self.applied.left_out.iter();
            let obstacle = left_out.find(|it| it.setting == found.setting)?;
            let stands = match &obstacle.why {
                Hindrance::Unreadable(SettingError::Gone) => Value::Absent,
                Hindrance::Unreadable(SettingError::Ignored { found }) => (**found).clone(),
                _ => found.value.clone(),
            };
            Some((found, stands))
        })
    }
}

/// Reads all settings of the plan, and refuses it if they differ from the plan's assumptions.
pub(super) fn look<'a>(
    machine: &mut dyn Machine,
    plan: &'a Plan,
    is_boot: bool,
) -> Result<Looked<'a>, ApplyError> {
    let mut looked = Looked {
        to_change: Vec::new(),
        found: Vec::new(),
        relies_on: plan.relies_on.iter().collect(),
        applied: Applied::default(),
    };
    let mut obstacles = Vec::new();
    let unfounded = match is_boot {
        true => unfounded(machine, plan),
        false => None,
    };
    if unfounded.is_some() {
        looked.relies_on.clear();
    }
    // Values that earlier steps of this plan will have set.
    let mut expected: HashMap<&Setting, &Value> = HashMap::new();
    for step in &plan.steps {
        let mut hinder = |looked: &mut Looked<'_>, why| {
            let obstacle = Obstacle::new(step, why);
            match is_boot || step.is_of_other_device() {
                true => looked.applied.left_out.push(obstacle),
                false => obstacles.push(obstacle),
            }
        };
        if let Some(why) = unfounded.as_ref().filter(|_| step.is_of_carrier()) {
            hinder(&mut looked, Hindrance::Unfounded(why.clone()));
            continue;
        }
        let found = match expected.get(&step.setting) {
            Some(value) => (*value).clone(),
            None => match read_or_absent(machine, step) {
                Ok(value) => value,
                Err(why) => {
                    hinder(&mut looked, Hindrance::Unreadable(why));
                    continue;
                }
            },
        };
        // A setting that an earlier step resets is set again, even if it has the right value now.
        let is_reset = looked
            .found
            .iter()
            .any(|known| known.setting == step.setting);
        if !is_reset && step.to.agrees_with(&step.setting, &found) {
            looked.applied.already.push(step.id.clone());
            continue;
        }
        let is_planned = |planned: &Value| planned.agrees_with(&step.setting, &found);
        let is_unexpected = !is_planned(&step.from) && !is_planned(&step.to);
        if is_unexpected && !is_boot {
            hinder(&mut looked, Hindrance::Stale { found });
            continue;
        }
        let besides = besides(machine, &looked, step);
        if let Some(lost) = lost_by(step, &besides, &found) {
            let why = format!("{lost} is there, and could not be put back");
            let why = SettingError::System(why);
            hinder(&mut looked, Hindrance::Unreadable(why));
            continue;
        }
        if is_unexpected {
            looked.applied.unexpected.push(step.id.clone());
        }
        take_in(&mut looked, step, besides, found);
        expected.insert(&step.setting, &step.to);
    }
    for reliance in &looked.relies_on {
        let is_set = expected
            .get(&reliance.setting)
            .is_some_and(|to| reliance.value.agrees_with(&reliance.setting, to));
        let stands = |found: &Value| reliance.value.agrees_with(&reliance.setting, found);
        let why = match machine.read(&reliance.setting) {
            _ if is_set => continue,
            Ok(found) if stands(&found) => continue,
            Ok(found) => Hindrance::Stale { found },
            Err(why) => Hindrance::Unreadable(why),
        };
        obstacles.push(Obstacle {
            id: String::from(RELIED_ON),
            setting: reliance.setting.clone(),
            planned: reliance.value.clone(),
            why,
        });
    }
    match obstacles.is_empty() {
        true => Ok(looked),
        false => Err(ApplyError::Refused(obstacles)),
    }
}

/// First reliance that does not hold at boot, as text. A new plan is impossible then, so independent steps are still
/// carried out.
fn unfounded(machine: &mut dyn Machine, plan: &Plan) -> Option<String> {
    plan.relies_on
        .iter()
        .find_map(|Reliance { setting, value }| {
            let found = match machine.read(setting) {
                Ok(found) if value.agrees_with(setting, &found) => return None,
                Ok(found) => found.to_string(),
                Err(why) => why.to_string(),
            };
            Some(format!(
                "it rests on {setting} being {value}, and that is {found}"
            ))
        })
}

/// Queueing discipline that a step would replace and that could not be restored.
fn lost_by<'a>(
    step: &Step,
    besides: &'a [(Setting, Value)],
    found: &'a Value,
) -> Option<&'a Value> {
    let is_of_queueing = matches!(
        step.setting,
        Setting::RootQdisc { .. } | Setting::QueueQdisc { .. }
    );
    let mut values = besides.iter().map(|(_, value)| value).chain([found]);
    values.find(|value| is_of_queueing && !value.can_be_set())
}

/// Current values of settings that the step may change as a side effect, and that are not recorded yet.
fn besides(machine: &mut dyn Machine, looked: &Looked<'_>, step: &Step) -> Vec<(Setting, Value)> {
    let mut besides = machine.beside(&step.setting);
    besides.retain(|setting| !looked.found.iter().any(|known| known.setting == *setting));
    // An unreadable setting cannot be restored, and most likely does not exist.
    let read = |setting: Setting| {
        let value = machine.read(&setting).ok()?;
        Some((setting, value))
    };
    besides.into_iter().filter_map(read).collect()
}

/// Records a step, preceded by its side effects.
fn take_in<'a>(
    looked: &mut Looked<'a>,
    step: &'a Step,
    besides: Vec<(Setting, Value)>,
    found: Value,
) {
    let besides = besides.into_iter().map(|(setting, value)| Found {
        id: step.id.clone(),
        setting,
        value,
        to: None,
    });
    looked.found.extend(besides);
    // Of a setting that is changed twice, the first value is restored.
    looked.found.push(Found {
        id: step.id.clone(),
        setting: step.setting.clone(),
        value: found,
        to: Some(step.to.clone()),
    });
    looked.to_change.push(step);
    let ids = &mut looked.applied;
    ids.changed.push(step.id.clone());
    if step.when == When::Reboot {
        ids.after_reboot.push(step.id.clone());
    }
}

/// Reads the current value. A place that an earlier step creates (a queue's file, a thread) counts as absent if the
/// plan says so.
fn read_or_absent(machine: &mut dyn Machine, step: &Step) -> Result<Value, SettingError> {
    match machine.read(&step.setting) {
        Err(SettingError::Gone) if step.from == Value::Absent => Ok(Value::Absent),
        read => read,
    }
}
