//! What is applied, and what others have undone since.

use std::path::Path;

use serde::Serialize;

use super::journal::{self, Entry};
use super::state::State;
use super::{ApplyError, Here};
use crate::setting::{Machine, Setting, SettingError, Value};

/// What stands of the plans that were applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The profile of the last plan.
    pub profile: String,
    /// It was carried out to its end.
    pub is_complete: bool,
    /// It was carried out since the machine started.
    pub is_of_this_boot: bool,
    /// Its settings, in the order of its steps.
    pub settings: Vec<Standing>,
}

/// How one setting stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// The step.
    pub id: String,
    /// What it set.
    pub setting: Setting,
    /// It was set since the machine started, or is kept on disk.
    pub is_of_this_boot: bool,
    /// What was found there before the first plan; of what a boot resets, before the first since the last.
    pub before: Value,
    /// What the plan set.
    pub applied: Value,
    /// What stands there now; `None`: it cannot be read.
    pub now: Option<Value>,
    /// Whether it stands.
    pub stands: bool,
}

/// Compares what was applied with what stands there; `None` if nothing was applied.
///
/// # Errors
/// [`ApplyError::State`], [`ApplyError::Journal`].
pub fn status(
    machine: &mut dyn Machine,
    here: &Here,
    folder: &Path,
) -> Result<Option<Status>, ApplyError> {
    let Some(state) = State::find(folder) else {
        return Ok(None);
    };
    let Some(contents) = journal::read(&state.journal())? else {
        return Ok(None);
    };
    contents.check()?;
    // Of what was set before this boot alone, what was found then is all that is known.
    let mut originals = contents.originals_since(&here.boot_id);
    originals.extend(contents.originals());
    let mut status = Status {
        profile: String::new(),
        is_complete: false,
        is_of_this_boot: false,
        settings: Vec::new(),
    };
    // Settings of a plan that was undone are those of the plan before it.
    let mut before_begin = Vec::new();
    for entry in &contents.entries {
        match entry {
            Entry::Begin {
                profile, boot_id, ..
            } => {
                before_begin = status.settings.clone();
                status.profile.clone_from(profile);
                status.is_complete = false;
                status.is_of_this_boot = *boot_id == here.boot_id;
            }
            Entry::Found {
                boot_id,
                id,
                setting,
                to,
                ..
            } => {
                if let Some(to) = to {
                    status.settings.retain(|known| known.setting != *setting);
                    let is_of_this_boot = *boot_id == here.boot_id || setting.is_kept_by_a_boot();
                    let standing = standing(id, (setting, is_of_this_boot), to, &originals);
                    status.settings.push(standing);
                }
            }
            Entry::Applied => status.is_complete = true,
            Entry::Undone => {
                status.settings.clone_from(&before_begin);
                status.is_complete = true;
            }
        }
    }
    for standing in &mut status.settings {
        let now = match machine.read(&standing.setting) {
            Err(SettingError::Gone) => Some(Value::Absent),
            now => now.ok(),
        };
        let stands = |now: &Value| standing.applied.agrees_with(&standing.setting, now);
        standing.stands = now.as_ref().is_some_and(stands);
        standing.now = now;
    }
    Ok(Some(status))
}

fn standing(
    id: &str,
    (setting, is_of_this_boot): (&Setting, bool),
    applied: &Value,
    originals: &[(Setting, Value)],
) -> Standing {
    let before = originals.iter().find(|(known, _)| known == setting);
    Standing {
        id: id.to_owned(),
        setting: setting.clone(),
        is_of_this_boot,
        before: before.map_or(Value::Absent, |(_, value)| value.clone()),
        applied: applied.clone(),
        now: None,
        stands: false,
    }
}
