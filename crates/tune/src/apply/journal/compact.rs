//! What a journal says, and no more: one line for each setting that may still have to be restored,
//! or that a plan has set and nothing has set since.
//!
//! Files are kept for ever, as they were found first. What the kernel holds began anew with each
//! boot: of earlier ones only that is kept which the last plan is still asked for.

use std::collections::HashMap;

use super::{Contents, Entry};
use crate::apply::has_number;
use crate::setting::{Machine, Setting, SettingError, Value};

/// What the plans that were applied have come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::apply) struct Outcome<'a> {
    /// Profile of the last plan, and in which run of the machine it was carried out.
    pub(in crate::apply) profile: &'a str,
    pub(in crate::apply) boot_id: &'a str,
    /// It was carried out to its end.
    pub(in crate::apply) is_complete: bool,
    /// What was set, in order, and is not set otherwise by a later plan.
    pub(in crate::apply) settings: Vec<Set<'a>>,
}

/// A setting that a plan has set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::apply) struct Set<'a> {
    pub(in crate::apply) boot_id: &'a str,
    pub(in crate::apply) id: &'a str,
    pub(in crate::apply) setting: &'a Setting,
    /// What was found first: of what the kernel holds, in that run of the machine.
    pub(in crate::apply) before: &'a Value,
    pub(in crate::apply) to: &'a Value,
}

impl Set<'_> {
    /// Whether it went with an earlier run of the machine than this.
    pub(in crate::apply) fn has_ended(&self, boot_id: &str) -> bool {
        self.boot_id != boot_id && !self.setting.is_kept_by_a_boot()
    }

    /// What stands there now, in this run of the machine; `None`: it cannot be read, or had a number that ended with a
    /// boot, and may be something else's since.
    pub(in crate::apply) fn now(&self, machine: &mut dyn Machine, boot_id: &str) -> Option<Value> {
        if self.has_ended(boot_id) && has_number(self.setting) {
            return None;
        }
        match machine.read(self.setting) {
            Err(SettingError::Gone) => Some(Value::Absent),
            now => now.ok(),
        }
    }

    /// Whether this is what was set.
    pub(in crate::apply) fn is_as_set(&self, now: &Value) -> bool {
        self.to.agrees_with(self.setting, now)
    }
}

/// One line of the journal that tells what was found.
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

    /// What a line is about: a file, or a setting of the kernel in one run of it.
    fn place(&self) -> (&'a Setting, Option<&'a str>) {
        let is_file = self.setting.is_kept_by_a_boot();
        (self.setting, (!is_file).then_some(self.boot_id))
    }
}

impl Contents {
    /// What was applied; `None` if nothing was, or it was undone.
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
                    settings
                        .retain(|set| !(set.has_ended(boot_id) && forgotten.contains(set.setting)));
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

    /// The entries that say the same, as few as that takes, to somebody in this run of the machine.
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
    /// Takes in a setting that was set. It comes in place of what was set there, and of what the same
    /// step has set in an earlier run of the machine: interrupts have other numbers then.
    fn take(&mut self, found: Found<'a>, before: &'a Value) {
        let Some(to) = found.to else {
            return;
        };
        let is_outdated = |known: &Set<'_>| {
            let is_of_kernel = [known.setting, found.setting]
                .iter()
                .all(|setting| !setting.is_kept_by_a_boot());
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
