//! A sample as lines of text. For each participant they show levels, topics, flows, rings and jobs, the most critical
//! first.

use std::cmp::Reverse;

use isolane::observe::{
    Counts, FlowSample, LaneSample, LatencySample, ParticipantSample, RingSample, Snapshot,
};
use isolane_model::{format_duration, visible_line};

use super::sample::{LaneRates, Rates, Sample, Seen, sum};
use super::selection::Selection;
use crate::limits::{SHOWN_NAME_CHARACTERS, SHOWN_NOTES};

/// Maximum width of the lines of a wrapped sentence.
const NOTE_COLUMNS: usize = 96;

/// Maximum width of the list of allowed cores.
const CORES_COLUMNS: usize = 24;

/// Line of text, with the kind by which the view chooses a style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// First line of a participant.
    Title,
    /// Column headings.
    Heading,
    Row,
    Alert,
    Note,
    Blank,
}

pub(crate) fn of(sample: &Sample, selection: &Selection) -> Vec<Line> {
    let mut lines = Lines(Vec::new());
    if let Some(why) = sample.why_none {
        lines.note(why);
    }
    let participants = sample.participants.iter();
    let shown = participants.filter(|seen| selection.has(seen));
    for (place, seen) in shown.enumerate() {
        if place > 0 {
            lines.add(Kind::Blank, String::new());
        }
        lines.participant(seen, selection);
    }
    if lines.0.is_empty() {
        let topic = clean(&selection.topic);
        lines.note(&format!(
            "no participant has a topic whose name contains {topic:?}"
        ));
    }
    lines.0
}

struct Lines(Vec<Line>);

impl Lines {
    fn add(&mut self, kind: Kind, text: String) {
        self.0.push(Line { kind, text });
    }

    fn columns(&mut self, columns: &Columns) {
        if let Some((heading, rows)) = columns.lines() {
            self.add(Kind::Heading, heading);
            rows.into_iter().for_each(|row| self.add(Kind::Row, row));
        }
    }

    /// Adds a sentence, wrapped into lines.
    fn note(&mut self, sentence: &str) {
        let mut line = String::new();
        for word in sentence.split_whitespace() {
            if !line.is_empty() && line.chars().count() + word.chars().count() > NOTE_COLUMNS {
                let full = std::mem::take(&mut line);
                self.add(Kind::Note, format!(" {full}"));
            }
            line.push(' ');
            line.push_str(word);
        }
        self.add(Kind::Note, format!(" {line}"));
    }

    fn participant(&mut self, seen: &Seen, selection: &Selection) {
        self.add(Kind::Title, title(seen));
        if let Some(problem) = &seen.problem {
            self.add(Kind::Alert, format!("  it {}", shown(problem, usize::MAX)));
        }
        let Some(snapshot) = &seen.snapshot else {
            if seen.problem.is_none() {
                self.note("waiting for its first snapshot");
            }
            return;
        };
        let participant = &snapshot.participant;
        if let Some(imbalance) = &participant.imbalance {
            let said = clean(imbalance);
            self.add(
                Kind::Alert,
                format!("  its ledger does not balance: {said}"),
            );
        }
        for note in participant.notes.iter().take(SHOWN_NOTES) {
            self.note(&format!("note: {}", shown(note, usize::MAX)));
        }
        let rates = seen.rates.as_ref();
        if !selection.is_everything() {
            self.columns(&topics(snapshot, rates, selection));
            self.columns(&flows(snapshot, rates, selection));
            return;
        }
        self.columns(&thread(&snapshot.participant));
        self.columns(&interfaces(snapshot));
        self.columns(&levels(snapshot, rates));
        self.columns(&lanes(snapshot));
        self.columns(&topics(snapshot, rates, selection));
        self.columns(&flows(snapshot, rates, selection));
        self.columns(&rings(snapshot));
        self.columns(&jobs(snapshot, rates));
        self.add(Kind::Row, frames(participant));
    }
}

fn title(seen: &Seen) -> String {
    let program = seen.program.as_deref().map_or_else(String::new, clean);
    let process = format!("pid {} {program}", seen.pid);
    match &seen.snapshot {
        Some(snapshot) => {
            let of = &snapshot.participant;
            format!(
                "{}  {process}  domain {}  datapath {}  {} other participants known",
                clean(&of.name),
                of.domain,
                clean(&of.datapath),
                of.participants
            )
        }
        None => process,
    }
}

/// Table of the event loop's thread: its core, allowed cores and scheduling policy.
fn thread(participant: &ParticipantSample) -> Columns {
    let mut columns = Columns::new(&["thread", ">core", "allowed", "policy"]);
    if let Some(policy) = &participant.policy {
        let allowed = participant.allowed_cores.iter().map(ToString::to_string);
        columns.row(vec![
            "loop".into(),
            participant.core.map_or_else(none, |core| core.to_string()),
            shown(&allowed.collect::<Vec<_>>().join(","), CORES_COLUMNS),
            clean(policy),
        ]);
    }
    columns
}

fn interfaces(snapshot: &Snapshot) -> Columns {
    let mut columns = Columns::new(&["interface", "mode", "program", "frames of no flow"]);
    for interface in &snapshot.interfaces {
        columns.row(vec![
            clean(&interface.name),
            clean(&interface.mode),
            clean(&interface.program_tag),
            reasons(&interface.decisions),
        ]);
    }
    columns
}

fn levels(snapshot: &Snapshot, rates: Option<&Rates>) -> Columns {
    let mut columns = Columns::new(&[
        "level",
        ">in/s",
        ">kbit/s",
        ">out/s",
        ">kbit/s",
        ">arrived",
        ">dropped",
        ">refused",
        ">inversions",
        ">late us",
        "why",
    ]);
    let mut rows: Vec<(&LaneSample, Option<&LaneRates>)> = snapshot
        .lanes
        .iter()
        .enumerate()
        .map(|(place, lane)| (lane, rates.and_then(|rates| rates.lanes.get(place))))
        .collect();
    rows.sort_by_key(|(lane, _)| Reverse(lane.level));
    for (lane, rates) in rows {
        let waits = snapshot.levels.iter();
        let waits = waits.clone().find(|level| Some(level.level) == lane.level);
        let rate = |of: fn(&LaneRates) -> Option<f64>| rate(rates.and_then(of));
        let kilo = |of: fn(&LaneRates) -> Option<f64>| {
            self::rate(rates.and_then(of).map(|bits| bits / 1e3))
        };
        let why: Counts = lane
            .dropped
            .iter()
            .chain(&lane.refused)
            .map(|(reason, count)| (reason.clone(), *count))
            .collect();
        columns.row(vec![
            level(lane.level, "discovery"),
            rate(|lane| lane.received_per_s),
            kilo(|lane| lane.received_bits_per_s),
            rate(|lane| lane.sent_per_s),
            kilo(|lane| lane.sent_bits_per_s),
            grouped(lane.arrived),
            grouped(sum(&lane.dropped)),
            grouped(sum(&lane.refused)),
            waits.map_or_else(none, |level| grouped(level.inversions)),
            waits.map_or_else(none, |level| format!("{:.1}", level.kernel_late_max_us)),
            reasons(&why),
        ]);
    }
    columns
}

/// Table of lanes with AF_XDP rings: how many datagrams used the rings. The other datagrams used kernel sockets.
fn lanes(snapshot: &Snapshot) -> Columns {
    let mut columns = Columns::new(&["lane", ">in by ring", ">out by ring", "others"]);
    let with_ring = snapshot.lanes.iter().filter(|lane| !lane.counts.is_empty());
    let mut rows: Vec<&LaneSample> = with_ring.collect();
    rows.sort_by_key(|lane| Reverse(lane.level));
    for lane in rows {
        let count = |name: &str| lane.counts.get(name).copied().unwrap_or(0);
        let (received, sent) = ("received_by_lane", "sent_by_lane");
        let mut others = lane.counts.clone();
        others.retain(|name, _| name != received && name != sent);
        columns.row(vec![
            level(lane.level, "discovery"),
            grouped(count(received)),
            grouped(count(sent)),
            reasons(&others),
        ]);
    }
    columns
}

fn topics(snapshot: &Snapshot, rates: Option<&Rates>, selection: &Selection) -> Columns {
    let mut columns = Columns::new(&[
        "topic",
        ">level",
        "end",
        ">matched",
        ">per s",
        ">samples",
        ">median us",
        ">p99 us",
        ">max us",
        ">missed",
        "during",
        "counters",
    ]);
    let of_writers = snapshot.writers.iter().enumerate().map(|(place, writer)| {
        let rate = rates.and_then(|rates| rates.writers.get(place).copied());
        (writer, "writer", "written", rate.flatten())
    });
    let of_readers = snapshot.readers.iter().enumerate().map(|(place, reader)| {
        let rate = rates.and_then(|rates| rates.readers.get(place).copied());
        (reader, "reader", "delivered", rate.flatten())
    });
    let mut rows: Vec<_> = of_writers.chain(of_readers).collect();
    rows.retain(|(endpoint, ..)| selection.has_topic(&endpoint.topic));
    rows.sort_by(|(a, end_a, _, rate_a), (b, end_b, _, rate_b)| {
        let order = selection.compare((a, *rate_a), (b, *rate_b));
        order.then(end_b.cmp(end_a))
    });
    for (endpoint, end, counted, per_s) in rows {
        // Omits the count that has its own column, the sum, and counts that grow in normal operation.
        let usual = [counted, "accounted", "sent", "heartbeats"];
        let mut counters = endpoint.ledger.clone();
        counters.retain(|name, _| !usual.contains(&name.as_str()));
        let latency = |of: fn(&LatencySample) -> Option<f64>| {
            let us = endpoint.latency.as_ref().and_then(of);
            us.map_or_else(none, |us| format!("{us:.1}"))
        };
        columns.row(vec![
            clean(&endpoint.topic),
            endpoint.level.to_string(),
            end.into(),
            grouped(endpoint.matched),
            rate(per_s),
            grouped(endpoint.ledger.get(counted).copied().unwrap_or(0)),
            latency(|latency| latency.median_us),
            latency(|latency| latency.p99_us),
            latency(|latency| latency.max_us),
            endpoint.deadline_missed.map_or_else(none, grouped),
            endpoint.missed_during.as_deref().map_or_else(none, clean),
            reasons(&counters),
        ]);
    }
    columns
}

fn flows(snapshot: &Snapshot, rates: Option<&Rates>, selection: &Selection) -> Columns {
    let mut columns = Columns::new(&[
        "flow", ">level", "of", "budget", "left", ">per s", "decided",
    ]);
    let mut rows: Vec<(&FlowSample, Option<f64>)> = snapshot
        .flows
        .iter()
        .enumerate()
        .map(|(place, flow)| {
            let rate = rates.and_then(|rates| rates.flows.get(place).copied());
            (flow, rate.flatten())
        })
        .collect();
    rows.retain(|(flow, _)| {
        selection.is_everything()
            || flow
                .topic
                .as_deref()
                .is_some_and(|it| selection.has_topic(it))
    });
    rows.sort_by_key(|(flow, _)| Reverse(flow.level));
    for (flow, per_s) in rows {
        let topic = flow.topic.as_deref();
        columns.row(vec![
            clean(&flow.destination),
            level(flow.level, "-"),
            topic.map_or_else(|| String::from("all"), clean),
            budget(flow),
            match (flow.left, flow.capacity) {
                (Some(left), Some(capacity)) => bar(left.into(), capacity.into()),
                _ => none(),
            },
            rate(per_s),
            reasons(&flow.decisions),
        ]);
    }
    columns
}

fn budget(flow: &FlowSample) -> String {
    let (Some(capacity), Some(period_us)) = (flow.capacity, flow.period_us) else {
        return none();
    };
    let period = std::time::Duration::from_nanos((period_us * 1e3).clamp(0.0, 1e15) as u64);
    let over = flow.over.as_deref().map_or_else(none, clean);
    format!(
        "{} in {}, {over}",
        grouped(capacity.into()),
        format_duration(period)
    )
}

fn rings(snapshot: &Snapshot) -> Columns {
    let mut columns = Columns::new(&["ring", ">queue", ">level", "used", ">missed"]);
    let mut rows: Vec<&RingSample> = snapshot.rings.iter().collect();
    rows.sort_by_key(|ring| (ring.queue, Reverse(ring.level)));
    for ring in rows {
        columns.row(vec![
            clean(&ring.kind),
            ring.queue.to_string(),
            level(ring.level, "all"),
            bar(ring.used.into(), ring.entries.into()),
            grouped(ring.missed),
        ]);
    }
    columns
}

fn jobs(snapshot: &Snapshot, rates: Option<&Rates>) -> Columns {
    let mut columns = Columns::new(&[
        "job",
        ">priority",
        ">per s",
        ">core %",
        ">longest us",
        ">response us",
        ">blocked us",
    ]);
    let mut rows: Vec<_> = snapshot.jobs.iter().enumerate().collect();
    rows.sort_by_key(|(_, job)| Reverse(job.priority));
    for (place, job) in rows {
        if job.activations == 0 {
            continue;
        }
        let rates = rates.and_then(|rates| rates.jobs.get(place));
        let share = rates.and_then(|rates| rates.share);
        columns.row(vec![
            clean(&job.name),
            job.priority.to_string(),
            rate(rates.and_then(|rates| rates.activations_per_s)),
            share.map_or_else(none, |share| format!("{:.1}", share * 100.0)),
            format!("{:.1}", job.execution_max_us),
            format!("{:.1}", job.response_max_us),
            format!("{:.1}", job.blocking_max_us),
        ]);
    }
    columns
}

fn frames(participant: &ParticipantSample) -> String {
    let ParticipantSample {
        frames_out,
        frames_armed,
        frames_lent,
        no_frame,
        imbalance,
        ..
    } = participant;
    let in_flight = frames_out.saturating_sub(frames_armed + frames_lent);
    let balance = if imbalance.is_none() {
        "; the ledger balances"
    } else {
        ""
    };
    format!(
        "  frames: {frames_armed} armed, {in_flight} in flight, {frames_lent} lent; no frame was free {} times{balance}",
        grouped(*no_frame)
    )
}

/// Amount `left` of the total `of`, as a bar and in numbers.
fn bar(left: u64, of: u64) -> String {
    const CELLS: u64 = 8;
    let full = (left.min(of) * CELLS).div_ceil(of.max(1)).min(CELLS);
    let cells: String = (0..CELLS)
        .map(|cell| if cell < full { '#' } else { '.' })
        .collect();
    format!("{cells} {} of {}", grouped(left), grouped(of))
}

fn level(level: Option<u8>, without: &str) -> String {
    level.map_or_else(|| without.to_owned(), |level| level.to_string())
}

/// Text of the counts that are not zero, with their names.
fn reasons(counts: &Counts) -> String {
    let counted = counts.iter().filter(|(_, count)| **count > 0);
    let words = counted.map(|(name, count)| format!("{} {}", grouped(*count), clean(name)));
    words.collect::<Vec<_>>().join(", ").replace('_', " ")
}

fn none() -> String {
    String::from("-")
}

/// Rate as text, with one decimal if it is less than 10.
fn rate(rate: Option<f64>) -> String {
    match rate {
        None => none(),
        Some(rate) if rate > 0.0 && rate < 9.95 => format!("{rate:.1}"),
        Some(rate) => grouped(rate.round().max(0.0) as u64),
    }
}

/// Number as text with thousands separators: 37,120.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Text of an untrusted name: one line, limited in length, without control characters.
fn clean(name: &str) -> String {
    shown(name, SHOWN_NAME_CHARACTERS)
}

fn shown(text: &str, characters: usize) -> String {
    let kept: String = text.chars().take(characters).collect();
    let mut shown: String = visible_line(&kept).chars().take(characters).collect();
    if text.chars().count() > characters {
        shown.push_str("...");
    }
    shown
}

/// Table of text: headings, and rows of cells.
struct Columns {
    /// Headings of the columns. A `>` at the beginning aligns the column to the right.
    heading: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Columns {
    /// Creates a table without rows.
    fn new(heading: &[&'static str]) -> Self {
        Self {
            heading: heading.to_vec(),
            rows: Vec::new(),
        }
    }

    fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.heading.len(), "{cells:?}");
        self.rows.push(cells);
    }

    /// Formats the heading and the rows as lines; `None` if there are no rows.
    fn lines(&self) -> Option<(String, Vec<String>)> {
        if self.rows.is_empty() {
            return None;
        }
        let heading: Vec<String> = self
            .heading
            .iter()
            .map(|word| word.trim_start_matches('>').to_uppercase())
            .collect();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| &row[column]);
            let cells = cells.chain([&heading[column]]);
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..heading.len()).map(width).collect();
        let line = |row: &Vec<String>| self.line(row, &widths);
        Some((line(&heading), self.rows.iter().map(line).collect()))
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cells = row.iter().zip(widths).zip(&self.heading);
        let aligned = cells.map(|((cell, width), heading)| match heading.starts_with('>') {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        let line: Vec<String> = aligned.collect();
        format!("  {}", line.join("  ")).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_says_of_itself_cannot_command_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\nc"), "a\\u001b[2Jb\\u000ac");
        let long = clean(&"x".repeat(500));
        assert_eq!(long.len(), SHOWN_NAME_CHARACTERS + 3);
    }

    #[test]
    fn rates_numbers_and_bars_are_for_people() {
        let said = [None, Some(0.0), Some(0.04), Some(9.94), Some(1_999.6)].map(rate);
        assert_eq!(said, ["-", "0", "0.0", "9.9", "2,000"]);
        assert_eq!(bar(12, 20), "#####... 12 of 20");
        assert_eq!(bar(0, 20), "........ 0 of 20");
        assert_eq!(bar(30, 20), "######## 30 of 20");
        assert_eq!(bar(0, 0), "........ 0 of 0");
    }

    #[test]
    fn reasons_that_did_not_occur_are_left_out() {
        let counts = [("queue_full", 1_200), ("budget", 0)];
        let counts = counts.map(|(name, count)| (name.to_owned(), count));
        assert_eq!(reasons(&counts.into()), "1,200 queue full");
    }

    #[test]
    fn numbers_stand_at_the_right_and_words_at_the_left() {
        let mut columns = Columns::new(&["topic", ">per s", "what"]);
        assert!(columns.lines().is_none());
        columns.row(vec!["Brake".into(), "2,000".into(), "ok".into()]);
        columns.row(vec!["É".into(), "7".into(), String::new()]);
        let (heading, rows) = columns.lines().expect("two rows");
        assert_eq!(heading, "  TOPIC  PER S  WHAT");
        assert_eq!(rows, ["  Brake  2,000  ok", "  É          7"]);
    }
}
