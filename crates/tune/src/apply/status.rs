//! Status of applied settings: which of them still hold.

use std::path::Path;

use serde::Serialize;

use super::journal::{self, Set};
use super::state::State;
use super::{ApplyError, Here};
use crate::setting::{Machine, Setting, Value};

/// Status of the applied plans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Profile of the last plan.
    pub profile: String,
    /// True if the last plan was completed.
    pub is_complete: bool,
    /// True if the last plan was applied since boot.
    pub is_of_this_boot: bool,
    /// Settings, in the order of their steps.
    pub settings: Vec<SettingStatus>,
}

/// Status of one setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingStatus {
    /// Id of the step.
    pub id: String,
    /// Setting of the step.
    pub setting: Setting,
    /// True if the setting was made since boot, or is on disk.
    pub is_of_this_boot: bool,
    /// Value before the first plan; of a kernel setting, before the first since boot.
    pub before: Value,
    /// Value that the plan set.
    pub applied: Value,
    /// Current value; `None` if it is unreadable, or if its interrupt or thread number is of an earlier boot.
    pub now: Option<Value>,
    /// True if the current value is the applied one.
    pub stands: bool,
}

/// Compares the applied values with the current ones; `None` if no plan is applied.
///
/// # Errors
/// [`ApplyError::State`], [`ApplyError::Journal`], [`ApplyError::Form`].
pub fn status(
    machine: &mut dyn Machine,
    here: &Here,
    folder: &Path,
) -> Result<Option<Status>, ApplyError> {
    let Some(state) = State::find(folder)? else {
        return Ok(None);
    };
    let Some(contents) = journal::read(&state)? else {
        return Ok(None);
    };
    contents.check_schema()?;
    contents.check()?;
    let Some(applied) = contents.outcome() else {
        return Ok(None);
    };
    let mut standing = |set: &Set<'_>| {
        let now = set.now(machine, &here.boot_id);
        SettingStatus {
            id: set.id.to_owned(),
            setting: set.setting.clone(),
            is_of_this_boot: !set.ended_by_reboot(&here.boot_id),
            before: set.before.clone(),
            applied: set.to.clone(),
            stands: now.as_ref().is_some_and(|now| set.is_as_set(now)),
            now,
        }
    };
    Ok(Some(Status {
        profile: applied.profile.to_owned(),
        is_complete: applied.is_complete,
        is_of_this_boot: applied.boot_id == here.boot_id,
        settings: applied.settings.iter().map(&mut standing).collect(),
    }))
}
