//! Journal file: creation, append and removal.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::{Contents, Entry, line};
use crate::apply::StateError;
use crate::apply::state::{JOURNAL, State};
use crate::limits::{JOURNAL_END_BYTES, MAX_BROKEN_JOURNALS, MAX_JOURNAL_BYTES};

/// File name until the journal is complete.
const BESIDE: &str = "tune.journal.new";
/// File name of a damaged journal kept for inspection; a number may follow.
const BROKEN: &str = "tune.journal.broken";

pub(in crate::apply) struct Journal<'a> {
    state: &'a State,
    file: File,
    name: &'static str,
    lines: usize,
    bytes: u64,
}

impl<'a> Journal<'a> {
    /// Writes a new journal with the entries still needed of `before` and with `entries`. It replaces the old one
    /// atomically: whenever this process is killed, one of them exists, whole. Fails like [`append`](Self::append), and
    /// leaves the old journal unchanged then.
    pub(in crate::apply) fn begin(
        state: &'a State,
        before: Option<&Contents>,
        boot_id: &str,
        entries: impl IntoIterator<Item = Entry>,
    ) -> Result<Self, StateError> {
        let mut all = before.map_or_else(Vec::new, |before| before.compacted(boot_id));
        all.extend(entries);
        let count = all.len();
        for (place, entry) in all.iter_mut().enumerate() {
            if let Entry::Begin { entries, .. } = entry {
                *entries = count - place - 1;
            }
        }
        let path = state.journal();
        let failed = StateError::of(&path);
        state.remove(BESIDE).map_err(&failed)?;
        let new = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
        let mut journal = Self {
            state,
            file: state.open(BESIDE, new).map_err(&failed)?,
            name: BESIDE,
            lines: 0,
            bytes: 0,
        };
        let put = |journal: &mut Self| {
            journal.append(all).map_err(|error| error.error)?;
            state.rename(BESIDE, JOURNAL)?;
            state.sync()
        };
        if let Err(error) = put(&mut journal) {
            let _ = state.remove(BESIDE);
            return Err(failed(error));
        }
        journal.name = JOURNAL;
        Ok(journal)
    }

    /// Appends entries. On return they are all on disk; after an error, none is in the file. Fails with
    /// [`io::ErrorKind::FileTooLarge`] if the journal would exceed the size that is read back, including room for the
    /// plan's end; with [`io::ErrorKind::NotFound`] if the file was deleted.
    pub(in crate::apply) fn append(
        &mut self,
        entries: impl IntoIterator<Item = Entry>,
    ) -> Result<(), StateError> {
        let path = self.state.path_of(self.name);
        let failed = StateError::of(&path);
        let mut text = String::new();
        let (mut lines, mut has_end) = (self.lines, false);
        for entry in entries {
            lines += 1;
            has_end |= matches!(entry, Entry::Applied | Entry::Undone);
            text.push_str(&line(lines, &entry).map_err(&failed)?);
        }
        let bytes = self.bytes + text.len() as u64;
        // At the end each line may be repeated once, for settings that could not be set.
        let again = text.len() as u64 + JOURNAL_END_BYTES;
        let reserve = if has_end { 0 } else { again };
        if bytes + reserve > MAX_JOURNAL_BYTES {
            return Err(failed(io::ErrorKind::FileTooLarge.into()));
        }
        self.put(text.as_bytes()).map_err(|error| {
            // The disk may be full: a partial entry must not stay.
            let _ = self.file.set_len(self.bytes);
            failed(error)
        })?;
        (self.lines, self.bytes) = (lines, bytes);
        Ok(())
    }

    fn put(&self, text: &[u8]) -> io::Result<()> {
        (&self.file).write_all(text)?;
        self.file.sync_all()?;
        // A deleted file still accepts writes, which are lost.
        match self.state.is_named(&self.file, self.name)? {
            true => Ok(()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Removes the journal: nothing is left to undo.
    pub(in crate::apply) fn remove(&self) -> Result<(), StateError> {
        remove(self.state)
    }
}

/// Removes the journal, and the temporary file of an interrupted rewrite.
pub(in crate::apply) fn remove(state: &State) -> Result<(), StateError> {
    let take = || -> io::Result<()> {
        state.remove(BESIDE)?;
        state.remove(JOURNAL)?;
        state.sync()
    };
    take().map_err(StateError::of(&state.journal()))
}

/// Possible names of damaged journals.
fn damaged_names() -> impl Iterator<Item = String> {
    (0..MAX_BROKEN_JOURNALS).map(|number| match number {
        0 => String::from(BROKEN),
        number => format!("{BROKEN}.{number}"),
    })
}

/// Damaged journals that rollbacks kept in the state folder. Settings in their unreadable lines may still be changed.
/// They stay until the user removes them.
///
/// # Errors
/// [`StateError`]: the folder cannot be read, or others can write to it.
pub fn damaged_journals(folder: &Path) -> Result<Vec<PathBuf>, StateError> {
    let Some(state) = State::find(folder)? else {
        return Ok(Vec::new());
    };
    let kept = damaged_names().filter(|name| !state.is_free(name));
    Ok(kept.map(|name| state.path_of(&name)).collect())
}

/// Renames an unreadable journal, for inspection, and returns its new path. Fails with [`io::ErrorKind::AlreadyExists`]
/// if too many are kept already.
pub(in crate::apply) fn keep_damaged(state: &State) -> Result<PathBuf, StateError> {
    let take = || -> io::Result<PathBuf> {
        let aside = damaged_names().find(|name| state.is_free(name));
        let aside = aside.ok_or(io::ErrorKind::AlreadyExists)?;
        state.rename(JOURNAL, &aside)?;
        state.sync()?;
        Ok(state.path_of(&aside))
    };
    take().map_err(StateError::of(&state.journal()))
}
