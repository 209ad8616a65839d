//! Run of the comparison: every repetition runs every case with every system back to back. A run has two ends, the
//! writer and the reader or the two sides of a round trip. Each end is a pinned process in its own namespace, with its
//! output in a file.
//!
//! The comparison of isolane over lanes with bare AF_XDP measures round trips where both ends spin, on two cores, under
//! SCHED_OTHER. The bare end is the example `bare_ping_pong` of the package `isolane-datapath-xdp`, which makes its own
//! veth pair like isolane's. Each repetition runs both back to back and alternates the order.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use isolane_bench::namespace::{Host, TestHosts, TestHostsConfig};
use isolane_bench::statistics::Statistics;
use isolane_support::disturbance::{Disturbance, Watch};
use isolane_support::workspace::{Metadata, build_examples};
use isolane_support::{Result, command};
use serde::Deserialize;

use super::case::{Case, Role, Scenario, Setting, System};
use super::report::median;
use crate::program::Program;

/// Time that an end may take on top of the measurement: discovery, acknowledgment, and the other end's departure.
const LONGEST_OVERHEAD: Duration = Duration::from_secs(40);

pub(super) struct Plan {
    pub(super) cases: Vec<Case>,
    pub(super) repetitions: u32,
    pub(super) seconds: u32,
    /// Maximum number of runs of a case in one repetition. A disturbed run is repeated.
    pub(super) tries: u32,
}

/// Result of one run of one case with one system; `None` where it failed or has too few samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measured {
    pub(super) rtt_median_us: Option<f64>,
    pub(super) rtt_p99_9_us: Option<f64>,
    pub(super) samples_per_s: Option<f64>,
    /// Payload throughput, in 10^6 bits a second.
    pub(super) mbit_per_s: Option<f64>,
    /// Resource use of the writer and of the reader.
    pub(super) ends: [OfEnd; 2],
}

/// Resource use of one end of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct OfEnd {
    pub(super) cpu_us_per_sample: Option<f64>,
    pub(super) resident_bytes: Option<f64>,
    pub(super) threads: Option<f64>,
}

/// Result of one repetition of one case.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repetition {
    /// Indexed by system.
    pub(super) systems: [Measured; System::COUNT],
    pub(super) disturbance: Disturbance,
    pub(super) tries: u32,
}

/// Result of all repetitions.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Indexed by repetition and case.
    pub(super) repetitions: Vec<Vec<Repetition>>,
    /// Median round trips by lane and of bare AF_XDP, in microseconds, indexed by repetition.
    pub(super) over_bare: Vec<[f64; 2]>,
}

/// Runs the plan. A failed run is reported, counted, and has no values.
pub(super) fn run(
    plan: &Plan,
    systems: &[System; System::COUNT],
    bare: &Bare,
    folder: &Path,
) -> Result<(Table, usize)> {
    fs::create_dir_all(folder)?;
    let testbed = TestHosts::without_cable(&TestHostsConfig::default())?;
    for note in testbed.notes() {
        eprintln!("{note}");
    }
    let mut table = Table::default();
    let mut failures = 0;
    for repetition in 0..plan.repetitions as usize {
        let mut of_repetition = Vec::new();
        for case in &plan.cases {
            let progress = format!("[{}/{}]", repetition + 1, plan.repetitions);
            for tries in 1.. {
                let (mut of_case, failed) =
                    repeat(&testbed, *case, systems, plan.seconds, repetition, folder)?;
                of_case.tries = tries;
                let disturbance = of_case.disturbance;
                if disturbance.is_too_much() {
                    let stall = disturbance.longest_stall_us;
                    let stall = stall.map_or("not known".into(), |us| format!("{us} us"));
                    eprintln!(
                        "{progress} {}: disturbed: steal {:.1} %, other processes {:.1} %, longest stall {stall}",
                        case.name(),
                        disturbance.steal * 100.0,
                        disturbance.others * 100.0,
                    );
                    if tries < plan.tries {
                        continue;
                    }
                }
                failures += failed;
                of_repetition.push(of_case);
                break;
            }
        }
        table.repetitions.push(of_repetition);
        let name = format!("[{}/{}] spinning", repetition + 1, plan.repetitions);
        match bare.repeat(&testbed, repetition, plan.seconds, folder) {
            Ok(both) => {
                eprintln!("{name}: by lane {:.2} us, bare {:.2} us", both[0], both[1]);
                table.over_bare.push(both);
            }
            Err(error) => {
                eprintln!("{name}: FAILED: {error}");
                failures += 1;
            }
        }
    }
    Ok((table, failures))
}

/// Runs a case once with each system, and returns the number of failed runs.
fn repeat(
    testbed: &TestHosts,
    case: Case,
    systems: &[System; System::COUNT],
    seconds: u32,
    repetition: usize,
    folder: &Path,
) -> Result<(Repetition, usize)> {
    let mut places = System::in_scenario(case.scenario);
    // Rotated order, so that no system always runs first.
    let first = repetition % places.len();
    places.rotate_left(first);
    let mut of_case = Repetition::default();
    let mut failures = 0;
    let watch = Watch::begin(testbed.config().cores)?;
    for place in places {
        let system = &systems[place];
        let name = format!("{}, {}", case.name(), system.identity);
        match run_once(testbed, case, system, seconds, folder) {
            Ok(measured) => {
                let sentence = measured.sentence(case.scenario);
                eprintln!(
                    "[{}] {name} {:?}: {sentence}",
                    repetition + 1,
                    system.setting
                );
                of_case.systems[place] = measured;
            }
            Err(error) => {
                eprintln!(
                    "[{}] {name} {:?}: FAILED: {error}",
                    repetition + 1,
                    system.setting
                );
                failures += 1;
            }
        }
    }
    of_case.disturbance = watch.end()?;
    Ok((of_case, failures))
}

/// Runs both ends once.
pub(super) fn run_once(
    testbed: &TestHosts,
    case: Case,
    system: &System,
    seconds: u32,
    folder: &Path,
) -> Result<Measured> {
    let samples_file = folder.join("round_trips");
    let start = |role, host, stem: &str| {
        let mut arguments = case.arguments(role, seconds, &samples_file);
        arguments.extend(system.arguments.iter().map(|&argument| argument.to_owned()));
        let core = case.core(role, testbed.config().cores).to_string();
        let mut taskset = Command::new("taskset");
        taskset.args(["--cpu-list", &core]);
        taskset.arg(&system.program).args(&arguments);
        Program::start(testbed.command(host, taskset), &folder.join(stem))
    };
    let deadline = Instant::now() + Duration::from_secs(seconds.into()) + LONGEST_OVERHEAD;
    let answering = start(Role::Answering, Host::B, "answering")?;
    let beginning = start(Role::Beginning, Host::A, "beginning")?;
    let begun = Printed::parse(&beginning.finish(deadline)?)?;
    let answered = Printed::parse(&answering.finish(deadline)?)?;
    match case.scenario {
        Scenario::RoundTrip => {
            let round_trips = read_round_trips(&samples_file)?;
            fs::remove_file(&samples_file)?;
            Measured::of_round_trips(round_trips)
        }
        Scenario::Throughput | Scenario::Load => Measured::of_stream(case, &begun, &answered),
    }
}

/// Reads a file of 32-bit round trips in nanoseconds.
fn read_round_trips(file: &Path) -> Result<Vec<u64>> {
    let bytes = fs::read(file)?;
    let (numbers, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        return Err(format!(
            "{}: {} bytes are no 32-bit numbers",
            file.display(),
            bytes.len()
        )
        .into());
    }
    let numbers = numbers.iter().map(|&number| u32::from_le_bytes(number));
    Ok(numbers.map(u64::from).collect())
}

impl Measured {
    fn of_round_trips(round_trips_ns: Vec<u64>) -> Result<Self> {
        let count = round_trips_ns.len();
        let statistics = Statistics::of(round_trips_ns);
        if statistics.median.is_none() {
            return Err(format!("{count} round trips are too few for a median").into());
        }
        Ok(Self {
            rtt_median_us: statistics.median,
            rtt_p99_9_us: statistics.p99_9,
            ..Self::default()
        })
    }

    fn of_stream(case: Case, writer: &Printed, reader: &Printed) -> Result<Self> {
        let of = |end: &Printed, name| {
            end.get(name)
                .ok_or_else(|| format!("no {name} was printed"))
        };
        let (written, received) = (of(writer, "samples")?, of(reader, "samples")?);
        if received < 2.0 || (case.is_reliable && received != written) {
            return Err(format!("{received} of {written} samples were received").into());
        }
        let out_of_order = of(reader, "out_of_order")?;
        if out_of_order > 0.0 {
            return Err(format!("{out_of_order} samples were out of order").into());
        }
        let elapsed_s = of(reader, "elapsed_ns")? / 1e9;
        let of_end = |end: &Printed| OfEnd {
            cpu_us_per_sample: end
                .get("cpu_ns")
                .zip(end.get("cpu_samples").filter(|&samples| samples > 0.0))
                .map(|(ns, samples)| ns / 1e3 / samples),
            resident_bytes: end.get("resident_bytes"),
            threads: end.get("threads"),
        };
        let samples_per_s = (received - 1.0) / elapsed_s;
        Ok(Self {
            samples_per_s: Some(samples_per_s),
            mbit_per_s: Some(samples_per_s * f64::from(case.payload_bytes) * 8.0 / 1e6),
            ends: [of_end(writer), of_end(reader)],
            ..Self::default()
        })
    }

    /// Progress line.
    fn sentence(&self, scenario: Scenario) -> String {
        let number = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
        };
        if scenario == Scenario::RoundTrip {
            return format!("median {} us", number(self.rtt_median_us, 1));
        }
        let [writer, reader] = self.ends;
        format!(
            "{} samples/s, {} Mbit/s; {} and {} us of CPU a sample",
            number(self.samples_per_s, 0),
            number(self.mbit_per_s, 1),
            number(writer.cpu_us_per_sample, 1),
            number(reader.cpu_us_per_sample, 1)
        )
    }
}

/// Median over the repetitions of the values that `of` returns.
pub(super) fn median_of(
    table: &Table,
    case: usize,
    system: usize,
    of: impl Fn(&Measured) -> Option<f64>,
) -> Option<f64> {
    let values = table
        .repetitions
        .iter()
        .filter_map(|cases| of(&cases[case].systems[system]));
    median(values.collect())
}

/// Lines `NAME NUMBER` that an end printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Printed(Vec<(String, f64)>);

impl Printed {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().map(|line| {
            let (name, number) = line
                .split_once(' ')
                .ok_or_else(|| format!("a line `{line}`"))?;
            Ok((name.to_owned(), number.parse::<f64>()?))
        });
        Ok(Self(lines.collect::<Result<Vec<_>>>()?))
    }

    pub(super) fn get(&self, name: &str) -> Option<f64> {
        let found = self.0.iter().find(|(of, _)| of == name);
        found.map(|(_, number)| *number)
    }
}

/// Payload of a sample and of the bare datagram.
const PAYLOAD_BYTES: u32 = 64;
/// Round trips that the bare program makes for each second of measurement: about its rate on an idle machine.
const ROUNDS_PER_S: u32 = 40_000;

/// Case of both ends.
pub(super) const BARE_CASE: Case = Case {
    scenario: Scenario::RoundTrip,
    payload_bytes: PAYLOAD_BYTES,
    is_reliable: false,
    cores: 2,
};
/// Name of the bare program in the results.
pub(super) const BARE_IDENTITY: &str = "AF_XDP, bare, spinning";

/// The program with bare AF_XDP, and isolane over lanes.
pub(super) struct Bare {
    program: PathBuf,
    pub(super) by_lane: System,
}

/// Output of the bare program.
#[derive(Deserialize)]
struct Said {
    lost: u64,
    rtt_us: Times,
}

#[derive(Deserialize)]
struct Times {
    median: Option<f64>,
}

fn by_lane(program: PathBuf) -> System {
    System {
        identity: "isolane xdp, spinning".into(),
        setting: Setting::Defaults,
        setting_is: String::new(),
        program,
        arguments: &["--datapath", "xdp", "--waiting", "spin"],
    }
}

impl Bare {
    /// Builds the bare program; isolane's is built already.
    pub(super) fn build(metadata: &Metadata) -> Result<Self> {
        build_examples("isolane-datapath-xdp", &["bare_ping_pong"])?;
        let examples = metadata.target_directory.join("release/examples");
        Ok(Self {
            program: examples.join("bare_ping_pong"),
            by_lane: by_lane(examples.join("measured_end")),
        })
    }

    #[cfg(test)]
    pub(super) fn for_tests() -> Self {
        Self {
            program: "bare".into(),
            by_lane: by_lane("end".into()),
        }
    }

    /// Runs one repetition: isolane's median round trip, and the bare one.
    pub(super) fn repeat(
        &self,
        testbed: &TestHosts,
        repetition: usize,
        seconds: u32,
        folder: &Path,
    ) -> Result<[f64; 2]> {
        let by_lane = || -> Result<f64> {
            let measured: Measured = run_once(testbed, BARE_CASE, &self.by_lane, seconds, folder)?;
            measured.rtt_median_us.ok_or_else(|| "no median".into())
        };
        if repetition.is_multiple_of(2) {
            let first = by_lane()?;
            return Ok([first, self.bare(testbed, seconds)?]);
        }
        let first = self.bare(testbed, seconds)?;
        Ok([by_lane()?, first])
    }

    fn bare(&self, testbed: &TestHosts, seconds: u32) -> Result<f64> {
        let cores = testbed.config().cores;
        let mut bare = Command::new(&self.program);
        bare.args(["--waiting", "spin", "--json"]);
        bare.args(["--payload", &PAYLOAD_BYTES.to_string()]);
        bare.args(["--rounds", &(seconds * ROUNDS_PER_S).to_string()]);
        bare.args(["--cores", &format!("{},{}", cores.hosts, cores.cable)]);
        let output = bare
            .output()
            .map_err(|error| command::cannot_start(&bare, &error))?;
        let said = serde_json::from_slice::<Said>(&output.stdout).map_err(|error| {
            let stderr = String::from_utf8_lossy(&output.stderr);
            format!("`{}`: {error}: {stderr}", command::displayed(&bare))
        })?;
        if said.lost > 0 {
            eprintln!("bare AF_XDP: {} rounds lost", said.lost);
        }
        said.rtt_us
            .median
            .ok_or_else(|| "bare AF_XDP: no round trips".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reliable_stream_that_lost_samples_is_no_result() {
        let printed = |text| Printed::parse(text).unwrap();
        let writer = printed("samples 1000\nlost 0\ncpu_ns 4000000\ncpu_samples 800\n");
        let reader = printed(
            "samples 900\nout_of_order 0\nelapsed_ns 1000000000\ncpu_ns 1\ncpu_samples 0\n",
        );
        let case = |is_reliable| Case {
            scenario: Scenario::Throughput,
            payload_bytes: 1_000,
            is_reliable,
            cores: 2,
        };
        assert!(Measured::of_stream(case(true), &writer, &reader).is_err());
        let measured = Measured::of_stream(case(false), &writer, &reader).unwrap();
        assert_eq!(measured.samples_per_s, Some(899.0));
        assert_eq!(measured.mbit_per_s, Some(7.192));
        assert_eq!(measured.ends[0].cpu_us_per_sample, Some(5.0));
        assert_eq!(measured.ends[1].cpu_us_per_sample, None, "no samples");
    }

    #[test]
    fn a_percentile_that_the_round_trips_do_not_carry_is_none() {
        let measured = Measured::of_round_trips(vec![7_000; 5_000]).unwrap();
        assert_eq!(measured.rtt_median_us, Some(7.0));
        assert_eq!(measured.rtt_p99_9_us, None);
        assert!(Measured::of_round_trips(vec![7_000; 5]).is_err());
    }

    #[test]
    fn lines_are_names_and_numbers() {
        let printed = Printed::parse("samples 12\nelapsed_ns 7000\n").unwrap();
        assert_eq!(printed.get("elapsed_ns"), Some(7000.0));
        assert_eq!(printed.get("lost"), None);
        assert!(Printed::parse("samples\n").is_err());
        assert!(Printed::parse("samples many\n").is_err());
    }
}
