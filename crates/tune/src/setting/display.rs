//! Human-readable form of values.

use std::collections::BTreeMap;
use std::fmt;

use super::{ThreadClass, Value};
use crate::facts::{Coalescing, FlowRule, QueueQdisc, RootQdisc, TrafficClasses};
use crate::kernel_lists::list;
use crate::limits::MAX_SHOWN_TEXT;

/// Number of RSS table entries of a queue from which they are counted instead of listed.
const SHOWN_ENTRIES: usize = 7;

impl Value {
    /// Full text, possibly of several lines.
    pub(crate) fn whole(&self) -> String {
        match self {
            Self::Text(text) if !text.is_empty() => text.clone(),
            Self::Document(document) => document.text(),
            other => other.one_line(),
        }
    }

    /// Full text on one line.
    pub(crate) fn one_line(&self) -> String {
        words_of(self)
    }
}

/// Short form; a document or a text is shown by its first line.
impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => text_in_short(text, formatter),
            Self::Document(document) => text_in_short(&document.text(), formatter),
            other => formatter.write_str(&words_of(other)),
        }
    }
}

fn words_of(value: &Value) -> String {
    match value {
        Value::Absent => String::from("none"),
        Value::Present => String::from("there"),
        Value::Text(text) if text.is_empty() => String::from("(empty)"),
        Value::Text(text) => text.trim_end().replace('\n', " | "),
        Value::Document(document) => document.text().trim_end().replace('\n', " | "),
        Value::Switch(on) => String::from(on_off(*on)),
        Value::Queues(queues) => {
            let parts = [
                (queues.combined, "combined"),
                (queues.rx, "receive"),
                (queues.tx, "transmit"),
            ];
            let parts = parts.iter().filter(|(count, _)| *count > 0);
            let parts: Vec<String> = parts
                .map(|(count, name)| format!("{count} {name}"))
                .collect();
            parts.join(", ")
        }
        Value::Rings(rings) => format!("{} receive, {} transmit", rings.rx, rings.tx),
        Value::Coalescing(coalescing) => moderation(coalescing),
        Value::Table(table) => entries(table),
        Value::Rule(FlowRule::Port {
            destination,
            destination_port,
            queue,
        }) => {
            let address = destination.map_or(String::from("*"), |it| it.to_string());
            format!("UDP to {address}:{destination_port} -> queue {queue}")
        }
        Value::Rule(FlowRule::Priority {
            vlan_priority,
            queue,
        }) => format!("VLAN priority {vlan_priority} -> queue {queue}"),
        Value::Qdisc(qdisc) => queueing(qdisc),
        Value::QueueQdisc(qdisc) => queueing_of_queue(qdisc),
        Value::Thread(class) => scheduled(class),
    }
}

fn moderation(coalescing: &Coalescing) -> String {
    let counts = coalescing.counts().into_iter();
    let counts = counts.filter_map(|(name, count)| Some(format!("{name} {}", count?)));
    let switches = coalescing.adaptive().into_iter();
    let switches = switches.filter_map(|(name, on)| Some(format!("{name} {}", on_off(on?))));
    counts.chain(switches).collect::<Vec<_>>().join(", ")
}

/// Switch position as ethtool writes it.
pub(crate) fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// Formats an RSS table by queue: the indices of its entries if they are few, else their number.
fn entries(table: &[u32]) -> String {
    let mut few: Vec<String> = Vec::new();
    let mut many: BTreeMap<usize, Vec<u16>> = BTreeMap::new();
    let mut queues: Vec<u32> = table.to_vec();
    queues.sort_unstable();
    queues.dedup();
    for queue in queues {
        let lead = (0..table.len()).filter(|entry| table[*entry] == queue);
        let lead: Vec<String> = lead.map(|entry| entry.to_string()).collect();
        match (lead.len(), u16::try_from(queue)) {
            (1, _) => few.push(format!("entry {} to queue {queue}", lead.concat())),
            (SHOWN_ENTRIES.., Ok(queue)) => many.entry(lead.len()).or_default().push(queue),
            _ => few.push(format!("entries {} to queue {queue}", lead.join(" "))),
        }
    }
    let many = many
        .into_iter()
        .map(|(count, queues)| match queues.as_slice() {
            [queue] => format!("{count} entries to queue {queue}"),
            queues => format!("{count} entries to each of queues {}", list(queues)),
        });
    many.chain(few).collect::<Vec<_>>().join(", ")
}

fn queueing(qdisc: &RootQdisc) -> String {
    match qdisc {
        RootQdisc::Default { name } => name.clone(),
        // The kernel's default may have the same name, so the text distinguishes them.
        RootQdisc::Other { name } => format!("{name} (set explicitly)"),
        RootQdisc::Pfifo { frames } => format!("pfifo of {frames} frames"),
        RootQdisc::Mqprio(known) => format!("mqprio: {}", classes(known)),
        RootQdisc::Taprio(schedule) => {
            let entries = schedule.entries.iter();
            let gates = entries.map(|(gates, ns)| format!("{gates:#x} for {ns} ns"));
            let gates: Vec<String> = gates.collect();
            let classes = classes(&schedule.classes);
            format!("taprio: {classes}; gates {}", gates.join(", "))
        }
    }
}

fn classes(classes: &TrafficClasses) -> String {
    let queues = |(count, first): &(u16, u16)| match count {
        1 => format!("queue {first}"),
        _ => format!(
            "queues {first}-{}",
            u32::from(*first) + u32::from(*count).saturating_sub(1)
        ),
    };
    let class = |(class, of): (usize, &(u16, u16))| {
        let priorities: Vec<u16> = (0_u16..)
            .zip(classes.class_of_priority)
            .filter(|(_, known)| usize::from(*known) == class)
            .map(|(priority, _)| priority)
            .collect();
        format!("priorities {} on {}", list(&priorities), queues(of))
    };
    let classes: Vec<String> = classes.queues.iter().enumerate().map(class).collect();
    classes.join(", ")
}

fn queueing_of_queue(qdisc: &QueueQdisc) -> String {
    match qdisc {
        QueueQdisc::Pfifo { frames: None } => String::from("pfifo"),
        QueueQdisc::Pfifo {
            frames: Some(frames),
        } => format!("pfifo of {frames} frames"),
        QueueQdisc::CreditShaper(shaper) => format!("cbs of {} kbit/s", shaper.idle_slope_kbps),
        QueueQdisc::EarliestTime(time) => format!("etf, {} ns ahead", time.delta_ns),
        QueueQdisc::Other { name } => format!("{name} (set explicitly)"),
    }
}

fn scheduled(class: &ThreadClass) -> String {
    let priority = match class.fifo {
        Some(priority) => format!("FIFO {priority}"),
        None => String::from("ordinary"),
    };
    match class.cores.as_slice() {
        [] => priority,
        cores => format!("{priority} on cores {}", list(cores)),
    }
}

/// Writes the first line, shortened and with unprintable characters escaped.
fn text_in_short(text: &str, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let line = text.lines().next().unwrap_or_default();
    let shown: String = line.chars().take(MAX_SHOWN_TEXT).collect();
    write!(formatter, "\"{}\"", shown.escape_debug())?;
    match text.trim_end().len() - shown.trim_end().len() {
        0 => Ok(()),
        rest => write!(formatter, " and {rest} bytes more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_shown_by_its_beginning() {
        assert_eq!(Value::Text("1".into()).to_string(), "\"1\"");
        let shown = Value::Text("[Unit]\nDescription=x\n".into()).to_string();
        assert_eq!(shown, "\"[Unit]\" and 14 bytes more");
    }
}
