//! Results as `isolane/budgets/1` and as a table, and their limits. A limit is a gate, which fails the command, or an
//! aim, which is only printed.

use std::fmt::Write as _;

use serde::Serialize;

use super::paths::{Half, ROUND_TRIP};
use super::tools::Counts;

/// Schema of the JSON.
const SCHEMA: &str = "isolane/budgets/1";

/// Costs of one row.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PathReport {
    #[serde(flatten)]
    pub(super) half: &'static Half,
    /// Costs of a sample.
    #[serde(flatten)]
    pub(super) counts: Counts,
    /// Futex calls in a hundred thousand samples.
    pub(super) locks: u64,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    schema: &'static str,
    pub(super) paths: Vec<PathReport>,
    /// Instructions of a round trip over bare AF_XDP, both ends together, for comparison with a round trip by lane.
    /// `None` if lanes were not counted.
    pub(super) bare_round_trip_instructions: Option<f64>,
    /// Resident memory of a process with ten topics, frame pool included.
    pub(super) resident_bytes: u64,
    /// Size of the stripped command.
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

    /// Formats the table, with one line for each row.
    pub(super) fn table(&self) -> String {
        let mut text = format!(
            "\n{:37} {:>12} {:>11} {:>6} {:>7} {:>7}\n",
            "a sample", "instructions", "allocations", "locks", "copies", "calls"
        );
        for path in &self.paths {
            let counts = &path.counts;
            let copies = counts.payload_copies.map(|copies| format!("{copies:.2}"));
            let _ = writeln!(
                text,
                "{:37} {:>12.0} {:>11.2} {:>6} {:>7} {:>7.2}",
                format!("{}, {}", path.half.name, path.half.datapath),
                counts.instructions,
                counts.allocations,
                path.locks,
                copies.as_deref().unwrap_or("-"),
                counts.system_calls
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

/// No path allocates after start, because the time of an allocation has no bound.
const ALLOCATIONS: f64 = 0.0;
/// No path calls a futex, because a thread may wait for a lock as long as the holder's worst case.
const LOCKS: f64 = 0.0;
/// Tolerance above a path's limit. Housekeeping, announcements and periodic HEARTBEATs add calls to a few samples. They
/// are more frequent under strace, which makes each sample take longer.
const SYSTEM_CALLS_TOLERANCE: f64 = 0.1;
/// Aim for each path: fewer than half of Cyclone DDS's instructions, which are 4,700 to publish and 6,200 to receive.
const INSTRUCTIONS: f64 = 2_000.0;
/// Maximum number of instructions that DDS adds to a round trip over bare AF_XDP, both ends together.
const INSTRUCTIONS_OVER_BARE: f64 = 6_000.0;
/// Maximum resident memory of a process with ten bounded topics of 1 KiB over sockets, including frame pool and
/// program. The memory is not locked.
const RESIDENT_BYTES: f64 = 5.0 * 1_024.0 * 1_024.0;
/// Aim for the size of the command without symbols.
const BINARY_BYTES: f64 = 8.0 * 1_024.0 * 1_024.0;

/// Counted number and its limit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Limit {
    /// Counted quantity and its subject.
    what: String,
    /// A gate that does not hold fails the command.
    pub(super) is_gate: bool,
    value: f64,
    at_most: f64,
}

impl Limit {
    pub(super) fn holds(&self) -> bool {
        self.value <= self.at_most
    }

    /// Formats a line about the number and its limit.
    pub(super) fn sentence(&self) -> String {
        let word = match (self.is_gate, self.holds()) {
            (true, true) => "holds",
            (true, false) => "FAILS",
            (false, true) => "met",
            (false, false) => "aim missed",
        };
        let Self {
            what,
            value,
            at_most,
            ..
        } = self;
        format!("{word}: {what}: {value:.2}, at most {at_most:.2}")
    }
}

/// Returns all numbers of a report with their limits.
pub(super) fn limits_of(report: &Report) -> Vec<Limit> {
    let mut limits = Vec::new();
    let mut add = |what: String, is_gate, value, at_most| {
        limits.push(Limit {
            what,
            is_gate,
            value,
            at_most,
        });
    };
    for path in &report.paths {
        let PathReport { half, counts, .. } = path;
        let name = |what| match half.datapath {
            "udp" => format!("{what}, {}", half.name),
            datapath => format!("{what}, {}, {datapath}", half.name),
        };
        add(name("allocations"), true, counts.allocations, ALLOCATIONS);
        add(name("futex calls"), true, path.locks as f64, LOCKS);
        let calls_at_most = half.system_calls + SYSTEM_CALLS_TOLERANCE;
        let calls = counts.system_calls;
        add(name("system calls"), true, calls, calls_at_most);
        if let (Some(copies), Some(at_most)) = (counts.payload_copies, half.copies) {
            add(name("payload copies"), true, copies, at_most);
        }
        match report.bare_round_trip_instructions {
            Some(bare) if half.path == ROUND_TRIP => {
                let added = counts.instructions - bare;
                let what = name("instructions more than over bare AF_XDP");
                add(what, true, added, INSTRUCTIONS_OVER_BARE);
            }
            _ => {
                let instructions = counts.instructions;
                add(name("instructions"), false, instructions, INSTRUCTIONS);
            }
        }
    }
    let (resident, binary) = (report.resident_bytes as f64, report.binary_bytes as f64);
    add("resident bytes".into(), true, resident, RESIDENT_BYTES);
    add("binary bytes".into(), false, binary, BINARY_BYTES);
    limits
}

#[cfg(test)]
mod tests {
    use super::super::paths::HALVES;
    use super::*;

    fn half(name: &str, datapath: &str) -> &'static Half {
        let is_it = |half: &&Half| half.name == name && half.datapath == datapath;
        HALVES.iter().find(is_it).expect("a row of the report")
    }

    /// Costs that are within all limits.
    fn path() -> PathReport {
        PathReport {
            half: half("write best-effort 1 KiB", "udp"),
            counts: Counts {
                instructions: 830.0,
                allocations: 0.0,
                payload_copies: Some(0.0),
                system_calls: 1.0,
                by_call: [("sendmmsg".to_owned(), 1.0)].into(),
            },
            locks: 0,
        }
    }

    fn report(path: PathReport) -> Report {
        Report::new(vec![path], None, 4_000_000, 8_000_000)
    }

    #[test]
    fn a_count_that_there_is_none_of_is_null() {
        let mut small = path();
        small.counts.payload_copies = None;
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

    fn failing(report: &Report) -> Vec<String> {
        let limits = limits_of(report).into_iter();
        let failing = limits.filter(|limit| limit.is_gate && !limit.holds());
        failing.map(|limit| limit.what).collect()
    }

    #[test]
    fn every_gate_fails_when_its_number_is_beyond() {
        assert_eq!(failing(&report(path())), [""; 0]);
        let mut beyond = path();
        beyond.counts.allocations = 0.001;
        beyond.locks = 1;
        beyond.counts.system_calls = 1.2;
        beyond.counts.payload_copies = Some(1.0);
        let expected = [
            "allocations",
            "futex calls",
            "system calls",
            "payload copies",
        ];
        assert_eq!(
            failing(&report(beyond)),
            expected.map(|what| format!("{what}, write best-effort 1 KiB"))
        );
    }

    #[test]
    fn a_lane_costs_no_more_than_its_share_beyond_bare_af_xdp() {
        let round_trip = |instructions| {
            let mut path = path();
            path.half = half("round trip best-effort 64 B", "xdp");
            path.counts.instructions = instructions;
            path.counts.payload_copies = None;
            let mut report = report(path);
            report.bare_round_trip_instructions = Some(1_200.0);
            failing(&report)
        };
        assert_eq!(round_trip(7_200.0), [""; 0]);
        let expected = "instructions more than over bare AF_XDP, round trip best-effort 64 B, xdp";
        assert_eq!(round_trip(7_201.0), [expected]);
    }

    #[test]
    fn ten_topics_keep_to_their_memory() {
        let mut report = report(path());
        report.resident_bytes = 5 << 20;
        assert_eq!(failing(&report), [""; 0]);
        report.resident_bytes += 1;
        assert_eq!(failing(&report), ["resident bytes"]);
    }

    #[test]
    fn an_aim_that_is_missed_fails_nothing() {
        let mut costly = path();
        costly.counts.instructions = 3_000.0;
        let mut report = report(costly);
        report.binary_bytes = 100_000_000;
        assert_eq!(failing(&report), [""; 0]);
        let missed = limits_of(&report)
            .iter()
            .filter(|limit| !limit.is_gate && !limit.holds())
            .count();
        assert_eq!(missed, 2);
    }
}
