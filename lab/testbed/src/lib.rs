//! `cargo xtask testbed SCENARIO`: isolane in emulated machines, with a kernel and network devices that the development
//! machine need not have.
//!
//! ```text
//!   packages.rs    Debian's packages, unpacked into a folder
//!   initramfs.rs   programs, libraries, modules -> a cpio archive
//!   guest.rs       the emulator's command line, a boot, a result
//!   inside/        the guest's first process
//!   scenario/      the scenarios, outside and inside the guest
//! ```
//!
//! Guests have no outside network: their devices are on a hub inside the emulator, or connected to another guest's by a
//! Unix socket. docs/explanation/testbed.md says what the testbed shows, and what it cannot.

mod guest;
mod initramfs;
pub mod inside;
mod packages;
mod scenario;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use isolane_bench::report::Environment;
use isolane_support::steps::Outcome;
use isolane_support::workspace::{Metadata, build_commands};
use isolane_support::{Result, command, json};
use serde::Serialize;

use guest::Machine;
use packages::Packages;

/// Arguments of `cargo xtask testbed`.
#[derive(Args)]
pub struct Arguments {
    /// Scenario to run
    #[arg(required_unless_present = "list")]
    scenario: Option<String>,
    /// List the scenarios
    #[arg(long)]
    list: bool,
    /// Number of seeds, where a scenario uses them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: u64,
    /// First seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    first_seed: u64,
    /// Write the guests' results to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Keep the guests' files, and print their folder
    #[arg(long)]
    keep: bool,
}

/// Scenario that is a step of `cargo xtask test --all`.
const IN_STEP: &str = "brief";

/// Inputs of a scenario: machine and arguments.
pub(crate) struct Bench {
    machine: Machine,
    seeds: u64,
    first_seed: u64,
    json: Option<PathBuf>,
}

impl Bench {
    /// Seeds of the run.
    fn seeds(&self) -> std::ops::Range<u64> {
        self.first_seed..self.first_seed + self.seeds
    }

    /// Writes the guests' results to the requested file.
    fn report(&self, result: &impl Serialize) -> Result<()> {
        self.json
            .as_ref()
            .map_or(Ok(()), |file| json::write(result, file))
    }

    /// Prints a result with its origin, and writes the guests' results to the requested file.
    fn publish(
        &self,
        heading: (&str, &str),
        origin: (&Environment, &str),
        text: &str,
        result: &impl Serialize,
    ) -> Result<()> {
        json::publish(heading, origin, text, result, self.json.as_ref())
    }
}

/// Step of `cargo xtask test --all`: a short scenario, with isolane already built.
pub fn step(metadata: &Metadata) -> Result<Outcome> {
    let packages = match Packages::fetch(&folder(metadata)) {
        Ok(packages) => packages,
        // A caller that forbids skipped steps turns this into a failure.
        Err(error) => return Ok(Outcome::LeftOut(error.to_string())),
    };
    let bench = Bench {
        machine: machine(metadata, packages)?,
        seeds: 1,
        first_seed: 1,
        json: Some(metadata.target_directory.join("testbed.json")),
    };
    let shown = (scenario::named(IN_STEP)?.run)(&bench);
    let is_shown = matches!(shown, Ok(true));
    if is_shown {
        fs::remove_dir_all(&bench.machine.folder)?;
    }
    match shown? {
        true => Ok(Outcome::Passed),
        false => Ok(Outcome::Failed(format!(
            "`cargo xtask testbed {IN_STEP}` has faults"
        ))),
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let Some(name) = arguments.scenario.as_deref().filter(|_| !arguments.list) else {
        for scenario in scenario::ALL {
            println!("{:8} {}", scenario.name, scenario.shows);
        }
        return Ok(true);
    };
    let scenario = scenario::named(name)?;
    let metadata = Metadata::read()?;
    let packages = Packages::fetch(&folder(&metadata))?;
    command::run(&mut build_commands())?;
    let bench = Bench {
        machine: machine(&metadata, packages)?,
        seeds: arguments.seeds,
        first_seed: arguments.first_seed,
        json: arguments.json.clone(),
    };
    let shown = (scenario.run)(&bench);
    let folder = &bench.machine.folder;
    match arguments.keep || !matches!(shown, Ok(true)) {
        true => eprintln!("what guests wrote is in {}", folder.display()),
        false => fs::remove_dir_all(folder)?,
    }
    shown
}

/// Folder of the downloaded packages, shared by all runs.
fn folder(metadata: &Metadata) -> PathBuf {
    metadata.target_directory.join("testbed")
}

/// Builds the initramfs of this version in this run's folder.
fn machine(metadata: &Metadata, packages: Packages) -> Result<Machine> {
    let run = format!("run-{}", std::process::id());
    let folder = folder(metadata).join(run);
    fs::create_dir_all(&folder)?;
    let first = stripped(&std::env::current_exe()?, &folder.join("init"))?;
    let isolane = stripped(&metadata.isolane(), &folder.join("isolane"))?;
    let archive = initramfs::make(&packages, &first, &[isolane])?;
    let initramfs = folder.join("initramfs");
    fs::write(&initramfs, archive)?;
    Ok(Machine {
        packages,
        initramfs,
        folder,
    })
}

/// Strips debug information, most of a program's size, which a guest would hold in memory.
fn stripped(program: &Path, copy: &Path) -> Result<PathBuf> {
    command::run(Command::new("strip").arg("-o").arg(copy).arg(program))?;
    Ok(copy.to_owned())
}
