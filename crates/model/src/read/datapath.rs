//! Reader of `datapath` in `[host.NAME]`, and of the options in `[host.NAME.DATAPATH]`.

use std::ops::Range;

use isolane_datapath::Kinds;
use isolane_datapath::kind::{DatapathKind, OptionKind, OptionSpec, OptionValue};
use isolane_wire::level::Level;
use toml::de::DeValue;

use crate::datapath::{DatapathChoice, DatapathSettings, Waiting};

use super::report::{Report, Wrong};
use super::table::{Field, Table};
use super::values;

/// Keys of earlier versions, each with advice about its replacement.
const MOVED: [(&str, &str); 1] = [(
    "waiting",
    "set `waiting` in [host.NAME]; for busy polling, also `busy_poll = true` here",
)];

/// Returns a function that reads a choice among `kinds`.
pub(super) fn choice(kinds: Kinds) -> impl FnOnce(&DeValue<'_>) -> Result<DatapathChoice, Wrong> {
    move |value| {
        let names = kinds.iter().map(|kind| kind.name());
        let names: Vec<&'static str> = [DatapathChoice::AUTO].into_iter().chain(names).collect();
        Ok(match values::one_of(value, &names)? {
            DatapathChoice::AUTO => DatapathChoice::Auto,
            name => DatapathChoice::Named(name),
        })
    }
}

/// Reads the options of all kinds; `None` if any value is wrong.
pub(super) fn read(
    host: &mut Table<'_>,
    kinds: Kinds,
    waiting: Waiting,
    report: &mut Report,
) -> Option<Vec<DatapathSettings>> {
    let read = |kind: &&'static dyn DatapathKind| read_kind(host, *kind, waiting, report);
    let read: Vec<_> = kinds.iter().map(read).collect();
    read.into_iter().collect()
}

fn read_kind(
    host: &mut Table<'_>,
    kind: &'static dyn DatapathKind,
    waiting: Waiting,
    report: &mut Report,
) -> Option<DatapathSettings> {
    let mut settings = DatapathSettings::new(kind);
    let Some(first) = kind.options().first() else {
        return Some(settings);
    };
    let example = format!("[host.NAME.{}], then {} = ...", kind.name(), first.key);
    let Some(mut table) = host.table(kind.name(), &example, report)? else {
        return Some(settings);
    };
    let mut places: Vec<(&str, Range<usize>)> = Vec::new();
    let mut is_right = true;
    for spec in kind.options() {
        match table.field(spec.key, report, |value| option(spec, value)) {
            Field::Given(value, place) => {
                settings.set(spec.key, value);
                places.push((spec.key, place));
            }
            Field::Wrong => is_right = false,
            Field::Absent => {}
        }
    }
    let is_of_kind = |key: &str| kind.options().iter().any(|spec| spec.key == key);
    for (key, help) in MOVED.into_iter().filter(|(key, _)| !is_of_kind(key)) {
        if table.get(key).is_some()
            && let Some(value) = table.entry(key)
        {
            let what = format!("{} has moved", table.subject(key));
            report.error(value.span(), Wrong::new(what, "old key").help(help));
            is_right = false;
        }
    }
    let place = table.place();
    table.finish(report);
    if !is_right {
        return None;
    }
    let place_of = |wanted: &str| {
        let of_key = places.iter().find(|(key, _)| *key == wanted);
        of_key.map_or(place.clone(), |(_, place)| place.clone())
    };
    if let Err(error) = kind.configure(&settings.options()) {
        let wrong = Wrong::new(error.what, error.key).help(error.help);
        report.error(place_of(error.key), wrong);
        return None;
    }
    if let Some(key) = settings.needs_spin().filter(|_| waiting == Waiting::Sleep) {
        let what = format!("`{key}` has no effect while the loop sleeps");
        let wrong = Wrong::new(what, "waiting = \"sleep\"");
        report.error(
            place_of(key),
            wrong.help("set waiting = \"spin\" in [host.NAME]"),
        );
        return None;
    }
    Some(settings)
}

/// Reads the value of an option.
fn option(spec: &OptionSpec, value: &DeValue<'_>) -> Result<OptionValue, Wrong> {
    let read = match spec.kind {
        OptionKind::Bool => values::truth(value).map(OptionValue::Bool),
        OptionKind::Integer { min, max } => {
            values::whole(value, min, max).map(OptionValue::Integer)
        }
        OptionKind::PowerOfTwo { min, max } => {
            values::power_of_two(value, min, max).map(OptionValue::Integer)
        }
        OptionKind::Word(words) => values::one_of(value, words).map(OptionValue::Word),
        OptionKind::Levels => values::levels(value).map(|levels| {
            let bits = levels.iter().map(|level| 1_u8 << level.get());
            OptionValue::Levels(bits.fold(0, |all, level| all | level))
        }),
        OptionKind::IntegerPerLevel { min, max } => {
            per_level(spec, value, min, max).map(OptionValue::PerLevel)
        }
    };
    read.map_err(|wrong| wrong.or_help(spec.help))
}

fn per_level(
    spec: &OptionSpec,
    value: &DeValue<'_>,
    min: u32,
    max: u32,
) -> Result<[Option<u32>; 8], Wrong> {
    let expected = format!("must be {}", spec.kind);
    let DeValue::Table(entries) = value else {
        return Err(Wrong::new(expected, values::this_is(value)));
    };
    let mut numbers = [None; 8];
    for (key, value) in entries {
        // A level has one digit: a second spelling such as `07` would overwrite the number of level 7.
        let digit = Some(key.get_ref()).filter(|key| key.len() == 1);
        let level = digit.and_then(|key| key.parse().ok()).and_then(Level::new);
        let Some(level) = level else {
            let label = format!("`{}` is no level", values::shortened(key.get_ref()));
            return Err(Wrong::new(expected, label));
        };
        numbers[usize::from(level.get())] = Some(values::whole(value.get_ref(), min, max)?);
    }
    Ok(numbers)
}
