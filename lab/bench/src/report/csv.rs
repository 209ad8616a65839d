//! Result as comma-separated values (RFC 4180): a line for each run.

use serde_json::{Map, Value};

use super::{Report, Run};

/// Members of a run that become columns. A nested member becomes a column for each of its members.
const MEMBERS: [&str; 14] = [
    "number",
    "repetition",
    "samples",
    "lost",
    "late_sends",
    "duplicates",
    "rtt_us",
    "host_us",
    "owd_us",
    "cable_us",
    "inversions",
    "counters",
    "invalid",
    "unexpected",
];

/// Table of all runs, with a line of names. An unknown value is an empty field.
pub fn csv(report: &Report) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut names: Option<Vec<String>> = None;
    for run in &report.runs {
        let fields = fields(report, run);
        // Writing to memory cannot fail.
        if names.is_none() {
            let of_run: Vec<String> = fields.iter().map(|(name, _)| name.clone()).collect();
            let _ = writer.write_record(&of_run);
            names = Some(of_run);
        }
        let _ = writer.write_record(fields.iter().map(|(_, value)| value));
    }
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// Names and values of a run. All runs have the same names: an unavailable value is an empty field.
fn fields(report: &Report, run: &Run) -> Vec<(String, String)> {
    let block = run
        .block
        .and_then(|index| report.scenario.blocks.get(index));
    let block = block.map_or_else(String::new, |block| block.name.clone());
    let mut fields = vec![("block".to_owned(), block)];
    let cell = serde_json::to_value(run.cell.clone().unwrap_or_default());
    flatten("", &cell.unwrap_or_default(), &mut fields);
    let Ok(Value::Object(mut members)) = serde_json::to_value(run) else {
        return fields;
    };
    for name in MEMBERS {
        flatten(name, &members.remove(name).unwrap_or_default(), &mut fields);
    }
    let first = fields.len();
    let stream = serde_json::to_value(run.stream.clone().unwrap_or_default());
    flatten("stream", &stream.unwrap_or_default(), &mut fields);
    if run.stream.is_none() {
        fields[first..]
            .iter_mut()
            .for_each(|(_, value)| value.clear());
    }
    fields
}

fn flatten(name: &str, value: &Value, fields: &mut Vec<(String, String)>) {
    let text = match value {
        Value::Object(members) => return of_members(name, members, fields),
        Value::Array(values) => values
            .iter()
            .map(Value::to_string)
            .collect::<Vec<_>>()
            .join(" "),
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        number => number.to_string(),
    };
    fields.push((name.to_owned(), text));
}

fn of_members(name: &str, members: &Map<String, Value>, fields: &mut Vec<(String, String)>) {
    for (member, value) in members {
        let name = match name {
            "" => member.clone(),
            name => format!("{name}.{member}"),
        };
        flatten(&name, value, fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{ORDERS, report};

    #[test]
    fn each_run_is_a_line_with_as_many_fields_as_there_are_names() {
        let mut report = report(ORDERS, |_| 300);
        report.runs[1].invalid = Some("3 frames, \"late\"".into());
        let text = csv(&report);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let names = reader.headers().expect("names").clone();
        let at = |name: &str| names.iter().position(|known| known == name).expect(name);
        let lines: Vec<_> = reader.records().map(|line| line.expect("a line")).collect();
        assert_eq!(lines.len(), report.runs.len());
        assert_eq!(&lines[0][at("block")], "orders");
        assert_eq!(&lines[0][at("disturbance")], "none");
        assert_eq!(&lines[0][at("rtt_us.median")], "200.0");
        assert_eq!(&lines[0][at("rtt_us.p99_9")], "", "too few samples");
        assert_eq!(&lines[1][at("invalid")], "3 frames, \"late\"");
    }
}
