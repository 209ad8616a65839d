//! Carrying out a plan, so that it can always be undone.
//!
//! ```text
//!   lock -> whose plan is it -> read every setting -> journal -> set, read back, next -> look at all again
//!                 |                    |                           |
//!              foreign               stale                 ignored, gone, stopped: undo in reverse order
//! ```
//!
//! All that will be changed, and all that a change may reset beside it, is read before anything is
//! changed, and what was found is on the disk in one piece, the journal, before the first
//! change. So whenever this process is killed, and whatever the end of the journal looks like,
//! [`rollback`] finds in it everything that may differ. It restores what was found first: a plan
//! that is applied again, or another one on top, adds to the journal and takes nothing away. After
//! a boot the journal still tells what becomes of files; what the kernel holds began anew.

mod boot;
mod error;
mod journal;
mod look;
mod numbers;
mod restore;
mod rollback;
mod saved;
mod state;
mod status;

use std::collections::HashMap;
use std::path::Path;

pub use self::boot::BootPart;
pub use self::error::{ApplyError, Hindrance, JournalError, Left, Obstacle, StateError, Undone};
use self::journal::{Entry, Journal};
use self::look::{Found, Looked, look};
pub use self::numbers::Numbers;
pub(crate) use self::numbers::has_number;
pub use self::restore::Restored;
use self::restore::{first_of_each, restore};
pub(crate) use self::rollback::rollback_locked;
pub use self::rollback::{RolledBack, rollback};
pub use self::saved::SavedPlan;
pub(crate) use self::state::State;
pub use self::status::{Standing, Status, status};
use crate::plan::{Identity, Plan, Step};
use crate::setting::{Machine, Setting, SettingError, Value};

/// Where the journal is when nobody says otherwise.
pub const STATE_FOLDER: &str = "/var/lib/isolane";

/// Where and when a plan is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Here {
    /// This machine.
    pub machine: Identity,
    /// The kernel's number of this run of it.
    pub boot_id: String,
}

/// What carrying out a plan did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Ids of the steps that changed something.
    pub changed: Vec<String>,
    /// Ids of those that were as they should be.
    pub already: Vec<String>,
    /// Ids of those that take effect after the next boot.
    pub after_reboot: Vec<String>,
    /// Ids of those that did not stand as the plan says, and were set all the same: at boot.
    pub unexpected: Vec<String>,
    /// Steps that could not be carried out, and were left out: at boot.
    pub left_out: Vec<Obstacle>,
}

/// Carries out a plan. `is_boot`: at boot, when what stands there need not be what stood there when
/// the plan was made, and what cannot be read is left out: nobody is there to plan again, and the rest
/// still helps. `is_stopped` is asked between steps.
///
/// # Errors
/// [`ApplyError`]: nothing was changed, or everything was undone, but for what the error says.
pub fn apply(
    machine: &mut dyn Machine,
    here: &Here,
    plan: &Plan,
    folder: &Path,
    is_boot: bool,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Applied, ApplyError> {
    if !plan.machine.is_same_as(&here.machine) {
        return Err(ApplyError::Foreign {
            plan: Box::new(plan.machine.clone()),
            here: Box::new(here.machine.clone()),
        });
    }
    if let Some(of) = plan.of_other_boot(&here.boot_id, is_boot) {
        return Err(ApplyError::OtherBoot {
            plan: of.to_owned(),
            here: here.boot_id.clone(),
        });
    }
    let state = State::make(folder)?;
    let _lock = state.lock()?;
    apply_locked(machine, here, plan, &state, is_boot, is_stopped)
}

/// [`apply`], by who holds the lock already.
pub(crate) fn apply_locked(
    machine: &mut dyn Machine,
    here: &Here,
    plan: &Plan,
    state: &State,
    is_boot: bool,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Applied, ApplyError> {
    let before = journal::read(&state.journal())?;
    if let Some(before) = &before {
        before.check()?;
        let is_other = |machine: &&Identity| !machine.is_same_as(&here.machine);
        if let Some(machine) = before.machine().filter(is_other) {
            return Err(ApplyError::Foreign {
                plan: Box::new(machine.clone()),
                here: Box::new(here.machine.clone()),
            });
        }
    }
    let looked = look(machine, plan, is_boot)?;
    if looked.to_change.is_empty() {
        return Ok(looked.applied);
    }
    let is_first = before.is_none();
    let mut journal = Journal::open(&state.journal(), before.as_ref())?;
    let begin = Entry::begin(here, &plan.profile);
    let entries = looked.found.iter().map(|found| Entry::Found {
        boot_id: here.boot_id.clone(),
        id: found.id.clone(),
        setting: found.setting.clone(),
        value: found.value.clone(),
        to: found.to.clone(),
    });
    journal.append(std::iter::once(begin).chain(entries))?;
    match carry_out(machine, plan, &looked, is_stopped) {
        Ok(()) => {
            journal.append([Entry::Applied])?;
            Ok(looked.applied)
        }
        Err(failure) => Err(undo(machine, &looked, failure, journal, is_first)),
    }
}

/// Why a plan was not carried out to its end: at which step, and what happened.
struct Failure<'a> {
    step: Option<&'a Step>,
    why: Hindrance,
}

fn carry_out<'a>(
    machine: &mut dyn Machine,
    plan: &'a Plan,
    looked: &Looked<'a>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), Failure<'a>> {
    let failed = |step, why| Failure {
        step: Some(step),
        why: Hindrance::Unreadable(why),
    };
    for found in looked.found.iter().filter(|found| is_made_folder(found)) {
        let made = machine.write(&found.setting, &Value::Present);
        made.map_err(|why| Failure {
            step: None,
            why: Hindrance::Unreadable(why),
        })?;
    }
    for step in &looked.to_change {
        if is_stopped() {
            return Err(Failure {
                step: None,
                why: Hindrance::Stopped,
            });
        }
        machine
            .write(&step.setting, &step.to)
            .and_then(|()| expect(machine, &step.setting, &step.to))
            .map_err(|why| failed(*step, why))?;
    }
    // A later step, or somebody else, may have undone an earlier one, or what was as it should be.
    let last: HashMap<&Setting, &Step> = plan
        .steps
        .iter()
        .map(|step| (&step.setting, step))
        .collect();
    let left_out = &looked.applied.left_out;
    let is_left_out = |step: &&Step| left_out.iter().any(|it| it.setting == step.setting);
    for step in plan
        .steps
        .iter()
        .filter(|step| last[&step.setting] == *step && !is_left_out(step))
    {
        expect(machine, &step.setting, &step.to).map_err(|why| Failure {
            step: Some(step),
            why: match why {
                SettingError::Ignored { found } => Hindrance::Overturned { found: *found },
                why => Hindrance::Unreadable(why),
            },
        })?;
    }
    match is_stopped() {
        true => Err(Failure {
            step: None,
            why: Hindrance::Stopped,
        }),
        false => Ok(()),
    }
}

/// A folder that documents of the plan go to, and that is not there yet.
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
    match wanted.agrees_with(setting, &found) {
        true => Ok(()),
        false => Err(SettingError::Ignored {
            found: Box::new(found),
        }),
    }
}

/// Puts back what this run found, and closes or removes the journal.
fn undo(
    machine: &mut dyn Machine,
    looked: &Looked<'_>,
    failure: Failure<'_>,
    mut journal: Journal,
    is_first: bool,
) -> ApplyError {
    let found = looked.found.iter();
    let found = first_of_each(found.map(|found| (&found.setting, &found.value)));
    let mut left = restore(machine, &found).left;
    if left.is_empty() {
        let closed = match is_first {
            true => journal.remove(),
            false => journal.append([Entry::Undone]),
        };
        if let Err(error) = closed {
            left.push(Left::journal(&error));
        }
    }
    ApplyError::Undone(Box::new(Undone {
        step: failure
            .step
            .map(|step| (step.id.clone(), step.setting.clone())),
        why: failure.why,
        left,
    }))
}

#[cfg(test)]
mod tests;
