//! `cargo xtask isolation`: the scenario `isolation` of `isolane bench run`, whose runs must be as its blocks expect.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use isolane_support::steps::Outcome;
use isolane_support::workspace::{Metadata, build_commands};
use isolane_support::{Result, command, packages};
use serde_json::Value;

/// Duration in seconds of each run in `cargo xtask test --all`.
const STEP_SECONDS: u32 = 1;

/// Arguments of `cargo xtask isolation`.
#[derive(Args)]
pub struct Arguments {
    /// Duration of each run, in seconds
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Write the results to this file as `isolane/rtt/1`; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Builds isolane and measures the scenario.
pub fn run(arguments: &Arguments) -> Result<bool> {
    packages::require_root("isolation")?;
    command::run(&mut build_commands())?;
    let mut measure = scenario(&Metadata::read()?, arguments.seconds);
    if let Some(file) = &arguments.json {
        measure.arg("--json").arg(file);
    }
    Ok(measure.status()?.success())
}

/// Measures short runs as a step of `cargo xtask test --all`, which has built isolane.
pub fn step(metadata: &Metadata) -> Result<Outcome> {
    let file = metadata.target_directory.join("isolation.json");
    // The report of an earlier run must not be taken for the report of this run.
    if file.exists() {
        fs::remove_file(&file)?;
    }
    let mut measure = scenario(metadata, STEP_SECONDS);
    let ran = command::run(measure.arg("--json").arg(&file));
    let report: Value = match fs::read(&file) {
        Ok(text) => serde_json::from_slice(&text)?,
        Err(error) => return ran.and(Err(error.into())),
    };
    let count = |list: &str| report[list].as_array().map_or(0, Vec::len);
    let runs = report["runs"].as_array().into_iter().flatten();
    let passed = runs.filter(|run| run["unexpected"].is_null()).count();
    // Every run is needed, also where the machine allows no lanes.
    let failed = count("runs") - passed + count("missing") + count("left_out");
    match (ran, failed) {
        (Err(error), 0) => Err(error),
        _ => Ok(Outcome::Counted { passed, failed }),
    }
}

fn scenario(metadata: &Metadata, seconds: u32) -> Command {
    let mut measure = Command::new(metadata.isolane());
    measure.args(["bench", "run", "isolation", "--set"]);
    measure.arg(format!("seconds={seconds}"));
    measure
}
