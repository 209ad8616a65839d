//! Rollback to the values before the first plan.

use std::path::{Path, PathBuf};

use super::journal;
use super::restore::{Restored, restore};
use super::state::State;
use super::{ApplyError, Here, JournalError, JournalNotClosed};
use crate::setting::Machine;

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

/// Restores the values from before the first plan in the journal, and removes the journal if all were restored. It can
/// be repeated. After a boot, it restores files and the settings that the boot part made since; the boot has reset the
/// others.
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
    let restored = restore(machine, &contents.originals_since(&here.boot_id));
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
