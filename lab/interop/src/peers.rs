//! `cargo xtask peers`: builds the programs of other DDS implementations, isolane's, and those without a DDS
//! (`lab/interop/measured`), and measures the scenario `peers.toml` or `throughput.toml` there with `isolane bench run`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use isolane_support::steps::Outcome;
use isolane_support::workspace::{Metadata, build_commands, build_examples};
use isolane_support::{Result, command, packages};
use serde_json::Value;

use crate::foreign;

/// Arguments of `cargo xtask peers`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Measure only streams, at each system's best settings: to several readers, on one core, and with busy loops
    #[arg(long)]
    throughput: bool,
    /// Options of `isolane bench run`, as `--only reliable --repetitions 10 --folder results --json peers.json`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

/// Builds all programs and measures. Returns true when every run is valid.
pub fn run(arguments: &Arguments) -> Result<bool> {
    packages::require_root("peers")?;
    let metadata = Metadata::read()?;
    command::run(&mut build_commands())?;
    let scenario = match arguments.throughput {
        true => "throughput.toml",
        false => "peers.toml",
    };
    let mut bench = bench(&metadata, scenario)?;
    Ok(bench.args(&arguments.options).status()?.success())
}

/// Step of `cargo xtask test --all`: each program in each role for a second, to check that they work. Its numbers mean
/// nothing.
pub fn step(metadata: &Metadata) -> Result<Outcome> {
    let (mut passed, mut failed) = (0, 0);
    for (scenario, blocks) in [
        ("peers.toml", "round-trips,spinning,best-effort,rate"),
        ("throughput.toml", "readers,busy"),
    ] {
        match smoke(metadata, scenario, blocks)? {
            Some((valid, others)) => {
                passed += valid;
                failed += others;
            }
            None => return Ok(Outcome::Failed("not all runs were measured".into())),
        }
    }
    Ok(Outcome::Counted { passed, failed })
}

/// Measures blocks of a scenario for a second each. Returns the number of valid and of other runs; `None` if not all were
/// measured.
fn smoke(metadata: &Metadata, scenario: &str, blocks: &str) -> Result<Option<(usize, usize)>> {
    let file = metadata.target_directory.join("peers/smoke.json");
    let mut bench = bench(metadata, scenario)?;
    bench.args(["--only", blocks]);
    bench.args(["--repetitions", "1", "--set", "seconds=1"]);
    bench.args(["--set", "payload_bytes=1024", "--set", "cores=2"]);
    bench.arg("--json").arg(&file);
    // The file of an earlier run is no result of this one.
    if file.exists() {
        fs::remove_file(&file)?;
    }
    // The exit status tells less than the file.
    bench.status()?;
    let report: Value = serde_json::from_slice(&fs::read(&file)?)?;
    let runs = |name: &str| report[name].as_array().cloned().unwrap_or_default();
    if report["is_complete"] != true || !runs("left_out").is_empty() {
        return Ok(None);
    }
    let (measured, missing) = (runs("runs"), runs("missing"));
    let invalid = measured.iter().filter(|run| !run["invalid"].is_null());
    let invalid = invalid.count();
    Ok(Some((measured.len() - invalid, invalid + missing.len())))
}

/// Command that measures a scenario, with the programs in its PATH.
fn bench(metadata: &Metadata, scenario: &str) -> Result<Command> {
    let sources = metadata.workspace_root.join("lab/interop/measured");
    let folder = metadata.target_directory.join("peers");
    build_examples("isolane", &["measured_end"])?;
    build_examples("isolane-datapath-xdp", &["bare_ping_pong"])?;
    let examples = metadata.target_directory.join("release/examples");
    let programs = [
        ("isolane-end", examples.join("measured_end")),
        ("bare-xdp-end", examples.join("bare_ping_pong")),
        (
            "cyclonedds-end",
            foreign::build_cyclonedds(
                &sources.join("cyclonedds/end.c"),
                &sources.join("Message.idl"),
                &[],
                &folder.join("cyclonedds"),
            )?,
        ),
        (
            "fastdds-end",
            foreign::build_fastdds(&sources.join("fastdds/end.cpp"), &folder.join("fastdds"))?,
        ),
        (
            "udp-end",
            foreign::build_c(&sources.join("udp/end.c"), &folder.join("udp"))?,
        ),
    ];
    let path = folder.join("bin");
    fs::create_dir_all(&path)?;
    for (name, program) in programs {
        fs::copy(program, path.join(name))?;
    }
    let mut bench = Command::new(metadata.isolane());
    bench.args(["bench", "run"]);
    bench.arg(sources.join(scenario));
    bench.env("PATH", with_first(&path)?);
    Ok(bench)
}

/// PATH with a folder in front.
fn with_first(folder: &Path) -> Result<std::ffi::OsString> {
    let all = env::var_os("PATH").unwrap_or_default();
    let folders = [PathBuf::from(folder)].into_iter();
    Ok(env::join_paths(folders.chain(env::split_paths(&all)))?)
}

#[cfg(test)]
mod tests {
    use isolane_bench::experiment::Scenario;

    #[test]
    fn every_run_of_the_scenarios_can_be_measured() {
        for text in [
            include_str!("../measured/peers.toml"),
            include_str!("../measured/throughput.toml"),
        ] {
            let runs = Scenario::parse(text).unwrap().plan(true).unwrap();
            for run in &runs {
                assert_eq!(run.check(), Ok(()), "{run:?}");
                assert!(run.system.is_some(), "{run:?}");
            }
        }
    }
}
