//! `isolane bench run`, `list`, `show` and `report`: measurements of scenario files.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use isolane_bench::experiment::{Levels, SHIPPED, shipped};
use toml::{Table, Value};

use super::environment::BenchEnvironment;
use super::interruptible_runs::in_words;
use super::measure::{self, Loaded, Outputs};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::MAX_REPETITIONS;
use crate::output::{print, print_json};
use crate::settings::Settings;

/// Options that change a scenario.
#[derive(Debug, Args)]
pub(super) struct Changes {
    /// Name of a shipped scenario (`isolane bench list`), or a file
    #[arg(value_name = "SCENARIO")]
    scenario: String,
    /// Set a value or the levels of a factor, such as payload_bytes=64,1024; may be repeated
    #[arg(long, value_name = "NAME=VALUES", value_parser = set)]
    set: Vec<(String, Vec<Value>)>,
    /// Measure only the blocks with these names, separated by commas
    #[arg(long, value_name = "LIST")]
    only: Vec<String>,
    /// Repeat all runs this many times, 1 to 100 [default: as in the scenario]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_REPETITIONS))]
    repetitions: Option<u32>,
}

/// Parses `NAME=VALUES`. A value is TOML, or else a word.
fn set(text: &str) -> Result<(String, Vec<Value>), String> {
    let (name, values) = text
        .split_once('=')
        .ok_or_else(|| String::from("write NAME=VALUES, such as seconds=5"))?;
    let value = |text: &str| {
        let parsed = format!("value = {text}").parse::<Table>().ok();
        let parsed = parsed.and_then(|mut table| table.remove("value"));
        parsed.unwrap_or_else(|| text.into())
    };
    Ok((name.to_owned(), values.split(',').map(value).collect()))
}

impl Changes {
    fn load(self) -> Result<Loaded, Failure> {
        let name = &self.scenario;
        let mut loaded = match shipped(name) {
            Some(text) => Loaded::parse(name, text)?,
            None => {
                let text = fs::read_to_string(name).map_err(|error| {
                    Failure::wrong_usage(
                        format!("cannot read the scenario {name}"),
                        error.to_string(),
                    )
                    .with_remedy("isolane bench list names the shipped scenarios")
                })?;
                Loaded::parse(name, &text)?
            }
        };
        let scenario = &mut loaded.scenario;
        if let Some(unknown) = self.only.iter().find(|name| {
            let mut blocks = scenario.blocks.iter();
            !blocks.any(|block| block.name == **name)
        }) {
            let names = scenario.blocks.iter().map(|block| block.name.as_str());
            let names: Vec<&str> = names.collect();
            return Err(Failure::wrong_usage(
                format!("the scenario has no block {unknown}"),
                format!("its blocks are: {}", names.join(", ")),
            ));
        }
        if !self.only.is_empty() {
            scenario
                .blocks
                .retain(|block| self.only.contains(&block.name));
        }
        let mut levels = Levels::new();
        for (name, values) in self.set {
            if levels.insert(name.clone(), values).is_some() {
                return Err(Failure::wrong_usage(
                    format!("--set {name} was given twice"),
                    "all levels belong to one option, such as --set payload_bytes=64,1024",
                ));
            }
        }
        measure::replace(scenario, &levels)?;
        scenario.repetitions = self.repetitions.unwrap_or(scenario.repetitions);
        Ok(loaded)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    outputs: Outputs,
    /// Write the plan and each finished run to this folder, which must not exist unless --resume is given
    ///
    /// If the measurement is killed, `--resume` continues it, and `isolane bench report` shows the finished runs.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Measure only the runs that are missing in --folder
    #[arg(long, requires = "folder")]
    resume: bool,
}

impl Run {
    pub(super) fn run(self, settings: &Settings) -> Result<ExitCode, Failure> {
        let loaded = self.changes.load()?;
        settings.begin()?;
        let folder = self.folder.as_deref().map(|path| (path, self.resume));
        let hosts = BenchEnvironment::set_up()?;
        measure::run(hosts, loaded, self.outputs, folder)
    }
}

#[derive(Debug, Args)]
pub(crate) struct List {}

impl List {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let mut text = String::new();
        for (name, source) in SHIPPED {
            let title = Loaded::parse(name, source)?.scenario.title;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<12} {title}");
        }
        print(&text)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    changes: Changes,
    /// Print the file instead of its runs
    #[arg(long)]
    toml: bool,
}

impl Show {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        if self.toml {
            let scenario = self.changes.load()?.scenario;
            let text = toml::to_string(&scenario);
            let text =
                text.map_err(|error| Failure::forbidden("cannot print the scenario", error))?;
            return print(&text);
        }
        let scenario = self.changes.load()?.scenario;
        let runs = scenario.plan(true).map_err(|error| {
            Failure::wrong_usage("the scenario cannot be measured", error.to_string())
        })?;
        let seconds: u64 = runs.iter().map(|run| u64::from(run.cell.seconds)).sum();
        // Starting and ending a run takes about a second.
        let time = Duration::from_secs(seconds + runs.len() as u64);
        let mut text = format!(
            "{}\n{} runs, about {}\n",
            scenario.title,
            runs.len(),
            in_words(time)
        );
        for run in &runs {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{:>4}  {}: {}, {} s",
                run.number,
                scenario.blocks[run.block].name,
                run.title(&scenario),
                run.cell.seconds
            );
        }
        print(&text)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Folder of a measurement, or its `report.json`
    #[arg(value_name = "FOLDER")]
    from: PathBuf,
    #[command(flatten)]
    outputs: Outputs,
}

impl Report {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let report = read(&self.from)?;
        self.outputs.write(&report)?;
        let text = origin(&report) + &measure::text(&report);
        measure::show(&text, self.outputs.json.as_ref())?;
        if let Some(destination) = &self.outputs.json {
            print_json(&report, destination)?;
        }
        Ok(ExitCode::Done)
    }
}

/// Lines about the origin of a result: title, time, machine, command, scenario and systems under test.
fn origin(report: &isolane_bench::report::Report) -> String {
    let sessions = [&report.environment].into_iter().chain(&report.resumed);
    let (title, sha256) = (&report.scenario.title, &report.scenario_sha256);
    let mut text = isolane_bench::report::origin(title, sessions, sha256);
    for (name, version) in &report.systems {
        let system = report.scenario.systems.get(name);
        let about = system.map_or("", |system| system.about.as_str());
        let separator = if about.is_empty() { "" } else { "; " };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "system {name}: {version}{separator}{about}");
    }
    text + "\n"
}

/// Reads a report from a folder or a file.
pub(super) fn read(from: &Path) -> Result<isolane_bench::report::Report, Failure> {
    if from.is_dir() {
        return measure::read(from);
    }
    let refused = |why: String| {
        Failure::wrong_usage(format!("cannot read a report from {}", from.display()), why)
    };
    let text = fs::read(from).map_err(|error| refused(error.to_string()))?;
    isolane_bench::report::Report::parse(&text).map_err(|error| refused(error.to_string()))
}
