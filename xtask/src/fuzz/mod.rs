//! `cargo xtask fuzz`: the targets of `lab/fuzz/`, longer and by hand, or as a step of `cargo xtask test`.
//!
//! - [`step`] replays the saved corpus and mutates it for a bounded time, on stable Rust;
//! - [`run`] lets libFuzzer look for more (`libfuzzer.rs`), replays one input, grows the saved corpus,
//!   or shows that bugs put in on purpose are found (`seeded.rs`).
//!
//! Nothing is written into the tree but what fails (`lab/fuzz/artifacts`, not in git) and, with
//! `--grow`, the corpus.

mod grow;
mod libfuzzer;
mod report;
mod seeded;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use isolane_support::steps::Outcome;
use isolane_support::workspace::{Metadata, cargo};
use isolane_support::{Result, command};

use libfuzzer::Fuzzer;
use report::Report;

/// Every target: `lab/fuzz/fuzz_targets` has a program of each name.
pub(crate) const TARGETS: [&str; 8] = [
    "rtps",
    "discovery",
    "cdr",
    "frames",
    "engine",
    "datapath",
    "participant",
    "model",
];

/// The longest that one target runs before the next has its turn, in seconds: long enough to be
/// worth reading its corpus anew.
const MAX_SLICE_SECONDS: u64 = 75;
/// Findings of one target after which it is left alone: more of the same tell nothing new.
const MAX_FINDINGS: usize = 3;

/// What `cargo xtask fuzz` takes.
#[derive(Args)]
pub(crate) struct FuzzArguments {
    /// The target [default: all of them, in turn]
    #[arg(value_name = "TARGET", value_parser = TARGETS)]
    target: Option<String>,
    /// How long to fuzz, all targets together
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// Run the target on this one file instead, as it was saved when it failed
    #[arg(long, value_name = "FILE", requires = "target", conflicts_with_all = ["seeded", "grow"])]
    input: Option<PathBuf>,
    /// Show that bugs put in on purpose are found, each within `--seconds`
    #[arg(long, conflicts_with_all = ["grow", "target"])]
    seeded: bool,
    /// Add what was found beyond the saved corpus to it, without what is superfluous; fuzz before
    #[arg(long)]
    grow: bool,
    /// Write the results there; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The command; says whether nothing failed (with `--seeded`: whether everything was found).
pub(crate) fn run(arguments: &FuzzArguments) -> Result<bool> {
    let metadata = Metadata::read()?;
    let targets: Vec<&str> = match &arguments.target {
        Some(target) => vec![target],
        None => TARGETS.to_vec(),
    };
    let home = metadata.workspace_root.join("lab/fuzz");
    if let (Some(file), [target]) = (&arguments.input, &targets[..]) {
        return replay(&metadata, target, file);
    }
    if arguments.grow {
        return grow::grow(&metadata, &targets);
    }
    let time = Duration::from_secs(arguments.seconds);
    let report = if arguments.seeded {
        seeded::run(&metadata, time)?
    } else {
        let fuzzer = Fuzzer::build(&home, &folder(&metadata), &targets)?;
        fuzz(&fuzzer, &targets, time)?
    };
    eprint!("\n{report}");
    if let Some(file) = &arguments.json {
        report.write(file)?;
    }
    Ok(report.passed())
}

/// The step of `cargo xtask test`.
pub(crate) fn step(metadata: &Metadata) -> Result<Outcome> {
    crate::test::counted(
        cargo()
            .arg("test")
            .arg("--manifest-path")
            .arg(metadata.workspace_root.join("lab/fuzz/Cargo.toml"))
            .arg("--target-dir")
            .arg(folder(metadata).join("stable")),
    )
}

/// Where everything that is built or found goes.
fn folder(metadata: &Metadata) -> PathBuf {
    metadata.target_directory.join("fuzz")
}

fn replay(metadata: &Metadata, target: &str, file: &Path) -> Result<bool> {
    let mut replay = cargo();
    replay
        .args(["run", "--quiet", "--manifest-path"])
        .arg(metadata.workspace_root.join("lab/fuzz/Cargo.toml"))
        .arg("--target-dir")
        .arg(folder(metadata).join("stable"))
        .args(["--", "replay", target])
        .arg(file.canonicalize()?);
    Ok(command::run(&mut replay).is_ok())
}

/// All targets in turn, until the time is over.
fn fuzz(fuzzer: &Fuzzer, targets: &[&str], time: Duration) -> Result<Report> {
    let mut report = Report::default();
    let each = time.as_secs() / targets.len() as u64;
    let rounds = each.div_ceil(MAX_SLICE_SECONDS).max(1);
    let slice = Duration::from_secs((each / rounds).max(1));
    for round in 1..=rounds {
        for target in targets {
            if report.findings_of(target) >= MAX_FINDINGS {
                continue;
            }
            let ran = fuzzer.run(target, slice)?;
            eprintln!(
                "round {round} of {rounds}, {target}: {} inputs in {:.0} s, {} places covered{}",
                ran.inputs,
                ran.seconds,
                ran.coverage,
                ran.finding
                    .as_ref()
                    .map_or(String::new(), |finding| format!(", FOUND {finding}"))
            );
            report.add(target, ran);
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_of_the_folder_is_a_target_and_has_a_saved_corpus() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/fuzz");
        let names = |folder: &str| {
            let entries = std::fs::read_dir(home.join(folder)).expect("the folder");
            let paths = entries.map(|entry| entry.expect("an entry").path());
            let name = |path: PathBuf| path.file_stem().map(|stem| stem.to_owned());
            let mut names: Vec<_> = paths.filter_map(name).collect();
            names.sort();
            names
        };
        let mut targets = TARGETS;
        targets.sort_unstable();
        assert_eq!(names("fuzz_targets"), targets);
        assert_eq!(names("corpus"), targets);
    }
}
