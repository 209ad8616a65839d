//! Reader of `[host.NAME.protect]`.

use crate::protect::{HostProtection, InterfaceBudget, OthersBudget};

use super::report::{Report, Wrong};
use super::table::Table;
use super::values;

const EXAMPLE: &str = "protect.topics = { capacity = 2000, period = \"10ms\", reserved = 200 }";
const TOPICS: &str = "topics = { capacity = 2000, period = \"10ms\", reserved = 200 }";
const OTHERS: &str = "others = { capacity = 1000, period = \"10ms\" }";

/// Reads the protection of a host; `None` if any value is missing or wrong.
pub(super) fn read(host: &mut Table<'_>, report: &mut Report) -> Option<HostProtection> {
    let Some(mut table) = host.table("protect", EXAMPLE, report)? else {
        return Some(HostProtection::default());
    };
    let topics = topics(&mut table, report);
    let others = others(&mut table, report);
    table.finish(report);
    Some(HostProtection {
        topics: topics?,
        others: others?,
    })
}

fn topics(protect: &mut Table<'_>, report: &mut Report) -> Option<Option<InterfaceBudget>> {
    let Some(mut table) = protect.table("topics", TOPICS, report)? else {
        return Some(None);
    };
    let capacity = table.field("capacity", report, values::budget_capacity);
    let reserved = table.field("reserved", report, values::reserved);
    let period = table.field("period", report, values::budget_period);
    if let (Some((capacity, _)), Some((reserved, place))) = (capacity.look(), reserved.look())
        && *reserved > capacity.get()
    {
        let what = format!("{} is more than there is", table.subject("reserved"));
        let label = format!("{reserved} of {capacity}");
        let help = "reserve at most the capacity, or leave `reserved` out";
        report.error(place, Wrong::new(what, label).help(help));
        return None;
    }
    let capacity = table.require("capacity", TOPICS, capacity, report);
    let period = table.require("period", TOPICS, period, report);
    table.finish(report);
    Some(Some(InterfaceBudget {
        capacity: capacity?,
        period: period?,
        reserved: reserved.or(0)?,
    }))
}

fn others(protect: &mut Table<'_>, report: &mut Report) -> Option<Option<OthersBudget>> {
    let Some(mut table) = protect.table("others", OTHERS, report)? else {
        return Some(None);
    };
    let capacity = table.field("capacity", report, values::budget_capacity);
    let capacity = table.require("capacity", OTHERS, capacity, report);
    let period = table.field("period", report, values::budget_period);
    let period = table.require("period", OTHERS, period, report);
    table.finish(report);
    Some(Some(OthersBudget {
        capacity: capacity?,
        period: period?,
    }))
}
