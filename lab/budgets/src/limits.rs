//! What each number may be: gates, which fail the command, and aims, which are printed.

use super::report::Report;
use super::ways::{HALVES, Half, ROUND_TRIP};

/// No path allocates after start: the allocator's time has no bound.
const ALLOCATIONS: f64 = 0.0;
/// No path calls a futex: whoever waits for a lock waits for another thread's worst case.
const LOCKS: f64 = 0.0;
/// Beyond what a path allows: rare events (housekeeping, announcements, the heartbeat of the timer,
/// which strace's slowness brings forward) are spread over few samples.
const SYSTEM_CALLS_TOLERANCE: f64 = 0.1;
/// The aim for each path: less than half of what Cyclone DDS takes (4,700 to publish, 6,200 to
/// receive).
const INSTRUCTIONS: f64 = 2_000.0;
/// What DDS may add to a round trip over bare AF_XDP, both ends together.
const INSTRUCTIONS_OVER_BARE: f64 = 6_000.0;
/// What a process with ten bounded topics of 1 KiB, not locked, has resident at most over sockets: pool of frames and
/// program included.
const RESIDENT_BYTES: f64 = 5.0 * 1_024.0 * 1_024.0;
/// The aim for the command, without symbols.
const BINARY_BYTES: f64 = 8.0 * 1_024.0 * 1_024.0;

/// Whether a number that is not within its limit fails the command, and whether it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Gate(bool),
    Aim(bool),
}

/// One number and what it may be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Limit {
    /// What was counted of what.
    what: String,
    is_gate: bool,
    value: f64,
    at_most: f64,
}

impl Limit {
    pub(super) fn holds(&self) -> bool {
        self.value <= self.at_most
    }

    pub(super) fn kept(&self) -> Kept {
        match self.is_gate {
            true => Kept::Gate(self.holds()),
            false => Kept::Aim(self.holds()),
        }
    }

    /// For people.
    pub(super) fn sentence(&self) -> String {
        let word = match self.kept() {
            Kept::Gate(true) => "holds",
            Kept::Gate(false) => "FAILS",
            Kept::Aim(true) => "met",
            Kept::Aim(false) => "aim missed",
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

/// Every number of a report beside its limit.
pub(super) fn of(report: &Report) -> Vec<Limit> {
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
        let is_same = |half: &&Half| (half.name, half.datapath) == (path.name, path.datapath);
        let half = HALVES.iter().find(is_same);
        let half = half.expect("a report is made of the halves");
        let name = |what| match path.datapath {
            "udp" => format!("{what}, {}", path.name),
            datapath => format!("{what}, {}, {datapath}", path.name),
        };
        add(name("allocations"), true, path.allocations, ALLOCATIONS);
        add(name("futex calls"), true, path.locks as f64, LOCKS);
        let calls_at_most = half.system_calls + SYSTEM_CALLS_TOLERANCE;
        add(name("system calls"), true, path.system_calls, calls_at_most);
        if let (Some(copies), Some(at_most)) = (path.payload_copies, half.copies) {
            add(name("payload copies"), true, copies, at_most);
        }
        match report.bare_round_trip_instructions {
            Some(bare) if half.way == ROUND_TRIP => {
                let added = path.instructions - bare;
                let what = name("instructions more than over bare AF_XDP");
                add(what, true, added, INSTRUCTIONS_OVER_BARE);
            }
            _ => add(name("instructions"), false, path.instructions, INSTRUCTIONS),
        }
    }
    let (resident, binary) = (report.resident_bytes as f64, report.binary_bytes as f64);
    add("resident bytes".into(), true, resident, RESIDENT_BYTES);
    add("binary bytes".into(), false, binary, BINARY_BYTES);
    limits
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::{path, report};
    use super::*;

    fn failing(report: &Report) -> Vec<String> {
        let limits = of(report).into_iter();
        let failing = limits.filter(|limit| limit.kept() == Kept::Gate(false));
        failing.map(|limit| limit.what).collect()
    }

    #[test]
    fn every_gate_fails_when_its_number_is_beyond() {
        assert_eq!(failing(&report(path())), [""; 0]);
        let mut beyond = path();
        beyond.allocations = 0.001;
        beyond.locks = 1;
        beyond.system_calls = 1.2;
        beyond.payload_copies = Some(1.0);
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
            (path.name, path.datapath) = ("round trip best-effort 64 B", "xdp");
            (path.instructions, path.payload_copies) = (instructions, None);
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
        costly.instructions = 3_000.0;
        let mut report = report(costly);
        report.binary_bytes = 100_000_000;
        assert_eq!(failing(&report), [""; 0]);
        let missed = of(&report)
            .iter()
            .filter(|limit| limit.kept() == Kept::Aim(false))
            .count();
        assert_eq!(missed, 2);
    }
}
