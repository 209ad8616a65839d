//! `cargo xtask isolation`: counters show the effect of a flood on a critical topic, with all isolation mechanisms and
//! without each of them.
//!
//! The trials of [`isolane_bench::scenario::isolation`] run one after the other between two hosts in namespaces. An
//! attempt is invalid if the machine stalled so long that the kernel dropped frames before the cable, if the
//! disturbance was too small, or if the trial could not run. Its counts are then printed, and the trial is repeated. A
//! trial fails if all its attempts are invalid. In a valid attempt, a wrong counter is a failure at once.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use isolane_bench::child::Program;
use isolane_bench::namespace::TestHosts;
use isolane_bench::report::Environment;
use isolane_bench::scenario::isolation::{Counter, SCHEMA, TRIES, Verdict, hosts, trials};
use isolane_bench::scenario::transport::{Lanes, Transport};
use isolane_support::steps::Outcome;
use isolane_support::workspace::Metadata;
use isolane_support::{CABLE_COMMAND, Result, json, packages};
use serde::Serialize;

/// Duration in seconds of each trial in `cargo xtask test --all`.
const STEP_SECONDS: u32 = 1;

/// Arguments of `cargo xtask isolation`.
#[derive(Args)]
pub struct Arguments {
    /// Duration of each run, in seconds
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Write the results to this file as `isolane/isolation/1`; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the trials and prints the table.
pub fn run(arguments: &Arguments) -> Result<bool> {
    packages::require_root("isolation")?;
    let report = measure(arguments.seconds)?;
    eprint!("\n{report}");
    if let Some(file) = &arguments.json {
        json::write(&report, file)?;
    }
    Ok(report.failed() == 0)
}

/// Runs short trials as a step of `cargo xtask test --all`.
pub fn step(metadata: &Metadata) -> Result<Outcome> {
    let report = measure(STEP_SECONDS)?;
    eprint!("{report}");
    json::write(&report, &metadata.target_directory.join("isolation.json"))?;
    let failed = report.failed();
    Ok(Outcome::Counted {
        passed: report.trials.len() - failed,
        failed,
    })
}

/// JSON of the result: `isolane/isolation/1`.
#[derive(Serialize)]
struct Report {
    /// [`SCHEMA`].
    schema: &'static str,
    /// The machine and the command, as in `isolane/rtt/1`.
    environment: Environment,
    /// Duration of each trial.
    seconds: u32,
    /// Verdicts in the order of the trials.
    trials: Vec<Verdict>,
}

fn measure(seconds: u32) -> Result<Report> {
    let testbed = TestHosts::new(&hosts())?;
    let program = Program::current(&[CABLE_COMMAND])?;
    let transports = [Transport::Udp, Transport::Xdp(Lanes::default())];
    let trials = transports
        .map(|transport| trials(transport, seconds))
        .concat();
    let mut report = Report {
        schema: SCHEMA,
        environment: Environment::probe(),
        seconds,
        trials: Vec::new(),
    };
    for (number, trial) in (1..).zip(&trials) {
        eprintln!("{number}/{}: {}", trials.len(), trial.name);
        let made = trial.make(&testbed, &program, print_attempt);
        report.trials.push(made.verdict);
    }
    Ok(report)
}

/// Prints why an attempt is invalid, with its counts.
fn print_attempt(attempt: u32, verdict: &Verdict) {
    let why = verdict
        .fault
        .as_deref()
        .unwrap_or("the machine stood still");
    let named =
        |counter: Counter| format!("{} {}", counter.name(), shown(verdict.counts.get(counter)));
    let counts = Counter::ALL.map(named).join(", ");
    let late = shown(verdict.kernel_late);
    eprintln!("attempt {attempt} of {TRIES} does not count: {why} ({counts}, kernel late {late})");
}

/// Formats a count; `-` if there is none.
fn shown<T: fmt::Display>(count: Option<T>) -> String {
    count.map_or_else(|| "-".to_owned(), |count| count.to_string())
}

impl Report {
    fn failed(&self) -> usize {
        let failed = self.trials.iter().filter(|trial| trial.fault.is_some());
        failed.count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.trials.iter().map(|trial| trial.name.len());
        let width = names.max().unwrap_or(0);
        write!(
            f,
            "{:width$}  {:>7}  {:>8}  {:>6}",
            "", "samples", "bulk", "factor"
        )?;
        for counter in Counter::ALL {
            write!(f, "  {:>11}", counter.name())?;
        }
        writeln!(f, "  {:>12}", "kernel late*")?;
        for trial in &self.trials {
            let factor = shown(trial.factor.map(|factor| format!("{factor:.2}")));
            write!(
                f,
                "{:width$}  {:>7}  {:>8}  {factor:>6}",
                trial.name, trial.samples, trial.bulk
            )?;
            for counter in Counter::ALL {
                write!(f, "  {:>11}", shown(trial.counts.get(counter)))?;
            }
            write!(f, "  {:>12}", shown(trial.kernel_late))?;
            match &trial.fault {
                None => writeln!(f)?,
                Some(fault) => writeln!(f, "  FAILED: {fault}")?,
            }
        }
        writeln!(
            f,
            "* Less urgent activations begun after a critical sample's stamp that the kernel did not show yet at the \
             look before them. An inversion is one that it did show, or before which the executor did not look: only those are \
             the executor's, and judged."
        )?;
        match self.failed() {
            0 => writeln!(
                f,
                "With all mechanisms every counter is 0; without one, its counter is above 0. Sockets reserve \
                 no buffers: -."
            ),
            failed => writeln!(
                f,
                "{failed} of {} do not show what they are there to show.",
                self.trials.len()
            ),
        }
    }
}
