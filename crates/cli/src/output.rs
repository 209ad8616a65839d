//! Output: results to standard output, everything else to standard error.
//!
//! Only this module and `result_file` write text. Both apply [`visible`], so that names and texts from files, peers and
//! plans cannot control the terminal.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::SystemTime;

use clap::builder::StyledStr;
use isolane_model::{visible, visible_line};
use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::result_file::{self, ResultFile, is_special};
use crate::values::Destination;

/// Writes a result to standard output.
///
/// # Errors
/// The output cannot be written, for example because the disk is full. [`Failure::OutputClosed`] if the reader closed
/// the pipe, which ends the command silently.
pub(crate) fn print(text: &str) -> Result<ExitCode, Failure> {
    write_out(&visible(text))
}

/// Writes help to standard output, styled on a terminal. Help consists of this program's text only.
///
/// # Errors
/// As [`print`].
pub(crate) fn print_help(help: &StyledStr) -> Result<ExitCode, Failure> {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match io::stdout().is_terminal() && !is_plain {
        true => write_out(&help.ansi().to_string()),
        false => write_out(&help.to_string()),
    }
}

fn write_out(text: &str) -> Result<ExitCode, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ExitCode::Done),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::OutputClosed),
        Err(error) => Err(Failure::forbidden(
            "the result could not be written",
            error.to_string(),
        )),
    }
}

/// Writes a result as JSON to its destination.
pub(crate) fn print_json(
    result: &impl serde::Serialize,
    destination: &Destination,
) -> Result<ExitCode, Failure> {
    let text = json(result).map_err(|error| not_written(destination, &error))?;
    match destination {
        Destination::StandardOutput => print(&text),
        Destination::File(path) => write_text(&text, path),
    }
}

/// Writes a result as JSON to the destination, if there is one. Writes the result also as text to standard output,
/// unless the JSON goes there.
pub(crate) fn print_json_or<R: serde::Serialize>(
    result: &R,
    destination: Option<&Destination>,
    text: impl FnOnce(&R) -> String,
) -> Result<ExitCode, Failure> {
    if let Some(destination) = destination {
        print_json(result, destination)?;
    }
    match destination {
        Some(Destination::StandardOutput) => Ok(ExitCode::Done),
        _ => print(&text(result)),
    }
}

fn json(result: &impl serde::Serialize) -> io::Result<String> {
    let mut text = serde_json::to_string_pretty(result)?;
    text.push('\n');
    Ok(text)
}

/// Replaces a file's content with `text`. If the file cannot be written, its old content stays.
pub(crate) fn write_text(text: &str, path: &Path) -> Result<ExitCode, Failure> {
    let written = ResultFile::create(path).and_then(|mut file| {
        file.write(text)?;
        file.finish()
    });
    match written {
        Ok(()) => Ok(ExitCode::Done),
        Err(error) => Err(not_written(&Destination::File(path.to_owned()), &error)),
    }
}

/// Checks before a measurement that its destination can be written. A file's content stays.
pub(crate) fn check_writable(destination: &Destination) -> Result<(), Failure> {
    match destination {
        Destination::StandardOutput => Ok(()),
        Destination::File(path) => {
            result_file::check_writable(path).map_err(|error| not_written(destination, &error))
        }
    }
}

/// JSON result that grows during a measurement.
///
/// A temporary file in the destination's folder holds intermediate results. At the end it replaces the destination.
pub(crate) struct GrowingJson {
    destination: Destination,
    /// Temporary file; `None` if only the final result is written.
    file: Option<ResultFile>,
}

impl GrowingJson {
    /// Creates the temporary file. If that fails, the result stays in memory.
    pub(crate) fn new(destination: &Destination) -> Self {
        let file = match destination {
            Destination::File(path) if !is_special(path) => ResultFile::create(path).ok(),
            _ => None,
        };
        Self {
            destination: destination.clone(),
            file: file.filter(ResultFile::is_temporary),
        }
    }

    /// Saves the intermediate result. Errors are ignored here: [`Self::finish`] writes again, and reports its error.
    pub(crate) fn keep(&mut self, result: &impl serde::Serialize) {
        if let (Some(file), Ok(text)) = (&mut self.file, json(result)) {
            let _ = file.rewrite(&text);
        }
    }

    /// Returns whether [`Self::finish`] writes a file, and so does not wait for a reader of a pipe.
    pub(crate) fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// Destination file; `None` for standard output.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.destination {
            Destination::StandardOutput => None,
            Destination::File(path) => Some(path),
        }
    }

    /// Writes the final result.
    pub(crate) fn finish(self, result: &impl serde::Serialize) -> Result<ExitCode, Failure> {
        let Some(mut file) = self.file else {
            return print_json(result, &self.destination);
        };
        json(result)
            .and_then(|text| file.rewrite(&text))
            .and_then(|()| file.finish())
            .map(|()| ExitCode::Done)
            .map_err(|error| not_written(&self.destination, &error))
    }
}

/// Prints a message for the user to standard error.
pub(crate) fn tell(what: impl Display) {
    // If standard error is closed, the message is lost.
    let _ = writeln!(io::stderr(), "{}", visible(&what.to_string()));
}

/// Width of the terminal; `None` if standard output is no terminal.
pub(crate) fn terminal_columns() -> Option<usize> {
    let is_terminal = io::stdout().is_terminal();
    let size = ratatui::crossterm::terminal::size().ok();
    let size = size.filter(|(columns, _)| is_terminal && *columns > 0);
    size.map(|(columns, _)| usize::from(columns))
}

/// Number with a noun: "1 reader", "2 readers".
pub(crate) fn count_of(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

/// Items as text with a separator between them.
pub(crate) fn joined(items: impl IntoIterator<Item = impl Display>, separator: &str) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(separator)
}

pub(crate) enum JsonLines {
    StandardOutput,
    File(ResultFile, Destination),
}

impl JsonLines {
    /// Creates the file. An existing file stays until the first line is written.
    pub(crate) fn new(destination: &Destination) -> Result<Self, Failure> {
        match destination {
            Destination::StandardOutput => Ok(Self::StandardOutput),
            Destination::File(path) => ResultFile::create(path)
                .map(|file| Self::File(file, destination.clone()))
                .map_err(|error| not_written(destination, &error)),
        }
    }

    /// Writes one value as a line, and flushes it, so that readers of the stream see it at once.
    pub(crate) fn write(&mut self, value: &impl serde::Serialize) -> Result<ExitCode, Failure> {
        let line = serde_json::to_string(value);
        let mut line =
            line.map_err(|error| not_written(&Destination::StandardOutput, &error.into()))?;
        line.push('\n');
        match self {
            Self::StandardOutput => print(&line),
            Self::File(file, destination) => file
                .write(&line)
                .and_then(|()| file.finish())
                .map(|()| ExitCode::Done)
                .map_err(|error| not_written(destination, &error)),
        }
    }

    /// Completes the file. It replaces an existing file even if no line was written.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        match self {
            Self::StandardOutput => Ok(()),
            Self::File(file, destination) => file
                .finish()
                .map_err(|error| not_written(destination, &error)),
        }
    }
}

fn not_written(destination: &Destination, error: &io::Error) -> Failure {
    let what = format!("the result cannot be written to {destination}");
    if error.kind() == io::ErrorKind::Interrupted {
        let why = "no program reads it, and a signal ended the wait for one";
        return Failure::new(ExitCode::Interrupted, what, why);
    }
    Failure::forbidden(what, error).with_remedy(
        "name a file in a directory that exists and this user may write to, or - for standard output",
    )
}

/// Printer of the library's `log` records, with time and level.
struct LogPrinter;

static PRINTER: LogPrinter = LogPrinter;

/// Text of the library's warning about incompatible endpoints. `pub` and `sub` report these themselves, so the warning
/// is printed only with `-v`.
const REPORTED_BY_COMMANDS: &str = "they do not match";

/// Installs the printer. Verbosity 0 prints warnings; 1 also information; 2 also debug records.
pub(crate) fn install_log(verbosity: u8) {
    let filter = match verbosity {
        0 => LevelFilter::Warn,
        1 => LevelFilter::Info,
        _ => LevelFilter::Debug,
    };
    // If another logger is installed, that logger stays.
    if log::set_logger(&PRINTER).is_ok() {
        log::set_max_level(filter);
    }
}

impl Log for LogPrinter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Records of other libraries are ignored.
        metadata.target().starts_with("isolane")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        // Commands print the participant's warnings themselves.
        if record.target() == "isolane::setting" {
            return;
        }
        let line = log_line(record, SystemTime::now());
        if log::max_level() > LevelFilter::Warn || !line.contains(REPORTED_BY_COMMANDS) {
            tell(line);
        }
    }

    fn flush(&self) {}
}

fn log_line(record: &Record<'_>, now: SystemTime) -> String {
    let level = match record.level() {
        Level::Error => "error",
        Level::Warn => "warning",
        Level::Info => "info",
        Level::Debug | Level::Trace => "debug",
    };
    let time = humantime::format_rfc3339_micros(now);
    // A peer's name must not add lines.
    let said = record.args().to_string();
    format!("{time} {level}: {}", visible_line(&said))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::UNIX_EPOCH;

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_growing_result_is_kept_next_to_the_older_one_until_it_is_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("result.json");
        let read = |path: &Path| fs::read_to_string(path).expect("a file");
        fs::write(&path, "older").expect("a file");
        let mut growing = GrowingJson::new(&Destination::File(path.clone()));
        assert!(growing.is_file());
        growing.keep(&json!({ "runs": [1, 2, 3] }));
        growing.keep(&json!({ "runs": [1] }));
        assert_eq!(read(&path), "older");
        let entries = fs::read_dir(folder.path()).expect("a folder").flatten();
        let mut others = entries.map(|entry| entry.path()).filter(|it| *it != path);
        let kept = read(&others.next().expect("a temporary file"));
        let kept: Value = serde_json::from_str(&kept).expect("JSON");
        assert_eq!(kept, json!({ "runs": [1] }));
        growing.finish(&json!({ "runs": [1, 2] })).expect("room");
        let whole: Value = serde_json::from_str(&read(&path)).expect("JSON");
        assert_eq!(whole, json!({ "runs": [1, 2] }));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);

        // Only the final result is written to a device.
        let mut growing = GrowingJson::new(&Destination::File("/dev/null".into()));
        assert!(!growing.is_file());
        growing.keep(&json!(1));
        growing.finish(&json!(2)).expect("it takes everything");
    }

    #[test]
    fn a_line_has_time_and_level_and_stays_one_line() {
        let record = Record::builder()
            .level(Level::Warn)
            .target("isolane::discovery")
            .args(format_args!("a\nb"))
            .build();
        assert_eq!(
            log_line(&record, UNIX_EPOCH),
            "1970-01-01T00:00:00.000000Z warning: a\\u000ab"
        );
        assert!(PRINTER.enabled(record.metadata()));
    }
}
