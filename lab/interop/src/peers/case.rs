//! What two ends measure.

use std::path::Path;

use isolane_bench::process::Cores;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scenario {
    /// Pings and pongs, one at a time, best effort.
    RoundTrip,
    /// A stream as fast as it goes.
    Throughput,
    /// A stream at [`RATE_HZ`], reliable.
    Load,
}

/// Samples a second under [`Scenario::Load`]: a busy topic that leaves the cores mostly idle.
const RATE_HZ: u32 = 10_000;
/// History of reliable topics everywhere: as many samples, or as many bytes if those are fewer.
const MAX_SAMPLES: u32 = 256;
const MAX_HISTORY_BYTES: u32 = 8 << 20;

/// One kind of run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) scenario: Scenario,
    pub(super) payload_bytes: u32,
    pub(super) is_reliable: bool,
    /// On how many cores the two ends are, 1 or 2.
    pub(super) cores: u8,
}

/// The two ends of a run: which starts first and is written to, and which writes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Pong, or reader.
    Answering,
    /// Ping, or writer.
    Beginning,
}

impl Case {
    /// All cases.
    pub(super) fn all() -> Vec<Self> {
        let round_trip = |payload_bytes, cores| Self {
            scenario: Scenario::RoundTrip,
            payload_bytes,
            is_reliable: false,
            cores,
        };
        let throughput = |payload_bytes, is_reliable| Self {
            scenario: Scenario::Throughput,
            payload_bytes,
            is_reliable,
            cores: 2,
        };
        vec![
            round_trip(32, 1),
            round_trip(1024, 1),
            round_trip(32, 2),
            round_trip(1024, 2),
            throughput(32, true),
            throughput(1024, true),
            throughput(8192, true),
            throughput(65_000, true),
            throughput(1 << 20, true),
            throughput(32, false),
            throughput(1024, false),
            Self {
                scenario: Scenario::Load,
                payload_bytes: 1024,
                is_reliable: true,
                cores: 2,
            },
        ]
    }

    /// One case of each scenario.
    pub(super) fn smoke() -> Vec<Self> {
        let mut cases = Self::all();
        cases.retain(|case| {
            let is_first = case.cores == 1 || case.scenario != Scenario::RoundTrip;
            case.payload_bytes == 1024
                && is_first
                && case.is_reliable == (case.scenario != Scenario::RoundTrip)
        });
        cases
    }

    /// For people.
    pub(super) fn name(self) -> String {
        let scenario = match self.scenario {
            Scenario::RoundTrip => "round trips",
            Scenario::Throughput => "throughput",
            Scenario::Load => "10 kHz",
        };
        let reliability = self.reliability();
        let cores = if self.cores == 1 { "core" } else { "cores" };
        let bytes = self.payload_bytes;
        format!("{scenario} {bytes} B {reliability}, {} {cores}", self.cores)
    }

    pub(super) fn reliability(self) -> &'static str {
        match self.is_reliable {
            true => "reliable",
            false => "best-effort",
        }
    }

    /// The core of an end.
    pub(super) fn core(self, role: Role, cores: Cores) -> usize {
        match (role, self.cores) {
            (Role::Answering, 2) => cores.cable,
            _ => cores.hosts,
        }
    }

    /// The arguments of an end: `lab/interop/measured/end.h`.
    pub(super) fn arguments(self, role: Role, seconds: u32, samples_file: &Path) -> Vec<String> {
        let word = match (self.scenario, role) {
            (Scenario::RoundTrip, Role::Beginning) => "ping",
            (Scenario::RoundTrip, Role::Answering) => "pong",
            (_, Role::Beginning) => "writer",
            (_, Role::Answering) => "reader",
        };
        let mut arguments = vec![word.to_owned(), format!("--{}", self.reliability())];
        let mut option = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
        option("--payload-bytes", self.payload_bytes.to_string());
        let max_samples = MAX_SAMPLES.min(MAX_HISTORY_BYTES / self.payload_bytes);
        option("--max-samples", max_samples.to_string());
        option("--seconds", seconds.to_string());
        if self.scenario == Scenario::Load && role == Role::Beginning {
            option("--rate-hz", RATE_HZ.to_string());
        }
        if word == "ping" {
            option("--samples-file", samples_file.display().to_string());
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smoke_has_each_scenario_once() {
        let scenarios = Case::smoke()
            .iter()
            .map(|case| case.scenario)
            .collect::<Vec<_>>();
        assert_eq!(
            scenarios,
            [Scenario::RoundTrip, Scenario::Throughput, Scenario::Load]
        );
    }

    #[test]
    fn the_ends_differ_in_role_and_core_only() {
        let cores = Cores { hosts: 0, cable: 1 };
        for case in Case::all() {
            let of = |role| case.arguments(role, 2, Path::new("samples"));
            let (begins, answers) = (of(Role::Beginning), of(Role::Answering));
            assert_eq!(begins[1..8], answers[1..8], "{case:?}");
            assert_eq!(case.core(Role::Beginning, cores), 0);
            assert_eq!(
                case.core(Role::Answering, cores),
                usize::from(case.cores) - 1
            );
        }
    }
}
