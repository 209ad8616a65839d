//! Command `isolane` as a library: argument parsing and printing only. A program with its own datapaths calls [`run`].
//!
//! A call passes `arguments` (grammar), `settings` (complete, consistent configuration) and `commands` (execution with
//! the libraries), and ends with an exit code. Results go to standard output, everything else to standard error.

#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod datapaths;
mod exit_code;
mod failure;
mod limits;
mod log;
mod output;
mod result_file;
mod settings;
mod shape;
mod spy;
mod stop;
mod top;
mod values;
mod why;

use isolane::Kinds;

use crate::arguments::Arguments;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::settings::Settings;

/// Runs the command with the arguments of this process. `datapaths` are the kinds that it offers, best first.
#[must_use]
pub fn run(datapaths: Kinds) -> std::process::ExitCode {
    datapaths::set_kinds(datapaths);
    let outcome = match Arguments::of_process() {
        Ok(arguments) => execute(arguments),
        Err(error) if error.use_stderr() => {
            output::tell(error.render().to_string().trim_end());
            Ok(ExitCode::WrongUsage)
        }
        Err(asked) => output::print_help(&asked.render()),
    };
    let outcome = outcome.unwrap_or_else(|failure| {
        if !matches!(failure, Failure::OutputClosed) {
            output::tell(&failure);
        }
        failure.exit_code()
    });
    outcome.into()
}

fn execute(arguments: Arguments) -> Result<ExitCode, Failure> {
    let settings = Settings::new(arguments, &|name| std::env::var_os(name))?;
    if !settings.warnings.is_empty() {
        output::tell(failure::draw(&settings.warnings));
    }
    for note in &settings.notes {
        output::tell(format!("note: {note}"));
    }
    if settings.verbosity > 0 {
        output::tell(settings.describe().trim_end());
    }
    if let Some(destination) = settings.command.json() {
        output::check_writable(destination)?;
    }
    if let Some(page) = settings.command.page() {
        output::check_writable(&values::Destination::File(page.to_owned()))?;
    }
    // A process of a measurement reports to its parent in its own format.
    if !matches!(settings.command, settings::Command::Child(_)) {
        log::install(settings.verbosity);
    }
    commands::run(settings.command)
}
