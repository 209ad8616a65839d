//! Writing to the person: results to standard output, everything else to standard error.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::values::Destination;

/// Writes a result to standard output.
///
/// # Errors
/// The output cannot be written, a full disk for example; or its reader has seen enough and closed
/// the pipe ([`Failure::OutputClosed`]), which ends the command without a word.
pub(crate) fn print(text: &str) -> Result<ExitCode, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ExitCode::Done),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::OutputClosed),
        Err(error) => Err(Failure::new(
            ExitCode::MachineForbids,
            "the result could not be written",
            error.to_string(),
        )),
    }
}

/// Writes a result as JSON to where it was asked for.
///
/// # Errors
/// It cannot be written there.
pub(crate) fn print_json(
    result: &impl serde::Serialize,
    destination: &Destination,
) -> Result<ExitCode, Failure> {
    let failed = |why: String| not_written(destination, why);
    let mut text =
        serde_json::to_string_pretty(result).map_err(|error| failed(error.to_string()))?;
    text.push('\n');
    match destination {
        Destination::StandardOutput => print(&text),
        Destination::File(path) => write_text(&text, path),
    }
}

/// Writes text to a file, in place of what it held.
///
/// # Errors
/// It cannot be written there.
pub(crate) fn write_text(text: &str, path: &Path) -> Result<ExitCode, Failure> {
    match std::fs::write(path, text) {
        Ok(()) => Ok(ExitCode::Done),
        Err(error) => Err(not_written(
            &Destination::File(path.to_owned()),
            error.to_string(),
        )),
    }
}

/// Makes sure, before the work, that a result can be written to where it was asked for. What the
/// file holds stays.
///
/// # Errors
/// It cannot be written there.
pub(crate) fn check_writable(destination: &Destination) -> Result<(), Failure> {
    match destination {
        Destination::StandardOutput => Ok(()),
        // Opening a pipe and closing it again would tell its reader that nothing comes.
        Destination::File(path) if is_special(path) => Ok(()),
        Destination::File(path) => {
            let is_new = !path.exists();
            let opened = File::options().create(true).append(true).open(path);
            opened.map_err(|error| not_written(destination, error.to_string()))?;
            if is_new {
                // A command that fails before its end leaves no empty file; if this one stays, the
                // result takes its place.
                let _ = std::fs::remove_file(path);
            }
            Ok(())
        }
    }
}

/// Whether it is a pipe, a device or a socket.
pub(crate) fn is_special(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Tells the person something beside the result.
pub(crate) fn tell(what: impl Display) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(io::stderr(), "{what}");
}

/// So many of something: "1 reader", "2 readers".
pub(crate) fn count_of(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

/// JSON as it is made, a line a value.
pub(crate) enum JsonLines {
    StandardOutput,
    File(File, Destination),
}

impl JsonLines {
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn new(destination: &Destination) -> Result<Self, Failure> {
        match destination {
            Destination::StandardOutput => Ok(Self::StandardOutput),
            Destination::File(path) => File::create(path)
                .map(|file| Self::File(file, destination.clone()))
                .map_err(|error| not_written(destination, error.to_string())),
        }
    }

    /// Writes one value, at once: a stream has readers.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(&mut self, value: &impl serde::Serialize) -> Result<ExitCode, Failure> {
        let failed = |why: String| not_written(&Destination::StandardOutput, why);
        let mut line = serde_json::to_string(value).map_err(|error| failed(error.to_string()))?;
        line.push('\n');
        match self {
            Self::StandardOutput => print(&line),
            Self::File(file, destination) => file
                .write_all(line.as_bytes())
                .and_then(|()| file.flush())
                .map(|()| ExitCode::Done)
                .map_err(|error| not_written(destination, error.to_string())),
        }
    }
}

fn not_written(destination: &Destination, why: String) -> Failure {
    Failure::new(
        ExitCode::MachineForbids,
        format!("the result cannot be written to {destination}"),
        why,
    )
    .with_remedy("name a file in a directory that exists and this user may write to, or - for standard output")
}
