//! Measured cases, and the compared systems with their settings and programs.

use std::fs;
use std::path::{Path, PathBuf};

use isolane_bench::process::Cores;
use isolane_support::Result;
use isolane_support::workspace::Metadata;
use serde::Serialize;

use crate::foreign;

/// Kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scenario {
    /// Ping and pong, one at a time, best effort.
    RoundTrip,
    /// A stream at full speed.
    Throughput,
    /// A stream at [`RATE_HZ`], reliable.
    Load,
}

/// Samples a second under [`Scenario::Load`]: a busy topic that leaves the cores mostly idle.
const RATE_HZ: u32 = 10_000;
/// History depth of reliable topics in every system, in samples, unless a byte limit is lower.
const MAX_SAMPLES: u32 = 256;
const MAX_HISTORY_BYTES: u32 = 8 << 20;

/// Scenario with its payload, cores and other parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) scenario: Scenario,
    pub(super) payload_bytes: u32,
    pub(super) is_reliable: bool,
    /// Number of cores that the two ends share, 1 or 2.
    pub(super) cores: u8,
}

/// The ends of a run: the answering one starts first and is written to; the beginning one writes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Pong, or reader.
    Answering,
    /// Ping, or writer.
    Beginning,
}

impl Case {
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

    /// One case of each scenario, for a smoke test.
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

    /// Name in the table.
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

    pub(super) fn core(self, role: Role, cores: Cores) -> usize {
        match (role, self.cores) {
            (Role::Answering, 2) => cores.cable,
            _ => cores.hosts,
        }
    }

    /// Arguments of an end (`lab/interop/measured/end.h`).
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

/// Settings of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Setting {
    /// Defaults of the implementation.
    Defaults,
    /// Settings that the implementation's documentation recommends for the scenario.
    Best,
}

/// A system at one setting, with its program.
#[derive(Debug)]
pub(super) struct System {
    /// Name, version and datapath, as in the JSON: "cyclonedds 0.10.2 udp".
    pub(super) identity: String,
    pub(super) setting: Setting,
    /// Description of what the setting changes.
    pub(super) setting_is: String,
    /// Program of one end.
    pub(super) program: PathBuf,
    /// Arguments of this system and setting, after those of the case.
    pub(super) arguments: &'static [&'static str],
}

/// Socket buffers of `lab/interop/measured/fastdds/end.cpp` at the best setting, as Fast DDS's documentation
/// recommends. The kernel caps them at `net.core.rmem_max` and `wmem_max`.
const FASTDDS_BUFFER_BYTES: u64 = 12_582_912;

/// Index of a system in [`System::build_all`].
pub(super) type Place = usize;

const ISOLANE_UDP: Place = 0;
const ISOLANE_UDP_BEST: Place = 1;
const ISOLANE_XDP: Place = 2;
const CYCLONEDDS: Place = 3;
const CYCLONEDDS_BEST: Place = 4;
const FASTDDS: Place = 5;
const FASTDDS_BEST: Place = 6;

impl System {
    /// Number of systems; each setting of an implementation counts as one.
    pub(super) const COUNT: usize = 7;

    /// Systems that run in a scenario. The throughput settings run in [`Scenario::Throughput`] only, because the
    /// defaults are best in the others.
    pub(super) fn in_scenario(scenario: Scenario) -> Vec<Place> {
        match scenario {
            Scenario::Throughput => (0..Self::COUNT).collect(),
            Scenario::RoundTrip | Scenario::Load => {
                vec![ISOLANE_UDP, CYCLONEDDS, FASTDDS, ISOLANE_XDP]
            }
        }
    }

    /// Pairs of systems (isolane, other) whose ratio is reported in a scenario. The first pair has an aim.
    pub(super) fn compared(scenario: Scenario) -> &'static [(Place, Place)] {
        match scenario {
            Scenario::Throughput => &[
                (ISOLANE_UDP_BEST, CYCLONEDDS_BEST),
                (ISOLANE_UDP, CYCLONEDDS_BEST),
                (ISOLANE_UDP, CYCLONEDDS),
                (ISOLANE_UDP_BEST, FASTDDS_BEST),
                (ISOLANE_UDP, FASTDDS_BEST),
                (ISOLANE_UDP, FASTDDS),
                (ISOLANE_XDP, CYCLONEDDS_BEST),
                (ISOLANE_XDP, FASTDDS_BEST),
                (ISOLANE_XDP, ISOLANE_UDP_BEST),
            ],
            Scenario::RoundTrip | Scenario::Load => &[
                (ISOLANE_UDP, CYCLONEDDS),
                (ISOLANE_UDP, FASTDDS),
                (ISOLANE_XDP, CYCLONEDDS),
                (ISOLANE_XDP, FASTDDS),
                (ISOLANE_XDP, ISOLANE_UDP),
            ],
        }
    }

    /// Returns true for the best setting of a system in a scenario, against which ratios are quoted. Outside of
    /// throughput these are the defaults.
    pub(super) fn is_best(place: Place, scenario: Scenario) -> bool {
        let has_better = [ISOLANE_UDP, CYCLONEDDS, FASTDDS].contains(&place);
        scenario != Scenario::Throughput || !has_better
    }

    /// Returns true for Cyclone DDS, against which aims are set.
    pub(super) fn is_cyclonedds(place: Place) -> bool {
        [CYCLONEDDS, CYCLONEDDS_BEST].contains(&place)
    }

    /// Returns true for isolane over lanes.
    pub(super) fn is_by_lane(place: Place) -> bool {
        place == ISOLANE_XDP
    }

    /// Builds all programs that cargo does not build. A missing system is an error that names it.
    pub(super) fn build_all(metadata: &Metadata) -> Result<[Self; Self::COUNT]> {
        let sources = metadata.workspace_root.join("lab/interop/measured");
        let folder = metadata.target_directory.join("peers");
        let cyclonedds = foreign::build_cyclonedds(
            &sources.join("cyclonedds/end.c"),
            &sources.join("Message.idl"),
            &[],
            &folder.join("cyclonedds"),
        )?;
        let fastdds =
            foreign::build_fastdds(&sources.join("fastdds/end.cpp"), &folder.join("fastdds"))?;
        let identities = Identities {
            cyclonedds: foreign::identity("cyclonedds", foreign::CYCLONEDDS)? + " udp",
            fastdds: foreign::identity("fastdds", foreign::FASTDDS)? + " udp",
        };
        let isolane = metadata
            .target_directory
            .join("release/examples/measured_end");
        let granted = |limit: &str| -> Result<u64> {
            let path = format!("/proc/sys/net/core/{limit}");
            Ok(fs::read_to_string(path)?.trim().parse()?)
        };
        let buffers = buffers(granted("rmem_max")?, granted("wmem_max")?);
        Ok(Self::all(
            &identities,
            &buffers,
            &isolane,
            &cyclonedds,
            &fastdds,
        ))
    }

    fn all(
        identities: &Identities,
        buffers: &str,
        isolane: &Path,
        cyclonedds: &Path,
        fastdds: &Path,
    ) -> [Self; Self::COUNT] {
        let defaults = |identity: &str, program: &Path, arguments| Self {
            identity: identity.into(),
            setting: Setting::Defaults,
            setting_is: String::new(),
            program: program.into(),
            arguments,
        };
        let best = |identity: &str, program: &Path, setting_is: &str| Self {
            identity: identity.into(),
            setting: Setting::Best,
            setting_is: setting_is.into(),
            program: program.into(),
            arguments: &["--best"],
        };
        [
            defaults("isolane udp", isolane, &[]),
            best("isolane udp", isolane, "datagrams of 65,000 B"),
            defaults("isolane xdp", isolane, &["--datapath", "xdp"]),
            defaults(&identities.cyclonedds, cyclonedds, &[]),
            best(
                &identities.cyclonedds,
                cyclonedds,
                "write batching, messages of 65,500 B",
            ),
            defaults(&identities.fastdds, fastdds, &[]),
            best(
                &identities.fastdds,
                fastdds,
                &format!("heartbeat 20 ms, response delay 0, {buffers}"),
            ),
        ]
    }

    #[cfg(test)]
    pub(super) fn for_tests() -> [Self; Self::COUNT] {
        let identities = Identities {
            cyclonedds: "cyclonedds 0.10.2 udp".into(),
            fastdds: "fastdds 2.9.1 udp".into(),
        };
        let program = Path::new("end");
        let buffers = buffers(212_992, 16 << 20);
        Self::all(&identities, &buffers, program, program, program)
    }
}

/// Socket buffers that Fast DDS gets at its best setting under these limits (socket(7)).
fn buffers(rmem_max: u64, wmem_max: u64) -> String {
    let granted = |limit: u64| limit.min(FASTDDS_BUFFER_BYTES);
    format!(
        "socket buffers of {} B for receiving and {} B for sending ({FASTDDS_BUFFER_BYTES} B requested)",
        granted(rmem_max),
        granted(wmem_max)
    )
}

/// Names and versions of the other implementations.
struct Identities {
    cyclonedds: String,
    fastdds: String,
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

    #[test]
    fn every_system_that_is_compared_runs_and_the_first_pair_is_at_its_best() {
        for scenario in [Scenario::RoundTrip, Scenario::Throughput, Scenario::Load] {
            let running = System::in_scenario(scenario);
            for &(own, other) in System::compared(scenario) {
                assert!(running.contains(&own) && running.contains(&other));
            }
            let (own, other) = System::compared(scenario)[0];
            assert!(System::is_best(own, scenario) && System::is_best(other, scenario));
        }
    }

    #[test]
    fn granted_buffers_are_recorded_and_requested_by_the_program() {
        let said = &System::for_tests()[FASTDDS_BEST].setting_is;
        assert!(
            said.ends_with(
                "212992 B for receiving and 12582912 B for sending (12582912 B requested)"
            ),
            "{said}"
        );
        let program = include_str!("../../measured/fastdds/end.cpp");
        assert!(program.contains(&format!("BEST_BUFFER_BYTES = {FASTDDS_BUFFER_BYTES};")));
    }

    #[test]
    fn places_name_the_systems_that_are_built() {
        let systems = System::for_tests();
        for (place, name, setting) in [
            (ISOLANE_UDP, "isolane udp", Setting::Defaults),
            (ISOLANE_UDP_BEST, "isolane udp", Setting::Best),
            (ISOLANE_XDP, "isolane xdp", Setting::Defaults),
            (CYCLONEDDS, "cyclonedds 0.10.2 udp", Setting::Defaults),
            (CYCLONEDDS_BEST, "cyclonedds 0.10.2 udp", Setting::Best),
            (FASTDDS, "fastdds 2.9.1 udp", Setting::Defaults),
            (FASTDDS_BEST, "fastdds 2.9.1 udp", Setting::Best),
        ] {
            let system = &systems[place];
            assert_eq!((system.identity.as_str(), system.setting), (name, setting));
            // The argument selects the setting in the program, and the words describe it in the rows.
            let is_best = setting == Setting::Best;
            assert_eq!(system.arguments.contains(&"--best"), is_best, "{name}");
            assert_eq!(!system.setting_is.is_empty(), is_best, "{name}");
        }
    }
}
