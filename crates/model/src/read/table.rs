//! Reader of a TOML table that reports unknown keys at the end.

use core::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::source::{Source, Sourced};
use crate::word::{closest, list};

use super::report::{Report, Wrong};
use super::values::{shortened, this_is};

pub(crate) struct Table<'a> {
    /// Name in messages, `[topic.NAME]`; empty for the root.
    path: String,
    /// Last part of the name.
    name: &'a str,
    /// Span of the name.
    place: Range<usize>,
    entries: &'a DeTable<'a>,
    known: Vec<&'static str>,
}

impl<'a> Table<'a> {
    /// Creates the root table of the file.
    pub(super) fn root(entries: &'a DeTable<'a>) -> Self {
        Self {
            path: String::new(),
            name: "",
            place: 0..0,
            entries,
            known: Vec::new(),
        }
    }

    /// Creates the table `[kind.NAME]`.
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

    /// Creates the table that is the value of a key of `self`.
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

    /// Name of a key in messages.
    pub(super) fn subject(&self, key: &str) -> String {
        if self.path.is_empty() {
            format!("`{key}`")
        } else {
            format!("`{key}` in {}", self.path)
        }
    }

    /// Returns the value of a key and marks the key as known.
    pub(super) fn entry(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.known.push(key);
        self.entries.get(key)
    }

    /// Returns the value of a key without marking it as known.
    pub(super) fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.entries.get(key)
    }

    /// Returns the table that is the value of a key; `Some(None)` if the key is absent. If the value is not a table,
    /// reports this with `example` and returns `None`.
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

    /// Reads a key, and converts its value.
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

    /// Returns a required value. If the key is absent, reports it as missing, with the suggestion `why`.
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

    /// Reports the unknown keys.
    pub(super) fn finish(self, report: &mut Report) {
        self.finish_renamed(&[], report);
    }

    /// Reports the unknown keys; for a renamed key, with its present name.
    pub(super) fn finish_renamed(self, renamed: &[RenamedKey], report: &mut Report) {
        for (key, _) in self.entries {
            let written: &str = key.get_ref();
            if self.known.contains(&written) {
                continue;
            }
            let what = format!("unknown key {}", self.subject(&shortened(written)));
            let renamed = renamed.iter().find(|it| it.former == written);
            let help = match (renamed, closest(written, self.known.iter().copied())) {
                (Some(renamed), _) => renamed.help(),
                (None, Some(known)) => format!("did you mean `{known}`?"),
                (None, None) => format!(
                    "known here: {}",
                    list(&self.known, "`").replace(" or ", " and ")
                ),
            };
            report.error(key.span(), Wrong::new(what, "unknown").help(help));
        }
    }
}

/// Former name of a key.
pub(super) struct RenamedKey {
    pub(super) former: &'static str,
    pub(super) present: &'static str,
    /// True if the present key has the opposite value.
    is_inverted: bool,
}

impl RenamedKey {
    /// Key whose value has kept its meaning.
    pub(super) const fn same(former: &'static str, present: &'static str) -> Self {
        Self {
            former,
            present,
            is_inverted: false,
        }
    }

    /// Switch whose present value is the opposite of the former one.
    pub(super) const fn inverted(former: &'static str, present: &'static str) -> Self {
        Self {
            former,
            present,
            is_inverted: true,
        }
    }

    /// Suggestion for a description with the former key.
    fn help(&self) -> String {
        let Self {
            former, present, ..
        } = self;
        match self.is_inverted {
            true => format!(
                "it is `{present}` now, with the opposite value: `{former} = true` is `{present} = false`"
            ),
            false => format!("it is `{present}` now"),
        }
    }
}

/// Result of reading a key.
pub(crate) enum Field<T> {
    /// The key is absent.
    Absent,
    /// The value is wrong and was reported.
    Wrong,
    /// Value and its span.
    Given(Sourced<T>, Range<usize>),
}

impl<T> Field<T> {
    /// Returns the value, if given.
    pub(super) fn given(self) -> Option<Sourced<T>> {
        match self {
            Self::Given(value, _) => Some(value),
            Self::Absent | Self::Wrong => None,
        }
    }

    /// Returns the value and its span without consuming the field.
    pub(super) fn look(&self) -> Option<(&T, Range<usize>)> {
        match self {
            Self::Given(value, place) => Some((&value.value, place.clone())),
            Self::Absent | Self::Wrong => None,
        }
    }

    /// Returns the value, or `default` if the key is absent. `None` only for a wrong value.
    pub(crate) fn or(self, default: T) -> Option<Sourced<T>> {
        self.or_from(default, Source::Default)
    }

    /// Returns the value like [`Field::or`], with `source` as the source of the default.
    pub(crate) fn or_from(self, default: T, source: Source) -> Option<Sourced<T>> {
        match self {
            Self::Given(value, _) => Some(value),
            Self::Absent => Some(Sourced::new(default, source)),
            Self::Wrong => None,
        }
    }

    /// Returns an optional value. `None` only for a wrong value.
    pub(super) fn optional(self) -> Option<Sourced<Option<T>>> {
        match self {
            Self::Given(value, _) => Some(value.map(Some)),
            Self::Absent => Some(Sourced::default_value(None)),
            Self::Wrong => None,
        }
    }
}
