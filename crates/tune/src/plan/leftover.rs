//! Planning behind an earlier plan: what that one set, and nothing asks for any more, is put back.
//!
//! A plan does not mention what stands as it is wanted, so that what is not mentioned may be wanted or not. It
//! is found out by asking: were this setting as it was found, would the plan change it? Each is asked for
//! itself, for a setting may be wanted because of another one.
//!
//! What somebody else has changed since is theirs, and stays.

use super::draft::steers;
use super::{Plan, Refusal, Step, When, shell};
use crate::apply::{BootPart, Standing, has_number};
use crate::facts::Facts;
use crate::setting::{Setting, Value};

/// The plan that `plan` makes of a machine, and before its steps those that put back what earlier plans set
/// and it does not ask for. `standing`: what these set, in the order of their steps.
pub fn replan(facts: &Facts, standing: &[Standing], plan: &dyn Fn(&Facts) -> Plan) -> Plan {
    let marked = mark_immovable(facts, standing);
    let facts = marked.as_ref().unwrap_or(facts);
    let current = plan(facts);
    let is_left = |it: &&Standing| can_be_put_back(it) && !is_wanted(it, facts, &current, plan);
    let left: Vec<&Standing> = standing.iter().filter(is_left).collect();
    if left.is_empty() {
        return current;
    }
    let mut facts = facts.clone();
    for it in &left {
        facts.carry_out(&it.setting, &it.before);
    }
    let mut new = plan(&facts);
    if left.iter().any(|it| is_first(&it.setting)) {
        new.steps.clear();
        new.relies_on.clear();
        new.refusals.push(Refusal {
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

/// The facts with those interrupts marked as the kernel's that an earlier plan was to move, and could not: older kernels
/// say so only then. Apply notes that by having them stay as they were found. `None`: there are none.
fn mark_immovable(facts: &Facts, standing: &[Standing]) -> Option<Facts> {
    let mut marked = None;
    for it in standing {
        let has_stayed =
            it.is_of_this_boot && it.before == it.applied && !it.id.starts_with(Step::PUTS_BACK);
        if let (true, Setting::Attribute { path }) = (has_stayed, &it.setting) {
            marked
                .get_or_insert_with(|| facts.clone())
                .mark_managed(path);
        }
    }
    marked
}

/// Whether it stands as an earlier plan set it since the machine started, was something else before, and can
/// be set to that by itself.
fn can_be_put_back(standing: &Standing) -> bool {
    let Standing {
        setting,
        before,
        applied,
        ..
    } = standing;
    let can_be_absent = matches!(setting, Setting::Document { .. } | Setting::FlowRule { .. });
    let has_place = *before != Value::Absent || can_be_absent;
    // That of one queue goes with the root it is below.
    let is_own = !matches!(setting, Setting::Folder { .. } | Setting::QueueQdisc { .. });
    standing.stands
        && standing.is_of_this_boot
        && !before.agrees_with(setting, applied)
        && before.can_be_set()
        && has_place
        && is_own
        && !BootPart::owns(setting)
}

/// Whether the plan is about it as it stands, or would be if it were as it was found.
fn is_wanted(
    standing: &Standing,
    facts: &Facts,
    current: &Plan,
    plan: &dyn Fn(&Facts) -> Plan,
) -> bool {
    let Standing {
        setting, applied, ..
    } = standing;
    let mut without = facts.clone();
    without.carry_out(setting, &standing.before);
    // A rule may be wanted at any place.
    let is_rule = matches!(setting, Setting::FlowRule { .. });
    let is_about = |step: &Step| step.setting == *setting || (is_rule && step.to == *applied);
    current.steps.iter().any(is_about) || plan(&without).steps.iter().any(is_about)
}

/// What a device starts again for, and gives other settings anew.
fn is_remaking(setting: &Setting) -> bool {
    matches!(setting, Setting::Channels { .. } | Setting::Rings { .. })
}

/// What has to be back before more can be planned.
fn is_first(setting: &Setting) -> bool {
    is_remaking(setting) || steers(setting).is_some()
}

/// Puts steps that put back before those of a plan; but steps that reset others stay first of all.
fn combine(plan: &mut Plan, left: &[&Standing]) {
    for step in &mut plan.steps {
        // It wants something else there than was found: set at once, from what stands there.
        if let Some(it) = left.iter().find(|it| it.setting == step.setting) {
            step.from = as_it_is(it);
            step.undo = shell::undo(&step.setting, &step.from);
        }
    }
    let planned = |setting: &Setting| plan.steps.iter().any(|step| step.setting == *setting);
    let is_remade = plan.steps.iter().any(|step| is_remaking(&step.setting))
        || left.iter().any(|it| is_remaking(&it.setting));
    // Interrupts and threads of a device that starts again are others then, and its table is new.
    let goes = |setting: &Setting| {
        is_remade && (has_number(setting) || matches!(setting, Setting::RssTable { .. }))
    };
    // The last that was set goes back first: a rule before the switch that makes rules count.
    let back = left
        .iter()
        .rev()
        .filter(|it| !planned(&it.setting) && !goes(&it.setting))
        .map(|it| put_back(it));
    let (back_first, back_then): (Vec<Step>, Vec<Step>) =
        back.partition(|step| is_remaking(&step.setting));
    let (own_first, own_then): (Vec<Step>, Vec<Step>) = std::mem::take(&mut plan.steps)
        .into_iter()
        .partition(|step| is_remaking(&step.setting));
    plan.steps = [back_first, own_first, back_then, own_then].concat();
}

/// What stands there, which is what was set.
fn as_it_is(standing: &Standing) -> Value {
    standing.now.as_ref().unwrap_or(&standing.applied).clone()
}

fn put_back(standing: &Standing) -> Step {
    let Standing {
        id,
        setting,
        before,
        ..
    } = standing;
    let from = as_it_is(standing);
    let id = id.strip_prefix(Step::PUTS_BACK).unwrap_or(id);
    Step {
        id: format!("{}{id}", Step::PUTS_BACK),
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
