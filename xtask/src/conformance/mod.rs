//! `cargo xtask conformance`: what every datapath does, and whether each of them does it.
//!
//! The suite of `isolane_datapath::conformance` is instantiated in the tests of each datapath. Here those
//! test programs are run, and what they say of each requirement becomes one table: a line for each
//! requirement, a column for each datapath. The suite itself names its requirements, so one that a
//! datapath's tests leave out is a failure, not a gap that nobody sees.

mod table;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use clap::Args;
use isolane_support::steps::Outcome;
use isolane_support::workspace::{Metadata, cargo};
use isolane_support::{Result, command, json, packages};

use self::table::{Column, Seen, Table};

/// A test program that instantiates the suite.
struct Program {
    package: &'static str,
    test: &'static str,
    /// The datapath its tests are of, unless they say "fault".
    column: Column,
    /// Tests to run, where it has others that take longer.
    only: &'static [&'static str],
}

const PROGRAMS: [Program; 5] = [
    Program {
        package: "isolane-datapath",
        test: "memory",
        column: Column::Memory,
        only: &[],
    },
    Program {
        package: "isolane-datapath",
        test: "fault",
        column: Column::Fault,
        only: &["over_memory::", "over_udp::"],
    },
    Program {
        package: "isolane-datapath",
        test: "udp",
        column: Column::Udp,
        only: &[],
    },
    // Groups are joined in a network namespace of its own.
    Program {
        package: "isolane-datapath",
        test: "udp_multicast",
        column: Column::Udp,
        only: &[],
    },
    Program {
        package: "isolane-datapath-xdp",
        test: "xdp",
        column: Column::Xdp,
        only: &["unicast::", "multicast::"],
    },
];

/// What `cargo xtask conformance` takes.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Write the results there as `isolane/conformance/1`; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The command: runs the suite on all datapaths and prints the table. What could not run here is not
/// known to hold, so then the answer is no.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let table = measure()?;
    match arguments.json.as_deref() {
        Some(file) => {
            eprint!("\n{table}");
            json::write(&table.report(), file)?;
        }
        None => print!("\n{table}"),
    }
    let counts = table.counts();
    Ok(counts.failed == 0 && counts.skipped == 0)
}

/// The same as a step of `cargo xtask test --system`; each cell of the table counts.
pub(crate) fn step(metadata: &Metadata) -> Result<Outcome> {
    let table = measure()?;
    eprint!("{table}");
    let file = metadata.target_directory.join("conformance.json");
    json::write(&table.report(), &file)?;
    let counts = table.counts();
    Ok(Outcome::Counted {
        passed: counts.passed,
        failed: counts.failed,
    })
}

fn measure() -> Result<Table> {
    let mut table = Table::new(packages::is_root());
    for program in &PROGRAMS {
        if program.column == Column::Xdp && !packages::is_root() {
            continue;
        }
        listen_to(program, &mut table)?;
    }
    Ok(table)
}

/// Runs a test program and has the table filled in with what it says. That it ends badly is seen in its
/// tests, or in those that it did not come to.
fn listen_to(program: &Program, table: &mut Table) -> Result<()> {
    let mut test = cargo();
    test.args(["test", "--package", program.package, "--test", program.test]);
    if !program.only.is_empty() {
        test.arg("--").args(program.only);
    }
    let mut child = test
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| command::cannot_start(&test, &error))?;
    let mut seen = Seen::new(
        program.column,
        format!("{} {}", program.package, program.test),
    );
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            eprintln!("{line}");
            seen.add_line(&line);
        }
    }
    seen.end(child.wait()?.success());
    table.add(seen);
    Ok(())
}
