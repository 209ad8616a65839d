//! Runs other programs with `std::process`. An error names the command that failed.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use crate::Result;

/// Formats a command as a person would type it, without quotes.
pub fn displayed(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs a command with the inherited standard streams; an exit status other than 0 is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .map_err(|error| cannot_start(command, &error))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{}`: {status}", displayed(command)).into())
    }
}

/// Runs a command and returns its standard output; an exit status other than 0 is an error.
pub fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| cannot_start(command, &error))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("`{}`: {}", displayed(command), output.status).into())
    }
}

/// Formats the reason why a program could not be started. Most often the program is not installed.
pub fn cannot_start(command: &Command, error: &std::io::Error) -> String {
    let hint = match error.kind() {
        std::io::ErrorKind::NotFound => {
            " (`cargo xtask test --system` installs what is missing, or names it)"
        }
        _ => "",
    };
    format!("cannot start `{}`: {error}{hint}", displayed(command))
}
