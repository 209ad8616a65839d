//! Text of a verification's results.

use std::fmt::Write as _;

use isolane_tune::Direction;
use isolane_tune::verify::{CoreActivity, FlowReport, TransmitReport};

use super::super::ports::landed;
use super::{DATAGRAMS, QUESTIONS, Report};
use crate::output::count_of;
use crate::settings::TuneVerifySettings;

/// Maximum number of threads and interrupts named per core.
const NAMED: usize = 5;

/// Complete report.
pub(super) fn text(
    settings: &TuneVerifySettings,
    interface: Option<&str>,
    report: &Report,
) -> String {
    // Writing to a string cannot fail.
    let mut text = String::new();
    let _ = match &report.applied {
        None => writeln!(text, "Settings: no plan is applied"),
        Some(status) => {
            let standing = status.settings.iter().filter(|setting| setting.stands);
            let all = count_of(status.settings.len() as u64, "setting");
            writeln!(text, "Settings: {} of {all} stand", standing.count())
        }
    };
    if report.wake_ups.is_empty() {
        let _ = writeln!(
            text,
            "Wake-ups: not measured, for no core is known: --core N, or a description's host with a core"
        );
    }
    for woken in &report.wake_ups {
        let _ = writeln!(
            text,
            "Wake-ups on core {} at priority {}, {} of them: median {}, p99 {}, p99.9 {}, maximum {} late",
            woken.core,
            settings.priority.value,
            woken.samples,
            microseconds(woken.median_ns),
            microseconds(woken.p99_ns),
            microseconds(woken.p99_9_ns),
            microseconds(woken.max_ns)
        );
        used(&mut text, &woken.used_by);
        if settings.at_most.is_none() {
            text.push_str("  not judged: --at-most TIME says how late is too late\n");
        }
    }
    match (interface, &report.departures) {
        (None, _) => {}
        (Some(interface), None) => {
            let _ = writeln!(
                text,
                "Transmit queues: the queueing of {interface} does not count by queue (it takes mq or mqprio)"
            );
        }
        (Some(interface), Some(found)) => {
            let _ = writeln!(
                text,
                "Transmit queues of {interface}, {DATAGRAMS} datagrams of each level"
            );
            for departure in found {
                let mark = match (departure.expected.is_empty(), departure.is_as_expected()) {
                    (true, _) => "--",
                    (false, true) => "ok",
                    (false, false) => "NO",
                };
                let expected = match departure.expected.is_empty() {
                    true => String::from("no traffic classes"),
                    false => format!("its class has {}", listed(&departure.expected)),
                };
                let left = by_queue(departure);
                let _ = writeln!(
                    text,
                    "  {mark}  level {}: {left} ({expected})",
                    departure.level
                );
            }
        }
    }
    if let Some(landings) = &report.landings {
        let _ = writeln!(
            text,
            "Receive queues, {QUESTIONS} datagrams of each described flow"
        );
        for flow in landings {
            let mark = match flow.is_as_expected() {
                None => "--",
                Some(true) => "ok",
                Some(false) => "NO",
            };
            let _ = writeln!(text, "  {mark}  {}: {}", named(flow), landed(&flow.landing));
        }
        if landings.iter().any(|flow| flow.may_go_by_priority) {
            let _ = writeln!(
                text,
                "  marked --: steered by VLAN priority, which cannot be told: these datagrams have none"
            );
        }
    }
    for failed in &report.failed {
        let _ = writeln!(text, "NO: {failed}");
    }
    if !report.judged {
        text.push_str(
            "Nothing was verified: apply a plan (isolane tune apply), or say what is too late (--core N --at-most TIME)\n",
        );
    }
    text
}

/// Other work on the core: longest-running threads, most frequent interrupts.
fn used(text: &mut String, used: &CoreActivity) {
    let threads: Vec<String> = used
        .threads
        .iter()
        .take(NAMED)
        .map(|thread| {
            let name = thread.name.escape_debug();
            format!("{name} {}", microseconds(thread.run_ns))
        })
        .collect();
    let _ = writeln!(
        text,
        "  {} of others ran there: {}",
        count_of(used.threads.len() as u64, "thread"),
        or_none(&threads)
    );
    let mut interrupts: Vec<(&String, &u64)> = used.interrupts.iter().collect();
    interrupts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let named: Vec<String> = interrupts
        .iter()
        .take(NAMED)
        .map(|(name, count)| format!("{} {count}", name.escape_debug()))
        .collect();
    let _ = writeln!(text, "  interrupts: {}", or_none(&named));
}

fn or_none(named: &[String]) -> String {
    match named.is_empty() {
        true => String::from("none"),
        false => named.join(", "),
    }
}

pub(super) fn microseconds(ns: u64) -> String {
    format!("{:.1} us", ns as f64 / 1_000.0)
}

pub(super) fn listed(queues: &[u32]) -> String {
    let queues: Vec<String> = queues.iter().map(u32::to_string).collect();
    queues.join(",")
}

/// Queue counts as text: `queue 0: 3, queue 1: 100`.
pub(super) fn by_queue(departure: &TransmitReport) -> String {
    let queues: Vec<String> = departure
        .by_queue
        .iter()
        .map(|(queue, count)| format!("queue {queue}: {count}"))
        .collect();
    or_none(&queues)
}

/// Flow as text: `Brake (level 7, in from 10.0.0.2:7007)`.
pub(super) fn named(flow: &FlowReport) -> String {
    let way = match flow.way {
        Direction::Receive => format!("in from {}:{}", flow.tuple.source, flow.tuple.source_port),
        Direction::Transmit => format!(
            "out to {}:{}",
            flow.tuple.destination, flow.tuple.destination_port
        ),
    };
    format!("{} (level {}, {way})", flow.topics.join(", "), flow.level)
}
