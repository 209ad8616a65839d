//! Measurement of a scenario: planned runs, results, and the files that they are written to.

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{env, fs, io, mem, process};

use clap::Args;
use isolane_bench::experiment::{
    Cell, Datapath, Folder, Levels, Load, Planned, Scenario, Show, What, distinct,
};
use isolane_bench::record::Dataset;
use isolane_bench::report::{
    self, Expectations, Of, Report, Run, STREAM_SCHEMA, Series, TRIES, csv, page, parts_of_ratios,
    ratios, wrapped,
};
use isolane_bench::scenario::rtt::Outcome;
use isolane_bench::scenario::{ScenarioError, Waiting, version};
use isolane_model::Word;
use toml::Value;

use super::environment::{self, BenchEnvironment};
use super::interruptible_runs::{self, Measured, Row};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{GrowingJson, count_of, print, tell, terminal_columns, write_text};
use crate::values::{Destination, MeasuredDatapath};

/// Files for the results, in addition to the text.
#[derive(Debug, Default, Args)]
pub(super) struct Outputs {
    /// Write the results as JSON to this file; `-` is standard output
    ///
    /// Results of finished runs are also written to a temporary file next to it, until all runs have ended.
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<Destination>,
    /// Write the results as one self-contained HTML page with figures
    #[arg(long, value_name = "FILE", value_parser = page_file)]
    pub(super) page: Option<PathBuf>,
    /// Write the results as comma-separated values to this file, a line for each run
    #[arg(long, value_name = "FILE", value_parser = page_file)]
    pub(super) csv: Option<PathBuf>,
    /// True for `isolane demo`, which chooses files if the user names none, and names its longer form.
    #[arg(skip)]
    pub(super) is_demo: bool,
}

impl Outputs {
    /// Writes the page and the CSV file.
    pub(super) fn write(&self, report: &Report) -> Result<(), Failure> {
        if let Some(file) = &self.page {
            write_text(&page(report), file)?;
        }
        if let Some(file) = &self.csv {
            write_text(&csv(report), file)?;
        }
        Ok(())
    }
}

/// Parses a file name; refuses standard output, which has the text.
fn page_file(text: &str) -> Result<PathBuf, String> {
    match text {
        "" | "-" => Err(String::from("name a file, such as demo.html")),
        file => Ok(PathBuf::from(file)),
    }
}

/// Scenario with the text of its file.
pub(super) struct Loaded {
    pub(super) scenario: Scenario,
    pub(super) sha256: String,
}

impl Loaded {
    /// Parses the text of a scenario. `what` names it in errors.
    pub(super) fn parse(what: &str, text: &str) -> Result<Self, Failure> {
        let scenario = Scenario::parse(text).map_err(|error| {
            Failure::wrong_usage(
                format!("cannot parse the scenario {what}"),
                error.to_string(),
            )
        })?;
        let sha256 = isolane_bench::experiment::sha256(text);
        Ok(Self { scenario, sha256 })
    }

    /// Scenario that is part of the program.
    pub(super) fn shipped(name: &str) -> Result<Self, Failure> {
        let text = isolane_bench::experiment::shipped(name).unwrap_or_default();
        Self::parse(name, text)
    }
}

/// Levels of an option, for [`Scenario::vary`].
pub(super) fn levels<T: Into<Value>>(values: impl IntoIterator<Item = T>) -> Vec<Value> {
    values.into_iter().map(Into::into).collect()
}

/// Replaces the levels of factors by those given as options.
pub(super) fn vary<const N: usize>(
    scenario: &mut Scenario,
    options: [(&str, Vec<Value>); N],
) -> Result<(), Failure> {
    let options = options
        .into_iter()
        .map(|(name, levels)| (name.to_owned(), levels));
    let mut options: Levels = BTreeMap::from_iter(options);
    options.retain(|_, levels| !levels.is_empty());
    replace(scenario, &options)
}

/// Replaces the levels of factors.
pub(super) fn replace(scenario: &mut Scenario, levels: &Levels) -> Result<(), Failure> {
    let replaced = scenario.vary(levels);
    replaced.map_err(|error| Failure::wrong_usage("cannot set a value", error.to_string()))
}

/// Level of the factor `datapath`.
pub(super) fn datapath_word(datapath: MeasuredDatapath) -> &'static str {
    let known = MeasuredDatapath::WORDS.iter();
    let mut words = known.filter(|(_, known)| *known == datapath);
    words.next().map_or("udp", |(word, _)| word)
}

/// Plans the runs for this machine. Without test hosts, runs over sockets use 127.0.0.1.
pub(super) fn plan(scenario: &Scenario, hosts: &BenchEnvironment) -> Result<Vec<Planned>, Failure> {
    let planned = scenario.plan(hosts.hosts.is_ok());
    let mut planned = planned.map_err(|error| {
        Failure::wrong_usage("the scenario cannot be measured", error.to_string())
    })?;
    for run in &mut planned {
        reach(&mut run.cell, hosts)?;
    }
    let planned = distinct(planned);
    for run in &planned {
        let checked = run.check();
        checked.map_err(|error| environment::failure(&error.into()))?;
    }
    Ok(planned)
}

/// Chooses the datapath for a machine without test hosts. Returns an error for a run that this machine cannot measure.
fn reach(cell: &mut Cell, hosts: &BenchEnvironment) -> Result<(), Failure> {
    let refused = |why: &str| {
        let what = format!("nothing was measured over `{}`", cell.datapath.word());
        Err(Failure::forbidden(what, why).with_remedy("run as root, with the datapath udp"))
    };
    if cell.measure == What::Throughput && cell.datapath == Datapath::Memory {
        return refused("`memory` has one thread, on which writer and reader only take turns");
    }
    if cell.system.is_some() && hosts.hosts.is_err() {
        return refused("a system under test runs on two test hosts");
    }
    if (cell.both_directions || cell.waiting != Waiting::Sleep) && hosts.hosts.is_err() {
        return refused("two directions, and ends that spin, need two test hosts");
    }
    let has_hosts = hosts.hosts.is_ok() && cell.datapath.has_hosts();
    if cell.disturbance != Load::None && !has_hosts {
        return refused("this disturbance needs two test hosts and the cable between them");
    }
    if cell.step.is_some() && hosts.hosts.is_err() {
        return refused("the steps differ in how test hosts receive frames from the cable");
    }
    match (cell.datapath, &hosts.hosts) {
        (Datapath::Udp, Err(_)) => {
            cell.datapath = Datapath::UdpLoopback;
            Ok(())
        }
        (Datapath::Xdp, Err(_)) => {
            refused("its lanes need an interface of a test host, and there are no test hosts")
        }
        (Datapath::Xdp, Ok(_)) if cell.step.is_none() => match hosts.without_lanes() {
            Some(why) => refused(&why),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Versions of the systems under test that the runs measure, as their programs print them.
fn versions(planned: &[Planned]) -> Result<BTreeMap<String, String>, Failure> {
    let mut versions = BTreeMap::new();
    for run in planned {
        let (Some(name), Some(system)) = (&run.cell.system, &run.system) else {
            continue;
        };
        if versions.contains_key(name) {
            continue;
        }
        let printed = version(system).map_err(|why| {
            let program = system.program.display();
            let what = format!("system {name}: cannot read the version from `{program} --version`");
            Failure::forbidden(what, why).with_remedy(
                "give the path of its program in [system], or put it into PATH; it must end within five seconds",
            )
        })?;
        versions.insert(name.clone(), printed);
    }
    Ok(versions)
}

/// Measures a scenario and shows the results. The exit code tells whether all runs are valid.
pub(super) fn run(
    hosts: BenchEnvironment,
    loaded: Loaded,
    outputs: Outputs,
    folder: Option<(&Path, bool)>,
) -> Result<ExitCode, Failure> {
    let explanation = hosts.without_hosts();
    if let Some(explanation) = &explanation {
        tell(explanation);
    }
    let mut planned = plan(&loaded.scenario, &hosts)?;
    let left_out = hosts.leave_out_lanes(&mut planned);
    let mut report = Report::new(loaded.scenario, loaded.sha256);
    report.left_out = left_out;
    report.systems = versions(&planned)?;
    let is_stream = |run: &Planned| run.cell.measure == What::Throughput;
    if planned.iter().any(is_stream) {
        STREAM_SCHEMA.clone_into(&mut report.schema);
    }
    let data = folder.map(|(path, _)| Dataset::in_folder(path));
    let folder = match folder {
        None => None,
        Some((path, is_resumed)) => {
            let folder = open(path, is_resumed, &mut report)?;
            Some(Arc::new(Mutex::new(folder)))
        }
    };
    let is_planned = |run: &Run| {
        let mut planned = planned.iter();
        planned.any(|it| it.number == run.number && Some(&it.cell) == run.cell.as_ref())
    };
    if let Some(other) = report.runs.iter().find(|run| !is_planned(run)) {
        return Err(Failure::wrong_usage(
            format!("run {} of the folder is not in this plan", other.number),
            "the machine allowed other runs when the measurement began: resume it with the same rights",
        ));
    }
    let done: Vec<u32> = report.runs.iter().map(|run| run.number).collect();
    planned.retain(|run| !done.contains(&run.number));
    let scenario = report.scenario.clone();
    let rows = planned.into_iter().map(|planned| Row {
        title: planned.title(&scenario),
        seconds: planned.cell.seconds,
        config: planned,
    });
    let mut growing = outputs.json.as_ref().map(GrowingJson::new);
    let mut series: Vec<Series> = Vec::new();
    let keep = |(run, times): (Run, Option<Series>)| {
        report.add(run);
        series.extend(times);
        if let Some(growing) = &mut growing {
            growing.keep(&report);
        }
    };
    let (of_runs, of_scenario) = (folder.clone(), scenario.clone());
    let run = move |hosts: &BenchEnvironment, planned: &Planned| {
        let outcome = measure(hosts, planned, &of_scenario.blocks[planned.block].expect)?;
        // Before the next run begins, because writing would disturb it.
        match of_runs.as_deref().map(|folder| store(folder, &outcome)) {
            // The folder has the times.
            Some(Ok(())) => return Ok((outcome.run, None)),
            Some(Err(error)) => tell(format!(
                "run {} is not in the folder: {error}",
                planned.number
            )),
            None => {}
        }
        let parts = parts_of_ratios(&of_scenario, planned.block);
        let series = Series::of(planned.number, &outcome.rounds, &parts);
        Ok((outcome.run, Some(series)))
    };
    let about = match &explanation {
        Some(_) => "over 127.0.0.1 or in memory",
        None => scenario.about.trim(),
    };
    let measured = interruptible_runs::measure(hosts, about, rows.collect(), run, keep)?;
    report.runs.sort_by_key(|run| run.number);
    if measured.interrupted {
        // The process ends soon, and the ratios of many runs take longer.
        if let Some(data) = &data {
            tell(format!(
                "the ratios are left out: isolane bench report {} prints them",
                data.path().parent().unwrap_or(data.path()).display()
            ));
        }
    } else {
        report.ratios = ratios(&report.scenario, &report.runs, |number, of| {
            let kept = Series::find(&series, number, of);
            kept.or_else(|| times(data.as_ref()?, number, of).ok())
        });
    }
    report.missing.clone_from(&measured.missing);
    report.is_complete = !measured.interrupted;
    // The other outputs are written even if the folder cannot be.
    let kept = folder.as_deref().map_or(Ok(()), |folder| {
        let folder = locked(folder);
        let finished = folder.finish(&report);
        finished.map_err(|error| not_written(folder.path(), &error))
    });
    let code = finish(&report, &measured, outputs, growing)?;
    kept.map(|()| code)
}

/// Adds a run and its timestamps to the folder.
fn store(folder: &Mutex<Folder>, outcome: &Outcome) -> Result<(), Box<dyn Error>> {
    let mut folder = locked(folder);
    if outcome.run.stream.is_none() {
        let number = u16::try_from(outcome.run.number)?;
        // The timestamps come first, so that a run with a line has them.
        Dataset::in_folder(folder.path()).write(number, &outcome.rounds)?;
    }
    Ok(folder.add(&outcome.run)?)
}

fn locked(folder: &Mutex<Folder>) -> MutexGuard<'_, Folder> {
    folder.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Times of a part of a run in nanoseconds, from the folder of its measurement.
pub(super) fn times(data: &Dataset, number: u32, of: Of) -> Result<Vec<u64>, Box<dyn Error>> {
    let rounds = data.read(u16::try_from(number)?)?;
    Ok(of.times_ns(&rounds))
}

/// Returns a function that is true for the first line of each run.
fn first_lines() -> impl FnMut(&Run) -> bool {
    let mut numbers = HashSet::new();
    move |run| numbers.insert(run.number)
}

fn measure(
    hosts: &BenchEnvironment,
    planned: &Planned,
    expect: &Expectations,
) -> Result<Outcome, ScenarioError> {
    let once = || match planned.cell.measure {
        What::RoundTrips => hosts.measure(&planned.round_trips()),
        What::Throughput => Ok(Outcome::of_stream(hosts.stream(planned)?)),
    };
    let mut outcome = expect.measure(once, |attempt, why| {
        tell(format!(
            "attempt {attempt} of {TRIES} at run {} does not count: {why}",
            planned.number
        ));
    })?;
    outcome.run.number = planned.number;
    outcome.run.repetition = planned.repetition;
    outcome.run.block = Some(planned.block);
    outcome.run.cell = Some(planned.cell.clone());
    Ok(outcome)
}

/// Creates the folder of a measurement, or opens it and takes its runs into the report.
fn open(path: &Path, is_resumed: bool, report: &mut Report) -> Result<Folder, Failure> {
    let is_begun = is_resumed && !Folder::is_unbegun(path);
    if !is_begun {
        let begun = match is_resumed {
            true => Folder::begin(path, report),
            false => Folder::create(path, report),
        };
        return begun.map_err(|error| {
            let failure = not_written(path, &error);
            match error.kind() {
                io::ErrorKind::AlreadyExists => failure
                    .with_remedy("name a new folder, or continue the measurement with --resume"),
                _ => failure,
            }
        });
    }
    let data = Dataset::in_folder(path);
    let mut is_first = first_lines();
    let keep = |run: &Run| {
        let times = match run.stream {
            Some(_) => Ok(Vec::new()),
            None => times(&data, run.number, Of::Rtt),
        };
        if let Err(error) = &times {
            let number = run.number;
            tell(format!("run {number} is measured again: {error}"));
        }
        times.is_ok() && is_first(run)
    };
    let resumed = Folder::resume::<Report, Run>(path, keep);
    let (folder, earlier, runs) = resumed.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Failure::forbidden(
            format!("cannot resume the measurement in {}", path.display()),
            &error,
        )
        .with_remedy("wait until it ends, or stop it"),
        _ => not_read(path, &error),
    })?;
    if earlier.scenario != report.scenario {
        return Err(Failure::wrong_usage(
            format!("{} is of another scenario or other options", path.display()),
            "repeat the original command with --resume, or name a new folder",
        ));
    }
    if earlier.systems != report.systems {
        return Err(Failure::wrong_usage(
            format!("{} is of other versions of the systems", path.display()),
            "the runs of a folder are measured with the same programs: name a new folder",
        ));
    }
    let finished = count_of(runs.len() as u64, "finished run");
    tell(format!("{finished} in {}", path.display()));
    report.resumed = earlier.resumed;
    let environment = mem::replace(&mut report.environment, earlier.environment);
    report.resumed.push(environment);
    let kept = folder.set_manifest(report);
    kept.map_err(|error| not_written(path, &error))?;
    runs.into_iter().for_each(|run| report.add(run));
    Ok(folder)
}

/// Reads the result in a folder, which may be that of an interrupted measurement.
pub(super) fn read(path: &Path) -> Result<Report, Failure> {
    let read = Folder::read::<Report, Run>(path);
    let (mut report, mut runs) = read.map_err(|error| not_read(path, &error))?;
    runs.retain(first_lines());
    let finished: Option<Report> = fs::read(path.join("report.json"))
        .ok()
        .and_then(|text| Report::parse(&text).ok());
    let finished = finished.filter(|finished| finished.runs.len() >= runs.len());
    if let Some(finished) = finished {
        if finished.is_complete {
            return Ok(finished);
        }
        // An interrupted measurement has no ratios.
        report.missing = finished.missing;
    }
    let data = Dataset::in_folder(path);
    for run in runs.iter().filter(|run| run.stream.is_none()) {
        if let Err(error) = times(&data, run.number, Of::Rtt) {
            tell(format!(
                "run {} has no times, and its ratios may have no interval: {error}",
                run.number
            ));
        }
    }
    runs.into_iter().for_each(|run| report.add(run));
    report.runs.sort_by_key(|run| run.number);
    report.ratios = ratios(&report.scenario, &report.runs, |number, of| {
        times(&data, number, of).ok()
    });
    Ok(report)
}

fn not_written(path: &Path, error: &io::Error) -> Failure {
    let what = format!("cannot write the folder {}", path.display());
    Failure::forbidden(what, error)
}

fn not_read(path: &Path, error: &io::Error) -> Failure {
    let what = format!("cannot read a measurement from {}", path.display());
    Failure::wrong_usage(what, error.to_string())
}

/// Writes the files and the text of a report.
fn finish(
    report: &Report,
    measured: &Measured,
    mut outputs: Outputs,
    mut growing: Option<GrowingJson>,
) -> Result<ExitCode, Failure> {
    let mut text = text(report) + &failures(report, measured);
    if outputs.is_demo && report.scenario.show == Show::Bars && !report.runs.is_empty() {
        if outputs.json.is_none()
            && outputs.page.is_none()
            && let Some(folder) = result_folder()
        {
            let file = Destination::File(folder.join("demo.json"));
            growing = Some(GrowingJson::new(&file));
            outputs.page = Some(folder.join("demo.html"));
        }
        let json_file = growing.as_ref().and_then(GrowingJson::path);
        text.push('\n');
        for (what, file) in [("Page", outputs.page.as_deref()), ("JSON", json_file)] {
            if let Some(file) = file {
                let _ = writeln!(text, "{what}: {}", file.display());
            }
        }
        text.push_str("All parts and tables, in two minutes: isolane demo --full\n");
    }
    // Files are written before the text, because after SIGHUP the terminal may be gone.
    if let Some(growing) = growing.take_if(|growing| growing.is_file()) {
        growing.finish(report)?;
    }
    outputs.write(report)?;
    show(&text, outputs.json.as_ref())?;
    if let Some(growing) = growing {
        growing.finish(report)?;
    }
    let is_result = report.runs.iter().all(|run| report.fault(run).is_none());
    Ok(measured.exit_code(is_result))
}

/// Text of a report for this terminal.
pub(super) fn text(report: &Report) -> String {
    let mut text = report::text(report, terminal_columns());
    if !report.is_complete {
        let ended = count_of(report.runs.len() as u64, "run");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\nThis result is incomplete: {ended} ended.");
    }
    if report.scenario.show == Show::Bars {
        return text;
    }
    let mut notes: Vec<String> = Vec::new();
    for note in report.runs.iter().flat_map(|run| &run.notes) {
        let note = note.to_string();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes.push(format!("clock: {}", report.environment.clock.words()));
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\nThis machine\n  {}", notes.join("\n  "));
    let reading = report.scenario.reading.trim();
    if !reading.is_empty() && !report.runs.is_empty() {
        let _ = writeln!(text, "\n{reading}");
    }
    text
}

/// Lines about runs without a result. With bars, also lines about invalid runs, which only tables show.
fn failures(report: &Report, measured: &Measured) -> String {
    let failures = measured.failures();
    if report.scenario.show == Show::Tables {
        return failures;
    }
    let invalid = report.runs.iter().filter_map(|run| {
        let ((word, reason), label) = (report.fault(run)?, run.label()?);
        Some(format!("{word}: {label}: {reason}"))
    });
    let lines = failures.lines().map(str::to_owned).chain(invalid);
    lines.map(|line| wrapped(&line)).collect()
}

/// Creates a new folder for the page and the JSON of a demo for which no files were named. Returns `None`, and tells the
/// reason, if that fails.
fn result_folder() -> Option<PathBuf> {
    let folder = env::temp_dir().join(format!("isolane-demo-{}", process::id()));
    match fs::create_dir(&folder) {
        Ok(()) => Some(folder),
        Err(error) => {
            tell(format!(
                "no page and no JSON: cannot create {}: {error}. Name files with --page and --json.",
                folder.display()
            ));
            None
        }
    }
}

/// Prints the text to standard output, or to standard error if JSON goes to standard output.
pub(super) fn show(text: &str, json: Option<&Destination>) -> Result<(), Failure> {
    if json == Some(&Destination::StandardOutput) {
        tell(text);
        Ok(())
    } else {
        print(text).map(drop)
    }
}
