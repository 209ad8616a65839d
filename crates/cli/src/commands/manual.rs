//! `isolane completions` and `isolane man`: what shells and `man` want to know, made from the same
//! arguments as the help.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{print, tell};

/// Prints a completion script.
pub(crate) fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "isolane", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Prints the manual page, or writes one for each command.
pub(crate) fn man(directory: Option<&Path>) -> Result<ExitCode, Failure> {
    let Some(directory) = directory else {
        let mut page = Vec::new();
        let failed = |error: std::io::Error| {
            let what = "the manual page could not be made";
            Failure::new(ExitCode::MachineForbids, what, error.to_string())
        };
        clap_mangen::Man::new(command())
            .render(&mut page)
            .map_err(failed)?;
        return print(&String::from_utf8_lossy(&page));
    };
    let written = std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(command(), directory));
    written.map_err(|error| {
        let what = format!(
            "manual pages could not be written to {}",
            directory.display()
        );
        Failure::new(ExitCode::MachineForbids, what, error.to_string())
            .with_remedy("name a directory this user may write to")
    })?;
    tell(format!("manual pages are in {}", directory.display()));
    Ok(ExitCode::Done)
}

/// The command without what is not for people.
fn command() -> Command {
    let whole = Arguments::command();
    let visible: Vec<Command> = whole
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .cloned()
        .collect();
    let mut command = Command::new("isolane")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .args(whole.get_arguments().cloned())
        .subcommands(visible);
    if let Some(about) = whole.get_about() {
        command = command.about(about.clone());
    }
    if let Some(help) = whole.get_after_help() {
        command = command.after_help(help.clone());
    }
    command
}
