//! `cargo xtask coverage`: the lines of `wire` that its own tests run.
//!
//! `wire` parses everything that peers send, so an untested line would first run on a peer's input. `cargo-tarpaulin`
//! counts the lines with breakpoints (ptrace), without LLVM tools. It needs an unoptimized build, because lines that
//! optimization merges have no breakpoint. The command takes minutes, so it is not part of `cargo xtask test`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use isolane_support::workspace::{Metadata, cargo};
use isolane_support::{Result, command, json};
use serde::Deserialize;
use serde_json::{Value, json};

/// Measured package.
const PACKAGE: &str = "isolane-wire";
const SOURCES: &str = "crates/wire/src";

/// Minimum percentage of lines that the tests run. Most other lines have no instructions: a moved field, a constant, or
/// a branch that the types exclude.
const NEEDED_PERCENT: f64 = 95.0;

/// Arguments of `cargo xtask coverage`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Name the lines that no test runs
    #[arg(long)]
    lines: bool,
    /// Write the results to this file as `isolane/coverage/1`; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the tests and prints a table of files. Returns true if enough lines were run.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let metadata = Metadata::read()?;
    install_tool()?;
    let folder = metadata.target_directory.join("coverage");
    measure(&folder)?;
    let report = folder.join("tarpaulin-report.json");
    let text = std::fs::read(&report)
        .map_err(|error| format!("cannot read {}: {error}", report.display()))?;
    let table = Table::of(serde_json::from_slice(&text)?);
    match arguments.json.as_deref() {
        Some(file) => json::write(&table.report(), file)?,
        None => print!("{}", table.shown(arguments.lines)),
    }
    Ok(table.is_enough())
}

/// Installs the tool with cargo if it is missing.
fn install_tool() -> Result<()> {
    let mut version = cargo();
    version.args(["tarpaulin", "--version"]);
    version.stdout(Stdio::null()).stderr(Stdio::null());
    if version.status().is_ok_and(|status| status.success()) {
        return Ok(());
    }
    eprintln!("cargo-tarpaulin is not installed; cargo builds it now, which takes some minutes");
    // The tool's uploads to other services would need OpenSSL, so they are left out.
    command::run(cargo().args([
        "install",
        "cargo-tarpaulin",
        "--locked",
        "--no-default-features",
    ]))
}

fn measure(folder: &Path) -> Result<()> {
    let mut tarpaulin = cargo();
    tarpaulin
        .args(["tarpaulin", "--engine", "ptrace", "--package", PACKAGE])
        .args(["--include-files", &format!("{SOURCES}/*")])
        .args(["--skip-clean", "--out", "json", "--output-dir"])
        .arg(folder)
        .arg("--target-dir")
        .arg(folder)
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "2");
    run_with_progress(&mut tarpaulin)
}

/// Runs the tool with its output on standard error, as progress.
fn run_with_progress(tool: &mut Command) -> Result<()> {
    let output = tool
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .and_then(|child| child.wait_with_output())
        .map_err(|error| command::cannot_start(tool, &error))?;
    eprint!("{}", String::from_utf8_lossy(&output.stdout));
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("`{}`: {}", command::displayed(tool), output.status).into())
    }
}

/// Report of the tool.
#[derive(Deserialize)]
struct Report {
    files: Vec<ReportedFile>,
}

#[derive(Deserialize)]
struct ReportedFile {
    /// Path of the file, as a list of its components.
    path: Vec<String>,
    traces: Vec<Trace>,
}

#[derive(Deserialize)]
struct Trace {
    line: u32,
    /// `{ "Line": hits }`.
    stats: Value,
}

/// File with its number of lines, and the lines that were not run.
struct File {
    name: String,
    lines: usize,
    not_run: Vec<u32>,
}

impl File {
    fn of(file: ReportedFile) -> Option<Self> {
        let path = file.path.join("/");
        let (_, name) = path.split_once(&format!("{SOURCES}/"))?;
        let is_run = |trace: &Trace| trace.stats["Line"].as_u64().is_some_and(|times| times > 0);
        let not_run = file.traces.iter().filter(|trace| !is_run(trace));
        Some(Self {
            name: name.to_owned(),
            lines: file.traces.len(),
            not_run: not_run.map(|trace| trace.line).collect(),
        })
    }

    fn run(&self) -> usize {
        self.lines - self.not_run.len()
    }
}

/// All files that have lines.
struct Table {
    files: Vec<File>,
}

impl Table {
    fn of(report: Report) -> Self {
        let files = report.files.into_iter().filter_map(File::of);
        let mut files: Vec<File> = files.filter(|file| file.lines > 0).collect();
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Self { files }
    }

    fn counts(&self) -> (usize, usize) {
        let add = |(run, lines), file: &File| (run + file.run(), lines + file.lines);
        self.files.iter().fold((0, 0), add)
    }

    fn percent(&self) -> f64 {
        let (run, lines) = self.counts();
        percent(run, lines)
    }

    /// Returns true if enough lines were run; false if no line was measured.
    fn is_enough(&self) -> bool {
        self.percent() >= NEEDED_PERCENT
    }

    fn shown(&self, with_lines: bool) -> Shown<'_> {
        Shown {
            table: self,
            with_lines,
        }
    }

    fn report(&self) -> Value {
        let file = |file: &File| {
            json!({
                "file": file.name,
                "lines": file.lines,
                "run": file.run(),
                "not_run": file.not_run,
            })
        };
        let (run, lines) = self.counts();
        json!({
            "schema": "isolane/coverage/1",
            "sources": SOURCES,
            "lines": lines,
            "run": run,
            "percent": self.percent(),
            "needed_percent": NEEDED_PERCENT,
            "files": self.files.iter().map(file).collect::<Vec<_>>(),
        })
    }
}

fn percent(run: usize, lines: usize) -> f64 {
    if lines == 0 {
        0.0
    } else {
        100.0 * run as f64 / lines as f64
    }
}

/// Table as text.
struct Shown<'a> {
    table: &'a Table,
    with_lines: bool,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.table.files.iter().map(|file| file.name.len());
        let width = names.max().unwrap_or(0).max(5);
        for file in &self.table.files {
            let (run, lines) = (file.run(), file.lines);
            let percent = percent(run, lines);
            writeln!(
                formatter,
                "{:width$}  {run:5} of {lines:5}  {percent:5.1} %",
                file.name
            )?;
            if self.with_lines && !file.not_run.is_empty() {
                let lines: Vec<String> = file.not_run.iter().map(u32::to_string).collect();
                writeln!(formatter, "{:width$}  not run: {}", "", lines.join(" "))?;
            }
        }
        let (run, lines) = self.table.counts();
        let percent = self.table.percent();
        let verdict = if self.table.is_enough() {
            "enough"
        } else {
            "NOT ENOUGH"
        };
        writeln!(
            formatter,
            "{:width$}  {run:5} of {lines:5}  {percent:5.1} %: {verdict}, {NEEDED_PERCENT} % are needed",
            "lines"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(run: u32) -> Table {
        let trace = |line| json!({ "line": line, "address": [], "stats": { "Line": u32::from(line <= run) } });
        let report = json!({ "files": [
            {
                "path": ["/", "home", "crates", "wire", "src", "rtps", "gap.rs"],
                "content": "",
                "traces": (1..=20).map(trace).collect::<Vec<_>>(),
                "covered": run,
                "coverable": 20,
            },
            { "path": ["/", "home", "crates", "engine", "src", "lib.rs"], "traces": [trace(99)] },
            { "path": ["/", "home", "crates", "wire", "src", "lib.rs"], "traces": [] },
        ]});
        Table::of(serde_json::from_value(report).expect("a report"))
    }

    #[test]
    fn the_lines_of_wire_alone_count_and_those_not_run_are_named() {
        let table = table(18);
        assert_eq!(table.counts(), (18, 20));
        let shown = table.shown(true).to_string();
        assert!(shown.contains("rtps/gap.rs"), "{shown}");
        assert!(shown.contains("not run: 19 20"), "{shown}");
        assert!(shown.contains("90.0 %: NOT ENOUGH"), "{shown}");
    }

    #[test]
    fn ninety_five_of_a_hundred_are_enough_and_nothing_at_all_is_not() {
        assert!(table(19).is_enough() && !table(18).is_enough());
        assert!(!Table { files: Vec::new() }.is_enough());
    }
}
