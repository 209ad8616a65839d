//! Compaction of a journal: one line per setting that may still need restoring, or whose set value is still in force.
//!
//! The first value of a file is kept for ever. Kernel settings start anew with each boot, so of earlier boots only
//! those remain that the last plan still contains.

use std::collections::HashMap;

use super::{Contents, Entry};
use crate::apply::has_number;
use crate::setting::{Machine, Setting, SettingError, Value};

/// Combined effect of the plans applied so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::apply) struct Outcome<'a> {
    /// Profile and boot id of the last plan.
    pub(in crate::apply) profile: &'a str,
    pub(in crate::apply) boot_id: &'a str,
    pub(in crate::apply) is_complete: bool,
    /// Settings in force, in the order they were set.
    pub(in crate::apply) settings: Vec<Set<'a>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::apply) struct Set<'a> {
    pub(in crate::apply) boot_id: &'a str,
    pub(in crate::apply) id: &'a str,
    pub(in crate::apply) setting: &'a Setting,
    /// First value found; of a kernel setting, in that boot.
    pub(in crate::apply) before: &'a Value,
    pub(in crate::apply) to: &'a Value,
}

impl Set<'_> {
    /// Returns whether a reboot since has discarded the setting.
    pub(in crate::apply) fn ended_by_reboot(&self, boot_id: &str) -> bool {
        self.boot_id != boot_id && !self.setting.survives_reboot()
    }

    /// Current value; `None` if it is unreadable, or if its interrupt or thread number is from an earlier boot and may
    /// have been reassigned.
    pub(in crate::apply) fn now(&self, machine: &mut dyn Machine, boot_id: &str) -> Option<Value> {
        if self.ended_by_reboot(boot_id) && has_number(self.setting) {
            return None;
        }
        match machine.read(self.setting) {
            Err(SettingError::Gone) => Some(Value::Absent),
            now => now.ok(),
        }
    }

    pub(in crate::apply) fn is_as_set(&self, now: &Value) -> bool {
        self.to.matches(self.setting, now)
    }
}

#[derive(Clone, Copy)]
struct Found<'a> {
    boot_id: &'a str,
    id: &'a str,
    setting: &'a Setting,
    value: &'a Value,
    to: Option<&'a Value>,
}

impl<'a> Found<'a> {
    fn of(entry: &'a Entry) -> Option<Self> {
        match entry {
            Entry::Found {
                boot_id,
                id,
                setting,
                value,
                to,
            } => Some(Self {
                boot_id,
                id,
                setting,
                value,
                to: to.as_ref(),
            }),
            _ => None,
        }
    }

    /// Key of the entry: the setting, and for a kernel setting its boot id.
    fn place(&self) -> (&'a Setting, Option<&'a str>) {
        let is_file = self.setting.survives_reboot();
        (self.setting, (!is_file).then_some(self.boot_id))
    }
}

impl Contents {
    /// Outcome of the applied plans; `None` if there is none, or all were undone.
    pub(in crate::apply) fn outcome(&self) -> Option<Outcome<'_>> {
        let entries = self.in_force();
        let mut applied: Option<Outcome<'_>> = None;
        let mut first = HashMap::new();
        for entry in entries {
            match entry {
                Entry::Begin {
                    profile,
                    boot_id,
                    forgotten,
                    ..
                } => {
                    let mut settings = applied.map_or(Vec::new(), |applied| applied.settings);
                    settings.retain(|set| {
                        !(set.ended_by_reboot(boot_id) && forgotten.contains(set.setting))
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
                Entry::Found { .. } => {
                    let Some(found) = Found::of(entry) else {
                        continue;
                    };
                    let before = *first.entry(found.place()).or_insert(found.value);
                    if let Some(applied) = &mut applied {
                        applied.take(found, before);
                    }
                }
            }
        }
        applied
    }

    /// Smallest list of entries with the same meaning in this boot.
    pub(super) fn compacted(&self, boot_id: &str) -> Vec<Entry> {
        let entries = self.in_force();
        let is_begin = |entry: &&&Entry| matches!(entry, Entry::Begin { .. });
        let begin = entries.iter().rev().find(is_begin);
        let (Some(applied), Some(begin)) = (self.outcome(), begin) else {
            return Vec::new();
        };
        let mut lines: Vec<Found<'_>> = Vec::new();
        let mut places = HashMap::new();
        for found in entries.iter().filter_map(|entry| Found::of(entry)) {
            let place = *places.entry(found.place()).or_insert(lines.len());
            match lines.get_mut(place) {
                None => lines.push(found),
                Some(line) if found.to.is_some() => (line.id, line.to) = (found.id, found.to),
                Some(_) => {}
            }
        }
        let is_set = |line: &Found<'_>| {
            let mut settings = applied.settings.iter();
            settings.any(|set| set.setting == line.setting && set.boot_id == line.boot_id)
        };
        lines.retain(|line| line.place().1.is_none() || line.boot_id == boot_id || is_set(line));
        let end = applied.is_complete.then_some(Entry::Applied);
        let lines = lines.into_iter().map(|line| Entry::Found {
            boot_id: line.boot_id.to_owned(),
            id: line.id.to_owned(),
            setting: line.setting.clone(),
            value: line.value.clone(),
            to: line.to.cloned(),
        });
        let mut begin = (*begin).clone();
        if let Entry::Begin { forgotten, .. } = &mut begin {
            forgotten.clear();
        }
        std::iter::once(begin).chain(lines).chain(end).collect()
    }
}

impl<'a> Outcome<'a> {
    /// Adds a setting. It replaces an earlier value of the same setting, and the same step's value from an earlier
    /// boot, where interrupts had other numbers.
    fn take(&mut self, found: Found<'a>, before: &'a Value) {
        let Some(to) = found.to else {
            return;
        };
        let is_outdated = |known: &Set<'_>| {
            let is_of_kernel = [known.setting, found.setting]
                .iter()
                .all(|setting| !setting.survives_reboot());
            is_of_kernel && known.id == found.id && known.boot_id != found.boot_id
        };
        self.settings
            .retain(|known| known.setting != found.setting && !is_outdated(known));
        self.settings.push(Set {
            boot_id: found.boot_id,
            id: found.id,
            setting: found.setting,
            before,
            to,
        });
    }
}
