//! Ends of a system under test: programs with the command line and output of docs/reference/systems-under-test.md.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::process::{self, Command};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};

use super::flow::EndCounts;
use super::rtt::{EndConfig, EndReport, PingReport, PongReport};
use super::throughput::{self, Load, Reliability};
use crate::child::{ChildError, Running};
use crate::experiment::System;
use crate::limits::{CHILD_FINISH_SECONDS, CHILD_READY_SECONDS};
use crate::namespace::{Host, TestHosts};
use crate::process::exact_timers;
use crate::record::{PingRecorder, PongRecorder, StampClock, nonce};
use crate::report::EndUsage;

/// Datapath of a run whose program chooses it.
pub(super) const PROGRAM: &str = "program";

/// Bound of printed numbers: up to it, each integer is exact.
const MAX_NUMBER: f64 = (1_u64 << 53) as f64;
/// Tolerance of due times, for periods that are no whole number of nanoseconds.
const DUE_TOLERANCE_NS: u64 = 1_000;
/// Time in which a program prints its version.
const VERSION_SECONDS: u64 = 5;
/// Maximum number of lines that a program prints after `ready`.
const MAX_LINES: u32 = 64;

/// Name and version that the program of a system prints.
///
/// # Errors
/// [`ChildError`] if the program cannot be started, prints nothing, or has not ended after five seconds.
pub fn version(system: &System) -> Result<String, ChildError> {
    let mut command = Command::new(&system.program);
    command.arg("--version");
    let mut running = Running::of_command(command)?;
    running.stop();
    match running.line(VERSION_SECONDS)? {
        Some(version) if !version.is_empty() => running.exit(VERSION_SECONDS).map(|()| version),
        _ => Err(running.ended()),
    }
}

/// Starts a program on a host, pinned to a core. It dies with the calling thread.
fn spawn(
    testbed: &TestHosts,
    host: Host,
    (system, role): (&System, &str),
    core: Option<usize>,
    reliability: Reliability,
    options: &[(&str, String)],
) -> Result<Running, ChildError> {
    let mut command = match core {
        Some(core) => {
            let mut taskset = Command::new("taskset");
            taskset.args(["--cpu-list", &core.to_string()]);
            taskset.arg(&system.program);
            taskset
        }
        None => Command::new(&system.program),
    };
    command.arg(role).arg(match reliability {
        Reliability::BestEffort => "--best-effort",
        Reliability::Reliable => "--reliable",
    });
    for (name, value) in options {
        command.args([name, value.as_str()]);
    }
    command.args(&system.arguments);
    // A program has the timer slack of the thread that starts it. With the default of 50 us, all pings would be late.
    exact_timers().map_err(|note| ChildError::Failed(note.to_string()))?;
    Running::of_command(testbed.command(host, command))
}

fn wait_until_ready(running: &mut Running) -> Result<(), ChildError> {
    match running.line(CHILD_READY_SECONDS)?.as_deref() {
        Some("ready") => Ok(()),
        Some(other) => Err(ChildError::Format(format!("`{other}` instead of `ready`"))),
        None => Err(running.ended()),
    }
}

/// Lines `NAME NUMBER` up to the end of a program's output, complete within `seconds`. Numbers are not negative.
fn printed(mut running: Running, seconds: u64) -> Result<BTreeMap<String, f64>, ChildError> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let left_s = || end.saturating_duration_since(Instant::now()).as_secs();
    let mut numbers = BTreeMap::new();
    let mut lines = 0..MAX_LINES;
    while let Some(line) = running.line(left_s())? {
        if lines.next().is_none() {
            return Err(ChildError::Format(format!("more than {MAX_LINES} lines")));
        }
        let parsed = line
            .split_once(' ')
            .and_then(|(name, number)| Some((name.to_owned(), number.parse::<f64>().ok()?)))
            .filter(|(_, number)| (0.0..MAX_NUMBER).contains(number));
        let (name, number) = parsed.ok_or_else(|| {
            ChildError::Format(format!("`{line}` instead of a name and a number"))
        })?;
        if numbers.insert(name, number).is_some() {
            return Err(ChildError::Format(format!("`{line}` after another one")));
        }
    }
    running.exit(CHILD_FINISH_SECONDS)?;
    Ok(numbers)
}

/// Program that makes or answers round trips.
pub(super) struct RoundsProgram {
    running: Running,
    /// File for the timestamps, in memory.
    stamps: File,
    samples: u32,
    period_ns: u64,
    seed: u64,
}

impl RoundsProgram {
    /// Starts a program as `ping` or `pong`.
    pub(super) fn spawn(
        testbed: &TestHosts,
        host: Host,
        system: &System,
        role: &str,
        config: &EndConfig,
    ) -> Result<RoundsProgram, ChildError> {
        let stamps = memfd_create("rounds", MemfdFlags::CLOEXEC);
        let stamps = File::from(stamps.map_err(|error| ChildError::Start(error.into()))?);
        let path = format!("/proc/{}/fd/{}", process::id(), stamps.as_raw_fd());
        let options = [
            ("--payload-bytes", config.payload_bytes.to_string()),
            ("--max-samples", config.max_samples.to_string()),
            ("--rate-hz", config.rate_hz.to_string()),
            ("--seconds", (config.samples / config.rate_hz).to_string()),
            ("--seed", config.seed.to_string()),
            ("--rounds-file", path),
        ];
        let (core, reliability) = (config.core, config.reliability);
        let running = spawn(testbed, host, (system, role), core, reliability, &options)?;
        Ok(RoundsProgram {
            running,
            stamps,
            samples: config.samples,
            period_ns: config.period_ns(),
            seed: config.seed,
        })
    }

    pub(super) fn wait_until_ready(&mut self) -> Result<(), ChildError> {
        wait_until_ready(&mut self.running)
    }

    pub(super) fn go(&mut self) -> Result<(), ChildError> {
        self.running.go()
    }

    pub(super) fn ping_report(self, seconds: u32) -> Result<PingReport, ChildError> {
        let (samples, seed, period_ns) = (self.samples, self.seed, self.period_ns);
        let stamps = self.stamps::<3>(u64::from(seconds) + CHILD_FINISH_SECONDS)?;
        check_pings(&stamps, period_ns)?;
        let mut recorder = PingRecorder::new(samples, seed);
        let mut offered = 0;
        for (id, [due_ns, sent_ns, returned_ns]) in (0..).zip(stamps) {
            if sent_ns > 0 {
                recorder.sent(id, due_ns, sent_ns);
                offered += 1;
            }
            if returned_ns > 0 {
                recorder.returned(id, nonce(seed, id), returned_ns);
            }
        }
        Ok(report(recorder, offered))
    }

    pub(super) fn pong_report(mut self) -> Result<PongReport, ChildError> {
        self.running.stop();
        let (samples, seed) = (self.samples, self.seed);
        let stamps = self.stamps::<2>(CHILD_FINISH_SECONDS)?;
        let mut recorder = PongRecorder::new(samples, seed);
        let mut offered = 0;
        for (id, [received_ns, replied_ns]) in (0..).zip(stamps) {
            if received_ns > 0 {
                recorder.received(id, nonce(seed, id), received_ns);
            }
            if replied_ns > 0 {
                recorder.replied(id, replied_ns);
                offered += 1;
            }
        }
        Ok(report(recorder, offered))
    }

    /// Timestamps of all rounds, `N` each, after the program has ended.
    fn stamps<const N: usize>(self, seconds: u64) -> Result<Vec<[u64; N]>, ChildError> {
        printed(self.running, seconds)?;
        let mut file = self.stamps;
        let mut bytes = Vec::new();
        file.rewind()
            .and_then(|()| file.read_to_end(&mut bytes))
            .map_err(ChildError::Read)?;
        parse_stamps(&bytes, self.samples)
    }
}

/// Checks that pings were due at their period and sent afterwards.
fn check_pings(stamps: &[[u64; 3]], period_ns: u64) -> Result<(), ChildError> {
    let mut first_due_ns = None;
    for (id, &[due_ns, sent_ns, returned_ns]) in (0..).zip(stamps) {
        if [due_ns, sent_ns, returned_ns] == [0; 3] {
            continue;
        }
        let after_ns = id * period_ns;
        let first_ns = *first_due_ns.get_or_insert(due_ns.saturating_sub(after_ns));
        let is_due = due_ns.abs_diff(first_ns + after_ns) <= DUE_TOLERANCE_NS;
        if !is_due || sent_ns < due_ns {
            return Err(ChildError::Format(format!(
                "ping {id} was due at {due_ns} ns and sent at {sent_ns} ns: not as scheduled"
            )));
        }
    }
    Ok(())
}

fn parse_stamps<const N: usize>(bytes: &[u8], samples: u32) -> Result<Vec<[u64; N]>, ChildError> {
    let expected = samples as usize * N * size_of::<u64>();
    if bytes.len() != expected {
        return Err(ChildError::Format(format!(
            "{} bytes of timestamps instead of {expected}",
            bytes.len()
        )));
    }
    let (numbers, _) = bytes.as_chunks();
    let numbers: Vec<u64> = numbers.iter().map(|it| u64::from_le_bytes(*it)).collect();
    Ok(numbers.as_chunks().0.to_vec())
}

fn report<R>(recorder: R, offered: u64) -> EndReport<R> {
    EndReport {
        recorder,
        // The contract demands CLOCK_MONOTONIC, and the program runs on this kernel.
        clock: StampClock::of_this_process(),
        offered,
        refused: 0,
        counts: EndCounts::default(),
        bulk_acknowledged: None,
    }
}

/// Output of a program that writes or reads a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Printed(BTreeMap<String, f64>);

impl Printed {
    pub(super) fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Count that the contract demands.
    pub(super) fn count(&self, name: &str) -> Result<u64, ChildError> {
        let count = self.get(name).map(|count| count as u64);
        count.ok_or_else(|| ChildError::Format(format!("no line `{name}`")))
    }

    /// Resources, as far as they are printed.
    pub(super) fn usage(&self) -> EndUsage {
        let number = |name: &str| self.get(name).map(|number| number as u64);
        let samples = self.get("cpu_samples").filter(|&samples| samples > 0.0);
        EndUsage {
            cpu_us_per_sample: self
                .get("cpu_ns")
                .zip(samples)
                .map(|(ns, samples)| ns / 1e3 / samples),
            resident_bytes: number("resident_bytes"),
            threads: number("threads"),
        }
    }
}

/// Runs `writer` and `reader`s of a system, and returns what they printed and the running load.
pub(super) fn stream(
    testbed: &TestHosts,
    system: &System,
    config: &throughput::Config,
) -> Result<(Printed, Vec<Printed>, Load), ChildError> {
    let mut options = vec![
        ("--payload-bytes", config.payload_bytes.to_string()),
        ("--max-samples", config.max_samples.to_string()),
        ("--rate-hz", config.rate_hz.unwrap_or(0).to_string()),
        ("--seconds", config.seconds.to_string()),
    ];
    if config.readers > 1 {
        options.push(("--readers", config.readers.to_string()));
    }
    let spawn = |host, role, core| {
        let reliability = config.reliability;
        spawn(
            testbed,
            host,
            (system, role),
            Some(core),
            reliability,
            &options,
        )
    };
    let readers = (0..config.readers).map(|_| spawn(Host::B, "reader", config.cores.cable));
    let mut readers: Vec<Running> = readers.collect::<Result<_, _>>()?;
    let mut writer = spawn(Host::A, "writer", config.cores.hosts)?;
    for end in readers.iter_mut().chain([&mut writer]) {
        wait_until_ready(end)?;
    }
    let load = Load::begin(config);
    writer.go()?;
    let seconds = u64::from(config.seconds) + CHILD_FINISH_SECONDS;
    let written = Printed(printed(writer, seconds)?);
    thread::sleep(throughput::DRAIN);
    readers.iter_mut().for_each(Running::stop);
    let read = readers
        .into_iter()
        .map(|reader| printed(reader, CHILD_FINISH_SECONDS).map(Printed));
    Ok((written, read.collect::<Result<_, _>>()?, load))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(script: &str) -> Running {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        Running::of_command(shell).expect("a shell")
    }

    #[test]
    fn a_program_that_says_something_else_or_ends_is_not_ready() {
        let mut ready = program("echo ready; read line; echo samples 12; echo cpu_ns 7e3");
        assert!(wait_until_ready(&mut ready).is_ok());
        ready.go().expect("it reads");
        let numbers = printed(ready, 5).expect("two numbers");
        assert_eq!((numbers["samples"], numbers["cpu_ns"]), (12.0, 7_000.0));
        let error = wait_until_ready(&mut program("echo hello")).expect_err("not ready");
        assert!(error.to_string().contains("`hello`"), "{error}");
        let error = wait_until_ready(&mut program("exit 2")).expect_err("gone");
        assert!(error.to_string().contains("exit status: 2"), "{error}");
        for wrong in ["many", "-1", "inf", "nan", "1; echo samples 1"] {
            let script = format!("echo samples {wrong}");
            assert!(printed(program(&script), 5).is_err(), "{wrong}");
        }
        assert!(printed(program("echo samples 1; exit 1"), 5).is_err());
        let error = printed(
            program("i=0; while true; do i=$((i+1)); echo n$i 1; done"),
            5,
        )
        .expect_err("endless");
        assert!(error.to_string().contains("more than 64 lines"), "{error}");
    }

    #[test]
    fn a_program_and_its_own_children_are_killed_together() {
        // The second wrapper has ended.
        for end in ["wait", "exec >&-; exit 1"] {
            let mut wrapper = program(&format!("sleep 1000 >/dev/null & echo $!; {end}"));
            let line = wrapper.line(5).expect("in time").expect("a line");
            let sleeping: i32 = line.parse().expect("a process id");
            if end == "wait" {
                drop(wrapper);
            } else {
                assert_eq!(wrapper.line(5).expect("in time"), None);
                assert!(wrapper.exit(5).is_err());
            }
            let state = || {
                let stat = std::fs::read_to_string(format!("/proc/{sleeping}/stat"));
                let stat = stat.unwrap_or_else(|_| String::from("() X"));
                let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
                state.flatten().unwrap_or('?')
            };
            let deadline = Instant::now() + Duration::from_secs(10);
            while !['X', 'Z'].contains(&state()) {
                assert!(Instant::now() < deadline, "process {sleeping} survives");
                thread::sleep(Duration::from_millis(5));
            }
        }
    }

    #[test]
    fn a_version_is_one_line_of_a_program_that_ends() {
        let system = |program: &str| System {
            program: program.into(),
            ..System::default()
        };
        let printed = version(&system("bash")).expect("bash has a version");
        assert!(printed.contains("bash"), "{printed}");
        assert!(version(&system("sh")).is_err(), "it refuses the option");
        assert!(version(&system("/no/such/program")).is_err());
    }

    #[test]
    fn pings_are_sent_as_scheduled() {
        let ping = |due, sent| [due, sent, sent + 5];
        let good = [
            ping(1_000_000, 1_000_050),
            [0; 3],
            ping(3_000_000, 3_900_000),
        ];
        assert!(check_pings(&good, 1_000_000).is_ok());
        for wrong in [
            ping(2_000_000, 2_000_001),
            ping(3_000_000, 2_999_999),
            [0, 0, 9],
        ] {
            let pings = [good[0], good[1], wrong];
            assert!(check_pings(&pings, 1_000_000).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn timestamps_are_as_many_as_there_are_rounds() {
        let bytes: Vec<u8> = (1..=6_u64).flat_map(u64::to_le_bytes).collect();
        let stamps = parse_stamps::<3>(&bytes, 2).expect("two rounds");
        assert_eq!(stamps, [[1, 2, 3], [4, 5, 6]]);
        assert!(parse_stamps::<3>(&bytes, 1).is_err(), "too many");
        assert!(parse_stamps::<2>(&bytes[..40], 3).is_err(), "too few");
    }
}
