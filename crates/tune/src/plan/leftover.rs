//! Replanning: restores settings of earlier plans that the current one no longer needs.
//!
//! A plan has no step for a setting that already has the right value, so a missing step does not mean that the setting
//! is unneeded. The test is: with the original value, would planning change it? Each setting is tested separately,
//! because one may be needed due to another.
//!
//! Settings that another program has changed since are left alone.

use super::builder::steered_interface;
use super::{NotPlanned, Plan, Step, When, shell};
use crate::apply::{BootPart, SettingStatus, has_number};
use crate::facts::Facts;
use crate::setting::{Setting, Value};

/// Plans for the facts, and adds steps that restore settings of earlier plans that are no longer needed. `standing`:
/// settings of earlier plans, in the order of their steps.
pub fn replan(facts: &Facts, standing: &[SettingStatus], plan: &dyn Fn(&Facts) -> Plan) -> Plan {
    let marked = mark_managed_interrupts(facts, standing);
    let facts = marked.as_ref().unwrap_or(facts);
    let current = plan(facts);
    let is_left = |it: &&SettingStatus| is_restorable(it) && !is_wanted(it, facts, &current, plan);
    let left: Vec<&SettingStatus> = standing.iter().filter(is_left).collect();
    if left.is_empty() {
        return current;
    }
    let mut facts = facts.clone();
    for it in &left {
        facts.simulate(&it.setting, &it.before);
    }
    let mut new = plan(&facts);
    if left.iter().any(|it| is_first(&it.setting)) {
        new.steps.clear();
        new.relies_on.clear();
        new.refusals.push(NotPlanned {
            id: String::from("restore.first"),
            why: String::from(
                "queues, rings or steering go back to what they were: what else there is to change depends on \
                 how they are then",
            ),
            remedy: String::from("apply this plan, and plan again"),
        });
    }
    combine(&mut new, &left);
    new
}

/// Returns facts in which interrupts that an earlier plan failed to move are marked as managed; older kernels reveal
/// this only then. Apply records it as an applied value equal to the original. `None` if there are none.
fn mark_managed_interrupts(facts: &Facts, standing: &[SettingStatus]) -> Option<Facts> {
    let mut marked = None;
    for it in standing {
        let has_stayed = it.is_of_this_boot
            && it.before == it.applied
            && !it.id.starts_with(Step::RESTORE_PREFIX);
        if let (true, Setting::Attribute { path }) = (has_stayed, &it.setting) {
            marked
                .get_or_insert_with(|| facts.clone())
                .mark_managed(path);
        }
    }
    marked
}

/// Returns whether the setting still has the value that an earlier plan set since boot, had another before, and can be
/// restored on its own.
fn is_restorable(standing: &SettingStatus) -> bool {
    let SettingStatus {
        setting,
        before,
        applied,
        ..
    } = standing;
    let can_be_absent = matches!(setting, Setting::Document { .. } | Setting::FlowRule { .. });
    let has_place = *before != Value::Absent || can_be_absent;
    // A queue's discipline disappears with its root.
    let is_own = !matches!(setting, Setting::Folder { .. } | Setting::QueueQdisc { .. });
    standing.stands
        && standing.is_of_this_boot
        && !before.matches(setting, applied)
        && before.can_be_set()
        && has_place
        && is_own
        && !BootPart::is_own_file(setting)
}

/// Returns whether planning changes the setting from its current or from its original value.
fn is_wanted(
    standing: &SettingStatus,
    facts: &Facts,
    current: &Plan,
    plan: &dyn Fn(&Facts) -> Plan,
) -> bool {
    let SettingStatus {
        setting, applied, ..
    } = standing;
    let mut without = facts.clone();
    without.simulate(setting, &standing.before);
    // A rule may be at any location.
    let is_rule = matches!(setting, Setting::FlowRule { .. });
    let is_about = |step: &Step| step.setting == *setting || (is_rule && step.to == *applied);
    current.steps.iter().any(is_about) || plan(&without).steps.iter().any(is_about)
}

/// Returns whether a change makes the driver restart, which resets other settings.
fn is_remaking(setting: &Setting) -> bool {
    matches!(setting, Setting::Channels { .. } | Setting::Rings { .. })
}

/// Returns whether a setting must be restored before the rest can be planned.
fn is_first(setting: &Setting) -> bool {
    is_remaking(setting) || steered_interface(setting).is_some()
}

/// Inserts restoring steps before the plan's own; changes that reset other settings stay first.
fn combine(plan: &mut Plan, left: &[&SettingStatus]) {
    for step in &mut plan.steps {
        // The plan sets a third value: it is set directly, from the current one.
        if let Some(it) = left.iter().find(|it| it.setting == step.setting) {
            step.from = current_value(it);
            step.undo = shell::undo(&step.setting, &step.from);
        }
    }
    let planned = |setting: &Setting| plan.steps.iter().any(|step| step.setting == *setting);
    let is_remade = plan.steps.iter().any(|step| is_remaking(&step.setting))
        || left.iter().any(|it| is_remaking(&it.setting));
    // A restarted device has new interrupts, new threads and a new table.
    let goes = |setting: &Setting| {
        is_remade && (has_number(setting) || matches!(setting, Setting::RssTable { .. }))
    };
    // Last set, first restored: a rule before the feature that enables rules.
    let back = left
        .iter()
        .rev()
        .filter(|it| !planned(&it.setting) && !goes(&it.setting))
        .map(|it| restore_step(it));
    let (back_first, back_then): (Vec<Step>, Vec<Step>) =
        back.partition(|step| is_remaking(&step.setting));
    let (own_first, own_then): (Vec<Step>, Vec<Step>) = std::mem::take(&mut plan.steps)
        .into_iter()
        .partition(|step| is_remaking(&step.setting));
    plan.steps = [back_first, own_first, back_then, own_then].concat();
}

/// Current value, which is the applied one.
fn current_value(standing: &SettingStatus) -> Value {
    standing.now.as_ref().unwrap_or(&standing.applied).clone()
}

fn restore_step(standing: &SettingStatus) -> Step {
    let SettingStatus {
        id,
        setting,
        before,
        ..
    } = standing;
    let from = current_value(standing);
    let id = id.strip_prefix(Step::RESTORE_PREFIX).unwrap_or(id);
    Step {
        id: format!("{}{id}", Step::RESTORE_PREFIX),
        setting: setting.clone(),
        undo: shell::undo(setting, &from),
        from,
        to: before.clone(),
        why: String::from(
            "no longer asked for: an earlier plan set it, and this one, by its description, profile and placements, \
             would not",
        ),
        topics: Vec::new(),
        costs: format!("what {id} was set for"),
        when: match setting {
            Setting::Document { .. } => When::Reboot,
            _ => When::Now,
        },
    }
}
