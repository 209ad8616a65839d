//! Restoring of settings.
//!
//! One change may undo another: restoring the number of queues resets the table. So all settings are checked again, in
//! a bounded number of passes, until all match.

use std::collections::HashSet;

use super::Unrestored;
use crate::limits::MAX_RESTORE_PASSES;
use crate::setting::{Machine, Setting, SettingError, Value};

/// Result of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Restored settings, as text.
    pub restored: Vec<String>,
    /// Settings whose place no longer exists, so that nothing is left to restore.
    pub gone: Vec<String>,
    /// Settings that were not restored.
    pub left: Vec<Unrestored>,
}

/// First value found of each setting, in order.
pub(super) fn first_values<'a>(
    found: impl Iterator<Item = (&'a Setting, &'a Value)>,
) -> Vec<(Setting, Value)> {
    let mut seen = HashSet::new();
    found
        .filter(|(setting, _)| seen.insert(*setting))
        .map(|(setting, value)| (setting.clone(), value.clone()))
        .collect()
}

/// Restores the values found, last first.
pub(super) fn restore(machine: &mut dyn Machine, found: &[(Setting, Value)]) -> Restored {
    let mut result = Restored::default();
    for pass in 0..MAX_RESTORE_PASSES {
        let mut was_all_restored = true;
        for (setting, value) in found.iter().rev() {
            // Even a matching document is written once, which removes the temporary file of a killed process.
            let is_due = pass == 0 && matches!(setting, Setting::Document { .. });
            match state(machine, setting, value) {
                Ok(true) if is_due => drop(machine.write(setting, value)),
                Ok(true) | Err(SettingError::Gone) => {}
                _ => {
                    was_all_restored = false;
                    // A failed write may succeed after others were restored; the rest is reported at the end.
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
            // Another program has put a file into the folder.
            Ok(false) if matches!(setting, Setting::Folder { .. }) => {}
            not => result.left.push(left(machine, setting, value, not.err())),
        }
    }
    result
}

/// Returns whether a setting has its original value. A place that did not exist, and that isolane cannot remove, always
/// counts as restored: it disappears with its creator.
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
    Ok(found.matches(setting, &now))
}

/// Writes once more, to obtain the error.
fn left(
    machine: &mut dyn Machine,
    setting: &Setting,
    found: &Value,
    why: Option<SettingError>,
) -> Unrestored {
    let why = why.or_else(|| machine.write(setting, found).err());
    Unrestored {
        what: setting.to_string(),
        found: found.to_string(),
        why: match why {
            Some(why) => why.to_string(),
            None => String::from("it is changed again as soon as it is put back"),
        },
    }
}
