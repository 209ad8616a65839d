//! Reader of `[participant.NAME]` tables.

use std::collections::BTreeSet;

use toml::de::DeValue;

use crate::domain::Domain;
use crate::limits::MAX_PARTICIPANT_NAME_BYTES;
use crate::participant::{Announces, Participant};
use crate::source::Sourced;
use crate::topic::Topic;
use crate::word::closest;

use super::ports;
use super::report::{Report, Wrong};
use super::table::{Field, Table};
use super::values::{self, shortened};

/// Other parts of the description to which participants refer; `topics` has only the valid topics.
pub(super) struct Others<'a> {
    pub(super) domain: Option<Domain>,
    pub(super) hosts: &'a [&'a str],
    pub(super) topic_names: &'a [&'a str],
    pub(super) topics: &'a [Option<Topic>],
}

/// Reads all participants; `None` if any value is missing or wrong.
pub(super) fn read_all(
    tables: Vec<Table<'_>>,
    others: &Others<'_>,
    report: &mut Report,
) -> Option<Vec<Participant>> {
    let mut read = Vec::with_capacity(tables.len());
    let mut is_right = true;
    for table in tables {
        let place = table.place();
        match participant(table, others, report) {
            Some(participant) => {
                is_right &= ports::are_its_own(&participant, &read, others.domain, place, report);
                read.push(participant);
            }
            None => is_right = false,
        }
    }
    is_right.then_some(read)
}

fn participant(
    mut table: Table<'_>,
    others: &Others<'_>,
    report: &mut Report,
) -> Option<Participant> {
    let name = name(&table, report);
    let host = table.field("host", report, |value| host(value, others.hosts));
    let why_host = "say which host it runs on: host = \"NAME\"";
    let host = table.require("host", why_host, host, report);
    let address = table.field("address", report, values::address);
    let why_address = "say where it is reached: address = \"10.0.0.1\"";
    let address = table.require("address", why_address, address, report);
    let port = table.field("port", report, values::first_port);
    let why_port = "say at which UDP port its level 0 is reached, the others follow: port = 7000";
    let port = table.require("port", why_port, port, report);
    let announces = table
        .field("announces", report, values::word)
        .or(Announces::default());
    let writes = topics(&mut table, "writes", others, report);
    let reads = topics(&mut table, "reads", others, report);
    let mut is_right = true;
    if let (Some(writes), Some(reads)) = (&writes, &reads) {
        if writes.value.is_empty() && reads.value.is_empty() {
            let what = format!(
                "[participant.{}] writes and reads nothing",
                shortened(table.name())
            );
            let help = "name its topics: writes = [\"TOPIC\"], reads = [\"TOPIC\"]";
            report.missing(table.place(), Wrong::new(what, "here").help(help));
            is_right = false;
        }
        if let Some(host) = &host {
            is_right &= is_on_host(&table, "from", (&writes.value, &host.value), others, report);
            is_right &= is_on_host(&table, "to", (&reads.value, &host.value), others, report);
        }
    }
    table.finish(report);
    Some(Participant {
        name: name?,
        host: host?,
        address: address?,
        port: port?,
        announces: announces?,
        writes: writes?,
        reads: reads?,
    })
    .filter(|_| is_right)
}

fn name(table: &Table<'_>, report: &mut Report) -> Option<Sourced<String>> {
    let name = table.name();
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > MAX_PARTICIPANT_NAME_BYTES || !name.chars().all(letters) {
        let what = format!(
            "\"{}\" cannot be the name of a participant",
            shortened(name)
        );
        let help = format!(
            "use 1 to {MAX_PARTICIPANT_NAME_BYTES} letters, digits, `-`, `_` and `.`: its GUID is made of it"
        );
        report.error(table.place(), Wrong::new(what, "this name").help(help));
        return None;
    }
    Some(Sourced::new(name.to_owned(), report.source(&table.place())))
}

fn host(value: &DeValue<'_>, hosts: &[&str]) -> Result<String, Wrong> {
    let DeValue::String(name) = value else {
        return Err(Wrong::new(
            "must be the name of a host",
            values::this_is(value),
        ));
    };
    let name: &str = name;
    match hosts.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(unknown("host", name, hosts)),
    }
}

fn unknown(kind: &str, name: &str, known: &[&str]) -> Wrong {
    let name = shortened(name);
    let help = match closest(&name, known.iter().copied()) {
        Some(known) => format!("did you mean `{}`?", shortened(known)),
        None => {
            format!("describe the {kind} in a table [{kind}.{name}], or name one that is described")
        }
    };
    Wrong::new(
        format!("names an unknown {kind}"),
        format!("no [{kind}.{name}]"),
    )
    .help(help)
}

/// Reads the topics of `writes` or `reads`; empty if the key is absent.
fn topics(
    table: &mut Table<'_>,
    key: &'static str,
    others: &Others<'_>,
    report: &mut Report,
) -> Option<Sourced<Vec<String>>> {
    let field = table.field(key, report, |value| topic_list(value, others.topic_names));
    match field {
        Field::Absent => Some(Sourced::default_value(Vec::new())),
        other => other.given(),
    }
}

fn topic_list(value: &DeValue<'_>, known: &[&str]) -> Result<Vec<String>, Wrong> {
    let expected = "must be a list of topics";
    let DeValue::Array(items) = value else {
        return Err(Wrong::new(expected, values::this_is(value)));
    };
    let mut seen = BTreeSet::new();
    let mut names = Vec::with_capacity(items.len());
    for item in items {
        let DeValue::String(name) = item.get_ref() else {
            return Err(Wrong::new(expected, values::this_is(item.get_ref())));
        };
        let name: &str = name;
        if !known.contains(&name) {
            return Err(unknown("topic", name, known));
        }
        if !seen.insert(name) {
            let label = format!("`{}` again", shortened(name));
            return Err(Wrong::new("names a topic twice", label).help("remove it"));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

/// Checks that each topic is sent or received by the participant's host.
fn is_on_host(
    table: &Table<'_>,
    key: &'static str,
    (names, host): (&[String], &str),
    others: &Others<'_>,
    report: &mut Report,
) -> bool {
    let mut is_right = true;
    for topic in others.topics.iter().flatten() {
        let hosts = match key {
            "from" => &topic.from.value,
            _ => &topic.to.value,
        };
        let is_meant = names.contains(&topic.name.value);
        if is_meant && !hosts.iter().any(|name| name == host) {
            let verb = if key == "from" { "writes" } else { "reads" };
            let topic = shortened(&topic.name.value);
            let what = format!(
                "participant `{}` {verb} {topic} on {host}, and `{key}` of [topic.{topic}] does not name that host",
                shortened(table.name())
            );
            let help = format!("add \"{host}\" to `{key}` of the topic, or remove the topic here");
            report.error(table.place(), Wrong::new(what, "here").help(help));
            is_right = false;
        }
    }
    is_right
}
