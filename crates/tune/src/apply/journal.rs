//! Journal of original values, on disk before any change: one entry per line.
//!
//! ```text
//! {"number":1,"entry":{...},"checksum":"89abcdef"}
//! ```
//!
//! The checksum (CRC-32 as in Ethernet) covers all bytes before it in the line. A last line without a line end is
//! ignored: the process died while it wrote the line, before it made the change. Any other unreadable line is reported
//! as broken, with its number.
//!
//! Each plan, also the saved plan at boot, writes a new journal, which replaces the old file atomically. It contains
//! the old entries that are still needed ([`Contents::compacted`]) and the new original values. `Begin` counts the
//! entries that follow it, so that a later truncation is detected. A plan whose journal would exceed the size limit is
//! refused before any change.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crc::{CRC_32_ISO_HDLC, Crc};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::rollback::first_values;
use super::state::{JOURNAL, State};
use super::{Here, JournalError, StateError};
use crate::limits::{JOURNAL_END_BYTES, MAX_BROKEN_JOURNALS, MAX_JOURNAL_BYTES};
use crate::plan::{Identity, SchemaError};
use crate::setting::{Setting, Value};

const CHECKSUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);
/// Text around the checksum.
const BEFORE_CHECKSUM: &str = ",\"checksum\":\"";
const BEHIND_CHECKSUM: &str = "\"}";
const SCHEMA: &str = "isolane/journal/3";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Entry {
    /// Start of a plan.
    Begin {
        schema: String,
        machine: Identity,
        boot_id: String,
        profile: String,
        /// Number of entries written together with this one, after it.
        entries: usize,
        /// Settings of an earlier boot that the plan no longer contains.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dropped: Vec<Setting>,
    },
    /// Original value of a setting.
    Found(Found),
    /// Successful end of the plan.
    Applied,
    /// Completed undo of the plan.
    Undone,
}

/// Original value of a setting that the plan changes (`to`) or may change as a side effect (no `to`). Each entry holds
/// its boot id, because the `Begin` line may be broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Found {
    pub(super) boot_id: String,
    pub(super) id: String,
    pub(super) setting: Setting,
    pub(super) value: Value,
    pub(super) to: Option<Value>,
}

impl Entry {
    pub(super) fn begin(here: &Here, profile: &str, dropped: Vec<Setting>) -> Self {
        Self::Begin {
            schema: SCHEMA.into(),
            machine: here.machine.clone(),
            boot_id: here.boot_id.clone(),
            profile: profile.into(),
            // Set when the journal is written, because the number is not known here.
            entries: 0,
            dropped,
        }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    number: usize,
    entry: &'a Entry,
}

/// Line as read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadLine {
    number: usize,
    entry: Entry,
    #[serde(rename = "checksum")]
    _checksum: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) path: PathBuf,
    pub(super) entries: Vec<Entry>,
    /// Unreadable lines, from 1.
    pub(super) broken: Vec<usize>,
    /// Number of entries missing after the last line.
    pub(super) missing: usize,
    /// Format version, if it is not this one.
    other_schema: Option<String>,
    lines: usize,
}

impl Contents {
    /// Fails if lines are broken or missing at the end.
    pub(super) fn check(&self) -> Result<(), JournalError> {
        match self.broken.is_empty() && self.missing == 0 {
            true => Ok(()),
            false => Err(JournalError {
                path: self.path.clone(),
                lines: self.broken.clone(),
                missing: self.missing,
            }),
        }
    }

    /// Fails if another version of this program wrote the journal.
    pub(super) fn check_schema(&self) -> Result<(), SchemaError> {
        match &self.other_schema {
            None => Ok(()),
            Some(form) => Err(SchemaError {
                what: self.path.display().to_string(),
                found: form.clone(),
                known: SCHEMA,
            }),
        }
    }

    pub(super) fn machine(&self) -> Option<&Identity> {
        self.entries.iter().find_map(|entry| match entry {
            Entry::Begin { machine, .. } => Some(machine),
            _ => None,
        })
    }

    /// First value found of each setting, in order. For files, entries of all boots count; for kernel settings, only
    /// entries of this boot. A boot resets kernel settings, and reassigns interrupt and thread numbers.
    pub(super) fn originals(&self, boot_id: &str) -> Vec<(Setting, Value)> {
        let entries = self.in_force().into_iter();
        let found = entries.filter_map(|entry| match entry {
            Entry::Found(found) => Some(found),
            _ => None,
        });
        let holds = |it: &&Found| it.boot_id == boot_id || it.setting.survives_reboot();
        first_values(found.filter(holds))
    }

    /// Entries of plans that were not undone. An undone plan's values are restored, and later changes of its settings
    /// are not isolane's. In a journal with broken lines all entries count: the undone plan's `Begin` may be broken.
    pub(super) fn in_force(&self) -> Vec<&Entry> {
        let mut kept: Vec<&Entry> = Vec::new();
        let mut begun = None;
        for entry in &self.entries {
            match entry {
                Entry::Begin { .. } => begun = Some(kept.len()),
                Entry::Undone if self.broken.is_empty() => {
                    if let Some(begun) = begun.take() {
                        kept.truncate(begun);
                    }
                    continue;
                }
                _ => {}
            }
            kept.push(entry);
        }
        kept
    }
}

pub(super) fn read(state: &State) -> Result<Option<Contents>, StateError> {
    let path = state.journal();
    let failed = StateError::of(&path);
    let file = match state.open(JOURNAL, OFlags::RDONLY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(&failed)?,
    };
    let mut bytes = Vec::new();
    file.take(MAX_JOURNAL_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(&failed)?;
    if bytes.len() as u64 > MAX_JOURNAL_BYTES {
        return Err(failed(io::Error::other(
            "it is longer than a journal can be",
        )));
    }
    let mut contents = parse(&bytes);
    drop(failed);
    contents.path = path;
    Ok(Some(contents))
}

pub(super) fn parse(bytes: &[u8]) -> Contents {
    let mut contents = Contents::default();
    // At least the `Begin` line.
    let mut written = 1;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(text) = line.strip_suffix(b"\n") else {
            // Truncated; nothing can follow.
            break;
        };
        contents.lines += 1;
        let line = match parse_line(text) {
            Ok(line) => line,
            Err(form) => {
                contents.broken.push(contents.lines);
                contents.other_schema = contents.other_schema.or(form);
                continue;
            }
        };
        // A gap in the numbers reveals a missing line.
        if line.number != contents.lines {
            contents.broken.push(contents.lines);
        }
        if let Entry::Begin {
            schema, entries, ..
        } = &line.entry
        {
            written = written.max(line.number.saturating_add(*entries));
            if schema != SCHEMA {
                contents.other_schema = Some(schema.clone());
            }
        }
        contents.entries.push(line.entry);
    }
    contents.missing = written.saturating_sub(contents.lines);
    contents
}

/// Parses a line with a valid checksum. If the line names another format version, the error contains that version.
fn parse_line(line: &[u8]) -> Result<ReadLine, Option<String>> {
    let text = intact(line).ok_or(None::<String>)?;
    serde_json::from_str(text).map_err(|_| {
        let line: serde_json::Value = serde_json::from_str(text).ok()?;
        let form = line["entry"]["schema"].as_str()?;
        (form != SCHEMA).then(|| form.to_owned())
    })
}

/// Line text, if its checksum is valid.
fn intact(line: &[u8]) -> Option<&str> {
    let text = str::from_utf8(line).ok()?;
    let (said, checksum) = text
        .strip_suffix(BEHIND_CHECKSUM)?
        .rsplit_once(BEFORE_CHECKSUM)?;
    let checksum = u32::from_str_radix(checksum, 16).ok()?;
    (checksum == CHECKSUM.checksum(said.as_bytes())).then_some(text)
}

/// Serialises an entry as a line, with its line end.
fn line(number: usize, entry: &Entry) -> io::Result<String> {
    let line = serde_json::to_string(&Line { number, entry })?;
    Ok(with_checksum(line.strip_suffix('}').unwrap_or(&line)))
}

/// Appends checksum, closing bracket and line end to a serialised line without its closing bracket.
pub(super) fn with_checksum(said: &str) -> String {
    let checksum = CHECKSUM.checksum(said.as_bytes());
    format!("{said}{BEFORE_CHECKSUM}{checksum:08x}{BEHIND_CHECKSUM}\n")
}

/// File name of a new journal until it is complete.
const NEW_JOURNAL: &str = "tune.journal.new";
/// File name of a damaged journal kept for inspection; a number may follow.
const BROKEN: &str = "tune.journal.broken";

pub(super) struct Journal<'a> {
    state: &'a State,
    file: File,
    name: &'static str,
    lines: usize,
    bytes: u64,
}

impl<'a> Journal<'a> {
    /// Writes a new journal: the entries of `before` that are still needed, then `entries`. It replaces the old journal
    /// atomically: whenever this process is killed, a complete journal exists, old or new. Fails like
    /// [`append`](Self::append), and then leaves the old journal unchanged.
    pub(super) fn begin(
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
        state.remove(NEW_JOURNAL).map_err(&failed)?;
        let new = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
        let mut journal = Self {
            state,
            file: state.open(NEW_JOURNAL, new).map_err(&failed)?,
            name: NEW_JOURNAL,
            lines: 0,
            bytes: 0,
        };
        let put = |journal: &mut Self| {
            journal.append(all).map_err(|error| error.error)?;
            state.rename(NEW_JOURNAL, JOURNAL)?;
            state.sync()
        };
        if let Err(error) = put(&mut journal) {
            let _ = state.remove(NEW_JOURNAL);
            return Err(failed(error));
        }
        journal.name = JOURNAL;
        Ok(journal)
    }

    /// Appends entries. After success all are on disk; after an error none is in the file. Fails with
    /// [`io::ErrorKind::FileTooLarge`] if the journal, with room for the plan's end, would exceed `MAX_JOURNAL_BYTES`.
    /// Fails with [`io::ErrorKind::NotFound`] if the file was deleted.
    pub(super) fn append(
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
        // At the plan's end, each line may be repeated once, if its setting could not be set.
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
    pub(super) fn remove(&self) -> Result<(), StateError> {
        remove(self.state)
    }
}

/// Removes the journal, and the temporary file of an interrupted rewrite.
pub(super) fn remove(state: &State) -> Result<(), StateError> {
    let take = || -> io::Result<()> {
        state.remove(NEW_JOURNAL)?;
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

/// Damaged journals that rollbacks kept in the state folder. Settings in their unreadable lines may not be restored.
/// The files stay until the user removes them.
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
pub(super) fn keep_damaged(state: &State) -> Result<PathBuf, StateError> {
    let take = || -> io::Result<PathBuf> {
        let aside = damaged_names().find(|name| state.is_free(name));
        let aside = aside.ok_or(io::ErrorKind::AlreadyExists)?;
        state.rename(JOURNAL, &aside)?;
        state.sync()?;
        Ok(state.path_of(&aside))
    };
    take().map_err(StateError::of(&state.journal()))
}
