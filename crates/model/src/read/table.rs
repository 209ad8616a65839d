//! One table of the description, whose keys are asked for by name and which in the end names the
//! keys nobody asked for.

use core::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::source::{Source, Sourced};
use crate::word::{closest, list};

use super::report::{Report, Wrong};
use super::values::{shortened, this_is};

/// A table being read.
pub(crate) struct Table<'a> {
    /// How messages call it, `[topic.NAME]`; empty for the root.
    path: String,
    /// The name alone.
    name: &'a str,
    /// Where it is named.
    place: Range<usize>,
    entries: &'a DeTable<'a>,
    known: Vec<&'static str>,
}

impl<'a> Table<'a> {
    /// The table of the whole file.
    pub(super) fn root(entries: &'a DeTable<'a>) -> Self {
        Self {
            path: String::new(),
            name: "",
            place: 0..0,
            entries,
            known: Vec::new(),
        }
    }

    /// The table `[kind.NAME]`.
    pub(super) fn named(
        kind: &str,
        name: &'a Spanned<DeString<'_>>,
        entries: &'a DeTable<'a>,
    ) -> Self {
        let path = format!("[{kind}.{}]", shortened(name.get_ref()));
        Self {
            path,
            name: name.get_ref(),
            place: name.span(),
            entries,
            known: Vec::new(),
        }
    }

    /// A table that is the value of a key of `self`.
    fn inside(&self, key: &'static str, place: Range<usize>, entries: &'a DeTable<'a>) -> Self {
        let path = match self.path.is_empty() {
            true => format!("[{key}]"),
            false => format!("`{key}` in {}", self.path),
        };
        Self {
            path,
            name: key,
            place,
            entries,
            known: Vec::new(),
        }
    }

    pub(super) fn name(&self) -> &'a str {
        self.name
    }

    pub(super) fn place(&self) -> Range<usize> {
        self.place.clone()
    }

    /// How messages call a key of this table.
    pub(super) fn subject(&self, key: &str) -> String {
        if self.path.is_empty() {
            format!("`{key}`")
        } else {
            format!("`{key}` in {}", self.path)
        }
    }

    /// The value of a key, which from now on counts as known.
    pub(super) fn entry(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.known.push(key);
        self.entries.get(key)
    }

    /// The table that is the value of a key: `None` if it is something else, which was reported with
    /// this example; `Some(None)` if the key is not there.
    pub(super) fn table(
        &mut self,
        key: &'static str,
        example: &str,
        report: &mut Report,
    ) -> Option<Option<Self>> {
        let Some(value) = self.entry(key) else {
            return Some(None);
        };
        let DeValue::Table(entries) = value.get_ref() else {
            let what = format!("{} must be a table", self.subject(key));
            let wrong = Wrong::new(what, this_is(value.get_ref()));
            report.error(value.span(), wrong.help(example));
            return None;
        };
        Some(Some(self.inside(key, value.span(), entries)))
    }

    /// Reads a key with a function from its value to what it means.
    pub(crate) fn field<T>(
        &mut self,
        key: &'static str,
        report: &mut Report,
        read: impl FnOnce(&DeValue<'a>) -> Result<T, Wrong>,
    ) -> Field<T> {
        let Some(value) = self.entry(key) else {
            return Field::Absent;
        };
        match read(value.get_ref()) {
            Ok(meaning) => Field::Given(
                Sourced::new(meaning, report.source(&value.span())),
                value.span(),
            ),
            Err(wrong) => {
                report.error(value.span(), wrong.about(&self.subject(key)));
                Field::Wrong
            }
        }
    }

    /// The value of a key that must be given; `why` completes "is missing: ".
    pub(super) fn require<T>(
        &self,
        key: &'static str,
        why: &str,
        field: Field<T>,
        report: &mut Report,
    ) -> Option<Sourced<T>> {
        if let Field::Absent = field {
            let what = format!("{} is missing", self.subject(key));
            report.missing(self.place(), Wrong::new(what, "here").help(why));
        }
        field.given()
    }

    /// Reports the keys nobody asked for.
    pub(super) fn finish(self, report: &mut Report) {
        for (key, _) in self.entries {
            let written: &str = key.get_ref();
            if self.known.contains(&written) {
                continue;
            }
            let what = format!("unknown key {}", self.subject(&shortened(written)));
            let help = match closest(written, self.known.iter().copied()) {
                Some(known) => format!("did you mean `{known}`?"),
                None => format!(
                    "known here: {}",
                    list(&self.known, "`").replace(" or ", " and ")
                ),
            };
            report.error(key.span(), Wrong::new(what, "unknown").help(help));
        }
    }
}

/// What became of a key.
pub(crate) enum Field<T> {
    /// It is not there.
    Absent,
    /// It is there, and the problem has been reported.
    Wrong,
    /// Its value and the value's place.
    Given(Sourced<T>, Range<usize>),
}

impl<T> Field<T> {
    /// The value, if one was given.
    pub(super) fn given(self) -> Option<Sourced<T>> {
        match self {
            Self::Given(value, _) => Some(value),
            Self::Absent | Self::Wrong => None,
        }
    }

    /// Where the value stands, and it.
    pub(super) fn look(&self) -> Option<(&T, Range<usize>)> {
        match self {
            Self::Given(value, place) => Some((&value.value, place.clone())),
            Self::Absent | Self::Wrong => None,
        }
    }

    /// The value, or this one if none was given. `None` only if a wrong one was.
    pub(crate) fn or(self, default: T) -> Option<Sourced<T>> {
        self.or_from(default, Source::Default)
    }

    /// [`Field::or`] with a default that has a reason.
    pub(crate) fn or_from(self, default: T, source: Source) -> Option<Sourced<T>> {
        match self {
            Self::Given(value, _) => Some(value),
            Self::Absent => Some(Sourced::new(default, source)),
            Self::Wrong => None,
        }
    }

    /// A value that may be left out. `None` only if a wrong one was given.
    pub(super) fn optional(self) -> Option<Sourced<Option<T>>> {
        match self {
            Self::Given(value, _) => Some(value.map(Some)),
            Self::Absent => Some(Sourced::default_value(None)),
            Self::Wrong => None,
        }
    }
}
