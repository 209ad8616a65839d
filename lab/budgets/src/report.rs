//! The results as `isolane/budgets/1`, and as a table for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use isolane_support::{Result, json};

/// The name of the schema and its version.
const SCHEMA: &str = "isolane/budgets/1";

/// One path, all numbers a sample, futex calls apart.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PathReport {
    pub(super) name: &'static str,
    pub(super) datapath: &'static str,
    pub(super) instructions: f64,
    pub(super) allocations: f64,
    /// Futex calls in a hundred thousand samples.
    pub(super) locks: u64,
    /// Of samples large enough to tell.
    pub(super) payload_copies: Option<f64>,
    pub(super) system_calls: f64,
    /// The same by name.
    pub(super) by_call: BTreeMap<String, f64>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    schema: &'static str,
    pub(super) paths: Vec<PathReport>,
    /// Instructions of a round trip over bare AF_XDP, both ends: what a round trip by lane is
    /// compared with. None where lanes were not counted.
    pub(super) bare_round_trip_instructions: Option<f64>,
    /// Of a process with ten topics, its pool of frames included.
    pub(super) resident_bytes: u64,
    /// Of the command, stripped.
    pub(super) binary_bytes: u64,
}

impl Report {
    pub(super) fn new(
        paths: Vec<PathReport>,
        bare_round_trip_instructions: Option<f64>,
        resident_bytes: u64,
        binary_bytes: u64,
    ) -> Self {
        Self {
            schema: SCHEMA,
            paths,
            bare_round_trip_instructions,
            resident_bytes,
            binary_bytes,
        }
    }

    /// Writes the JSON to a file, or to standard output if that is `-`.
    pub(super) fn write(&self, file: &Path) -> Result<()> {
        json::write(self, file)
    }

    /// One line a path.
    pub(super) fn table(&self) -> String {
        let mut text = format!(
            "\n{:37} {:>12} {:>11} {:>6} {:>7} {:>7}\n",
            "a sample", "instructions", "allocations", "locks", "copies", "calls"
        );
        // Writing to a string cannot fail.
        for path in &self.paths {
            let copies = path.payload_copies.map(|copies| format!("{copies:.2}"));
            let _ = writeln!(
                text,
                "{:37} {:>12.0} {:>11.2} {:>6} {:>7} {:>7.2}",
                format!("{}, {}", path.name, path.datapath),
                path.instructions,
                path.allocations,
                path.locks,
                copies.as_deref().unwrap_or("-"),
                path.system_calls
            );
        }
        if let Some(instructions) = self.bare_round_trip_instructions {
            let what = "round trip, bare AF_XDP";
            let _ = writeln!(text, "{what:37} {instructions:>12.0}");
        }
        let mib = |bytes: u64| bytes as f64 / 1_024.0 / 1_024.0;
        let _ = writeln!(
            text,
            "{:.2} MiB resident with ten topics, frames included; the command has {:.2} MiB, stripped",
            mib(self.resident_bytes),
            mib(self.binary_bytes)
        );
        text
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A path within all its limits.
    pub(crate) fn path() -> PathReport {
        PathReport {
            name: "write best-effort 1 KiB",
            datapath: "udp",
            instructions: 830.0,
            allocations: 0.0,
            locks: 0,
            payload_copies: Some(0.0),
            system_calls: 1.0,
            by_call: [("sendmmsg".to_owned(), 1.0)].into(),
        }
    }

    pub(crate) fn report(path: PathReport) -> Report {
        Report::new(vec![path], None, 4_000_000, 8_000_000)
    }

    #[test]
    fn a_count_that_there_is_none_of_is_null() {
        let mut small = path();
        small.payload_copies = None;
        let report = report(small);
        let value = serde_json::to_value(&report).unwrap();
        assert_eq!(value["schema"], "isolane/budgets/1");
        let path = value["paths"][0].as_object().unwrap();
        assert!(path["payload_copies"].is_null());
        for key in [
            "name",
            "datapath",
            "instructions",
            "allocations",
            "locks",
            "system_calls",
        ] {
            assert!(!path[key].is_null(), "{key}");
        }
        assert!(report.table().contains("write best-effort 1 KiB"));
    }
}
