//! Putting settings back.
//!
//! One change may undo another: a device that gets its queues back resets its table. So everything
//! is looked at again until all is as it was, a bounded number of times.

use std::collections::HashSet;

use super::Left;
use crate::limits::MAX_RESTORING_PASSES;
use crate::setting::{Machine, Setting, SettingError, Value};

/// What putting back did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Settings that were put back, for people.
    pub restored: Vec<String>,
    /// Settings whose place does not exist any more: with it went what had been set there.
    pub gone: Vec<String>,
    /// Settings that are not as they were found.
    pub left: Vec<Left>,
}

/// What was found first in each setting, in the order in which it was found.
pub(super) fn first_of_each<'a>(
    found: impl Iterator<Item = (&'a Setting, &'a Value)>,
) -> Vec<(Setting, Value)> {
    let mut seen = HashSet::new();
    found
        .filter(|(setting, _)| seen.insert(*setting))
        .map(|(setting, value)| (setting.clone(), value.clone()))
        .collect()
}

/// Puts back what was found, last first.
pub(super) fn restore(machine: &mut dyn Machine, found: &[(Setting, Value)]) -> Restored {
    let mut result = Restored::default();
    for pass in 0..MAX_RESTORING_PASSES {
        let mut was_all_restored = true;
        for (setting, value) in found.iter().rev() {
            // A document is written even so, once: what a killed process left beside it goes.
            let is_due = pass == 0 && matches!(setting, Setting::Document { .. });
            match state(machine, setting, value) {
                Ok(true) if is_due => drop(machine.write(setting, value)),
                Ok(true) | Err(SettingError::Gone) => {}
                _ => {
                    was_all_restored = false;
                    // What fails may succeed when others are back; what is left is told at the end.
                    let said = setting.to_string();
                    let is_new = machine.write(setting, value).is_ok();
                    if is_new && !result.restored.contains(&said) {
                        result.restored.push(said);
                    }
                }
            }
        }
        if was_all_restored {
            break;
        }
    }
    for (setting, value) in found {
        match state(machine, setting, value) {
            Ok(true) => {}
            Err(SettingError::Gone) => result.gone.push(setting.to_string()),
            // Somebody else has put something into it.
            Ok(false) if matches!(setting, Setting::Folder { .. }) => {}
            not => result.left.push(left(machine, setting, value, not.err())),
        }
    }
    result
}

/// Whether a setting is as it was found. A place that did not exist then is, whatever became of it:
/// it goes with what made it.
fn state(
    machine: &mut dyn Machine,
    setting: &Setting,
    found: &Value,
) -> Result<bool, SettingError> {
    let can_be_removed = matches!(
        setting,
        Setting::Document { .. } | Setting::Folder { .. } | Setting::FlowRule { .. }
    );
    if *found == Value::Absent && !can_be_removed {
        return Ok(true);
    }
    let now = machine.read(setting)?;
    Ok(found.agrees_with(setting, &now))
}

/// Tries once more, for the reason.
fn left(
    machine: &mut dyn Machine,
    setting: &Setting,
    found: &Value,
    why: Option<SettingError>,
) -> Left {
    let why = why.or_else(|| machine.write(setting, found).err());
    Left {
        what: setting.to_string(),
        found: found.to_string(),
        why: match why {
            Some(why) => why.to_string(),
            None => String::from("it is changed again as soon as it is put back"),
        },
    }
}
