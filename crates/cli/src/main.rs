//! Command `isolane`: argument parsing and printing only.
//!
//! A call passes `arguments` (grammar), `settings` (layers below the command line) and `commands` (execution with the
//! libraries), and ends with an exit code. Results go to standard output, everything else to standard error.

#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod exit_code;
mod failure;
mod limits;
mod output;
mod result_file;
mod settings;
mod stop;
mod values;

use crate::arguments::Call;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::settings::Settings;

#[global_allocator]
static ALLOCATOR: isolane::ExitWithoutMemory = isolane::ExitWithoutMemory;

fn main() -> std::process::ExitCode {
    let outcome = match Call::parse(std::env::args_os()) {
        Ok(call) => run(call),
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

fn run(call: Call) -> Result<ExitCode, Failure> {
    let (command, settings) = Settings::new(call, &|name| std::env::var_os(name))?;
    commands::run(command, settings)
}
