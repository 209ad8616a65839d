//! Writing to the person: results to standard output, everything else to standard error.

use std::fmt::Display;
use std::io::{self, Write};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::values::Destination;

/// Writes a result to standard output. A reader that has seen enough and closes the pipe is no
/// failure.
///
/// # Errors
/// The output cannot be written, a full disk for example.
pub(crate) fn print(text: &str) -> Result<ExitCode, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ExitCode::Done),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::Done),
        Err(error) => Err(Failure::new(
            ExitCode::MachineForbids,
            "the result could not be written",
            error.to_string(),
            "write it somewhere else",
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
    let failed = |why: String| {
        Failure::new(
            ExitCode::MachineForbids,
            format!("the result could not be written to {destination}"),
            why,
            "name a file that can be written",
        )
    };
    let mut text =
        serde_json::to_string_pretty(result).map_err(|error| failed(error.to_string()))?;
    text.push('\n');
    match destination {
        Destination::StandardOutput => print(&text),
        Destination::File(path) => std::fs::write(path, text)
            .map(|()| ExitCode::Done)
            .map_err(|error| failed(error.to_string())),
    }
}

/// Tells the person something beside the result.
pub(crate) fn tell(what: impl Display) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(io::stderr(), "{what}");
}
