//! Commands, one per file or folder: options and settings in, an exit code or a failure out.

pub(crate) mod bench;
mod config;
pub(crate) mod datapaths;
mod doctor;
pub(crate) mod endpoint;
mod interface_watch;
mod ledger_text;
pub(crate) mod list;
pub(crate) mod manual;
mod needs;
mod participant;
mod placements;
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
/// Reason why it failed.
pub(crate) fn run(command: Command, mut settings: Settings) -> Result<ExitCode, Failure> {
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
        Command::Datapaths(datapaths) => {
            settings.begin()?;
            datapaths.run()
        }
        // A process of a measurement reports to its parent in its own format.
        Command::Child(child) => Ok(child.run()),
        Command::Config(arguments) => {
            settings.begin()?;
            config::run(settings.config(arguments))
        }
        Command::Doctor(arguments) => {
            settings.begin()?;
            doctor::run(settings.doctor(arguments)?)
        }
    }
}
