//! Restoring what was found before the first plan.

use std::path::{Path, PathBuf};

use super::journal;
use super::restore::{Restored, restore};
use super::state::State;
use super::{ApplyError, Here, JournalError, Unclosed};
use crate::setting::Machine;

/// What a rollback did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RolledBack {
    /// Settings, put back or not; `None`: there was nothing to undo.
    pub restored: Option<Restored>,
    /// Lines of the journal that cannot be read, and where it is kept for people.
    pub broken: Option<(JournalError, PathBuf)>,
    /// All was put back, and the journal still tells of it.
    pub unclosed: Option<Unclosed>,
}

/// Restores what was found before the first plan that the journal tells of, and removes the journal
/// if all of it is so. May be repeated. After a boot, which has reset all but files, these are
/// restored, and what the boot part has set since.
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

/// [`rollback`], by who holds the lock already.
pub(crate) fn rollback_locked(
    machine: &mut dyn Machine,
    here: &Here,
    state: &State,
) -> Result<RolledBack, ApplyError> {
    let Some(contents) = journal::read(state)? else {
        return Ok(RolledBack::default());
    };
    contents.check_form()?;
    if let Some(machine) = contents.machine()
        && !machine.is_same_as(&here.machine)
    {
        return Err(ApplyError::Foreign {
            plan: Box::new(machine.clone()),
            here: Box::new(here.machine.clone()),
        });
    }
    let restored = restore(machine, &contents.originals_since(&here.boot_id));
    let mut done = RolledBack::default();
    if restored.left.is_empty() {
        let closed = match contents.check() {
            Ok(()) => journal::remove(state),
            Err(error) => {
                let kept = journal::set_aside(state);
                let place = kept.as_ref().map_or_else(|_| state.journal(), Clone::clone);
                done.broken = Some((error, place));
                kept.map(drop)
            }
        };
        done.unclosed = closed.err().map(Unclosed::from);
    }
    done.restored = Some(restored);
    Ok(done)
}
