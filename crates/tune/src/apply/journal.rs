//! What was found before anything was changed, on disk before it was: one line an entry.
//!
//! ```text
//!   {"number":1,"entry":{...},"checksum":"89abcdef"}
//! ```
//!
//! The checksum (CRC-32 as in Ethernet) is of all that stands before it in the line. A last line
//! without its end was being written when the process died, and what it says was not done yet: it is
//! left out. Any other line that cannot be read is broken, and is told by its number.
//!
//! It grows with each plan, also at each boot. So each plan writes it anew: what is still needed of the one before
//! ([`compact`]), and what the plan found, in one piece that takes the old one's place. Each beginning says how many
//! entries follow it in that piece, so that a journal that was cut later is noticed. What would make it longer than it
//! may be is refused before anything is changed.

mod compact;
mod file;

use std::io::{self, Read};
use std::path::PathBuf;

use crc::{CRC_32_ISO_HDLC, Crc};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

pub(super) use self::compact::{Outcome, Set};
pub use self::file::damaged_journals;
pub(super) use self::file::{Journal, remove, set_aside};
use super::restore::first_of_each;
use super::state::{JOURNAL, State};
use super::{Here, JournalError, StateError};
use crate::limits::MAX_JOURNAL_BYTES;
use crate::plan::{FormError, Identity};
use crate::setting::{Setting, Value};

const CHECKSUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);
/// What stands before the checksum and behind it.
const BEFORE_CHECKSUM: &str = ",\"checksum\":\"";
const BEHIND_CHECKSUM: &str = "\"}";
const SCHEMA: &str = "isolane/journal/2";

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
        /// Entries that follow it in the piece that it was written in.
        entries: usize,
        /// What was set before a boot, and is not asked for since.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        forgotten: Vec<Setting>,
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
    pub(super) fn begin(here: &Here, profile: &str, forgotten: Vec<Setting>) -> Self {
        Self::Begin {
            schema: SCHEMA.into(),
            machine: here.machine.clone(),
            boot_id: here.boot_id.clone(),
            profile: profile.into(),
            // Counted once it is known what is written with it.
            entries: 0,
            forgotten,
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
    /// Entries that were written behind the last line, and are not there.
    pub(super) missing: usize,
    /// The form it is written in, if it is not ours.
    other_form: Option<String>,
    /// Lines that are complete.
    lines: usize,
}

impl Contents {
    /// # Errors
    /// There are broken lines, or some are missing at its end.
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

    /// # Errors
    /// Another version of this program has written it.
    pub(super) fn check_form(&self) -> Result<(), FormError> {
        match &self.other_form {
            None => Ok(()),
            Some(form) => Err(FormError {
                what: self.path.display().to_string(),
                found: form.clone(),
                known: SCHEMA,
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

    /// What was found first in each setting, in the order in which it was found: of what a boot leaves
    /// as it is, files; and of all else what was found since this boot. What was set before it is
    /// gone, and the numbers of interrupts and threads stand for others now.
    pub(super) fn originals_since(&self, boot_id: &str) -> Vec<(Setting, Value)> {
        let holds = |(of, setting, _): &(&str, &Setting, &Value)| {
            *of == boot_id || setting.is_kept_by_a_boot()
        };
        let found = self.found().filter(holds);
        first_of_each(found.map(|(_, setting, value)| (setting, value)))
    }

    /// All that was found, and in which run of the machine.
    fn found(&self) -> impl Iterator<Item = (&str, &Setting, &Value)> {
        self.in_force().into_iter().filter_map(|entry| match entry {
            Entry::Found {
                boot_id,
                setting,
                value,
                ..
            } => Some((boot_id.as_str(), setting, value)),
            _ => None,
        })
    }

    /// The entries without those of plans that were undone: what these found is there again, and what
    /// becomes of it since is not ours. Of a journal with broken lines all are told, for the beginning
    /// of the plan that was undone may be among those.
    fn in_force(&self) -> Vec<&Entry> {
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

/// Reads the journal; `None` if there is none.
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
        return Err(failed(io::Error::other("it is longer than any journal")));
    }
    let mut contents = parse(&bytes);
    drop(failed);
    contents.path = path;
    Ok(Some(contents))
}

pub(super) fn parse(bytes: &[u8]) -> Contents {
    let mut contents = Contents::default();
    // It has its beginning at least.
    let mut written = 1;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(text) = line.strip_suffix(b"\n") else {
            // Cut off; nothing can follow.
            break;
        };
        contents.lines += 1;
        let line = match parse_line(text) {
            Ok(line) => line,
            Err(form) => {
                contents.broken.push(contents.lines);
                contents.other_form = contents.other_form.or(form);
                continue;
            }
        };
        // Its number says whether a line is missing before it.
        if line.number != contents.lines {
            contents.broken.push(contents.lines);
        }
        if let Entry::Begin {
            schema, entries, ..
        } = &line.entry
        {
            written = written.max(line.number.saturating_add(*entries));
            if schema != SCHEMA {
                contents.other_form = Some(schema.clone());
            }
        }
        contents.entries.push(line.entry);
    }
    contents.missing = written.saturating_sub(contents.lines);
    contents
}

/// A line that is as it was written.
///
/// # Errors
/// It is broken, or of another form than ours, which it may name.
fn parse_line(line: &[u8]) -> Result<ReadLine, Option<String>> {
    let text = intact(line).ok_or(None::<String>)?;
    serde_json::from_str(text).map_err(|_| {
        let line: serde_json::Value = serde_json::from_str(text).ok()?;
        let form = line["entry"]["schema"].as_str()?;
        (form != SCHEMA).then(|| form.to_owned())
    })
}

/// A line whose checksum is right.
fn intact(line: &[u8]) -> Option<&str> {
    let text = str::from_utf8(line).ok()?;
    let (said, checksum) = text
        .strip_suffix(BEHIND_CHECKSUM)?
        .rsplit_once(BEFORE_CHECKSUM)?;
    let checksum = u32::from_str_radix(checksum, 16).ok()?;
    (checksum == CHECKSUM.checksum(said.as_bytes())).then_some(text)
}

/// A line with its end.
fn line(number: usize, entry: &Entry) -> io::Result<String> {
    let line = serde_json::to_string(&Line { number, entry })?;
    Ok(with_checksum(line.strip_suffix('}').unwrap_or(&line)))
}

/// What a line says, without the bracket that closes it, as it is written.
pub(super) fn with_checksum(said: &str) -> String {
    let checksum = CHECKSUM.checksum(said.as_bytes());
    format!("{said}{BEFORE_CHECKSUM}{checksum:08x}{BEHIND_CHECKSUM}\n")
}
