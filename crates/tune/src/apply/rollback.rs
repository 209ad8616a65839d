//! Rollback to the values before the first plan.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::journal::{self, Found};
use super::state::State;
use super::{ApplyError, Here, JournalError, JournalNotClosed, Unrestored};
use crate::limits::MAX_RESTORE_PASSES;
use crate::setting::{Machine, Setting, SettingError, Value};

/// Result of a rollback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RolledBack {
    /// Settings, restored or not; `None` if there was nothing to undo.
    pub restored: Option<Restored>,
    /// Unreadable lines of the journal, and its path.
    pub broken: Option<(JournalError, PathBuf)>,
    /// Set if all settings were restored but the journal could not be removed.
    pub journal_not_closed: Option<JournalNotClosed>,
}

/// Restores the values from before the first plan in the journal, and removes the journal if all were restored. A
/// rollback can be repeated. After a boot, it restores files and what the boot part has set; the boot reset the rest.
///
/// # Errors
/// [`ApplyError::State`], [`ApplyError::Foreign`], [`ApplyError::Form`]: nothing was restored.
pub fn rollback(
    machine: &mut dyn Machine,
    here: &Here,
    folder: &Path,
) -> Result<RolledBack, ApplyError> {
    let Some(state) = State::find(folder)? else {
        return Ok(RolledBack::default());
    };
    if journal::read(&state)?.is_none() {
        return Ok(RolledBack::default());
    }
    let _lock = state.lock()?;
    rollback_locked(machine, here, &state)
}

/// [`rollback`] for a caller that holds the lock.
pub(crate) fn rollback_locked(
    machine: &mut dyn Machine,
    here: &Here,
    state: &State,
) -> Result<RolledBack, ApplyError> {
    let Some(contents) = journal::read(state)? else {
        return Ok(RolledBack::default());
    };
    contents.check_schema()?;
    if let Some(machine) = contents.machine()
        && !machine.is_same_as(&here.machine)
    {
        return Err(ApplyError::Foreign {
            plan: Box::new(machine.clone()),
            here: Box::new(here.machine.clone()),
        });
    }
    let restored = restore(machine, &contents.originals(&here.boot_id));
    let mut done = RolledBack::default();
    if restored.left.is_empty() {
        let closed = match contents.check() {
            Ok(()) => journal::remove(state),
            Err(error) => {
                let kept = journal::keep_damaged(state);
                let place = kept.as_ref().map_or_else(|_| state.journal(), Clone::clone);
                done.broken = Some((error, place));
                kept.map(drop)
            }
        };
        done.journal_not_closed = closed.err().map(JournalNotClosed::from);
    }
    done.restored = Some(restored);
    Ok(done)
}

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
pub(super) fn first_values<'a>(found: impl Iterator<Item = &'a Found>) -> Vec<(Setting, Value)> {
    let mut seen = HashSet::new();
    found
        .filter(|it| seen.insert(&it.setting))
        .map(|it| (it.setting.clone(), it.value.clone()))
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
                    // A failed write may succeed once other settings are restored. Later failures are reported.
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

/// Returns whether a setting has its original value. If it did not exist before and isolane cannot remove it, it counts
/// as restored: it disappears with the setting that created it.
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

/// Writes the value once more, to obtain the error for the report.
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
            None => String::from("another program changes it again after it is restored"),
        },
    }
}
