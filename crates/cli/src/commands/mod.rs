//! Commands, one in each file or folder. Each takes its options and settings, and returns an exit code or a failure.

pub(crate) mod bench;
pub(crate) mod config;
mod discovered;
pub(crate) mod doctor;
pub(crate) mod endpoint;
mod ledger_text;
pub(crate) mod list;
pub(crate) mod manual;
mod observable;
mod participant;
pub(crate) mod spy;
pub(crate) mod top;
pub(crate) mod tune;
pub(crate) mod why;

use crate::arguments::Command;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::settings::Settings;

/// Runs a command.
///
/// # Errors
/// The reason why the command failed.
pub(crate) fn run(command: Command, settings: Settings) -> Result<ExitCode, Failure> {
    match command {
        Command::Demo(demo) => demo.run(&settings),
        Command::Publish(publish) => publish.run(settings),
        Command::Subscribe(subscribe) => subscribe.run(settings),
        Command::List(list) => list.run(settings),
        Command::Why(why) => why.run(settings),
        Command::Spy(spy) => spy.run(settings),
        Command::Top(top) => top.run(settings),
        Command::Tune(tune) => tune.run(settings),
        Command::Bench(bench) => bench.run(&settings),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
        Command::Datapaths(datapaths) => datapaths.run(&settings),
        // A child process of a measurement reports to its parent in its own format, and needs no settings.
        Command::Child(child) => Ok(child.run()),
        Command::Config(config) => config.run(&settings),
        Command::Doctor(doctor) => doctor.run(&settings),
    }
}
