//! Running other programs: a thin layer over `std::process` that names the command when it fails.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use crate::Result;

/// A command as a person would type it, without quoting.
pub fn displayed(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs it with the inherited standard streams; an exit status other than 0 is an error.
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

/// Runs it and returns its standard output; an exit status other than 0 is an error.
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

/// Reason for which a program could not be started, most often because it is not installed.
pub fn cannot_start(command: &Command, error: &std::io::Error) -> String {
    let hint = match error.kind() {
        std::io::ErrorKind::NotFound => {
            " (`cargo xtask test --system` installs what is missing, or names it)"
        }
        _ => "",
    };
    format!("cannot start `{}`: {error}{hint}", displayed(command))
}
