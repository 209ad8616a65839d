//! `isolane completions` and `isolane man`, generated from the arguments that also define the help. Also the hidden
//! command `isolane child`.

use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{print, tell, write_text};

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Print the script for this shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Print the page of this command, such as `sub` or `tune-plan`. Any other value is a directory, into which all
    /// pages are written
    ///
    /// The directory is created if necessary. Without an argument, the page of isolane itself is printed.
    #[arg(value_name = "COMMAND|DIR")]
    target: Option<PathBuf>,
}

/// Child process of a measurement: the cable, a load, or one of the two endpoints.
#[derive(Debug, Args)]
pub(crate) struct Child {
    /// Role and its configuration, as JSON
    #[arg(value_name = "ROLE")]
    role: String,
}

impl Completions {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command(), "isolane", &mut script);
        print(&String::from_utf8_lossy(&script))
    }
}

impl Child {
    pub(super) fn run(&self) -> ExitCode {
        match isolane_bench::child::main(&self.role) == std::process::ExitCode::SUCCESS {
            true => ExitCode::Done,
            false => ExitCode::AnswerIsNo,
        }
    }
}

impl Man {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let mut whole = command();
        let Some(directory) = &self.target else {
            return print(&page(&whole)?);
        };
        // `build` gives each subcommand its full name and the common options.
        whole.build();
        let name = format!("isolane-{}", directory.display());
        if let Some(command) = find(&whole, &name) {
            return print(&page(command)?);
        }
        std::fs::create_dir_all(directory).map_err(|error| {
            let what = format!(
                "manual pages could not be written to {}",
                directory.display()
            );
            Failure::forbidden(what, error)
                .with_remedy("name a directory that this user may write to")
        })?;
        write_pages(&whole, directory)?;
        tell(format!("manual pages are in {}", directory.display()));
        Ok(ExitCode::Done)
    }
}

/// Subcommand with this full name, such as `isolane-tune-plan`.
fn find<'a>(command: &'a Command, name: &str) -> Option<&'a Command> {
    command
        .get_subcommands()
        .find_map(|inner| match inner.get_display_name() == Some(name) {
            true => Some(inner),
            false => find(inner, name),
        })
}

/// Writes the manual page of a command, and the pages of its subcommands.
fn write_pages(command: &Command, directory: &Path) -> Result<(), Failure> {
    for subcommand in command.get_subcommands() {
        write_pages(subcommand, directory)?;
    }
    let name = clap_mangen::Man::new(command.clone()).get_filename();
    write_text(&page(command)?, &directory.join(name)).map(drop)
}

/// Manual page of a command. Examples, related commands and exit codes of its help become sections of the page.
fn page(command: &Command) -> Result<String, Failure> {
    let mut command = command.clone();
    let usage = command.render_usage().to_string();
    let command = command.override_usage(usage.trim_start_matches("Usage: ").to_owned());
    let mut page = Vec::new();
    let made = clap_mangen::Man::new(command).render(&mut page);
    made.map_err(|error| {
        let what = "the manual page could not be made";
        Failure::forbidden(what, error)
    })?;
    let lines = String::from_utf8_lossy(&page);
    let trimmed: Vec<&str> = lines.lines().map(str::trim_end).collect();
    Ok((trimmed.join("\n") + "\n")
        .replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n")
        .replace("\n\nSee also: ", "\n.SH \"SEE ALSO\"\n")
        .replace("\n\nExit codes: ", "\n.SH \"EXIT STATUS\"\n"))
}

/// Grammar of the command line without the hidden subcommands.
fn command() -> Command {
    let whole = Arguments::full_grammar();
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
