//! `cargo xtask peers`: isolane over sockets and over lanes, compared with Cyclone DDS and Fast DDS in one run.
//!
//! Every system has a program with the same command line, messages and output (`lab/interop/measured/end.h`; isolane's
//! is the example `measured_end`). A case (`case.rs`) is what two such ends measure: round trips, a stream at full
//! speed, or a stream at a rate. Each repetition runs every case with every system back to back, in a rotating order
//! (`run.rs`), so a disturbance of the machine affects all. Ratios are formed within a repetition; their median and
//! interval over the repetitions are reported (`report.rs`).
//!
//! The ends are pinned, in two network namespaces joined by a veth pair. All sleep when idle and have the same history.
//! Streams run at each system's defaults and at the settings that its documentation recommends for throughput
//! (`Setting`); ratios are quoted against the latter. A repetition that other processes or the hypervisor disturbed is
//! repeated, three runs at most (`isolane_support::disturbance`).
//!
//! A further comparison is between isolane over lanes and bare AF_XDP, both spinning.

mod case;
mod report;
mod run;

use std::path::PathBuf;

use isolane_support::steps::Outcome;
use isolane_support::workspace::{Metadata, build_examples};
use isolane_support::{Result, packages};

use case::{Case, System};
use report::Report;
use run::{Bare, Plan};

/// Maximum number of runs of a case in one repetition. A disturbed run is repeated.
const TRIES: u32 = 3;

/// Arguments of `cargo xtask peers`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the results to this file as `isolane/peers/1`; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Run only the cases whose name contains this, as "throughput 8192 B"
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Number of runs of each case with each system; from 6 on, intervals of 95 % are reported
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: u32,
    /// Duration of each measurement, in seconds
    #[arg(long, value_name = "S", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
}

/// Builds all ends, runs all cases and writes the results. Returns true when every run succeeded.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let metadata = Metadata::read()?;
    let mut cases = Case::all();
    cases.retain(|case| case.name().contains(&arguments.only));
    if cases.is_empty() {
        let names = Case::all().into_iter().map(Case::name);
        let names: Vec<_> = names.collect();
        return Err(format!("no case is named so; there are: {}", names.join("; ")).into());
    }
    let plan = Plan {
        cases,
        repetitions: arguments.repetitions,
        seconds: arguments.seconds,
        tries: TRIES,
    };
    let (report, failures) = measure(&metadata, &plan)?;
    if let Some(file) = &arguments.json {
        report.write(file)?;
    }
    eprint!("{}", report.table());
    Ok(failures == 0)
}

/// Step of `cargo xtask test --all`: one case of each scenario, once, for a second, to check that the programs work.
/// Its numbers mean nothing.
pub fn step(metadata: &Metadata) -> Result<Outcome> {
    let plan = Plan {
        cases: Case::smoke(),
        repetitions: 1,
        seconds: 1,
        tries: 1,
    };
    let (report, failures) = measure(metadata, &plan)?;
    report.write(&metadata.target_directory.join("peers/smoke.json"))?;
    let of_case = |case: &Case| System::in_scenario(case.scenario).len();
    // One more for isolane against bare AF_XDP.
    let runs = plan.cases.iter().map(of_case).sum::<usize>() + 1;
    Ok(Outcome::Counted {
        passed: runs - failures,
        failed: failures,
    })
}

fn measure(metadata: &Metadata, plan: &Plan) -> Result<(Report, usize)> {
    packages::require_root("peers")?;
    build_examples("isolane", &["measured_end"])?;
    let systems = System::build_all(metadata)?;
    let bare = Bare::build(metadata)?;
    let folder = metadata.target_directory.join("peers");
    let (measured, failures) = run::run(plan, &systems, &bare, &folder)?;
    Ok((Report::new(plan, &systems, &bare, &measured), failures))
}
