//! `cargo xtask conformance`: runs the conformance suite on all datapaths, and prints a table with a
//! line for each requirement and a column for each datapath.
//!
//! `isolane_testkit::conformance` has the suite, its test programs and the table.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use clap::Args;
use isolane_bench::report::Environment;
use isolane_testkit::conformance::table::{PROGRAMS, Program, Seen, Table};

use isolane_support::steps::Outcome;
use isolane_support::workspace::{Metadata, cargo};
use isolane_support::{Result, command, json, packages};

/// Arguments of `cargo xtask conformance`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Write the results to this file as `isolane/conformance/1`; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the suite on all datapaths and prints the table. Returns false if a requirement does not
/// hold or could not be tested here.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let table = measure()?;
    match arguments.json.as_deref() {
        Some(file) => {
            eprint!("\n{table}");
            json::write(&table.report(Environment::probe()), file)?;
        }
        None => print!("\n{table}"),
    }
    let counts = table.counts();
    Ok(counts.failed == 0 && counts.skipped == 0)
}

/// Runs the suite as a step of `cargo xtask test --system`. Each cell of the table counts as a check.
pub(crate) fn step(metadata: &Metadata) -> Result<Outcome> {
    let table = measure()?;
    eprint!("{table}");
    let file = metadata.target_directory.join("conformance.json");
    json::write(&table.report(Environment::probe()), &file)?;
    let counts = table.counts();
    Ok(Outcome::Counted {
        passed: counts.passed,
        failed: counts.failed,
    })
}

fn measure() -> Result<Table> {
    let is_root = packages::is_root();
    let mut table = Table::new(is_root);
    for program in PROGRAMS {
        if is_root || !program.needs_root() {
            table.add(run_program(&program)?);
        }
    }
    Ok(table)
}

/// Runs a test program and reads its results.
fn run_program(program: &Program) -> Result<Seen> {
    let mut test = cargo();
    test.args(["test", "--package", program.package, "--test", program.test]);
    if !program.only.is_empty() {
        test.arg("--").args(program.only);
    }
    let mut child = test
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| command::cannot_start(&test, &error))?;
    let mut seen = Seen::new(program);
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            eprintln!("{line}");
            seen.add_line(&line);
        }
    }
    seen.end(child.wait()?.success());
    Ok(seen)
}
