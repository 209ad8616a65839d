//! `cargo xtask domain-size`: many processes of one domain, on hosts joined by a bridge.
//!
//! - Two hundred processes with 2,000 endpoints: time to match, delivery of each reliable sample, and the counts of a
//!   critical pair that runs at the same time, compared with the counts of the pair alone (`members.rs`).
//! - Many `isolane sub` for one `isolane pub`, in cases in which readers once got no samples (`readers.rs`).
//!
//! The hosts are unnamed namespaces, which the kernel removes with their last process. The processes end with this
//! command, even if it is killed.

mod members;
mod process;
mod readers;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use isolane_bench::namespace::BridgedHosts;
use isolane_bench::report::Environment;
use isolane_support::steps::{Check, Outcome};
use isolane_support::workspace::{Metadata, build_commands, build_examples};
use isolane_support::{Result, command, json, packages};
use serde::Serialize;

use members::MembersReport;
use readers::{
    FORTY_FIVE, MORE_THAN_THE_PORTS, Readers, ReadersReport, TEN_BY_UNICAST, TWENTY_BY_UNICAST,
};

/// Schema of the JSON.
const SCHEMA: &str = "isolane/domain-size/1";
/// Number of hosts on the bridge.
const HOSTS: u8 = 3;
/// Example program that each process runs.
const MEMBER: &str = "domain_member";

/// Arguments of `cargo xtask domain-size`.
#[derive(Args)]
pub struct Arguments {
    /// Number of processes, with ten endpoints each
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(10..=1000))]
    processes: u32,
    /// Run one part only: the processes, or the cases with many readers of one writer [default: both]
    #[arg(long, value_name = "PART")]
    only: Option<Part>,
    /// Folder with `isolane` and `examples/domain_member`, in cargo's layout [default: build them]
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
    /// Write the results to this file as `isolane/domain-size/1`; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    Members,
    Readers,
}

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    environment: Environment,
    members: Option<MembersReport>,
    readers: Vec<ReadersReport>,
}

/// Runs the command. Returns true if all gates hold.
pub fn run(arguments: &Arguments) -> Result<bool> {
    packages::require_root("domain-size")?;
    let metadata = Metadata::read()?;
    let has = |part| arguments.only.is_none_or(|only| only == part);
    let programs = match &arguments.programs {
        Some(folder) => folder.clone(),
        None => build(&metadata)?,
    };
    let folder = folder(&metadata)?;
    let mut members = None;
    if has(Part::Members) {
        let hosts = BridgedHosts::new(HOSTS)?;
        let program = programs.join("examples").join(MEMBER);
        members = Some(members::run(
            &hosts,
            &program,
            arguments.processes,
            &folder,
        )?);
    }
    let mut readers = Vec::new();
    if has(Part::Readers) {
        let cases = [
            FORTY_FIVE,
            TEN_BY_UNICAST,
            TWENTY_BY_UNICAST,
            MORE_THAN_THE_PORTS,
        ];
        readers = run_readers(&programs.join("isolane"), &folder, &cases)?;
    }
    let report = Report {
        schema: SCHEMA,
        environment: Environment::probe(),
        members,
        readers,
    };
    eprint!("\n{}", report.text());
    if let Some(file) = &arguments.json {
        json::write(&report, file)?;
    }
    Ok(report.checks().all(|check| check.holds))
}

/// Runs the cases with few processes as a step of `cargo xtask test --all`, which has built isolane.
pub fn step(metadata: &Metadata) -> Result<Outcome> {
    let folder = folder(metadata)?;
    let cases = [FORTY_FIVE, TEN_BY_UNICAST, TWENTY_BY_UNICAST];
    let report = Report {
        schema: SCHEMA,
        environment: Environment::probe(),
        members: None,
        readers: run_readers(&metadata.isolane(), &folder, &cases)?,
    };
    eprint!("{}", report.text());
    json::write(&report, &folder.join("report.json"))?;
    Ok(Outcome::of(report.checks()))
}

/// Builds the programs; returns their folder.
fn build(metadata: &Metadata) -> Result<PathBuf> {
    command::run(&mut build_commands())?;
    build_examples("isolane", &[MEMBER])?;
    Ok(metadata.target_directory.join("release"))
}

/// Runs each case on new hosts, which have no state of the previous case.
fn run_readers(isolane: &Path, folder: &Path, cases: &[Readers]) -> Result<Vec<ReadersReport>> {
    let run = |case: &Readers| case.run(&BridgedHosts::new(HOSTS)?, isolane, folder);
    cases.iter().map(run).collect()
}

fn folder(metadata: &Metadata) -> Result<PathBuf> {
    let folder = metadata.target_directory.join("domain-size");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

impl Report {
    fn checks(&self) -> impl Iterator<Item = &Check> {
        let members = self.members.iter().flat_map(|members| &members.checks);
        members.chain(self.readers.iter().flat_map(|readers| &readers.checks))
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for check in self.checks() {
            text += &format!("{check}\n");
        }
        if let Some(members) = &self.members {
            text += &format!("{}\n", members.text());
        }
        for readers in &self.readers {
            text += &format!("{}\n", readers.text());
        }
        text
    }
}
