//! Parser of descriptions: text to [`System`].
//!
//! The bytes become UTF-8 text, then a tree of TOML values with their spans, then the typed system. The TOML parser and
//! this module continue after an error, so that all problems of a file are reported together. A system is returned only
//! if there is no error. For any input, this module never panics and has no loop longer than the text.

mod datapath;
mod host;
mod participant;
mod ports;
mod protect;
mod report;
mod syntax;
mod table;
mod topic;
mod tuning;
mod values;

use std::sync::Arc;

use isolane_datapath::Kinds;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::domain::Domain;

use crate::limits::{
    ETHERNET_SAMPLE_BYTES, MAX_FILE_BYTES, MAX_HOSTS, MAX_PARTICIPANTS, MAX_TOPICS,
};
use crate::problem::{Problem, Text};
use crate::system::System;
use crate::topic::Topic;

pub(crate) use self::report::Report;
use self::report::Wrong;
pub(crate) use self::table::Table;
pub(crate) use self::tuning::SwitchValue;
pub(crate) use self::values::word;
use crate::tuning::Tuning;

/// Reads a description. Problems are in the order of the file.
pub(crate) fn read(bytes: &[u8], file_name: &str, kinds: Kinds) -> Result<System, Vec<Problem>> {
    let read_system = |tree: &DeTable<'_>, report: &mut Report| read_system(tree, kinds, report);
    let (mut system, warnings) = read_whole(bytes, file_name, read_system)?;
    system.warnings = warnings;
    Ok(system)
}

pub(crate) fn read_tuning(bytes: &[u8], file_name: &str) -> Result<Tuning, Vec<Problem>> {
    let (tuning, _) = read_whole(bytes, file_name, |tree, report| {
        tuning::read_settings(Table::root(tree), report)
    })?;
    Ok(tuning)
}

/// Parses a file, interprets its tree with a function, and returns the result with the warnings.
fn read_whole<T>(
    bytes: &[u8],
    file_name: &str,
    meaning: impl FnOnce(&DeTable<'_>, &mut Report) -> Option<T>,
) -> Result<(T, Vec<Problem>), Vec<Problem>> {
    if bytes.len() > MAX_FILE_BYTES {
        let what = format!("{file_name} is longer than {MAX_FILE_BYTES} bytes");
        let help = Some(String::from("is it a system description?"));
        return Err(vec![Problem::of_file(what, help)]);
    }
    let content = String::from_utf8_lossy(bytes);
    let text = Arc::new(Text::new(file_name, &content));
    let mut report = Report::new(text);
    if let Err(error) = core::str::from_utf8(bytes) {
        // The line is not repeated, because it can contain arbitrary bytes, including terminal control sequences.
        let first = error.valid_up_to();
        let line = content[..first].matches('\n').count() + 1;
        let what = format!("{file_name} is not UTF-8 text: byte {first}, in line {line}");
        let help = "save it as UTF-8; or is it no system description?";
        return Err(vec![Problem::of_file(what, Some(String::from(help)))]);
    }
    let (tree, errors) = DeTable::parse_recoverable(&content);
    syntax::report(&content, &errors, &mut report);
    match meaning(tree.get_ref(), &mut report) {
        Some(meant) if !report.has_errors() => Ok((meant, report.into_problems())),
        _ => Err(report.into_problems()),
    }
}

/// Reads the root table; `None` if a required value is missing or any value is wrong.
fn read_system(tree: &DeTable<'_>, kinds: Kinds, report: &mut Report) -> Option<System> {
    let mut root = Table::root(tree);
    let domain = root
        .field("domain", report, values::domain)
        .or(Domain::default());
    let (hosts, host_names) = read_hosts(&mut root, kinds, report);
    let topic_tables = named_tables(&mut root, "topic", MAX_TOPICS, report);
    let topic_names: Vec<&str> = topic_tables.iter().map(Table::name).collect();
    let topics: Vec<_> = topic_tables
        .into_iter()
        .map(|table| topic::read(table, &host_names, report))
        .collect();
    let participants = named_tables(&mut root, "participant", MAX_PARTICIPANTS, report);
    let others = participant::Others {
        domain: domain.as_ref().map(|domain| domain.value),
        hosts: &host_names,
        topic_names: &topic_names,
        topics: &topics,
    };
    let participants = participant::read_all(participants, &others, report);
    let tuning = tuning::read(&mut root, report);
    root.finish(report);
    let (mut hosts, topics) = (hosts?, topics.into_iter().collect::<Option<Vec<_>>>()?);
    for host in &mut hosts {
        host.large_levels = levels_of_large_samples(&host.name.value, &topics);
        host.choose_datapath(host.datapath.clone());
    }
    Some(System {
        domain: domain?,
        hosts,
        topics,
        participants: participants?,
        tuning: tuning?,
        warnings: Vec::new(),
    })
}

/// Returns the levels (bit *l* is level *l*) below a host's highest, whose topics all have `max_bytes` above a datagram and
/// no budget.
fn levels_of_large_samples(host: &str, topics: &[Topic]) -> u8 {
    let is_here = |topic: &&Topic| {
        let mut hosts = topic.from.value.iter().chain(&topic.to.value);
        hosts.any(|name| name == host)
    };
    let here = || topics.iter().filter(is_here);
    let highest = here().map(|topic| topic.level.value).max();
    let (mut large, mut others) = (0, 0);
    for topic in here() {
        let is_long = topic.max_bytes.value.get() > ETHERNET_SAMPLE_BYTES;
        let is_large = is_long && topic.budget.is_none() && Some(topic.level.value) < highest;
        let levels = if is_large { &mut large } else { &mut others };
        *levels |= 1 << topic.level.value.get();
    }
    large & !others
}

/// Reads the hosts. Returns their names separately, because topics may name a host that has a wrong setting without a
/// further error.
fn read_hosts<'a>(
    root: &mut Table<'a>,
    kinds: Kinds,
    report: &mut Report,
) -> (Option<Vec<crate::host::Host>>, Vec<&'a str>) {
    let tables = named_tables(root, "host", MAX_HOSTS, report);
    let names = tables.iter().map(Table::name).collect();
    let hosts: Vec<_> = tables
        .into_iter()
        .map(|table| host::read(table, kinds, report))
        .collect();
    (hosts.into_iter().collect(), names)
}

/// Returns the tables `[kind.NAME]` in the order of the file, at most `limit` of them.
fn named_tables<'a>(
    root: &mut Table<'a>,
    kind: &'static str,
    limit: usize,
    report: &mut Report,
) -> Vec<Table<'a>> {
    let Some(value) = root.entry(kind) else {
        return Vec::new();
    };
    let help = format!("a {kind} has a name: [{kind}.NAME]");
    let DeValue::Table(members) = value.get_ref() else {
        let wrong = Wrong::new(
            format!("`{kind}` must be a table"),
            values::this_is(value.get_ref()),
        );
        report.error(value.span(), wrong.help(help));
        return Vec::new();
    };
    let mut members: Vec<(&Spanned<_>, &Spanned<DeValue<'a>>)> = members.iter().collect();
    members.sort_by_key(|(key, _)| key.span().start);
    if let Some((key, _)) = members.get(limit) {
        let wrong = Wrong::new(format!("more than {limit} {kind}s"), "one too many");
        report.error(key.span(), wrong);
        members.truncate(limit);
    }
    let mut tables = Vec::with_capacity(members.len());
    for (key, value) in members {
        if let DeValue::Table(entries) = value.get_ref() {
            tables.push(Table::named(kind, key, entries));
        } else {
            let what = format!(
                "`{}` in [{kind}] must be a table",
                values::shortened(key.get_ref())
            );
            let wrong = Wrong::new(what, values::this_is(value.get_ref()));
            report.error(key.span(), wrong.help(&help));
        }
    }
    tables
}
