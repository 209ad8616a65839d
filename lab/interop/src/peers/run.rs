//! The run: every repetition has every case with every system, side by side in time.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use isolane_bench::namespace::{Host, Testbed, TestbedConfig};
use isolane_bench::record::Statistics;

use super::bare::Bare;
use super::case::{Case, Role, Scenario};
use super::end::{End, Printed};
use super::statistics::median;
use super::system::System;
use isolane_support::Result;
use isolane_support::disturbance::{Disturbance, Watch};

/// What an end may take beside the time that it measures: to find the other one, to be
/// acknowledged, to see the other one go.
const LONGEST_BESIDE: Duration = Duration::from_secs(40);

/// What is to be run.
pub(super) struct Plan {
    pub(super) cases: Vec<Case>,
    pub(super) repetitions: u32,
    pub(super) seconds: u32,
    /// How often a repetition of a case is run at most until nothing disturbs it.
    pub(super) tries: u32,
}

/// What one run of one case with one system showed; `None` where it failed or the samples do not
/// carry it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measured {
    pub(super) rtt_median_us: Option<f64>,
    pub(super) rtt_p99_9_us: Option<f64>,
    pub(super) samples_per_s: Option<f64>,
    /// Of the samples' payload, in 10^6 bits a second.
    pub(super) mbit_per_s: Option<f64>,
    /// Of the writer and of the reader.
    pub(super) ends: [OfEnd; 2],
}

/// What one end of a stream took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct OfEnd {
    pub(super) cpu_us_per_sample: Option<f64>,
    pub(super) resident_bytes: Option<f64>,
    pub(super) threads: Option<f64>,
}

/// What one repetition of one case showed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repetition {
    /// By system.
    pub(super) systems: [Measured; System::COUNT],
    pub(super) disturbance: Disturbance,
    /// How often it ran.
    pub(super) tries: u32,
}

/// What all repetitions showed.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// By repetition and case.
    pub(super) repetitions: Vec<Vec<Repetition>>,
    /// By repetition, isolane's median round trip by lane and that of bare AF_XDP, in microseconds.
    pub(super) beside_bare: Vec<[f64; 2]>,
}

/// Runs the plan. A run that fails is said, counted, and has no values.
pub(super) fn run(
    plan: &Plan,
    systems: &[System; System::COUNT],
    bare: &Bare,
    folder: &Path,
) -> Result<(Table, usize)> {
    fs::create_dir_all(folder)?;
    let testbed = Testbed::without_cable(&TestbedConfig::default())?;
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
                table.beside_bare.push(both);
            }
            Err(error) => {
                eprintln!("{name}: FAILED: {error}");
                failures += 1;
            }
        }
    }
    Ok((table, failures))
}

/// Runs a case once with each system, and returns how many of the runs failed.
fn repeat(
    testbed: &Testbed,
    case: Case,
    systems: &[System; System::COUNT],
    seconds: u32,
    repetition: usize,
    folder: &Path,
) -> Result<(Repetition, usize)> {
    let mut places = System::in_scenario(case.scenario);
    // The order moves on: no system always runs first, or behind the same one.
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

/// One run of both ends.
pub(super) fn run_once(
    testbed: &Testbed,
    case: Case,
    system: &System,
    seconds: u32,
    folder: &Path,
) -> Result<Measured> {
    let samples_file = folder.join("round_trips");
    let start = |role, host, stem| {
        let mut arguments = case.arguments(role, seconds, &samples_file);
        arguments.extend(system.arguments.iter().map(|&argument| argument.to_owned()));
        End::start(
            testbed,
            host,
            case.core(role, testbed.config().cores),
            &system.program,
            &arguments,
            &folder.join(stem),
        )
    };
    let deadline = Instant::now() + Duration::from_secs(seconds.into()) + LONGEST_BESIDE;
    let answering = start(Role::Answering, Host::B, "answering")?;
    let beginning = start(Role::Beginning, Host::A, "beginning")?;
    let begun = beginning.finish(deadline)?;
    let answered = answering.finish(deadline)?;
    match case.scenario {
        Scenario::RoundTrip => {
            let round_trips = read_round_trips(&samples_file)?;
            fs::remove_file(&samples_file)?;
            Measured::of_round_trips(round_trips)
        }
        Scenario::Throughput | Scenario::Load => Measured::of_stream(case, &begun, &answered),
    }
}

/// What a file of 32-bit numbers holds, in nanoseconds.
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

    /// For people, while it runs.
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

/// The median over the repetitions of what `of` picks, where any repetition has it.
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
}
