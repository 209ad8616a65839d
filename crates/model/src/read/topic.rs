//! Reader of `[topic.NAME]` tables, including checks across settings.

use core::num::NonZeroU32;
use core::time::Duration;
use std::collections::BTreeSet;

use isolane_datapath::OverBudget;
use isolane_wire::level::Level;
use toml::de::DeValue;

use crate::duration::format_duration;
use crate::source::Sourced;
use crate::topic::{Budget, Durability, History, Reliability, Topic, check_topic_name};
use crate::word::closest;

use super::report::{Report, Wrong};
use super::table::{Field, Table};
use super::values::{self, shortened};

/// Reads a topic; `None` if a required value is missing or any value is wrong.
pub(super) fn read(mut table: Table<'_>, hosts: &[&str], report: &mut Report) -> Option<Topic> {
    let name = name(&table, report);
    let type_name = table.field("type", report, values::type_name);
    let why_type = "readers and writers match by it: type = \"vehicle::BrakePressure\"";
    let type_name = table.require("type", why_type, type_name, report);
    let level = table.field("level", report, values::level).or(Level::MIN);
    let period = table.field("period", report, values::duration);
    let deadline = table.field("deadline", report, values::duration);
    let max_bytes = table.field("max_bytes", report, values::sample_bytes);
    let why_bytes = "memory is reserved before start: give the largest serialised sample";
    let max_bytes = table.require("max_bytes", why_bytes, max_bytes, report);
    let reliability = table.field("reliability", report, values::word);
    let durability = table.field("durability", report, values::word);
    let keyed = table.field("keyed", report, values::truth).or(false);
    let history = table.field("history", report, values::history);
    let max_samples = table.field("max_samples", report, values::samples);
    let burst_bound = table.field("burst_bound", report, values::duration);
    let from = host_list(&mut table, "from", hosts, report);
    let to = host_list(&mut table, "to", hosts, report);
    let budget = budget(&mut table, report);

    warn_about_deadline(&table, &period, &deadline, report);
    warn_about_durability(&table, &reliability, &durability, report);
    if let (Some(Some(budget)), Some(from)) = (&budget, &from) {
        warn_about_budget(&table, &period, from.value.len(), budget, report);
    }
    let history_or_default = history.or(History::default());
    let max_samples = match (&history_or_default, &keyed) {
        (Some(history), Some(keyed)) => {
            let default = max_bytes.as_ref().map(|max_bytes| {
                let history = history.value;
                history.default_max_samples(keyed.value, max_bytes.value.get())
            });
            samples(&table, history.value, default, max_samples, report)
        }
        _ => None,
    };
    table.finish(report);
    Some(Topic {
        name: name?,
        type_name: type_name?,
        keyed: keyed?,
        level: level?,
        period: period.optional()?,
        deadline: deadline.optional()?,
        max_bytes: max_bytes?,
        reliability: reliability.or(Reliability::Reliable)?,
        durability: durability.or(Durability::default())?,
        history: history_or_default?,
        max_samples: max_samples?,
        from: from?,
        to: to?,
        burst_bound: burst_bound.optional()?,
        budget: budget?,
    })
}

fn name(table: &Table<'_>, report: &mut Report) -> Option<Sourced<String>> {
    if let Err(reason) = check_topic_name(table.name()) {
        let what = format!(
            "\"{}\" cannot be the name of a topic",
            shortened(table.name())
        );
        report.error(table.place(), Wrong::new(what, reason.to_string()));
        return None;
    }
    Some(Sourced::new(
        table.name().to_owned(),
        report.source(&table.place()),
    ))
}

/// Reads `max_samples`, which must not be less than the history depth.
fn samples(
    table: &Table<'_>,
    history: History,
    default: Option<Sourced<NonZeroU32>>,
    given: Field<NonZeroU32>,
    report: &mut Report,
) -> Option<Sourced<NonZeroU32>> {
    if let (History::KeepLast(depth), Some((samples, place))) = (history, given.look())
        && samples.get() < depth.get()
    {
        let what = format!(
            "{} is less than the history keeps",
            table.subject("max_samples")
        );
        let label = format!("{samples} samples for a history of {}", depth.get());
        let help = "raise it, lower `history`, or leave `max_samples` out";
        report.error(place, Wrong::new(what, label).help(help));
        return None;
    }
    let default = default?;
    given.or_from(default.value, default.source)
}

/// Reads the hosts of `from` or `to`.
fn host_list(
    table: &mut Table<'_>,
    key: &'static str,
    hosts: &[&str],
    report: &mut Report,
) -> Option<Sourced<Vec<String>>> {
    let subject = table.subject(key);
    let expected = || format!("{subject} must be a list of hosts");
    let Some(value) = table.entry(key) else {
        let verb = if key == "from" { "send" } else { "receive" };
        let help = format!("say which hosts {verb} it: {key} = [\"NAME\"]");
        report.missing(
            table.place(),
            Wrong::new(format!("{subject} is missing"), "here").help(help),
        );
        return None;
    };
    let DeValue::Array(items) = value.get_ref() else {
        let wrong = Wrong::new(expected(), values::this_is(value.get_ref()));
        let name = value
            .get_ref()
            .as_str()
            .map_or_else(|| String::from("NAME"), shortened);
        report.error(
            value.span(),
            wrong.help(format!("write {key} = [\"{name}\"]")),
        );
        return None;
    };
    if items.is_empty() {
        report.error(
            value.span(),
            Wrong::new(expected(), "it is empty").help("name at least one"),
        );
        return None;
    }
    let mut names = Vec::new();
    let mut seen = BTreeSet::new();
    for item in items {
        let DeValue::String(name) = item.get_ref() else {
            report.error(
                item.span(),
                Wrong::new(expected(), values::this_is(item.get_ref())),
            );
            continue;
        };
        let name: &str = name;
        if !hosts.contains(&name) {
            report.error(item.span(), unknown_host(&subject, name, hosts));
        } else if !seen.insert(name) {
            let what = format!("{subject} names `{name}` twice");
            report.error(item.span(), Wrong::new(what, "again").help("remove it"));
        } else {
            names.push(name.to_owned());
        }
    }
    (names.len() == items.len()).then(|| Sourced::new(names, report.source(&value.span())))
}

fn unknown_host(subject: &str, name: &str, hosts: &[&str]) -> Wrong {
    let name = shortened(name);
    let help = match closest(&name, hosts.iter().copied()) {
        Some(known) => format!("did you mean `{}`?", shortened(known)),
        None => {
            format!("describe the host in a table [host.{name}], or name one that is described")
        }
    };
    Wrong::new(
        format!("{subject} names an unknown host"),
        format!("no [host.{name}]"),
    )
    .help(help)
}

/// Reads `budget = { capacity, period, over }`: `None` if wrong, `Some(None)` if absent.
fn budget(table: &mut Table<'_>, report: &mut Report) -> Option<Option<Budget>> {
    let example = "budget = { capacity = 20, period = \"10ms\", over = \"drop\" }";
    let Some(mut table) = table.table("budget", example, report)? else {
        return Some(None);
    };
    let capacity = table.field("capacity", report, values::budget_capacity);
    let capacity = table.require("capacity", example, capacity, report);
    let period = table.field("period", report, values::budget_period);
    let period = table.require("period", example, period, report);
    let over = table
        .field("over", report, values::word)
        .or(OverBudget::default());
    table.finish(report);
    Some(Some(Budget {
        capacity: capacity?,
        period: period?,
        over: over?,
    }))
}

/// Warns about a deadline longer than the period. The analysis is valid for such a deadline. But two samples may then
/// be in flight at once, which is rarely intended.
fn warn_about_deadline(
    table: &Table<'_>,
    period: &Field<Duration>,
    deadline: &Field<Duration>,
    report: &mut Report,
) {
    let (Some((period, _)), Some((deadline, place))) = (period.look(), deadline.look()) else {
        return;
    };
    if deadline > period {
        let what = format!("{} is longer than the period", table.subject("deadline"));
        let label = format!("the next sample is sent after {}", format_duration(*period));
        let help = "a sample may then still be under way when the next one replaces it; \
                    a deadline is usually at most the period";
        report.warning(place, Wrong::new(what, label).help(help));
    }
}

/// Warns about TRANSIENT_LOCAL durability without reliability, because only reliable readers receive history.
fn warn_about_durability(
    table: &Table<'_>,
    reliability: &Field<Reliability>,
    durability: &Field<Durability>,
    report: &mut Report,
) {
    let best_effort = matches!(reliability.look(), Some((Reliability::BestEffort, _)));
    if let Some((Durability::TransientLocal, place)) = durability.look()
        && best_effort
    {
        let what = format!(
            "{} has no effect on a best-effort topic",
            table.subject("durability")
        );
        let help = "readers that join late get earlier samples from reliable writers only";
        report.warning(place, Wrong::new(what, "no effect").help(help));
    }
}

/// Warns about a budget that the topic's regular traffic exceeds.
fn warn_about_budget(
    table: &Table<'_>,
    period: &Field<Duration>,
    senders: usize,
    budget: &Budget,
    report: &mut Report,
) {
    let (Some((period, place)), capacity) = (period.look(), budget.capacity.value.get()) else {
        return;
    };
    let of_one = budget.period.value.as_nanos().div_ceil(period.as_nanos());
    let needed = of_one * senders as u128;
    if needed > u128::from(capacity) {
        let what = format!("{} is less than is sent", table.subject("budget"));
        let label = format!(
            "{needed} samples in {} from {senders} host{}, {capacity} let through",
            format_duration(budget.period.value),
            if senders == 1 { "" } else { "s" },
        );
        let help = format!("raise the budget's capacity to {needed} or more");
        report.warning(place, Wrong::new(what, label).help(help));
    }
}
