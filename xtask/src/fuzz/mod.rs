//! `cargo xtask fuzz`: runs the targets of `lab/fuzz/`. `cargo xtask test --all` runs them briefly as a step.
//!
//! - [`step`] replays the saved corpus and mutates it for a bounded time;
//! - [`run`] searches further inputs with libFuzzer (`libfuzzer.rs`), replays one input, grows the saved corpus, or
//!   checks that seeded bugs are found (`seeded.rs`).
//!
//! The commands write only two kinds of files into the source tree: failing inputs (`lab/fuzz/artifacts`, not in git)
//! and, with `--grow`, the corpus.
//!
//! `--grow` adds new inputs to the saved corpus, and removes superfluous ones. If the corpus is then too large for the
//! repository, the longest inputs are removed as well. They take the most time to run, and mutation of the other inputs
//! finds most of them again.

mod libfuzzer;
mod seeded;

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs};

use clap::Args;
use isolane_support::steps::Outcome;
use isolane_support::workspace::{Metadata, cargo};
use isolane_support::{Result, command, json};
use serde::Serialize;

use libfuzzer::{Fuzzer, Ran};

/// Names of all targets. `lab/fuzz/fuzz_targets` has a program of each name.
pub(crate) const TARGETS: [&str; 8] = [
    "rtps",
    "discovery",
    "cdr",
    "frames",
    "protocol",
    "datapath",
    "participant",
    "model",
];

/// Maximum time in seconds for which a target runs before the next one. Reading the corpus takes far less time.
const MAX_SLICE_SECONDS: u64 = 75;
/// Number of findings of a target after which it is skipped. Further findings rarely show another bug.
const MAX_FINDINGS: usize = 3;

/// Arguments of `cargo xtask fuzz`.
#[derive(Args)]
pub(crate) struct FuzzArguments {
    /// The target [default: all of them, in turn]
    #[arg(value_name = "TARGET", value_parser = TARGETS)]
    target: Option<String>,
    /// Duration of all targets together, in seconds
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

/// Runs the command. Returns true if no input failed; with `--seeded`, if every bug was found.
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
        return grow(&metadata, &targets);
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

/// Step of `cargo xtask test --all`.
pub(crate) fn step(metadata: &Metadata) -> Result<Outcome> {
    let mut test = cargo();
    test.args(["test", "--manifest-path"])
        .arg(metadata.workspace_root.join("lab/fuzz/Cargo.toml"))
        .arg("--target-dir")
        .arg(folder(metadata).join("stable"));
    crate::test_programs::counted(&mut [test])
}

/// Folder of builds and findings.
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

/// Runs all targets in turn until the time is over.
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

/// Maximum size in bytes of one target's corpus in the repository. All corpora together are smaller than 1 MiB.
const MAX_CORPUS_BYTES: u64 = 120 * 1024;

/// Replaces the corpus of each target with a minimal one of the same coverage, as far as it is within the bound.
fn grow(metadata: &Metadata, targets: &[&str]) -> Result<bool> {
    let home = metadata.workspace_root.join("lab/fuzz");
    let fuzzer = Fuzzer::build(&home, &folder(metadata), targets)?;
    for target in targets {
        let merged = folder(metadata).join("merged").join(target);
        if merged.exists() {
            fs::remove_dir_all(&merged)?;
        }
        fs::create_dir_all(&merged)?;
        fuzzer.minimise(target, &merged)?;
        let corpus = home.join("corpus").join(target);
        fs::create_dir_all(&corpus)?;
        let before = inputs(&corpus)?;
        for (_, path) in &before {
            fs::remove_file(path)?;
        }
        let mut bytes = 0;
        let mut kept = 0;
        for (length, path) in inputs(&merged)? {
            if bytes + length <= MAX_CORPUS_BYTES {
                fs::copy(&path, corpus.join(path.file_name().unwrap_or_default()))?;
                (bytes, kept) = (bytes + length, kept + 1);
            }
        }
        eprintln!(
            "{target}: {} inputs before, {kept} now, {bytes} bytes",
            before.len()
        );
    }
    Ok(true)
}

/// Returns the files in a folder with their lengths, the shortest first.
fn inputs(folder: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let mut inputs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        inputs.push((entry.metadata()?.len(), entry.path()));
    }
    inputs.sort();
    Ok(inputs)
}

/// Schema of the JSON.
const SCHEMA: &str = "isolane/fuzz/1";

/// All runs.
#[derive(Debug, Default)]
struct Report {
    targets: Vec<TargetReport>,
    /// Seeded bugs; empty if none were tested.
    seeded: Vec<SeededReport>,
}

/// Runs of one target.
#[derive(Debug, Default, Serialize)]
struct TargetReport {
    target: String,
    inputs: u64,
    seconds: f64,
    coverage: u64,
    corpus: u64,
    findings: Vec<FindingReport>,
}

/// Failing input.
#[derive(Debug, Serialize)]
struct FindingReport {
    input: String,
    message: Option<String>,
}

/// Seeded bug.
#[derive(Debug, Serialize)]
struct SeededReport {
    bug: String,
    what: String,
    /// Target that found it; `None` if none did.
    found_by: Option<String>,
    inputs: u64,
    seconds: f64,
    message: Option<String>,
}

impl Report {
    fn add(&mut self, target: &str, ran: Ran) {
        let place = self.targets.iter().position(|row| row.target == target);
        let place = place.unwrap_or_else(|| {
            self.targets.push(TargetReport {
                target: target.into(),
                ..TargetReport::default()
            });
            self.targets.len() - 1
        });
        let row = &mut self.targets[place];
        row.inputs += ran.inputs;
        row.seconds += ran.seconds;
        row.coverage = row.coverage.max(ran.coverage);
        row.corpus = row.corpus.max(ran.corpus);
        row.findings.extend(ran.finding.map(|input| FindingReport {
            input,
            message: ran.message,
        }));
    }

    fn findings_of(&self, target: &str) -> usize {
        let row = self.targets.iter().find(|row| row.target == target);
        row.map_or(0, |row| row.findings.len())
    }

    /// Returns true if no target failed and every seeded bug was found.
    fn passed(&self) -> bool {
        self.targets.iter().all(|row| row.findings.is_empty())
            && self.seeded.iter().all(|bug| bug.found_by.is_some())
    }

    fn write(&self, file: &Path) -> Result<()> {
        let value = serde_json::json!({
            "schema": SCHEMA,
            "targets": self.targets,
            "seeded": self.seeded,
        });
        json::write(&value, file)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.targets.is_empty() {
            writeln!(
                f,
                "{:<12} {:>12} {:>8} {:>8} {:>8} findings",
                "target", "inputs", "seconds", "covered", "corpus"
            )?;
        }
        for row in &self.targets {
            writeln!(
                f,
                "{:<12} {:>12} {:>8.0} {:>8} {:>8} {}",
                row.target,
                row.inputs,
                row.seconds,
                row.coverage,
                row.corpus,
                row.findings.len()
            )?;
            for finding in &row.findings {
                let message = finding.message.as_deref().unwrap_or("");
                writeln!(f, "  {message}")?;
                writeln!(
                    f,
                    "  again: cargo xtask fuzz {} --input {}",
                    row.target, finding.input
                )?;
            }
        }
        for bug in &self.seeded {
            let found = match &bug.found_by {
                Some(target) => format!(
                    "found by {target} after {} inputs, {:.1} s",
                    bug.inputs, bug.seconds
                ),
                None => format!("NOT FOUND in {} inputs, {:.0} s", bug.inputs, bug.seconds),
            };
            writeln!(f, "{:<20} {found}\n{:<20} {}", bug.bug, "", bug.what)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_of_the_folder_is_a_target_and_has_a_saved_corpus() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/fuzz");
        let names = |folder: &str| {
            let entries = fs::read_dir(home.join(folder)).expect("the folder");
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
