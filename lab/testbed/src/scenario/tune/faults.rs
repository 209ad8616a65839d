//! Judgement of a guest's result.

use std::collections::{BTreeMap, BTreeSet};

use isolane_bench::report::aligned;
use serde_json::Value;

use super::super::range;
use super::{BY_LANE, CRITICAL_LEVEL, CRITICAL_QUEUE, Crossing, Record};
use crate::inside::tools::Counters;

/// Queue of ordinary frames.
const ORDINARY_QUEUE: u32 = 0;
/// Upper bound of the kernel's own frames at the highest priority: IGMP reports of the multicast groups that a
/// participant joins and leaves. The other end is no member, so it receives none of these reports.
const MOST_OF_KERNEL: u64 = 10;

/// Number of fields of a host's facts.
pub(super) fn count(facts: &Value) -> usize {
    let is_container = |value: &Value| value.is_array() || value.is_object();
    let fields = fields(facts);
    fields.values().filter(|value| !is_container(value)).count()
}

/// Fields of a host's facts by their JSON pointers (RFC 6901). An empty array or object is a field too.
fn fields(facts: &Value) -> BTreeMap<String, &Value> {
    let mut fields = BTreeMap::new();
    add_fields(String::new(), facts, &mut fields);
    fields
}

fn add_fields<'a>(path: String, value: &'a Value, fields: &mut BTreeMap<String, &'a Value>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (key, member) in members {
                add_fields(format!("{path}/{key}"), member, fields);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (number, item) in items.iter().enumerate() {
                add_fields(format!("{path}/{number}"), item, fields);
            }
        }
        _ => {
            fields.insert(path, value);
        }
    }
}

/// Fields that differ, with both values. A field that is absent has the value null.
pub(super) fn differences(before: &Value, after: &Value) -> Vec<String> {
    let (old, new) = (fields(before), fields(after));
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let differences = paths.into_iter().filter_map(|path| {
        let [old, new] = [&old, &new].map(|of| of.get(path).copied().unwrap_or(&Value::Null));
        (old != new).then(|| format!("{path}: {old} -> {new}"))
    });
    differences.collect()
}

/// Objections to the result.
pub(super) fn faults(record: &Record) -> Vec<String> {
    let mut faults = Vec::new();
    for ran in &record.commands {
        if ran.exit_code != Some(ran.expected) {
            faults.push(format!(
                "host {}: `isolane {}` ended with {:?}, not {}: {} {}",
                ran.host,
                ran.line,
                ran.exit_code,
                ran.expected,
                ran.said.trim(),
                ran.printed.trim()
            ));
        }
    }
    faults.extend(record.crossings.iter().flat_map(landed_elsewhere));
    for difference in &record.differences {
        faults.push(format!("not as it was found: host {difference}"));
    }
    faults
}

/// Frames that crossed a queue of another class, and samples that did not use a lane.
fn landed_elsewhere(crossing: &Crossing) -> Vec<String> {
    let is_critical = crossing.level == CRITICAL_LEVEL;
    let mut faults = Vec::new();
    let ways = [
        ("rx", &crossing.received, 0),
        ("tx", &crossing.sent, MOST_OF_KERNEL),
    ];
    for (way, counters, most_others) in ways {
        let critical = frames(counters, way, CRITICAL_QUEUE);
        let ordinary = frames(counters, way, ORDINARY_QUEUE);
        let (own, others) = match is_critical {
            true => (critical, ordinary),
            false => (ordinary, critical),
        };
        if own < crossing.samples || others > most_others {
            faults.push(format!(
                "{} by {}, {} samples of level {}: {way}: {critical} frames on queue {CRITICAL_QUEUE}, \
                 {ordinary} on queue {ORDINARY_QUEUE}",
                crossing.topic, crossing.datapath, crossing.samples, crossing.level
            ));
        }
    }
    if crossing.datapath == BY_LANE && crossing.by_lane != Some(crossing.samples) {
        faults.push(format!(
            "{}: {:?} of {} datagrams came by the lane",
            crossing.topic, crossing.by_lane, crossing.samples
        ));
    }
    faults
}

fn frames(counters: &Counters, way: &str, number: u32) -> u64 {
    counters.get(&queue(way, number)).copied().unwrap_or(0)
}

/// Number of datagrams that a subscriber received by its lane, from its final report.
pub(super) fn by_lane(said: &str) -> Option<u64> {
    let (before, _) = said.split_once(" received_by_lane")?;
    before.split_whitespace().next_back()?.parse().ok()
}

fn queue(way: &str, number: u32) -> String {
    format!("{way}_queue_{number}_packets")
}

/// Table of the crossings: each count is its range over these seeds.
pub(super) fn table(records: &[&Record]) -> String {
    let headings = [
        "topic",
        "level",
        "received by",
        "rx 0",
        "rx 1",
        "tx 0",
        "tx 1",
        "by lane",
    ];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    let crossings = records.first().map_or(&[][..], |record| &record.crossings);
    for crossing in crossings {
        let is_same = |other: &&Crossing| {
            (&other.topic, &other.datapath) == (&crossing.topic, &crossing.datapath)
        };
        // A dash stands for a count that a seed lacks.
        let counts = |count: &dyn Fn(&Crossing) -> Option<u64>| {
            let of_seeds = records.iter().map(|record| {
                let crossing = record.crossings.iter().find(is_same)?;
                Some(count(crossing)? as f64)
            });
            let counts = of_seeds.collect::<Option<Vec<f64>>>();
            range(counts.unwrap_or_default().into_iter(), 0)
        };
        let level = crossing.level.to_string();
        let mut row = vec![crossing.topic.clone(), level, crossing.datapath.clone()];
        for number in [ORDINARY_QUEUE, CRITICAL_QUEUE] {
            row.push(counts(&|of| Some(frames(&of.received, "rx", number))));
        }
        for number in [ORDINARY_QUEUE, CRITICAL_QUEUE] {
            row.push(counts(&|of| Some(frames(&of.sent, "tx", number))));
        }
        row.push(counts(&|of| of.by_lane));
        rows.push(row);
    }
    aligned(&rows, 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::tune::host::Ran;
    use serde_json::json;

    const SAMPLES: u64 = 200;

    fn crossing(level: u8, received: u32, sent: u32) -> Crossing {
        let frames = |way: &str, number| Counters::from([(queue(way, number), SAMPLES)]);
        Crossing {
            topic: "Request".into(),
            level,
            datapath: "udp".into(),
            samples: SAMPLES,
            from: "a".into(),
            to: "b".into(),
            received: frames("rx", received),
            sent: frames("tx", sent),
            by_lane: None,
        }
    }

    #[test]
    fn what_is_critical_has_its_queue_and_nothing_else_has() {
        let faults =
            |level, received, sent| landed_elsewhere(&crossing(level, received, sent)).len();
        assert_eq!(faults(7, 1, 1), 0);
        assert_eq!(faults(0, 0, 0), 0);
        assert_eq!(faults(7, 0, 1), 1);
        assert_eq!(faults(7, 1, 0), 1);
        assert_eq!(faults(0, 1, 0), 1);
        assert_eq!(faults(0, 0, 1), 1);
        let mut few = crossing(7, 1, 1);
        few.received.insert(queue("rx", 1), SAMPLES - 1);
        assert_eq!(landed_elsewhere(&few).len(), 1, "samples that never came");
        let mut one = crossing(0, 0, 0);
        one.received.insert(queue("rx", 1), 1);
        assert_eq!(landed_elsewhere(&one).len(), 1, "one is too many");
    }

    #[test]
    fn what_comes_to_a_lane_comes_by_it() {
        let said =
            "level 7: received 200 of 200; sent 0 of 0; 200 received_by_lane\nengine: 200 messages";
        assert_eq!(by_lane(said), Some(200));
        assert_eq!(by_lane("level 7: received 200 of 200"), None);
        let mut crossing = crossing(7, 1, 1);
        crossing.datapath = BY_LANE.into();
        assert_eq!(landed_elsewhere(&crossing).len(), 1);
        crossing.by_lane = Some(SAMPLES);
        assert_eq!(landed_elsewhere(&crossing).len(), 0);
    }

    #[test]
    fn a_count_is_its_range_over_the_seeds_or_a_dash() {
        let record = |received, by_lane| Record {
            crossings: vec![Crossing {
                received: Counters::from([(queue("rx", 1), received)]),
                by_lane,
                ..crossing(7, 1, 1)
            }],
            ..Record::default()
        };
        let row = |records: &[&Record]| {
            let table = table(records);
            let row = table.lines().nth(1).expect("a row");
            row.split("  ")
                .map(|cell| cell.trim().to_owned())
                .filter(|cell| !cell.is_empty())
                .collect::<Vec<_>>()
        };
        let (first, second) = (record(200, Some(200)), record(201, None));
        assert_eq!(
            row(&[&first]),
            ["Request", "7", "udp", "0", "200", "0", "200", "200"]
        );
        assert_eq!(
            row(&[&first, &second])[4..],
            ["200 to 201", "0", "200", "-"]
        );
    }

    #[test]
    fn fields_are_compared_wherever_they_are() {
        let before = json!({"a": [1, {"b": "x"}], "c": null});
        assert_eq!(count(&before), 3);
        assert!(differences(&before, &before).is_empty());
        let after = json!({"a": [1, {"b": "y"}], "d": 4});
        let found = differences(&before, &after);
        assert_eq!(found, ["/a/1/b: \"x\" -> \"y\"", "/d: null -> 4"]);
        assert_eq!(differences(&json!([1]), &json!([1, 2])).len(), 1);
    }

    #[test]
    fn a_command_that_fails_is_a_fault_with_its_words() {
        let ran = |line: &str, exit_code, expected| Ran {
            host: "a".into(),
            line: line.into(),
            exit_code: Some(exit_code),
            expected,
            printed: String::new(),
            said: "no such queue".into(),
        };
        let record = Record {
            commands: vec![
                ran("tune apply", 3, 0),
                ran("tune plan", 0, 0),
                ran("tune answer", 130, 130),
            ],
            differences: vec!["a: /x: 1 -> 2".into()],
            ..Record::default()
        };
        let faults = faults(&record);
        assert_eq!(faults.len(), 2);
        assert!(faults[0].contains("no such queue"));
    }
}
