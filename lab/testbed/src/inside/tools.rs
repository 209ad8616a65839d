//! Debian's programs in a guest, and ours.

use std::process::{Command, Output};

use isolane_support::{Result, command};

/// Where programs are in a guest; nobody has set a path for the first process.
const PROGRAMS: &str = "/usr/bin";

/// A program of the guest.
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(format!("{PROGRAMS}/{name}"));
    command.env("PATH", PROGRAMS);
    command
}

/// Runs a program with these words and returns what it printed; what fails is an error with its own words.
pub(crate) fn run(name: &str, arguments: &str) -> Result<String> {
    let mut command = program(name);
    command.args(arguments.split_whitespace());
    output(command)
}

/// The same with a command that is made already.
pub(crate) fn output(mut command: Command) -> Result<String> {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .map_err(|error| command::cannot_start(&command, &error))?;
    if !status.success() {
        let why = String::from_utf8_lossy(&stderr);
        let what = command::displayed(&command);
        return Err(format!("`{what}`: {status}: {}", why.trim()).into());
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}
