//! Settings in force: combined outcome of the plans in a journal, their current status, and the journal's compaction.
//!
//! The original value of a file is kept for ever. A boot resets kernel settings. So the journal forgets a kernel
//! setting of an earlier boot, unless the last plan still contains the setting.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;

use super::journal::{self, Contents, Entry, Found};
use super::state::State;
use super::{ApplyError, Here, has_boot_number};
use crate::setting::{Machine, Setting, SettingError, Value};

/// Combined effect of the plans applied so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome<'a> {
    /// Profile and boot id of the last plan.
    pub(super) profile: &'a str,
    pub(super) boot_id: &'a str,
    pub(super) is_complete: bool,
    /// Settings in force, in the order they were set.
    pub(super) settings: Vec<Set<'a>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Set<'a> {
    pub(super) boot_id: &'a str,
    pub(super) id: &'a str,
    pub(super) setting: &'a Setting,
    /// First value found; for a kernel setting, the first one found in the boot in which it was set.
    pub(super) before: &'a Value,
    pub(super) to: &'a Value,
}

impl Set<'_> {
    /// Returns whether a reboot has reset the setting since it was set.
    pub(super) fn ended_by_reboot(&self, boot_id: &str) -> bool {
        self.boot_id != boot_id && !self.setting.survives_reboot()
    }

    /// Current value; `None` if it is unreadable. It is also `None` if the setting names an interrupt or thread by a
    /// number of an earlier boot, because the number may have been reassigned.
    pub(super) fn now(&self, machine: &mut dyn Machine, boot_id: &str) -> Option<Value> {
        if self.ended_by_reboot(boot_id) && has_boot_number(self.setting) {
            return None;
        }
        match machine.read(self.setting) {
            Err(SettingError::Gone) => Some(Value::Absent),
            now => now.ok(),
        }
    }

    pub(super) fn is_as_set(&self, now: &Value) -> bool {
        self.to.matches(self.setting, now)
    }
}

impl Found {
    /// Key of the entry: the setting, and for a kernel setting its boot id.
    fn key(&self) -> (&Setting, Option<&str>) {
        let is_file = self.setting.survives_reboot();
        (&self.setting, (!is_file).then_some(self.boot_id.as_str()))
    }
}

impl Contents {
    /// Outcome of the applied plans; `None` if no plan was applied, or all were undone.
    pub(super) fn outcome(&self) -> Option<Outcome<'_>> {
        let entries = self.in_force();
        let mut applied: Option<Outcome<'_>> = None;
        let mut first = HashMap::new();
        for entry in entries {
            match entry {
                Entry::Begin {
                    profile,
                    boot_id,
                    dropped,
                    ..
                } => {
                    let mut settings = applied.map_or(Vec::new(), |applied| applied.settings);
                    settings.retain(|set| {
                        !(set.ended_by_reboot(boot_id) && dropped.contains(set.setting))
                    });
                    applied = Some(Outcome {
                        profile,
                        boot_id,
                        is_complete: false,
                        settings,
                    });
                }
                Entry::Applied | Entry::Undone => {
                    if let Some(applied) = &mut applied {
                        applied.is_complete = true;
                    }
                }
                Entry::Found(found) => {
                    let before = *first.entry(found.key()).or_insert(&found.value);
                    if let Some(applied) = &mut applied {
                        applied.take(found, before);
                    }
                }
            }
        }
        applied
    }

    /// Shortest list of entries with the same original values and the same outcome in this boot.
    pub(super) fn compacted(&self, boot_id: &str) -> Vec<Entry> {
        let entries = self.in_force();
        let is_begin = |entry: &&&Entry| matches!(entry, Entry::Begin { .. });
        let begin = entries.iter().rev().find(is_begin);
        let (Some(applied), Some(begin)) = (self.outcome(), begin) else {
            return Vec::new();
        };
        let mut lines: Vec<Found> = Vec::new();
        let mut places = HashMap::new();
        for entry in &entries {
            let Entry::Found(found) = entry else {
                continue;
            };
            let place = *places.entry(found.key()).or_insert(lines.len());
            match lines.get_mut(place) {
                None => lines.push(found.clone()),
                Some(line) if found.to.is_some() => {
                    (line.id, line.to) = (found.id.clone(), found.to.clone());
                }
                Some(_) => {}
            }
        }
        let is_set = |line: &Found| {
            let mut settings = applied.settings.iter();
            settings.any(|set| *set.setting == line.setting && set.boot_id == line.boot_id)
        };
        lines.retain(|line| line.key().1.is_none() || line.boot_id == boot_id || is_set(line));
        let end = applied.is_complete.then_some(Entry::Applied);
        let lines = lines.into_iter().map(Entry::Found);
        let mut begin = (*begin).clone();
        if let Entry::Begin { dropped, .. } = &mut begin {
            dropped.clear();
        }
        std::iter::once(begin).chain(lines).chain(end).collect()
    }
}

impl<'a> Outcome<'a> {
    /// Adds a setting. It replaces an earlier entry of the same setting. It also replaces the kernel setting that the
    /// same step made in an earlier boot: that setting may name an interrupt by a number which has changed since.
    fn take(&mut self, found: &'a Found, before: &'a Value) {
        let Some(to) = &found.to else {
            return;
        };
        let is_outdated = |known: &Set<'_>| {
            let settings = [known.setting, &found.setting];
            let is_of_kernel = settings.iter().all(|setting| !setting.survives_reboot());
            is_of_kernel && known.id == found.id && known.boot_id != found.boot_id
        };
        self.settings
            .retain(|known| *known.setting != found.setting && !is_outdated(known));
        self.settings.push(Set {
            boot_id: &found.boot_id,
            id: &found.id,
            setting: &found.setting,
            before,
            to,
        });
    }
}

/// Status of the applied plans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Profile of the last plan.
    pub profile: String,
    /// True if the last plan was completed.
    pub is_complete: bool,
    /// True if the last plan was applied since boot.
    pub is_of_this_boot: bool,
    /// Settings, in the order of their steps.
    pub settings: Vec<SettingStatus>,
}

/// Status of one setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingStatus {
    /// Id of the step.
    pub id: String,
    /// Setting of the step.
    pub setting: Setting,
    /// True if the setting was set since boot, or is on disk.
    pub is_of_this_boot: bool,
    /// Value before the first plan; for a kernel setting, before the first plan of the same boot.
    pub before: Value,
    /// Value that the plan set.
    pub applied: Value,
    /// Current value; `None` if it is unreadable, or if the setting names an interrupt or thread by a number of an
    /// earlier boot.
    pub now: Option<Value>,
    /// True if the current value is the applied one.
    pub in_force: bool,
}

/// Compares the applied values with the current ones; `None` if no plan is applied.
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
    contents.check_schema()?;
    contents.check()?;
    let Some(applied) = contents.outcome() else {
        return Ok(None);
    };
    let mut standing = |set: &Set<'_>| {
        let now = set.now(machine, &here.boot_id);
        SettingStatus {
            id: set.id.to_owned(),
            setting: set.setting.clone(),
            is_of_this_boot: !set.ended_by_reboot(&here.boot_id),
            before: set.before.clone(),
            applied: set.to.clone(),
            in_force: now.as_ref().is_some_and(|now| set.is_as_set(now)),
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
