//! Runs other programs with `std::process`. An error names the command that failed.

use std::ffi::OsStr;
use std::process::{Child, Command, Output, Stdio};

use crate::Result;

/// Formats a command as a person would type it, without quotes.
pub fn displayed(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Starts a command.
pub fn spawn(command: &mut Command) -> Result<Child> {
    let started = command.spawn();
    started.map_err(|error| cannot_start(command, &error).into())
}

/// Runs a command with the inherited standard streams; an exit status other than 0 is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let status = spawn(command)?.wait()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{}`: {status}", displayed(command)).into())
    }
}

/// Runs a command and returns its standard output; an exit status other than 0 is an error.
pub fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = captured(command.stderr(Stdio::inherit()))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("`{}`: {}", displayed(command), output.status).into())
    }
}

/// Runs a command and returns its exit status and output.
pub fn captured(command: &mut Command) -> Result<Output> {
    let output = command.output();
    output.map_err(|error| cannot_start(command, &error).into())
}

/// Runs a command and returns its standard output. Standard error is shown only in the error of a failed command.
pub fn quiet_output(command: &mut Command) -> Result<String> {
    let output = captured(command)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let command = displayed(command);
    Err(format!("`{command}`: {}: {}", output.status, said.trim()).into())
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
