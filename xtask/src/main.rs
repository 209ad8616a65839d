//! `cargo xtask`: what developers and CI run, in Rust so that it needs no other tool.
//!
//! - `cargo xtask test` runs every check there is and ends with a line `N passed, N failed`;
//! - `cargo xtask interop` runs isolane against other DDS implementations in network namespaces.
//!
//! Progress goes to standard error; standard output carries the summary, or JSON where asked for.
//! Nothing here touches the machine's own network namespace. As root, `test` installs the packages
//! that its checks need.

mod command;
mod demo;
mod dependencies;
mod interop;
mod packages;
mod steps;
mod test;
mod workspace;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Failures end up as text for a person; nobody matches on them.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How the cable's process is told from a person's commands.
const CABLE_COMMAND: &str = "cable";

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run all checks: format, lints, tests, documentation, dependencies, interoperability, demo
    Test,
    /// Run isolane against other DDS implementations, in network namespaces (needs root)
    Interop {
        /// The full product of the axes instead of the cover that CI runs
        #[arg(long)]
        all: bool,
        /// Write the results there as `isolane/interop/1`; `-` is standard output
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// The emulated cable between two hosts: what `interop` starts as a process of its own
    #[command(name = CABLE_COMMAND, hide = true)]
    Cable { role: String },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Test => test::run(),
        Command::Interop { all, json } => interop::run(all, json.as_deref()),
        Command::Cable { role } => return isolane_bench::child::main(&role),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
