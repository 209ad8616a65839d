//! Conversions of TOML values to typed settings. Their error messages follow the words "`key` in [table]".

use core::num::NonZeroU32;
use core::time::Duration;
use std::net::Ipv4Addr;

use isolane_wire::level::Level;
use toml::de::DeValue;

use crate::domain::Domain;
use crate::duration::{format_duration, parse_duration};
use crate::host::is_interface_name;
use crate::limits::{
    MAX_BUDGET_FRAMES, MAX_BUDGET_PERIOD, MAX_CORE, MAX_DOMAIN, MAX_FIRST_PORT,
    MAX_KNOWN_PARTICIPANTS, MAX_QUOTED_BYTES, MAX_SAMPLE_BYTES, MAX_SAMPLE_MEMORY,
    MAX_SAMPLE_PORTS, MAX_SAMPLES, MAX_THREAD_PRIORITY, MIN_BUDGET_PERIOD, MIN_FIRST_PORT,
};
use crate::topic::{History, HistoryDepth, SampleBytes, check_topic_name};
use crate::word::{Word, closest, list};

use super::report::Wrong;

/// Describes the type of a value, for the label at its location.
pub(super) fn this_is(value: &DeValue<'_>) -> String {
    let kind = match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    format!("this is {kind}")
}

/// Shortens and escapes a piece of the file for messages.
pub(super) fn shortened(text: &str) -> String {
    let kept = text.floor_char_boundary(MAX_QUOTED_BYTES);
    let dots = if kept < text.len() { "..." } else { "" };
    format!("{}{dots}", text[..kept].escape_debug())
}

pub(super) fn domain(value: &DeValue<'_>) -> Result<Domain, Wrong> {
    let number = whole(value, 0, MAX_DOMAIN)?;
    Ok(Domain::new(number).expect("whole() keeps to the bounds"))
}

pub(super) fn level(value: &DeValue<'_>) -> Result<Level, Wrong> {
    let number = whole(value, 0, 7).map_err(|wrong| wrong.help("7 is the most critical"))?;
    let level = u8::try_from(number).ok().and_then(Level::new);
    Ok(level.expect("whole() keeps to the bounds"))
}

pub(super) fn core(value: &DeValue<'_>) -> Result<u16, Wrong> {
    let number = whole(value, 0, u32::from(MAX_CORE))?;
    Ok(u16::try_from(number).expect("whole() keeps to the bounds"))
}

/// Reads a SCHED_FIFO priority, or `None` for the ordinary class.
pub(super) fn priority(value: &DeValue<'_>) -> Result<Option<u8>, Wrong> {
    match value {
        DeValue::String(text) if text == "ordinary" => Ok(None),
        DeValue::Integer(_) => {
            let number = whole(value, 1, u32::from(MAX_THREAD_PRIORITY))?;
            Ok(Some(
                u8::try_from(number).expect("whole() keeps to the bounds"),
            ))
        }
        other => Err(Wrong::new(
            format!("must be a whole number from 1 to {MAX_THREAD_PRIORITY}, or \"ordinary\""),
            this_is(other),
        )),
    }
}

pub(super) fn known_participants(value: &DeValue<'_>) -> Result<NonZeroU32, Wrong> {
    positive(value, MAX_KNOWN_PARTICIPANTS)
}

pub(super) fn sample_memory(value: &DeValue<'_>) -> Result<NonZeroU32, Wrong> {
    positive(value, MAX_SAMPLE_MEMORY)
}

pub(super) fn sample_bytes(value: &DeValue<'_>) -> Result<SampleBytes, Wrong> {
    let number = whole(value, 1, MAX_SAMPLE_BYTES).map_err(|wrong| {
        wrong.help("larger samples are not put together: send them in parts, or as several samples")
    })?;
    Ok(SampleBytes::new(number).expect("whole() keeps to the bounds"))
}

pub(super) fn samples(value: &DeValue<'_>) -> Result<NonZeroU32, Wrong> {
    positive(value, MAX_SAMPLES)
}

pub(super) fn budget_capacity(value: &DeValue<'_>) -> Result<NonZeroU32, Wrong> {
    positive(value, MAX_BUDGET_FRAMES)
}

pub(super) fn budget_period(value: &DeValue<'_>) -> Result<Duration, Wrong> {
    let period = duration(value)?;
    if (MIN_BUDGET_PERIOD..=MAX_BUDGET_PERIOD).contains(&period) {
        return Ok(period);
    }
    let what = format!(
        "must be a period from {} to {}",
        format_duration(MIN_BUDGET_PERIOD),
        format_duration(MAX_BUDGET_PERIOD)
    );
    let label = format!("{} cannot be kept", format_duration(period));
    Err(Wrong::new(what, label).help("choose capacity and period both larger, or both smaller"))
}

pub(super) fn reserved(value: &DeValue<'_>) -> Result<u32, Wrong> {
    whole(value, 0, MAX_BUDGET_FRAMES)
}

/// Reads an IPv4 address of a host.
pub(super) fn address(value: &DeValue<'_>) -> Result<Ipv4Addr, Wrong> {
    let expected = "must be an IPv4 address of a host, like \"10.0.0.1\"";
    let DeValue::String(text) = value else {
        return Err(Wrong::new(expected, this_is(value)));
    };
    let is_of_host = |address: &Ipv4Addr| {
        !address.is_unspecified() && !address.is_multicast() && !address.is_broadcast()
    };
    text.parse().ok().filter(is_of_host).ok_or_else(|| {
        let label = format!("\"{}\" is none", shortened(text));
        Wrong::new(expected, label).help("`ip address` lists those of this machine")
    })
}

pub(super) fn first_port(value: &DeValue<'_>) -> Result<u16, Wrong> {
    let number = whole(value, MIN_FIRST_PORT, MAX_FIRST_PORT)
        .map_err(|wrong| wrong.help("eight ports follow from it, one a level"))?;
    Ok(u16::try_from(number).expect("whole() keeps to the bounds"))
}

pub(super) fn sample_ports(value: &DeValue<'_>) -> Result<u16, Wrong> {
    let number = whole(value, MIN_FIRST_PORT, MAX_SAMPLE_PORTS)
        .map_err(|wrong| wrong.help("256 ports follow from it"))?;
    Ok(u16::try_from(number).expect("whole() keeps to the bounds"))
}

/// Reads a list of distinct levels in ascending order.
pub(super) fn levels(value: &DeValue<'_>) -> Result<Vec<Level>, Wrong> {
    let expected = "must be a list of levels, like [5, 6, 7]";
    let DeValue::Array(items) = value else {
        return Err(Wrong::new(expected, this_is(value)));
    };
    let mut levels = Vec::new();
    for item in items {
        levels.push(level(item.get_ref())?);
    }
    let given = levels.len();
    levels.sort_unstable();
    levels.dedup();
    match levels.len() {
        0 => Err(Wrong::new(expected, "it is empty").help("for none at all: datapath = \"udp\"")),
        once if once < given => Err(Wrong::new(expected, "one is named twice")),
        _ => Ok(levels),
    }
}

pub(super) fn power_of_two(value: &DeValue<'_>, least: u32, most: u32) -> Result<u32, Wrong> {
    let number = whole(value, least, most)?;
    if number.is_power_of_two() {
        return Ok(number);
    }
    let next = number.next_power_of_two();
    let wrong = Wrong::new("must be a power of two", format!("{number} is none"));
    Err(wrong.help(format!("{next} and {} are", next / 2)))
}

pub(super) fn history(value: &DeValue<'_>) -> Result<History, Wrong> {
    let expected = format!("must be a number of samples from 1 to {MAX_SAMPLES}, or \"all\"");
    match value {
        DeValue::Integer(_) => {
            let number = whole(value, 1, MAX_SAMPLES)?;
            let depth = HistoryDepth::new(number).expect("whole() keeps to the bounds");
            Ok(History::KeepLast(depth))
        }
        DeValue::String(text) if text == "all" => Ok(History::KeepAll),
        DeValue::String(text) => {
            let label = format!("\"{}\" is neither", shortened(text));
            let wrong = Wrong::new(expected, label);
            Err(match text.parse::<History>() {
                Ok(history) => wrong.help(format!("write {history} without quotes")),
                Err(_) => wrong.help("`history = 1` keeps the last sample"),
            })
        }
        other => Err(Wrong::new(expected, this_is(other))),
    }
}

pub(super) fn duration(value: &DeValue<'_>) -> Result<Duration, Wrong> {
    let expected = "must be a duration in quotes, like \"500us\", \"10ms\" or \"1s\"";
    match value {
        DeValue::String(text) => parse_duration(text).map_err(|error| {
            Wrong::new(expected, shortened(&error.to_string())).help(error.help())
        }),
        DeValue::Integer(number) => {
            let number = shortened(number.as_str());
            let label = format!("{number} has no unit");
            Err(Wrong::new(expected, label).help(format!("write \"{number}us\" or \"{number}ms\"")))
        }
        other => Err(Wrong::new(expected, this_is(other))),
    }
}

pub(super) fn truth(value: &DeValue<'_>) -> Result<bool, Wrong> {
    value
        .as_bool()
        .ok_or_else(|| Wrong::new("must be true or false, without quotes", this_is(value)))
}

/// Reads one of the words of `W`.
pub(crate) fn word<W: Word>(value: &DeValue<'_>) -> Result<W, Wrong> {
    let words: Vec<&str> = W::WORDS.iter().map(|(word, _)| *word).collect();
    let word = one_of(value, &words)?;
    Ok(W::from_word(word).expect("one_of() returns a known word"))
}

/// Reads one of the given words.
pub(super) fn one_of(value: &DeValue<'_>, words: &[&'static str]) -> Result<&'static str, Wrong> {
    let expected = format!("must be {}", list(words, "\""));
    let DeValue::String(text) = value else {
        return Err(Wrong::new(expected, this_is(value)));
    };
    let known = words.iter().find(|word| **word == text.as_ref());
    known.copied().ok_or_else(|| {
        let wrong = Wrong::new(expected, format!("\"{}\" is not known", shortened(text)));
        match closest(text, words.iter().copied()) {
            Some(known) => wrong.help(format!("did you mean \"{known}\"?")),
            None => wrong,
        }
    })
}

pub(super) fn interface(value: &DeValue<'_>) -> Result<String, Wrong> {
    let expected = "must be the name of a network interface, like \"eth0\"";
    match value {
        DeValue::String(name) if is_interface_name(name) => Ok(name.to_string()),
        DeValue::String(_) => Err(Wrong::new(expected, "no interface can be called so")
            .help("`ip link` lists the interfaces")),
        other => Err(Wrong::new(expected, this_is(other))),
    }
}

pub(super) fn type_name(value: &DeValue<'_>) -> Result<String, Wrong> {
    let expected = "must be the name of a type, like \"vehicle::BrakePressure\"";
    match value {
        DeValue::String(name) => match check_topic_name(name) {
            Ok(()) => Ok(name.to_string()),
            Err(reason) => Err(Wrong::new(expected, reason.to_string())),
        },
        other => Err(Wrong::new(expected, this_is(other))),
    }
}

fn positive(value: &DeValue<'_>, most: u32) -> Result<NonZeroU32, Wrong> {
    let number = whole(value, 1, most)?;
    Ok(NonZeroU32::new(number).expect("whole() keeps to the bounds"))
}

pub(super) fn whole(value: &DeValue<'_>, least: u32, most: u32) -> Result<u32, Wrong> {
    let expected = format!("must be a whole number from {least} to {most}");
    let DeValue::Integer(number) = value else {
        return Err(Wrong::new(expected, this_is(value)));
    };
    u32::from_str_radix(number.as_str(), number.radix())
        .ok()
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| {
            let label = format!("{} is out of range", shortened(&number.to_string()));
            Wrong::new(expected, label)
        })
}
