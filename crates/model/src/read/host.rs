//! Reader of `[host.NAME]` tables.

use std::num::NonZeroU32;

use isolane_datapath::Kinds;

use crate::datapath::{DatapathChoice, Waiting};
use crate::host::{Host, Scheduling};
use crate::limits::{DEFAULT_SAMPLE_MEMORY, DEFAULT_THREAD_PRIORITY, MAX_HOST_NAME_BYTES};
use crate::source::{Source, Sourced};

use super::report::{Report, Wrong};
use super::table::Table;
use super::{datapath, protect, values};

/// Reads a host; `None` if a required value is missing or any value is wrong.
pub(super) fn read(mut table: Table<'_>, kinds: Kinds, report: &mut Report) -> Option<Host> {
    let name = name(&table, report);
    let interface = table.field("interface", report, values::interface);
    let interface = table.require(
        "interface",
        "name the interface: interface = \"eth0\"",
        interface,
        report,
    );
    let core = table.field("core", report, values::core).optional();
    let default_priority = match &core {
        Some(core) if core.value.is_some() => Sourced::new(
            Some(DEFAULT_THREAD_PRIORITY),
            Source::DefaultFor("hosts with a core"),
        ),
        _ => Sourced::default_value(None),
    };
    let priority = table
        .field("priority", report, values::priority)
        .or_from(default_priority.value, default_priority.source);
    let lock_memory = table.field("lock_memory", report, values::truth).or(false);
    let scheduling = table
        .field("scheduling", report, values::word)
        .or(Scheduling::default());
    let datapath = table
        .field("datapath", report, datapath::choice(kinds))
        .or(DatapathChoice::default());
    let waiting = table
        .field("waiting", report, values::word)
        .or(Waiting::default());
    let loop_waiting = waiting
        .as_ref()
        .map_or(Waiting::Spin, |waiting| waiting.value);
    let discovery_level = table.field("discovery_level", report, values::level);
    let discovery_level = discovery_level.optional();
    let sample_ports = table.field("sample_ports", report, values::sample_ports);
    let sample_ports = sample_ports.optional();
    let max_participants = table
        .field("max_participants", report, values::known_participants)
        .optional();
    let fixed_memory = table.field("fixed_memory", report, values::truth).or(false);
    let sample_memory = table
        .field("sample_memory", report, values::sample_memory)
        .or(NonZeroU32::new(DEFAULT_SAMPLE_MEMORY).expect("the default is a number"));
    let protect = protect::read(&mut table, report);
    let datapaths = datapath::read(&mut table, kinds, loop_waiting, report);
    table.finish(report);
    Some(Host {
        name: name?,
        interface: interface?,
        core: core?,
        priority: priority?,
        lock_memory: lock_memory?,
        scheduling: scheduling?,
        max_participants: max_participants?,
        fixed_memory: fixed_memory?,
        sample_memory: sample_memory?,
        datapath: datapath?,
        waiting: waiting?,
        discovery_level: discovery_level?,
        sample_ports: sample_ports?,
        protect: protect?,
        datapaths: datapaths?,
        large_levels: 0,
    })
}

fn name(table: &Table<'_>, report: &mut Report) -> Option<Sourced<String>> {
    let name = table.name();
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > MAX_HOST_NAME_BYTES || !name.chars().all(letters) {
        let what = format!(
            "\"{}\" cannot be the name of a host",
            values::shortened(name)
        );
        let help = format!(
            "use 1 to {MAX_HOST_NAME_BYTES} letters, digits, `-`, `_` and `.`, as host names have"
        );
        report.error(table.place(), Wrong::new(what, "this name").help(help));
        return None;
    }
    Some(Sourced::new(name.to_owned(), report.source(&table.place())))
}
