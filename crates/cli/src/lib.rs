//! Command `isolane` as a library: argument parsing and printing only. A program with its own datapaths calls [`run`].
//!
//! `arguments` parses the command line. `settings` adds values from the environment, the description and defaults.
//! `commands` runs the command, which ends with an exit code. Only results go to standard output.

#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod datapaths;
mod exit_code;
mod failure;
mod limits;
mod output;
mod result_file;
mod settings;
mod stop;
mod values;

use isolane::Kinds;

use crate::arguments::Call;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::settings::Settings;

/// Runs the command with the arguments of this process. `datapaths` are the datapath kinds of this program, best first.
#[must_use]
pub fn run(datapaths: Kinds) -> std::process::ExitCode {
    datapaths::set_kinds(datapaths);
    let outcome = match Call::parse(std::env::args_os()) {
        Ok(call) => execute(call),
        Err(error) if error.use_stderr() => {
            output::tell(error.render().to_string().trim_end());
            Ok(ExitCode::WrongUsage)
        }
        Err(help) => output::print_help(&help.render()),
    };
    let outcome = outcome.unwrap_or_else(|failure| {
        if !matches!(failure, Failure::OutputClosed) {
            output::tell(&failure);
        }
        failure.exit_code()
    });
    outcome.into()
}

fn execute(call: Call) -> Result<ExitCode, Failure> {
    let (command, settings) = Settings::new(call, &|name| std::env::var_os(name))?;
    commands::run(command, settings)
}
