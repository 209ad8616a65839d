//! What is applied, and what others have undone since.

use std::path::Path;

use serde::Serialize;

use super::journal::{self, Set};
use super::state::State;
use super::{ApplyError, Here};
use crate::setting::{Machine, Setting, Value};

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
    /// What was found there before the first plan; of what the kernel holds, before the first since
    /// the machine was started.
    pub before: Value,
    /// What the plan set.
    pub applied: Value,
    /// What stands there now; `None`: it cannot be read, or had a number that ended with a boot (of an interrupt, of
    /// a thread).
    pub now: Option<Value>,
    /// Whether it stands.
    pub stands: bool,
}

/// Compares what was applied with what stands there; `None` if nothing was applied.
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
    contents.check_form()?;
    contents.check()?;
    let Some(applied) = contents.outcome() else {
        return Ok(None);
    };
    let mut standing = |set: &Set<'_>| {
        let now = set.now(machine, &here.boot_id);
        Standing {
            id: set.id.to_owned(),
            setting: set.setting.clone(),
            is_of_this_boot: !set.has_ended(&here.boot_id),
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
