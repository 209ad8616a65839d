//! Reader of `[host.NAME.xdp]`.

use std::ops::Range;

use isolane_wire::level::Level;

use crate::source::Sourced;
use crate::xdp::Xdp;

use super::report::{Report, Wrong};
use super::table::{Field, Table};
use super::values;

const EXAMPLE: &str = "xdp.queue = 1";
const QUEUES: &str = "queues = { 7 = 1 }";
/// Keys of `queues`, by level.
const LEVELS: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];

/// Reads the XDP settings of a host; `None` if anything is wrong.
pub(super) fn read(host: &mut Table<'_>, report: &mut Report) -> Option<Xdp> {
    let usual = Xdp::default();
    let Some(mut table) = host.table("xdp", EXAMPLE, report)? else {
        return Some(usual);
    };
    let queue = table.field("queue", report, values::queue);
    let queues = queues(&mut table, report);
    let levels = table.field("levels", report, values::levels);
    let mode = table.field("mode", report, values::word);
    let attach = table.field("attach", report, values::word);
    let waiting = table.field("waiting", report, values::word);
    let receive_entries = table.field("receive_entries", report, values::ring_entries);
    let receive_frames = table.field("receive_frames", report, values::receive_frames);
    let critical_reserve = table.field("critical_reserve", report, values::critical_reserve);
    let vlan = table.field("vlan", report, values::vlan);
    table.finish(report);
    let queues = queues?;
    let levels = or(levels, usual.levels)?;
    let without: Vec<&LevelQueue> = queues
        .iter()
        .filter(|(level, ..)| !levels.value.contains(level))
        .collect();
    for (level, _, place) in &without {
        let what = format!("level {level} has a queue, and no lane");
        let label = format!("levels = [{}]", named(&levels.value));
        let help = "add the level to `levels`, or take its queue away: lanes alone have queues";
        report.error(place.clone(), Wrong::new(what, label).help(help));
    }
    if !without.is_empty() {
        return None;
    }
    Some(Xdp {
        queue: or(queue, usual.queue)?,
        queues: queues
            .into_iter()
            .map(|(level, queue, _)| (level, queue))
            .collect(),
        levels,
        mode: or(mode, usual.mode)?,
        attach: or(attach, usual.attach)?,
        waiting: or(waiting, usual.waiting)?,
        receive_entries: or(receive_entries, usual.receive_entries)?,
        receive_frames: receive_frames.optional()?,
        critical_reserve: or(critical_reserve, usual.critical_reserve)?,
        vlan: vlan.optional()?,
    })
}

fn or<T>(field: Field<T>, usual: Sourced<T>) -> Option<Sourced<T>> {
    field.or_from(usual.value, usual.source)
}

fn named(levels: &[Level]) -> String {
    let names: Vec<String> = levels.iter().map(ToString::to_string).collect();
    names.join(", ")
}

/// Level, its queue, and the span of the setting.
type LevelQueue = (Level, Sourced<u32>, Range<usize>);

/// Reads the queues of the levels in the table.
fn queues(xdp: &mut Table<'_>, report: &mut Report) -> Option<Vec<LevelQueue>> {
    let Some(mut table) = xdp.table("queues", QUEUES, report)? else {
        return Some(Vec::new());
    };
    let mut queues = Vec::new();
    let mut is_right = true;
    for (level, key) in Level::ALL.into_iter().zip(LEVELS) {
        match table.field(key, report, values::queue) {
            Field::Given(queue, place) => queues.push((level, queue, place)),
            Field::Wrong => is_right = false,
            Field::Absent => {}
        }
    }
    table.finish(report);
    is_right.then_some(queues)
}
