//! Reversible application of a plan.
//!
//! ```text
//! lock -> check machine -> read every setting -> journal -> set, read back, next -> read all again
//!              |                    |                           |
//!           foreign               stale                 ignored, gone, stopped: undo in reverse order
//! ```
//!
//! All settings that will change, or that a change may reset, are read before the first change. Their values are
//! written to the journal, which is synced to disk. So [`rollback`] finds everything that may differ, whenever this
//! process is killed. [`rollback`] restores the first value found: a repeated plan, or another plan on top, only adds
//! to the journal. After a boot the journal still applies to files; the boot has reset kernel settings.

mod applied_settings;
pub(crate) mod boot;
mod error;
mod journal;
mod links;
mod plan_files;
mod rollback;
mod snapshot;
mod state;

use std::collections::HashMap;
use std::path::Path;

use self::applied_settings::Outcome;
pub use self::applied_settings::{SettingStatus, Status, status};
pub use self::boot::{BootError, BootPart, PathError};
pub use self::error::{
    ApplyError, FailedStep, JournalError, JournalNotClosed, StateError, StepError, Undone,
    Unrestored,
};
pub use self::journal::damaged_journals;
use self::journal::{Contents, Entry, Found, Journal};
pub use self::links::Links;
pub(crate) use self::plan_files::has_boot_number;
pub use self::plan_files::{BootNumbers, PlanFile, SavedPlan};
pub(crate) use self::rollback::rollback_locked;
pub use self::rollback::{Restored, RolledBack, rollback};
use self::rollback::{first_values, restore};
use self::snapshot::{Snapshot, take_snapshot};
pub(crate) use self::state::State;
use crate::plan::{Identity, Plan, Precondition, Step};
use crate::setting::{Machine, Setting, SettingError, Value};

/// Default folder of the journal.
pub const STATE_FOLDER: &str = "/var/lib/isolane";

/// Placeholder for a step's id in errors about a precondition.
const RELIED_ON: &str = "relied-on";

/// Machine and boot in which a plan is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Here {
    /// Identity of this machine.
    pub machine: Identity,
    /// Boot id of the kernel.
    pub boot_id: String,
    /// All cores, online or not, ascending; empty if unknown.
    pub cores: Vec<u16>,
}

/// Result of applying a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Ids of steps that changed something.
    pub changed: Vec<String>,
    /// Ids of steps whose setting already had the right value.
    pub already: Vec<String>,
    /// Ids of steps that take effect after the next boot.
    pub after_reboot: Vec<String>,
    /// Ids of steps whose setting differed from the plan's assumption and was set anyway, at boot.
    pub unexpected: Vec<String>,
    /// Skipped steps. At boot, all that failed; otherwise only steps for managed interrupts and for interrupts of
    /// devices that carry no topics.
    pub left_out: Vec<FailedStep>,
}

/// Applies a plan. With `is_boot`, settings may differ from the plan's assumptions, and unreadable settings are
/// skipped. No new plan can be made at boot, and the other steps still help. `is_stopped` is polled between steps.
///
/// # Errors
/// [`ApplyError`]: nothing was changed, or everything was undone, except for what the error lists.
pub fn apply(
    machine: &mut dyn Machine,
    here: &Here,
    plan: &Plan,
    folder: &Path,
    is_boot: bool,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Applied, ApplyError> {
    plan.check_schema()?;
    check_machine(&plan.machine, here)?;
    if let Some(of) = plan.of_other_boot(&here.boot_id, is_boot) {
        return Err(ApplyError::OtherBoot {
            plan: of.to_owned(),
            here: here.boot_id.clone(),
        });
    }
    let state = State::make(folder)?;
    let _lock = state.lock()?;
    let occasion = match is_boot {
        true => Occasion::Boot,
        false => Occasion::Requested,
    };
    apply_locked(machine, here, plan, &state, occasion, is_stopped)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// The user applies the plan.
    Requested,
    /// The saved plan is applied again after a boot.
    Boot,
    /// A temporary RSS table is set, to learn the receive hash.
    Learning,
}

/// [`apply`] for a caller that holds the lock.
pub(crate) fn apply_locked(
    machine: &mut dyn Machine,
    here: &Here,
    plan: &Plan,
    state: &State,
    occasion: Occasion,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Applied, ApplyError> {
    let before = journal::read(state)?;
    if let Some(before) = &before {
        before.check_schema()?;
        before.check()?;
        before
            .machine()
            .map_or(Ok(()), |machine| check_machine(machine, here))?;
    }
    let mut snapshot = take_snapshot(machine, plan, &here.boot_id, occasion == Occasion::Boot)?;
    let applied_state = before.as_ref().and_then(Contents::outcome);
    let dropped = match (occasion, &applied_state) {
        (Occasion::Requested, Some(applied_state)) => dropped(machine, here, plan, applied_state),
        _ => Vec::new(),
    };
    let is_recorded = applied_state.as_ref().is_none_or(|applied_state| {
        applied_state.is_complete && applied_state.boot_id == here.boot_id && dropped.is_empty()
    });
    if snapshot.to_change.is_empty() && is_recorded {
        return Ok(snapshot.applied);
    }
    let is_first = applied_state.is_none();
    let begin = Entry::begin(here, &plan.profile, dropped);
    if snapshot.to_change.is_empty() {
        // A process set the values and was killed before it recorded this, or the values persisted across a boot.
        Journal::begin(
            state,
            before.as_ref(),
            &here.boot_id,
            [begin, Entry::Applied],
        )?;
        return Ok(snapshot.applied);
    }
    let entries = snapshot.found.iter().cloned().map(Entry::Found);
    let entries = std::iter::once(begin).chain(entries);
    let mut journal = Journal::begin(state, before.as_ref(), &here.boot_id, entries)?;
    let done = execute(machine, plan, &mut snapshot, is_stopped);
    let done = done.and_then(|()| {
        let stay = snapshot.skipped_values().map(|(found, current)| {
            // The current value counts as applied, so that status does not report it as a change by others.
            let to = Some(current);
            Entry::Found(Found {
                to,
                ..found.clone()
            })
        });
        let recorded = journal.append(stay.chain([Entry::Applied]));
        recorded.map_err(|error| {
            Failure::between(StepError::JournalNotWritten(error.error.to_string()))
        })
    });
    match done {
        Ok(()) => Ok(snapshot.applied),
        Err(failure) => Err(undo(machine, &snapshot, *failure, journal, is_first)),
    }
}

/// Settings of an earlier boot that are not in force. A plan made in this boot has steps for those that it needs, so
/// the others can be dropped. Empty for an older plan.
fn dropped(
    machine: &mut dyn Machine,
    here: &Here,
    plan: &Plan,
    applied_state: &Outcome<'_>,
) -> Vec<Setting> {
    if plan.boot_id.as_deref() != Some(here.boot_id.as_str()) {
        return Vec::new();
    }
    let mut dropped = Vec::new();
    for set in &applied_state.settings {
        let stands = |now| set.is_as_set(&now);
        if set.ended_by_reboot(&here.boot_id)
            && !set.now(machine, &here.boot_id).is_some_and(stands)
        {
            dropped.push(set.setting.clone());
        }
    }
    dropped
}

fn check_machine(machine: &Identity, here: &Here) -> Result<(), ApplyError> {
    match machine.is_same_as(&here.machine) {
        true => Ok(()),
        false => Err(ApplyError::Foreign {
            plan: Box::new(machine.clone()),
            here: Box::new(here.machine.clone()),
        }),
    }
}

struct Failure {
    at: Option<(String, Setting)>,
    why: StepError,
}

impl Failure {
    fn at(id: &str, setting: &Setting, why: StepError) -> Box<Self> {
        Box::new(Self {
            at: Some((id.to_owned(), setting.clone())),
            why,
        })
    }

    fn between(why: StepError) -> Box<Self> {
        Box::new(Self { at: None, why })
    }
}

fn execute(
    machine: &mut dyn Machine,
    plan: &Plan,
    snapshot: &mut Snapshot<'_>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), Box<Failure>> {
    for found in snapshot.found.iter().filter(|found| is_made_folder(found)) {
        let made = machine.write(&found.setting, &Value::Present);
        made.map_err(|why| Failure::at(&found.id, &found.setting, StepError::Unreadable(why)))?;
    }
    for step in snapshot.to_change.clone() {
        if is_stopped() {
            return Err(Failure::between(StepError::Stopped));
        }
        let set = machine.write(&step.setting, &step.to);
        match set.and_then(|()| expect(machine, &step.setting, &step.to)) {
            Ok(()) => {}
            // The other steps help without this one.
            Err(why) if step.is_of_other_device() => snapshot.skip(step, why),
            Err(why @ SettingError::Immovable(_)) => snapshot.skip(step, why),
            Err(why) => {
                return Err(Failure::at(
                    &step.id,
                    &step.setting,
                    StepError::Unreadable(why),
                ));
            }
        }
    }
    // A later step or another program may have changed a setting, or a precondition, that was right before.
    let last: HashMap<&Setting, &Step> = plan
        .steps
        .iter()
        .map(|step| (&step.setting, step))
        .collect();
    for step in plan
        .steps
        .iter()
        .filter(|step| last[&step.setting] == *step)
    {
        if snapshot.is_skipped(step) {
            continue;
        }
        match expect(machine, &step.setting, &step.to) {
            Ok(()) => {}
            Err(why) if step.is_of_other_device() => snapshot.skip(step, why),
            Err(why) => return Err(Failure::at(&step.id, &step.setting, changed_meanwhile(why))),
        }
    }
    for Precondition { setting, value } in &snapshot.preconditions {
        expect(machine, setting, value)
            .map_err(|why| Failure::at(RELIED_ON, setting, changed_meanwhile(why)))?;
    }
    match is_stopped() {
        true => Err(Failure::between(StepError::Stopped)),
        false => Ok(()),
    }
}

/// Maps a failed final check to its error.
fn changed_meanwhile(why: SettingError) -> StepError {
    match why {
        SettingError::Ignored { found } => StepError::ChangedMeanwhile { found: *found },
        why => StepError::Unreadable(why),
    }
}

/// Returns whether this is a folder that the plan's documents need and that does not exist yet.
fn is_made_folder(found: &Found) -> bool {
    let is_folder = matches!(found.setting, Setting::Folder { .. });
    is_folder && found.value == Value::Absent && found.to.is_none()
}

fn expect(
    machine: &mut dyn Machine,
    setting: &Setting,
    wanted: &Value,
) -> Result<(), SettingError> {
    let found = machine.read(setting)?;
    match wanted.matches(setting, &found) {
        true => Ok(()),
        false => Err(SettingError::Ignored {
            found: Box::new(found),
        }),
    }
}

/// Restores the values that this run found, and closes or removes the journal.
fn undo(
    machine: &mut dyn Machine,
    snapshot: &Snapshot<'_>,
    failure: Failure,
    mut journal: Journal<'_>,
    is_first: bool,
) -> ApplyError {
    let found = first_values(snapshot.found.iter());
    let left = restore(machine, &found).left;
    let closed = match (left.is_empty(), is_first) {
        (false, _) => Ok(()),
        (true, true) => journal.remove(),
        (true, false) => journal.append([Entry::Undone]),
    };
    ApplyError::Undone(Box::new(Undone {
        step: failure.at,
        why: failure.why,
        left,
        journal_not_closed: closed.err().map(JournalNotClosed::from),
    }))
}

#[cfg(test)]
mod tests;
