//! What was found before anything was changed, on disk before it was: one line an entry.
//!
//! ```text
//!   {"number":1,"entry":{...},"checksum":"89abcdef"}
//! ```
//!
//! The checksum (CRC-32 as in Ethernet) is of all that stands before it in the line. A last line
//! without its end was being written when the process died, and what it says was not done yet: it is
//! left out. Any other line that cannot be read is broken, and is told by its number.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crc::{CRC_32_ISO_HDLC, Crc};
use serde::{Deserialize, Serialize};

use super::restore::first_of_each;
use super::{Here, JournalError, StateError};
use crate::limits::MAX_JOURNAL_BYTES;
use crate::plan::Identity;
use crate::setting::{Setting, Value};

const CHECKSUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);
/// What stands before the checksum and behind it.
const BEFORE_CHECKSUM: &str = ",\"checksum\":\"";
const BEHIND_CHECKSUM: &str = "\"}";
const SCHEMA: &str = "isolane/journal/1";

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Entry {
    /// A plan is about to be carried out.
    Begin {
        schema: String,
        machine: Identity,
        boot_id: String,
        profile: String,
    },
    /// What stood in a setting that it changes (`to`), or may change beside (no `to`).
    /// The run of the machine stands in each, for the line of the beginning may be the broken one.
    Found {
        boot_id: String,
        id: String,
        setting: Setting,
        value: Value,
        to: Option<Value>,
    },
    /// It was carried out.
    Applied,
    /// It was undone.
    Undone,
}

impl Entry {
    pub(super) fn begin(here: &Here, profile: &str) -> Self {
        Self::Begin {
            schema: SCHEMA.into(),
            machine: here.machine.clone(),
            boot_id: here.boot_id.clone(),
            profile: profile.into(),
        }
    }
}

/// A line, but for its checksum.
#[derive(Serialize)]
struct Line<'a> {
    number: usize,
    entry: &'a Entry,
}

/// The same, as it is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadLine {
    number: usize,
    entry: Entry,
    #[serde(rename = "checksum")]
    _checksum: String,
}

/// What a journal says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) path: PathBuf,
    pub(super) entries: Vec<Entry>,
    /// Lines that cannot be read, from 1.
    pub(super) broken: Vec<usize>,
    /// Lines that are complete, and their bytes.
    lines: usize,
    bytes: u64,
}

impl Contents {
    /// # Errors
    /// There are broken lines.
    pub(super) fn check(&self) -> Result<(), JournalError> {
        match self.broken.is_empty() {
            true => Ok(()),
            false => Err(JournalError {
                path: self.path.clone(),
                lines: self.broken.clone(),
            }),
        }
    }

    /// The machine it is of.
    pub(super) fn machine(&self) -> Option<&Identity> {
        self.entries.iter().find_map(|entry| match entry {
            Entry::Begin { machine, .. } => Some(machine),
            _ => None,
        })
    }

    /// What was found first in each setting, in the order in which it was found.
    pub(super) fn originals(&self) -> Vec<(Setting, Value)> {
        first_of_each(self.found().map(|(_, setting, value)| (setting, value)))
    }

    /// The same, of what a boot leaves as it is: files; and of all else what was found since this
    /// boot. What was set before it is gone, and the numbers of interrupts and threads stand for
    /// others now.
    pub(super) fn originals_since(&self, boot_id: &str) -> Vec<(Setting, Value)> {
        let holds = |(of, setting, _): &(&str, &Setting, &Value)| {
            *of == boot_id || setting.is_kept_by_a_boot()
        };
        let found = self.found().filter(holds);
        first_of_each(found.map(|(_, setting, value)| (setting, value)))
    }

    /// All that was found, and in which run of the machine.
    fn found(&self) -> impl Iterator<Item = (&str, &Setting, &Value)> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Found {
                boot_id,
                setting,
                value,
                ..
            } => Some((boot_id.as_str(), setting, value)),
            _ => None,
        })
    }
}

/// Reads a journal; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<Contents>, StateError> {
    let failed = StateError::of(path);
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(&failed)?,
    };
    let mut bytes = Vec::new();
    file.take(MAX_JOURNAL_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(&failed)?;
    if bytes.len() as u64 > MAX_JOURNAL_BYTES {
        return Err(failed(io::Error::other("it is longer than any journal")));
    }
    let mut contents = parse(&bytes);
    contents.path = path.to_owned();
    Ok(Some(contents))
}

pub(super) fn parse(bytes: &[u8]) -> Contents {
    let mut contents = Contents::default();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(text) = line.strip_suffix(b"\n") else {
            // Cut off; nothing can follow.
            break;
        };
        contents.lines += 1;
        contents.bytes += line.len() as u64;
        match parse_line(text) {
            // Its number says whether a line is missing before it.
            Some(line) if line.number == contents.lines => contents.entries.push(line.entry),
            Some(line) => {
                contents.broken.push(contents.lines);
                contents.entries.push(line.entry);
            }
            None => contents.broken.push(contents.lines),
        }
    }
    contents
}

fn parse_line(line: &[u8]) -> Option<ReadLine> {
    let text = str::from_utf8(line).ok()?;
    let (said, checksum) = text
        .strip_suffix(BEHIND_CHECKSUM)?
        .rsplit_once(BEFORE_CHECKSUM)?;
    let checksum = u32::from_str_radix(checksum, 16).ok()?;
    if checksum != CHECKSUM.checksum(said.as_bytes()) {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// A line with its end.
pub(super) fn line(number: usize, entry: &Entry) -> io::Result<String> {
    let line = serde_json::to_string(&Line { number, entry })?;
    let said = line.strip_suffix('}').unwrap_or(&line);
    let checksum = CHECKSUM.checksum(said.as_bytes());
    Ok(format!(
        "{said}{BEFORE_CHECKSUM}{checksum:08x}{BEHIND_CHECKSUM}\n"
    ))
}

/// A journal that is being written.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    lines: usize,
}

impl Journal {
    /// Opens it behind what is there, of which a line that was cut off is taken away.
    pub(super) fn open(path: &Path, before: Option<&Contents>) -> Result<Self, StateError> {
        let open = || -> io::Result<File> {
            let file = File::options().append(true).create(true).open(path)?;
            file.set_len(before.map_or(0, |before| before.bytes))?;
            sync_folder_of(path)?;
            Ok(file)
        };
        Ok(Self {
            file: open().map_err(StateError::of(path))?,
            path: path.to_owned(),
            lines: before.map_or(0, |before| before.lines),
        })
    }

    /// Adds entries; they are on the disk when this returns.
    pub(super) fn append(
        &mut self,
        entries: impl IntoIterator<Item = Entry>,
    ) -> Result<(), StateError> {
        let mut text = String::new();
        let put = || -> io::Result<()> {
            for entry in entries {
                self.lines += 1;
                text.push_str(&line(self.lines, &entry)?);
            }
            self.file.write_all(text.as_bytes())?;
            self.file.sync_all()
        };
        put().map_err(StateError::of(&self.path))
    }

    /// Takes it away: nothing is left to undo.
    pub(super) fn remove(&self) -> Result<(), StateError> {
        remove(&self.path)
    }
}

/// Takes a journal away.
pub(super) fn remove(path: &Path) -> Result<(), StateError> {
    let take = || -> io::Result<()> {
        fs::remove_file(path)?;
        sync_folder_of(path)
    };
    take().map_err(StateError::of(path))
}

/// Keeps a journal that cannot be read whole for people to look at, out of the way of the next.
pub(super) fn set_aside(path: &Path) -> Result<PathBuf, StateError> {
    let aside = path.with_extension("journal.broken");
    let take = || -> io::Result<()> {
        fs::rename(path, &aside)?;
        sync_folder_of(path)
    };
    take().map_err(StateError::of(path))?;
    Ok(aside)
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}
