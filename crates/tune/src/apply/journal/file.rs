//! The journal's file: opened, added to, taken away.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Contents, Entry, line};
use crate::apply::StateError;
use crate::apply::state::open;
use crate::limits::{JOURNAL_END_BYTES, MAX_BROKEN_JOURNALS, MAX_JOURNAL_BYTES};

/// A journal that is being written.
pub(in crate::apply) struct Journal {
    file: File,
    path: PathBuf,
    lines: usize,
    bytes: u64,
}

impl Journal {
    /// Writes a journal with what is still needed of the one before and these entries, which takes that one's place in
    /// one piece: whenever this process is killed, the old one or the new one is there, whole.
    ///
    /// # Errors
    /// As [`append`](Self::append). The one before is as it was.
    pub(in crate::apply) fn begin(
        path: &Path,
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
        let beside = beside(path);
        let failed = StateError::of(path);
        remove_if_there(&beside).map_err(&failed)?;
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        let mut journal = Self {
            file: open(&beside, &mut options).map_err(&failed)?,
            path: beside.clone(),
            lines: 0,
            bytes: 0,
        };
        let put = |journal: &mut Self| {
            journal.append(all).map_err(|error| error.error)?;
            fs::rename(&beside, path)?;
            sync_folder_of(path)
        };
        if let Err(error) = put(&mut journal) {
            let _ = fs::remove_file(&beside);
            return Err(failed(error));
        }
        journal.path = path.to_owned();
        Ok(journal)
    }

    /// Adds entries; they are on the disk when this returns, or none of them is in it.
    ///
    /// # Errors
    /// Among others [`io::ErrorKind::FileTooLarge`]: it would be longer than what is read again. Room
    /// for how the plan ends is kept. [`io::ErrorKind::NotFound`]: somebody has taken it away.
    pub(in crate::apply) fn append(
        &mut self,
        entries: impl IntoIterator<Item = Entry>,
    ) -> Result<(), StateError> {
        let failed = StateError::of(&self.path);
        let mut text = String::new();
        let (mut lines, mut has_end) = (self.lines, false);
        for entry in entries {
            lines += 1;
            has_end |= matches!(entry, Entry::Applied | Entry::Undone);
            text.push_str(&line(lines, &entry).map_err(&failed)?);
        }
        let bytes = self.bytes + text.len() as u64;
        // At its end each line may have to be told once more: of what could not be set after all.
        let again = text.len() as u64 + JOURNAL_END_BYTES;
        let reserve = if has_end { 0 } else { again };
        if bytes + reserve > MAX_JOURNAL_BYTES {
            return Err(failed(io::ErrorKind::FileTooLarge.into()));
        }
        self.put(text.as_bytes()).map_err(|error| {
            // The disk is full: what could be written is not to be taken for all of it.
            let _ = self.file.set_len(self.bytes);
            failed(error)
        })?;
        (self.lines, self.bytes) = (lines, bytes);
        Ok(())
    }

    fn put(&self, text: &[u8]) -> io::Result<()> {
        (&self.file).write_all(text)?;
        self.file.sync_all()?;
        // What is written to a file that has no name any more is not kept.
        let (own, named) = (self.file.metadata()?, fs::symlink_metadata(&self.path)?);
        match (own.dev(), own.ino()) == (named.dev(), named.ino()) {
            true => Ok(()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Takes it away: nothing is left to undo.
    pub(in crate::apply) fn remove(&self) -> Result<(), StateError> {
        remove(&self.path)
    }
}

/// Takes a journal away, and what an attempt to write it anew may have left.
pub(in crate::apply) fn remove(path: &Path) -> Result<(), StateError> {
    let take = || -> io::Result<()> {
        remove_if_there(&beside(path))?;
        remove_if_there(path)?;
        sync_folder_of(path)
    };
    take().map_err(StateError::of(path))
}

/// Keeps a journal that cannot be read whole for people to look at, out of the way of the next, and
/// beside those that were kept before.
///
/// # Errors
/// Among others [`io::ErrorKind::AlreadyExists`]: too many are kept.
pub(in crate::apply) fn set_aside(path: &Path) -> Result<PathBuf, StateError> {
    let name = |number: usize| match number {
        0 => path.with_extension("journal.broken"),
        number => path.with_extension(format!("journal.broken.{number}")),
    };
    let is_free = |aside: &PathBuf| {
        let found = fs::symlink_metadata(aside);
        found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    let take = || -> io::Result<PathBuf> {
        let aside = (0..MAX_BROKEN_JOURNALS).map(name).find(is_free);
        let aside = aside.ok_or(io::ErrorKind::AlreadyExists)?;
        fs::rename(path, &aside)?;
        sync_folder_of(path)?;
        Ok(aside)
    };
    take().map_err(StateError::of(path))
}

/// Where it is until it is complete.
fn beside(path: &Path) -> PathBuf {
    path.with_extension("journal.new")
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}
